# SPDX-License-Identifier: Apache-2.0
"""What each receiver did, by tshark: the same capture, read and counted by somebody else, gives the same numbers."""

from __future__ import annotations

import itertools
import shutil
import subprocess
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pytest

from howdah.plan.plan import Plan
from howdah.record import table as store
from howdah.record.directory import RunDirectory
from tests.guest.guest_run import failures, measures, plan_of, require_engine
from tests.guest.receiver_capture import CAPTURE, HEAVY_LOSS
from tests.guest.shared_run import shared_run

pytestmark = pytest.mark.guest

PORT = 5001
FIELDS = ("frame.time_epoch", "tcp.srcport", "tcp.flags", "tcp.seq", "tcp.len", "tcp.ack", "tcp.window_size")
SACK_BLOCKS = "tcp.options.sack.count"
SYN, RST, ACK = 2, 4, 16


@dataclass(frozen=True)
class Seen:
    """A segment as tshark prints it; sequence numbers count from the first byte of data, as the tables' do."""

    time_ns: int
    by_receiver: bool
    flags: int
    sequence: int
    payload_bytes: int
    acknowledged: int
    window_bytes: int
    sack_blocks: int

    @property
    def is_ack(self) -> bool:
        return self.by_receiver and self.flags & (SYN | RST | ACK) == ACK


@dataclass
class Hole:
    end: int
    told_ns: int | None = None
    repaired: bool = False


@dataclass
class Told:
    """What a receiver did, segment by segment."""

    acks: int = 0
    counts: list[int] = field(default_factory=list)  # data segments before each ACK while nothing was missing
    blocks: list[int] = field(default_factory=list)  # of each ACK while data were missing
    delays_ns: list[int] = field(default_factory=list)
    repairs_ns: list[int] = field(default_factory=list)
    holes: list[Hole] = field(default_factory=list)
    windows: list[tuple[int, int]] = field(default_factory=list)  # time (ns) and bytes


