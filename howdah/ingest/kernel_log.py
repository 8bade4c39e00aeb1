# SPDX-License-Identifier: Apache-2.0
"""raw/kernel.log to its account in tables/ingest.json: what the kernels said during the run, and their alarms."""

from __future__ import annotations

import re

from howdah.codec import encoded
from howdah.ingest.source import Context, SourceReport
from howdah.linux.kernelmessage import KernelMessage, parse
from howdah.record.agent import AgentRecord, KernelLogRecord
from howdah.record.kernel_log import alarms
from howdah.record.raw import read_raw_text

_FILE = "kernel.log"
_MOST_ALARMS = 20
_MOST_SAID = 40
_MOST_CHARACTERS = 300  # of a line
# What each kernel says of every run, or of each module that was not built with it.
_USUAL = re.compile(
    r"loading out-of-tree module taints kernel|module verification failed|module license .* taints kernel"
    r"|^netem: version|^GACT probability|^Mirror/redirect action on|quantum of class .* is (?:big|small)"
    r"|^random: |renamed from|entered (?:promiscuous|allmulticast) mode|left (?:promiscuous|allmulticast) mode"
    r"|link becomes ready|entered (?:blocking|forwarding|disabled|learning|listening) state|link is not ready"
    r"|^bridge: filtering|^Fair server disabled"
)


def ingest_kernel_log(context: Context) -> SourceReport | None:
    """None where the agent kept no log. A file that lacks messages is for the judge, who has the agent's account.

    ``counts`` has ``kept`` (messages in the files), ``alarms`` and the first lines that are not usual ones
    (``said``, of ``said_total``). With several kernels each has its ``machine``.
    """
    kept = _accounts(context.agent)
    if not kept:
        return None
    report = SourceReport(counts={"kept": 0, "alarms": [], "alarms_total": 0, "said": [], "said_total": 0})
    for machine, account in kept.items():
        place = {"machine": machine} if machine else {}
        path = context.directory.raw / machine / _FILE
        try:
            text = read_raw_text(path, errors="replace")
        except FileNotFoundError:
            continue
        except OSError as error:
            report.problems.append(f"{path.name} cannot be read: {error}")
            continue
        parsed = [parse(line) for line in text.splitlines()]
        messages = [message for message in parsed if message is not None]
        report.counts["kept"] += len(messages)
        first = account.first or 0
        _tell(report, [each for each in messages if each.number >= first], place)
    report.rows = report.counts["kept"]
    return report


def _accounts(agent: AgentRecord) -> dict[str, KernelLogRecord]:
    """By the machine, "" where there is only one."""
    kernels = agent.machines or {}
    found = {name: kernel.kernel_log for name, kernel in kernels.items() if kernel.kernel_log is not None}
    return found or ({"": agent.kernel_log} if agent.kernel_log else {})


def _tell(report: SourceReport, messages: list[KernelMessage], place: dict[str, str]) -> None:
    counts = report.counts
    found = [encoded(alarm) | place for alarm in alarms([(each.time_us, each.text) for each in messages])]
    counts["alarms_total"] += len(found)
    counts["alarms"] += found[: _MOST_ALARMS - len(counts["alarms"])]
    said = [each for each in messages if not _USUAL.search(each.text)]
    counts["said_total"] += len(said)
    for each in said[: _MOST_SAID - len(counts["said"])]:
        counts["said"].append({"time_us": each.time_us, "text": each.text[:_MOST_CHARACTERS], **place})
