# SPDX-License-Identifier: Apache-2.0
"""raw/ of a recorded run to its tables; damaged and missing files."""

from __future__ import annotations

import dataclasses
import json
import struct
from pathlib import Path

import numpy as np
import pytest

from howdah.errors import HowdahError
from howdah.ingest.framed import parse, read_frames
from howdah.ingest.qdisc import handle_of
from howdah.ingest.qdisc import locate as locate_qdisc
from howdah.ingest.run import ingest, read_report
from howdah.ingest.tcp_info import KNOWN_BYTES
from howdah.ingest.tcp_info import locate as locate_tcp_info
from howdah.ingest.tracepoint import unwrap
from howdah.plan import step
from howdah.plan.operation import VethLink
from howdah.record import table as store
from howdah.record.directory import RunDirectory
from tests.unit.recorded_run import EPOCH_NS, make_recorded_run, recorded_plan
from tests.unit.test_column_width import BITS


@pytest.fixture
def run(tmp_path: Path) -> RunDirectory:
    return make_recorded_run(tmp_path)


def test_a_program_that_found_no_memory_is_named(run: RunDirectory) -> None:
    run.console.write_text(
        "[    3.4] Out of memory: Killed process 20 (python3) total-vm:176768kB, anon-rss:148156kB\n"
    )
    assert ingest(run).all_problems == ["the guest's memory was full, and its kernel killed python3 (console.log)"]


def test_a_recorded_run_becomes_tables_without_a_problem(run: RunDirectory) -> None:
    report = ingest(run)
    assert report.all_problems == []
    assert read_report(run) == report
    probe = report.sources["tcp_probe"]
    assert (probe.rows, probe.counts["receiver_rows"]) == (374, 544)
    assert probe.counts["unknown_rows"] == 0
    assert {name: report.sources[name].rows for name in ("tcp_info", "qdisc", "interface", "counter", "flow")} == {
        "tcp_info": 15,
        "qdisc": 63,
        "interface": 63,
        "counter": 13,
        "flow": 1,
    }


def test_sequence_numbers_count_from_the_first_data_byte(run: RunDirectory) -> None:
    ingest(run)
    table = store.read(run, "tcp_probe")
    first = table.slice(0, 1).to_pylist()[0]
    assert first["snd_una_bytes"] == 0
    assert first["snd_nxt_bytes"] == 10 * 1448  # the initial window is out when the first ACK comes
    assert first["ssthresh_packets"] is None
    una = table["snd_una_bytes"].to_numpy()
    assert (np.diff(una) >= 0).all()
    assert (table["snd_nxt_bytes"].to_numpy() >= una).all()
    # The first record of the connection in the kernel's text is at 0.150868 s, of the receiver; the epoch is taken off.
    assert table["time_ns"].to_numpy().min() > 150_868_000 - EPOCH_NS


def test_unwrap_follows_wraps_and_steps_back() -> None:
    series = np.array([2**32 - 1000, 2**32 - 1, 500, 400, 3000], dtype=np.int64)
    assert unwrap(series).tolist() == [0, 999, 1500, 1400, 4000]


@pytest.mark.parametrize(
    "damage",
    [
        "[]",
        "{}",
        '{"format": 1, "problems": []}',
        '{"format": 1, "problems": [], "sources": null}',
        '{"format": 1, "problems": [], "sources": {"a": null}}',
        '{"format": 1, "problems": [], "sources": {"a": [1]}}',
    ],
)
def test_a_damaged_report_is_one_message(run: RunDirectory, damage: str) -> None:
    ingest(run)
    run.ingested.write_text(damage, encoding="utf-8")
    with pytest.raises(HowdahError):
        read_report(run)


def test_a_report_may_hold_what_this_version_does_not_know(run: RunDirectory) -> None:
    report = ingest(run)
    run.ingested.write_text(json.dumps({**json.loads(run.ingested.read_text()), "more": 1}), encoding="utf-8")
    assert read_report(run) == report


def test_tcp_info_of_both_ends(run: RunDirectory) -> None:
    report = ingest(run)
    rows = store.read(run, "tcp_info").to_pylist()
    assert {row["end"] for row in rows} == {"sender", "receiver"}
    sender = [row for row in rows if row["end"] == "sender"]
    assert sender[0]["min_rtt_us"] is None  # the connection is still being made
    assert {(row["mss_bytes"], row["min_rtt_us"]) for row in sender[1:]} == {(1448, 40_000)}
    assert [row["ssthresh_packets"] for row in sender] == [None, None, 46, 46, 33, 33, 33, 33]
    assert sender[-1]["bytes_acked_bytes"] == 715_313
    receiver = [row for row in rows if row["end"] == "receiver"]
    assert receiver[-1]["bytes_received_bytes"] == 739_928
    assert report.sources["tcp_info"].counts["struct_bytes"] == [248]


