# SPDX-License-Identifier: Apache-2.0
"""The section ``collect``: one field per registered collector."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pydantic import Field, create_model

from howdah.errors import HowdahError
from howdah.profile.field import IntervalOrOff, Section, Text
from howdah.quantity import QuantityError, parse_duration
from howdah.registered import Registered, registered


class CoreCollectSection(Section):
    """What is recorded. Intervals may be ``off``."""

    tcp_probe: bool = Field(default=True, description="every ACK at the senders (tracepoint tcp:tcp_probe)")
    slow_start: bool = Field(default=True, description="exits and other events reported by loaded slow-start modules")
    ss: bool = Field(default=True, description="ss output of every host at the beginning and the end, as a cross-check")
    pcap: list[Text] = Field(
        default_factory=list, max_length=64, description="interfaces to capture, as node:interface"
    )
    cpu: bool = Field(
        default=False,
        description="processor time of the guest kernel by function (engines uml and vm)",
    )

    @property
    def intervals_us(self) -> dict[str, int]:
        """Reading intervals by collector, in microseconds, without those that are off."""
        asked: dict[str, int | None] = {name: getattr(self, each.word) for name, each in registered().items()}
        return {name: us for name, us in asked.items() if us is not None}


def _field(each: Registered) -> Any:
    kind = each.collector
    try:
        default_us = None if kind.default is None else parse_duration(kind.default)
    except QuantityError as error:
        raise HowdahError(f"the default of the collector {each.name} is not an interval: {error}") from error
    return IntervalOrOff, Field(
        default=default_us, description=kind.says, json_schema_extra={"x-default": kind.default or "off"}
    )


if TYPE_CHECKING:
    CollectSection = CoreCollectSection
else:
    CollectSection = create_model(
        "CollectSection",
        __base__=CoreCollectSection,
        __doc__=CoreCollectSection.__doc__,
        __module__=__name__,
        **{each.word: _field(each) for each in registered().values()},
    )
