# SPDX-License-Identifier: Apache-2.0
"""``howdah clean``: remove what interrupted commands left, and on request runs or built kernels and trees."""

from __future__ import annotations

import argparse
import shutil
import sys
from pathlib import Path

from howdah.command.common import add_runs_option
from howdah.engine.cache import cache_root
from howdah.errors import HowdahError
from howdah.run.directory import PARTIAL, read_json
from howdah.run.experiment import Experiment


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser("clean", help="remove leftovers; with options also old runs or the built kernels")
    parser.add_argument("--unlisted", action="store_true", help="also runs that their experiment no longer lists")
    parser.add_argument("--all-runs", action="store_true", help="also every experiment below --runs")
    parser.add_argument("--cache", action="store_true", help="also built kernels, guest trees and tools")
    add_runs_option(parser)
    parser.set_defaults(execute=execute)


def _remove(path: Path) -> None:
    try:
        if path.is_symlink():
            path.unlink()
        else:
            shutil.rmtree(path)
    except OSError as error:
        raise HowdahError(f"cannot be removed: {error.strerror}", where=str(path)) from error
    sys.stdout.write(f"removed {path}\n")


def execute(options: argparse.Namespace) -> int:
    for entry in sorted(options.runs.glob("*/")) if options.runs.is_dir() else []:
        if entry.is_symlink():
            continue
        experiment = Experiment(entry)
        listed = {cell["run"] for cell in read_json(experiment.index)["cells"]} if experiment.index.exists() else None
        with experiment.locked():
            if options.all_runs and (listed is not None or entry.name == "reruns"):
                _remove(entry)
                continue
            for run in sorted(entry.iterdir()):
                unlisted = listed is not None and run.name not in listed and (run / "plan.json").exists()
                if run.name.startswith(PARTIAL) or (options.unlisted and unlisted):
                    _remove(run)
    latest = options.runs / "latest"
    if latest.is_symlink() and not latest.exists():
        _remove(latest)
    if options.cache and cache_root().exists():
        _remove(cache_root())
    return 0
