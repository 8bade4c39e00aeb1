# SPDX-License-Identifier: Apache-2.0
"""Checks that installed packages add (howdah/hooks.py)."""

from __future__ import annotations

from howdah.extension import extensions
from howdah.hooks import CheckRun
from howdah.measure.measured import Measured
from howdah.record.directory import RunDirectory
from howdah.record.verdict import Check


def extension_checks(directory: RunDirectory, data: Measured) -> list[Check]:
    """Raises HowdahError, which names the package, for a check that does not work."""
    checks: list[Check] = []
    for each in extensions("checks").values():
        check: CheckRun = each.load()
        checks += each.guarded(_made, check, directory, data)
    return checks


def _made(check: CheckRun, directory: RunDirectory, data: Measured) -> list[Check]:
    return list(check(directory, data))
