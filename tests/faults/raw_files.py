# SPDX-License-Identifier: Apache-2.0
"""Mutated raw files: ingest gives tables and says what is wrong, or refuses in words."""

from __future__ import annotations

import random
import shutil
from pathlib import Path
from typing import Any

from tests.faults.mutation import Corpus, Mutator
from tests.faults.trial import Case, LimitedTrials
from tests.unit.recorded_run import make_recorded_run


class RawFiles(LimitedTrials):
    """A recorded run, of which one or two raw files are changed; ``make(n)`` is the same for ever."""

    limit_s, commands = 30.0, True

    def __init__(self, directory: Path, seed: int) -> None:
        self.directory = directory
        self.seed = seed
        self.good = make_recorded_run(directory / "good")
        self.files = sorted(file for file in self.good.raw.rglob("*") if file.is_file())

    def make(self, number: int) -> Case:
        chance = random.Random(f"raw-{self.seed}-{number}")
        run = self.directory / "runs" / "recorded"
        shutil.rmtree(run.parent, ignore_errors=True)
        shutil.copytree(self.good.path, run)
        mutator = Mutator(Corpus.of({}, {}, []), chance)
        changed = []
        for file in chance.sample(self.files, chance.choice([1, 1, 2])):
            target = run / file.relative_to(self.good.path)
            target.write_bytes(mutator.damaged(file.read_bytes()))
            changed.append(file.name)
        return Case(number, "raw", ", ".join(changed), {"kind": "ingest", "directory": str(run)}, b"")

    def warm_up(self) -> dict[str, Any]:
        return {"kind": "ingest", "directory": str(self.good.path)}
