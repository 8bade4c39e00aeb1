# SPDX-License-Identifier: Apache-2.0
"""Which planted regressions a suite finds: docs/examples/nightly-power.txt made again, and what it stands on."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path

import pytest

from howdah.codec import encoded
from howdah.command.main import main
from howdah.nightly.power import KERNELS, PLANTS, REPETITIONS, SHARES, Kernel, Power, power_of
from howdah.nightly.sheet import Baseline
from howdah.nightly.significance import PRIMARY
from howdah.nightly.suite import chosen, read_suite
from howdah.place import PROFILES
from tests.nightly_factory import changed, sheet, usual, write_suite

ROOT = Path(__file__).resolve().parents[2]
BASELINE = ROOT / "docs" / "examples" / "nightly-baseline"
TEXT = (ROOT / "docs" / "examples" / "nightly-power.txt").read_text(encoding="utf-8")
NAME = "test-made-debian-6.12"


@cache
def _shipped(kernel: Kernel, repetitions: tuple[int, ...]) -> Power:
    suite = read_suite(PROFILES / "suites" / "nightly.yaml")
    return power_of(Baseline(BASELINE), suite, chosen(suite, []), repetitions, [kernel])


def _written() -> dict[tuple[str, str], list[str]]:
    table = TEXT[TEXT.index("| kernel | planted |") :].partition("\n\n")[0].splitlines()
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in table]
    assert rows[0][2:] == [f"{count} repetitions" for count in REPETITIONS]
    return {(row[0], row[1]): row[2:] for row in rows[2:]}


@pytest.mark.parametrize(
    ("kernel", "repetitions"),
    [("the same", 3), ("another, alike", 5), ("another, alike", 10), ("another, scattered", 10)],
)
def test_the_table_is_what_the_command_prints(kernel: Kernel, repetitions: int) -> None:
    """Columns of it: each is drawn by itself, so that it is the same in a table of others."""
    made = _shipped(kernel, (repetitions,))
    lines = made.text().splitlines()
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines if line.startswith(f"| {kernel} ")]
    written, column = _written(), REPETITIONS.index(repetitions)
    assert {(row[0], row[1]): row[2] for row in rows} == {
        key: cells[column] for key, cells in written.items() if key[0] == kernel
    }
    assert written["", "a suite of this size is"][column] == ("accepted" if made.accepted[0] else "refused")
    assert all(line in TEXT for line in lines[:4]), "what it is a table of"


def test_the_table_has_every_row() -> None:
    planted = ["nothing", *(f"{plant.name}, {share:.0%}".replace("%", " %") for plant in PLANTS for share in SHARES)]
    assert list(_written())[1:] == [(kernel, each) for kernel in KERNELS for each in planted]
    assert {plant.metric for plant in PLANTS} <= set(PRIMARY)


def test_no_planted_change_is_ever_green() -> None:
    """On every kernel, with whatever number of repetitions: the cell fails."""
    for (_, planted), cells in _written().items():
        if planted.endswith("%"):
            assert {cell.partition(" / ")[2] for cell in cells} == {"100 %"}


def _power(directory: Path, before: Baseline, *words: str) -> tuple[int, Path]:
    suite = write_suite(directory, "suite: test\ncells:\n- {profile: made.yaml}\n")
    return main(["nightly", str(suite), "--power", "--baseline", str(before.directory), *words]), suite


def test_the_command_prints_the_power_of_a_suite(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    baseline = Baseline(tmp_path / "base")
    baseline.accept(sheet(NAME, lambda slug, n: {**usual(slug, n), "retransmitted_packets@1": 100.0 + n}))
    code, suite = _power(tmp_path, baseline, "--json")
    assert code == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["cells"], found["tests"], found["measured"]) == (2, 10, 10)
    assert found["accepted"] == [False, True, True, True]
    assert len(found["rows"]) == len(KERNELS) * (1 + len(PLANTS) * len(SHARES))
    same = [row for row in found["rows"] if row["kernel"] == "the same"]
    assert all(share == {"proven": float(row["share"] > 0), "failed": float(row["share"] > 0)}
               for row in same for share in row["found"])  # fmt: skip
    few = next(row for row in found["rows"] if (row["kernel"], row["plant"]) == ("another, alike", "utilisation"))
    assert few["found"][0] == {"proven": 0.0, "failed": 1.0}
    assert few["found"][1] == {"proven": 1.0, "failed": 1.0}
    assert not (tmp_path / "runs").exists()
    # Drawn again it is the same, whatever else is asked for.
    repetitions, kernel = (5, 3), KERNELS[-1]
    again = power_of(baseline, read_suite(suite), chosen(read_suite(suite), []), repetitions, [kernel])
    rows = [row for row in found["rows"] if row["kernel"] == kernel]
    assert json.loads(json.dumps(encoded(again.rows))) == [{**row, "found": row["found"][1::-1]} for row in rows]


def test_it_takes_a_baseline_in_which_something_can_be_planted(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    baseline = Baseline(tmp_path / "base")
    assert _power(tmp_path, baseline)[0] == 1
    assert "there is no baseline to take the spread" in capsys.readouterr().err
    baseline.accept(sheet(NAME, lambda slug, n: changed(slug, n, retransmitted_packets__1=3.0)))
    assert _power(tmp_path, baseline)[0] == 1
    assert "have retransmitted_packets, large enough" in capsys.readouterr().err
