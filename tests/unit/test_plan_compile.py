# SPDX-License-Identifier: Apache-2.0
"""From a cell to a plan: resolved numbers, times, sizes, addresses."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from howdah.errors import ProfileError
from howdah.plan.compile import compile_plan
from howdah.plan.plan import Plan, in_current_format
from howdah.profile import load
from howdah.record.reading import read_plan_file
from howdah.verify.compiled import differences
from howdah.work.compiled import compile_plans
from tests.unit.profile_factory import BASE, make_one, make_plans, operations, write_profile

LONG_FAT = Path(__file__).resolve().parents[2] / "profiles" / "long-fat-400mbit-240ms.yaml"


def _sysctl(plan: Plan, name: str, node: str | None = None) -> str:
    (found,) = operations(plan, "sysctl", name=name, node=node)
    return str(found.arguments()["value"])


def test_a_plan_survives_json_and_is_the_same_every_time(tmp_path: Path) -> None:
    plan = make_one(tmp_path)
    assert Plan.from_json(plan.to_json()) == plan
    assert make_one(tmp_path).to_json() == plan.to_json()


def test_the_link_layer_counts_in_bdp_and_capacity() -> None:
    cell = load(LONG_FAT, ["repetitions=1"]).cells()[0]
    path = compile_plan(cell).path
    assert path.bdp_bytes == 12_000_000
    assert path.bdp_packets == 7926
    assert path.buffer_bytes == 12_000_000
    assert (path.mtu_bytes, path.mss_bytes, path.frame_bytes) == (1500, 1448, 1514)
    assert path.capacity_goodput_bits_per_second == pytest.approx(382_562_747.7)


@pytest.mark.parametrize(
    ("flows", "name"),
    [
        ("flows: [{}]\n", "cubic"),
        ("flows: [{algorithm: reno}]\n", "reno"),
        ("flows: [{algorithm: reno}, {algorithm: bbr}]\n", "reno"),
        ("flows: [{algorithm: reno}, {}]\n", "cubic"),
        ("flows: [{algorithm: reno}]\nbackground: [{}]\n", "cubic"),
        ("flows: [{algorithm: reno}]\nbackground: [{algorithm: bbr}]\n", "reno"),
        ("groups: [{name: web, connections: 2, size: 10 kB}]\n", "cubic"),
        ("groups: [{name: web, connections: 2, size: 10 kB, algorithm: bbr}]\n", "bbr"),
        (
            "groups: [{name: noise, connections: 1, role: background, algorithm: reno}, {name: web, connections: 2,"
            " size: 10 kB, algorithm: bbr}]\n",
            "bbr",
        ),
        (
            "flows: [{algorithm: reno}]\ngroups: [{name: noise, connections: 1, role: background, udp: {rate: 1 Mbit/s,"
            " packet: 1000 B}}]\n",
            "reno",
        ),
    ],
)
def test_a_run_is_named_after_an_algorithm_that_a_flow_has(tmp_path: Path, flows: str, name: str) -> None:
    plan = make_one(tmp_path, flows)
    assert (plan.run, plan.algorithm) == (f"{name}-r0", name)
    assert name in {flow.algorithm for flow in plan.flows}


def test_a_swept_algorithm_names_the_run_and_the_profiles_the_variant(tmp_path: Path) -> None:
    """The sides of a sweep over the flow's own algorithm are its values, of one variant."""
    plans = make_plans(tmp_path, "flows: [{algorithm: [reno, bbr]}]\n")
    assert [(plan.run, plan.algorithm) for plan in plans] == [("reno-r0", "cubic"), ("bbr-r0", "cubic")]


def test_a_perturbed_rtt_changes_the_bdp_but_not_the_buffer() -> None:
    for plan in compile_plans(load(LONG_FAT)):
        assert plan.path.buffer_bytes == 12_000_000
        assert plan.path.bdp_bytes == 400_000_000 * plan.path.rtt_us // 8_000_000
        assert plan.path.rtt_us != 240_000


def test_a_buffer_holds_at_least_one_frame(tmp_path: Path) -> None:
    assert make_one(tmp_path, overrides=["path.buffer=0 B"]).path.buffer_bytes == 1514
    assert make_one(tmp_path, overrides=["path.buffer=3 packets"]).path.buffer_bytes == 3 * 1514


