# SPDX-License-Identifier: Apache-2.0
"""``howdah list`` as data."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

from howdah.algorithm import ALGORITHMS
from howdah.build.uml_kernel import kernel_rows
from howdah.metric import known_metrics
from howdah.place import STACKS
from howdah.profile.stack import read_stack, shipped_stacks
from howdah.receiver import LINUX, RECEIVERS
from howdah.record.directory import experiment_indexes
from howdah.work.catalogue import entries

Row = dict[str, Any]


def _profiles(_runs: Path) -> list[Row]:
    return [{**asdict(each), "group": each.group} for each in entries()]


def _algorithms(_runs: Path) -> list[Row]:
    return [
        {
            "algorithm": name,
            "kernel_name": algorithm.kernel,
            "module": algorithm.module or None,
            "parameters": {key: str(value) for key, value in algorithm.parameters.items()},
            "summary": algorithm.summary,
        }
        for name, algorithm in ALGORITHMS.items()
    ]


def _kernels(_runs: Path) -> list[Row]:
    return list(kernel_rows())


def _receivers(_runs: Path) -> list[Row]:
    return [
        {
            "receiver": each.name,
            "emulated": each.emulated,
            "summary": each.summary,
            "sources": [source._asdict() for source in each.sources],
        }
        for each in RECEIVERS.values()
    ]


def _metrics(_runs: Path) -> list[Row]:
    return [
        {"metric": each.name, "unit": each.unit or None, "meaning": each.meaning} for each in known_metrics().values()
    ]


def stack_rows(_runs: Path) -> list[Row]:
    """The kernel's own, then those that are shipped."""
    own: Row = {"stack": LINUX, "summary": RECEIVERS[LINUX].summary, "needs": []}
    shipped = [(name, read_stack(STACKS / f"{name}.yaml").section) for name in shipped_stacks()]
    return [own, *({"stack": name, "summary": each.summary, "needs": list(each.needs)} for name, each in shipped)]


def _runs_there(runs: Path) -> list[Row]:
    from howdah.work.results import listed  # and pyarrow

    rows: list[Row] = []
    for index in experiment_indexes(runs):
        if index.parent.is_symlink():
            continue
        for each in listed(index.parent):
            row = {"experiment": index.parent.name, "run": each.run, "status": each.status}
            rows.append({**row, "verdict": each.verdict or None, "outdated": each.outdated, "changed": each.changed})
    return rows


DATA: dict[str, Callable[[Path], list[Row]]] = {
    "profiles": _profiles,
    "algorithms": _algorithms,
    "kernels": _kernels,
    "metrics": _metrics,
    "receivers": _receivers,
    "runs": _runs_there,
    "stacks": stack_rows,
}
