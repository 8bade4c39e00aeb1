# SPDX-License-Identifier: Apache-2.0
"""What held a flow back, as a clause of a sentence: from the measures that say it, where the runs have them."""

from __future__ import annotations

from collections import Counter

from howdah.number import significant
from howdah.report.repeated import HELD_BY, HELD_SHARE, HELD_WINDOW, Repeated
from howdah.report.subject import Subject

_ORDINARY = ("congestion-window", "bandwidth")  # which need no word beside an exit
_KIB, _MIB = 1024, 1024**2
_WORDS = {
    "congestion-window": "the congestion window, still growing, held it",
    "bandwidth": "the path's rate held it",
    "receive-buffer": "the receive window held it{window}",
    "autotuning": "the receive window, which grew later than the sender needed, held it{window}",
    "handshake-window": "the unscaled window of the handshake held it{window}",
    "send-buffer": "the send buffer held it",
    "application": "the application had nothing to send",
    "think": "the client thought",
    "pacing": "pacing held it",
    "way-back": "the slow way back held its ACKs",
    "idle-restart": "the window began again after idle time, which held it",
    "timeout": "retransmission timeouts held it",
    "recovery": "the repair of losses held it",
    "window-cut": "the window, cut below what it had been, held it",
}
# What an absent exit says where nothing measured the shares.
_LIMITS = {
    "receive window": "the receive window held it",
    "send buffer": "the send buffer held it",
    "application": "the application had nothing to send",
}


def held(subject: Subject, *, left: bool) -> str:
    """``the receive window held it at 64 KiB for 94 % of the time``; empty where nothing noteworthy did.

    Of a flow that ``left`` its start-up the path's rate and the window are not worth a word.
    """
    kind = _common(subject.of)
    if kind is None:
        return "" if left else _limit(subject)
    if kind not in _WORDS or (left and kind in _ORDINARY):
        return ""
    window = subject.of.median(HELD_WINDOW)
    words = _WORDS[kind].format(window=f" at {_size(window)}" if window else "")
    share = subject.of.median(HELD_SHARE)
    return words if share is None else f"{words} for {significant(share * 100, 2)} % of the time"


def _common(of: Repeated) -> str | None:
    """What held most of the repetitions back."""
    found = of.texts.get(HELD_BY)
    return Counter(found.values()).most_common(1)[0][0] if found else None


def _limit(subject: Subject) -> str:
    for reason in subject.of.reasons("exit_cwnd_bdp"):
        for limit, words in _LIMITS.items():
            if reason.endswith(f"held back by the {limit}"):
                return words
    return ""


def _size(count_bytes: float) -> str:
    """A window as its setting is written: ``64 KiB``, ``2.4 MiB``, ``512 bytes``. One byte less than a power of two
    counts as it."""
    for unit, factor in (("MiB", _MIB), ("KiB", _KIB)):
        if count_bytes + 1 >= factor:
            return f"{significant((count_bytes + 1) // 1 / factor, 3)} {unit}"
    return f"{significant(count_bytes)} bytes"
