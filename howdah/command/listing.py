# SPDX-License-Identifier: Apache-2.0
"""``howdah list``: profiles, algorithms, kernels and runs."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from howdah.command.common import PROFILES, add_json_option, add_runs_option
from howdah.engine.uml.kernel import built_kernels
from howdah.profile import load
from howdah.profile.algorithm import ALGORITHMS
from howdah.run.directory import read_json

Row = dict[str, Any]


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser("list", help="list profiles, algorithms, kernels or runs")
    parser.add_argument("what", choices=sorted(_LISTS))
    add_runs_option(parser)
    add_json_option(parser)
    parser.set_defaults(execute=execute)


def _profiles(_runs: Path) -> list[Row]:
    rows = []
    for file in sorted(PROFILES.rglob("*.yaml")):
        if file.parent.name == "suites":
            continue  # what a night runs: lists of profiles, not profiles
        profile = load(file)
        rows.append({"profile": file.stem, "runs": len(profile.cells()), "description": profile.description.strip()})
    return rows


def _algorithms(_runs: Path) -> list[Row]:
    return [
        {
            "algorithm": name,
            "kernel name": algorithm.kernel,
            "module": algorithm.module or "",
            "parameters": " ".join(f"{key}={value}" for key, value in algorithm.parameters.items()),
        }
        for name, algorithm in ALGORITHMS.items()
    ]


def _kernels(_runs: Path) -> list[Row]:
    return list(built_kernels())


def _runs_there(runs: Path) -> list[Row]:
    rows: list[Row] = []
    for index in sorted(runs.glob("*/experiment.json")):
        if index.parent.is_symlink():
            continue
        rows.extend(
            {
                "experiment": index.parent.name,
                "run": cell["run"],
                "status": cell["status"],
                "verdict": cell["verdict"] or "",
            }
            for cell in read_json(index)["cells"]
        )
    return rows


_LISTS: dict[str, Callable[[Path], list[Row]]] = {
    "profiles": _profiles,
    "algorithms": _algorithms,
    "kernels": _kernels,
    "runs": _runs_there,
}


def execute(options: argparse.Namespace) -> int:
    rows = _LISTS[options.what](options.runs)
    if options.json:
        sys.stdout.write(json.dumps(rows, indent=1) + "\n")
        return 0
    if not rows:
        sys.stdout.write(f"no {options.what} here\n")
        return 0
    table = Table(box=None, header_style="bold")
    for column in rows[0]:
        table.add_column(column, overflow="fold")
    for row in rows:
        table.add_row(*(str(value) for value in row.values()))
    Console(highlight=False).print(table)
    return 0
