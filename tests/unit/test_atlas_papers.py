# SPDX-License-Identifier: Apache-2.0
"""The papers of the atlas: how many runs each profile is, and what a paper prints is what a claim expects.

That every entry is there, with claims or a reason, is ``howdah.atlas.chapter.check``: test_atlas_catalogue.py calls it.
"""

from __future__ import annotations

from functools import cache

import pytest

from howdah.atlas.catalogue import read_catalogue
from howdah.place import PROFILES
from howdah.profile import load
from howdah.profile.claim import ClaimSection
from howdah.profile.experiment import names_of
from howdah.profile.profile import Profile
from tests.unit.recorded_lines import compare

NAMES = sorted(file.stem for file in (PROFILES / "atlas").glob("*.yaml"))


@cache
def profile(name: str, quick: bool = False) -> Profile:
    """A profile of the atlas by the stem of its file."""
    return load(PROFILES / "atlas" / f"{name}.yaml", quick=quick)


def named(*beginnings: str) -> list[str]:
    return [name for name in NAMES if name.startswith(beginnings)]


def claims_of(*names: str) -> dict[str, ClaimSection]:
    return {claim.id: claim for name in names for claim in profile(name).claims}


def test_profiles_make_the_runs_they_are_meant_to_and_the_quick_atlas_a_part_of_them() -> None:
    lines = []
    for name in NAMES:
        whole, part = ([cell.run for cell in profile(name, quick=quick).cells()] for quick in (False, True))
        assert set(part) <= set(whole), name
        repetitions = f"{profile(name).repetitions} repetitions, {profile(name, quick=True).repetitions} quick"
        lines.append(f"{name}: {len(whole)} runs, {len(part)} quick; {repetitions}")
    compare("atlas-runs.txt", lines)


def test_an_entry_names_the_profiles_that_speak_of_it() -> None:
    spoken: dict[str, set[str]] = {}
    for name in NAMES:
        for entry in names_of([*profile(name).claims, *profile(name).figures]):
            spoken.setdefault(entry, set()).add(name)
    entries = {entry.id: set(entry.section.profiles) for entry in read_catalogue().entries}
    assert {name: profiles for name, profiles in entries.items() if profiles} == spoken


def test_a_claim_without_a_measurement_says_why() -> None:
    reasons = [str(claim.unsupported) for claim in claims_of(*NAMES).values() if claim.unsupported]
    assert reasons
    assert all(len(reason) > 40 for reason in reasons)


