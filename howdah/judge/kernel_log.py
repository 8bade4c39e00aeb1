# SPDX-License-Identifier: Apache-2.0
"""Whether the kernels said that something in them is wrong while the run went on: WARNING, BUG, Oops and their like."""

from __future__ import annotations

from howdah.codec import decoded
from howdah.ingest.source import IngestReport
from howdah.record.agent import AgentRecord, KernelLogRecord
from howdah.record.kernel_log import SOURCE, KernelAlarm, in_use
from howdah.record.verdict import ENGINE, Check

_CHECK = "kernel log"
_MOST_CHARACTERS = 400


def kernel_log_checks(report: IngestReport, agent: AgentRecord | None) -> list[Check]:
    """``agent`` is agent.json, whose account the log must match.

    A kernel that warns goes on, but of what it does then nobody knows whether it is what it should do.
    """
    accounts = _accounts(agent or AgentRecord())
    found = report.sources.get(SOURCE)
    if not accounts:
        return [Check(_CHECK, ENGINE, None, "what the kernel said was not kept")]
    unread = [account.why for account in accounts if account.why]
    if unread:
        return [Check(_CHECK, ENGINE, None, f"nobody could read what the kernel said ({unread[0]})")]
    written = sum(account.records for account in accounts)
    counts = found.counts if found is not None else {}
    kept = int(counts.get("kept", 0))
    if kept != written:
        what = f"kernel.log has {kept} of the kernel's {written} messages: the others may tell that it was ill"
        return [Check(_CHECK, ENGINE, False, what, written, kept, 0, "messages")]
    total = int(counts["alarms_total"])
    if total:
        said = _said(decoded(KernelAlarm, counts["alarms"][0]), total, _own_modules(agent or AgentRecord()))
        return [Check(_CHECK, ENGINE, False, said, 0, total, 0, "alarms")]
    lost = sum(account.lost for account in accounts)
    if lost:
        what = f"{lost} messages of the kernel were overwritten before they were read; the other {kept} hold no alarm"
        return [Check(_CHECK, ENGINE, None, what, 0, None, 0, "alarms")]
    return [Check(_CHECK, ENGINE, True, f"the kernel's {kept} messages hold no alarm", 0, 0, 0, "alarms")]


def _accounts(agent: AgentRecord) -> list[KernelLogRecord]:
    machines = [kernel.kernel_log for kernel in (agent.machines or {}).values() if kernel.kernel_log]
    return machines or [account for account in [agent.kernel_log] if account]


def _own_modules(agent: AgentRecord) -> list[str]:
    """The profile's, of which alone the agent records what they register."""
    return [name for name, value in (agent.modules or {}).items() if value and value.algorithms is not None]


def _said(alarm: KernelAlarm, total: int, own_modules: list[str]) -> str:
    where = f" on {alarm.machine}" if alarm.machine else ""
    more = f"; and {total - 1} more" if total > 1 else ""
    whose = "" if alarm.module else in_use(own_modules)
    return f"the kernel says{where}: {alarm.described[:_MOST_CHARACTERS]}{whose}{more}"
