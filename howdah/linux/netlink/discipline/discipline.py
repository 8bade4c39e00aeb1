# SPDX-License-Identifier: Apache-2.0
"""The base classes of queueing disciplines, and of those that can be a hop's or a host's queue.

The fields of a class are its options in a plan: integers in base units. ``encode`` writes the layouts of
include/uapi/linux/pkt_sched.h. Standard library only: guests encode the disciplines of their plan.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import Field, field
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

from howdah.codec import planned
from howdah.linux.netlink.message import parse_attributes, u32

if TYPE_CHECKING:
    from fractions import Fraction  # slow to import in a guest, which does not need it

Words = list[str | int]
NOTHING: Mapping[str, str] = {}
NOTHING_READ: Mapping[str, int] = {}


class AskedSize(Protocol):
    """A buffer's size in a profile: howdah.quantity.BufferSize."""

    def to_bytes(self, bdp_bytes: Fraction, frame_bytes: int) -> int: ...


class UnfitError(ValueError):
    """A queue cannot have these parameters; ``hint`` says what to do. ``of_buffer``: the path's buffer is the cause."""

    def __init__(self, what: str, hint: str, *, of_buffer: bool = False) -> None:
        super().__init__(what)
        self.hint = hint
        self.of_buffer = of_buffer


@planned
class Discipline:
    """A queueing discipline, or a class of one, with its options."""

    kind: ClassVar[str]
    classes: ClassVar[type[Discipline] | None] = None
    notes: ClassVar[Mapping[str, str]] = NOTHING  # notes on options for the table in docs/data-format.md
    of_module: ClassVar[str] = ""  # note on this project's module and its page, for disciplines outside Linux
    strict: ClassVar[bool] = False  # whether the kernel requires NLA_F_NESTED on the options
    # Options that the kernel must report with the plan's values: tc's names to field names.
    told: ClassVar[Mapping[str, str]] = NOTHING
    # The 32-bit count of marked packets in the kind's own statistics: nested attributes, then an offset. None for a
    # kind that does not count them.
    marks_in: ClassVar[tuple[int, ...]] = ()
    marks_at: ClassVar[int | None] = None

    def encode(self) -> bytes:
        """The payload of TCA_OPTIONS."""
        raise NotImplementedError

    def size_table(self) -> bytes:
        """TCA_STAB, which changes the length that each packet counts with; by default empty."""
        return b""

    def further(self) -> list[bytes]:
        """Options of further requests, sent once the discipline exists."""
        return []

    def words(self) -> Words:
        """The options as tc arguments, to follow the kind."""
        raise NotImplementedError

    def stab_words(self) -> Words:
        """The size table as tc arguments, to precede the kind."""
        return []

    def further_words(self) -> list[Words]:
        """The options of further requests as tc arguments."""
        return []

    @classmethod
    def marks(cls, statistics: bytes) -> int:
        """Packets marked since the discipline was made, from TCA_STATS_APP; 0 for a kind that does not count them."""
        if cls.marks_at is None:
            return 0
        for step in cls.marks_in:
            statistics = parse_attributes(statistics).get(step, b"")
        return int.from_bytes(statistics[cls.marks_at : cls.marks_at + 4], "little")

    @classmethod
    def causes(cls, statistics: bytes) -> dict[str, int]:  # noqa: ARG003 - as all others have it
        """Drops by cause, from TCA_STATS_APP; empty for a kind that does not report causes."""
        return {}


def sent(number: int, word: str, form: str = "", *, told: bool = True) -> Any:
    """A field that the kernel takes as a 32-bit attribute with this ``number``, and tc after ``word``: as a number, or
    in the ``form`` of a duration or of bytes. ``told``: the kernel reports it with the plan's value."""
    return field(metadata={"number": number, "word": word, "form": form, "told": told})


class Attributes(Discipline):
    """A discipline each of whose options is an attribute (``sent``)."""

    _sent: ClassVar[Mapping[str, Mapping[str, Any]]] = {}

    def __init_subclass__(cls) -> None:
        cls._sent = {name: each.metadata for name, each in vars(cls).items() if isinstance(each, Field)}
        cls.told = {said["word"]: name for name, said in cls._sent.items() if said["told"]}

    def encode(self) -> bytes:
        return b"".join(u32(said["number"], int(getattr(self, name))) for name, said in self._sent.items())

    def words(self) -> Words:
        found: Words = []
        for name, said in self._sent.items():
            value = getattr(self, name)
            if value is True or value is False:
                found.append(said["word"] if value else f"no{said['word']}")
            elif said["form"] == "duration":
                found += [said["word"], duration(value)]
            else:
                found += [said["word"], f"{value}b" if said["form"] == "bytes" else value]
        return found

    @classmethod
    def read(cls, options: bytes) -> dict[str, int]:
        """Parse the options in TCA_OPTIONS."""
        found = parse_attributes(options)
        numbers = {name: said["number"] for name, said in cls._sent.items()}
        return {name: int.from_bytes(found[number], "little") for name, number in numbers.items() if number in found}


