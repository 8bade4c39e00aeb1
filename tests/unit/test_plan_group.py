# SPDX-License-Identifier: Apache-2.0
"""Groups of connections become flows: how many, when, between whom; web sessions and mixes against their models."""

from __future__ import annotations

import itertools
from pathlib import Path
from random import Random
from statistics import fmean, median
from typing import Any

import pytest

from howdah.errors import ProfileError
from howdah.plan.memory import sizes
from howdah.plan.mix import mean_bytes, mix_connections, size_bytes, web_connections
from howdah.plan.plan import Flow, Plan
from howdah.profile import load
from howdah.profile.group import MixSection, WebSection
from howdah.profile.model import FlowSection, Scenario
from howdah.work.compiled import compile_plans
from tests.unit.profile_factory import make_one, make_plans, write_profile

MANY = "groups:\n- {name: many, connections: 50, spread: 2 s, lifetime: 1 s, pairs: 5}\n"
SHORT = "groups:\n- {name: short, connections: 8, interval: 100 ms, start: 200 ms, size: 30 kB}\n"


def _times(plan: Plan) -> list[tuple[int, int]]:
    return [(flow.start_us, flow.stop_us) for flow in plan.flows]


def test_starts_at_an_interval(tmp_path: Path) -> None:
    plan = make_one(tmp_path, SHORT)
    assert [flow.start_us for flow in plan.flows] == [200_000 + 100_000 * number for number in range(8)]
    assert {flow.size_bytes for flow in plan.flows} == {30_000}
    assert {flow.group for flow in plan.flows} == {"short"}
    assert [flow.name for flow in plan.flows[:2]] == ["short-1", "short-2"]
    assert {flow.role for flow in plan.flows} == {"measured"}
    assert Plan.from_json(plan.to_json()) == plan


def test_every_connection_has_ports_of_its_own(tmp_path: Path) -> None:
    plan = make_one(tmp_path, "groups:\n- {name: a, connections: 400, size: 1 kB, pairs: 3}\n")
    assert len({flow.source_port for flow in plan.flows}) == len({flow.destination_port for flow in plan.flows}) == 400
    assert [flow.sender for flow in plan.flows[:4]] == ["s1", "s2", "s3", "s1"]
    assert len(plan.hosts) == 8


def test_uniform_starts_keep_their_lifetime(tmp_path: Path) -> None:
    plan = make_one(tmp_path, MANY)
    starts = [start for start, _ in _times(plan)]
    assert starts == sorted(starts)
    assert 0 <= starts[0] < starts[-1] < 2_000_000
    assert 700_000 < sum(starts) / 50 < 1_300_000  # five deviations of the mean
    assert {stop - start for start, stop in _times(plan)} == {1_000_000}


@pytest.mark.parametrize(("arrivals", "beyond_three_means"), [("poisson", 0.0498), ("pareto", 0.0370)])
def test_arrivals_are_drawn_with_the_interval_as_their_mean(
    tmp_path: Path, arrivals: str, beyond_three_means: float
) -> None:
    """F(x) = 1 - exp(-x), and Pareto's 1 - (1 / 3x)^1.5: how many of the gaps are longer than three means."""
    group = (
        f"groups:\n- {{name: a, connections: 4000, arrivals: {arrivals}, interval: 500 us, start: 1 s, size: 9 B}}\n"
    )
    starts = [flow.start_us for flow in make_one(tmp_path, group).flows]
    gaps = [later - earlier for earlier, later in itertools.pairwise([1_000_000, *starts])]
    assert starts == sorted(starts)
    share = sum(gap > 1500 for gap in gaps) / len(gaps)
    assert share == pytest.approx(beyond_three_means, abs=4 * (0.05 * 0.95 / len(gaps)) ** 0.5)
    if arrivals == "poisson":
        assert sum(gaps) / len(gaps) == pytest.approx(500, rel=4 / len(gaps) ** 0.5)
    else:
        assert min(gaps) >= 166


def test_the_seed_and_the_repetition_decide_and_nothing_else(tmp_path: Path) -> None:
    extra = f"algorithm: [cubic, reno]\nrepetitions: 2\nperturbation: {{start: 0}}\n{MANY}"
    plans = {plan.run: _times(plan) for plan in make_plans(tmp_path, extra)}
    assert plans["cubic-r0"] == plans["reno-r0"]
    assert plans["cubic-r1"] == plans["reno-r1"]
    assert plans["cubic-r0"] != plans["cubic-r1"]
    again = make_plans(tmp_path, extra, ["seed=2"])
    assert _times(again[0]) != plans["cubic-r0"]


