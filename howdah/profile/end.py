# SPDX-License-Identifier: Apache-2.0
"""The two ends of the path as fields of a profile: what the senders are, what the receivers are, and how the network
stack of every host is set."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from pydantic import BeforeValidator, Field, WithJsonSchema

from howdah.errors import nearest
from howdah.profile.field import KernelName, Section, ShortSection, Text
from howdah.profile.processor import ProcessorSection
from howdah.profile.queue import AnyHostQueue, host_queue_field
from howdah.profile.sender import TODAY
from howdah.quantity import QuantityError
from howdah.receiver import LINUX, MOST_BACKLOG_BLOCKS, RECEIVERS


def _known_name(value: object) -> str:
    """Raises QuantityError, which names the nearest behaviour there is."""
    if isinstance(value, str) and value in RECEIVERS:
        return value
    close = nearest(str(value), RECEIVERS)
    hint = f"did you mean {close}?" if close else f"known: {', '.join(RECEIVERS)}"
    raise QuantityError(f"there is no receiver behaviour {value!r}; {hint}")


ReceiverName = Annotated[
    str,
    BeforeValidator(_known_name),
    WithJsonSchema({"enum": list(RECEIVERS), "x-shared": "ReceiverName"}),
]


FIXED = "fixed"
BUFFER_TRIPLE = rf"^(?:{FIXED}|\s*[0-9]{{1,10}}\s+[0-9]{{1,10}}\s+[0-9]{{1,10}}\s*)$"
_BufferTriple = Annotated[str, Field(pattern=BUFFER_TRIPLE)]


class HostSection(Section):
    """Settings of the kernel's network stack."""

    sysctls: dict[str, Text] = Field(default_factory=dict, description="name: value, set last on every node")
    tcp_rmem: _BufferTriple | None = Field(
        default=None,
        description="least, initial and largest receive buffer in bytes; never a limit by default; `fixed`: the "
        "largest from the beginning",
    )
    tcp_wmem: _BufferTriple | None = Field(
        default=None,
        description="least, initial and largest send buffer in bytes; by default a limit only in a recovery without "
        "SACK, since Linux lets it grow to two windows; `fixed`: the largest from the beginning",
    )
    packets_per_ack: Annotated[int, Field(ge=0, le=1_000_000)] | None = Field(
        default=None,
        description="most packets an ACK counts as, in the slow start of every plug-in and in their reno; 0: as many "
        "as it acknowledges, as by default",
    )
    first_acks_per_packet: Annotated[int, Field(ge=0, le=1_000_000)] | None = Field(
        default=None,
        description="packets acknowledged for one by which the plug-ins' cubic grows before the first congestion; 0: "
        "as Linux today, as by default",
    )
    ipv6: bool = Field(default=False, description="leave IPv6 on; its random timers shift runs by microseconds")


_KERNELS = "`debian-VERSION`, `debian-newest`, or the path of a source tree"


class SenderSection(ShortSection):
    """What the senders are. A name alone, such as `sender: of-2007`, is their behaviour."""

    short: ClassVar[str] = "behaviour"

    behaviour: Literal["linux", "of-2007"] = Field(
        default=TODAY,
        description="settings of senders of an earlier time, where the profile sets none "
        "([senders.md](senders.md)); linux changes nothing",
    )
    stack: Text | None = Field(
        default=None,
        description="another TCP than the kernel's sends the measured flows (engine `uml`): a name of "
        "[stacks.md](stacks.md), or the path of a YAML file; linux is the kernel's",
    )
    kernel: KernelName | None = Field(
        default=None,
        description="kernel of the senders and of the routers, instead of the run's (engine `uml`): " + _KERNELS,
    )
    processor: ProcessorSection = Field(
        default_factory=ProcessorSection, description="that of each sender: a mapping, or the name of a model"
    )
    queue: AnyHostQueue = host_queue_field()


class ReceiverSection(ShortSection):
    """What the receivers are. A name alone, such as `receiver: no-sack`, is their behaviour."""

    short: ClassVar[str] = "behaviour"

    behaviour: ReceiverName = Field(
        default=LINUX,
        description="how those of measured flows acknowledge ([receivers.md](receivers.md)); linux changes nothing",
    )
    backlog_blocks: Annotated[int, Field(ge=1, le=MOST_BACKLOG_BLOCKS)] | None = Field(
        default=None,
        description="blocks out of order from which on `windows-xp` reports none and discards what comes out of order; "
        "that of the behaviour by default. The others have no such number",
    )
    stack: Text | None = Field(
        default=None,
        description="another TCP than the kernel's receives the measured flows (engine `uml`): a name of "
        "[stacks.md](stacks.md), or the path of a YAML file; linux is the kernel's",
    )
    kernel: KernelName | None = Field(
        default=None, description=f"kernel of the receivers, instead of the run's (engine `uml`): {_KERNELS}"
    )
    processor: ProcessorSection = Field(
        default_factory=ProcessorSection, description="that of each receiver: a mapping, or the name of a model"
    )