def test_nothing_limits_a_flow_but_its_window(tmp_path: Path) -> None:
    for plan in [make_one(tmp_path), *compile_plans(load(LONG_FAT))[::3]]:
        path = plan.path
        largest_window = 2 * (path.bdp_bytes + path.buffer_bytes) // path.frame_bytes
        assert int(_sysctl(plan, "net.core.netdev_max_backlog")) > len(plan.flows) * largest_window
        low, pressure, high = map(int, _sysctl(plan, "net.ipv4.tcp_mem").split())
        assert low <= pressure < high
        assert pressure * 4096 >= len(plan.flows) * largest_window * 2 * 2304
        send, receive = (_sysctl(plan, f"net.ipv4.tcp_{kind}mem", "s1").split() for kind in "wr")
        assert send[:2] == ["4096", "87380"]
        assert receive[:2] == ["4096", "131072"]
        assert int(send[2]) >= 4 * largest_window * 2304
        assert int(receive[2]) >= 2 * largest_window * path.mss_bytes
        assert int(_sysctl(plan, "net.core.wmem_max")) >= int(send[2])
        assert int(_sysctl(plan, "net.core.rmem_max")) >= int(receive[2])
        assert plan.guest_memory_bytes >= high * 4096 * 4 // 5 + plan.collect.trace_buffer_bytes
        for item in operations(plan, "qdisc", kind="netem"):
            assert item.arguments()["options"]["limit_packets"] >= largest_window


def test_sizes_stay_within_what_the_kernel_takes(tmp_path: Path) -> None:
    plan = make_one(tmp_path, overrides=["path.rate=100 Gbit/s", "path.rtt=600 ms", "path.buffer=2 bdp"])
    assert int(_sysctl(plan, "net.ipv4.tcp_wmem", "s1").split()[2]) <= 2**31 - 1
    assert plan.collect.trace_buffer_bytes == 64 << 20


def test_a_profiles_own_settings_come_last(tmp_path: Path) -> None:
    plan = make_one(
        tmp_path,
        "host:\n  tcp_rmem: 4096 65536 500000\n"
        "  sysctls: {net.ipv4.tcp_sack: 0, net.ipv4.tcp_mem: 1 2 3, vm.swappiness: 0}\n",
    )
    assert _sysctl(plan, "net.ipv4.tcp_rmem", "r1") == "4096 65536 500000"
    sack = operations(plan, "sysctl", name="net.ipv4.tcp_sack")
    assert {item.arguments()["node"] for item in sack} == {"left", "right", "s1", "r1"}
    memory = [item for item in operations(plan, "sysctl", name="net.ipv4.tcp_mem") if item.arguments()["node"] is None]
    assert memory[-1].arguments()["value"] == "1 2 3", "the profile's value overwrites the computed one"
    assert operations(plan, "sysctl", name="vm.swappiness", node=None)


def test_calibration_fits_before_the_epoch_and_after_the_flows(tmp_path: Path) -> None:
    for plan in [make_one(tmp_path), compile_plans(load(LONG_FAT))[0]]:
        calibration = plan.calibration
        drain_us = plan.path.buffer_bytes * 8_000_000 // plan.path.rate_bits_per_second
        assert calibration.phase_us >= 2_000_000 + 6 * plan.path.rtt_us + 3 * drain_us
        assert calibration.before_us + calibration.phase_us + calibration.settle_us <= 0
        assert plan.epoch_us + calibration.before_us > 0
        assert calibration.after_us >= plan.duration_us + plan.path.rtt_us + drain_us
        assert (calibration.bottleneck_node, calibration.bottleneck_interface) == ("left", "left-eth0")
        (leaf,) = operations(plan, "qdisc", kind="bfifo")
        assert leaf.arguments()["handle"] == calibration.bottleneck_handle
        for target in calibration.targets:
            hosts = {host.name: host for host in plan.hosts}
            assert target.sender_address == hosts[target.sender].calibration_address != hosts[target.sender].address
            assert target.receiver_address == hosts[target.receiver].calibration_address


