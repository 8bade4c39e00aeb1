# SPDX-License-Identifier: Apache-2.0
"""Measures that installed packages add (howdah/hooks.py)."""

from __future__ import annotations

from howdah.errors import HowdahError
from howdah.extension import Extension, extensions
from howdah.hooks import MeasureEntry
from howdah.measure.measured import Measured
from howdah.measure.row import Sheet
from howdah.record.directory import RunDirectory


def extension_rows(sheet: Sheet, directory: RunDirectory, data: Measured) -> None:
    """Raises HowdahError, which names the package, for a measure that does not work."""
    for name, extension in extensions("measures").items():
        entry: MeasureEntry = extension.load()
        for flow, value in _values(extension, entry, directory, data).items():
            if isinstance(value, str) and not entry.metric.is_text:
                sheet.add(flow, name, None, value)
            else:
                sheet.add(flow, name, value)


def _values(
    extension: Extension, entry: MeasureEntry, directory: RunDirectory, data: Measured
) -> dict[int | None, float | int | str]:
    found: dict[int | None, float | int | str] = extension.guarded(lambda: dict(entry.compute(directory, data)))
    known = {flow.id for flow in data.plan.flows} | {None}
    if strange := set(found) - known:
        raise HowdahError(
            f"the measure {extension.name} of the package {extension.package} has values of flows that the plan has "
            f"not: {sorted(map(str, strange))}",
            hint=f"Keys are numbers of flows, or None for the run. Remove it with: pip uninstall {extension.package}",
        )
    return found
