# SPDX-License-Identifier: Apache-2.0
"""The baseline: a directory with a sheet for each experiment, in text that a version control shows the changes of."""

from __future__ import annotations

from pathlib import Path

from howdah.errors import HowdahError, explain
from howdah.nightly.sheet import NightSheet
from howdah.record.directory import read_json, write_json


class Baseline:
    def __init__(self, directory: Path) -> None:
        self.directory = directory

    def file(self, experiment: str) -> Path:
        return self.directory / f"{experiment}.json"

    def read(self, experiment: str) -> NightSheet | None:
        """The sheet of an experiment; None where none was accepted. Raises HowdahError for one that cannot be read."""
        file = self.file(experiment)
        if not file.exists():
            return None
        try:
            return NightSheet.from_json(read_json(file))
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise HowdahError(
                f"this baseline cannot be read: {error}",
                where=str(file),
                hint="'howdah nightly --accept' stores a new one.",
            ) from error

    def accept(self, sheet: NightSheet, *, part: bool = False) -> None:
        """Store a sheet in place of the one before; of a ``part`` of an experiment, its other cells stay."""
        before = self.read(sheet.experiment) if part else None
        if before is not None and sheet.problem is None:
            for slug, cell in before.cells.items():
                sheet.cells.setdefault(slug, cell)
            sheet.units = {**before.units, **sheet.units}
            sheet.claims = {**before.claims, **sheet.claims}
        sheet.cells = dict(sorted(sheet.cells.items()))
        try:
            self.directory.mkdir(parents=True, exist_ok=True)
            write_json(self.file(sheet.experiment), sheet.to_json())
        except OSError as error:
            raise HowdahError(
                f"the baseline cannot be written: {explain(error)}",
                where=str(self.directory),
                hint="Choose another place with --baseline DIR.",
            ) from error

    def experiments(self) -> list[str]:
        """Names of all experiments that have a sheet."""
        return sorted(file.stem for file in self.directory.glob("*.json")) if self.directory.is_dir() else []
