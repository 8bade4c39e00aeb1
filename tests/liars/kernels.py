# SPDX-License-Identifier: Apache-2.0
"""Lies of kernels: what passed between two of them, what one said, and with which parameters it was booted."""

from __future__ import annotations

from typing import Any

from howdah.record.directory import RunDirectory
from tests.liars.doctor import Doctor, doctored, edit, edit_agent, lines, remove
from tests.liars.liar import RunLiar, check


def _arriving(**changes: Any) -> Doctor:
    """The wire to r1 (the plan's fourth host) in the kernel in which it ends."""

    def change(record: dict[str, Any]) -> None:
        (wire,) = [each for each in record["parts"]["receivers"] if each["arrives"]]
        wire.update({name: wire[name] + more for name, more in changes.items()})

    return edit("wire.json", change)


KERNELS = [
    doctored(
        "wires-not-recorded",
        "Nobody counted what passed between the kernels.",
        check("engine", "wires", "the record of the wires between the kernels is missing"),
        remove("wire.json"),
        honest="kernels",
        appears=False,
    ),
    doctored(
        "wire-lost-a-frame",
        "One frame that left a kernel did not arrive in the other.",
        check("engine", "wire to r1", "arrived"),
        _arriving(arrived_frames=-1),
        about="path",
        honest="kernels",
    ),
    doctored(
        "wire-without-room",
        "A frame found no room in the memory that the kernels share.",
        check("engine", "wire to r1", "found no room"),
        _arriving(lost_frames=1),
        about="path",
        honest="kernels",
    ),
    doctored(
        "wire-late",
        "A frame came 5 us later than the delay of its wire.",
        check("engine", "delay of the wire to r1", "after their time"),
        _arriving(late_frames=1, latest_ns=5_000),
        about="path",
        honest="kernels",
    ),
]


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

BOOTED: list[RunLiar] = [
    doctored(
        "booted-with-another-parameter",
        "The kernel was booted without HyStart, and its parameter was set to the plan's value afterwards.",
        check("engine", "boot parameters", "was given tcp_cubic.hystart=0, the plan says 1"),
        edit_agent(lambda a: a["boot_parameters"].update({"tcp_cubic.hystart": "0"})),
        about="module",
    ),
    doctored(
        "booted-without-a-parameter",
        "The kernel was not given a parameter of the plan, and nothing else shows it.",
        check("engine", "boot parameters", "was not given tcp_cubic.hystart, the plan says 1"),
        edit_agent(lambda a: (a["boot_parameters"].pop("tcp_cubic.hystart"), a["modules"].clear())),
        about="module",
    ),
    doctored(
        "booted-with-one-parameter-more",
        "The kernel was given a parameter that the plan does not know.",
        check("engine", "boot parameters", "was given tcp_cubic.beta, the plan says nothing of it"),
        edit_agent(lambda a: a["boot_parameters"].update({"tcp_cubic.beta": "900"})),
        about="module",
    ),
]
