# SPDX-License-Identifier: Apache-2.0
"""``howdah clean``: remove what interrupted commands and deleted kernel trees left behind; with options also more."""

from __future__ import annotations

import argparse
from pathlib import Path

from howdah.build.build_tree import orphaned_trees
from howdah.build.cache import Cache, cache_root
from howdah.command.common import add_runs_option
from howdah.engine.ending import runtime_base
from howdah.engine.uml import memory
from howdah.engine.uml.guest import sweep
from howdah.errors import HowdahError
from howdah.layout import fitted, write_stdout
from howdah.number import counted, size
from howdah.record.closure import memory_place
from howdah.record.directory import PARTIAL, RunDirectory, remove_abandoned, remove_whole, sweep_writing
from howdah.record.index import read_index
from howdah.scratch import sweep_scratch
from howdah.work.compress import compress_run, is_large, why_not_compressible
from howdah.work.experiment import ExperimentDirectory
from howdah.work.sweep_memory import useless_memories


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--unlisted", action="store_true", help="also runs that their experiment no longer lists")
    parser.add_argument("--all-runs", action="store_true", help="also every experiment below --runs")
    parser.add_argument(
        "--cache", action="store_true", help="also built kernels, kernel trees' objects, guest trees, tools"
    )
    parser.add_argument(
        "--compress",
        action="store_true",
        help="also compress raw records of finished runs that an earlier release did not compress",
    )
    add_runs_option(parser)
    parser.set_defaults(interrupted="what was removed is gone; the same command removes the rest")


def _remove(path: Path) -> None:
    try:
        if path.is_symlink() or not path.is_dir():
            path.unlink()
        else:
            remove_whole(path)
    except OSError as error:
        raise HowdahError(f"cannot be removed: {error.strerror}", where=str(path)) from error
    write_stdout(f"removed {path}\n")


def _sweep(path: Path) -> None:
    if remove_abandoned(path):
        write_stdout(f"removed {path}\n")


class _Savings:
    """Compress the runs of all experiments (``--compress``), report each one, and sum up the space saved."""

    def __init__(self) -> None:
        self.runs, self.bytes = 0, 0

    def compress(self, run: Path) -> None:
        directory = RunDirectory(run)
        if not directory.provenance.exists() or not is_large(directory):
            return
        if (why := why_not_compressible(directory)) is not None:
            write_stdout(fitted(f"left {run} as it is: {why}\n"))
            return
        done = compress_run(directory)
        if done is not None:
            write_stdout(fitted(f"compressed {run}: {size(done.before)} of raw/ to {size(done.after)}\n"))
            self.runs += 1
            self.bytes += done.before - done.after

    def say(self) -> None:
        write_stdout(
            f"saved {size(self.bytes)} in {counted(self.runs, 'run')}\n"
            if self.runs
            else "no run has anything to compress\n"
        )


def execute(options: argparse.Namespace) -> int:
    savings = _Savings()
    for entry in sorted(options.runs.glob("*/")) if options.runs.is_dir() else []:
        if entry.is_symlink():
            continue
        if not entry.name.startswith(PARTIAL):
            _clean_experiment(entry, options, savings)
        else:  # an experiment whose removal was interrupted
            _sweep(entry)
    if options.compress:
        savings.say()
    latest = options.runs / "latest"
    if latest.is_symlink() and not latest.exists():
        _remove(latest)
    _clean_cache(options)
    return 0


def _clean_experiment(entry: Path, options: argparse.Namespace, savings: _Savings) -> None:
    experiment = ExperimentDirectory(entry)
    listed = {cell.run for cell in read_index(experiment.index).cells} if experiment.index.exists() else None
    is_reruns = entry.name == "reruns"
    with experiment.locked():
        if options.all_runs and (listed is not None or is_reruns):
            _remove(entry)
            return
        for run in sorted(entry.iterdir()):
            is_partial = run.name.startswith(PARTIAL)
            unlisted = listed is not None and run.name not in listed and (run / "plan.json").exists()
            if is_partial and is_reruns:  # reruns do not take the experiment's lock
                _sweep(run)
            elif is_partial or (options.unlisted and unlisted):
                _remove(run)
            elif options.compress and listed is not None:
                savings.compress(run)
        for swept in experiment.sweep_partial() if not is_reruns else ():
            write_stdout(f"removed {entry / swept}\n")


def _clean_cache(options: argparse.Namespace) -> None:
    cache = cache_root()
    for build_tree in orphaned_trees(Cache(cache)):
        build_tree.remove()
        write_stdout(f"removed {build_tree.directory}: there is no {build_tree.tree}\n")
    for database, why in useless_memories(Cache(cache)):
        database.unlink(missing_ok=True)
        write_stdout(f"removed {database}: {why}\n")
    if options.cache and cache.exists():
        _remove(cache)
    written = (*sweep_writing(options.runs), *sweep_writing(memory_place()))
    guests = sweep(runtime_base(), *memory.directories())
    for left in (*written, *Cache(cache).sweep(begun=True), *guests, *sweep_scratch()):
        write_stdout(f"removed {left}\n")
    for left in cache.parent.glob(f"{PARTIAL}{cache.name}-*"):
        _sweep(left)
