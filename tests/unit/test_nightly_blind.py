# SPDX-License-Identifier: Apache-2.0
"""A night must not be green because it cannot see: each way in which one could, and what says so instead."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from howdah.errors import ProfileError
from howdah.nightly.change import CellResult
from howdah.nightly.night import Night
from howdah.nightly.output import junit
from howdah.nightly.power import check_provable, primary_comparisons
from howdah.nightly.sheet import NightSheet, Origin, Repetition, Value
from howdah.nightly.significance import (
    ALPHA,
    OTHER_ALPHA,
    PRIMARY,
    PRIMARY_ALPHA,
    Measures,
    can_prove,
    comparisons_provable,
    holm,
    least_p,
    paired_p,
    pairs_to_decide,
    pairs_to_decide_share,
    pairs_to_prove,
    share_p,
)
from howdah.nightly.suite import chosen, read_suite
from howdah.place import PROFILES
from tests.nightly_factory import changed, night, origin, sheet, usual, write_suite

NAME = "test-made-debian-6.12"


def _others(number: int) -> dict[str, Value]:
    """Forty more measures, as a run has them."""
    return {f"measure_{index}@1": index + 0.01 * number for index in range(40)}


def _deep(slug: str, number: int) -> dict[str, Value]:
    """Reno at a buffer of 100 kB, 20 Mbit/s and 40 ms; cubic leaves earlier and does not notice the buffer."""
    if slug == "cubic":
        return {**usual(slug, number), **_others(number)}
    return {
        "exit_time_s@1": 0.3133 + 0.0015 * (number % 3),
        "exit_cwnd_packets@1": 264.0 + number % 3,
        "exit_cwnd_bdp@1": 4.01 + 0.01 * (number % 3),
        "retransmitted_packets@1": 134.0 + number % 2,
        "utilisation": 0.954 + 0.001 * (number % 3),
        "time_to_90_percent_s@1": 0.2001,
        "exit_cause@1": "loss",
        **_others(number),
    }


def _cut(slug: str, number: int) -> dict[str, Value]:
    """The same with 30 kB."""
    if slug == "cubic":
        return _deep(slug, number)
    return {
        **_deep(slug, number),
        "exit_time_s@1": 0.2431 + 0.0015 * (number % 2),
        "exit_cwnd_packets@1": 91.0 + number % 2,
        "exit_cwnd_bdp@1": 1.38 + 0.005 * (number % 2),
        "utilisation": 0.850 + 0.002 * (number % 3),
    }


def _reno(made: Night) -> CellResult:
    return next(cell for cell in made.cells if cell.slug == "reno")


@pytest.mark.parametrize("repetitions", [2, 3, 5, 10, 20])
@pytest.mark.parametrize(
    ("before", "after", "plan"),
    [
        (origin("kernel"), origin("kernel"), "other settings"),
        (origin("kernel"), origin("another"), "plan"),
        (origin("kernel", virtual=False), origin("kernel", virtual=False), "plan"),
        (origin("kernel"), origin("kernel"), "plan"),
    ],
    ids=["other plan", "other kernel", "real time", "nothing else changed"],
)
def test_a_buffer_cut_to_a_third_is_never_unchanged(
    tmp_path: Path, repetitions: int, before: Origin, after: Origin, plan: str
) -> None:
    """100 to 30 kB: Reno's exit from 4.01 to 1.38 BDP, utilisation from 95.4 to 85.0 %."""
    made = night(
        tmp_path,
        sheet(NAME, _deep, repetitions=repetitions, made_by=before),
        sheet(NAME, _cut, repetitions=repetitions, made_by=after, plan=plan),
    )
    is_exact = before == after and before.virtual_clock and plan == "plan"
    expected = "not repeatable" if is_exact else "unproven" if repetitions < 5 else "regression"
    assert _reno(made).state == expected
    assert _reno(made) in made.failing
    root = ET.fromstring(junit(made))
    assert (root.get("failures"), root.get("errors")) == ("1", "0")
    assert "✕ test-made-debian-6.12/reno" in made.text()


def test_what_an_unproven_change_would_need_is_enough(tmp_path: Path) -> None:
    """As many repetitions as it says, scattered as these are, decide it."""
    few = night(tmp_path, sheet(NAME, _deep, repetitions=3), sheet(NAME, _cut, repetitions=3))
    (found,) = [each for each in _reno(few).of("unproven") if each.metric == "utilisation"]
    assert found.needed is not None
    more = night(tmp_path, sheet(NAME, _deep, repetitions=found.needed), sheet(NAME, _cut, repetitions=found.needed))
    assert "utilisation" in [each.metric for each in _reno(more).of("regression")]


# The same kernel and plan.


