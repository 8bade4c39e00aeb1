# SPDX-License-Identifier: Apache-2.0
"""Where a file cannot be written, the file that the user gave is named, and not what becomes it; and what to do."""

from __future__ import annotations

import errno
import os
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from howdah.command.main import main
from howdah.errors import remedy
from howdah.pack.pack import pack
from howdah.record.directory import WRITING, in_its_place, write_whole
from tests.experiment_factory import Scenario, make_experiment

FULL, READ_ONLY = (OSError(number, os.strerror(number)) for number in (errno.ENOSPC, errno.EROFS))


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("runs")
    make_experiment(
        place, Scenario(name="made", algorithms=("cubic",), repetitions=1, flows=1, duration_s=1.0, told=True)
    )
    return place


def _raising(error: OSError) -> Callable[..., Any]:
    def failing(*given: Any, **_options: Any) -> Any:
        name = given[0] if given and isinstance(given[0], (str, os.PathLike)) else None
        raise OSError(error.errno, error.strerror, None if error is FULL else str(name))

    return failing


@pytest.mark.parametrize("error", [FULL, READ_ONLY])
@pytest.mark.parametrize("form", ["table.tex", "figure.pdf", "tables"])
def test_the_file_that_was_asked_for_is_named(
    form: str,
    error: OSError,
    runs: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    target = tmp_path / form
    command = {
        "table.tex": ["table", "made", "--output", str(target)],
        "figure.pdf": ["figure", "made", "--figure", "start-up", "--output", str(target)],
        "tables": ["export", "made", "--format", "csv", "--output", str(target)],
    }[form]
    real = os.open

    def opened(path: Any, *rest: Any, **more: Any) -> int:
        is_own = WRITING in str(path) and str(tmp_path) in str(path)
        return _raising(error)(path) if is_own else real(path, *rest, **more)

    monkeypatch.setattr(os, "open", opened)
    assert main([*command, "--runs", str(runs)]) == 1
    said = capsys.readouterr().err.splitlines()
    (first,) = [line for line in said if line.startswith("howdah: ") and "has no digests" not in line]
    assert first.startswith(f"howdah: {target}")
    assert first.endswith(str(error.strerror))
    assert WRITING not in first
    assert f"  {remedy(error)}" in said
    assert not list(tmp_path.rglob(f"{WRITING}*"))


@pytest.mark.parametrize("error", [FULL, READ_ONLY])
def test_a_pack_that_cannot_be_written_is_named(
    error: OSError, runs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "TemporaryFile", _raising(error))
    with pytest.raises(OSError, match=str(error.strerror)) as caught:
        pack([runs / "made"], tmp_path / "made.howdah.tar.zst")
    assert caught.value.filename == str(tmp_path / "made.howdah.tar.zst")


def test_a_full_disk_names_no_file_and_the_message_does(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "fsync", _raising(FULL))
    with pytest.raises(OSError, match="No space") as caught:
        write_whole(tmp_path / "x.json", "x")
    assert caught.value.filename == str(tmp_path / "x.json")
    other = str(tmp_path / "other")
    with pytest.raises(OSError, match="No such file") as caught, in_its_place(tmp_path / "x.json"):
        Path(other).read_bytes()
    assert caught.value.filename == other, "what is read keeps its name"


def test_a_name_may_be_as_long_as_the_file_system_takes(tmp_path: Path) -> None:
    file = tmp_path / ("\N{LATIN SMALL LETTER U WITH DIAERESIS}" * 127)
    write_whole(file, "x")
    assert file.read_text() == "x"


@pytest.mark.parametrize(
    "command", [["run"], ["explain"], ["verify"], ["table", "made", "--output"], ["new", "x", "--output"]]
)
def test_a_name_that_is_too_long_is_told_with_the_limit(
    command: list[str], runs: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    more = ["--runs", str(runs)] if command[0] in ("table", "run", "verify") else []
    assert main([*command, "a" * 256, *more]) in (1, 2)
    said = capsys.readouterr().err
    assert (
        f"{'a' * 40}… has 256 bytes, and a name at most 255: choose a shorter one." in said or "has 261 bytes" in said
    )


def test_a_path_that_is_too_long_is_told_with_the_limit() -> None:
    error = OSError(errno.ENAMETOOLONG, os.strerror(errno.ENAMETOOLONG), "/".join(["a" * 200] * 21))
    assert remedy(error) == "A path has at most 4095 bytes: choose a directory nearer to the root."
