# SPDX-License-Identifier: Apache-2.0
"""A qlog of a QUIC sender, read as howdah reads those of its own runs."""

from __future__ import annotations

import numpy as np

from howdah.explain.estimate import Estimate
from howdah.explain.explained import Explained, ExplainedExit
from howdah.explain.sender_log import STAYED, SenderLog, explain_log
from howdah.ingest.qlog import Qlog, parse_qlog
from howdah.measure.cause import LOSS

SOURCE = "qlog"


def explain_qlog(data: bytes, file: str) -> tuple[list[Explained], list[str]]:
    """The flow of a log and what is wrong with the file."""
    try:
        found = parse_qlog(data, file)
    except (LookupError, TypeError, ValueError, AttributeError, OverflowError):
        return [], ["its events are not those of QUIC's recovery"]
    states = found.acks
    if len(states) < 2:
        return [], found.problems or ["it has no ACK of a sender"]
    size = max(found.datagram_bytes, 1)
    window = np.array([each.cwnd_bytes // size for each in states], np.int64)
    least = [each.min_rtt_us for each in states if each.min_rtt_us]
    log = SenderLog(
        "QUIC connection", file, SOURCE, np.array([each.time_ns for each in states], np.int64), window,
        np.array([-1 if each.ssthresh_bytes is None else each.ssthresh_bytes // size for each in states], np.int64),
        np.array([each.in_flight_bytes // size for each in states], np.int64),
        np.array([each.smoothed_rtt_us for each in states], np.int64),
        np.array([each.lost_packets for each in states], np.int64), every_ack=True, timed=True,
        mss_bytes=found.stream_bytes or None, min_rtt_us=float(min(least)) if least else None,
        bytes_acked=states[-1].acknowledged_bytes,
    )  # fmt: skip
    leaves = _exit(found, size, states[0].time_ns)
    return [explain_log(log, leaves, "" if leaves else STAYED)], found.problems


def _exit(found: Qlog, size: int, begin_ns: int) -> ExplainedExit | None:
    left = found.left
    if left is None:
        return None
    packets = left.cwnd_bytes / size
    estimate = Estimate(packets, packets, packets, "the sender's own window")
    cause = LOSS if left.lost_packets and left.is_cut else None
    evidence = "packets were declared lost, and the window was cut" if cause else "the threshold came to the window"
    if cause is None and left.min_rtt_us:
        rise = left.latest_rtt_us - left.min_rtt_us
        evidence += f"; the last round trip was {rise / 1000:.1f} ms above the least"
    number = sum(1 for each in found.acks if each.time_ns <= left.time_ns)
    return ExplainedExit(
        (left.time_ns - begin_ns) / 1e9, estimate, _rounds(found, number), cause, cause is not None, evidence
    )


def _rounds(found: Qlog, until: int) -> int:
    """Round trips that ended before an ACK: each ends when what was sent at its begin is acknowledged."""
    number, end = 0, found.acks[0].sent_bytes
    for each in found.acks[:until]:
        if each.acknowledged_bytes >= end:
            number, end = number + 1, each.sent_bytes
    return number
