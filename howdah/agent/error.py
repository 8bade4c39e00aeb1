# SPDX-License-Identifier: Apache-2.0
"""The error that ends a run inside the guest; it becomes ``error`` in agent.json."""

from __future__ import annotations


class AgentError(Exception):
    """``operation`` names what the agent was doing (a numbered operation, a flow, a phase); ``message`` says what
    failed."""

    def __init__(self, operation: str, message: str) -> None:
        super().__init__(f"{operation}: {message}")
        self.operation = operation
        self.message = message