def test_a_perturbed_start_moves_the_end_with_it(tmp_path: Path) -> None:
    plans = make_plans(tmp_path, f"repetitions: 2\nperturbation: {{start: 5 ms, rtt: 0}}\n{MANY}")
    assert all(stop - start == 1_000_000 for plan in plans for start, stop in _times(plan))


def test_groups_stand_beside_flows_and_background(tmp_path: Path) -> None:
    plan = make_one(
        tmp_path,
        "flows:\n- {name: bulk}\nbackground:\n- {name: other, direction: reverse}\n"
        "groups:\n- {name: back, role: background, direction: reverse, connections: 3, size: 9 kB, rtt: 90 ms}\n"
        "- {name: more, connections: 2, size: 9 kB}\n",
        ["path.reverse_rate=20 Mbit/s"],
    )
    described = [(flow.name, flow.role, flow.direction, flow.sender, flow.receiver) for flow in plan.flows]
    assert described == [
        ("bulk", "measured", "forward", "s1", "r1"),
        ("more-1", "measured", "forward", "s4", "r4"),
        ("more-2", "measured", "forward", "s4", "r4"),
        ("other", "background", "reverse", "r2", "s2"),
        ("back-1", "background", "reverse", "r3", "s3"),
        ("back-2", "background", "reverse", "r3", "s3"),
        ("back-3", "background", "reverse", "r3", "s3"),
    ]
    assert {flow.rtt_us for flow in plan.flows if flow.group == "back"} == {90_000}


def test_without_groups_nothing_changes(tmp_path: Path) -> None:
    (flow,) = make_one(tmp_path).flows
    assert (flow.name, flow.group, flow.request_bytes) == ("flow1", None, None)


def test_a_request_is_sent_by_the_receiver(tmp_path: Path) -> None:
    (flow,) = make_one(tmp_path, "groups:\n- {name: a, connections: 1, request: 300 B, size: 1 MB}\n").flows
    assert (flow.request_bytes, flow.opener, flow.size_bytes) == (300, "receiver", 1_000_000)


def test_each_request_of_a_connection_has_the_size_that_was_drawn_for_it(tmp_path: Path) -> None:
    sizes = "sizes: {listed: [{size: 4 kB}, {size: 90 kB}]}"
    more = "connections: 20, interval: 50 ms, request: 300 B, requests: 3, think: 50 ms"
    flows = make_one(tmp_path, f"groups:\n- {{name: a, {more}, {sizes}}}\n").flows
    answers = [flow.exchange.object_bytes for flow in flows if flow.exchange is not None]
    assert set(answers) == {4000, 90_000}
    assert [flow.size_bytes for flow in flows] == [3 * answer for answer in answers]
    with pytest.raises(ProfileError, match="several requests need request, and the size of their answers: size or siz"):
        make_one(tmp_path, f"groups:\n- {{name: a, {more}}}\n")


def test_who_requests_something_connects(tmp_path: Path) -> None:
    with pytest.raises(ProfileError, match="the end that sends requests connects: leave opener out"):
        make_one(tmp_path, "groups:\n- {name: a, connections: 1, request: 300 B, size: 1 MB, opener: sender}\n")


def test_an_algorithm_of_a_group_is_known(tmp_path: Path) -> None:
    plan = make_one(tmp_path, "groups:\n- {name: a, connections: 1, algorithm: bbr}\n")
    assert [flow.kernel_algorithm for flow in plan.flows] == ["bbr"]


def test_real_time_takes_processes(tmp_path: Path) -> None:
    (flow,) = make_one(tmp_path, "groups:\n- {name: a, connections: 1, size: 1 MB}\n", engine="host").flows
    assert (flow.traffic, flow.sink) == ("python", "python")


def test_memory_is_for_those_that_are_there_together(tmp_path: Path) -> None:
    def pages(flows: list[Flow]) -> int:
        return sizes(plan.path, flows, plan.duration_us).tcp_mem_pages[0]

    extra = "groups:\n- {name: a, connections: 40, interval: 20 s, lifetime: 5 s}\n"
    plan = make_one(tmp_path, extra, ["duration=1000 s"])
    assert pages(plan.flows) == pages(plan.flows[:1])
    extra = "groups:\n- {name: a, connections: 40, interval: 1 s, lifetime: 5 s}\n"
    plan = make_one(tmp_path, extra, ["duration=1000 s"])
    assert pages(plan.flows) > 10 * pages(plan.flows[:1]) - 10 * 16384