# Entry, or profile and claim, to what is printed of it: all is expected, as it is or of a ratio or a difference.
PRINTED = {
    "Astart_tab1": ["95.6 %", "71.8 %", "23.2 %", "11.9 %", "7.2 %"],
    "Astart_tab2": ["77.1 %", "45.9 %", "23.2 %", "9.3 %", "4.7 %"],
    "Astart_tab3": ["0.384", "0.192", "0.096", "0.101"],
    "Astart_fig2": ["500 packets", "12.90 Mbit/s"],
    "Astart_fig3": ["13.9 s", "3.61 Mbit/s", "9 %"],
    "Astart_fig4": ["96 packets"],
    "Astart_fig12": ["2.80 Mbit/s", "9.33 Mbit/s"],
    "Astart_fairness": ["0.9949", "0.9944"],
    "Astart_fig14": ["1.6"],
    "Astart_fig15": ["11.16"],
    "Astart_fig17": ["['15 %', '25 %']", "3 s"],
    "HyStart_fig1": ["above 30 s", "at_least 10 %", "above 30 %"],  # 10 %: the share is printed twice and otherwise
    "HyStart_claims_intro": ["above 100 s", "above 40 %", "above 100000 packets"],
    "HyStart_fig3a": ["between ['10 %', '100 %']"],
    "HyStart_lss_example": ["equals 105 rounds", "equals 21 s", "equals 20 s"],
    "HyStart_inflight_claim": ["equals 15.6 %"],
    "HyStart_fig9": [
        *("equals 870 packets", "equals 248 Mbit/s", "equals 2300 packets", "equals 308 Mbit/s"),
        *("equals 2800 packets", "equals 1766 packets"),
    ],
    "hystart-fig11/standard-timeout": ["longest_blackout_s of first equals 20 s"],
    "hystart-fig11/standard-overshoot": ["peak_cwnd_packets of first at_most 22000"],
    "hystart-fig11/standard-losses-in-ten-seconds": ["exit_time_s of first at_most 10 s"],
    "hystart-fig11/standard-heavy-losses": ["exit_cause of first is_ loss"],
    "hystart-fig11/hystart-no-loss-first": ["startup_retransmitted_packets of first equals 0 packets"],
    "hystart-fig11/hystart-no-loss-second": ["startup_retransmitted_packets of second equals 0 packets"],
    "hystart-fig11/hystart-no-loss-at-all": ["retransmitted_packets of all equals 0 packets"],
    "hystart-fig11/hystart-second-by-delay": ["exit_cause of second is_ delay"],
    "hystart-fig11/hystart-first-before-full": ["exit_cwnd_bdp of first between ['0.5', '1']"],
    "SEARCH_params": ["0.35", "['0', '2']"],
    "SEARCH_memory": ["736 B", "2192 B", "12 B", "56 B"],
    "jump-start-intro/needed-window": ["at_least 99 %"],  # with 83 334 segments
    "jump-start-intro/slow-start-time": ["above 1.5 s"],
    "jump-start-intro/bytes-before-full": ["above 100 MB"],
    "jump-start-intro/round-trips": ["equals 1.635 s"],  # log2 83 333 round trips
    "jump-start-intro/twice-the-window": ["equals 241.3 MB"],  # 2 x 83 333 segments
    "jump-start-half-lost/fifty-in-four-to-five-round-trips": ["between ['352 ms', '416 ms']"],
    "jump-start-fig4/more-without-loss": ["word more"],
    "jump-start-half-lost/ahead-of-slow-start": ["word less"],
    "jump-start-algorithm/jump-is-all-the-data-queued": ["equals 200 packets"],
    "jump-start-timeout/one-segment": ["equals 1 packets"],
    **{f"jump-start-fig1/at-least-ten-percent-{size}": ["ratio at_most 0.9"] for size in (4, 8, 16, 32, 64)},
    **{f"jump-start-fig1/no-drops-{size}": ["at_most 0 packets"] for size in (1, 2, 4, 8, 16, 32, 64)},
    "jump-start-fig1/up-to-forty-percent": ["ratio below 0.6"],
    "jump-start-fig1/one-packet": ["ratio equals 1"],
    "jump-start-fig1/two-packets": ["word more"],
    "jump-start-fig1/next-power-of-two": ["word more"],
    "jump-start-fig2/similar-at-1s": ["word similar"],
    **{f"jump-start-fig2/slow-start-better-at-{each}ms": ["word more"] for each in (100, 200, 300)},
    "jump-start-fig2/seven-percent-at-1s": ["ratio between ['0.88', '0.96']"],
    "jump-start-fig2/four-times-the-losses-at-1s": ["ratio above 4"],
    **{f"jump-start-fig2/twice-the-losses-at-{each}ms": ["ratio between ['1.5', '3']"] for each in (100, 200, 300)},
    "jump-start-fig4/equal-from-one-second": ["word similar"],
    "jump-start-fig4/short-ones-in-half-the-time": ["ratio above 2"],
    "jump-start-fig4/twice-the-loss-rate": ["ratio equals 2"],
    "jump-start-fig4/ten-points-more-without-loss": ["difference between ['9 %', '11 %']"],
    "transoceanic-chicago-1g/half-of-reno": ["ratio equals 0.5", "ratio within 10 %"],
    "transoceanic-chicago-1g/quarter-of-limited": ["ratio between ['0.2', '0.3']"],
}


