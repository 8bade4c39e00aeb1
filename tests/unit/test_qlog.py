# SPDX-License-Identifier: Apache-2.0
"""Logs of QUIC senders: two that stacks wrote in a guest, with the captures of the same runs, and what damage does."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from howdah.ingest.capture import read_packets, udp_payload
from howdah.ingest.qlog import Qlog, read_qlog
from howdah.ingest.quic import info_rows
from tests.unit.path_factory import path_plan as plan

GOLDEN = Path(__file__).parents[1] / "golden" / "quic"
SENDER = ("10.1.1.1", 5001)  # of both captures


def golden(stack: str) -> Qlog:
    return read_qlog(GOLDEN / f"{stack}.qlog")


@pytest.mark.parametrize(("stack", "unlogged"), [("ngtcp2", 0), ("aioquic", 421)])
def test_a_log_has_what_the_capture_has(stack: str, unlogged: int) -> None:
    """aioquic's lengths lack the padding of its one Initial packet."""
    found = golden(stack)
    datagrams, size = udp_payload(read_packets(GOLDEN / f"{stack}.pcap"), *SENDER)
    assert found.problems == []
    assert size - found.sent_bytes == unlogged <= found.unpadded_bytes
    assert datagrams <= found.sent_packets, "packets share datagrams"


def test_the_windows_of_ngtcp2_and_its_exit_by_a_loss() -> None:
    found = golden("ngtcp2")
    assert found.initial_cwnd_bytes == 12_000
    assert found.datagram_bytes == 1444
    assert found.stream_bytes == 1401
    assert found.left is not None
    assert found.left.is_cut
    assert (found.left.lost_packets, found.lost_packets) == (2, 2)
    assert found.left.cwnd_bytes > found.left.ssthresh_bytes
    assert found.left.min_rtt_us == 40_000


def test_acknowledged_bytes_stay_at_the_first_gap() -> None:
    """The capture's receiver got all 60 kB; the stream has a gap from the loss on, as ``snd_una`` of TCP would."""
    acknowledged = [known.acknowledged_bytes for known in golden("ngtcp2").acks]
    assert acknowledged == sorted(acknowledged)
    assert acknowledged[0] == 0
    assert 20_000 < acknowledged[-1] < 60_000
    whole = golden("aioquic")
    assert whole.last is not None
    assert whole.lost_packets == 0
    assert whole.last.sent_bytes == 60_000


def test_what_each_ack_found_is_the_state_before_it() -> None:
    acks = golden("aioquic").acks
    assert acks[0].cwnd_bytes == 12_779, "packets of the handshake were acknowledged"
    assert acks[0].acknowledged_bytes == 0
    assert all(known.sent_bytes >= known.acknowledged_bytes for known in acks)
    assert acks[-1].cwnd_bytes > 12_779


def _sequence(*records: dict[str, Any]) -> bytes:
    return b"".join(b"\x1e" + json.dumps(record).encode() + b"\n" for record in records)


def _sent(time: float, number: int, offset: int, length: int = 1000) -> dict[str, Any]:
    frames = [{"frame_type": "stream", "stream_id": 0, "offset": offset, "length": length}]
    data = {
        "frames": frames,
        "header": {"packet_type": "1RTT", "packet_number": number},
        "raw": {"length": length + 40},
    }
    return {"time": time, "name": "transport:packet_sent", "data": data}


def _acked(time: float, *ranges: list[int]) -> dict[str, Any]:
    frames = [{"frame_type": "ack", "acked_ranges": list(ranges)}]
    data = {"frames": frames, "header": {"packet_type": "1RTT", "packet_number": 0}}
    return {"time": time, "name": "transport:packet_received", "data": data}


def _metrics(time: float, **values: float) -> dict[str, Any]:
    return {"time": time, "name": "recovery:metrics_updated", "data": values}


