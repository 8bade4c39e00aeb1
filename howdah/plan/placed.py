# SPDX-License-Identifier: Apache-2.0
"""Queueing disciplines, classes and filters at interfaces, and how they change. Standard library only."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import TYPE_CHECKING, Any, ClassVar

from howdah.codec import encoded, planned
from howdah.linux.netlink.discipline import make_class, make_discipline
from howdah.linux.netlink.discipline.discipline import Discipline, Words
from howdah.linux.netlink.filter import MARKS_PRIORITY, add_filter
from howdah.linux.netlink.police import LARGEST_PACKET_BYTES, PRIORITY, add_policer
from howdah.linux.netlink.qdisc import (
    add_class,
    add_qdisc,
    change_class,
    change_qdisc,
    replace_qdisc,
    send_qdisc_options,
)
from howdah.plan.event import PathChange
from howdah.plan.operation import OfInterface
from howdah.plan.step import BuiltNetwork, Operation, quoted

if TYPE_CHECKING:
    from howdah.linux.netlink.discipline.htb import HtbClass


class _MadeOfOptions(OfInterface):
    """What has a ``kind`` and ``options`` in plan.json. They become its last field when that is first asked for.

    So a guest loads the class of a discipline when it makes the first one. Loading takes virtual time. If it came
    earlier, the kernel's random numbers would be seeded at another time, and be others.
    """

    last: ClassVar[str]

    @property
    def kind(self) -> str:
        raise NotImplementedError

    @staticmethod
    def made_of(kind: str, options: Mapping[str, Any]) -> Discipline:
        """Raises ValueError for an unknown kind, TypeError for options that it has not or lacks."""
        raise NotImplementedError

    @classmethod
    def of_arguments(cls, arguments: Mapping[str, Any]) -> Any:
        place = {**arguments}
        kind, options = place.pop("kind", None), place.pop("options", None)
        if not isinstance(kind, str) or not isinstance(options, Mapping):
            raise TypeError("a queue has a kind and options")
        known: Any = cls
        found = known(**place, **{cls.last: None})
        del found.__dict__[cls.last]
        found.__dict__["_told"] = kind, options
        return found

    def __getattr__(self, name: str) -> Any:
        if name != self.last or "_told" not in self.__dict__:
            raise AttributeError(f"{type(self).__name__} has no {name}")
        found = self.__dict__[name] = self.made_of(*self.__dict__["_told"])
        return found

    def arguments(self) -> dict[str, Any]:
        place = {each.name: getattr(self, each.name) for each in fields(self) if each.name != self.last}
        return {**place, "kind": self.kind, "options": encoded(getattr(self, self.last))}


@planned
class PlacedQueue(_MadeOfOptions):
    """A queueing discipline, and where it is. plan.json has the discipline's kind, and its fields as ``options``."""

    last: ClassVar[str] = "discipline"
    made_of = staticmethod(make_discipline)
    parent: str
    handle: str
    discipline: Discipline

    @property
    def kind(self) -> str:
        return self.discipline.kind

    @property
    def place(self) -> tuple[str, str, str]:
        """Node, interface and handle."""
        return *self.at, self.handle

    def words(self, verb: str) -> Words:
        """As tc does it."""
        parent: Words = [self.parent] if self.parent in ("root", "ingress") else ["parent", self.parent]
        place: Words = ["dev", self.interface, *parent, "handle", self.handle]
        stab = self.discipline.stab_words()
        return ["tc", "-n", self.node, "qdisc", verb, *place, *stab, self.kind, *self.discipline.words()]


@planned
class Qdisc(PlacedQueue, Operation, PathChange):
    """A queueing discipline. `parent` is `root`, a class such as `1:1`, or `ingress`: what arrives. As an event it is
    changed in place, and packets stay queued."""

    op: ClassVar[str] = "qdisc"

    def commands(self) -> list[Words]:
        """Some kinds are changed at once when they are there."""
        if self.kind == "clsact":
            return [["tc", "-n", self.node, "qdisc", "add", "dev", self.interface, "clsact"]]
        place: Words = ["dev", self.interface, "parent", self.parent, "handle", self.handle, self.kind]
        change: Words = ["tc", "-n", self.node, "qdisc", "change", *place]
        return [self.words("add"), *([*change, *words] for words in self.discipline.further_words())]

    def line(self) -> str:
        return quoted(self.words("change"))

    def apply(self, to: BuiltNetwork) -> None:
        add_qdisc(*self.found(to), self.parent, self.handle, self.discipline)

    def change(self, to: BuiltNetwork, at_ns: int) -> None:  # noqa: ARG002
        change_qdisc(*self.found(to), self.parent, self.handle, self.discipline)


