# SPDX-License-Identifier: Apache-2.0
"""The queue of a hop: kind and options of the qdisc below its rate limit."""

from __future__ import annotations

import dataclasses
import re

from howdah.default import KERNEL_FORM
from howdah.errors import ProfileError
from howdah.linux.netlink.discipline.bfifo import Bfifo
from howdah.linux.netlink.discipline.discipline import HopLink, HopQueue, UnfitError
from howdah.linux.netlink.discipline.pfifo import Pfifo
from howdah.plan.path import MOST_HELD_US, Path
from howdah.plan.plan import Plan
from howdah.plan.policer import plan_policer
from howdah.profile import Cell
from howdah.profile.path import PathSection
from howdah.profile.queue import QueueSection
from howdah.quantity import format_duration, format_rate


def leaf(cell: Cell, buffer_bytes: int, rate_bits_per_second: int, hop: int | None = None) -> HopQueue:
    """Return the queue of the bottleneck, or of a further hop (``hop``: its index, from 0). Raise ProfileError."""
    path = cell.scenario.path
    place: tuple[str | int, ...] = ("path",)
    queue, at = path.queue, ""
    if hop is not None:
        place = ("path", "hops", hop)
        queue, at = path.hops[hop].queue, f" of path.hops.{hop + 1}"
    link = HopLink(buffer_bytes, rate_bits_per_second, path.frame_bytes, path.bdp(), path.ecn, at)
    return _planned_queue(cell, queue, link, (*place, "buffer"), (*place, "queue"))


def _planned_queue(
    cell: Cell, queue: QueueSection, link: HopLink, buffer: tuple[str | int, ...], place: tuple[str | int, ...]
) -> HopQueue:
    """Return the queue for this link. ``buffer`` and ``place``: where a profile has its buffer and its kind."""
    try:
        return queue.discipline.from_parameters(queue.parameters(), link)
    except UnfitError as error:
        where = cell.place(*(buffer if error.of_buffer else place))
        raise ProfileError(str(error), where=where, hint=error.hint) from None


def forward_buffer(path: PathSection, frame_bytes: int) -> tuple[int, int | None]:
    """Return the bottleneck's buffer in bytes, and in packets if its queue counts packets."""
    most_bytes = max(path.buffer.to_bytes(path.bdp(), frame_bytes), frame_bytes)
    return most_bytes, most_bytes // frame_bytes if getattr(path.queue, "counts", None) == "packets" else None


def reverse_buffer(path: PathSection, frame_bytes: int) -> tuple[int | None, int | None]:
    """Return the buffer of the reverse direction in bytes, and in packets if it counts packets; None if it has no rate.

    ACKs flow there. A buffer in packets therefore counts packets of any size.
    """
    if path.reverse_rate is None:
        return None, None
    most_bytes = max(path.reverse_buffer.to_bytes(path.bdp(path.reverse_rate), frame_bytes), frame_bytes)
    return most_bytes, most_bytes // frame_bytes if path.reverse_counts_packets else None


def check_drains(cell: Cell, path: Path) -> None:
    """Raise ProfileError for a queue of either direction that takes hours to drain: every run would wait for that."""
    ways = (
        ("buffer", path.forward_queue_us, path.rate_bits_per_second),
        ("reverse_buffer", path.reverse_queue_us, path.reverse_rate_bits_per_second),
    )
    for name, held_us, rate in ways:
        if rate is not None and held_us > MOST_HELD_US:
            takes, most = format_duration(held_us), format_duration(MOST_HELD_US)
            what = (
                f"path.{name} takes {takes} to drain at {format_rate(rate)}; a run waits until it has, {most} at most"
            )
            raise ProfileError(what, where=cell.place("path", name), hint="make it smaller, or the rate higher")


def check_kernels(cell: Cell, plan: Plan) -> None:
    """Raise ProfileError for a queue that is newer than a named kernel; a kernel tree reports that when it runs."""
    path = cell.scenario.path
    queues: dict[tuple[str | int, ...], QueueSection] = {("queue",): path.queue, ("reverse_queue",): path.reverse_queue}
    queues |= {("hops", index, "queue"): hop.queue for index, hop in enumerate(path.hops)}
    for place, queue in queues.items():
        since = queue.discipline.since
        for kernel in plan.kernels if since and plan.traits.own_kernel else ():
            match = re.fullmatch(KERNEL_FORM, kernel)
            numbers = re.findall(r"\d+", match[2].partition("+")[0]) if match else []
            if numbers and tuple(map(int, numbers)) < since:
                what = f"{kernel} has no queue {queue.kind}, which Linux has since {'.'.join(map(str, since))}"
                raise ProfileError(what, where=cell.place("path", *place), hint="give kernel: debian-newest")


def with_policer(section: PathSection, path: Path, *, several_kernels: bool) -> Path:
    """Return the path with the policer that the profile asks for."""
    policing = section.policer
    if policing is None:
        return path
    policer = plan_policer(
        policing.rate,
        policing.burst,
        frame_bytes=path.frame_bytes,
        bottleneck=path.rate_bits_per_second,
        interface=path.sender_interface_bits_per_second,
        lossy=bool(path.loss_ratio),
        several_kernels=several_kernels,
    )
    return dataclasses.replace(path, policer=policer)


def reverse_leaf(cell: Cell, path: Path) -> HopQueue:
    """Return the queue of the reverse direction, which has a rate. Raise ProfileError."""
    section, rate = cell.scenario.path, path.reverse_rate_bits_per_second
    if section.reverse_queue.kind != "fifo":
        assert rate is not None and path.reverse_buffer_bytes is not None
        at = " of path.reverse_queue"
        link = HopLink(path.reverse_buffer_bytes, rate, path.frame_bytes, section.bdp(rate), path.ecn, at)
        return _planned_queue(cell, section.reverse_queue, link, ("path", "reverse_buffer"), ("path", "reverse_queue"))
    if path.reverse_buffer_packets is not None:
        return Pfifo(path.reverse_buffer_packets)
    assert path.reverse_buffer_bytes is not None
    return Bfifo(path.reverse_buffer_bytes)