@pytest.mark.parametrize(
    ("group", "line", "what"),
    [
        ("{name: a}", 8, "expected one of connections (how many there are), web and mix"),
        ("{name: a, connections: 0}", 8, "groups.1.connections"),
        ("{name: '12', connections: 1}", 8, "a group's name needs a letter"),
        ("{name: a, connections: 2, interval: 1 s, spread: 1 s}", 8, "interval and spread are both given"),
        ("{name: a, connections: 2, size: 1 MB, lifetime: 1 s}", 8, "size and lifetime are both given"),
        ("{name: a, connections: 2, direction: reverse}", 8, "only background can go in the reverse direction"),
        ("{name: a, connections: 2, start: 4 s}", 8, "the group starts at or after the end of the run"),
        ("{name: a, connections: 6, interval: 1 s}", 8, "its last connection starts after the end of the run"),
        ("{name: a, connections: 6, arrivals: poisson}", 8, "poisson arrivals need interval"),
        ("{name: a, connections: 6, arrivals: poison, interval: 1 s}", 8, "expected regular, poisson or pareto"),
        ("{name: a, connections: 6, spread: 9 s}", 8, "its last connection starts after the end of the run"),
        (
            "{name: a, connections: 1, role: background, direction: reverse}",
            8,
            "the reverse direction has no bottleneck for it",
        ),
        ("{name: a, connections: 1, web: {}}", 8, "expected one of connections"),
        ("{name: a, web: {}, size: 1 kB}", 8, "size cannot be combined with web or mix"),
        ("{name: a, web: {object_shape: 1.0}}", 8, "expected a shape above 1"),
        ("{name: a, mix: {rate: 1 Mbit/s, least: 1 MB, most: 1 MB}}", 8, "the largest transfer is not larger"),
        ("{name: a, mix: {rate: 900 Gbit/s}}", 8, "more than 100000"),
        ("{name: a, connections: 1, udp: {rate: 1 Mbit/s}}", 8, "datagrams can only be background"),
        (
            "{name: a, role: background, connections: 1, size: 1 kB, udp: {rate: 1 Mbit/s}} # flows",
            8,
            "size is a field of TCP",
        ),
        (
            "{name: a, role: background, connections: 1, udp: {rate: 1 Mbit/s, packet: 20 B}}",
            8,
            "expected a packet of 29 to",
        ),
        ("{name: a, connections: 6, role: background}", 7, "nothing is measured"),
        ("{name: a, connections: 1}\n- {name: a, connections: 1}", 9, "two groups are called 'a'"),
        ("{name: a, connections: 1, algorithm: cubik}", 8, "there is no algorithm 'cubik'"),
        ("{name: a, connections: 1, rate: 1}", 8, "rate"),
    ],
)
def test_wrong_groups(tmp_path: Path, group: str, line: int, what: str) -> None:
    with pytest.raises(ProfileError) as caught:
        text = f"groups:\n- {group}\n" + ("flows: [{}]\n" if "reverse" in group or "# flows" in group else "")
        compile_plans(load(write_profile(tmp_path, text)))
    assert what in caught.value.what
    if line > 7:
        assert str(caught.value.where).endswith(f":{line}")


_UDP = (
    "flows: [{}]\ngroups:\n"
    "- {name: udp, role: background, connections: 2, start: 500 ms, interval: 1 s, lifetime: 2 s, "
)


def test_datagrams_at_a_constant_rate(tmp_path: Path) -> None:
    plan = make_one(tmp_path, _UDP + "udp: {rate: 4 Mbit/s, packet: 1000 B}}\n")
    first = plan.flows[1]
    assert (first.role, first.datagram_bytes) == ("background", 972)
    assert first.datagram_interval_ns == 2_028_000  # 1014 bytes at 4 Mbit/s
    assert first.bursts == [[500_000, 2_500_000]]
    assert plan.flows[2].bursts == [[1_500_000, 3_500_000]]


def test_a_datagram_fills_the_mtu_and_is_no_larger(tmp_path: Path) -> None:
    extra = _UDP + "udp: {rate: 4 Mbit/s, packet: %d B}}\n"
    assert make_one(tmp_path, extra % 1500).flows[1].datagram_bytes == 1472
    with pytest.raises(ProfileError, match="a packet of 1501 bytes is larger than the path's MTU, 1500"):
        make_one(tmp_path, extra % 1501)


