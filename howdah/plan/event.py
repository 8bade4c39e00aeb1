# SPDX-License-Identifier: Apache-2.0
"""What happens while flows run: flows begin and end, and the path changes (placed.py). Standard library only."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from howdah.codec import planned
from howdah.plan.step import BuiltNetwork, PlanStep, ReadAsWritten, read_step


class PlannedChange(PlanStep):
    """What an event does. ``known`` has the class of each by its name."""

    known: ClassVar[dict[str, type[PlanStep]]] = {}

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        if "op" in vars(cls):
            PlannedChange.known[cls.op] = cls

    def line(self) -> str:
        """For people, as a command where it is one."""
        raise NotImplementedError


class PathChange(PlannedChange):
    """A change of the path while flows run."""

    def change(self, to: BuiltNetwork, at_ns: int) -> None:
        """``at_ns`` is the time that it is planned for. Raises OSError where the kernel refuses it."""
        raise NotImplementedError


@planned
class FlowChange(PlannedChange):
    """``flow`` is the flow's number."""

    flow: int

    def line(self) -> str:
        return f"{self.op.replace('_', ' ')} {self.flow}"


@planned
class StartFlow(FlowChange):
    """A flow begins."""

    op: ClassVar[str] = "start_flow"


@planned
class StopFlow(FlowChange):
    """A flow ends."""

    op: ClassVar[str] = "stop_flow"


@planned
class Event(ReadAsWritten):
    """Something that happens at a time, which counts from the epoch."""

    has_time: ClassVar[bool] = True
    at_us: int
    change: PlannedChange

    @property
    def op(self) -> str:
        return self.change.op

    def as_json(self) -> dict[str, Any]:
        return {"at_us": self.at_us, **self.change.as_json()}

    @classmethod
    def of_json(cls, value: Mapping[str, Any]) -> Event:
        change = read_step(value, {"at_us", "op", "arguments"}, PlannedChange.known)
        return cls(value["at_us"], change)
