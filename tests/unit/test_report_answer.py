# SPDX-License-Identifier: Apache-2.0
"""The sentences answer the profile: facts of what is said of tables made by hand, never its wording."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from howdah.record.result import load_experiment
from howdah.report.ending import results
from howdah.report.found import found
from howdah.report.source import TableSource
from tests.experiment_factory import Scenario, make_experiment
from tests.report_table import Made, Told, table_of

CABLE, LTE = {"path.like": "paths/cable"}, {"path.like": "paths/lte"}
DONE, P95, SHARE = "completion_time_median_s", "completion_time_p95_s", "completed_share"
EXIT, CAUSE, LOST = "exit_cwnd_bdp", "exit_cause", "retransmitted_packets"
STAYED = "!the flow did not leave slow start"
NO_EXIT: dict[str, Told] = {EXIT: STAYED, "exit_cwnd_packets": STAYED, CAUSE: STAYED}
BULK_AT_90: dict[str, Told] = {**NO_EXIT, LOST: 0, "time_to_90_percent_s": 0.08}


def said(*made: Made) -> list[str]:
    return found(table_of(*made))


def group(algorithm: str, done: Told, at: Mapping[str, Any] | None = None, **more: Any) -> Made:
    says = {DONE: done, "connections": 10, **more.pop("says", {})}
    return Made(algorithm, says, at or {}, group="web", repetitions=2 if isinstance(done, list) else 1, **more)


def numbers(text: str) -> list[float]:
    return [float(each.replace("\u2009", "")) for each in re.findall(r"\d[\d.\u2009]*\d|\d", text)]


def about(sentences: list[str], *words: str) -> str:
    """The one sentence that has all of these words."""
    (only,) = [each for each in sentences if all(word in each for word in words)]
    return only


def test_groups_are_answered_by_their_completion_before_anything_else() -> None:
    first = said(group("cubic", 0.2), group("bbr", 0.4, says={LOST: 3, "retransmission_ratio": 0.1}))[0]
    assert {0.2, 0.4, 10.0} <= set(numbers(first))
    assert "exit" not in first
    assert "start" not in first


def test_a_ratio_is_paired_by_repetition() -> None:
    """1.5 / 1 and 2.2 / 2: the median of the pairs is 1.3, the ratio of the medians would be 1.23."""
    sentence = about(said(group("cubic", [1.0, 2.0]), group("bbr", [1.5, 2.2])), "bbr", "as long as cubic")
    assert numbers(sentence) == [1.3, 1.1, 1.5]


def test_repetitions_without_a_partner_are_in_no_ratio() -> None:
    """The second repetition of one side does not count: its 9 s meet nothing."""
    cubic = group("cubic", ["!cut short", 2.0])
    sentence = about(said(cubic, group("bbr", [9.0, 3.0])), "as long as cubic")
    assert numbers(sentence) == [1.5]


def test_one_path_is_never_set_beside_another() -> None:
    """On each path both take the same time: that is the answer, and 0.06 s beside 0.14 s is none."""
    made = [group(name, done, at) for at, done in ((CABLE, 0.06), (LTE, 0.14)) for name in ("cubic", "bbr")]
    sentences = said(*made)
    for sentence in sentences:
        assert not {0.06, 0.14} <= set(numbers(sentence))
    assert not numbers(about(sentences, "bbr", "as long as cubic", "each"))[1:], "the number of points alone"


def test_over_many_points_the_ends_and_the_median_are_named_with_their_places() -> None:
    ratios = {"20 ms": 1.1, "40 ms": 3.0, "80 ms": 1.2}
    made = []
    for rtt, factor in ratios.items():
        made += [group("cubic", 0.5, {"path.rtt": rtt}), group("bbr", 0.5 * factor, {"path.rtt": rtt})]
    sentence = about(said(*made), "bbr", "cubic", "median")
    assert 1.2 in numbers(sentence.partition("median")[0])
    least, most = sentence.partition("from")[2].split(" to ")
    assert "20 ms" in least
    assert {1.1, 0.55, 0.5} <= set(numbers(least))
    assert "40 ms" in most
    assert {3.0, 1.5, 0.5} <= set(numbers(most))


def test_of_many_sides_over_points_those_that_differ_most_are_told() -> None:
    factors = {"cubic": 1.0, "reno": 1.1, "bbr": 2.0, "search": 0.5, "limited": 1.2}
    made = [group(name, factor, at) for at in (CABLE, LTE) for name, factor in factors.items()]
    text = " ".join(said(*made))
    assert "bbr takes 2 times" in text
    assert "search takes 0.5 times" in text
    assert "reno takes" not in text


def test_one_algorithm_over_a_sysctl_is_compared_by_it_within_each_path() -> None:
    """The swept field that is no place is what is compared."""
    name = "host.sysctls.net.ipv4.tcp_slow_start_after_idle"
    made = [group("cubic", 0.4 / (1 + value), {name: value, **at}) for at in (CABLE, LTE) for value in (0, 1)]
    sentence = about(said(*made), "times as long as", "With tcp_slow_start_after_idle=1 ")
    assert "host." not in sentence
    assert numbers(sentence.partition("times")[0])[-1] == 0.5


def test_one_algorithm_over_paths_is_told_by_where_it_is_fastest_and_slowest() -> None:
    first = said(group("cubic", 0.06, CABLE), group("cubic", 0.14, LTE))[0]
    assert re.search(r"0\.06 s \(path cable\).*0\.14 s \(path lte\)", first)


def test_many_connections_have_their_tail_and_those_that_never_end_are_counted() -> None:
    text = " ".join(said(group("cubic", 0.2, says={P95: 1.7, SHARE: 0.8})))
    assert "95 %" in text
    assert 1.7 in numbers(text)
    assert "80 %" in text


def test_a_group_that_never_ends_says_so() -> None:
    sentences = said(Made("cubic", {DONE: "!no connection of the group was completed"}, group="web"))
    assert "cubic" in sentences[0]
    assert "none" in sentences[0]


def test_think_time_is_no_completion_time() -> None:
    first = said(group("cubic", 10.7, says={"completion_without_think_median_s": 1.7, P95: 12.3}))[0]
    assert 12.3 not in numbers(first), "the tail has the think time in it"
    assert 1.7 in numbers(first)
    assert 10.7 not in numbers(first)


def test_sized_flows_are_transfers_and_their_exits_follow() -> None:
    sized = {"size_bytes": 4_000_000}
    says: dict[str, Told] = {
        "completion_time_s": 1.03,
        EXIT: 1.2,
        "exit_cwnd_packets": 1000,
        CAUSE: "ack-train",
        LOST: 0,
    }
    first, *rest = said(Made("cubic", says, flow=sized))
    assert {4.0, 1.03} <= set(numbers(first))
    assert 1.2 in numbers(about(rest, "ACK train"))
    without = said(Made("cubic", {"completion_time_s": 1.03, LOST: 0, **NO_EXIT}, flow=sized))
    assert not any("slow start" in each for each in without), "an exit that is not there answers nothing"


def test_bulk_flows_over_paths_are_compared_within_each() -> None:
    def flow(name: str, window: float, lost: int, at: Mapping[str, Any]) -> Made:
        return Made(name, {EXIT: window, "exit_cwnd_packets": 100 * window, CAUSE: "loss", LOST: lost}, at)

    made = [flow("cubic", 1.0, 10, CABLE), flow("reno", 2.0, 40, CABLE)]
    made += [flow("cubic", 0.5, 100, LTE), flow("reno", 2.0, 150, LTE)]
    sentence = about(said(*made), "reno", "window of cubic")
    assert {2.0, 4.0, 3.0} <= set(numbers(sentence.partition("as many")[0])), "ends and median of the windows"
    assert {1.5, 4.0, 2.75} <= set(numbers(sentence.rpartition("; ")[2])), "and of the retransmissions"


def test_nothing_is_a_ratio_to_nothing() -> None:
    made = [Made(name, {EXIT: 1.0, CAUSE: "loss", LOST: lost}) for name, lost in (("cubic", 0), ("reno", 12))]
    text = " ".join(said(*made))
    assert "0 times" not in text
    assert "∞" not in text


@pytest.mark.parametrize("at", [[{}], [CABLE, LTE]], ids=["one place", "two"])
@pytest.mark.parametrize("sized", [{}, {"size_bytes": 4_000_000}], ids=["flow", "transfer"])
def test_sides_that_lost_nothing_are_not_compared_by_it(sized: dict[str, Any], at: list[dict[str, Any]]) -> None:
    def told(*lost: Told) -> str:
        done: dict[str, Told] = {"completion_time_s": 1.0} if sized else {}
        sides = list(zip(("cubic", "reno"), lost, strict=True))
        return " ".join(
            said(
                *(
                    Made(name, {EXIT: 1.0, CAUSE: "loss", LOST: each, **done}, place, flow=sized, repetitions=3)
                    for place in at
                    for name, each in sides
                )
            )
        )

    nothing = told(0, 0)
    assert "as many" not in nothing
    assert "as much" not in nothing
    assert "No segment was retransmitted." in nothing or "retransmitted nothing" in nothing
    assert nothing.count("No segment") <= 1
    once = told([0, 0, 12], [0, 0, 12])
    assert "No segment" not in once, "one of three repetitions lost some"
    assert "nothing" not in once
    assert "as many packets as cubic" in told(12, 12)


def test_a_transfer_without_loss_does_not_deny_that_of_a_flow_beside_it() -> None:
    lossless: dict[str, Told] = {"completion_time_s": 1.0, LOST: 0}
    bulk = Made("cubic", {EXIT: 1.0, CAUSE: "loss", LOST: 12}, name="bulk")
    transfer = Made("cubic", lossless, name="short", flow={"size_bytes": 4_000_000})
    assert not any("No segment" in each for each in said(transfer, bulk))
    assert any("No segment" in each for each in said(transfer))


@pytest.mark.parametrize(
    ("told", "silent"), [({"detector_exits": 0}, False), ({"detector_exits": 2}, True), ({}, True)]
)
def test_a_detector_that_never_acted_is_named(told: dict[str, Told], silent: bool) -> None:
    """By the kernel's counters alone where groups have no exits; without any evidence nothing is said."""
    sentences = said(group("cubic", 0.2, run=told), group("cubic-no-hystart", 0.3))
    assert any("HyStart" in each for each in sentences) is not silent


