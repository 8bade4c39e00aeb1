# SPDX-License-Identifier: Apache-2.0
"""What can hold a flow back: the kinds, the metrics that have their shares, and the words for a reader.

T-RAT (Zhang, Breslau, Paxson and Shenker, "On the Characteristics and Origins of Internet Flow Rates", SIGCOMM 2002)
tells flows limited by bandwidth, congestion, transport, receiver window, sender window, application and opportunity.
The kinds here are those of T-RAT, divided where a Linux kernel tells more.

Measures, judge, claims and reports all read this table, so it imports none of them.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum

from howdah.number import significant

NOTABLE_SHARE = 0.05  # of a flow's time: less is not worth a sentence
_KIB, _MIB = 1024, 1 << 20


class Held(StrEnum):
    """One thing that can hold a flow back at an instant; the value is what ``held_back_by`` says."""

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
    def metric(self) -> str:
        """The metric that has its share of a flow's time."""
        return f"held_{self.value.replace('-', '_')}_share"

    @property
    def trat(self) -> str | None:
        """What T-RAT calls it; None where it has no such limit."""
        return _TRAT.get(self)


# What every flow meets, and what its client chose: no fault of an end.
ORDINARY = frozenset({Held.CONGESTION_WINDOW, Held.BANDWIDTH, Held.THINK})
RECEIVE_WINDOW = (Held.RECEIVE_BUFFER, Held.AUTOTUNING, Held.HANDSHAKE_WINDOW)
RECEIVE_WINDOW_METRIC = "held_receive_window_share"  # of the three together

_TRAT = {
    Held.CONGESTION_WINDOW: "transport limited",
    Held.BANDWIDTH: "bandwidth limited",
    **dict.fromkeys(RECEIVE_WINDOW, "receiver window limited"),
    Held.SEND_BUFFER: "sender window limited",
    Held.APPLICATION: "application limited",
    Held.THINK: "application limited",
    Held.TIMEOUT: "congestion limited",
    Held.RECOVERY: "congestion limited",
    Held.WINDOW_CUT: "congestion limited",
    Held.UNKNOWN: "unknown",
}

_WORDS = {
    Held.CONGESTION_WINDOW: "the congestion window, still growing, held it back",
    Held.BANDWIDTH: "it went at the path's rate",
    Held.RECEIVE_BUFFER: "the receive window held it{at}",
    Held.AUTOTUNING: "the receive window, which grew later than the sender needed it, held it back{most}",
    Held.HANDSHAKE_WINDOW: "the handshake's window, which is not scaled, held it{at}",
    Held.SEND_BUFFER: "the send buffer held it back",
    Held.APPLICATION: "the application had nothing to send",
    Held.THINK: "the client was thinking",
    Held.PACING: "pacing held it back",
    Held.WAY_BACK: "the slow way back of the ACKs held it back",
    Held.IDLE_RESTART: "the window's restart after idle{restart} held it back",
    Held.TIMEOUT: "retransmission timeouts held it back",
    Held.RECOVERY: "the repair of losses held it back",
    Held.WINDOW_CUT: "the window, cut below what it had been, held it back",
    Held.UNKNOWN: "what held it back is not known",
}


def held_words(kind: Held | str, share: float, numbers: Mapping[str, float | None]) -> str:
    """A clause such as ``the receive window held it at 64 KiB for 94 % of the time``.

    ``numbers`` may have any metric of the flow by its name, in the unit of metrics.json; those that are not there, or
    have no value, are left out of the clause. Raises ValueError for a kind that there is not.
    """
    window = numbers.get("held_window_bytes")
    before, after = (numbers.get(f"idle_restart_{side}_packets") for side in ("before", "after"))
    clause = _WORDS[Held(kind)].format(
        at=f" at {_size(window)}" if window is not None else " back",
        most=f" (at most {_size(window)})" if window is not None else "",
        restart=f" (from {before:.0f} to {after:.0f} packets)" if before is not None and after is not None else "",
    )
    return f"{clause} for {significant(100 * share, 2)} % of the time"


def _size(size_bytes: float) -> str:
    unit, name = (_MIB, "MiB") if size_bytes >= _MIB else (_KIB, "KiB")
    return f"{significant(size_bytes / unit, 3)} {name}"
