# SPDX-License-Identifier: Apache-2.0
"""``howdah doctor``: what each engine needs, what is missing here, and what to do about it."""

from __future__ import annotations

import argparse
import dataclasses

from rich.console import Console
from rich.text import Text

from howdah.build.cache import Cache, cache_root
from howdah.command.answer import answer
from howdah.command.common import add_json_option
from howdah.engine import host
from howdah.engine.check import MISSING, NOTE, OK, EngineCheck
from howdah.engine.ns2 import needs as ns2_needs
from howdah.engine.uml import needs, profiler
from howdah.engine.vm import needs as vm_needs
from howdah.errors import HowdahError
from howdah.layout import DEFAULT_WIDTH, folded, terminal_width
from howdah.place import cache_place
from howdah.publish import prometheus

_MARK = {"ok": ("✓", "green"), "missing": ("✕", "red"), "note": ("i", "yellow")}


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser("doctor")
    add_json_option(parser)
    parser.set_defaults(execute=execute)


def execute(options: argparse.Namespace) -> int:
    checks = examine()
    if options.json:
        answer("doctor", {"checks": [dataclasses.asdict(check) for check in checks]})
        return 0
    console = Console(highlight=False, soft_wrap=True)
    width = terminal_width() or DEFAULT_WIDTH
    for number, engine in enumerate(dict.fromkeys(check.engine for check in checks)):
        console.print(("\n" if number else "") + (f"engine {engine}" if engine != "all" else "all engines"))
        for check in (check for check in checks if check.engine == engine):
            mark, style = _MARK[check.status]
            lines = folded(f"{check.what}: {check.found}" if check.found else check.what, width - 2, "    ", "")
            if check.remedy:
                lines += folded(check.remedy, width - 2, "      ", "    → ")
            console.print(Text(mark, style=style), Text(lines[0]))
            for line in lines[1:]:
                console.print(Text(line))
    return 0


__all__ = ["EngineCheck", "examine"]


def examine() -> list[EngineCheck]:
    """All checks of all engines, and of what every engine's results go through."""
    cache = Cache(cache_place())  # the checks are for a machine where it cannot be used, too
    return [
        *needs.checks(cache=cache),
        _perf(),
        *host.checks(),
        *vm_needs.every_check(cache),
        *ns2_needs.checks(),
        _cache(),
        _prometheus(),
    ]


def _cache() -> EngineCheck:
    try:
        return EngineCheck("all", "cache", OK, str(cache_root()))
    except HowdahError as error:
        return EngineCheck("all", "cache", MISSING, error.what, error.hint)


def _perf() -> EngineCheck:
    """Tried: it may be installed and not allowed to look."""
    problem = profiler.trial()
    if problem is None:
        return EngineCheck("uml", "perf", OK, "tried: processor time can be split by function (collect: {cpu: true})")
    remedy = "apt install linux-perf" if problem == "not installed" else "sysctl -w kernel.perf_event_paranoid=2"
    return EngineCheck(
        "uml", "perf", NOTE, f"{problem}: measures of processor time (collect: {{cpu: true}}) are null", remedy
    )


def _prometheus() -> EngineCheck:
    try:
        found = prometheus.find()
    except HowdahError as error:
        return EngineCheck("all", "prometheus, promtool", MISSING, error.what, error.hint)
    if found:
        return EngineCheck("all", "prometheus, promtool", OK, str(found.promtool))
    return EngineCheck(
        "all",
        "prometheus, promtool",
        NOTE,
        "not installed: figures are drawn from the tables alone",
        "The first report fetches the package into the cache; nothing is installed.",
    )
