# SPDX-License-Identifier: Apache-2.0
"""Result tables on terminals of any width: no line is broken by the terminal, and no number is left out."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest

from howdah.command.main import main
from howdah.report.ending import fold
from tests.experiment_factory import Scenario, make_experiment
from tests.wheel import ROOT

_HEADER = ["", "n", "flow", "exit", "exit cwnd", "cause", "overshoot", "retrans.", "to 90 %", "blackout", "Jain"]
_UNITS = ["", "", "", "s", "BDP", "", "packets", "packets", "s", "s", ""]


def _table(label: str) -> list[list[str]]:
    first = [label, "3", "first", "3.529", "4.001", "loss", "15\u202f851", "22\u202f595", "2.879", "0.4708", "0.7397"]
    second = ["", "", "second", "4.284", "0.5033", "ACK train", "−11\u202f847", "2027", "11.85", "0", ""]
    return [_HEADER, _UNITS, ["[round-trip time 40 ms]"], first, second]


def test_a_table_that_fits_stays_in_one_part() -> None:
    lines = fold(_table("cubic-no-hystart"), 200)
    assert lines == fold(_table("cubic-no-hystart"), None)
    assert len(lines) == 5


def test_a_line_whose_numbers_are_in_another_part_leaves_no_gap() -> None:
    spread = ["", "", "", "3.4 … 3.6", *[""] * 7]
    lines = fold([*_table("cubic")[:4], spread], 60)
    assert sum("3.4 … 3.6" in line for line in lines) == 1
    parts = sum(line.startswith("cubic") for line in lines)
    assert parts > 1
    assert sum(not line for line in lines) == parts - 1


@pytest.mark.parametrize("width", [45, 60, 80])
@pytest.mark.parametrize("label", ["cubic", "hystart-paper-cubic · 6.12.0 · long-fat-400mbit-240ms-again"])
def test_a_wide_table_is_folded_between_columns(label: str, width: int) -> None:
    table = _table(label)
    lines = fold(table, width)
    assert max(map(len, lines)) <= width
    text = "\n".join(lines)
    for line in table:
        assert all(word in text for cell in line for word in cell.split(" "))
    # Every part says which rows it has, and every number stands once.
    parts = text.split("\n\n")
    assert len(parts) > 1
    for part in parts:
        assert all(word in part for word in label.split(" "))
        assert "second" in part
    assert text.count("15\u202f851") == 1


@pytest.fixture(scope="module")
def experiment(tmp_path_factory: pytest.TempPathFactory) -> Path:
    scenario = Scenario(name="one", kernel="6.12.0", duration_s=3.0, second_flow_s=1.0, repetitions=2)
    return make_experiment(tmp_path_factory.mktemp("runs"), scenario)


def _compared(experiment: Path, columns: int, capsys: pytest.CaptureFixture[str], set_env: pytest.MonkeyPatch) -> str:
    set_env.setenv("COLUMNS", str(columns))
    assert main(["compare", str(experiment), "--runs", str(experiment.parent), "--without-prometheus"]) == 0
    return capsys.readouterr().out.partition("report: ")[0]


def test_compare_fits_80_columns_with_the_numbers_of_200(
    experiment: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    narrow, wide = (_compared(experiment, columns, capsys, monkeypatch) for columns in (80, 200))
    assert max(map(len, narrow.splitlines())) <= 80 < max(map(len, wide.splitlines())) <= 200
    assert set(wide.split()) <= set(narrow.split())


def test_a_real_terminal_says_how_wide_it_is(experiment: Path) -> None:
    """The width comes from the terminal itself where no variable gives it."""
    parent, child = pty.openpty()
    os.set_blocking(parent, True)
    command = [sys.executable, "-m", "howdah.command.main", "compare", str(experiment), "--without-prometheus"]
    environment = {name: value for name, value in os.environ.items() if name != "COLUMNS"}
    subprocess.run(["stty", "cols", "70"], stdin=child, check=True)
    process = subprocess.Popen(
        [*command, "--runs", str(experiment.parent)], stdout=child, env={**environment, "PYTHONPATH": str(ROOT)}
    )
    os.close(child)
    said = b""
    try:
        while chunk := os.read(parent, 65536):
            said += chunk
    except OSError:
        pass  # the other end was closed: all is read
    finally:
        os.close(parent)
    assert process.wait() == 0
    table = said.decode().partition("report: ")[0].splitlines()
    assert 40 < max(map(len, table)) <= 70