def _lost(time: float, number: int) -> dict[str, Any]:
    data = {"header": {"packet_type": "1RTT", "packet_number": number}}
    return {"time": time, "name": "recovery:packet_lost", "data": data}


def written(folder: Path, *records: dict[str, Any]) -> Qlog:
    file = folder / "made.qlog"
    file.write_bytes(_sequence({"qlog_version": "0.3"}, *records))
    return read_qlog(file)


def test_a_gap_is_closed_by_the_packet_that_was_given_up_or_by_its_data_sent_again(tmp_path: Path) -> None:
    begin = [_metrics(0, congestion_window=12000), _sent(0, 1, 0), _sent(0, 2, 1000), _sent(0, 3, 2000)]
    lost = [_acked(10, [1], [3]), _lost(10, 2)]
    again = written(tmp_path, *begin, *lost, _sent(11, 4, 1000), _acked(20, [4]), _metrics(20, latest_rtt=10))
    spurious = written(tmp_path, *begin, *lost, _acked(20, [2]), _metrics(20, latest_rtt=10))
    assert [known.acknowledged_bytes for known in again.acks] == [0, 1000]
    assert again.last is not None
    assert spurious.last is not None
    assert again.last.acknowledged_bytes == spurious.last.acknowledged_bytes == 3000


def test_an_exit_without_a_loss_has_the_window_at_it(tmp_path: Path) -> None:
    begin = [_metrics(0, congestion_window=12000), _sent(0, 1, 0), _acked(80, [1])]
    found = written(tmp_path, *begin, _metrics(80, congestion_window=13000, ssthresh=13000, latest_rtt=80))
    assert found.left is not None
    assert (found.left.cwnd_bytes, found.left.lost_packets, found.left.is_cut) == (13000, 0, False)
    assert found.left.time_ns == 80_000_000
    above = written(tmp_path, *begin, _metrics(80, congestion_window=13000, ssthresh=20000))
    assert above.left is None


def test_a_loss_long_before_is_no_reason(tmp_path: Path) -> None:
    begin = [_metrics(0, congestion_window=12000), _sent(0, 1, 0), _lost(10, 1), _sent(11, 2, 0), _acked(80, [2])]
    found = written(tmp_path, *begin, _metrics(80, congestion_window=13000, ssthresh=13000))
    assert found.left is not None
    assert found.left.lost_packets == 0


def test_readings_begin_with_the_first_data_and_not_with_their_ack(tmp_path: Path) -> None:
    """An ACK comes a round trip later, which may be more than readings may begin late."""
    found = written(
        tmp_path,
        *(_metrics(0, congestion_window=12000), _sent(61, 1, 0), _acked(102, [1])),
        *(_metrics(102, congestion_window=13000, latest_rtt=41), _sent(103, 2, 1000), _acked(144, [2])),
    )
    rows = info_rows(plan().flows[0], found, 0, 20_000_000, 150_000_000)
    assert [row["time_ns"] for row in rows] == [ms * 1_000_000 for ms in (80, 100, 120, 140)]
    assert [row["bytes_acked_bytes"] for row in rows] == [0, 0, 1000, 1000]
    assert [row["cwnd_packets"] for row in rows] == [11, 11, 12, 12]


@pytest.mark.parametrize("stack", ["ngtcp2", "aioquic"])
def test_a_log_that_is_cut_short_is_told(tmp_path: Path, stack: str) -> None:
    file = tmp_path / "cut.qlog"
    data = (GOLDEN / f"{stack}.qlog").read_bytes()
    file.write_bytes(data[: len(data) * 2 // 3])
    found = read_qlog(file)
    assert len(found.problems) == 1
    assert "cut short" in found.problems[0]


def test_a_log_that_is_not_there_or_empty_is_told(tmp_path: Path) -> None:
    assert "cannot be read" in read_qlog(tmp_path / "none.qlog").problems[0]
    (tmp_path / "empty.qlog").touch()
    assert "has no events" in read_qlog(tmp_path / "empty.qlog").problems[0]
