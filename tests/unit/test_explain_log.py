# SPDX-License-Identifier: Apache-2.0
"""Logs of a sender: tcp_probe as text, ss, iperf3's JSON, qlog. Each gives what it has, and says what it has not."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest

from howdah.errors import RecordError
from howdah.explain.explained import Explained
from howdah.explain.read import read_files
from howdah.explain.twin import twin_text
from howdah.explain.words import sentence
from howdah.held import HeldBy
from tests.explain.logs import QLOGS, SS, iperf3, iperf3_of, line, qlog, states


def explained(content: str, place: Path) -> Explained:
    file = place / "log"
    file.write_text(content)
    return read_files([file], 1).flows[0]


@pytest.mark.parametrize("form", ["ftrace", "perf", "old"])
def test_tcp_probe_s_lines_have_the_exit(form: str, tmp_path: Path) -> None:
    flow = explained("# tracer: nop\n" + "\n".join(line(form, each) for each in states()) + "\n", tmp_path)
    assert flow.source == "tcp_probe"
    assert flow.exit is not None and flow.exit.packets.value == 40
    assert flow.exit.time_s == pytest.approx(0.14, abs=0.011)
    assert flow.exit.cause is None, "which detector spoke is in no line of it"
    assert flow.base_rtt_us.value == 41_000
    assert flow.rate_bits_per_second.value is None and "packets" in flow.rate_bits_per_second.reason


@pytest.mark.parametrize("one_line", [False, True])
def test_ss_names_the_algorithm_and_what_the_kernel_counts(one_line: bool, tmp_path: Path) -> None:
    flow = explained(SS.replace("443\n\t", "443   ") if one_line else SS, tmp_path)
    assert flow.algorithm == ["cubic"]
    assert flow.base_rtt_us.value == pytest.approx(40_050)
    assert flow.duration_s == pytest.approx(0.1)
    assert flow.holding is not None and flow.holding.share(HeldBy.RECEIVE_BUFFER) == pytest.approx(0.5)
    assert flow.exit is not None and flow.exit.packets.low == 10 and flow.retransmitted_packets == 7
    assert flow.rate_bits_per_second.value is None and flow.rate_bits_per_second.low == pytest.approx(9.1e6)


def test_iperf3_s_intervals_are_means_and_tell_no_exit(tmp_path: Path) -> None:
    flow = explained(json.dumps(iperf3()), tmp_path)
    assert flow.source == "iperf3" and flow.algorithm == ["bbr"]
    assert flow.base_rtt_us.value == 39_000 and flow.data_bytes == 1_000_000
    assert flow.peak_packets.value == 40 and flow.retransmitted_packets == 6
    assert flow.exit is None and flow.why_no_exit


@pytest.mark.parametrize("before", ["", "skmem:(r0,rb131072,t0,tb87040) ", "timer:(on,200ms,0) uid:1 ino:7 sk:1 <-> "])
def test_ss_names_the_algorithm_behind_whatever_options_add(before: str, tmp_path: Path) -> None:
    flow = explained(SS.replace("\t ts sack cubic", f"\t {before}ts sack ecn cubic"), tmp_path)
    assert flow.algorithm == ["cubic"]


def test_ss_without_times_has_no_duration_and_claims_none(tmp_path: Path) -> None:
    flow = explained("\n".join(each for each in SS.splitlines() if not each.startswith("1700")), tmp_path)
    assert flow.exit is not None and flow.exit.packets.value == 28
    assert flow.duration_s == 0 and flow.goodput_bits_per_second == 0 and "time" in flow.unknown
    assert "before reading 2" in sentence(flow)
    twin = twin_text(flow, "twin")
    assert "claims:" not in twin and "exit_time_s" not in twin


def test_streams_of_iperf3_share_the_path(tmp_path: Path) -> None:
    """Eight one way: the bound of the rate is of all; two ways: of each."""
    flow = explained(json.dumps(iperf3_of([True] * 8)), tmp_path)
    assert flow.rate_bits_per_second.low == 160e6 and any("8 streams" in note for note in flow.notes)
    file = tmp_path / "log"
    file.write_text(json.dumps(iperf3_of([True, False])))
    both = read_files([file], 8).flows
    assert [each.rate_bits_per_second.low for each in both] == [20e6, 20e6]
    assert sorted(each.retransmitted_packets is None for each in both) == [False, True]


def test_an_iperf3_that_was_interrupted_says_so(tmp_path: Path) -> None:
    document = iperf3_of([True]) | {"end": {}, "error": "interrupt - the client has terminated"}
    flow = explained(json.dumps(document), tmp_path)
    assert flow.data_bytes == 10_000_000 and any("error" in note for note in flow.notes)


def test_iperf3_s_stream_of_lines_is_its_document(tmp_path: Path) -> None:
    document = iperf3_of([True])
    events = [{"event": "start", "data": document["start"]}]
    events += [{"event": "interval", "data": each} for each in document["intervals"]]
    lines = "\n".join(json.dumps(each) for each in [*events, {"event": "end", "data": document["end"]}])
    for content in (lines, lines[:-20]):
        assert explained(content, tmp_path).data_bytes == 10_000_000


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (json.dumps({"start": {}, "intervals": [], "end": {}, "error": "refused"}), "before its first interval"),
        (json.dumps(iperf3_of([True], protocol="UDP")), "without TCP"),
        (json.dumps({"qlog_version": "0.3", "traces": []}), "no trace with events"),
        (json.dumps({"qlog_version": "0.3", "traces": [{"error_description": "x"}]}), "no trace with events"),
        (
            json.dumps({"qlog_version": "draft-02", "traces": [{"events": [[0, "a", "b", {}]]}]}),
            "as before version 0.3",
        ),
    ],
)
def test_a_log_that_tells_nothing_says_why(content: str, why: str, tmp_path: Path) -> None:
    with pytest.raises(RecordError, match=why):
        explained(content, tmp_path)


@pytest.mark.parametrize("form", QLOGS)
def test_a_qlog_has_the_sender_s_own_window(form: str, tmp_path: Path) -> None:
    flow = explained(qlog(form), tmp_path)
    assert flow.source == "qlog" and flow.base_rtt_us.value == 40_000
    assert flow.exit is not None and flow.exit.packets.value == pytest.approx(80)


def test_a_range_of_a_qlog_without_end_takes_no_time(tmp_path: Path) -> None:
    """An ACK may name all numbers up to 2^62; only those that were sent are looked at."""
    sent = {"time": 1, "name": "transport:packet_sent", "data": {
        "header": {"packet_type": "1RTT", "packet_number": 7}, "raw": {"length": 1200},
        "frames": [{"frame_type": "stream", "stream_id": 0, "offset": 0, "length": 1100}]}}  # fmt: skip
    state = {"time": 0, "name": "recovery:metrics_updated", "data": {"congestion_window": 12000, "smoothed_rtt": 40}}
    acks = [{"time": at, "name": "transport:packet_received", "data": {
        "header": {"packet_type": "1RTT", "packet_number": at},
        "frames": [{"frame_type": "ack", "acked_ranges": [[0, 1 << 62]]}]}} for at in (40, 80)]  # fmt: skip
    flow = explained("".join(f"\x1e{json.dumps(each)}\n" for each in [state, sent, *acks]), tmp_path)
    assert flow.data_bytes == 1100


@pytest.mark.parametrize("seed", range(30))
def test_a_hostile_log_ends_in_flows_or_one_message(seed: int, tmp_path: Path) -> None:
    drawn = random.Random(seed)
    probe = "\n".join(line(drawn.choice(["ftrace", "perf", "old"]), each) for each in states())
    document = json.dumps({"start": {}, "intervals": [{"streams": [{"socket": 1, "bytes": 5, "end": 1}]}], "end": {}})
    content = list(drawn.choice([probe, SS, document]))
    for _ in range(drawn.choice([3, 60])):
        at = drawn.randrange(len(content))
        content[at] = drawn.choice(["9" * 30, "-", "\x1b", "{", "null", "1e999", "", "0x" + "f" * 20, "\n"])
    file = tmp_path / "hostile"
    file.write_text("".join(content))
    try:
        read_files([file], 3)
    except RecordError:
        return