def test_queues_and_interfaces_have_names(run: RunDirectory) -> None:
    ingest(run)
    queues = {(row["node"], row["interface"], row["kind"]) for row in store.read(run, "qdisc").to_pylist()}
    assert ("r", "r1", "htb") in queues
    assert ("r", "r1", "bfifo") in queues
    assert ("s", "s0", "netem") in queues
    bfifo = [row for row in store.read(run, "qdisc").to_pylist() if row["kind"] == "bfifo"]
    assert bfifo[0]["handle"] == "10:"
    assert bfifo[0]["parent"] == "1:1"
    assert 0 < max(row["backlog_bytes"] for row in bfifo) <= 20_000
    assert bfifo[-1]["sent_bytes"] >= bfifo[0]["sent_bytes"]
    interfaces = {(row["node"], row["interface"]) for row in store.read(run, "interface").to_pylist()}
    assert {("s", "s0"), ("r", "r0"), ("r", "r1"), ("d", "d0")} <= interfaces


def test_the_counter_of_the_whole_kernel_has_no_node(run: RunDirectory) -> None:
    ingest(run)
    rows = store.read(run, "counter").to_pylist()
    assert [row for row in rows if row["node"] is None] == [
        {"node": None, "source": "softnet", "name": "dropped", "time_ns": 0, "value": 0}
    ]


def test_ingesting_twice_gives_equal_tables(tmp_path: Path) -> None:
    first, second = make_recorded_run(tmp_path / "a"), make_recorded_run(tmp_path / "b")
    ingest(first)
    ingest(second)
    assert store.equal(first, second) is None


def test_records_of_other_sockets_are_counted_not_dropped_silently(tmp_path: Path) -> None:
    plan = recorded_plan()
    stranger = dataclasses.replace(plan.flows[0], source_port=40001)
    run = make_recorded_run(tmp_path, dataclasses.replace(plan, flows=[stranger]))
    agent = json.loads((run.raw / "agent.json").read_text())
    agent["flows"][0]["source_port"] = 40001
    (run.raw / "agent.json").write_text(json.dumps(agent))
    report = ingest(run)
    counts = report.sources["tcp_probe"].counts
    assert report.sources["tcp_probe"].rows == 0
    assert counts["unknown_rows"] == 918
    ports = {(item["source_port"], item["destination_port"]) for item in counts["unknown_sockets"]}
    assert ports == {(40000, 5201), (5201, 40000)}
    assert report.sources["tcp_info"].counts["unknown_rows"] == 15


def test_the_port_the_agent_saw_wins_over_the_planned_one(tmp_path: Path) -> None:
    plan = recorded_plan()
    planned = dataclasses.replace(plan.flows[0], source_port=1)
    run = make_recorded_run(tmp_path, dataclasses.replace(plan, flows=[planned]))
    assert ingest(run).sources["tcp_probe"].rows == 374


