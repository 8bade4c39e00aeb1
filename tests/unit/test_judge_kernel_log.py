# SPDX-License-Identifier: Apache-2.0
"""What is said of a kernel's own messages, by the counts of the table and the agent's account."""

from __future__ import annotations

from typing import Any

import pytest

from howdah.ingest.source import IngestReport, SourceReport
from howdah.judge.engine import kernel_log_checks
from howdah.record.verdict import Check
from tests.unit.recorded_lines import compare_checks
from tests.unit.told_by_agent import agent_of

ALARM = {"time_us": 7, "text": "WARNING: at x.c:15", "module": None, "frames": ["f", "g"]}


def account(**changes: Any) -> dict[str, Any]:
    return {"records": 5, "lost": 0, "why": None, **changes}


def judged(agent: dict[str, Any] | None, **counts: Any) -> Check:
    found = SourceReport(counts={"kept": 5, "alarms_total": 0, "alarms": [], **counts})
    (check,) = kernel_log_checks(IngestReport({"kernel_log": found}), agent_of(agent))
    return check


def said(ok: bool | None, message: str, *numbers: Any) -> Check:
    return Check("kernel log", "engine", ok, message, *numbers)


@pytest.mark.parametrize("agent", [None, {}, {"kernel_log": None}, {"machines": {"far": {}}}, {"machines": None}])
def test_a_log_that_nobody_kept_is_not_judged(agent: dict[str, Any] | None) -> None:
    assert judged(agent) == said(None, "what the kernel said was not kept")


ONE = {"alarms_total": 1, "alarms": [{**ALARM, "frames": []}]}
OWN: dict[str, Any] = {"mine": {"algorithms": []}}
SAID: dict[str, tuple[dict[str, Any], dict[str, Any], bool | None]] = {
    "quiet": ({"kernel_log": account()}, {}, True),
    "not read": ({"kernel_log": account(why="no /dev/kmsg")}, {"kept": 0}, None),
    "one missing": ({"kernel_log": account(records=6)}, {}, False),
    "overwritten": ({"kernel_log": account(lost=3)}, {}, None),
    "of several machines all logs are one, and one of the whole run does not count": (
        {
            "kernel_log": account(records=99),
            "machines": {
                "near": {"kernel_log": account(records=2, lost=1)},
                "far": {"kernel_log": account(records=3, lost=1)},
                "none": {},
            },
        },
        {},
        None,
    ),
    "not read on one of two": (
        {"machines": {"near": {"kernel_log": account()}, "far": {"kernel_log": account(why="denied")}}}, {}, None
    ),
    "an alarm": ({"kernel_log": account(lost=1)}, {"alarms_total": 1, "alarms": [ALARM]}, False),
    "three, one of them elsewhere": (
        {"kernel_log": account()},
        {"alarms_total": 3, "alarms": [{**ALARM, "machine": "far", "frames": []}, ALARM]},
        False,
    ),
    # Of modules that are not of the profile the agent says no algorithms.
    "the trace names no module, and two of the profile were in use": (
        {"kernel_log": account(), "modules": {**OWN, "howdah_traffic": {}, "other": {"algorithms": ["x"]}}}, ONE, False
    ),
    "in a module": (
        {"kernel_log": account(), "modules": OWN},
        {"alarms_total": 1, "alarms": [{**ALARM, "module": "mine", "frames": []}]},
        False,
    ),
    "more words than are shown": (
        {"kernel_log": account()}, {"alarms_total": 1, "alarms": [{**ALARM, "text": "x" * 500}]}, False
    ),
}  # fmt: skip


def test_what_is_said_of_a_kernels_messages() -> None:
    compare_checks("kernel-log", ((title, ok, judged(agent, **counts)) for title, (agent, counts, ok) in SAID.items()))


def test_a_table_that_is_missing_has_no_message() -> None:
    (check,) = kernel_log_checks(IngestReport({}), agent_of({"kernel_log": account()}))
    message = "kernel.log has 0 of the kernel's 5 messages: the others may tell that it was ill"
    assert check == said(False, message, 5, 0, 0, "messages")
