# SPDX-License-Identifier: Apache-2.0
"""What every queueing discipline is described by, and the ones among them that the queue of a hop can be.

Fields of a class are the options in a plan: integers in base units. What ``encode`` writes is that of
include/uapi/linux/pkt_sched.h. Standard library only: guests encode what their plan has.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import Field, field
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

from howdah.codec import planned
from howdah.linux.netlink.message import parse_attributes, u32

if TYPE_CHECKING:
    from fractions import Fraction  # which takes a guest long, and nothing there needs it

Words = list[str | int]
NOTHING: Mapping[str, str] = {}
NOTHING_READ: Mapping[str, int] = {}


class AskedSize(Protocol):
    """What a profile says of a buffer: howdah.quantity.BufferSize."""

    def to_bytes(self, bdp_bytes: Fraction, frame_bytes: int) -> int: ...


class UnfitError(ValueError):
    """A queue of these parameters cannot be; ``hint`` says what to do. ``of_buffer``: the path's buffer is why."""

    def __init__(self, what: str, hint: str, *, of_buffer: bool = False) -> None:
        super().__init__(what)
        self.hint = hint
        self.of_buffer = of_buffer


@planned
class Discipline:
    """A queueing discipline, or a class of one, with its options."""

    kind: ClassVar[str]
    classes: ClassVar[type[Discipline] | None] = None
    notes: ClassVar[Mapping[str, str]] = NOTHING  # what the table of options says of some of them
    of_module: ClassVar[str] = ""  # of this project, with its page, where it is not the kernel's
    strict: ClassVar[bool] = False  # whether the kernel takes options only where they say that they nest
    # What tc calls the options that the kernel must say as the plan does.
    told: ClassVar[Mapping[str, str]] = NOTHING
    # Where the count of marked packets, 32 bits, begins in the kind's own statistics: in attributes of attributes, at
    # an offset. None for a kind that counts none.
    marks_in: ClassVar[tuple[int, ...]] = ()
    marks_at: ClassVar[int | None] = None

    def encode(self) -> bytes:
        """The payload of TCA_OPTIONS."""
        raise NotImplementedError

    def size_table(self) -> bytes:
        """TCA_STAB: what is added to the length of each packet that comes; nothing by default."""
        return b""

    def further(self) -> list[bytes]:
        """Options of the requests that follow, when the discipline is there."""
        return []

    def words(self) -> Words:
        """The options as tc takes them, behind the kind."""
        raise NotImplementedError

    def stab_words(self) -> Words:
        """The same as tc takes it, before the kind."""
        return []

    def further_words(self) -> list[Words]:
        """The same of the changes that follow."""
        return []

    @classmethod
    def marks(cls, statistics: bytes) -> int:
        """Packets marked since the discipline was made, from TCA_STATS_APP; 0 for a kind that counts none."""
        if cls.marks_at is None:
            return 0
        for step in cls.marks_in:
            statistics = parse_attributes(statistics).get(step, b"")
        return int.from_bytes(statistics[cls.marks_at : cls.marks_at + 4], "little")

    @classmethod
    def causes(cls, statistics: bytes) -> dict[str, int]:  # noqa: ARG003 - as all others have it
        """Why packets were dropped, from TCA_STATS_APP, where the kind tells it."""
        return {}


def sent(number: int, word: str, form: str = "", *, told: bool = True) -> Any:
    """A field that the kernel takes as an attribute of 32 bits with this ``number``, and tc behind ``word``: as a
    number, or in the ``form`` of a duration or of bytes. ``told``: whether the kernel says it as the plan does."""
    return field(metadata={"number": number, "word": word, "form": form, "told": told})


class Attributes(Discipline):
    """A discipline all of whose options are attributes of their own (``sent``)."""

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
        """What the kernel says of them in TCA_OPTIONS."""
        found = parse_attributes(options)
        numbers = {name: said["number"] for name, said in cls._sent.items()}
        return {name: int.from_bytes(found[number], "little") for name, number in numbers.items() if number in found}


