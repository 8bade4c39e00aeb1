# SPDX-License-Identifier: Apache-2.0
"""What an agent tells, from the values of its JSON."""

from __future__ import annotations

from typing import Any

from howdah.record.agent import AgentRecord, FlowRecord


def agent_of(value: dict[str, Any] | None) -> AgentRecord | None:
    """None stands for a run without agent.json."""
    return None if value is None else AgentRecord.model_validate(value)


def told(**fields: Any) -> AgentRecord:
    return AgentRecord.model_validate(fields)


def flow_record(**fields: Any) -> FlowRecord:
    return FlowRecord.model_validate({"id": 1, **fields})
