# SPDX-License-Identifier: Apache-2.0
"""The stages of a run after planning: engine, ingest, measure, judge. Each can be repeated alone, from the directory.

Modules that read tables are imported only to analyse, because importing them takes longer than planning a run.
"""

from __future__ import annotations

import contextlib
import dataclasses
import fcntl
import os
import resource
import shutil
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from howdah.engine.engine import Engine
from howdah.engine.registry import engine as find_engine
from howdah.engine.registry import kept
from howdah.errors import HowdahError, RunFailedError, explain
from howdah.plan.plan import Plan
from howdah.record.digest import (
    can_be_analysed,
    is_source,
    limited_to,
    may_remove_data,
    mismatch_error,
    mismatches,
    outlives_data,
    seal,
)
from howdah.record.directory import RunDirectory, write_json
from howdah.record.provenance import analysis_sha256, extensions_of, now
from howdah.record.raw import compress_raw, raw_exists, read_raw_json
from howdah.record.reading import read_plan_file
from howdah.record.run import RunRecord, StageTime, read_record, write_record
from howdah.record.verdict import ENGINE, Check, read_verdict, write_verdict
from howdah.registered import registered

Progress = Callable[[str, int, int], None]  # phase, done, total (microseconds of simulated time)


@contextmanager
def _timed(record: RunRecord, stage: str) -> Iterator[None]:
    start, begun = time.monotonic(), _core_s()
    try:
        yield
    finally:
        wall_s, core_s = round(time.monotonic() - start, 3), round(_core_s() - begun, 3)
        record.stages = [*record.stages, StageTime(stage=stage, wall_s=wall_s, core_s=core_s)]


def _core_s() -> float:
    """Return the processor seconds of this process and its ended children, including guests."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(each.ru_utime + each.ru_stime for each in used)


@contextmanager
def _explaining_damage(directory: RunDirectory) -> Iterator[None]:
    """Turn errors from damaged raw records into a RunFailedError, which fails only this run.

    Errors of the system, such as a full disk, are passed on, because they would fail every run.
    """
    from howdah.record.table import TRIPPED

    try:
        yield
    except HowdahError as error:
        if isinstance(error, RunFailedError) or isinstance(error.__cause__, OSError):
            raise
        _log_analysis(directory)
        raise RunFailedError(error.what, where=error.where, hint=error.hint) from error
    except TRIPPED as error:
        _log_analysis(directory)
        raise RunFailedError(
            f"the records of this run cannot be analysed: {type(error).__name__}: {str(error)[:200]}",
            where=str(directory.raw),
            hint=f"They are damaged, or another version of howdah wrote them. {directory.log} says where.",
        ) from error


def _log_analysis(directory: RunDirectory) -> None:
    with directory.log.open("a", encoding="utf-8") as log:
        log.write(f"not analysed:\n{traceback.format_exc()}")


def load() -> None:
    """Import what an analysis needs, including its lazy imports, so that forked processes inherit it."""
    import numpy.ma  # noqa: F401

    import howdah.work.analysis  # noqa: F401

    for each in registered().values():
        if each.extension is None:  # a package's may be broken, which is reported when a run needs it
            _ = each.reader


def read_plan(directory: RunDirectory) -> Plan:
    try:
        return read_plan_file(directory.plan)
    except FileNotFoundError:
        raise HowdahError(
            "this is not a run directory: it has no plan.json",
            where=str(directory.path),
            hint="Name a directory below runs/, or see 'howdah list runs'.",
        ) from None


def analyse(directory: RunDirectory, plan: Plan, record: RunRecord, progress: Progress) -> None:
    """Make tables, metrics and verdict from raw/, and record the time of each stage.

    Raise RunFailedError for records that cannot be read; engine.log then has the traceback.
    """
    from howdah.work import analysis

    @contextmanager
    def timed(stage: str) -> Iterator[None]:
        progress(stage, 0, 0)
        with _timed(record, stage):
            yield

    with _explaining_damage(directory):
        analysis.analyse(directory, plan, timed)
    record.analysis_sha256 = analysis_sha256()
    record.extensions = extensions_of(directory.plan.read_text(encoding="utf-8"))


def _algorithms(directory: RunDirectory) -> dict[str, Any]:
    """Return what the kernel reports of the flows' algorithm modules; empty if the agent did not ask."""
    agent = directory.raw / "agent.json"
    return dict(read_raw_json(agent).get("algorithms") or {}) if raw_exists(agent) else {}


def _write_invalid_verdict(directory: RunDirectory, message: str) -> None:
    """Write the verdict of a run without usable data: invalid, with the reason."""
    write_verdict(directory, [Check("engine", ENGINE, False, message, "the run ends by itself")])
    write_json(directory.metrics, {"format": 1, "rows": []})