@pytest.mark.parametrize("metric", ["exit_round@1", "utilisation", "exit_cause@1"])
def test_any_difference_on_the_same_kernel_and_plan_is_an_alarm(tmp_path: Path, metric: str) -> None:
    """One repetition of ten, in any measure, by as little as a float can tell."""
    after = sheet(NAME, usual, made_by=origin("kernel"))
    measures = after.cells["reno"].repetitions[7].metrics
    value = measures[metric]
    measures[metric] = value * (1 + 1e-15) if isinstance(value, float) else "another"
    made = night(tmp_path, sheet(NAME, usual, made_by=origin("kernel")), after)
    assert _reno(made).state == "not repeatable"
    assert made.failing == [_reno(made)]
    assert made.tests == 0, "there is nothing to test"
    assert "differs in 1 of 10 repetitions" in made.text()
    (failure,) = ET.fromstring(junit(made)).iter("failure")
    assert failure.get("type") == "not repeatable"


@pytest.mark.parametrize("there", ["baseline", "tonight"])
def test_a_value_that_one_night_alone_has_is_an_alarm_as_well(tmp_path: Path, there: str) -> None:
    with_it, without = (sheet(NAME, usual, made_by=origin("kernel")) for _ in range(2))
    without.cells["reno"].repetitions[3].metrics["exit_round@1"] = None
    made = night(tmp_path, *((with_it, without) if there == "baseline" else (without, with_it)))
    assert _reno(made).state == "not repeatable"


def test_an_alarm_needs_the_same_kernel_and_plan_and_a_virtual_clock(tmp_path: Path) -> None:
    def state(**fields: str | bool) -> str:
        plan = str(fields.pop("plan", "plan"))
        before = replace(origin("kernel"), virtual_clock=bool(fields.get("virtual_clock", True)))
        after = sheet(NAME, lambda slug, n: changed(slug, n, utilisation=0.90001 + 0.001 * n),
                      made_by=replace(before, **fields), plan=plan)  # type: ignore[arg-type]  # fmt: skip
        made = night(tmp_path, sheet(NAME, usual, made_by=before), after)
        return next(cell.state for cell in made.cells if cell.slug == "cubic")

    assert state() == "not repeatable"
    assert state(guest="another") == "unchanged"
    assert state(plan="another") == "unchanged"
    assert state(virtual_clock=False) == "unchanged"
    assert state(agent="another") == "howdah changed"
    assert state(analysis="another") == "howdah changed"
    assert state(agent="another", guest="another") == "unchanged"
    assert state(agent="another", plan="another") == "unchanged"


def test_howdahs_own_change_is_told_as_its_own(tmp_path: Path) -> None:
    before = sheet(NAME, usual, made_by=origin("kernel"))
    after = sheet(
        NAME,
        lambda slug, n: {**changed(slug, n, utilisation=0.5), "a_new_measure": 1.0},
        made_by=origin("kernel", analysis="newer"),
    )
    made = night(tmp_path, before, after)
    cell = next(cell for cell in made.cells if cell.slug == "cubic")
    assert made.failing == [cell]
    assert cell.state == "howdah changed"
    assert [each.metric for each in cell.of("howdah changed")] == ["utilisation"]
    assert [each.metric for each in cell.of("appeared")] == ["a_new_measure"], "what only the newer one measures"
    assert (
        "howdah itself has changed since the baseline (the analysis): it may be the cause of differences" in cell.notes
    )
    other_kernel = sheet(NAME, usual, made_by=origin("another", analysis="newer"))
    assert "howdah itself has changed" in night(tmp_path, before, other_kernel).text()


def test_processor_time_is_of_the_machine_and_need_not_repeat(tmp_path: Path) -> None:
    def nights(seconds: float) -> NightSheet:
        values = {"cpu_seconds_per_simulated_second": seconds}
        return sheet(NAME, lambda slug, n: {**usual(slug, n), **values}, made_by=origin("kernel"))

    made = night(tmp_path, nights(0.20), nights(0.21))
    assert made.states == {"unchanged": 2}


# What can be told.


def test_a_measure_that_is_there_less_often_is_seen_though_its_value_is_the_same(tmp_path: Path) -> None:
    after = sheet(
        NAME, lambda slug, n: changed(slug, n, exit_time_s__1=usual(slug, n)["exit_time_s@1"] if n < 6 else None)
    )
    made = night(tmp_path, sheet(NAME, usual), after)
    cell = next(cell for cell in made.cells if cell.slug == "cubic")
    assert cell.state == "unproven"
    assert cell.unproven[0].startswith("exit_time_s of flow 1: in 10 of 10 to in 6 of 10")