@planned
class Room:
    """The properties of a hop that determine its queue; ``at`` names a hop other than the bottleneck in messages."""

    buffer_bytes: int
    rate_bits_per_second: int
    frame_bytes: int
    bdp_bytes: Fraction
    ecn: bool
    at: str = ""

    @property
    def packets(self) -> int:
        """The buffer in full frames, rounded up."""
        return -(-self.buffer_bytes // self.frame_bytes)

    def of(self, size: AskedSize) -> int:
        """A size in bytes."""
        return size.to_bytes(self.bdp_bytes, self.frame_bytes)

    def time_bytes(self, time_us: int) -> int:
        """The bytes that leave in a time."""
        return time_us * self.rate_bits_per_second // 8_000_000


def asked(
    default: str | int | bool | None,
    meaning: str,
    quantity: str = "",
    *,
    least: int | None = None,
    most: int | None = None,
    choices: tuple[str, ...] = (),
) -> Any:
    """A parameter in a profile: its default as written there, and its ``quantity`` (howdah/profile/queue.py), its
    bounds, or its choices. With a default of None and no choices it is optional."""
    said = {"default": default, "meaning": meaning, "quantity": quantity}
    return field(metadata={**said, "least": least, "most": most, "choices": choices})


@planned
class Parameters:
    """The parameters of a queue in a profile, in base units. A class's docstring describes the queue."""

    def wrong(self) -> tuple[str, str] | None:
        """The name of an invalid field and the reason; None if all are valid."""
        return None


class HopQueue(Discipline):
    """A discipline that queues after the rate limit of a hop."""

    name: ClassVar[str]  # in profiles
    named_by: ClassVar[str] = ""  # the kind whose parameters select this one, if profiles do not name it
    asked: ClassVar[type[Parameters]] = Parameters
    fills: ClassVar[bool] = False  # whether it drops only packets that do not fit into its buffer
    drops_held: ClassVar[bool] = False  # whether it also drops packets that it has queued
    unmarked: ClassVar[str] = ""  # why its marks cannot be counted
    marks_always: ClassVar[bool] = False  # whether it marks ECN-capable packets without being configured to
    # For a kind with two queues: offsets of the table two_queues' columns, 32 bits each, in its own statistics.
    readings: ClassVar[Mapping[str, int]] = NOTHING_READ
    since: ClassVar[tuple[int, ...]] = ()  # the first Linux release with it, if supported kernels may lack it

    @classmethod
    def settled(cls, asked: Any, room: Room) -> HopQueue:
        """Make the queue of a hop from its parameters, of the class ``asked``. Raises UnfitError."""
        raise NotImplementedError

    def train_packets(self, room: Room) -> int | None:  # noqa: ARG002 - as all others have it
        """The longest packet train that passes without a drop; None: as many packets as the buffer holds."""
        return None

    def marked(self) -> int | None:
        """The DSCP that this queue takes for a mark; None without one."""
        return None

    @property
    def decides_on_arrival(self) -> bool:
        """Whether it drops and marks packets on arrival only, and never drops a packet that it has queued."""
        return False

    @classmethod
    def settings(cls, options: bytes) -> dict[str, int | str]:  # noqa: ARG003 - as all others have it
        """Parse the options in TCA_OPTIONS, by their names in a plan, for a kind that tc may not know."""
        return {}


class HostQueue(Discipline):
    """A discipline that queues after the rate limit of a sender's interface; a profile chooses it."""

    name: ClassVar[str]  # in profiles
    asked_of_host: ClassVar[type[Parameters]] = Parameters
    priorities: ClassVar[int] = 1  # number of priorities, each with a queue of the whole limit

    @classmethod
    def of_host(cls, asked: Any, roomy_packets: int) -> HostQueue:
        """Make the queue from its parameters, of the class ``asked_of_host``; ``roomy_packets`` is more than flows ever
        queue."""
        raise NotImplementedError

    @property
    def room_packets(self) -> tuple[int, int]:
        """The fewest packets it may hold when it drops, and the most it can ever hold."""
        raise NotImplementedError

    @classmethod
    def limits(cls, options: bytes) -> dict[str, int]:  # noqa: ARG003 - as all others have it
        """Parse the limits in TCA_OPTIONS, by their names in a plan."""
        return {}


def duration(us: int) -> str:
    """Format a duration for tc: ``5ms``."""
    from howdah.quantity import format_duration  # not imported in guests, which format nothing

    return format_duration(us).replace(" ", "")


def half_of(room: Room, patience_us: int) -> int:
    """Half of the frames that leave before a queue that waits for ``patience_us`` begins to drop; at least two."""
    return max(room.time_bytes(patience_us) // room.frame_bytes // 2, 2)