@cache
def expectations() -> dict[str, set[str]]:
    """Of every entry and every claim, each way to say it that ``PRINTED`` has."""
    found: dict[str, set[str]] = {}
    for name in NAMES:
        for claim in profile(name).claims:
            if claim.expect is None:
                continue
            said = found.setdefault(f"{name}/{claim.id}", set())
            sections = {"": claim.expect, "ratio ": claim.expect.ratio, "difference ": claim.expect.difference}
            said.add(f"word {claim.expect.word}")
            for words, section in sections.items():
                for form, value in section.model_dump(exclude_none=True).items() if section is not None else ():
                    said |= {str(value), f"{words}{form} {value}"}
                    if claim.value is not None:
                        said.add(f"{claim.value.metric} of {claim.value.flow} {words}{form} {value}")
            for entry in claim.entry:
                found.setdefault(entry, set()).update(said)
    return found


@pytest.mark.parametrize("where", PRINTED)
def test_what_is_printed_is_expected(where: str) -> None:
    assert set(PRINTED[where]) <= expectations()[where]


def test_table_3_of_adaptive_start_has_the_ratio_of_each_rate() -> None:
    found = {
        str(claim.value.at["path.rate"]): str(claim.expect.equals)
        for claim in profile("adaptive-start-rate").claims
        if "Astart_tab3" in claim.entry and claim.value and claim.expect and claim.expect.equals
    }
    rates = ("10 Mbit/s", "20 Mbit/s", "40 Mbit/s", "80 Mbit/s", "150 Mbit/s")
    assert found == dict(zip(rates, ("0.384", "0.192", "0.192", "0.096", "0.101"), strict=True))


@pytest.mark.parametrize("name", [name for name in named("adaptive-start") if name != "adaptive-start-machines"])
def test_a_packet_of_adaptive_start_has_1000_bytes_with_its_headers(name: str) -> None:
    """MTU and 14 bytes of Ethernet; 40 Mbit/s x 100 ms are then the paper's 500 packets."""
    assert profile(name).cells()[0].scenario.path.mtu + 14 == 1000


def test_the_rate_that_contradicts_the_table_is_judged_with_other_thresholds() -> None:
    [claim] = [claim for claim in claims_of(*named("adaptive-start")).values() if "12.90" in claim.says]
    assert claim.expect is not None and str(claim.expect.equals) == "12.90 Mbit/s"
    assert profile("adaptive-start-reno").unknown is not None


def test_causes_that_the_hystart_paper_names_are_claimed() -> None:
    causes = {
        (claim.value.flow, str(claim.value.at.get("algorithm")), claim.expect.is_)
        for claim in profile("hystart-fig9").claims
        if claim.value and claim.expect and claim.value.metric == "exit_cause"
    }
    assert {("first", "hystart", "ack-train"), ("second", "hystart", "delay"), ("first", "ss", "loss")} <= causes


def test_the_second_flow_of_figs_11_and_12_joins_at_130_s() -> None:
    cell = profile("hystart-fig11").cells()[0]
    assert [flow.start for flow in cell.scenario.flows] == [0, 130_000_000]


@pytest.mark.parametrize("name", ["hystart-fig14a", "hystart-fig14b", "hystart-fig14c"])
def test_hystart_is_said_to_be_three_times_each_other(name: str) -> None:
    claims = claims_of(*(each for each in (name, f"{name}-hosts") if each in NAMES))
    for other in {point.scenario.algorithm for point in profile(name).points} - {"hystart-paper"}:
        found = claims[f"three-times-{other}"]
        assert found.value is not None and found.than is not None
        assert (found.value.at["algorithm"], found.than.at) == ("hystart-paper", {"algorithm": other})
        assert found.expect is not None and found.expect.ratio is not None
        assert found.expect.ratio.above == "3"


@pytest.mark.parametrize("printed", [
    *("GEO paths varies with a period of 3.33", "LEO paths varies with a period of 3.33", "3.5 RTTs balance"),
    *("WiFi paths varies with a period of 3.75", "LTE paths varies with a period of 2.8"),
    *("121 bytes", "60 bytes (72 with", "HyStart's are 18", "100 (156 with"),
])  # fmt: skip
def test_what_search_prints_and_nothing_can_measure_is_told(printed: str) -> None:
    [claim] = [claim for claim in claims_of(*named("search")).values() if printed in claim.says]
    assert claim.unsupported


