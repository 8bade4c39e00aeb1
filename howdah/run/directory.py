# SPDX-License-Identifier: Apache-2.0
"""The run directory: the one place every stage reads from and writes to."""

from __future__ import annotations

import json
import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

PARTIAL = ".partial-"
_PARTIAL_NAME = re.compile(rf"{re.escape(PARTIAL)}(.+)-\d+")


@dataclass(frozen=True)
class RunDirectory:
    """Names of the files of one run (one boot of one plan). See docs/data-format.md."""

    path: Path

    @property
    def name(self) -> str:
        """The run's name, also while its directory still has the name of a partial one."""
        partial = _PARTIAL_NAME.fullmatch(self.path.name)
        return partial.group(1) if partial else self.path.name

    @property
    def plan(self) -> Path:
        return self.path / "plan.json"

    @property
    def provenance(self) -> Path:
        """run.json: written first with status ``running`` and last with the final status."""
        return self.path / "run.json"

    @property
    def share(self) -> Path:
        """What the guest may read: plan, agent, collectors, kernel modules."""
        return self.path / "share"

    @property
    def raw(self) -> Path:
        """What the guest writes, and the console."""
        return self.path / "raw"

    @property
    def console(self) -> Path:
        return self.raw / "console.log"

    @property
    def tables(self) -> Path:
        return self.path / "tables"

    def table(self, name: str) -> Path:
        return self.tables / f"{name}.parquet"

    @property
    def metrics(self) -> Path:
        return self.path / "metrics.json"

    @property
    def verdict(self) -> Path:
        return self.path / "verdict.json"

    @property
    def log(self) -> Path:
        """Everything the host side did to make this run, with times."""
        return self.path / "engine.log"


def write_json(path: Path, value: Any) -> None:
    """Write JSON so that a reader sees either the old file or the whole new one."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    with temporary.open("w", encoding="utf-8") as file:
        json.dump(value, file, indent=1, sort_keys=False)
        file.write("\n")
        file.flush()
        os.fsync(file.fileno())
    temporary.replace(path)


def read_json(path: Path) -> Any:
    with path.open(encoding="utf-8") as file:
        return json.load(file)
