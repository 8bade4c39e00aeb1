# SPDX-License-Identifier: Apache-2.0
"""What an agent tells, from the values of its JSON."""

from __future__ import annotations

from pathlib import Path
from typing import Any, TypeVar

from howdah.record.agent import AgentRecord, FlowRecord
from howdah.record.model import checked

_Kind = TypeVar("_Kind")


def read_as(kind: type[_Kind], value: Any) -> _Kind:
    return checked(kind, value, Path("record.json"))


def agent_of(value: dict[str, Any] | None) -> AgentRecord | None:
    """None stands for a run without agent.json."""
    return None if value is None else read_as(AgentRecord, value)


def told(**fields: Any) -> AgentRecord:
    return read_as(AgentRecord, fields)


def flow_record(**fields: Any) -> FlowRecord:
    return read_as(FlowRecord, {"id": 1, **fields})
