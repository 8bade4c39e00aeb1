# SPDX-License-Identifier: Apache-2.0
"""Reads what the agent wrote of its run (agent.json) and of the path (calibration-*.json)."""

from __future__ import annotations

from pathlib import Path

from howdah.errors import HowdahError
from howdah.record.agent import AgentRecord
from howdah.record.calibration import CalibrationRecord
from howdah.record.directory import RunDirectory
from howdah.record.model import checked
from howdah.record.raw import read_raw_json


def read_agent(directory: RunDirectory) -> AgentRecord:
    """agent.json of a run. Raises FileNotFoundError without it, and RecordError for the place of what is wrong."""
    path = directory.raw / "agent.json"
    return checked(AgentRecord, read_raw_json(path), path)


def agent_or_empty(directory: RunDirectory) -> AgentRecord:
    """The same; a record that says nothing where the file is missing or wrong, which the report of ingest tells."""
    try:
        return read_agent(directory)
    except (OSError, HowdahError):
        return AgentRecord()


def read_calibration(path: Path) -> CalibrationRecord | None:
    """One of the files; None where it is missing, or no such record."""
    try:
        return checked(CalibrationRecord, read_raw_json(path), path)
    except (OSError, ValueError, HowdahError):
        return None
