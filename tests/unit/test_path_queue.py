# SPDX-License-Identifier: Apache-2.0
"""Queues, hops, background and reordering: from a profile to the qdiscs of a plan."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from howdah.errors import ProfileError
from howdah.linux.netlink import qdisc
from howdah.linux.netlink.discipline import made, queues
from howdah.linux.netlink.discipline.red_numbers import RedNumbers, red_numbers
from howdah.plan.plan import Plan
from howdah.profile import load
from tests.unit.profile_factory import make_one, make_plans, operations, write_profile

NEWEST = "kernel=debian-newest"


def leaf(plan: Plan, interface: str = "left-eth0") -> Any:
    (found,) = operations(plan, "qdisc", interface=interface, handle="10:")
    return found


def text(plan: Plan) -> str:
    return str(leaf(plan).lines()[0]).split("handle 10: ")[1]


def error(directory: Path, extra: str, overrides: list[str] | None = None) -> ProfileError:
    with pytest.raises(ProfileError) as caught:
        make_one(directory, extra, overrides)
    return caught.value


@pytest.mark.parametrize(
    ("overrides", "expected"),
    [
        ([], "bfifo limit 100000b"),
        (
            ["path.queue=red", "path.buffer=4 bdp", "path.ecn=true"],
            "red limit 400000b min 33333b max 100000b avpkt 1514b burst 37 probability 0.02 bandwidth 20000000bit ecn",
        ),
        (
            ["path.queue={kind: choke, most: 20 packets}", "path.buffer=60 packets"],
            "choke limit 60 min 6 max 20 avpkt 1514b burst 11 probability 0.02 bandwidth 20000000bit",
        ),
        (["path.queue=codel"], "codel limit 67 target 5ms interval 100ms noecn"),
        (
            ["path.queue=fq_codel", "path.ecn=true"],
            "fq_codel limit 67 target 5ms interval 100ms flows 1024 quantum 1514 memory_limit 33554432b ecn",
        ),
        (["path.queue={kind: pie, alpha: 3}"], "pie limit 67 target 15ms tupdate 15ms alpha 3 beta 20 noecn"),
        (
            ["path.queue={kind: fq_pie, flows: 64}"],
            "fq_pie limit 67 flows 64 target 15ms tupdate 15ms alpha 2 beta 20 quantum 1514 "
            "memory_limit 33554432b noecn",
        ),
        (["path.queue=cake"], "cake unlimited besteffort triple-isolate rtt 100ms memlimit 220000b"),
        (
            ["path.queue=dualpi2", NEWEST],
            "dualpi2 limit 67 memlimit 33554432 target 15ms tupdate 16ms alpha 0.16015625 beta 3.19921875 "
            "step_thresh 1ms min_qlen_step 0p coupling_factor 2 classic_protection 10% drop_on_overload drop_dequeue "
            "l4s_ect split_gso",
        ),
        (
            [
                "path.queue={kind: dualpi2, step_packets: 5, step_least: 2, low_latency: any, overload: fill, "
                "decide: enqueue, classic_share: 25 %, coupling: 3}",
                NEWEST,
            ],
            "dualpi2 limit 67 memlimit 33554432 target 15ms tupdate 16ms alpha 0.16015625 beta 3.19921875 "
            "step_thresh 5p min_qlen_step 2p coupling_factor 3 classic_protection 25% overflow drop_enqueue "
            "any_ect split_gso",
        ),
    ],
)
def test_a_queue_as_tc_would_be_told(tmp_path: Path, overrides: list[str], expected: str) -> None:
    plan = make_one(tmp_path, overrides=overrides)
    assert text(plan) == expected
    item = leaf(plan).arguments()
    assert qdisc.qdisc_request(2, item["parent"], item["handle"], made(item["kind"], item["options"]))


@pytest.mark.parametrize("queue", [name for name, kind in queues().items() if not kind.fills])
def test_a_buffer_that_cannot_be_filled_is_not_measured_and_trains_are_short(tmp_path: Path, queue: str) -> None:
    plan = make_one(tmp_path, overrides=[f"path.queue={queue}", "path.buffer=4 bdp", NEWEST])
    assert plan.calibration.buffer_unknown == f"{queue} drops before its buffer is full"
    assert plan.calibration.train_packets is not None
    assert 2 <= plan.calibration.train_packets < 0.8 * plan.path.buffer_bytes / plan.path.frame_bytes
    assert make_one(tmp_path).calibration.buffer_unknown is None
    assert make_one(tmp_path).calibration.train_packets is None


def test_ecn_is_asked_for_by_the_hosts_as_well(tmp_path: Path) -> None:
    plan = make_one(tmp_path, overrides=["path.queue=codel", "path.ecn=true"])
    assert {item.arguments()["node"] for item in operations(plan, "sysctl", name="net.ipv4.tcp_ecn")} == {"s1", "r1"}
    assert not operations(make_one(tmp_path), "sysctl", name="net.ipv4.tcp_ecn")
    assert "a fifo marks nothing" in error(tmp_path, "", ["path.ecn=true"]).what


def test_parameters_stand_with_the_kind_that_has_them(tmp_path: Path) -> None:
    assert (
        "there is no field 'target' in path.queue" in error(tmp_path, "", ["path.queue={kind: red, target: 1 s}"]).what
    )
    assert "the field 'kind' is missing in path.queue" in error(tmp_path, "", ["path.queue={target: 1 s}"]).what
    both = ["path.queue={kind: dualpi2, step: 1 ms, step_packets: 3}", NEWEST]
    assert "step and step_packets are both given" in error(tmp_path, "", both).what
    odd = ["path.queue={kind: dualpi2, classic_share: 1.5 %}", NEWEST]
    assert "expected a whole percentage" in error(tmp_path, "", odd).what
    assert "shorter than the interval" in error(tmp_path, "", ["path.queue={kind: codel, target: 1 s}"]).what


def test_a_sweep_over_queues_is_named_by_their_kinds(tmp_path: Path) -> None:
    """By their parameters, too, where two are of one kind."""
    for value, names in (
        ("[fifo, {kind: codel, target: 1 ms}]", ["fifo", "codel"]),
        ("[{kind: codel, target: 1 ms}, {kind: codel, target: 2 ms}]", ["codel, target 1 ms", "codel, target 2 ms"]),
        ("{kind: [codel, pie]}", ["codel", "pie"]),
    ):
        swept = load(write_profile(tmp_path), [f"path.queue={value}"])
        assert [*swept.axes.values()] == [names]
        assert [point.scenario.path.queue.kind for point in swept.points] == [name.partition(",")[0] for name in names]
    swept = load(write_profile(tmp_path), ["path.queue={kind: codel, target: [1 ms, 2 ms]}"])
    assert swept.axes == {"path.queue.target": ["1 ms", "2 ms"]}


def test_a_mapping_of_a_sweep_can_be_changed_by_what_is_unknown_and_by_a_control(tmp_path: Path) -> None:
    more = (
        "unknown:\n  fields:\n    wait: {what: not stated, settings: {long: {path.queue.2.target: 9 ms}}}\n"
        "controls: {short: {what: shorter, set: {path.queue.2.target: 1 ms}, at: {path.queue: codel}}}\n"
    )
    found = load(write_profile(tmp_path, more), ["path.queue=[fifo, {kind: codel, target: 3 ms}]"], unknowns=True)
    targets = [getattr(point.scenario.path.queue, "target", None) for point in found.points]
    assert sorted(targets, key=str) == [1000, 3000, 9000, None, None]


def test_parameters_beside_the_queue_are_refused_with_what_to_write(tmp_path: Path) -> None:
    found = error(tmp_path, "", ["path.queue=codel", "path.codel.target=1 ms", "path.red.burst=9"])
    assert found.what.endswith("write path.queue: {kind: codel, target: 1 ms} or path.queue: {kind: red, burst: 9}")


@pytest.mark.parametrize(
    ("given", "shown"),
    [
        ("path.queue={cake: {rtt: 20 ms, ack_filter: filter}}", "{kind: cake, rtt: 20 ms, ack_filter: filter}"),
        ("path.queue={cake: {ack_filter: true}}", "{kind: cake}; ack_filter is none, filter or aggressive"),
        ("path.cake={ack_filter: true}", "path.queue: {kind: cake}; ack_filter is none, filter or aggressive"),
        ("path.queue={red: {min: 3, burst: 20}}", "{kind: red, burst: 20}; red has no min"),
        ("path.queue={cake: {rtt: -1 ms}}", "{kind: cake}; rtt cannot be '-1 ms'"),
    ],
)
def test_what_it_shows_in_their_place_is_taken(tmp_path: Path, given: str, shown: str) -> None:
    what = error(tmp_path, "", [given]).what
    assert what.endswith(f"the parameters of a queue stand beside its kind; write {shown}")
    written = shown.removeprefix("path.queue: ").partition(";")[0]
    assert make_one(tmp_path, "", [f"path.queue={written}"]).queues


@pytest.mark.parametrize(
    ("overrides", "place"),
    [
        (["path.queue=dualpi2"], "path.queue"),
        (["path.hops=[{rate: 30 Mbit/s, queue: dualpi2}]"], "path.hops"),
        (["path.reverse_rate=1 Mbit/s", "path.reverse_queue=dualpi2"], "path.reverse_queue"),
        (["path.queue=dualpi2", NEWEST, "receiver.kernel=debian-6.12"], "path.queue"),
    ],
)
def test_a_kernel_that_is_too_old_for_a_queue_is_refused(tmp_path: Path, overrides: list[str], place: str) -> None:
    found = error(tmp_path, "", overrides)
    assert "debian-6.12 has no queue dualpi2, which Linux has since 6.17" in found.what
    assert found.hint == "give kernel: debian-newest"
    assert place in str(found.where)


def test_each_hop_has_parameters_of_its_own(tmp_path: Path) -> None:
    hop = "path.hops=[{rate: 30 Mbit/s, place: before, queue: {kind: codel, target: 7 ms}}]"
    plan = make_one(tmp_path, overrides=["path.queue={kind: codel, target: 3 ms}", hop])
    options = [item.arguments()["options"] for item in operations(plan, "qdisc", kind="codel")]
    assert sorted(each["target_us"] for each in options) == [3000, 7000]


def test_red_as_tc_works_it_out() -> None:
    """tc qdisc … red limit 400000 min 33333 max 100000 avpkt 1514 burst 37 probability 0.02 bandwidth 20mbit shows
    ewma 5 Plog 22 Scell_log 15."""
    numbers = red_numbers(33_333, 100_000, 1514, 37, 0.02, 20_000_000)
    assert isinstance(numbers, RedNumbers)
    assert (numbers.ewma_log, numbers.probability_log, numbers.idle_log) == (5, 22, 15)
    assert len(numbers.idle_shifts) == 256
    assert numbers.idle_shifts == sorted(numbers.idle_shifts)
    assert (numbers.idle_shifts[0], numbers.idle_shifts[-1]) == (0, 31)


def test_red_of_a_large_buffer_fits_into_the_kernels_32_bits() -> None:
    numbers = red_numbers(3_000_000, 9_000_000, 1514, None, 0.02, 144_000_000)
    assert isinstance(numbers, RedNumbers)
    assert (9_000_000).bit_length() + numbers.ewma_log < 32
    assert isinstance(red_numbers(3_000_000, 9_000_000, 1514, 10_000, 0.02, 144_000_000), str)
    small = red_numbers(3_000_000, 9_000_000, 1514, 10, 0.02, 144_000_000)
    assert isinstance(small, str)
    assert "smaller than least" in small


def test_chokes_mean_is_of_packets_and_has_room_for_more_of_them() -> None:
    """A mean of 9 MB over 5945 packets fits into 32 bits in packets and not in bytes."""
    of_bytes, of_packets = (
        red_numbers(3_000_000, 9_000_000, 1514, None, 0.02, 144_000_000, step) for step in (1, 1514)
    )
    assert isinstance(of_bytes, RedNumbers)
    assert isinstance(of_packets, RedNumbers)
    assert of_packets.burst_packets == (2 * 3_000_000 + 9_000_000) // (3 * 1514) + 1 > of_bytes.burst_packets
    assert (9_000_000 // 1514).bit_length() + of_packets.ewma_log < 32 <= (9_000_000).bit_length() + of_packets.ewma_log


def test_choke_counts_whole_packets_and_no_more_than_the_kernel(tmp_path: Path) -> None:
    plan = make_one(tmp_path, overrides=["path.queue={kind: choke, least: 10000 B}", "path.buffer=91000 B"])
    options = leaf(plan).arguments()["options"]
    assert [options[f"{name}_packets"] for name in ("limit", "least", "most")] == [61, 6, 15]
    few = error(tmp_path, "", ["path.queue=choke", "path.buffer=4 packets"])
    assert "CHOKe needs a frame <= least < most <= buffer, not 1, 0, 1, 4 packets" in few.what
    many = error(tmp_path, "", ["path.queue=choke", "path.buffer=131072 packets"])
    assert "CHOKe holds at most 131071 packets, not 131072" in many.what


MARKED = ["path.buffer=60 packets", "path.queue={kind: gred, least: 50 packets, most: 60 packets}"]


def test_gred_has_thresholds_for_marked_packets_and_reads_the_mark(tmp_path: Path) -> None:
    more = ["path.queue.marked_least=10 packets", "path.queue.marked_most=20 packets"]
    plan = make_one(tmp_path, overrides=[*MARKED, *more])
    lines = leaf(plan).lines()
    assert [line.split("handle 10: ")[1] for line in lines] == [
        "gred setup vqs 2 default 0 grio limit 90840b",
        "gred limit 90840b min 75700b max 90840b avpkt 1514b burst 54 bandwidth 20000000bit probability 0.02 "
        "vq 0 prio 1",
        "gred limit 90840b min 15140b max 30280b avpkt 1514b burst 13 bandwidth 20000000bit probability 0.02 "
        "vq 1 prio 1",
    ]
    (reads,) = operations(plan, "filter")
    assert reads.lines() == [
        "tc -n left filter add dev left-eth0 egress protocol ip prio 2 u32 match ip dsfield 0x38 0xfc flowid :1"
    ]
    (hook,) = operations(plan, "qdisc", kind="clsact")
    assert hook.lines() == ["tc -n left qdisc add dev left-eth0 clsact"]
    assert not operations(make_one(tmp_path), "filter")


def test_both_thresholds_of_gred_have_one_mean(tmp_path: Path) -> None:
    """tc works the weight out from threshold and burst: it must be the same for both."""
    options = leaf(make_one(tmp_path, overrides=MARKED)).arguments()["options"]
    assert (options["marked_most_bytes"], options["marked_least_bytes"]) == (75_700, 25_233)
    for of in ("", "marked_"):
        least, most, burst = (options[f"{of}{name}"] for name in ("least_bytes", "most_bytes", "burst_packets"))
        numbers = red_numbers(least, most, 1514, burst, 0.02, 20_000_000)
        assert isinstance(numbers, RedNumbers)
        assert (numbers.ewma_log, numbers.probability_log) == (3, options[f"{of}probability_log"])


def test_what_gred_cannot_be(tmp_path: Path) -> None:
    for more, words in (
        (["path.queue.marked_most=1 packets"], "a frame <= marked_least < marked_most <= buffer, not 1514, 504, 1514"),
        (["path.queue.marked_least=61 packets"], "marked_least < marked_most <= buffer"),
        (["path.queue.marked_least=2000 B", "path.queue.burst=50"], "no burst of marked packets has the weight 2^-1"),
        (["path.ecn=true"], "gred does not count what it marks"),
    ):
        assert words in error(tmp_path, "", [*MARKED, *more]).what


HOPS = "path.hops=[{rate: 30 Mbit/s, place: before}, {rate: 25 Mbit/s, queue: codel, buffer: 40 packets}]"


def test_hops_make_a_chain_and_each_has_its_queue(tmp_path: Path) -> None:
    plan = make_one(tmp_path, overrides=[HOPS])
    assert plan.topology == "chain"
    assert plan.topology_arguments == {"pairs": 1, "before": 1, "after": 1}
    places = [(hop.node, hop.interface, hop.rate_bits_per_second, hop.place) for hop in plan.path.hops]
    assert places == [("left", "left-eth0", 30_000_000, "before"), ("m2", "m2-eth1", 25_000_000, "after")]
    assert (plan.calibration.bottleneck_node, plan.calibration.bottleneck_interface) == ("m1", "m1-eth1")
    assert leaf(plan, "m2-eth1").arguments()["kind"] == "codel"
    (rate,) = operations(plan, "class", interface="left-eth0")
    assert rate.arguments()["options"]["rate_bits_per_second"] == 30_000_000
    assert "before the bottleneck" in str(plan.calibration.buffer_unknown)


def test_a_hop_is_not_slower_than_the_bottleneck(tmp_path: Path) -> None:
    found = error(tmp_path, "", ["path.hops=[{rate: 10 Mbit/s}]"])
    assert found.what.startswith("path.hops.1.rate: this hop is slower than path.rate")
    assert (
        make_one(tmp_path, overrides=["path.hops=[{rate: 20 Mbit/s}]"]).path.hops[0].rate_bits_per_second == 20_000_000
    )
    assert "a dumbbell has one hop" in error(tmp_path, "topology: {name: dumbbell}\n", [HOPS]).what


def test_every_host_of_a_chain_is_reached(tmp_path: Path) -> None:
    plan = make_one(tmp_path, "background: [{sender: x3, receiver: y3}]\n", [HOPS])
    assert [flow.ends for flow in plan.flows] == [("s1", "r1"), ("x3", "y3")]
    assert [(item.sender, item.receiver) for item in plan.calibration.targets] == [("s1", "r1")]
    routed = {(item.arguments()["node"], item.arguments()["destination"]) for item in operations(plan, "route")}
    for router in ("left", "m1", "m2", "right"):
        own = {prefix for node, prefix in routed if node == router}
        assert {"10.2.0.0/16", "10.1.0.0/16"} & own
        neighbours = 1 if router in ("left", "right") else 2
        assert sum(prefix.startswith(("10.3.", "10.4.")) for prefix in own) == 6 - neighbours


def test_measured_flows_cross_the_bottleneck(tmp_path: Path) -> None:
    found = error(tmp_path, "flows: [{sender: x3, receiver: y3}]\n", [HOPS])
    assert "does not cross the bottleneck" in found.what


def test_background_has_a_role_and_a_direction(tmp_path: Path) -> None:
    extra = "background: [{start: 1 s}, {direction: reverse, algorithm: reno, name: upload}]\n"
    plan = make_one(tmp_path, extra, ["path.reverse_rate=5 Mbit/s"])
    assert [(flow.name, flow.role, flow.direction) for flow in plan.flows] == [
        ("flow1", "measured", "forward"),
        ("background1", "background", "forward"),
        ("upload", "background", "reverse"),
    ]
    upload = plan.flows[2]
    assert (upload.sender, upload.receiver, upload.ends) == ("r3", "s3", ("s3", "r3"))
    assert upload.source_address == "10.2.3.1"
    assert operations(plan, "class", interface="r3-eth0"), "its sender has an interface like any other"
    assert not operations(plan, "class", interface="r1-eth0")
    assert error(tmp_path, extra).what.endswith("give path.reverse_rate")


def test_background_does_not_change_when_measured_flows_start(tmp_path: Path) -> None:
    starts = []
    for extra in ("background: [{start: 1 s}]\n", ""):
        plans = make_plans(tmp_path, extra, ["repetitions=2"])
        starts.append([plan.flows[0].start_us for plan in plans])
    assert starts[0] == starts[1]
    assert starts[0][0] != starts[0][1]


def test_overtaking_is_forward_seeded_and_as_often_as_netem_does_it(tmp_path: Path) -> None:
    plan = make_one(tmp_path, overrides=["path.reorder={share: 20 %, gap: 10}"])
    lines = {
        item.arguments()["interface"]: item.arguments()["options"] for item in operations(plan, "qdisc", kind="netem")
    }
    assert (lines["right-eth1"]["reorder_ratio"], lines["right-eth1"]["reorder_gap"]) == (0.2, 10)
    assert lines["right-eth1"]["seed"] is not None
    assert lines["left-eth1"]["reorder_ratio"] == 0
    assert plan.path.reorder_ratio == pytest.approx(1 / 14)
    assert plan.path.early_us == plan.calibration.early_us == 20_000
    (line,) = operations(plan, "qdisc", interface="right-eth1")
    assert "reorder 20% gap 10" in line.lines()[0]
    assert "at most 20 %" in error(tmp_path, "", ["path.reorder.share=50 %"]).what


def test_a_sender_slower_than_the_path_is_what_a_train_measures(tmp_path: Path) -> None:
    assert make_one(tmp_path).calibration.train_rate_bits_per_second is None
    slow = make_one(tmp_path, overrides=["path.sender_interface=10 Mbit/s"])
    assert slow.calibration.train_rate_bits_per_second == 10_000_000


def test_a_burst_of_exactly_the_lower_threshold_has_a_mean() -> None:
    """``burst + 1 - least`` is 1, which any weight keeps: the least that is one is 2^-1."""
    numbers = red_numbers(10 * 1514, 40 * 1514, 1514, 10, 0.02, 20_000_000)
    assert not isinstance(numbers, str)
    assert numbers.ewma_log == 1
    assert isinstance(red_numbers(10 * 1514, 40 * 1514, 1514, 9, 0.02, 20_000_000), str)


@pytest.mark.parametrize(
    ("overrides", "forward", "back"),
    [
        ([], "bfifo limit 75700b", "pfifo limit 20"),
        (["path.queue={kind: fifo, counts: packets}"], "pfifo limit 50", "pfifo limit 20"),
        (["path.queue={kind: fifo, counts: bytes}"], "bfifo limit 75700b", "pfifo limit 20"),
        (["path.reverse_queue={kind: fifo, counts: bytes}"], "bfifo limit 75700b", "bfifo limit 30280b"),
        (["path.reverse_queue={kind: fifo, counts: packets}", "path.reverse_buffer=6056 B"], "bfifo", "pfifo limit 4"),
    ],
)
def test_a_fifo_counts_what_the_profile_says(tmp_path: Path, overrides: list[str], forward: str, back: str) -> None:
    given = ["path.buffer=50 packets", "path.reverse_rate=1 Mbit/s", "path.reverse_buffer=20 packets"]
    plan = make_one(tmp_path, "", [*given, *overrides])
    assert text(plan).startswith(forward)
    assert leaf(plan, "right-eth0").lines()[0].endswith(back)
    assert plan.path.buffer_packets == (50 if forward.startswith("pfifo") else None)


def test_the_way_back_has_any_queue_and_cake_filters_its_acks(tmp_path: Path) -> None:
    given = ["path.reverse_rate=1 Mbit/s", "path.reverse_buffer=20 kB"]
    plan = make_one(tmp_path, "", [*given, "path.reverse_queue={kind: cake, ack_filter: aggressive}"])
    words = leaf(plan, "right-eth0").lines()[0]
    assert words.endswith("cake unlimited besteffort triple-isolate rtt 100ms memlimit 44000b ack-filter-aggressive")
    plain = make_one(tmp_path, "", [*given, "path.reverse_queue=cake"])
    assert "ack_filter" not in leaf(plain, "right-eth0").arguments()["options"]
    assert (
        leaf(make_one(tmp_path, "", [*given, "path.reverse_queue=codel"]), "right-eth0").arguments()["kind"] == "codel"
    )
    with pytest.raises(ProfileError, match="give reverse_rate"):
        make_one(tmp_path, "", ["path.reverse_queue=codel"])


@pytest.mark.parametrize(
    ("overrides", "place"),
    [
        (["path.rate=10 kbit/s", "path.buffer=1 GB"], "path.buffer"),
        (["path.reverse_rate=10 kbit/s", "path.reverse_buffer=1 GB"], "path.reverse_buffer"),
    ],
)
def test_a_queue_of_either_way_that_takes_hours_to_drain_is_refused(
    tmp_path: Path, overrides: list[str], place: str
) -> None:
    """Every run would wait for it."""
    assert error(tmp_path, "", overrides).what.startswith(f"{place} takes ")