@planned
class Replace(PlacedQueue, PathChange):
    """A new queue instead of another, which goes with all that it holds."""

    op: ClassVar[str] = "replace"

    def line(self) -> str:
        return quoted(self.words("replace"))

    def change(self, to: BuiltNetwork, at_ns: int) -> None:  # noqa: ARG002
        replace_qdisc(*self.found(to), self.parent, self.handle, self.discipline)


@planned
class Class(_MadeOfOptions, Operation, PathChange):
    """A class of htb: the rate of a link. As an event it is changed in place."""

    op: ClassVar[str] = "class"
    last: ClassVar[str] = "rate"
    made_of = staticmethod(make_class)
    parent: str
    classid: str
    rate: HtbClass

    @property
    def kind(self) -> str:
        return "htb"  # the only one that has classes

    def words(self, verb: str) -> Words:
        place: Words = ["dev", self.interface, "parent", self.parent, "classid", self.classid]
        return ["tc", "-n", self.node, "class", verb, *place, self.kind, *self.rate.words()]

    def commands(self) -> list[Words]:
        return [self.words("add")]

    def line(self) -> str:
        return quoted(self.words("change"))

    def apply(self, to: BuiltNetwork) -> None:
        add_class(*self.found(to), self.parent, self.classid, self.kind, self.rate)

    def change(self, to: BuiltNetwork, at_ns: int) -> None:  # noqa: ARG002
        change_class(*self.found(to), self.parent, self.classid, self.kind, self.rate)


@planned
class Police(OfInterface, Operation):
    """What leaves passes a bucket of tokens before its queue."""

    op: ClassVar[str] = "police"
    rate_bits_per_second: int
    burst_bytes: int

    def commands(self) -> list[Words]:
        place: Words = ["dev", self.interface, "egress", "protocol", "all", "prio", PRIORITY, "matchall"]
        bucket: Words = ["rate", f"{self.rate_bits_per_second}bit", "burst", f"{self.burst_bytes}b"]
        limits: Words = ["mtu", LARGEST_PACKET_BYTES, "conform-exceed", "drop/continue"]
        return [["tc", "-n", self.node, "filter", "add", *place, "action", "police", *bucket, *limits]]

    def apply(self, to: BuiltNetwork) -> None:
        add_policer(*self.found(to), self.rate_bits_per_second, self.burst_bytes)


@planned
class Filter(OfInterface, Operation):
    """What leaves with that DSCP belongs to this virtual queue of the interface's GRED."""

    op: ClassVar[str] = "filter"
    dscp: int
    queue: int

    def commands(self) -> list[Words]:
        matched: Words = ["match", "ip", "dsfield", f"{self.dscp << 2:#x}", "0xfc", "flowid", f":{self.queue:x}"]
        place: Words = ["dev", self.interface, "egress", "protocol", "ip", "prio", MARKS_PRIORITY, "u32"]
        return [["tc", "-n", self.node, "filter", "add", *place, *matched]]

    def apply(self, to: BuiltNetwork) -> None:
        add_filter(*self.found(to), self.dscp, self.queue)


@planned
class FollowLink(OfInterface, PathChange):
    """A link follows its trace from then on, or has its constant rate again. Packets stay queued."""

    op: ClassVar[str] = "link"
    handle: str
    follows: bool

    def line(self) -> str:
        does = "follows its trace" if self.follows else "has its constant rate"
        return f"link {self.node} {self.interface} {self.handle} {does}"

    def change(self, to: BuiltNetwork, at_ns: int) -> None:
        from howdah.linux.netlink.discipline.howdah_link import TraceLink, begin_options, end_options

        message = begin_options(at_ns) if self.follows else end_options()
        send_qdisc_options(*self.found(to), "root", self.handle, TraceLink.kind, message)
