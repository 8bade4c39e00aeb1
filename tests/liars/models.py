# SPDX-License-Identifier: Apache-2.0
"""Lies of a run that a simulator made."""

from __future__ import annotations

from howdah.record.directory import RunDirectory
from tests.liars.doctor import Doctor, doctored, edit_agent, remove
from tests.liars.liar import check


def _link(name: str, column: int, more: int) -> Doctor:
    """Change one count of links.tsv: arrivals, departures, drops, left."""

    def doctor(directory: RunDirectory) -> None:
        file = directory.raw / "links.tsv"
        rows = [line.split("\t") for line in file.read_text(encoding="utf-8").splitlines()]
        for row in rows:
            if row[0] == name:
                row[column] = str(int(row[column]) + more)
        file.write_text("".join("\t".join(row) + "\n" for row in rows), encoding="utf-8")

    return doctor


MODELS = [
    doctored(
        "another-simulator",
        "Another release of the simulator ran than the one whose parameters are declared.",
        check("engine", "model", "the plan is for a model (ns-2 2.35)"),
        edit_agent(lambda agent: agent.update(kernel_release="model (ns-2 2.34)")),
        honest="model",
    ),
    doctored(
        "simulation-without-an-end",
        "The simulation left no record of its flows.",
        check("engine", "agent", "did not finish"),
        remove("agent.json"),
        honest="model",
        appears=False,
    ),
    doctored(
        "simulated-packets-not-counted",
        "Nobody counted the packets of a simulation.",
        check("accounting", "accounting", "packets were not counted"),
        remove("links.tsv"),
        honest="model",
        appears=False,
    ),
    doctored(
        "simulated-packets-vanish",
        "Two packets of a simulation are gone that no queue dropped.",
        check("accounting", "packets forward", "2 lost behind it"),
        _link("r1,in", 2, -2),
        about="path",
        honest="model",
    ),
    doctored(
        "simulated-host-drops",
        "The queue of a simulated host dropped a packet.",
        check("accounting", "host queue drops", "1 packets were dropped in queues of hosts"),
        _link("s1,out", 3, 1),
        about="path",
        honest="model",
    ),
    doctored(
        "simulation-not-silent",
        "A packet was in a queue when the packets of a simulation were counted.",
        check("accounting", "silence", "1 packets were still queued"),
        _link("forward", 4, 1),
        about="path",
        honest="model",
    ),
]
