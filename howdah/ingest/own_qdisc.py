# SPDX-License-Identifier: Apache-2.0
"""Counters of a queueing discipline of howdah's own, from RTM_NEWQDISC.

Layout: struct tcmsg, TCA_KIND and, in TCA_STATS2, TCA_STATS_APP: a struct of 64-bit counters of the module.
"""

from __future__ import annotations

from howdah.ingest.netlink import Item, MalformedMessageError, Slot, attributes, skeleton_of, text_of
from howdah.linux.netlink.qdisc import RTM_NEWQDISC, TCA_KIND, TCA_STATS2, TCA_STATS_APP, TCMSG


def locate_counters(
    qdisc: str, what: str, names: tuple[str, ...], answer: bytes, kind: int, start: int, end: int
) -> Item | None:
    """Map one answer; there is one such qdisc at a node, so nothing else tells them apart. ``what`` it is to a reader;
    ``names`` are those of its counters."""
    if kind != RTM_NEWQDISC:
        return None
    if end - start < TCMSG.size:
        raise MalformedMessageError(f"an answer of {end - start} bytes about a {what}")
    found = attributes(answer, start + TCMSG.size, end)
    name = text_of(answer, found.get(TCA_KIND)) or "?"
    if name != qdisc:
        raise MalformedMessageError(f"an answer about a queue of kind {name} instead of a {what}")
    offset, length = found[TCA_KIND]
    fixed = [*skeleton_of(found), (offset, offset + length)]
    slots: dict[str, Slot] = {}
    if TCA_STATS2 in found:
        offset, length = found[TCA_STATS2]
        inner = attributes(answer, offset, offset + length)
        fixed += skeleton_of(inner)
        offset, length = inner.get(TCA_STATS_APP, (0, 0))
        slots = {name: Slot(offset + 8 * n, 8) for n, name in enumerate(names) if 8 * (n + 1) <= length}
    return Item((name,), slots, fixed)
