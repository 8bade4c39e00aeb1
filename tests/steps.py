# SPDX-License-Identifier: Apache-2.0
"""Steps of plans as plan.json has them."""

from __future__ import annotations

from typing import Any

from howdah.plan.event import Event
from howdah.plan.step import Operation


def operation(op: str, **arguments: Any) -> Operation:
    """Raises ValueError for an unknown one, TypeError for arguments that it has not or lacks."""
    return Operation.of_json({"op": op, "arguments": arguments})


def event(at_us: int, op: str, **arguments: Any) -> Event:
    """The same of an event."""
    return Event.of_json({"at_us": at_us, "op": op, "arguments": arguments})


def with_options(of: Operation, **options: Any) -> Operation:
    """A queue or class with other options."""
    arguments = of.arguments()
    return operation(of.op, **{**arguments, "options": arguments["options"] | options})


def changed(of: Event, **arguments: Any) -> Event:
    """An event with other arguments."""
    return event(of.at_us, of.op, **{**of.change.arguments(), **arguments})


def with_changed_options(of: Event, **options: Any) -> Event:
    """A change of a queue or class with other options."""
    return changed(of, options=of.change.arguments()["options"] | options)
