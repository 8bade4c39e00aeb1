# SPDX-License-Identifier: Apache-2.0
"""A hash that is remembered is the one that would be found."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from howdah.command.main import main
from howdah.place import PROJECT
from howdah.record import closure as memory
from howdah.record.closure import closure_sha256, remembered_sha256
from howdah.record.directory import WRITING

PIECE = ["howdah.record.clock"]


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.setenv("HOWDAH_CACHE", str(tmp_path / "cache"))
    yield tmp_path / "cache"


def _forbid_parsing(monkeypatch: pytest.MonkeyPatch) -> None:
    def parse(*_arguments: object, **_options: object) -> str:
        raise AssertionError("the closure was looked for again")

    monkeypatch.setattr(memory, "closure_sha256", parse)


def test_the_second_command_parses_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    first = remembered_sha256(PIECE)
    assert first == closure_sha256(PIECE)
    _forbid_parsing(monkeypatch)
    assert remembered_sha256(PIECE) == first


def test_entries_imports_in_functions_and_data_are_told_apart() -> None:
    data = PROJECT / "reports" / "measures.yaml"
    answers = {
        remembered_sha256(PIECE),
        remembered_sha256(["howdah.work.queue"]),
        remembered_sha256(["howdah.work.queue"], deferred=False),
        remembered_sha256(PIECE, data=[data]),
    }
    assert len(answers) == 4


@pytest.mark.parametrize("content", [b"", b"0" * 63, b"0" * 65, b"\xff" * 64, b"0" * 63 + b"\n"])
def test_what_is_no_hash_is_found_again(cache: Path, content: bytes) -> None:
    right = remembered_sha256(PIECE)
    [file] = (cache / "closure").iterdir()
    file.write_bytes(content)
    assert remembered_sha256(PIECE) == right
    assert file.read_text() == right


def test_a_cache_that_cannot_be_written_is_done_without(cache: Path) -> None:
    cache.write_text("a file where the cache would be")
    assert remembered_sha256(PIECE) == closure_sha256(PIECE)


def test_what_a_killed_command_was_writing_is_cleaned_away(cache: Path, tmp_path: Path) -> None:
    remembered_sha256(PIECE)
    [kept] = (cache / "closure").iterdir()
    left = kept.with_name(f"{WRITING}{kept.name}-{2**22 + 1}")  # above every number of a process
    left.touch()
    assert main(["clean", "--runs", str(tmp_path / "runs")]) == 0
    assert list((cache / "closure").iterdir()) == [kept]


def test_a_changed_module_is_noticed_and_one_changed_back(tmp_path: Path, cache: Path) -> None:
    for package in ("howdah", "collectors", "topologies", "reports"):
        shutil.copytree(PROJECT / package, tmp_path / "tree" / package, ignore=shutil.ignore_patterns("__pycache__"))
    code = "from howdah.record.provenance import *; print(analysis_sha256(), agent_sha256())"

    def asked() -> tuple[str, str]:
        environment = {**os.environ, "PYTHONPATH": str(tmp_path / "tree"), "HOWDAH_CACHE": str(cache)}
        done = subprocess.run(
            [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True, env=environment
        )
        analysis, agent = done.stdout.split()
        return analysis, agent

    before = asked()
    assert asked() == before
    module = tmp_path / "tree" / "howdah" / "record" / "clock.py"
    text, times = module.read_text(), module.stat()
    module.write_text(text[:-1] + " ")  # of the same size, and below of the same time
    os.utime(module, ns=(times.st_atime_ns, times.st_mtime_ns))
    changed = asked()
    assert changed[0] != before[0]
    assert asked() == changed
    module.write_text(text)
    assert asked() == before