def test_on_and_off_times(tmp_path: Path) -> None:
    extra = _UDP + "udp: {rate: 4 Mbit/s, on_off: {on: 300 ms, off: 600 ms}}}\n"
    first = make_one(tmp_path, extra).flows[1]
    assert first.bursts == [[500_000, 800_000], [1_400_000, 1_700_000], [2_300_000, 2_500_000]]


def test_drawn_on_and_off_times_have_their_means(tmp_path: Path) -> None:
    group = "groups:\n- {name: udp, role: background, connections: 1, udp: {rate: 1 Mbit/s, on_off: "
    group += "{on: 20 ms, off: 60 ms, "
    for law in ("exponential", "pareto"):
        extra = f"flows: [{{}}]\n{group}distribution: {law}}}}}}}\n"
        bursts = make_one(tmp_path, extra, ["duration=400 s"]).flows[1].bursts
        on = sum(end - begin for begin, end in bursts) / 400e6
        assert on == pytest.approx(0.25, abs=0.06)
        assert len({end - begin for begin, end in bursts}) > 1000


def test_every_other_connection_may_go_the_other_way(tmp_path: Path) -> None:
    both = "groups:\n- {name: both, connections: 6, interval: 100 ms, size: 30 kB, pairs: 3, alternate: true}\n"
    plan = make_one(tmp_path, both, ["path.reverse_rate=5Mbit/s"])
    forward = [flow for flow in plan.flows if flow.group == "both"]
    back = [flow for flow in plan.flows if flow.group == "both-back"]
    assert [flow.start_us for flow in forward] == [0, 200_000, 400_000]
    assert [flow.start_us for flow in back] == [100_000, 300_000, 500_000]
    assert {(flow.role, flow.direction) for flow in forward} == {("measured", "forward")}
    assert {(flow.role, flow.direction) for flow in back} == {("background", "reverse")}
    # The same hosts, each on its side, whatever the direction.
    assert [flow.sender for flow in forward] == ["s1", "s3", "s2"]
    assert [flow.sender for flow in back] == ["r2", "r1", "r3"]
    with pytest.raises(ProfileError, match="reverse_rate"):
        make_one(tmp_path, both)


