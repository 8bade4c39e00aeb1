# SPDX-License-Identifier: Apache-2.0
"""Queueing disciplines, classes and filters at interfaces, and how they change. Standard library only."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import TYPE_CHECKING, Any, ClassVar

from howdah.codec import encoded, planned
from howdah.linux.netlink.discipline import class_made, made
from howdah.linux.netlink.discipline.discipline import Discipline, Words
from howdah.linux.netlink.filter import MARKS_PRIORITY, add_filter
from howdah.linux.netlink.police import LARGEST_PACKET_BYTES, PRIORITY, add_policer
from howdah.linux.netlink.qdisc import (
    add_class,
    add_qdisc,
    ask_qdisc,
    change_class,
    change_qdisc,
    replace_qdisc,
)
from howdah.plan.event import PathChange
from howdah.plan.operation import OfInterface
from howdah.plan.step import BuiltNetwork, Operation, quoted

if TYPE_CHECKING:
    from howdah.linux.netlink.discipline.htb import HtbClass


class _MadeOfOptions(OfInterface):
    """A step with ``kind`` and ``options`` in plan.json. They become its last field at the first access.

    A guest therefore loads the class of a discipline when it makes the first one. Loading takes virtual time. If it
    happened earlier, the kernel would seed its random numbers at another time and draw others.
    """

    last: ClassVar[str]

    @property
    def kind(self) -> str:
        raise NotImplementedError

    @staticmethod
    def made_of(kind: str, options: Mapping[str, Any]) -> Discipline:
        """Raise ValueError for an unknown kind, TypeError for unknown or missing options."""
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
    """A queueing discipline at its place. plan.json has the discipline's kind, and its fields as ``options``."""

    last: ClassVar[str] = "discipline"
    made_of = staticmethod(made)
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
        """The words of a ``tc`` command."""
        parent: Words = [self.parent] if self.parent in ("root", "ingress") else ["parent", self.parent]
        place: Words = ["dev", self.interface, *parent, "handle", self.handle]
        stab = self.discipline.stab_words()
        return ["tc", "-n", self.node, "qdisc", verb, *place, *stab, self.kind, *self.discipline.words()]


@planned
class Qdisc(PlacedQueue, Operation, PathChange):
    """A queueing discipline. `parent` is `root`, a class such as `1:1`, or `ingress` for arriving packets. As an event
    it changes one in place, and packets stay queued."""

    op: ClassVar[str] = "qdisc"

    def commands(self) -> list[Words]:
        """Some kinds are made by one command and changed by further ones."""
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
    """Replaces a queue by a new one; the packets in the old one are lost."""

    op: ClassVar[str] = "replace"

    def line(self) -> str:
        return quoted(self.words("replace"))

    def change(self, to: BuiltNetwork, at_ns: int) -> None:  # noqa: ARG002
        replace_qdisc(*self.found(to), self.parent, self.handle, self.discipline)


@planned
class Class(_MadeOfOptions, Operation, PathChange):
    """A class of htb: the rate of a link. As an event it changes one in place."""

    op: ClassVar[str] = "class"
    last: ClassVar[str] = "rate"
    made_of = staticmethod(class_made)
    parent: str
    classid: str
    rate: HtbClass

    @property
    def kind(self) -> str:
        return "htb"  # the only kind with classes

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
    """Polices leaving packets with a token bucket in front of the interface's queue."""

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
    """Assigns leaving packets with this DSCP to this virtual queue of the interface's GRED."""

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
    """Starts a link's trace, or restores the link's constant rate. Packets stay queued."""

    op: ClassVar[str] = "link"
    handle: str
    follows: bool

    def line(self) -> str:
        does = "follows its trace" if self.follows else "has its constant rate"
        return f"link {self.node} {self.interface} {self.handle} {does}"

    def change(self, to: BuiltNetwork, at_ns: int) -> None:
        from howdah.linux.netlink.discipline.howdah_link import TraceLink, begin, end

        message = begin(at_ns) if self.follows else end()
        ask_qdisc(*self.found(to), "root", self.handle, TraceLink.kind, message)
