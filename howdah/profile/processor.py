# SPDX-License-Identifier: Apache-2.0
"""``processor:`` of senders or receivers: the time that a host needs for arriving packets, and named models of it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar, Final, Literal

from pydantic import Field

from howdah.profile.field import Nanoseconds, ShortSection
from howdah.search import SEARCHES

NONE: Final = "none"  # no model: as fast as the engine's machine
_NO_LIMIT = 10_000_000


@dataclass(frozen=True)
class Constant:
    """A model's constant: its field, its value as written in a profile and as in the plan, and its source."""

    field: str
    written: str | int
    value: Any  # in nanoseconds or packets, or a name
    source: str


_PLAIN = (
    Constant("packet", "0 ns", 0, "nothing"),
    Constant("ack", "0 ns", 0, "nothing"),
    Constant("searched", "0 ns", 0, "nothing"),
    Constant("search", "nothing", "nothing", "Linux since 4.15, which has a tree"),
    Constant("queue", 1000, 1000, "net.core.netdev_max_backlog since Linux 2.6"),
)
MODELS: dict[str, tuple[Constant, ...]] = {
    NONE: _PLAIN,
    "of-2007": (
        Constant("packet", "0 ns", 0, "not counted"),
        Constant(
            "ack",
            "800 ns",
            800,
            "2230 instructions of the senders an ACK, at 2.8 GHz and one a cycle: cpu-hystart-fig15 at 40 ms (cpu.md)",
        ),
        Constant(
            "searched",
            "100 ns",
            100,
            "a fetch from memory, of no cache; the 20 instructions alone take 7 ns at 2.8 GHz (processor.md)",
        ),
        Constant("search", "one-pass", "one-pass", "tcp_sacktag_write_queue() of Linux 2.6.15 to 2.6.23"),
        Constant("queue", 1000, 1000, "net.core.netdev_max_backlog of Linux 2.6.14 and later"),
    ),
}


class ProcessorSection(ShortSection):
    """A host's processor time for arriving packets. A name alone, such as `processor: of-2007`, is the model."""

    short: ClassVar[str] = "model"

    model: Literal["none", "of-2007"] = Field(
        default=NONE,
        description="default values of the other fields ([processor.md](processor.md)); none: the host is as fast as "
        "the engine's machine",
    )
    packet: Nanoseconds | None = Field(
        default=None,
        description="time per arriving TCP segment",
        json_schema_extra={"x-default": "the model's"},
    )
    ack: Nanoseconds | None = Field(
        default=None,
        description="additional time per arriving segment without data",
        json_schema_extra={"x-default": "the model's"},
    )
    searched: Nanoseconds | None = Field(
        default=None,
        description="additional time per packet visited in a search of TCP's queues",
        json_schema_extra={"x-default": "the model's"},
    )
    search: Literal["nothing", "each-block", "one-pass"] | None = Field(
        default=None,
        description="what an ACK searches: nothing, as today; each-block: per SACK block, all packets from the first "
        "unacknowledged one (Linux before 2.6.15); one-pass: once for all blocks, from the last position if only the "
        "first block grew",
        json_schema_extra={"x-default": "the model's"},
    )
    queue: int | None = Field(
        default=None,
        ge=1,
        le=_NO_LIMIT,
        description="maximum waiting segments; further ones are dropped",
        json_schema_extra={"x-default": "the model's"},
    )

    def constants(self) -> dict[str, Constant]:
        """Every constant, by field. Its source is "the profile" if the profile sets it."""
        asked = {each.field: getattr(self, each.field) for each in MODELS[self.model]}
        return {
            each.field: each if own is None else replace(each, value=own, source="the profile")
            for each, own in zip(MODELS[self.model], asked.values(), strict=True)
        }

    @property
    def is_there(self) -> bool:
        """Whether packets ever wait for the processor."""
        values = {name: constant.value for name, constant in self.constants().items()}
        return bool(values["packet"] or values["ack"] or (values["searched"] and values["search"] != SEARCHES[0]))
