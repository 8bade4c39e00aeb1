# SPDX-License-Identifier: Apache-2.0
"""p-values against tables and counting; how often nights raise an alarm; which regressions a suite finds."""

from __future__ import annotations

import itertools
import json
import math
import random
from functools import cache, partial
from pathlib import Path

import pytest

from howdah.codec import encoded
from howdah.command import nightly as command
from howdah.command.main import main
from howdah.metric import known_metrics
from howdah.nightly.power import KERNELS, PLANTS, REPETITIONS, SHARES, Kernel, Power, power_of
from howdah.nightly.sheet import Baseline
from howdah.nightly.significance import (
    EFFECTS,
    PRIMARY,
    PRIMARY_ALPHA,
    can_prove,
    comparisons_provable,
    effect_of,
    holm,
    least_p,
    paired_p,
    pairs_to_decide,
    pairs_to_prove,
    share_p,
    student_two_sided,
    worse,
)
from howdah.nightly.suite import chosen, read_suite
from howdah.place import PROFILES
from tests.nightly_factory import changed, sheet, usual, write_suite


@pytest.mark.parametrize(
    ("t", "degrees", "p"),  # Student's two-sided quantiles as they are printed in tables
    [(12.706, 1, 0.05), (4.303, 2, 0.05), (2.262, 9, 0.05), (2.042, 30, 0.05), (4.781, 9, 0.001), (3.169, 10, 0.01)],
)
def test_students_distribution_is_that_of_the_tables(t: float, degrees: int, p: float) -> None:
    assert student_two_sided(t, degrees) == pytest.approx(p, rel=2e-3)


def test_students_distribution_with_one_and_two_degrees_is_known_in_closed_form() -> None:
    for t in (0.0, 0.1, 1.0, 3.0, 50.0, 1e4):
        assert student_two_sided(t, 1) == pytest.approx(1 - 2 * math.atan(t) / math.pi, rel=1e-9, abs=1e-12)
        assert student_two_sided(t, 2) == pytest.approx(1 - t / math.sqrt(2 + t * t), rel=1e-6, abs=1e-9)


def test_the_least_p_is_what_counting_gives() -> None:
    """Two values, half and half, in two nights: how often is one night all the one and the other all the other?"""
    for pairs in (1, 2, 3, 4):
        nights = list(itertools.product((0, 1), repeat=2 * pairs))
        flips = [night for night in nights if {sum(night[:pairs]), sum(night[pairs:])} == {0, pairs}]
        assert least_p(pairs) == pytest.approx(len(flips) / len(nights))


def test_shares_are_compared_by_fishers_exact_test() -> None:
    assert share_p(10, 10, 10) == 1
    assert share_p(0, 0, 10) == 1
    # 8 of 10 against 1 of 10: 1 + 45 * 10 … counted by hand, of C(20, 9) tables those no likelier than this one.
    likely = [math.comb(10, k) * math.comb(10, 9 - k) for k in range(10)]
    assert share_p(8, 1, 10) == pytest.approx(sum(w for w in likely if w <= likely[8]) / math.comb(20, 9))
    assert share_p(8, 1, 10) < 0.006
    assert share_p(0, 10, 10) == least_p(10)


def test_holm_is_as_in_its_definition() -> None:
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert holm([]) == []
    assert holm([0.9, 0.8]) == [1.0, 1.0]


def test_a_change_below_the_margin_is_none_however_sure() -> None:
    assert paired_p([0.99, 1.0, 0.98, 1.01, 0.97], 1.0, 100) == 1
    assert paired_p([2.0, 2.0, 2.0], 2.0, 100) == 1
    assert paired_p([2.0, 2.0, 2.0], 1.0, 100) == least_p(3)
    assert paired_p([5.0], 0.0, 100) == 1


