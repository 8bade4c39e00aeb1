# SPDX-License-Identifier: Apache-2.0
"""Readings of a sender's own state, from a log: what they report of its start-up, and what they leave open.

A sender's log has its windows, which no capture has, and no packets, so that what ACKs and losses tell is left open.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from howdah.algorithm import ALGORITHMS
from howdah.explain.estimate import Estimate, absent
from howdah.explain.explained import Explained, ExplainedExit, Source, bare
from howdah.ingest.source import Integers
from howdah.measure.cause import LOSS
from howdah.measure.held import Holding
from howdah.measure.limit import APPLICATION, RECEIVE_WINDOW
from howdah.plan.plan import Flow

Reals = np.ndarray
STAYED = "the window stayed below the threshold"
NO_TIMES = "the log has no times: times are numbers of readings, from 0"


@dataclass
class SenderLog:
    """Readings in order of time, shape (n,); -1 where a reading lacks a value, an infinite threshold is -1 too.

    ``every_ack``: there is a reading for each ACK. ``held`` has seconds of each kind where the sender counted them.
    """

    name: str
    file: str
    source: Source
    time_ns: Integers
    cwnd: Integers
    ssthresh: Integers
    flight_packets: Integers
    rtt_us: Integers
    retransmitted: Integers
    every_ack: bool
    timed: bool  # else ``time_ns`` counts readings, one a second
    mss_bytes: int | None = None
    min_rtt_us: float | None = None
    algorithm: str | None = None
    bytes_acked: int = 0
    window_bytes: Integers = field(default_factory=lambda: np.zeros(0, np.int64))
    fastest_bits_per_second: float | None = None
    holding: Holding | None = None
    notes: list[str] = field(default_factory=list)


def stand_in(algorithm: str) -> Flow:
    """A flow for measures that ask its algorithm; a recording has no plan."""
    return Flow(
        id=1, name="flow1", sender="sender", receiver="receiver", source_address="", source_port=0,
        destination_address="", destination_port=0, algorithm=algorithm, kernel_algorithm=algorithm, traffic="recorded",
        start_us=0, stop_us=0, size_bytes=None, forward_delay_us=0, reverse_delay_us=0, rtt_us=0,
        initial_window_packets=10,
    )  # fmt: skip


def explain_log(log: SenderLog, leaves: ExplainedExit | None, why_no_exit: str) -> Explained:
    """The flow of a log; ``leaves`` is where its reader found the exit."""
    no_packets = f"{log.source} has no packets"
    duration = float(log.time_ns[-1] - log.time_ns[0]) / 1e9 if log.time_ns.size and log.timed else 0.0
    known = log.cwnd[log.cwnd > 0]
    peak = float(log.flight_packets.max()) if log.flight_packets.size and log.flight_packets.max() > 0 else None
    peak = peak if peak is not None else float(known.max()) if known.size else None
    windows = log.window_bytes[log.window_bytes >= 0]
    again = log.retransmitted[log.retransmitted >= 0]
    limit = None
    if leaves is None and log.holding is not None and log.holding.span_s > 0:
        shares = {kind: log.holding.share(kind) for kind in log.holding.seconds}
        most = max(shares, key=lambda kind: shares[kind], default=None)
        limit = {"receive-buffer": RECEIVE_WINDOW, "application": APPLICATION}.get(str(most)) if most else None
    algorithm, words = _algorithm(log.algorithm)
    return bare(
        no_packets,
        name=log.name,
        file=log.file,
        source=log.source,
        at="sender",
        duration_s=duration,
        data_bytes=log.bytes_acked,
        options={},
        mss_bytes=log.mss_bytes,
        initial_window_packets=int(known[0]) if known.size and log.every_ack else None,
        base_rtt_us=_base(log),
        rate_bits_per_second=absent(no_packets, log.fastest_bits_per_second),
        buffer_bytes=_buffer(log, no_packets),
        goodput_bits_per_second=log.bytes_acked * 8 / duration if duration > 0 else 0.0,
        exit=leaves,
        why_no_exit=why_no_exit,
        limit=limit,
        peak_packets=Estimate(peak, peak, None, "the largest reading") if peak is not None else absent(no_packets),
        retransmitted_packets=int(again.max()) if again.size else None,
        receive_window_least_bytes=int(windows.min()) if windows.size else None,
        receive_window_most_bytes=int(windows.max()) if windows.size else None,
        algorithm=algorithm,
        algorithm_words=words,
        holding=log.holding,
        notes=log.notes,
        unknown={} if log.timed else {"time": NO_TIMES},
    )


def _algorithm(said: str | None) -> tuple[list[str], str]:
    if said is None:
        return ["cubic", "reno", "bbr"], "the log does not name it"
    known = [name for name, each in ALGORITHMS.items() if said in (name, each.kernel)]
    if known:
        return [said if said in known else known[0]], "the log names it"
    return ["cubic", "reno", "bbr"], "the log names one that is not known here"


def _base(log: SenderLog) -> Estimate:
    """The least round trip; a mean over ACKs is never below it."""
    if log.min_rtt_us is not None:
        least = log.min_rtt_us
        return Estimate(least, None, 1.01 * least, "the sender's own minimum; a queue may have been there all the time")
    rtt = log.rtt_us[log.rtt_us > 0]
    if not rtt.size:
        return absent(f"{log.source} has no round-trip times")
    least = float(rtt.min())
    return Estimate(least, None, 1.02 * least, "the least smoothed round trip")


def _buffer(log: SenderLog, why: str) -> Estimate:
    rtt = log.rtt_us[log.rtt_us > 0]
    if not rtt.size or log.fastest_bits_per_second is None:
        return absent(why)
    return absent(why, float(rtt.max() - rtt.min()) * log.fastest_bits_per_second / 8e6)


def exit_between(log: SenderLog) -> tuple[ExplainedExit | None, str]:
    """The exit by the first reading with a finite threshold that the window has reached: it was between that reading
    and the one before."""
    left = np.flatnonzero((log.ssthresh >= 0) & (log.cwnd >= log.ssthresh))
    if not left.size:
        return None, STAYED
    at = int(left[0])
    if at == 0:
        return None, "the first reading is behind the exit"
    low, high = sorted((float(log.cwnd[at - 1]), float(max(log.cwnd[at], log.ssthresh[at]))))
    lost = log.retransmitted[at] > max(int(log.retransmitted[at - 1]), 0) if log.retransmitted[at] >= 0 else False
    cut = bool(log.ssthresh[at] < log.cwnd[at - 1])
    cause, evidence = None, "the threshold became finite between two readings; why does not show"
    if lost and cut:
        cause, evidence = LOSS, "the threshold fell below the window, and segments were sent again"
    packets = Estimate(high, low, max(2 * high, float(log.cwnd.max())) if cut else high, "between two readings")
    when = float(log.time_ns[at] - log.time_ns[0]) / 1e9
    return ExplainedExit(when, packets, None, cause, cause is not None, evidence), ""