def test_a_text_that_replaces_a_rarer_one_is_seen(tmp_path: Path) -> None:
    """The most frequent one is there as often as before."""

    def causes(*, other: str) -> Callable[[str, int], dict[str, Value]]:
        return lambda slug, n: changed(slug, n, exit_cause__1="delay" if n < 12 else other)

    made = night(
        tmp_path,
        sheet(NAME, causes(other="loss"), repetitions=20),
        sheet(NAME, causes(other="ack-train"), repetitions=20),
    )
    cell = next(cell for cell in made.cells if cell.slug == "cubic")
    (found,) = [each for each in cell.comparisons if each.metric == "exit_cause"]
    assert found.outcome != "unchanged"
    assert (found.baseline, found.tonight) == ("delay 12, loss 8", "delay 12, ack-train 8")
    assert found.p == pytest.approx(3 * share_p(0, 8, 20))


def test_a_cell_with_none_of_the_primary_measures_cannot_tell(tmp_path: Path) -> None:
    before = sheet(NAME, lambda _slug, n: {"exit_round@1": 7.0 + n})
    after = sheet(NAME, lambda _slug, n: {"exit_round@1": 7.1 + n})
    made = night(tmp_path, before, after)
    assert made.states == {"cannot tell": 2}
    assert len(made.failing) == 2
    assert "none of the primary measures" in made.text()
    assert ET.fromstring(junit(made)).get("errors") == "2"


def test_pairs_that_are_too_few_cannot_tell_though_the_suite_has_enough(tmp_path: Path) -> None:
    """Seven runs of the baseline do not count: of ten repetitions three pairs are left."""
    before, after = sheet(NAME, usual), sheet(NAME, lambda slug, n: changed(slug, n, utilisation=0.9001 + 0.001 * n))
    for number in range(3, 10):
        before.cells["cubic"].repetitions[number] = Repetition("invalid", 1, {}, "a reason")
    made = night(tmp_path, before, after)
    cell = next(cell for cell in made.cells if cell.slug == "cubic")
    assert cell.state == "cannot tell"
    assert cell.reasons == ["3 repetitions in both nights can prove no change among 10 primary comparisons: 5 could"]
    assert made.failing == [cell]
    for number, each in after.cells["cubic"].repetitions.items():
        each.metrics["utilisation"] = 0.7 + 0.001 * number
    changed_too = night(tmp_path, before, after, allow_unproven=True)
    assert [(each.slug, each.state) for each in changed_too.failing] == [("cubic", "unproven")]
    assert "3 repetitions in both nights can prove no change" in changed_too.text()


def test_equal_to_the_last_bit_takes_no_repetitions(tmp_path: Path) -> None:
    made = night(tmp_path, sheet(NAME, usual, repetitions=3), sheet(NAME, usual, repetitions=3))
    assert made.states == {"equal": 2}
    assert not made.failing


def test_the_metrics_of_a_suite_may_become_fewer_without_anything_vanishing(tmp_path: Path) -> None:
    measures = Measures.of(None, ["utilisation"])
    made = night(tmp_path, sheet(NAME, usual), sheet(NAME, usual), measures=measures)
    assert [[each.metric for each in cell.comparisons] for cell in made.cells] == [["utilisation"]] * 2


# Before anything is run.


def _suite(directory: Path, *lines: str, profile: str | None = None) -> Path:
    text = "suite: test\ncells:\n- profile: made.yaml\n" + "".join(f"  {line}\n" for line in lines)
    return write_suite(directory, text, profile) if profile else write_suite(directory, text)


@pytest.mark.parametrize(
    ("lines", "needed"),
    [
        (["repetitions: 3"], 5),  # 2 cells x 6: 12
        (["repetitions: 4"], 5),
        (["kernels: [debian-6.12, debian-6.1]", "repetitions: 5"], 6),  # 24
        (["metrics: [utilisation]", "repetitions: 3"], 4),  # 2
        (["primary: [exit_time_s, utilisation]", "repetitions: 3"], 4),  # 4
        (["repetitions: 5"], None),
        (["metrics: [utilisation]", "algorithms: [reno]", "repetitions: 3"], None),  # one comparison: 0.03
    ],
)
def test_a_suite_that_could_prove_nothing_is_refused(tmp_path: Path, lines: list[str], needed: int | None) -> None:
    file = _suite(tmp_path, *lines)
    suite = read_suite(file)
    if needed is None:
        check_provable(suite, chosen(suite, []))
        return
    with pytest.raises(ProfileError) as caught:
        check_provable(suite, chosen(suite, []))
    line = next(number for number, text in enumerate(file.read_text().splitlines(), 1) if "repetitions" in text)
    assert str(caught.value).startswith(f"{file}:{line}")
    assert f"Make it {needed} repetitions" in str(caught.value)
    assert caught.value.exit_code == 2
    text = "\n".join(lines)
    enough = read_suite(_suite(tmp_path, *text.replace("s: 3", f"s: {needed}").replace("s: 5", f"s: {needed}")
                               .replace("s: 4", f"s: {needed}").splitlines()))  # fmt: skip
    check_provable(enough, chosen(enough, []))


