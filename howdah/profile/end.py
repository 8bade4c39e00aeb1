# SPDX-License-Identifier: Apache-2.0
"""The two ends of the path as fields of a profile: what the senders are, and what the receivers are."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from pydantic import Field

from howdah.profile.field import KernelName, ShortSection, Text
from howdah.profile.processor import ProcessorSection
from howdah.profile.queue import AnyHostQueue, host_queue_field
from howdah.profile.receiver import ReceiverName
from howdah.profile.sender import TODAY
from howdah.receiver import LINUX, MOST_BACKLOG_BLOCKS

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
