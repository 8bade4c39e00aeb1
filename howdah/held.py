# SPDX-License-Identifier: Apache-2.0
"""What can hold a flow back: the kinds, the metrics of their shares, and the words for a reader.

T-RAT (Zhang, Breslau, Paxson and Shenker, "On the Characteristics and Origins of Internet Flow Rates", SIGCOMM 2002)
distinguishes flows limited by bandwidth, congestion, transport, receiver window, sender window, application and
opportunity. The kinds here are those of T-RAT, subdivided where a Linux kernel reports more.

Measures, judge, claims and reports all read this table, so it imports none of them.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum

from howdah.number import significant

NOTABLE_SHARE = 0.05  # of a flow's time: a smaller share is not mentioned
_KIB, _MIB = 1024, 1 << 20


class HeldBy(StrEnum):
    """One thing that can hold a flow back at an instant, with its value in ``held_back_by``."""

    CONGESTION_WINDOW = "congestion-window"
    BANDWIDTH = "bandwidth"
    RECEIVE_BUFFER = "receive-buffer"
    AUTOTUNING = "autotuning"
    HANDSHAKE_WINDOW = "handshake-window"
    SEND_BUFFER = "send-buffer"
    APPLICATION = "application"
    THINK = "think"
    PACING = "pacing"
    WAY_BACK = "way-back"
    IDLE_RESTART = "idle-restart"
    TIMEOUT = "timeout"
    RECOVERY = "recovery"
    WINDOW_CUT = "window-cut"
    UNKNOWN = "unknown"

    @property
    def words(self) -> str:
        """The value as readers see it."""
        return self.value.replace("-", " ")

    @property
    def stem(self) -> str:
        """The value as part of a metric's name."""
        return self.value.replace("-", "_")

    @property
    def metric(self) -> str:
        """The metric for its share of a flow's time."""
        return f"held_{self.stem}_share"


# What every flow meets, or what its client chose: neither end is at fault.
ORDINARY = frozenset({HeldBy.CONGESTION_WINDOW, HeldBy.BANDWIDTH, HeldBy.THINK})
RECEIVE_WINDOW = (HeldBy.RECEIVE_BUFFER, HeldBy.AUTOTUNING, HeldBy.HANDSHAKE_WINDOW)

_WORDS = {
    HeldBy.CONGESTION_WINDOW: "the congestion window, still growing, held it back",
    HeldBy.BANDWIDTH: "it went at the path's rate",
    HeldBy.RECEIVE_BUFFER: "the receive window held it{at}",
    HeldBy.AUTOTUNING: "the receive window, which grew later than the sender needed it, held it back{most}",
    HeldBy.HANDSHAKE_WINDOW: "the handshake's window, which is not scaled, held it{at}",
    HeldBy.SEND_BUFFER: "the send buffer held it back",
    HeldBy.APPLICATION: "the application had nothing to send",
    HeldBy.THINK: "the client was thinking",
    HeldBy.PACING: "pacing held it back",
    HeldBy.WAY_BACK: "the slow way back of the ACKs held it back",
    HeldBy.IDLE_RESTART: "the window's restart after idle{restart} held it back",
    HeldBy.TIMEOUT: "retransmission timeouts held it back",
    HeldBy.RECOVERY: "the repair of losses held it back",
    HeldBy.WINDOW_CUT: "the window, cut below what it had been, held it back",
    HeldBy.UNKNOWN: "what held it back is not known",
}


def held_words(kind: HeldBy | str, share: float, numbers: Mapping[str, float | None]) -> str:
    """Return a clause such as ``the receive window held it at 64 KiB for 94 % of the time``.

    ``numbers`` maps metrics of the flow to values in the units of metrics.json; the clause omits those that are missing
    or None. ``share`` is a share of the flow's time without the client's think time. An unknown kind raises ValueError.
    """
    window = numbers.get("held_window_bytes")
    before, after = (numbers.get(f"idle_restart_{side}_packets") for side in ("before", "after"))
    clause = _WORDS[HeldBy(kind)].format(
        at=f" at {_size(window)}" if window is not None else " back",
        most=f" (at most {_size(window)})" if window is not None else "",
        restart=f" (from {before:.0f} to {after:.0f} packets)" if before is not None and after is not None else "",
    )
    apart = ", think time apart" if numbers.get(HeldBy.THINK.metric) and kind != HeldBy.THINK else ""
    return f"{clause} for {significant(100 * share, 2)} % of the time{apart}"


def _size(size_bytes: float) -> str:
    unit, name = (_MIB, "MiB") if size_bytes >= _MIB else (_KIB, "KiB")
    return f"{significant(size_bytes / unit, 3)} {name}"
