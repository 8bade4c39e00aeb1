# SPDX-License-Identifier: Apache-2.0
"""Settings of the whole kernel: a machine that goes on living has them back after a run, also after a killed one."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from howdah.agent import settings as module
from howdah.agent.settings import Settings


@pytest.fixture
def kernel(tmp_path: Path) -> Path:
    """Two settings, as the kernel shows them."""
    place = tmp_path / "kernel"
    place.mkdir()
    (place / "hystart").write_text("1\n")
    (place / "tcp_mem").write_text("100\t200\t300\n")
    return place


def values(kernel: Path) -> dict[str, str]:
    return {file.name: file.read_text().strip() for file in sorted(kernel.iterdir())}


def test_what_was_before_comes_back(kernel: Path, tmp_path: Path) -> None:
    before, journal = values(kernel), tmp_path / "journal"
    settings = Settings(journal)
    assert settings.recover() == []
    settings.write(kernel / "hystart", "0")
    settings.write(kernel / "tcp_mem", "1 2 3")
    settings.write(kernel / "tcp_mem", "4 5 6")
    assert values(kernel) == {"hystart": "0", "tcp_mem": "4 5 6"}
    assert settings.restore() == []
    assert values(kernel) == before
    assert not journal.exists()


def test_a_value_that_is_there_is_not_written(kernel: Path, tmp_path: Path) -> None:
    settings = Settings(tmp_path / "journal")
    for file in kernel.iterdir():
        file.chmod(0o444)
    stamp = (kernel / "tcp_mem").stat().st_mtime_ns
    settings.write(kernel / "tcp_mem", "100 200 300")
    assert (kernel / "tcp_mem").stat().st_mtime_ns == stamp
    assert not (tmp_path / "journal").exists()


def test_the_next_run_puts_back_what_a_killed_one_left(kernel: Path, tmp_path: Path) -> None:
    before, journal = values(kernel), tmp_path / "journal"
    killed = Settings(journal)
    killed.recover()
    killed.write(kernel / "hystart", "0")
    killed.write(kernel / "tcp_mem", "1 2 3")
    following = Settings(journal)
    assert following.recover() == []
    assert values(kernel) == before
    following.write(kernel / "hystart", "0")
    assert json.loads(journal.read_text()) == {str(kernel / "hystart"): "1"}
    following.restore()
    assert values(kernel) == before


def test_a_module_that_is_gone_is_no_problem_and_a_refusal_is_told(kernel: Path, tmp_path: Path) -> None:
    settings = Settings(tmp_path / "journal")
    settings.write(kernel / "hystart", "0")
    settings.write(kernel / "tcp_mem", "1 2 3")
    (kernel / "hystart").unlink()
    (kernel / "tcp_mem").unlink()
    (kernel / "tcp_mem").mkdir()
    (problem,) = settings.restore()
    assert problem == f"{kernel / 'tcp_mem'} stays changed, it was '100\\t200\\t300': Is a directory"
    assert not (tmp_path / "journal").exists()


def test_a_damaged_journal_is_told(tmp_path: Path) -> None:
    (tmp_path / "journal").write_text("{")
    (problem,) = Settings(tmp_path / "journal").recover()
    assert str(tmp_path / "journal") in problem


def test_a_kernel_that_ends_with_its_run_needs_no_journal(kernel: Path) -> None:
    settings = Settings()
    assert settings.recover() == []
    settings.write(kernel / "hystart", "0")
    assert settings.restore() == []
    assert values(kernel)["hystart"] == "0"
    assert not module.JOURNAL.exists()


def test_a_parameter_that_is_not_there_is_an_error() -> None:
    with pytest.raises(FileNotFoundError):
        Settings().parameter("no_such_module", "nothing", "1")