def test_a_detector_is_judged_by_causes_and_at_each_point() -> None:
    def flow(name: str, cause: str, at: Mapping[str, Any]) -> Made:
        return Made(name, {EXIT: 1.0, "exit_cwnd_packets": 100, CAUSE: cause, LOST: 1}, at)

    made = [flow("cubic", "ack-train", CABLE), flow("reno", "loss", CABLE), flow("reno", "loss", LTE)]
    acted = said(*made, flow("cubic", "delay", LTE))
    assert not any("HyStart" in each for each in acted)
    sentence = about(said(*made, flow("cubic", "loss", LTE)), "HyStart")
    assert "lte" in sentence
    assert "cable" not in sentence


def test_a_detector_that_all_sides_have_is_not_what_is_tested() -> None:
    sentences = said(group("cubic", 0.2, run={"detector_exits": 0}), group("hystart-linux-cubic", 0.3))
    assert not any("HyStart" in each for each in sentences)


def test_a_field_without_effect_is_told() -> None:
    def made(*times: float) -> list[Made]:
        field = "groups.1.initial_window"
        return [group("jump-start", time, {field: value}) for time, value in zip(times, (4, 10, 32), strict=True)]

    assert {4.0, 10.0, 32.0} <= set(numbers(about(said(*made(0.2, 0.2, 0.2)), "difference")))
    assert not any("difference" in each for each in said(*made(0.2, 0.2, 0.19)))


