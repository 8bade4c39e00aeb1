# SPDX-License-Identifier: Apache-2.0
"""Recordings that are no captures, each in the form that its program writes: of flows whose course is known."""

from __future__ import annotations

import json
from typing import Any

MSS = 1448


def states() -> list[tuple[float, int, int, int, int]]:
    """Time, nxt, una, window and threshold (0: none) of a sender that leaves slow start at 40 packets."""
    found, una, cwnd = [], 0, 10
    for number in range(80):
        threshold = 0 if cwnd < 40 else 40
        found.append((100 + number * 0.01, una + cwnd * MSS, una, cwnd, threshold))
        una += 2 * MSS
        cwnd = min(cwnd + 2, 40)
    return found


def line(form: str, state: tuple[float, int, int, int, int], base: int = 0xFFFFF000) -> str:
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


def iperf3() -> dict[str, Any]:
    """Four intervals of 100 ms at 20 Mbit/s."""
    rows = [
        {"streams": [{"socket": 5, "start": at / 10, "end": (at + 1) / 10, "bytes": 250_000, "bits_per_second": 20e6,
                      "retransmits": at, "snd_cwnd": 10 * MSS * (at + 1), "rtt": 40_000 + at, "snd_wnd": 65536}]}
        for at in range(4)
    ]  # fmt: skip
    end = {"streams": [{"sender": {"socket": 5, "min_rtt": 39_000}}], "sender_tcp_congestion": "bbr"}
    return {"start": {"tcp_mss_default": MSS}, "intervals": rows, "end": end}


def iperf3_of(sends: list[bool], protocol: str = "TCP") -> dict[str, Any]:
    """Four intervals of a second, with a stream of 20 Mbit/s for each of ``sends``: whether this end sends it."""

    def row(socket: int, at: int) -> dict[str, Any]:
        found = {"socket": socket, "start": at, "end": at + 1.0, "bytes": 2_500_000, "bits_per_second": 20e6}
        found |= {"omitted": False, "sender": sends[socket - 5]}
        if sends[socket - 5] and protocol == "TCP":
            found |= {"retransmits": at, "snd_cwnd": 10 * MSS * (at + 1), "snd_wnd": 65536, "rtt": 40_000 + at}
        return found

    sockets = range(5, 5 + len(sends))
    start = {"connected": [], "tcp_mss_default": MSS, "test_start": {"protocol": protocol, "num_streams": len(sends)}}
    ends = [{"sender": {"socket": each, "min_rtt": 39_000}, "receiver": {"socket": each}} for each in sockets]
    intervals = [{"streams": [row(each, at) for each in sockets], "sum": {}} for at in range(4)]
    return {"start": start, "intervals": intervals, "end": {"streams": ends, "sender_tcp_congestion": "cubic"}}


QLOGS = ("0.3 records", "0.3 lines", "0.3 document", "0.4 records")


def qlog(form: str = QLOGS[0]) -> str:
    """Events of a sender that doubles its window four times."""
    events: list[dict[str, Any]] = []
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
    if form == "0.3 document":
        return json.dumps({"qlog_version": "0.3", "traces": [{"events": events}]}, indent=1)
    head: dict[str, object] = {"qlog_version": form[:3], "trace": {"common_fields": {"time_format": "relative"}}}
    if form == "0.4 records":
        head["trace"] = {"common_fields": {"time_format": "relative_to_previous_event"}}
        events = _of_0_4(events)
    mark = "" if form == "0.3 lines" else "\x1e"
    return "".join(f"{mark}{json.dumps(each)}\n" for each in [head, *events])


def _of_0_4(events: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Each with the time since the one before it, and the names of draft-ietf-quic-qlog-quic-events."""
    found, last = [], 0.0
    for event in sorted(events, key=lambda each: float(each["time"])):
        part = str(event["name"]).partition(":")[2]
        name = f"quic:{'recovery_' if part == 'metrics_updated' else ''}{part}"
        found.append({**event, "name": name, "time": event["time"] - last})
        last = event["time"]
    return found
