# SPDX-License-Identifier: Apache-2.0
"""``howdah doctor``: what each engine needs, what is missing on this machine, and how to get it."""

from __future__ import annotations

import argparse
import threading
import time
from collections.abc import Callable
from datetime import UTC, date, datetime

from rich.console import Console
from rich.text import Text

from howdah.build.bundle_file import BundleFile
from howdah.build.cache import Cache, cache_root
from howdah.build.supply import bundles, installed
from howdah.command.answer import answer
from howdah.command.build import signer_of
from howdah.command.common import add_json_option
from howdah.command.shape import CommandAnswer
from howdah.distribution import installing
from howdah.engine import host
from howdah.engine.engine import MISSING, NOTE, OK, EngineCheck
from howdah.engine.ns2 import needs as ns2_needs
from howdah.engine.uml import needs, profiler
from howdah.engine.vm import needs as vm_needs
from howdah.errors import HowdahError
from howdah.layout import DEFAULT_WIDTH, folded, terminal_width
from howdah.place import cache_directory
from howdah.publish import prometheus

_MARK = {"ok": ("✓", "green"), "missing": ("✕", "red"), "note": ("i", "yellow")}


_OLD_DAYS = 180
_LIMIT_S = 5.0  # for all checks together


class Doctor(CommandAnswer, shape="doctor"):
    checks: list[EngineCheck]


def arguments(parser: argparse.ArgumentParser) -> None:
    add_json_option(parser)


def execute(options: argparse.Namespace) -> int:
    checks = examine()
    if options.json:
        answer(Doctor(checks=checks))
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


def examine(limit_s: float = _LIMIT_S) -> list[EngineCheck]:
    """Run the checks of all engines, and those of the parts that all engines share."""
    cache = Cache(cache_directory())  # works where the cache is unusable; _cache() reports that
    groups: list[tuple[str, Callable[[], list[EngineCheck]]]] = [
        ("uml", lambda: needs.checks(cache=cache)),
        ("uml", lambda: [_perf()]),
        ("uml", lambda: _bundles(cache)),
        ("host", host.checks),
        ("vm", lambda: vm_needs.every_check(cache)),
        ("ns2", ns2_needs.checks),
        ("all", lambda: [_cache(), _prometheus()]),
    ]
    return _run_groups(limit_s, groups)


def _run_groups(limit_s: float, groups: list[tuple[str, Callable[[], list[EngineCheck]]]]) -> list[EngineCheck]:
    """Run all groups of checks in parallel and return their results in order. A group that does not finish within
    ``limit_s`` is reported as unanswered."""
    answers: list[list[EngineCheck] | BaseException | None] = [None] * len(groups)

    def ask(number: int) -> None:
        try:
            answers[number] = groups[number][1]()
        except BaseException as error:  # noqa: BLE001 - raised by whoever waits
            answers[number] = error

    threads = [threading.Thread(target=ask, args=(number,), daemon=True) for number in range(len(groups))]
    for thread in threads:
        thread.start()
    end = time.monotonic() + limit_s
    for thread in threads:
        thread.join(max(end - time.monotonic(), 0.0))
    found: list[EngineCheck] = []
    for (engine, _checks), answered in zip(groups, answers, strict=True):
        if isinstance(answered, HowdahError):
            what = f"{answered.where}: {answered.what}" if answered.where else answered.what
            found.append(EngineCheck(engine, "checks", MISSING, what, answered.hint))
        elif isinstance(answered, BaseException):
            raise answered
        else:
            message = f"no answer within {limit_s:.0f} s: this machine is busy, or something hangs"
            found += [EngineCheck(engine, "checks", NOTE, message, "Run it again.")] if answered is None else answered
    return list(dict.fromkeys(found))  # several checks of an engine may report the same bundle


def _bundles(cache: Cache) -> list[EngineCheck]:
    """Check the age and the signer of every bundle in use. Raise HowdahError for an incomplete bundle."""
    return [_bundle(each) for each in bundles(cache)]


def _bundle(bundle: BundleFile) -> EngineCheck:
    days = (datetime.now(UTC).date() - date.fromisoformat(bundle.made)).days
    description = f"{bundle.digest[:12]} of {bundle.made} ({days} days old), made by howdah {bundle.howdah}"
    package = "the package howdah-guest" if bundle.place == installed() else str(bundle.place)
    try:
        signer = signer_of(bundle) or "not signed"
    except HowdahError as error:
        return EngineCheck(
            "uml", "bundle", MISSING, f"{description}: {error.what}", error.hint or "Install or take it again."
        )
    if days > _OLD_DAYS:
        remedy = "pip install --upgrade howdah-guest, or take a newer one with 'howdah build --from'."
        return EngineCheck("uml", "bundle", NOTE, f"{package}: {description}, {signer}; its packages are old", remedy)
    return EngineCheck("uml", "bundle", OK, f"{package}: {description}, {signer}")


def _cache() -> EngineCheck:
    try:
        return EngineCheck("all", "cache", OK, str(cache_root()))
    except HowdahError as error:
        return EngineCheck("all", "cache", MISSING, error.what, error.hint)


def _perf() -> EngineCheck:
    """Try perf: it may be installed but not permitted."""
    problem = profiler.trial()
    if problem is None:
        return EngineCheck("uml", "perf", OK, "tried: processor time can be split by function (collect: {cpu: true})")
    remedy = installing("linux-perf") if problem == "not installed" else "sysctl -w kernel.perf_event_paranoid=2"
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
        "'howdah serve' fetches the package into the cache; nothing is installed.",
    )