def test_nothing_to_compare_and_nothing_that_scatters_have_an_answer() -> None:
    """0 comparisons, 0 spread, 0 pairs: as one comparison, certain from the fewest pairs on, and never."""
    pairs = pairs_to_prove(1, PRIMARY_ALPHA)
    for count in (pairs - 1, pairs):
        assert can_prove(0, count, PRIMARY_ALPHA) is can_prove(1, count, PRIMARY_ALPHA) is (count == pairs)
    assert pairs_to_decide(1.0, 0.0, 1, PRIMARY_ALPHA) == pairs
    assert comparisons_provable(pairs - 1, PRIMARY_ALPHA) == 0
    assert comparisons_provable(pairs, PRIMARY_ALPHA) >= 1
    assert share_p(0, 0, 0) == 1


def _nights(noise: str, nights: int, cells: int, pairs: int, rng: random.Random) -> float:
    """The share of nights with an alarm when both nights are drawn from the same distribution."""
    alarms = 0
    for _ in range(nights):
        p_values = []
        for _ in range(cells):
            differences = [_value(noise, rng) - _value(noise, rng) for _ in range(pairs)]
            p_values.append(paired_p(differences, 0.0, 1.0))
        alarms += min(holm(p_values)) < 0.05
    return alarms / nights


def _value(noise: str, rng: random.Random) -> float:
    if noise == "normal":
        return rng.gauss(0, 1)
    if noise == "two values":
        return float(rng.random() < 0.5)
    if noise == "a rare one":
        return float(rng.random() < 0.05)
    return rng.paretovariate(1.5)


@pytest.mark.parametrize("noise", ["normal", "two values", "a rare one", "heavy tails"])
@pytest.mark.parametrize("pairs", [3, 5, 10])
def test_equal_nights_raise_an_alarm_in_one_of_twenty_at_most(noise: str, pairs: int) -> None:
    rng = random.Random(f"{noise}{pairs}")
    nights, cells = 400, 60
    found = _nights(noise, nights, cells, pairs, rng)
    assert found <= 0.05 + 2.6 * math.sqrt(0.05 * 0.95 / nights)


def test_without_the_correction_equal_nights_would_be_red() -> None:
    rng = random.Random(1)
    red = 0
    for _ in range(50):
        red += min(paired_p([rng.gauss(0, 1) for _ in range(10)], 0.0, 1.0) for _ in range(60)) < 0.05
    assert red > 40


def test_every_measure_has_a_least_change_and_every_direction_a_measure() -> None:
    for name in known_metrics():
        assert effect_of(name, known_metrics()[name].unit).relative >= 0
        assert worse(name) in ("more", "less", "either")
    assert worse("exit_cwnd_packets") == "either"
    assert worse("utilisation") == "less"
    assert worse("retransmitted_packets") == "more"
    assert (worse("cpu_share_of_an_older_version"), worse("unheard_of_s")) == ("more", "either")
    assert effect_of("utilisation", "ratio").margin(0.9) == pytest.approx(0.009)
    assert effect_of("retransmitted_packets", "packets").margin(3) == 2
    assert effect_of("cpu_share_user_copy", "ratio") is EFFECTS[0]


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
    ("kernel", "repetitions"), [("the same", 3), ("another, alike", 5), ("another, scattered", 10)]
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


def test_the_command_prints_the_power_of_a_suite(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(command, "power_of", partial(power_of, trials=20))  # each decides as all others here
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
    again = power_of(baseline, read_suite(suite), chosen(read_suite(suite), []), repetitions, [kernel], 20)
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
    assert "no cell of the baseline has retransmitted_packets in all repetitions" in capsys.readouterr().err
    # A share of nothing is nothing: where the path was idle, no loss of utilisation can be planted.
    idle = {"retransmitted_packets@1": 100.0, "utilisation": 0.0}
    baseline.accept(sheet(NAME, lambda slug, n: {**usual(slug, n), **idle}))
    assert _power(tmp_path, baseline)[0] == 1
    assert "no cell of the baseline has utilisation in all repetitions" in capsys.readouterr().err
