# SPDX-License-Identifier: Apache-2.0
"""The agent's record of its run: whether the run went well, and if not, what stopped it."""

from __future__ import annotations

import json
import re

from howdah.engine.ending import Ending
from howdah.errors import RecordError, RunFailedError
from howdah.record.agent import AgentFailure, AgentRecord
from howdah.record.directory import RunDirectory, read_json
from howdah.record.kernel_log import console_tail
from howdah.record.model import checked

_FLOW = re.compile(r"flow \d+")


def check_agent(directory: RunDirectory, ending: Ending, places: dict[str, str] | None = None) -> AgentRecord:
    """The agent's record. Raises RunFailedError unless it is that of a run that went well.

    ``places`` are those of the plan: an error of a flow of programs names its place in the profile.
    """
    how = f"signal {ending.signal}" if ending.signal else f"status {ending.exit_status}"
    said = "\n    ".join(console_tail(directory.console))
    hint = f"Last lines of the console:\n    {said}" if said else None
    try:
        file = directory.raw / "agent.json"
        record = checked(AgentRecord, read_json(file), file)
    except FileNotFoundError:
        raise RunFailedError(
            f"the agent ended ({how}) without a record of its run", where=str(directory.console), hint=hint
        ) from None
    except ValueError as reason:
        why = reason.what if isinstance(reason, RecordError) else reason
        raise RunFailedError(
            f"the agent's record cannot be read ({why}); is the disk full?", where=str(directory.raw / "agent.json")
        ) from None
    if record.status != "ok":
        error = record.error or AgentFailure()
        operation = error.operation
        during = f" during {json.dumps(operation)}" if operation else ""
        flow = _FLOW.match(str(operation))
        place = (places or {}).get(flow[0]) if flow else None
        raise RunFailedError(
            f"the agent stopped{during}: {error.message or how}",
            where=place or str(directory.console),
            hint=None if error.message else hint,
        )
    if ending.exit_status != 0:
        raise RunFailedError(f"the agent ended with {how} after its run", where=str(directory.console), hint=hint)
    return record
