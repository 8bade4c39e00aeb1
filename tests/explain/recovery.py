# SPDX-License-Identifier: Apache-2.0
"""How well ``howdah explain`` recovers what a run knows of its path: each answer is right, wrong, or not given.

``python -m tests.explain table RUNS`` prints the table of all drawn runs below a directory of experiments.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from howdah.explain.estimate import Estimate
from howdah.explain.explained import Explained
from howdah.explain.loss import POLICER, QUEUE, RANDOM
from howdah.explain.read import read_files
from tests.explain.damage import DAMAGES, read
from tests.explain.drawn import PLACES

RIGHT, WRONG, NOT_GIVEN = "right", "wrong", "not given"
RTT_SHARE, RATE_SHARE, BUFFER_SHARE = 0.01, 0.02, 0.1
QUEUED_BYTES = 16 * 1514  # a queue that lasts; readings of it see a burst by chance
FILLED = 0.93  # of the buffer: the largest peak that readings of a queue show of a full one
# Bytes that tunnels and tags add to a frame of 1514.
ADDED_BYTES = {
    "VLAN": 4, "QinQ": 8, "MPLS": 8, "PPPoE": 8, "IPv6": 28, "GRE": 28, "VXLAN": 50, "Geneve": 58, "ERSPAN": 50,
    "IPIP": 20, "6in4": 48,
}  # fmt: skip


@dataclass(frozen=True)
class Truth:
    """What a run knows of its path and its flow."""

    seed: int
    plan: dict[str, Any]
    metrics: dict[str, Any]
    taps: dict[str, Path]


def truth(run: Path, seed: int) -> Truth:
    rows = json.loads((run / "metrics.json").read_text())
    rows = rows if isinstance(rows, list) else rows["rows"]
    metrics: dict[str, Any] = {}
    for row in rows:
        metrics.setdefault(row["metric"], row["value"])
    taps = {}
    for name, place in PLACES.items():
        for file in (run / "raw" / "pcap").glob(f"{place.replace(':', '-')}.pcap*"):
            taps[name] = file
    return Truth(seed, json.loads((run / "plan.json").read_text()), metrics, taps)


def outcomes(known: Truth, flow: Explained, damage: str) -> dict[str, str]:
    """Each question with its answer's worth; a question that the run does not decide is left out."""
    path, metrics = known.plan["path"], known.metrics
    added = 1 + ADDED_BYTES.get(damage, 0) / 1514
    rate, full = path["rate_bits_per_second"] * added, path["buffer_bytes"] * added
    found = {"base RTT": _near(flow.base_rtt_us, path["rtt_us"], metrics["min_rtt_us"], RTT_SHARE)}
    worth = _near(flow.rate_bits_per_second, rate, rate, RATE_SHARE)
    # A path that never had a queue may be faster than the flow: no rate is right there, and a bound must hold.
    if metrics["queue_peak_bytes"] >= QUEUED_BYTES or worth == WRONG or flow.rate_bits_per_second.known:
        found["rate"] = worth
    else:
        found["rate, no queue"] = RIGHT
    if not _holds(flow.buffer_bytes, full):
        found["buffer"] = WRONG
    elif metrics.get("dropped_packets") and metrics["queue_peak_bytes"] >= FILLED * path["buffer_bytes"]:
        found["buffer"] = _near(flow.buffer_bytes, full, full, BUFFER_SHARE)
    found["cause"] = _cause(flow, metrics)
    dropper = _dropper(known)
    if dropper is not None and flow.retransmitted_packets:
        found["what lost"] = NOT_GIVEN if flow.loss_by is None else RIGHT if flow.loss_by == dropper else WRONG
    time_s = metrics.get("exit_time_s")
    if time_s is not None and flow.exit is not None:
        found["exit"] = RIGHT if abs(flow.exit.time_s - time_s) <= metrics["max_rtt_us"] / 1e6 else WRONG
    elif time_s is not None:
        found["exit"] = RIGHT if _hidden(flow, metrics) else NOT_GIVEN
    return found


def can_tell(flow: Explained, tap: str, damage: str) -> bool:
    """Whether a recording holds what the questions ask: its begin, a clock finer than round trips, and, away from the
    sender, time stamps. By what befell it, not by what was found."""
    if damage in ("cut start", "clock of 10 ms"):
        return False
    said = flow.options["receiver"]
    return tap == "sender" or (damage != "snaplen 64" and said is not None and said.time_stamps)


def reason_of(flow: Explained, question: str) -> str:
    """What the explanation itself says of a question that it does not answer."""
    estimates = {"base RTT": flow.base_rtt_us, "rate": flow.rate_bits_per_second, "buffer": flow.buffer_bytes}
    if question in estimates:
        found = estimates[question]
        return found.reason or f"{found.value:.4g} ({found.low} to {found.high}), {found.how}"
    if question == "what lost":
        return flow.loss_words
    return flow.exit.evidence if flow.exit is not None else flow.why_no_exit


def _dropper(known: Truth) -> str | None:
    """What dropped the packets, where only one thing did."""
    if known.metrics.get("policer_drops_packets"):
        return None if known.metrics.get("dropped_packets") else POLICER
    dropped, by_chance = known.metrics.get("dropped_packets"), known.plan["path"]["loss_ratio"]
    if by_chance:
        return None if dropped else RANDOM
    return QUEUE if dropped else None


def _cause(flow: Explained, metrics: dict[str, Any]) -> str:
    cause = metrics.get("exit_cause")
    if flow.exit is not None:
        if flow.exit.cause is None:
            return NOT_GIVEN
        return RIGHT if flow.exit.cause == cause else WRONG
    if cause is None:
        return RIGHT if flow.limit is not None else NOT_GIVEN
    return RIGHT if _hidden(flow, metrics) else NOT_GIVEN


def _hidden(flow: Explained, metrics: dict[str, Any]) -> bool:
    """A window of congestion that leaves slow start behind a receive window is seen by nobody outside."""
    return flow.limit == "receive-window" and metrics["held_back_by"] == "receive-buffer"


def _near(found: Estimate, least: float, most: float, share: float) -> str:
    """Right within a share of the truth, which may be a range: a path whose delay varies. An interval that is wider,
    and has the truth in it, says that the number is not known so well; one without the truth is wrong."""
    if not _holds(found, least, most):
        return WRONG
    if found.value is None:
        return NOT_GIVEN
    if (1 - share) * least <= found.value <= (1 + share) * most:
        return RIGHT
    return WRONG if found.within(share) else NOT_GIVEN


def _holds(found: Estimate, least: float, most: float | None = None) -> bool:
    """Whether the interval, which may be open, has the truth in it, or a part of its range."""
    low = found.low if found.low is not None else 0.0
    high = found.high if found.high is not None else float("inf")
    return low <= (least if most is None else most) and high >= least


def explained(capture: Path, damage: str, directory: Path) -> Explained:
    """The largest flow of a capture after a damage."""
    file = directory / "recording"
    file.write_bytes(DAMAGES[damage](read(capture)))
    return read_files([file], 1).flows[0]


def recorded(runs: Path) -> Iterator[Truth]:
    for experiment in sorted(runs.glob("drawn-*"), key=lambda each: int(each.name.rpartition("-")[2])):
        for metrics in sorted(experiment.glob("*/metrics.json")):
            yield truth(metrics.parent, int(experiment.name.rpartition("-")[2]))
