# SPDX-License-Identifier: Apache-2.0
"""agent.json: what the agent found, built and did (docs/data-format.md)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from howdah.plan.plan import Plan

AGENT_FORMAT = 1


class AgentReport:
    """Each attribute is a field of agent.json. One that is not given yet is not there: a run may end in any phase."""

    machine: str  # of several machines or kernels: this one
    part: list[str]  # its hosts
    kernel_release: str
    kernel_version: str
    hertz: int
    available_algorithms: list[str]
    boot_parameters: dict[str, str]
    modules: dict[str, dict[str, object]]
    sysctls: dict[str, dict[str, str]]
    qdiscs: Mapping[str, object]
    links: Mapping[str, object]
    routes: Mapping[str, object]
    tools: dict[str, str]
    operations_wall_us: int
    epoch_monotonic_ns: int
    processor: dict[str, object] | None
    flows: list[dict[str, object]]
    algorithms: Mapping[str, object]
    memory: dict[str, int | None]
    kernel_log: dict[str, object] | None

    def __init__(self, plan: Plan) -> None:
        self.format = AGENT_FORMAT
        self.status = "error"
        self.error: dict[str, str] | None = None
        self.phases: list[dict[str, object]] = []
        self.run, self.seed = plan.run, plan.seed  # whose records these are

    def add(self, **found: Any) -> None:
        """Several fields by their names."""
        vars(self).update(found)

    def failed(self, operation: str, message: str) -> None:
        self.error = {"operation": operation, "message": message}

    def to_json(self) -> dict[str, object]:
        """In the order in which the fields were given."""
        return dict(vars(self))