def test_the_satellite_is_the_slides() -> None:
    paths = {(cell.scenario.path.rate, cell.scenario.path.rtt) for cell in profile("search-geo").cells()}
    assert paths == {(144_000_000, 600_000)}


def test_no_drop_up_to_64_packets() -> None:
    for size in (1, 2, 4, 8, 16, 32, 64):
        claim = claims_of("jump-start-fig1")[f"no-drops-{size}"]
        assert claim.value is not None
        assert claim.value.at == {"groups.1.size": f"{size * 1448} B"}


NARROWEST = {"100m": 100_000_000, "1g": 1_000_000_000, "10g": 10_000_000_000}
GBYTE, SMALL = 2**30, 2**25  # the small object is that of the check by real programs


@pytest.mark.parametrize("name", named("transoceanic"))
def test_the_narrowest_link_the_round_trip_and_the_transaction_are_those_of_the_slides(name: str) -> None:
    """The path is not slower than the interface, an expansion, or it is, a reduction; some profiles have both."""
    rate = next((NARROWEST[part] for part in name.split("-") if part in NARROWEST), NARROWEST["1g"])
    rtt_us = 220_000 if "carolina" in name or "sessions" in name else 180_000
    kinds = set()
    for cell in profile(name).cells():
        path = cell.scenario.path
        assert isinstance(path.sender_interface, int)
        kinds.add("expansion" if path.rate >= path.sender_interface else "reduction")
        assert min(path.rate, path.sender_interface) == rate
        assert path.forward_delay_us + path.reverse_delay_us == rtt_us
        for group in cell.scenario.groups:
            if group.http is not None:
                assert (group.http.object, group.http.requests) == (SMALL, 1)
            else:
                assert (group.size, group.request) == (SMALL if group.name == "model" else GBYTE, 300)
    if name.endswith("-reduction"):
        assert kinds == {"reduction"}
    elif name.endswith(("-10g", "-http", "-sessions")) or "carolina" in name:
        assert kinds == {"expansion"}
    else:
        assert kinds == {"expansion", "reduction"}


@pytest.mark.parametrize(("claim", "other"), [("half-of-reno", "standard"), ("quarter-of-limited", "limited")])
def test_the_printed_ratios_are_to_these(claim: str, other: str) -> None:
    found = claims_of("transoceanic-chicago-1g")[claim]
    assert found.value is not None and found.than is not None
    assert (found.value.at["algorithm"], found.than.at) == ("qs-app", {"algorithm": other})