def by_tshark(capture: Path) -> list[Seen]:
    program = shutil.which("tshark")
    if program is None:
        pytest.skip("tshark is not installed: setup/packages-test.txt lists it")
    command = [program, "-r", str(capture), "-Y", "tcp", "-T", "fields"]
    command += [word for name in (*FIELDS, SACK_BLOCKS) for word in ("-e", name)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return [_seen(*line.split("\t")) for line in done.stdout.splitlines()]


def _seen(time: str, port: str, flags: str, sequence: str, size: str, acknowledged: str, *rest: str) -> Seen:
    window, blocks = rest
    seconds, _, fraction = time.partition(".")
    return Seen(
        int(seconds) * 10**9 + int(fraction),
        int(port) == PORT,
        int(flags, 16),
        int(sequence) - (not int(flags, 16) & SYN),
        int(size),
        int(acknowledged) - 1,
        int(window),
        int(blocks or 0),
    )


def told(segments: list[Seen]) -> Told:
    found = Told()
    highest = acked = waited = 0
    waiting: list[Seen] = []
    for segment in segments:
        open_ = any(hole.end > acked for hole in found.holes)
        if not segment.by_receiver and segment.payload_bytes:
            waited += 1
            if segment.sequence > highest:
                found.holes.append(Hole(segment.sequence))
            elif segment.sequence == highest and not open_:
                waiting.append(segment)
            highest = max(highest, segment.sequence + segment.payload_bytes)
        elif segment.is_ack and highest:
            acked = max(acked, segment.acknowledged)
            found.acks += 1
            found.windows.append((segment.time_ns, segment.window_bytes))
            if any(hole.end > acked for hole in found.holes):
                found.blocks.append(segment.sack_blocks)
            else:
                found.counts.append(waited)
            waited = 0
            covered = [each for each in waiting if each.sequence + each.payload_bytes <= acked]
            found.delays_ns += [segment.time_ns - each.time_ns for each in covered]
            waiting = waiting[len(covered) :]
            _repair(found, acked, segment.time_ns)
    return found


def _repair(found: Told, acked: int, time_ns: int) -> None:
    for hole in found.holes:
        if hole.told_ns is None:
            hole.told_ns = time_ns
        if hole.end <= acked and not hole.repaired:
            hole.repaired = True
            found.repairs_ns.append(time_ns - hole.told_ns)


def offset_ns(directory: RunDirectory, segments: list[Seen]) -> int:
    """From the capture's clock to the run's. The table has what tshark prints, segment by segment."""
    rows = store.read(directory, "segment").to_pylist()
    assert len(rows) == len(segments)
    offsets = set()
    for row, seen in zip(rows, segments, strict=True):
        offsets.add(row["time_ns"] - seen.time_ns)
        assert (row["flow"], row["end"], row["sent_by"] == "receiver") == (1, "receiver", seen.by_receiver)
        assert (row["flags"], row["sequence_bytes"]) == (seen.flags, seen.sequence)
        assert (row["payload_bytes"], row["window_bytes"]) == (seen.payload_bytes, seen.window_bytes)
        assert row["ack_bytes"] == (seen.acknowledged if seen.flags & ACK else None)
        assert row["sack_blocks"] == seen.sack_blocks
    (offset,) = offsets
    return int(offset)


def expected(found: Told, plan: Plan, exit_ns: int) -> dict[str, float]:
    """The measures; ``exit_ns`` is when the flow left slow start, by the clock of the run."""
    few = {0: "of_none", 1: "of_one", 2: "of_two"}
    bins = Counter(few.get(count, "of_3_to_8" if count <= 8 else "of_more") for count in found.counts)
    names = (*few.values(), "of_3_to_8", "of_more")
    delays, repairs = (np.array(each) for each in (found.delays_ns, found.repairs_ns))
    bdp = plan.path.rate_bits_per_second * plan.flows[0].rtt_us / 8e6 / plan.path.frame_bytes
    offered = [(time_ns, window / 1448 / bdp) for time_ns, window in found.windows]
    return {
        "acks_sent_packets": found.acks,
        "segments_per_ack": sum(found.counts) / len(found.counts),
        "most_segments_per_ack": max(found.counts),
        **{f"acks_{name}_share": bins[name] / len(found.counts) for name in names},
        "ack_delay_median_us": float(np.median(delays)) / 1000,
        "ack_delay_p95_us": float(np.quantile(delays, 0.95)) / 1000,
        "ack_delay_most_us": int(delays.max()) / 1000,
        "sack_blocks_per_ack": sum(found.blocks) / len(found.blocks),
        "most_sack_blocks": max(found.blocks),
        "holes": len(found.holes),
        "hole_repair_median_s": float(np.median(repairs)) / 1e9,
        "hole_repair_most_s": int(repairs.max()) / 1e9,
        "offered_window_least_bdp": min(share for time_ns, share in offered if time_ns <= exit_ns),
        "offered_window_most_bdp": max(share for _, share in offered),
        "offered_window_bdp_time_s": next(time_ns for time_ns, share in offered if share >= 1) / 1e9,
    }


def lag_s(directory: RunDirectory, windows: list[tuple[int, int]], exit_ns: int) -> float:
    """The longest time for which twice a window of slow start was not offered, ACK by ACK."""
    probe = store.read(directory, "tcp_probe").to_pylist()
    longest = 0
    for before, after in itertools.pairwise(probe):
        if before["time_ns"] <= exit_ns:
            enough = [time_ns for time_ns, window in windows if window >= 2 * 1448 * after["cwnd_packets"]]
            longest = max(longest, min(enough[0] if enough else exit_ns, exit_ns) - before["time_ns"])
    return longest / 1e9


@pytest.mark.parametrize("receiver", ["linux", "stretch-ack", "windows-xp"])
def test_tshark_counts_the_same(receiver: str) -> None:
    engine = require_engine()
    plan = plan_of(*HEAVY_LOSS, CAPTURE, f"receiver={receiver}")
    directory, verdict = shared_run(engine, plan)
    assert verdict.verdict == "pass", failures(verdict)
    segments = by_tshark(directory.raw / "pcap" / "r1-r1-eth0.pcap")
    shift_ns = offset_ns(directory, segments)
    found = told(segments)
    assert len(found.holes) > 100, "too little was lost"
    found.windows = [(time_ns + shift_ns, window) for time_ns, window in found.windows]
    measured = measures(directory)
    assert measured["exit_time_s"], "the flow starts at 0"
    exit_ns = round(measured["exit_time_s"] * 1e9)
    told_by_tshark = expected(found, plan, exit_ns)
    assert {name: measured[name] for name in told_by_tshark} == pytest.approx(told_by_tshark, rel=1e-12)
    assert measured["autotuning_lag_s"] == pytest.approx(lag_s(directory, found.windows, exit_ns), rel=1e-12)
    info = [row for row in store.read(directory, "tcp_info").to_pylist() if row["end"] == "sender"]
    assert measured["receive_window_limited_s"] == max(row["rwnd_limited_us"] for row in info) / 1e6
    known = {row["snd_wnd_bytes"] for row in info} - {0}  # before the handshake
    assert known <= {segment.window_bytes for segment in segments}