def execute(
    directory: RunDirectory, progress: Progress, *, keep_data: bool = True, engine: Engine | None = None
) -> str:
    """Run the plan in ``directory`` and analyse it. Return the verdict.

    Without ``keep_data`` the caller removes the data of a valid run, so they are neither compressed nor given digests.
    ``engine`` is an engine prepared for the plan, which does not check again what it has built; the default is the one
    that this process kept.

    A guest that died leaves an *invalid* run with its console, and the status ``failed`` in run.json. So does a run
    whose records cannot be analysed, and an internal error of howdah. Raise only errors that concern every run (a
    missing engine, a full disk).
    """
    plan = read_plan(directory)
    record = read_record(directory)
    plan = dataclasses.replace(plan, parameter_places=record.parameter_places)
    start = time.monotonic()
    try:
        with _timed(record, "engine"):
            chosen = engine or kept(plan.engine) or find_engine(plan.engine)
            record.take(chosen.run(directory, plan, progress))
            record.algorithms = _algorithms(directory)
        analyse(directory, plan, record, progress)
        record.status = "finished"
    except (HowdahError, OSError) as error:
        if not isinstance(error, RunFailedError):
            raise
        _record_failure(directory, record, error)
    except Exception as error:  # noqa: BLE001 - a mistake of ours costs the run that met it, and no other
        _record_failure(directory, record, _internal_error(directory, error))
    verdict = read_verdict(directory).verdict
    remains = keep_data or not may_remove_data(record, verdict)
    if record.status == "finished" and remains:
        with _timed(record, "compress"):
            compress_raw(directory.raw)
    record.ended = now()
    record.wall_s = round(time.monotonic() - start, 3)
    record.virtual_s = (plan.epoch_us + plan.duration_us) / 1e6
    shutil.rmtree(directory.share / "modules", ignore_errors=True)  # their hashes are in the record
    seal(directory, record, (lambda _name: True) if remains else outlives_data)
    return verdict


def _record_failure(directory: RunDirectory, record: RunRecord, error: RunFailedError) -> None:
    record.status = "failed"
    if error.known is not None:
        record.take(error.known)
    # The directory gets its final name before anyone reads this.
    message = str(error).replace(directory.path.name, directory.name)
    record.error = message
    _write_invalid_verdict(directory, message)


def _internal_error(directory: RunDirectory, error: Exception) -> RunFailedError:
    with directory.log.open("a", encoding="utf-8") as log:
        log.write(traceback.format_exc())
    return RunFailedError(
        f"howdah met an error of its own in this run: {type(error).__name__}: {str(error)[:200]}",
        where=str(directory.path),
        hint=f"{directory.log} says where. The other runs are made all the same.",
    )


@contextmanager
def _locked(directory: RunDirectory) -> Iterator[None]:
    """Hold a run's lock: only one process at a time may change its results. File systems without locks are ignored."""
    handle = os.open(directory.path, os.O_RDONLY)
    try:
        with contextlib.suppress(OSError):
            fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


def is_current(record: RunRecord) -> bool:
    """Return whether the current analysis made the results in run.json. An unfinished run is current."""
    return record.status != "finished" or record.analysis_sha256 == analysis_sha256()


def refresh(directory: RunDirectory, *, force: bool = False) -> bool:
    """Recompute tables, metrics and verdict if the analysis has changed. Return whether it had.

    A run whose data were not kept stays as it is (see ``outdated``). Raise MismatchError if raw/ or the plan differ
    from the run's digests, and HowdahError if the results cannot be written.
    """

    def needed(record: RunRecord) -> bool:
        return record.status == "finished" and can_be_analysed(record) and (force or not is_current(record))

    if not needed(read_record(directory)):
        return False
    try:
        with _locked(directory):
            record = read_record(directory)
            if not needed(record):
                return False  # another process has done it meanwhile
            wrong = mismatches(directory, record, is_source)
            if wrong:
                raise mismatch_error(directory, wrong[0])
            if not raw_exists(directory.raw / "agent.json"):
                raise HowdahError(
                    "the results were made by another version of the analysis, and raw/ is gone",
                    where=str(directory.path),
                    hint="'howdah run --again' makes the run again.",
                )
            # If this process is killed, the next reader recomputes the results.
            write_record(directory, limited_to(record, is_source).replaced(analysis_sha256=None))
            record.stages = [each for each in record.stages if each.stage == "engine"]
            analyse(directory, read_plan(directory), record, lambda _phase, _done, _total: None)
            seal(directory, record)
    except OSError as error:
        raise HowdahError(
            f"the results must be computed again, and cannot be written: {explain(error)}",
            where=str(directory.path),
            hint="Copy the experiment to a place where it can be written, and name the copy.",
        ) from error
    return True


def outdated(directory: RunDirectory) -> bool:
    """Return whether another analysis made the results and the data to recompute them were not kept."""
    record = read_record(directory)
    return not can_be_analysed(record) and not is_current(record)
