# SPDX-License-Identifier: Apache-2.0
"""What is said of a kernel's own messages, by the counts of the table and the agent's account."""

from __future__ import annotations

from typing import Any

import pytest

from howdah.ingest.source import IngestReport, SourceReport
from howdah.judge.engine import kernel_log_checks
from howdah.record.verdict import Check
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


@pytest.mark.parametrize(
    ("agent", "counts", "expected"),
    [
        ({"kernel_log": account()}, {}, said(True, "the kernel's 5 messages hold no alarm", 0, 0, 0, "alarms")),
        (
            {"kernel_log": account(why="no /dev/kmsg")},
            {"kept": 0},
            said(None, "nobody could read what the kernel said (no /dev/kmsg)"),
        ),
        (
            {"kernel_log": account(records=6)},
            {},
            said(
                False,
                "kernel.log has 5 of the kernel's 6 messages: the others may tell that it was ill",
                6,
                5,
                0,
                "messages",
            ),
        ),
        (
            {"kernel_log": account(lost=3)},
            {},
            said(
                None,
                "3 messages of the kernel were overwritten before they were read; the other 5 hold no alarm",
                0,
                None,
                0,
                "alarms",
            ),
        ),
        # Of several machines all logs are one, and a log of the whole run does not count beside them.
        (
            {
                "kernel_log": account(records=99),
                "machines": {
                    "near": {"kernel_log": account(records=2, lost=1)},
                    "far": {"kernel_log": account(records=3, lost=1)},
                    "none": {},
                },
            },
            {},
            said(
                None,
                "2 messages of the kernel were overwritten before they were read; the other 5 hold no alarm",
                0,
                None,
                0,
                "alarms",
            ),
        ),
        (
            {"machines": {"near": {"kernel_log": account()}, "far": {"kernel_log": account(why="denied")}}},
            {},
            said(None, "nobody could read what the kernel said (denied)"),
        ),
        (
            {"kernel_log": account(lost=1)},
            {"alarms_total": 1, "alarms": [ALARM]},
            said(False, "the kernel says: WARNING: at x.c:15; called, the last first: f, g", 0, 1, 0, "alarms"),
        ),
        (
            {"kernel_log": account()},
            {"alarms_total": 3, "alarms": [{**ALARM, "machine": "far", "frames": []}, ALARM]},
            said(False, "the kernel says on far: WARNING: at x.c:15; and 2 more", 0, 3, 0, "alarms"),
        ),
        # Where the trace names no module, those of the profile were in use; of others the agent says no algorithms.
        (
            {
                "kernel_log": account(),
                "modules": {"mine": {"algorithms": []}, "howdah_traffic": {}, "other": {"algorithms": ["x"]}},
            },
            {"alarms_total": 1, "alarms": [{**ALARM, "frames": []}]},
            said(
                False,
                "the kernel says: WARNING: at x.c:15; the profile's modules mine and other were in use",
                0,
                1,
                0,
                "alarms",
            ),
        ),
        (
            {"kernel_log": account(), "modules": {"mine": {"algorithms": []}}},
            {"alarms_total": 1, "alarms": [{**ALARM, "module": "mine", "frames": []}]},
            said(False, "the kernel says: WARNING: at x.c:15, in the module mine", 0, 1, 0, "alarms"),
        ),
        (
            {"kernel_log": account()},
            {"alarms_total": 1, "alarms": [{**ALARM, "text": "x" * 500}]},
            said(False, f"the kernel says: {'x' * 400}", 0, 1, 0, "alarms"),
        ),
    ],
)
def test_what_is_said_of_a_kernels_messages(agent: dict[str, Any], counts: dict[str, Any], expected: Check) -> None:
    assert judged(agent, **counts) == expected


def test_a_table_that_is_missing_has_no_message() -> None:
    (check,) = kernel_log_checks(IngestReport({}), agent_of({"kernel_log": account()}))
    message = "kernel.log has 0 of the kernel's 5 messages: the others may tell that it was ill"
    assert check == said(False, message, 5, 0, 0, "messages")