def test_without_calibration_the_epoch_is_the_same(tmp_path: Path) -> None:
    """Ticks and timers have the same phase at time zero, so that a screened run is the one that is proven later."""
    plan = make_one(tmp_path, "calibrate: false\n")
    assert not plan.calibration.enabled
    assert plan.calibration.before_us == 0
    assert plan.epoch_us == make_one(tmp_path).epoch_us


def test_addresses_and_ports_of_flows(tmp_path: Path) -> None:
    plan = make_one(tmp_path, "flows:\n  - {start: 0}\n  - {start: 1 s, size: 1 MB, name: short}\n")
    first, second = plan.flows
    assert (first.name, first.sender, first.receiver) == ("flow1", "s1", "r1")
    assert (first.source_address, first.source_port) == ("10.1.1.1", 40001)
    assert (first.destination_address, first.destination_port) == ("10.2.1.1", 5001)
    assert (second.name, second.source_address, second.source_port) == ("short", "10.1.2.1", 40002)
    assert (second.destination_address, second.destination_port) == ("10.2.2.1", 5002)
    assert (first.stop_us, first.size_bytes) == (4_000_000, None)
    assert (second.stop_us, second.size_bytes) == (4_000_000, 1_000_000)
    assert [(item.at_us, item.op) for item in plan.timeline] == [
        (0, "start_flow"),
        (1_000_000, "start_flow"),
        (4_000_000, "stop_flow"),
        (4_000_000, "stop_flow"),
    ]


def test_flows_share_pairs_when_there_are_fewer_pairs(tmp_path: Path) -> None:
    plan = make_one(tmp_path, "topology: {pairs: 2}\nflows: [{}, {}, {}, {sender: s1, receiver: r2}]\n")
    assert [(flow.sender, flow.receiver) for flow in plan.flows] == [
        ("s1", "r1"),
        ("s2", "r2"),
        ("s1", "r1"),
        ("s1", "r2"),
    ]
    assert [(target.sender, target.receiver) for target in plan.calibration.targets] == [
        ("s1", "r1"),
        ("s2", "r2"),
        ("s1", "r2"),
    ]


def test_each_flow_can_have_its_own_rtt(tmp_path: Path) -> None:
    base = BASE.replace("rtt: 40 ms", "one_way_delay: {forward: 10 ms, reverse: 30 ms}")
    cell = load(write_profile(tmp_path, "flows:\n  - {}\n  - {rtt: 100 ms}\n", base)).cells()[0]
    plan = compile_plan(cell)
    assert [(flow.forward_delay_us, flow.reverse_delay_us) for flow in plan.flows] == [
        (10_000, 30_000),
        (25_000, 75_000),
    ]
    delays = {
        item.arguments()["interface"]: item.arguments()["options"]["delay_us"]
        for item in operations(plan, "qdisc", kind="netem")
    }
    assert delays == {"right-eth1": 10_000, "right-eth2": 25_000, "left-eth1": 30_000, "left-eth2": 75_000}


@pytest.mark.parametrize(
    ("flows", "line", "what"),
    [
        ("  - {}\n  - {sender: s3}\n", 9, "there is no sender 's3'"),
    ],
)
def test_flows_that_contradict_each_other(tmp_path: Path, flows: str, line: int, what: str) -> None:
    with pytest.raises(ProfileError) as caught:
        make_one(tmp_path, f"flows:\n{flows}")
    assert caught.value.where == f"{tmp_path / 'small.yaml'}:{line}"
    assert what in caught.value.what


def test_initial_windows_are_routes_to_the_peer(tmp_path: Path) -> None:
    plan = make_one(tmp_path, "flows:\n  - {initial_window: 44, initial_receive_window: 45}\n")
    assert plan.flows[0].initial_window_packets == 44
    (out,) = operations(plan, "route", node="s1", destination="10.2.1.1/32")
    assert (out.arguments()["initial_window_packets"], out.arguments()["initial_receive_window_packets"]) == (44, None)
    (back,) = operations(plan, "route", node="r1", destination="10.1.1.1/32")
    assert (back.arguments()["initial_window_packets"], back.arguments()["initial_receive_window_packets"]) == (
        None,
        45,
    )
    assert make_one(tmp_path).flows[0].initial_window_packets == 10