@pytest.mark.parametrize(
    "extra", ["", "engine: ns2\nalgorithm: standard\n", "engine: machines\n", "traffic: {source: iperf3}\n"]
)
def test_no_connection_has_all_of_them_looked_at(extra: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Else ten thousand of them take a minute, and a profile is refused after seconds."""
    lists: list[int] = []
    whole: Any = vars(Scenario)["every_flow"].fget

    def every_flow(scenario: Scenario) -> list[FlowSection]:
        lists.append(1)
        found: list[FlowSection] = whole(scenario)
        return found

    monkeypatch.setattr(Scenario, "every_flow", property(every_flow))
    counts = []
    for connections in (10, 100):
        lists.clear()
        (tmp_path / str(connections)).mkdir()
        plan = make_one(
            tmp_path / str(connections), f"groups:\n- {{name: a, connections: {connections}, size: 1 kB}}\n{extra}"
        )
        assert len(plan.flows) == connections
        counts.append(len(lists))
    assert counts[0] == counts[1]


def test_a_flow_is_found_by_its_index(tmp_path: Path) -> None:
    text = "flows: [{}, {}]\nbackground: [{start: 1 s}]\n"
    (cell,) = load(write_profile(tmp_path, text)).cells()
    scenario = cell.scenario
    assert [scenario.flow_at(index) for index in range(3)] == scenario.every_flow
    assert [scenario.place_of(index) for index in range(3)] == [("flows", 0), ("flows", 1), ("background", 0)]


_LONG_US = 10**12
_MIX = MixSection.model_validate({"rate": "50 Mbit/s"})


def test_a_web_session_as_the_paper_has_it(tmp_path: Path) -> None:
    plan = make_one(tmp_path, "groups:\n- {name: web, web: {}}\n", ["duration=200 s"])
    assert 500 < len(plan.flows) < 2000  # 50 sessions x 5 pages x 4 objects, heavy-tailed
    assert {flow.request_bytes for flow in plan.flows} == {300}
    assert {flow.opener for flow in plan.flows} == {"receiver"}
    assert all(flow.size_bytes and flow.size_bytes % 1448 == 0 for flow in plan.flows if flow.size_bytes != 10_000_000)
    starts = [flow.start_us for flow in plan.flows]
    assert starts == sorted(starts) and starts[0] == 0


def test_the_sender_may_open_a_web_connection_without_a_request(tmp_path: Path) -> None:
    """The same objects at the same times, as ns-2 needs them."""
    profile = "groups:\n- {name: web, web: {}, opener: %s}\n"
    asked, sent = (make_one(tmp_path, profile % end).flows for end in ("receiver", "sender"))
    assert {(flow.request_bytes, flow.opener) for flow in sent} == {(None, "sender")}
    assert [(flow.start_us, flow.size_bytes) for flow in sent] == [(flow.start_us, flow.size_bytes) for flow in asked]


def test_the_means_of_the_web_model() -> None:
    web = WebSection(sessions=400, objects_shape=3.0, object_shape=3.0)
    found = web_connections(web, 0, _LONG_US, 1448, Random(1))
    # Rounding, with 1 as the least, adds a few per cent to counts and sizes.
    assert len(found) == pytest.approx(400 * 5 * 4, rel=0.1)
    assert fmean(each.size_bytes or 0 for each in found) / 1448 == pytest.approx(4, rel=0.1)


def test_the_sizes_of_web_objects_are_heavy_tailed() -> None:
    found = web_connections(WebSection(sessions=400), 0, _LONG_US, 1000, Random(1))
    packets = [(each.size_bytes or 0) / 1000 for each in found]
    # F(x) = 1 - (1 + x / 0.8)^-1.2 at 10.5, and the median 0.63, which becomes 1.
    assert sum(size > 10 for size in packets) / len(packets) == pytest.approx((1 + 10.5 / 0.8) ** -1.2, rel=0.08)
    assert median(packets) == 1
    assert max(packets) > 1000


def test_times_of_one_page_are_exponential() -> None:
    web = WebSection(sessions=1, pages=1, objects=1000, objects_shape=50.0)
    gaps = []
    for seed in range(30):
        starts = [each.start_us for each in web_connections(web, 0, _LONG_US, 1448, Random(seed))]
        gaps += [after - before for before, after in itertools.pairwise(starts)]
    assert fmean(gaps) == pytest.approx(50_000, rel=0.03)
    assert sum(gap > 50_000 for gap in gaps) / len(gaps) == pytest.approx(0.3679, abs=0.015)


def test_nothing_starts_too_late() -> None:
    assert max(each.start_us for each in web_connections(WebSection(), 0, 1_000_000, 1448, Random(1))) < 1_000_000


def test_sizes_of_the_mix_have_the_computed_mean() -> None:
    draw = Random(5)
    sizes = [size_bytes(_MIX, draw) for _ in range(40_000)]
    assert fmean(sizes) == pytest.approx(mean_bytes(_MIX), rel=0.03)
    assert 50_000 <= min(sizes) < 51_000
    assert 4_000_000 < max(sizes) <= 5_000_000


def test_body_alone_and_tail_alone() -> None:
    body = MixSection.model_validate({"rate": "1 Mbit/s", "least": "1 kB", "most": "100 kB"})
    draw = Random(5)
    sizes = [size_bytes(body, draw) for _ in range(20_000)]
    assert fmean(sizes) == pytest.approx(mean_bytes(body), rel=0.03)
    # The median of the whole body is exp(9.357); between 1 kB and 100 kB there is 3 % below and 5 % above.
    assert median(sizes) == pytest.approx(11_300, rel=0.06)


def test_the_mix_offers_its_rate() -> None:
    loads = []
    for seed in range(20):
        found = mix_connections(_MIX, 0, 100_000_000, 1500, Random(seed))
        loads.append(sum(each.size_bytes or 0 for each in found) * 8 * 1514 / 1448 / 100)
    assert fmean(loads) == pytest.approx(50e6, rel=0.05)


def test_the_mix_is_drawn_from_seed_and_repetition(tmp_path: Path) -> None:
    extra = "repetitions: 2\nflows: [{}]\ngroups:\n- {name: mid, role: background, mix: {rate: 5 Mbit/s}}\n"
    one, two = make_plans(tmp_path, extra)
    again, _ = make_plans(tmp_path, extra)
    assert [flow.size_bytes for flow in one.flows] == [flow.size_bytes for flow in again.flows]
    assert [flow.size_bytes for flow in one.flows] != [flow.size_bytes for flow in two.flows]
    assert {flow.role for flow in one.flows[1:]} == {"background"}
