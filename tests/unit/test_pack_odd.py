# SPDX-License-Identifier: Apache-2.0
"""Packs whose index is not one that ``howdah pack`` writes: refused in words, before a byte is written."""

from __future__ import annotations

import io
import json
import tarfile
from pathlib import Path
from typing import Any

import pytest
import zstandard

from howdah.pack.archive import PackError
from howdah.pack.pack import unpack
from tests.unit.pack_factory import RUN, archive, index_of, member


def _changed(name: str, value: Any) -> bytes:
    return json.dumps({**json.loads(index_of({})), name: value}).encode()


# What is in an index, and what its refusal says.
ODD = {
    "a module of Python's": (index_of({"howdah/__init__.py": b""}), "not a file of an experiment"),
    "settings beside the experiment": (index_of({"ansible.cfg": b""}), "not a file of an experiment"),
    "a program in the experiment": (index_of({"e/sitecustomize.py": b""}), "not a file of an experiment"),
    "a program in a run": (index_of({f"{RUN}/json.py": b""}), "not a file of an experiment"),
    "a program among tables": (index_of({f"{RUN}/tables/json.py": b""}), "not a file of an experiment"),
    "an option": (index_of({f"{RUN}/raw/--help": b""}), "not a file of an experiment"),
    "a hidden file": (index_of({f"{RUN}/raw/.profile": b""}), "not a file of an experiment"),
    "a way up": (index_of({f"{RUN}/raw/../../../a": b""}), "not a file of an experiment"),
    "an escape sequence": (index_of({f"{RUN}/raw/\x1b[2J": b""}), "not a file of an experiment"),
    "text turned around": (index_of({f"{RUN}/raw/\u202egpj": b""}), "not a file of an experiment"),
    "a name in two forms": (index_of({f"{RUN}/raw/e\u0301": b""}), "not a file of an experiment"),
    "a long name": (index_of({f"{RUN}/raw/{'a' * 300}": b""}), "not a file of an experiment"),
    "many directories": (index_of({f"{RUN}/raw/{'a/' * 40}a": b""}), "not a file of an experiment"),
    "a run that is not listed": (index_of({"e/other/run.json": b"{}", "e/other/plan.json": b"{}"}), "is not listed"),
    "a run without a plan": (index_of({"e/other/run.json": b"{}"}, runs=[RUN, "e/other"]), "is not whole"),
    "no experiments": (_changed("experiments", []), "experiments is not a list of names, or empty"),
    "experiments of numbers": (_changed("experiments", [1]), "experiments is not a list of names"),
    "no runs": (_changed("runs", None), "runs is not a list of names"),
    "an experiment without runs": (_changed("experiments", ["e", "f"]), "has no runs"),
    "an experiment twice": (_changed("experiments", ["e", "e"]), "twice"),
    "no files": (_changed("files", [1]), "files is not an object"),
    "a size below zero": (_changed("files", {"a": {"bytes": -1, "sha256": "0" * 64}}), "size or digest"),
    "a size that is true": (_changed("files", {"a": {"bytes": True, "sha256": "0" * 64}}), "size or digest"),
    "a list": (b"[]", "it is not an object"),
    "nothing": (b"", "this is not JSON"),
    "lists in lists": (b"[" * 100_000, "nested too deeply"),
    "a number that is none": (b'{"format": NaN}', "not a JSON number"),
    "more values than text": (b'{"format": 1, "x": [' + b"[]," * 6_000_000 + b"0]}", "more values than its size"),
}


@pytest.mark.parametrize("what", ODD)
def test_a_pack_has_experiments_and_nothing_else(what: str, tmp_path: Path) -> None:
    index, said = ODD[what]
    with pytest.raises(PackError, match=said):
        unpack(archive(tmp_path / "odd.tar.zst", member("x/pack.json", index)), tmp_path / "there")
    assert not (tmp_path / "there").exists()


def test_a_header_is_no_larger_than_a_name_needs(tmp_path: Path) -> None:
    """One that says more of the next member is read whole, before anything is known of the file."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.PAX_FORMAT) as written:
        first, content = member("x/pack.json", index_of({}))
        first.pax_headers = {"comment": "x" * (1 << 20)}
        written.addfile(first, io.BytesIO(content))
    file = tmp_path / "odd.tar.zst"
    file.write_bytes(zstandard.ZstdCompressor().compress(out.getvalue()))
    with pytest.raises(PackError, match="a header of 1048"):
        unpack(file, tmp_path / "there")