def test_engine_and_kernel_can_be_replaced(tmp_path: Path) -> None:
    plan = make_one(tmp_path, engine="host", kernel="debian-6.1")
    assert (plan.engine, plan.kernel) == ("host", "debian-6.1")
    (tmp_path / "tree").mkdir()
    assert make_one(tmp_path, "kernel: ./tree\n").kernel == str(tmp_path / "tree")
    assert make_one(tmp_path).kernel == "debian-6.12"


def test_ipv6_is_off_unless_asked_for(tmp_path: Path) -> None:
    assert make_one(tmp_path).kernel_parameters["ipv6.disable"] == "1"
    assert "ipv6.disable" not in make_one(tmp_path, "host: {ipv6: true}\n").kernel_parameters


def test_capture_names_an_interface_of_the_network(tmp_path: Path) -> None:
    assert make_one(tmp_path, "collect: {pcap: [s1:s1-eth0]}\n").collect.pcap == ["s1:s1-eth0"]


def test_collectors_can_be_switched_off(tmp_path: Path) -> None:
    collect = make_one(tmp_path, "collect: {tcp_probe: false, tcp_info: off, qdisc: null, interfaces: false}\n").collect
    assert not collect.tcp_probe
    assert collect.intervals_us == {"counters": 1_000_000}


def test_the_window_of_measurement(tmp_path: Path) -> None:
    assert make_one(tmp_path).measure_window_us == (0, 4_000_000)
    assert make_one(tmp_path, "measure: {window: {start: 1 s, stop: 3 s}}\n").measure_window_us == (
        1_000_000,
        3_000_000,
    )


def test_packets_that_measure_delays_do_not_wait_for_each_other_on_a_slow_path(tmp_path: Path) -> None:
    hosts = "flows: [{sender: s1, receiver: r1}, {sender: s2, receiver: r2}, {sender: s3, receiver: r3}]\n"
    for slow in ("path.rate=10 kbit/s", "path.reverse_rate=10 kbit/s"):
        plan = make_one(tmp_path, hosts, overrides=[slow])
        gap_us = plan.path.probe_gap_us(3)
        assert 10_000 * gap_us / 8e6 > 50, "bytes that pass between two of them"
        assert plan.calibration.phase_us > 2_000_000 + 21 * 3 * gap_us - 420_000
    fast = make_one(tmp_path, hosts)
    assert 21 * 3 * fast.path.probe_gap_us(3) <= 420_000


def test_user_space_traffic_gets_more_time(tmp_path: Path) -> None:
    fast, slow = make_plans(tmp_path, overrides=["traffic.sink=[kernel, python]"])
    assert slow.flows[0].sink == "python"
    assert slow.wall_clock_limit_s > fast.wall_clock_limit_s


def test_a_slow_sender_gets_the_time_to_fill_the_buffer(tmp_path: Path) -> None:
    """1.1 times the bottleneck's rate fills a buffer in ten times its drain time."""
    fast = make_one(tmp_path, overrides=["path.buffer=10 bdp"])
    slow = make_one(tmp_path, overrides=["path.buffer=10 bdp", "path.sender_interface=22 Mbit/s"])
    bare = make_one(tmp_path, overrides=["path.buffer=10 bdp", "path.sender_interface=unlimited"])
    drain_us = 10 * 40_000
    assert slow.calibration.phase_us - bare.calibration.phase_us == 12 * drain_us
    assert fast.calibration.phase_us - bare.calibration.phase_us < drain_us / 40
    assert slow.epoch_us > fast.epoch_us


def test_a_plan_whose_intervals_were_fields_is_read(tmp_path: Path) -> None:
    plan = make_one(tmp_path, "collect: {qdisc: off, tcp_info: 50 ms}\n")
    value = {**json.loads(plan.to_json()), "format": 2}
    found = value["collect"].pop("intervals_us")
    value["collect"] |= {f"{name}_us": found.get(name) for name in ("tcp_info", "qdisc", "interface", "counters")}
    file = tmp_path / "plan.json"
    file.write_text(json.dumps(value), encoding="utf-8")
    assert Plan.from_json(file.read_text(encoding="utf-8")) == plan
    assert read_plan_file(file) == plan
    assert list(differences(in_current_format(value), json.loads(plan.to_json()))) == []
