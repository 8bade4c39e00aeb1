# SPDX-License-Identifier: Apache-2.0
"""What ``howdah.load`` reads of an experiment: its tables, with and without an index, and the runs that it opens."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

import howdah
from howdah.library import gathered, index
from howdah.record.result import load_experiment
from howdah.work import results

NAMES = ("runs", "metrics", "exits", "checks")


def tables(root: Path) -> dict[str, pa.Table]:
    e = howdah.load(root)
    return {name: getattr(e, name).to_arrow() for name in NAMES}


def plain_tables(root: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, pa.Table]:
    """What is read without an index, which none is written of either."""
    with monkeypatch.context() as without:
        without.setattr(gathered, "LEAST_RUNS", 10**9)
        without.setattr(index.Index, "open", lambda _path: None)
        return tables(root)


def assert_same(found: dict[str, pa.Table], plain: dict[str, pa.Table]) -> None:
    for name in NAMES:
        assert found[name].schema.equals(plain[name].schema, check_metadata=False), name
        assert found[name].to_pylist() == plain[name].to_pylist(), name


def runs_read(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Names of the runs whose files are read from now on."""
    read: list[str] = []

    def seen(path: Path, **named: object) -> object:
        found = load_experiment(path, **named)  # type: ignore[arg-type]
        read.extend(run.name for run in found.runs)
        return found

    monkeypatch.setattr(results, "load_experiment", seen)
    return read