@pytest.mark.parametrize("name", ["tcp_info.bin", "qdisc.bin", "interface.bin", "tcp_probe.bin", "counters.jsonl"])
def test_a_truncated_file_is_reported_and_the_rest_read(name: str, run: RunDirectory) -> None:
    whole = ingest(run)
    path = run.raw / name
    data = path.read_bytes()
    path.write_bytes(data[: len(data) * 2 // 3 + 5])
    report = ingest(run)
    table = "counter" if name == "counters.jsonl" else name.removesuffix(".bin")
    assert 0 < report.sources[table].rows < whole.sources[table].rows
    assert any(name in problem for problem in report.all_problems)


@pytest.mark.parametrize("name", ["agent.json", "trace.json", "tcp_probe.format", "counters.jsonl"])
def test_a_missing_file_is_a_problem_with_its_name(name: str, run: RunDirectory) -> None:
    (run.raw / name).unlink()
    report = ingest(run)
    assert any(name in problem for problem in report.all_problems)


def test_garbage_instead_of_netlink_is_damage(run: RunDirectory) -> None:
    path = run.raw / "tcp_info.bin"
    frames = path.read_bytes()
    path.write_bytes(frames + struct.pack("<qIHH", 10**9, 64, 0, 1) + b"\xff" * 64)
    report = ingest(run)
    assert report.sources["tcp_info"].rows == 15
    assert any("not a netlink answer" in problem for problem in report.all_problems)


def test_a_missing_plan_is_an_error_that_names_it(run: RunDirectory) -> None:
    run.plan.unlink()
    with pytest.raises(HowdahError, match=r"plan\.json"):
        ingest(run)


def _frame(body: bytes, kind: int, length: int | None = None) -> bytes:
    message = struct.pack("<IHHII", 16 + len(body), kind, 0, 1, 0) + body
    return struct.pack("<qIHH", 5, len(message) if length is None else length, 0, 1) + message


def _attribute(kind: int, payload: bytes) -> bytes:
    return struct.pack("<HH", 4 + len(payload), kind) + payload + bytes(-len(payload) % 4)


def _diag(info: bytes, state: int = 1) -> bytes:
    ids = struct.pack(">HH4s12x4s12x", 40000, 5201, bytes([10, 0, 1, 1]), bytes([10, 0, 2, 1]))
    return struct.pack("<BBBB", 2, state, 0, 0) + ids + bytes(12) + bytes(20) + _attribute(2, info)


@pytest.mark.parametrize(("length", "has_wnd", "tail"), [(232, False, 0), (KNOWN_BYTES + 24, True, 24)])
def test_struct_tcp_info_is_read_by_its_length(length: int, has_wnd: bool, tail: int, run: RunDirectory) -> None:
    info = bytearray(length)
    struct.pack_into("<II", info, 76, 7, 21)  # snd_ssthresh, snd_cwnd
    (run.raw / "tcp_info.bin").write_bytes(_frame(_diag(bytes(info)), 20))
    report = ingest(run)
    row = store.read(run, "tcp_info").to_pylist()[0]
    assert (row["ssthresh_packets"], row["cwnd_packets"]) == (7, 21)
    assert (row["rcv_wnd_bytes"] is not None) == has_wnd
    assert report.sources["tcp_info"].counts["unknown_tail_bytes"] == tail


@pytest.mark.parametrize(
    ("more", "version"),
    [(b"", None), (bytes(16) + bytes([0, 1, 0, 3]) + bytes(12), 3)],
    ids=["as Linux has it", "version 3"],
)
def test_what_a_control_tells_of_itself_is_read_if_it_is_bbrs(
    more: bytes, version: int | None, run: RunDirectory
) -> None:
    """struct tcp_bbr_info: bandwidth in two halves, least RTT, gains; struct tcpvegas_info is another attribute."""
    bbr = struct.pack("<IIIII", 5, 1, 60_000, 739, 512)
    answers = [_diag(bytes(248)) + _attribute(16, bbr + more), _diag(bytes(248)) + _attribute(3, bytes(16))]
    (run.raw / "tcp_info.bin").write_bytes(b"".join(_frame(answer, 20) for answer in answers))
    ingest(run)
    names = ("bandwidth_bytes_per_second", "min_rtt_us", "pacing_gain_256ths", "cwnd_gain_256ths", "version")
    found = [tuple(row[f"bbr_{name}"] for name in names) for row in store.read(run, "tcp_info").to_pylist()]
    assert sorted(found, key=str) == [(2**32 + 5, 60_000, 739, 512, version), (None,) * 5]


def test_the_largest_value_of_every_field_of_a_socket_is_kept(run: RunDirectory) -> None:
    (run.raw / "tcp_info.bin").write_bytes(_frame(_diag(b"\xff" * KNOWN_BYTES), 20))
    assert ingest(run).sources["tcp_info"].problems == []
    (row,) = store.read(run, "tcp_info").to_pylist()
    largest = {
        name: 2 ** min(bits, 63) - 1
        for name, bits in BITS["tcp_info"].items()
        if name not in ("time_ns", "state") and not name.startswith("bbr_")
    }
    largest |= {"ssthresh_packets": None, "min_rtt_us": None}  # infinite, and before the first sample
    assert {name: row[name] for name in largest} == largest


def test_a_listening_socket_hides_none_of_those_that_follow(run: RunDirectory) -> None:
    """Before a connection is there the kernel answers with its listener, in a message of the same length."""
    info = bytearray(KNOWN_BYTES)
    struct.pack_into("<II", info, 76, 7, 21)
    listening, established = (_frame(_diag(bytes(info), state), 20) for state in (10, 1))
    (run.raw / "tcp_info.bin").write_bytes(listening + established * 3 + listening + established)
    ingest(run)
    assert [row["cwnd_packets"] for row in store.read(run, "tcp_info").to_pylist()] == [21] * 4


def test_equal_lengths_with_another_layout_are_told_apart(tmp_path: Path) -> None:
    """Two answers of one length, their attributes in another order, give the same values."""
    queue = _attribute(3, struct.pack("<IIIII", 2, 64, 5, 0, 9))
    stats = _attribute(7, _attribute(1, struct.pack("<QI4x", 1000, 3)) + queue)
    kind = _attribute(1, b"bfifo\0")
    header = struct.pack("<BxxxiIII", 0, 4, 0x100000, 0x10001, 0)
    path = tmp_path / "qdisc.bin"
    path.write_bytes(_frame(header + kind + stats, 36) + _frame(header + stats + kind, 36))
    names = ("sent_bytes", "backlog_bytes", "drops_packets", "overlimits")
    records = parse(read_frames(path), locate_qdisc, names)
    assert {name: column.tolist() for name, column in records.columns.items()} == {
        "sent_bytes": [1000, 1000],
        "backlog_bytes": [64, 64],
        "drops_packets": [5, 5],
        "overlimits": [9, 9],
    }
    assert records.identities == [("4", "10:", "1:1", "bfifo")]


def test_old_statistics_are_read_where_there_are_no_new_ones(tmp_path: Path) -> None:
    old = _attribute(3, struct.pack("<QIIIIIII", 1500, 1, 2, 3, 0, 0, 4, 6056))
    path = tmp_path / "qdisc.bin"
    path.write_bytes(_frame(struct.pack("<BxxxiIII", 0, 4, 0x10000, 0xFFFFFFFF, 0) + _attribute(1, b"tbf\0") + old, 36))
    names = ("sent_bytes", "backlog_bytes", "backlog_packets", "drops_packets")
    records = parse(read_frames(path), locate_qdisc, names)
    assert [column.tolist() for column in records.columns.values()] == [[1500], [6056], [4], [2]]
    assert records.identities == [("4", "1:", "root", "tbf")]


def test_a_frame_of_absurd_length_ends_the_file(tmp_path: Path) -> None:
    path = tmp_path / "tcp_info.bin"
    path.write_bytes(_frame(_diag(bytes(248)), 20) + struct.pack("<qIHH", 6, 2**31, 0, 1) + bytes(100))
    frames = read_frames(path)
    assert frames.time_ns.size == 1
    assert "tcp_info.bin at byte" in str(frames.damage[0])
    assert parse(frames, locate_tcp_info, ("cwnd_packets",)).columns["cwnd_packets"].tolist() == [0]


@pytest.mark.parametrize(
    ("number", "text"), [(0xFFFFFFFF, "root"), (0, "none"), (0x10000, "1:"), (0x10001, "1:1"), (0x10_0000, "10:")]
)
def test_handles_are_written_as_tc_writes_them(number: int, text: str) -> None:
    assert handle_of(number) == text


def test_queues_keep_their_names_without_the_interface_collector(tmp_path: Path) -> None:
    def link(a: str, a_interface: str, b: str, b_interface: str) -> VethLink:
        return VethLink(a, a_interface, "", b, b_interface, "")

    links: list[step.Operation] = [link("s", "s0", "r", "r0"), link("r", "r1", "d", "d0")]
    run = make_recorded_run(tmp_path, dataclasses.replace(recorded_plan(), operations=links))
    ingest(run)
    with_interfaces = store.read(run, "qdisc")
    (run.raw / "interface.bin").unlink()
    report = ingest(run)
    assert store.read(run, "qdisc").equals(with_interfaces)
    assert report.sources["qdisc"].problems == []


def test_a_queue_whose_interface_nobody_names_is_reported(run: RunDirectory) -> None:
    (run.raw / "interface.bin").unlink()
    report = ingest(run)
    assert "no interface 3 of r is known by name" in report.sources["qdisc"].problems


def test_iperf3_flows_with_one_port_on_two_hosts_are_counted_once(run: RunDirectory) -> None:
    """The control connection of one has the port of the other's data."""
    plan = recorded_plan()
    ours = dataclasses.replace(plan.flows[0], traffic="iperf3", sink="iperf3", id=2)
    other = dataclasses.replace(
        ours, id=1, source_address="10.0.3.1", source_port=40001, destination_address="10.0.4.1"
    )
    run.plan.write_text(dataclasses.replace(plan, flows=[other, ours]).to_json())
    agent = json.loads((run.raw / "agent.json").read_text())
    agent["flows"][0]["id"] = 1
    (run.raw / "agent.json").write_text(json.dumps(agent))
    probe = ingest(run).sources["tcp_probe"]
    assert (probe.rows, probe.counts["receiver_rows"], probe.counts["control_rows"]) == (374, 544, 0)


@pytest.mark.parametrize(
    ("traffic", "size_bytes", "start_ns"), [("iperf3", 1000, 70), ("iperf3", None, 10), ("python", 1000, 10)]
)
def test_a_transfer_by_iperf3_starts_with_its_data_connection(
    traffic: str, size_bytes: int | None, start_ns: int, run: RunDirectory
) -> None:
    plan = recorded_plan()
    flow = dataclasses.replace(plan.flows[0], traffic=traffic, size_bytes=size_bytes)
    run.plan.write_text(dataclasses.replace(plan, flows=[flow]).to_json())
    agent = json.loads((run.raw / "agent.json").read_text())
    agent["flows"][0] |= {"start_ns": 10, "connected_ns": 70, "end_ns": 90, "bytes_received": 1000}
    (run.raw / "agent.json").write_text(json.dumps(agent))
    ingest(run)
    (row,) = store.read(run, "flow").to_pylist()
    assert (row["start_ns"], row["connected_ns"], row["end_ns"]) == (start_ns, 70, 90)
