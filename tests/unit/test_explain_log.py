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
from howdah.held import HeldBy

MSS = 1448


def explained(content: str, place: Path) -> Explained:
    file = place / "log"
    file.write_text(content)
    return read_files([file], 1).flows[0]


def _states() -> list[tuple[float, int, int, int, int]]:
    """Time, nxt, una, window and threshold (0: none) of a sender that leaves slow start at 40 packets."""
    found, una, cwnd = [], 0, 10
    for number in range(80):
        threshold = 0 if cwnd < 40 else 40
        found.append((100 + number * 0.01, una + cwnd * MSS, una, cwnd, threshold))
        una += 2 * MSS
        cwnd = min(cwnd + 2, 40)
    return found


def _line(form: str, state: tuple[float, int, int, int, int], base: int = 0xFFFFF000) -> str:
    time, nxt, una, cwnd, threshold = state
    nxt, una, threshold = (base + nxt) & 0xFFFFFFFF, (base + una) & 0xFFFFFFFF, threshold or 2147483647
    if form == "old":
        return f"{time:.6f} 192.0.2.1:40000 198.51.100.2:443 32 {nxt:#x} {una:#x} {cwnd} {threshold} 65535 41000 9"
    fields = (
        f"family=AF_INET src=192.0.2.1:40000 dest=198.51.100.2:443 mark=0x0 data_len=0 snd_nxt={nxt:#x}"
        f" snd_una={una:#x} snd_cwnd={cwnd} ssthresh={threshold} snd_wnd=65535 srtt=41000 rcv_wnd=65535 sock_cookie=5"
    )
    if form == "perf":
        return f"swapper     0 [001] {time:.6f}: tcp:tcp_probe: {fields}"
    return f"          <idle>-0       [001] ..s2. {time:.6f}: tcp_probe: {fields}"


@pytest.mark.parametrize("form", ["ftrace", "perf", "old"])
def test_tcp_probe_s_lines_have_the_exit(form: str, tmp_path: Path) -> None:
    flow = explained("# tracer: nop\n" + "\n".join(_line(form, each) for each in _states()) + "\n", tmp_path)
    assert flow.source == "tcp_probe"
    assert flow.exit is not None and flow.exit.packets.value == 40
    assert flow.exit.time_s == pytest.approx(0.14, abs=0.011)
    assert flow.exit.cause is None, "which detector spoke is in no line of it"
    assert flow.base_rtt_us.value == 41_000
    assert flow.rate_bits_per_second.value is None and "packets" in flow.rate_bits_per_second.reason


SS = """\
1700000000.10
State Recv-Q Send-Q Local Address:Port Peer Address:Port Process
ESTAB 0      1000   192.0.2.1:40000      198.51.100.2:443
\t ts sack cubic wscale:7,7 rto:240 rtt:40.1/0.5 mss:1448 cwnd:10 bytes_acked:1 busy:40ms unacked:10 minrtt:40.1
1700000000.20
ESTAB 0      1000   192.0.2.1:40000      198.51.100.2:443
\t ts sack cubic rtt:44.1/0.5 mss:1448 cwnd:28 ssthresh:28 bytes_acked:804001 retrans:0/7 delivery_rate 9.1Mbps \
busy:140ms rwnd_limited:70ms(50.0%) unacked:30 minrtt:40.05 snd_wnd:64256
"""


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
    rows = [
        {"streams": [{"socket": 5, "start": at / 10, "end": (at + 1) / 10, "bytes": 250_000, "bits_per_second": 20e6,
                      "retransmits": at, "snd_cwnd": 10 * MSS * (at + 1), "rtt": 40_000 + at, "snd_wnd": 65536}]}
        for at in range(4)
    ]  # fmt: skip
    end = {"streams": [{"sender": {"socket": 5, "min_rtt": 39_000}}], "sender_tcp_congestion": "bbr"}
    document = {"start": {"tcp_mss_default": MSS}, "intervals": rows, "end": end}
    flow = explained(json.dumps(document), tmp_path)
    assert flow.source == "iperf3" and flow.algorithm == ["bbr"]
    assert flow.base_rtt_us.value == 39_000 and flow.data_bytes == 1_000_000
    assert flow.peak_packets.value == 40 and flow.retransmitted_packets == 6
    assert flow.exit is None and flow.why_no_exit


def test_a_qlog_has_the_sender_s_own_window(tmp_path: Path) -> None:
    events: list[dict[str, object]] = []
    number = 0
    window, offset = 12_000, 0
    for at in range(6):
        state = {"congestion_window": window, "bytes_in_flight": window, "smoothed_rtt": 40.0, "latest_rtt": 41.0}
        state |= {"min_rtt": 40.0, **({"ssthresh": window} if at > 3 else {})}
        events.append({"time": at * 40.0, "name": "recovery:metrics_updated", "data": state})
        first = number
        for _ in range(10):
            frame = {"frame_type": "stream", "stream_id": 0, "offset": offset, "length": 1100}
            header = {"packet_type": "1RTT", "packet_number": number}
            events.append({"time": at * 40.0 + 1, "name": "transport:packet_sent",
                           "data": {"header": header, "raw": {"length": 1200}, "frames": [frame]}})  # fmt: skip
            number, offset = number + 1, offset + 1100
        acked = {"frame_type": "ack", "acked_ranges": [[first, number - 1]]}
        data = {"header": {"packet_type": "1RTT", "packet_number": at}, "frames": [acked]}
        events.append({"time": at * 40.0 + 40, "name": "transport:packet_received", "data": data})
        window *= 2 if at < 3 else 1
    content = "".join(f"\x1e{json.dumps(each)}\n" for each in [{"qlog_version": "0.3"}, *events])
    flow = explained(content, tmp_path)
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
    probe = "\n".join(_line(drawn.choice(["ftrace", "perf", "old"]), each) for each in _states())
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