@planned
class Room:
    """What a hop gives its queue; ``at`` names a hop apart from the bottleneck in messages."""

    buffer_bytes: int
    rate_bits_per_second: int
    frame_bytes: int
    bdp_bytes: Fraction
    ecn: bool
    at: str = ""

    @property
    def packets(self) -> int:
        """Full frames that the buffer has room for, a part counted."""
        return -(-self.buffer_bytes // self.frame_bytes)

    def of(self, size: AskedSize) -> int:
        """A size in bytes."""
        return size.to_bytes(self.bdp_bytes, self.frame_bytes)

    def time_bytes(self, time_us: int) -> int:
        """What leaves in a time."""
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
    """A field of what a profile asks for: its default as it is written there, and of which ``quantity`` it is
    (howdah/profile/queue.py), or its bounds, or its choices. With a default of None and no choices it may be left
    out."""
    said = {"default": default, "meaning": meaning, "quantity": quantity}
    return field(metadata={**said, "least": least, "most": most, "choices": choices})


@planned
class Parameters:
    """The parameters of a queue, in base units, as a profile gives them. The text of a class says what the queue
    does."""

    def wrong(self) -> tuple[str, str] | None:
        """A field, and why it cannot have its value."""
        return None


class HopQueue(Discipline):
    """A discipline behind the rate limit of a hop."""

    name: ClassVar[str]  # in profiles
    named_by: ClassVar[str] = ""  # the kind whose parameters ask for this one, where profiles do not name it
    asked: ClassVar[type[Parameters]] = Parameters
    fills: ClassVar[bool] = False  # whether it takes what its buffer has room for, and drops nothing before
    drops_held: ClassVar[bool] = False  # whether it drops packets that it held, too
    unmarked: ClassVar[str] = ""  # why there are no marks of it to count
    marks_always: ClassVar[bool] = False  # whatever can be marked
    # Of a kind with two queues: where columns of the table two_queues, 32 bits each, begin in its own statistics.
    readings: ClassVar[Mapping[str, int]] = NOTHING_READ
    since: ClassVar[tuple[int, ...]] = ()  # Linux' first release that has it, where some kernels lack it

    @classmethod
    def settled(cls, asked: Any, room: Room) -> HopQueue:
        """The queue of a hop, from the parameters of the class ``asked``. Raises UnfitError."""
        raise NotImplementedError

    def train_packets(self, room: Room) -> int | None:  # noqa: ARG002 - as all others have it
        """Longest packet train that passes without a drop; None: as many as the buffer holds."""
        return None

    def marked(self) -> int | None:
        """The DSCP that it takes for a mark, if it does."""
        return None

    @property
    def decides_on_arrival(self) -> bool:
        """Whether it drops and marks packets when they come, and so holds none that it drops."""
        return False

    @classmethod
    def settings(cls, options: bytes) -> dict[str, int | str]:  # noqa: ARG003 - as all others have it
        """What the kernel says of its options in TCA_OPTIONS, by the names of a plan, of a kind that tc may not
        know."""
        return {}


class HostQueue(Discipline):
    """A discipline behind the rate limit of a sender's interface, which a profile chooses."""

    name: ClassVar[str]  # in profiles
    asked_of_host: ClassVar[type[Parameters]] = Parameters
    priorities: ClassVar[int] = 1  # that have a queue each, with the whole limit

    @classmethod
    def of_host(cls, asked: Any, roomy_packets: int) -> HostQueue:
        """From the parameters of the class ``asked_of_host``; ``roomy_packets`` are more than flows ever queue."""
        raise NotImplementedError

    @property
    def room_packets(self) -> tuple[int, int]:
        """The least that it holds when it drops, and the most that it ever holds."""
        raise NotImplementedError

    @classmethod
    def limits(cls, options: bytes) -> dict[str, int]:  # noqa: ARG003 - as all others have it
        """What the kernel says of its limits in TCA_OPTIONS, by the names of a plan."""
        return {}


def duration(us: int) -> str:
    """As tc takes it: ``5ms``."""
    from howdah.quantity import format_duration  # not in guests, which show nothing

    return format_duration(us).replace(" ", "")


def half_of(room: Room, patience_us: int) -> int:
    """Half of the frames that leave before a queue that waits for ``patience_us`` begins to drop; two at least."""
    return max(room.time_bytes(patience_us) // room.frame_bytes // 2, 2)
