# SPDX-License-Identifier: Apache-2.0
"""TSDB blocks of an experiment, built by ``promtool`` and kept beside its runs so that each run is imported once."""

from __future__ import annotations

import contextlib
import hashlib
import io
import os
import shutil
import subprocess
from collections.abc import Iterable, Iterator
from pathlib import Path

from howdah.build.cache import Progress, authentication_code
from howdah.errors import HowdahError
from howdah.foreign import files_below, open_foreign
from howdah.publish.openmetrics import families, openmetrics
from howdah.publish.prometheus import Prometheus, failure_reason
from howdah.record.closure import remembered_sha256
from howdah.record.directory import PARTIAL, RunDirectory, remove_whole
from howdah.record.result import Experiment, Run
from howdah.record.schema import TABLES
from howdah.scratch import scratch

SAMPLES = "series.om"
SUFFIX = ".nights"


def nights(runs: Path) -> Iterator[Path]:
    """Yield the directories of all nights below the runs directory, oldest first, without unfinished ones."""
    for samples in sorted(runs.glob(f"*{SUFFIX}/[!.]*/{SAMPLES}")):
        if not samples.parent.is_symlink():
            yield samples.parent


def latest_nights(runs: Path) -> list[Path]:
    """The last night of each suite."""
    return list({night.parent: night for night in nights(runs)}.values())


def build_night(night: Path, prometheus: Prometheus) -> list[Path]:
    """Return the blocks of a night and build them if missing. Raises HowdahError if promtool rejects the samples."""
    with open_foreign(night / SAMPLES) as samples:
        key = authentication_code(b"night\0" + hashlib.file_digest(samples, "sha256").digest())
    target = night / DIRECTORY / key[:16]  # only this user can compute the key, so no one else can plant blocks
    if not are_built(target):
        build_text(_text(night / SAMPLES), prometheus.promtool, target, of=night)
    return blocks_in(target)


def _text(samples: Path) -> Iterator[str]:
    with io.TextIOWrapper(open_foreign(samples), encoding="utf-8") as file:
        yield from file


DIRECTORY = "prometheus"
_LIMIT_S = 600


def blocks_key(run: Run) -> str:
    """The key of a run's blocks, which changes with its files, its labels and the code that reads them.

    The key is an authentication code, so only this user can name blocks that this user's Prometheus opens.
    """
    directory: RunDirectory = run.directory
    digest = hashlib.sha256(f"{remembered_sha256([__name__])}{run.experiment}".encode())
    files = [directory.plan, directory.metrics, directory.verdict, directory.provenance]
    for file in [*files, *(directory.table(name) for name in TABLES)]:
        if file.exists():
            status = file.stat()
            digest.update(f"{file.name}:{status.st_size}:{status.st_mtime_ns};".encode())
    return authentication_code(b"blocks\0" + digest.digest())[:16]


def build_run(run: Run, promtool: Path, target: Path) -> None:
    """Write the blocks of one run into the new directory ``target``, atomically: it is whole or absent.

    Raises HowdahError if promtool rejects the samples or the disk is full.
    """
    build_text(
        openmetrics(families([run])),
        promtool,
        target,
        of=run.directory.path,
        hint="'howdah report --without-prometheus' draws from the tables instead.",
    )


def build_text(pieces: Iterable[str], promtool: Path, target: Path, *, of: Path, hint: str | None = None) -> None:
    """Build blocks from any OpenMetrics text; ``of`` names its subject in errors."""
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with scratch(PARTIAL, target.parent) as work:
            text = work / "samples.om"
            with text.open("w", encoding="utf-8") as file:
                file.writelines(pieces)
            blocks = work / "blocks"
            blocks.mkdir()
            command = [str(promtool), "tsdb", "create-blocks-from", "openmetrics", "--quiet", str(text), str(blocks)]
            # The directory is removed with whatever a killed promtool leaves in it.
            environment = {**os.environ, "TMPDIR": str(work)}
            done = subprocess.run(
                command, capture_output=True, text=True, check=False, timeout=_LIMIT_S, env=environment
            )
            if done.returncode != 0:
                why = failure_reason(done.stderr or done.stdout)
                raise HowdahError(f"promtool cannot import this: {why}", where=str(of), hint=hint)
            shutil.rmtree(target, ignore_errors=True)
            blocks.rename(target)
    except OSError as error:
        raise HowdahError(f"blocks cannot be written: {error.strerror}", where=str(target)) from error
    except subprocess.TimeoutExpired as error:
        raise HowdahError(f"promtool did not end in {_LIMIT_S} s", where=str(of)) from error


def are_built(target: Path) -> bool:
    """Whether ``target`` has blocks that consist of regular files only: Prometheus would open a pipe and hang."""
    return target.is_dir() and all(kind is None for _, kind in files_below(target))


def blocks_in(target: Path) -> list[Path]:
    """The block directories in a directory that was built."""
    return [entry for entry in sorted(target.iterdir()) if (entry / "meta.json").exists()]


def build_experiment(
    experiment: Experiment, prometheus: Prometheus, root: Path | None = None, *, tell: Progress | None = None
) -> list[Path]:
    """Return the block directories of every run of the experiment; build those that are missing or out of date.

    They are in ``root`` (default: ``prometheus/`` in the experiment), one directory a run, named by run and key.
    """
    root = root or experiment.path / DIRECTORY
    blocks: list[Path] = []
    planned = [run for run in experiment.runs if run.plan is not None]
    for number, run in enumerate(planned, 1):
        target = root / f"{run.name}-{blocks_key(run)}"
        if not are_built(target):
            build_run(run, prometheus.promtool, target)
            for old in root.glob(f"{run.name}-" + "[0-9a-f]" * 16):
                if old != target:
                    with contextlib.suppress(OSError):
                        remove_whole(old)
        blocks += blocks_in(target)
        if tell is not None:
            tell("blocks for Prometheus", number, len(planned))
    return blocks


def link_blocks(blocks: list[Path], data: Path) -> None:
    """Hard-link these blocks into a server's data directory, or copy them; the originals stay untouched."""
    for block in blocks:
        target = data / block.name
        if target.exists():
            continue
        work = data / f".{block.name}.tmp-for-creation"
        shutil.rmtree(work, ignore_errors=True)
        shutil.copytree(block, work, copy_function=_link)
        work.rename(target)


def _link(source: str, target: str) -> None:
    try:
        os.link(source, target)
    except OSError:
        shutil.copy2(source, target)