def test_variants_that_give_the_same_are_told() -> None:
    sentences = said(group("cubic", 0.2), group("cubic-no-hystart", 0.2))
    assert about(sentences, "cubic and cubic-no-hystart", "same")
    assert not any("same numbers" in each for each in said(group("cubic", 0.2), group("cubic-no-hystart", 0.201)))


@pytest.mark.parametrize(
    ("algorithm", "more", "stayed"),
    [
        ("cubic", {}, True),
        ("cubic", {"startup_left": 0.0}, True),
        ("cubic", {"startup_left": "!end of start-up unknown: ssthresh stayed infinite"}, False),
        ("cubic", {"startup_left": 0.0, "growth_end_bdp": 1.5}, True),
        ("mine", {"startup_left": "!end of start-up unknown: ssthresh stayed infinite", "growth_end_bdp": 1.5}, False),
        ("mine", {}, False),  # nobody knows whether it ever sets ssthresh
        ("mine", {"startup_left": 0.0}, True),
        ("bbr", {}, False),
        ("bbr", {"startup_left": 0.0, "startup_gain": 2.89}, True),
        ("mybbr", {"startup_left": 0.0, "startup_gain": 2.89}, True),
    ],
)
def test_a_flow_stayed_in_its_start_up_only_if_the_data_say_it(
    algorithm: str, more: dict[str, Told], stayed: bool
) -> None:
    (text,) = said(Made(algorithm, {**NO_EXIT, LOST: 0, **more}))
    assert ("did not leave" in text) is stayed
    assert ("ssthresh stayed infinite" in text) is not stayed
    assert ("slow start" in text) is (stayed and "bbr" not in algorithm)
    assert (1.5 in numbers(text)) is ("growth_end_bdp" in more and not stayed)