def test_a_part_of_a_suite_has_fewer_comparisons(tmp_path: Path) -> None:
    suite = read_suite(_suite(tmp_path, "kernels: [debian-6.12, debian-6.1]", "repetitions: 5"))
    with pytest.raises(ProfileError):
        check_provable(suite, chosen(suite, []))
    check_provable(suite, chosen(suite, ["test-made-debian-6.12"]))


def test_the_shipped_suites_can_prove_a_change() -> None:
    for file in sorted((PROFILES / "suites").glob("*.yaml")):
        suite = read_suite(file)
        check_provable(suite, chosen(suite, []))


def test_comparisons_are_counted_by_what_a_profile_has(tmp_path: Path) -> None:
    profile = """\
howdah: 1
name: made
path: {rate: 10 Mbit/s, rtt: 40 ms, buffer: 1 bdp}
algorithm: cubic
duration: 10 s
flows: [{size: 1 MB}, {start: 1 s}]
"""
    (one,) = read_suite(_suite(tmp_path, profile=profile)).series
    assert primary_comparisons(one) == 2 * 5 + 1 + 1, "five of each flow, the time of the one with a size, utilisation"
    (one,) = read_suite(_suite(tmp_path, "primary: [exit_round, utilisation]", profile=profile)).series
    assert primary_comparisons(one) == 2 + 1
    assert set(PRIMARY) >= {"exit_time_s", "exit_cwnd_packets", "exit_cause", "retransmitted_packets", "utilisation"}


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("primary: [utilization]", "did you mean utilisation"),
        ("primary: [exit_threshold]", "its unit is that of each exit's cause"),
        ("{metrics: [utilisation], primary: [exit_time_s]}", "not among the metrics"),
    ],
)
def test_primary_measures_are_ones_that_can_be_compared(tmp_path: Path, line: str, said: str) -> None:
    lines = line.strip("{}").replace("], ", "]\n").splitlines()
    with pytest.raises(ProfileError, match=said):
        read_suite(_suite(tmp_path, *lines))


def test_a_suite_names_primary_measures_for_all_its_cells_or_for_one(tmp_path: Path) -> None:
    text = """\
suite: test
primary: [utilisation]
allow_unproven: true
cells:
- {profile: made.yaml, name: first}
- {profile: made.yaml, name: second, primary: [exit_time_s]}
- {profile: made.yaml, name: third, metrics: [exit_time_s, jain_index]}
"""
    suite = read_suite(write_suite(tmp_path, text))
    assert suite.allow_unproven
    assert [sorted(one.measures.primary) for one in suite.series] == [
        ["utilisation"],
        ["exit_time_s"],
        ["exit_time_s", "jain_index"],
    ]


# The arithmetic.


def test_the_levels_of_both_families_add_up() -> None:
    assert pytest.approx(ALPHA) == PRIMARY_ALPHA + OTHER_ALPHA


def test_what_can_be_proven_is_what_the_correction_lets_through() -> None:
    for pairs in range(2, 12):
        for tests in (1, 2, 20, 21, 24, 98, 133, 5000):
            strongest = paired_p([5.0] * pairs, 1.0, 100.0)
            adjusted = min(holm([strongest, *[1.0] * (tests - 1)]))
            assert can_prove(tests, pairs, PRIMARY_ALPHA) is (adjusted < PRIMARY_ALPHA)
        room = comparisons_provable(pairs, PRIMARY_ALPHA)
        assert can_prove(room, pairs, PRIMARY_ALPHA) or room == 0
        assert not can_prove(room + 1, pairs, PRIMARY_ALPHA)
    assert [pairs_to_prove(tests, PRIMARY_ALPHA) for tests in (1, 2, 20, 21, 98)] == [3, 4, 5, 6, 7]
    assert least_p(3) > PRIMARY_ALPHA / 2


def test_the_repetitions_that_would_decide_are_the_least_that_do() -> None:
    assert pairs_to_decide(1.0, 0.0, 20, 0.04) == 5
    assert pairs_to_decide(1e-9, 5.0, 20, 0.04) is None
    needed = pairs_to_decide(1.0, 2.0, 100, 0.04)
    assert needed is not None
    for pairs, decides in ((needed - 1, False), (needed, True)):
        step = 2.0 * ((pairs - 1) / pairs) ** 0.5  # two values, whose sample deviation is 2
        values = [2.0 + step * (-1) ** index for index in range(pairs)]
        if pairs % 2 == 0:
            assert (100 * paired_p(values, 1.0, 100.0) < 0.04) is decides
    assert pairs_to_decide_share(1.0, 0.0, 20, 0.04) == 5
    assert pairs_to_decide_share(0.6, 0.5, 10_000, 0.04) is None
