# SPDX-License-Identifier: Apache-2.0
"""Lies of a run whose kernel was not booted with what the plan says."""

from __future__ import annotations

from tests.liars.doctor import doctored, edit_agent
from tests.liars.liar import RunLiar, check

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