def test_a_sender_whose_window_nobody_sees_is_told_by_its_growth() -> None:
    (text,) = said(Made("cubic", {**NO_EXIT, LOST: 0, "growth_end_bdp": 1.5}))
    assert 1.5 in numbers(text)
    assert "did not leave" not in text


def test_what_held_a_flow_back_is_told_with_its_numbers() -> None:
    held: dict[str, Told] = {"held_back_by": "receive-buffer", "held_back_share": 0.94, "held_window_bytes": 65536}
    (text,) = said(Made("cubic", {**NO_EXIT, LOST: 0, **held}))
    assert "receive window" in text
    assert {64.0, 94.0} <= set(numbers(text))
    (ordinary,) = said(
        Made("cubic", {EXIT: 1.0, CAUSE: "loss", LOST: 1, "held_back_by": "bandwidth", "held_back_share": 0.9})
    )
    assert "rate" not in ordinary, "every flow that left meets the path's rate"
    (limited,) = said(
        Made("cubic", {**NO_EXIT, "exit_cwnd_packets": f"{STAYED}; it was held back by the receive window"})
    )
    assert "receive window" in limited


@pytest.mark.parametrize("many", [1, 2])
def test_what_held_a_flow_back_ends_the_clause_so_that_the_flow_did_all_before_it(many: int) -> None:
    held: dict[str, Told] = {"held_back_by": "receive-buffer", "held_back_share": 0.94, "held_window_bytes": 65536}
    first = said(*[Made(name, {**NO_EXIT, LOST: 0, **held}) for name in ("cubic", "reno")[:many]])[0]
    for clause in first.split("; "):
        assert clause.index("retransmitted") < clause.index("receive window")


@pytest.mark.parametrize(("goodput", "praised"), [(18e6, True), (2e6, False)])
def test_ninety_per_cent_is_said_of_flows_that_have_it(goodput: float, praised: bool) -> None:
    """A path of 20 Mbit/s: one round trip at 90 % of it is no praise for a flow that has a tenth."""
    (text,) = said(Made("cubic", {**BULK_AT_90, "goodput_bits_per_second": goodput}))
    assert ("90 %" in text) is praised


def test_repetitions_without_an_exit_are_counted_beside_the_cause() -> None:
    causes = ["loss", "loss", STAYED]
    (text, *_) = said(Made("cubic", {EXIT: [1.0, 1.0, STAYED], CAUSE: causes, LOST: 3}, repetitions=3))
    assert re.search(r"loss ×2\b.*×1", text)


def test_a_long_queue_stands_beside_the_praise() -> None:
    """15 MB at 20 Mbit/s are 6 s of queue, 60 round trips."""
    (text,) = said(Made("cubic", {**BULK_AT_90, "goodput_bits_per_second": 18e6}, run={"queue_peak_bytes": 15e6}))
    assert "6 s" in text


def test_where_the_path_changes_the_bdp_is_that_of_the_moment() -> None:
    says: dict[str, Told] = {EXIT: 0.88, "exit_cwnd_moment_bdp": 1.62, CAUSE: "loss", LOST: 3}
    (text,) = said(Made("cubic", says, path={"rate_steps": [[0, 10_000_000]]}))
    assert 1.62 in numbers(text)
    assert 0.88 not in numbers(text)
    assert "moment" in text


def test_an_exit_that_a_loss_ended_while_it_drained_is_that_of_the_decision() -> None:
    says: dict[str, Told] = {
        EXIT: 5.6,
        CAUSE: "delivery-rate",
        "drain_end_cause": "loss",
        "drain_end_cwnd_packets": 151,
    }
    (text,) = said(Made("search", {**says, LOST: 3}))
    assert re.search(r"5\.6 BDP by delivery rate.*loss at 151", text)


def test_background_flows_speak_for_nobody() -> None:
    background = Made("cubic", {LOST: "!not counted"}, name="background1", flow={"role": "background"})
    assert "background1" not in " ".join(said(background, group("cubic", 0.2)))


CLAIMS = """howdah: 1
claims:
  - {id: fast, says: it is fast, value: {metric: utilisation}, expect: {at_least: 50 %}}
  - {id: fair, says: it is sized, value: {metric: completion_time_s}, expect: {at_most: 5 s}}
"""


def test_a_claim_of_what_no_run_has_is_told(tmp_path: Path) -> None:
    path = make_experiment(tmp_path, Scenario(algorithms=("cubic",), repetitions=1, flows=1, duration_s=2.0))
    (path / "profile.yaml").write_text(CLAIMS, encoding="utf-8")
    sentences = found(results([load_experiment(path)], TableSource()))
    assert "fair" in about(sentences, "completion_time_s")
    assert not any("fast" in each for each in sentences)
