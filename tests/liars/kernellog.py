# SPDX-License-Identifier: Apache-2.0
"""Lies of a run whose kernel warned: what it said is not there, or nobody looked."""

from __future__ import annotations

from howdah.record.directory import RunDirectory
from tests.liars.doctor import Doctor, doctored, edit_agent, lines
from tests.liars.liar import RunLiar, check

_LOG = "kernel.log"


def _say(*messages: str) -> Doctor:
    """The kernel said this in the run, and the agent kept it."""

    def doctor(directory: RunDirectory) -> None:
        path = directory.raw / _LOG
        said = path.read_text(encoding="utf-8").splitlines()
        number = int(said[-1].split(",")[1]) + 1
        said += [f"4,{number + index},3000000;{text}" for index, text in enumerate(messages)]
        path.write_text("\n".join(said) + "\n", encoding="utf-8")
        edit_agent(lambda agent: agent["kernel_log"].update(records=len(said)))(directory)

    return doctor


KERNEL_LOGS: list[RunLiar] = [
    doctored(
        "kernel-warned",
        "The kernel warned while the flows ran, and went on.",
        check("engine", "kernel log", "WARNING: CPU: 0 PID: 0 at net/ipv4/tcp_input.c:4210"),
        _say(
            "------------[ cut here ]------------",
            "WARNING: CPU: 0 PID: 0 at net/ipv4/tcp_input.c:4210 tcp_ack+0x1/0x2",
            "Call Trace:",
            " [<602a8e12>] ? tcp_rcv_established+0x2d2/0x730",
        ),
    ),
    doctored(
        "kernel-log-cut-short",
        "The last messages of the kernel are gone, which may have been warnings.",
        check("engine", "kernel log", "the others may tell that it was ill"),
        lines(_LOG, 20),
    ),
]
