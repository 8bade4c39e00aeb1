# SPDX-License-Identifier: Apache-2.0
"""What each engine needs, what is here, and what to do about the rest."""

from __future__ import annotations

from howdah.engine import host
from howdah.engine.check import MISSING, NOTE, OK, Check
from howdah.engine.uml import needs, profiler
from howdah.engine.vm import needs as vm_needs
from howdah.errors import HowdahError
from howdah.publish import prometheus

__all__ = ["Check", "examine"]


def examine() -> list[Check]:
    """All checks of all engines, and of what every engine's results go through."""
    return [*needs.checks(), _perf(), *host.checks(), *vm_needs.every_check(), _prometheus()]


def _perf() -> Check:
    """Tried: it may be installed and not allowed to look."""
    problem = profiler.trial()
    if problem is None:
        return Check("uml", "perf", OK, "tried: processor time can be told by function (collect: {cpu: true})")
    remedy = "apt install linux-perf" if problem == "not installed" else "sysctl -w kernel.perf_event_paranoid=2"
    return Check(
        "uml", "perf", NOTE, f"{problem}: measures of processor time (collect: {{cpu: true}}) are null", remedy
    )


def _prometheus() -> Check:
    try:
        found = prometheus.find()
    except HowdahError as error:
        return Check("all", "prometheus, promtool", MISSING, error.what, error.hint)
    if found:
        return Check("all", "prometheus, promtool", OK, str(found.promtool))
    return Check(
        "all",
        "prometheus, promtool",
        NOTE,
        "not here: figures are drawn from the tables alone",
        "The first report fetches the package into the cache; nothing is installed.",
    )
