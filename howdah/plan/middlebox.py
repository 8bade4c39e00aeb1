# SPDX-License-Identifier: Apache-2.0
"""The hop below each delay line that modifies packets: off while the path is measured, on while flows run."""

from __future__ import annotations

import dataclasses

from howdah.errors import ProfileError
from howdah.linux.netlink.discipline.howdah_hop import OPTIONS, MiddleHop
from howdah.number import counted
from howdah.plan.event import Event
from howdah.plan.line import HOP_HANDLE
from howdah.plan.network import Network
from howdah.plan.path import Middlebox, Path
from howdah.plan.perturbation import derived_seed
from howdah.plan.placed import Qdisc
from howdah.plan.qdisc import CLASS_ID, delay_interface, queue_at
from howdah.profile import Cell
from howdah.profile.field import FieldError
from howdah.profile.middlebox import MOST_LOST, lost_packets
from howdah.trait import Traits

HOP_MODULE = MiddleHop.kind
MIN_PMTU_BYTES = 552  # DEFAULT_MIN_PMTU of net/ipv4/route.c: below it, a host clears DF and keeps its packet size


def middlebox(cell: Cell, kind: Traits) -> Middlebox | None:
    """Return the profile's middlebox, resolved. Raise ProfileError if the engine or the path excludes it."""
    path = cell.scenario.path
    asked = path.middlebox
    if asked is None:
        return None
    place = ("path", "middlebox")
    if not kind.own_kernel:
        what = "a middlebox is a kernel module of howdah's, which this engine's kernel does not have"
        raise ProfileError(what, where=cell.place(*place), hint="run it with the uml engine, or leave it out")
    if kind.several_machines:
        what = "a middlebox answers while its queue is held, which locks up a machine of several processors"
        raise ProfileError(what, where=cell.place(*place), hint="run it with the uml engine, or leave it out")
    if path.reorder is not None:
        what = "packets that overtake others pass a middlebox by, because netem sends them on itself"
        raise ProfileError(what, where=cell.place(*place), hint="leave path.reorder or path.middlebox out")
    if asked.forward and path.gso_max_segs != 1:
        name = next(name for name in ("corrupt", "duplicate", "lose") if getattr(asked, name))
        what = (
            f"with path.gso_max_segs: {path.gso_max_segs or 'kernel'} a packet is several frames, and {name} is of one"
        )
        raise ProfileError(what, where=cell.place(*place, name), hint="leave gso_max_segs out")
    try:
        mtu_bytes = asked.mtu_bytes(path.mtu)
    except FieldError as error:
        raise ProfileError(str(error), where=cell.place(*place, *error.path)) from None
    if 0 < mtu_bytes < MIN_PMTU_BYTES and asked.icmp:
        what = f"an MTU of {mtu_bytes} bytes that ICMP reports: hosts take none below {MIN_PMTU_BYTES} (min_pmtu)"
        hint = f"give {MIN_PMTU_BYTES} at least, or icmp: false"
        name = "mtu" if asked.mtu is not None else "overhead"
        raise ProfileError(what, where=cell.place(*place, name), hint=hint)
    lost: set[int] = set()
    for index, written in enumerate(asked.lose):
        at = (*place, "lose", index)
        lost.update(lost_packets(written, cell.place(*at), cell.absolute(written, *at)))
    if len(lost) > MOST_LOST:
        what = f"{len(lost)} packets are lost by number; there can be {MOST_LOST}"
        raise ProfileError(what, where=cell.place(*place, "lose"), hint="path.loss loses a share of all packets")
    tunnel = asked.overhead is not None
    others = {"gso_max_segs": path.gso_max_segs != 1, "policer": path.policer, "link": path.link}
    others |= {"reverse_link": path.reverse_link}
    if tunnel and (wrong := [name for name, there in others.items() if there]):
        what = f"a tunnel's bytes are counted by rate limits, one packet at a time; path.{wrong[0]} does not go with it"
        hint = f"leave one of both out, or give the MTU that the tunnel leaves: mtu: {mtu_bytes}"
        raise ProfileError(what, where=cell.place(*place, "overhead"), hint=hint)
    return Middlebox(
        overhead_bytes=asked.overhead or 0,
        mtu_bytes=mtu_bytes,
        answers=bool(mtu_bytes) and asked.icmp,
        clears_ecn=asked.clear_ecn,
        strips=asked.strips,
        duplicate_ratio=float(asked.duplicate),
        corrupt_ratio=float(asked.corrupt),
        lost=sorted(lost),
    )


def through(path: Path, found: Middlebox | None) -> Path:
    """Return the path with its middlebox. Frames of a tunnel are as large as others: its headers reduce the MSS."""
    if found is None:
        return path
    mss_bytes = path.mss_bytes - found.overhead_bytes
    goodput = path.rate_bits_per_second * mss_bytes / path.frame_bytes
    return dataclasses.replace(path, middlebox=found, mss_bytes=mss_bytes, capacity_goodput_bits_per_second=goodput)


def middlebox_words(of: Middlebox) -> list[str]:
    """Return a description for people."""
    words = []
    if of.mtu_bytes:
        words.append(f"MTU {of.mtu_bytes} bytes, " + ("answered by ICMP" if of.answers else "a black hole"))
    if of.overhead_bytes:
        words.append(f"a tunnel of {of.overhead_bytes} bytes a packet")
    if of.clears_ecn:
        words.append("ECN cleared")
    if of.strips:
        names = [name for name, kind in OPTIONS.items() if kind in of.strips]
        words.append(f"without {' and '.join(names)}")
    if of.lost:
        words.append(f"loses {counted(len(of.lost), 'packet')} by number")
    for verb, ratio in (("duplicates", of.duplicate_ratio), ("damages", of.corrupt_ratio)):
        if ratio:
            words.append(f"{verb} {ratio * 100:g} %")
    return words


def install(cell: Cell, network: Network, asked: Middlebox | None) -> tuple[list[Qdisc], list[Event]]:
    """Return the operations that follow the delay lines, and the events that switch them on and off."""
    operations: list[Qdisc] = []
    changes: list[Event] = []
    for role in ("receiver", "sender") if asked is not None else ():
        assert asked is not None
        ahead = role == "receiver"
        if not ahead and not (asked.mtu_bytes or asked.clears_ecn or asked.strips):
            continue
        for host in network.nodes(role):
            hop = MiddleHop(
                active=True,
                mtu_bytes=asked.mtu_bytes,
                answers=asked.answers,
                clears_ecn=asked.clears_ecn,
                strips=asked.strips,
                duplicate_ratio=asked.duplicate_ratio if ahead else 0.0,
                corrupt_ratio=asked.corrupt_ratio if ahead else 0.0,
                lost=asked.lost if ahead else [],
                seed=derived_seed(cell.scenario.seed, "middlebox", host, cell.repetition),
            )
            off = MiddleHop(False, 0, False, False, [], 0.0, 0.0, [], 0)
            place = (delay_interface(network, host), CLASS_ID, HOP_HANDLE)
            operations.append(queue_at(*place, off))
            changes += [
                Event(0, queue_at(*place, hop)),
                Event(cell.scenario.duration, queue_at(*place, off)),
            ]
    return operations, changes
