# SPDX-License-Identifier: Apache-2.0
"""Lies of a run that several machines made: of their clocks, their processors and the wires between them."""

from __future__ import annotations

from typing import Any

from tests.liars.doctor import Doctor, doctored, edit, edit_agent, remove
from tests.liars.liar import check


def _machine(**changes: Any) -> Doctor:
    return edit_agent(lambda agent: agent["machines"]["beta"]["processor"].update(changes))


def _clock(**changes: Any) -> Doctor:
    return edit("clock.json", lambda clocks: clocks["machines"]["beta"].update(changes))


MACHINES = [
    doctored(
        "clocks-not-recorded",
        "Nobody compared the clocks of the machines.",
        check("engine", "clocks", "the record of the machines' clocks is missing"),
        remove("clock.json"),
        about="clock",
        honest="machines",
        appears=False,
    ),
    doctored(
        "clock-not-known",
        "The clock of a machine is known to a quarter of the round trip only.",
        check("engine", "clock of beta", "cannot be put in order"),
        _clock(uncertainty_ns=5_000_000),
        about="clock",
        honest="machines",
    ),
    doctored(
        "clock-too-fast",
        "The clock of a machine gains 2 ms a second.",
        check("engine", "clock rate of beta", "does not run at the speed of time"),
        _clock(gain=0.002),
        about="clock",
        honest="machines",
    ),
    doctored(
        "processor-not-watched",
        "Nobody watched the processor of a machine.",
        check("engine", "processor of beta", "was not watched"),
        edit_agent(lambda a: a["machines"]["beta"].pop("processor")),
        honest="machines",
    ),
    doctored(
        "processor-too-slow",
        "A machine woke up late in 5 % of all cases.",
        check("engine", "processor of beta", "short of processor time"),
        _machine(late=[[number, 9_000_000] for number in range(50)]),
        honest="machines",
    ),
    doctored(
        "processor-missed-its-turns",
        "A machine was not run at all for a while.",
        check("engine", "processor of beta", "short of processor time"),
        _machine(missed=50),
        honest="machines",
    ),
    doctored(
        "processor-once-very-late",
        "A machine woke up late only once, by half a second.",
        check("engine", "processor of beta", "short of processor time"),
        _machine(late_worst_ns=500_000_000),
        honest="machines",
    ),
    doctored(
        "processor-stolen",
        "Other virtual machines took 5 % of a machine's processor.",
        check("engine", "stolen time of beta", "went to other virtual machines"),
        _machine(steal=0.05),
        honest="machines",
    ),
    doctored(
        "no-echo",
        "No echo came back from the receiver.",
        check("before", "round trip s1-r1", "no echo came"),
        edit("calibration-before.json", lambda found: found["round_trips"][0].update(round_trip_ns=None)),
        about="path",
        honest="machines",
    ),
    doctored(
        "wires-too-long",
        "The round trip over the wires is 5 ms too long.",
        check("after", "round trip s1-r1", "too long"),
        edit("calibration-after.json", lambda found: found["round_trips"][0].update(round_trip_ns=[25_000_000] * 3)),
        about="path",
        honest="machines",
    ),
    doctored(
        "wires-too-short",
        "The round trip over the wires is 5 ms too short.",
        check("before", "round trip s1-r1", "too short"),
        edit("calibration-before.json", lambda found: found["round_trips"][0].update(round_trip_ns=[15_000_000] * 3)),
        about="path",
        honest="machines",
    ),
]