def test_the_ramp_up_has_the_round_trips_and_the_buffer_of_the_draft() -> None:
    """Table 8: (80, 80), (120, 30) and (30, 120) ms; 80 ms of packets of 1500 bytes at 10 Mbit/s are 66."""
    cells = profile("tcpeval-ramp-up").cells()
    pairs = {tuple((flow.rtt or 0) // 1000 for flow in cell.scenario.flows) for cell in cells}
    assert pairs == {(80, 80), (120, 30), (30, 120)}
    assert {cell.scenario.path.buffer.amount for cell in cells} == {int(10e6 * 0.08 / 8 / 1500)}
    assert {cell.scenario.flows[1].size for cell in cells} == {1500 * 10**2, 1500 * 10**3}
    for cell in cells:
        (cross,) = cell.scenario.groups
        assert cross.mix is not None
        assert cross.mix.rate * 2 == cell.scenario.path.rate


def test_the_camps_have_the_same_flows_and_half_of_the_rate() -> None:
    for cell in profile("tcpeval-impact").cells():
        groups = cell.scenario.groups
        camps = [
            [(each.size, each.interval, each.connections) for each in groups if each.name[0] == camp] for camp in "ab"
        ]
        assert camps[0] == camps[1]
        assert len(camps[0]) == 4
        bits_per_second = sum((each.size or 0) * 8e6 / (each.interval or 1) for each in groups)
        assert 0.45 < bits_per_second / cell.scenario.path.rate < 0.5  # and their headers
        assert {each.algorithm for each in groups if each.name[0] == "a"} == {"reno"}


def test_four_stacks_send_over_every_buffer() -> None:
    buffers: dict[str, set[str]] = {}
    for cell in profile("rfc9406-four-stacks").cells():
        traffic = cell.scenario.traffic
        stack = (cell.scenario.sender.stack or "linux") if traffic.quic == "off" else traffic.quic
        buffers.setdefault(f"{stack} {cell.scenario.algorithm}", set()).add(str(cell.scenario.path.buffer))
    senders = {"linux cubic", "linux hystart-plus-plus-cubic", "linux standard-cubic", "gvisor cubic"}
    assert set(buffers) == {*senders, "ngtcp2 cubic", "aioquic cubic"}
    assert {len(found) for found in buffers.values()} == {5}


# AdvNet's published paths in the atlas: 24 of each control, as its artefact has them

ADVNET = ("advnet-bbr", "advnet-vegas")


@pytest.mark.parametrize("name", ADVNET)
def test_each_path_is_one_of_the_search(name: str) -> None:
    """Its units: 500 kbit/s, 1 ms one way, 50 ms and 100 packets, from 1 to 20, 30, 40 (from 10 on) and 100."""
    cells = profile(name).cells()
    assert len(cells) == len({cell.axes["case"] for cell in cells}) == 24
    for cell in cells:
        path = cell.scenario.path
        (step,) = path.schedule
        assert step.rate is not None
        assert step.rtt is not None
        assert path.rtt is not None
        for rate in (path.rate, step.rate):
            assert rate % 500_000 == 0
            assert 1 <= rate // 500_000 <= 20
        for rtt in (path.rtt, step.rtt):
            assert rtt % 2000 == 0
            assert 1 <= rtt // 2000 <= 30
        for time in (step.at, cell.scenario.duration - step.at):
            assert time % 50_000 == 0
            assert 10 <= time // 50_000 <= 40
        assert path.buffer.unit == "packets"
        assert path.buffer.amount % 100 == 0
        assert 1 <= path.buffer.amount // 100 <= 100


@pytest.mark.parametrize("name", ADVNET)
def test_scores_are_in_their_order_and_only_the_slowest_paths_are_left_out(name: str) -> None:
    """Paths are in the order of the published scores. A claim names all of them, or all without 500 kbit/s."""
    cases = {cell.axes["case"]: cell.scenario.path for cell in profile(name).cells()}
    slow = {case for case, path in cases.items() if 500_000 in (path.rate, path.schedule[0].rate)}
    compared = {}
    for claim in profile(name).claims:
        assert claim.expect is not None
        if claim.expect.rank_correlation is None:
            continue
        assert claim.expect.rank_correlation.at_most == "-0.9"
        scores = claim.expect.with_ or {}
        assert list(scores) == [case for case in cases if case in scores]
        assert list(scores.values()) == sorted(scores.values())
        assert all(0 < score < 0.9 for score in scores.values())
        compared[claim.id] = set(cases) - set(scores)
    if name == "advnet-bbr":
        assert compared == {"ranks-of-the-scores": set()}
    else:
        assert compared == {"ranks-of-the-scores": slow, "ranks-with-the-slowest-paths": set()}
        assert len(slow) == 6


@pytest.mark.parametrize("name", ADVNET)
def test_the_ends_of_the_order_are_expected_to_use_what_was_not_lost(name: str) -> None:
    expected = {
        str(claim.value.at["case"]): str(claim.expect.equals)
        for claim in profile(name).claims
        if claim.value is not None and claim.expect is not None and claim.expect.equals
    }
    [scores] = [
        claim.expect.with_
        for claim in profile(name).claims
        if claim.expect is not None and len(claim.expect.with_ or {}) == 24
    ]
    assert scores is not None
    ends = list(scores.items())[:: len(scores) - 1]
    assert expected == {case: f"{100 * (1 - score):.2f} %" for case, score in ends}
