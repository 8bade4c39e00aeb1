# SPDX-License-Identifier: Apache-2.0
"""Events while flows run: flows start and stop, and the path changes (placed.py). Standard library only."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from howdah.codec import planned
from howdah.plan.step import BuiltNetwork, PlanStep, ReadAsWritten, read_step


class PlannedChange(PlanStep):
    """The action of an event. ``known`` maps each name to its class."""

    known: ClassVar[dict[str, type[PlanStep]]] = {}

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        if "op" in vars(cls):
            PlannedChange.known[cls.op] = cls

    def line(self) -> str:
        """The change as text for people, as a shell command if there is one."""
        raise NotImplementedError


class PathChange(PlannedChange):
    """A change of the path while flows run."""

    def change(self, to: BuiltNetwork, at_ns: int) -> None:
        """Change the path. ``at_ns`` is the planned time. Raise OSError if the kernel refuses."""
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
    """A change at a time, counted from the epoch."""

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
