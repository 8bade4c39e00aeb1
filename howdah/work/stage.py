# SPDX-License-Identifier: Apache-2.0
"""The stages of one run after its plan: engine, ingest, measure, judge. Each can be done alone, from the directory.

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
from howdah.record.digest import can_be_analysed, is_source, may_go, mismatches, only, refusal, seal, stays
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
    """Processor seconds of this process and its ended children, guests among them."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(each.ru_utime + each.ru_stime for each in used)


@contextmanager
def _told(directory: RunDirectory) -> Iterator[None]:
    """Turn errors of reading damaged raw records into an error in words.

    Only this run fails then. A full disk is passed on, because every run would meet it.
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
    """Import what an analysis needs, also what it imports late, so that forked processes inherit it."""
    import numpy.ma  # noqa: F401

    import howdah.work.analysis  # noqa: F401

    for each in registered().values():
        if each.extension is None:  # a package's own may be broken, which is told where a run needs it
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
    """raw/ to tables, metrics and verdict, with the time each stage took in the record.

    Raises RunFailedError for records that cannot be read; engine.log then says where.
    """
    from howdah.work import analysis

    @contextmanager
    def timed(stage: str) -> Iterator[None]:
        progress(stage, 0, 0)
        with _timed(record, stage):
            yield

    with _told(directory):
        analysis.analyse(directory, plan, timed)
    record.analysis_sha256 = analysis_sha256()
    record.extensions = extensions_of(directory.plan.read_text(encoding="utf-8"))


def _algorithms(directory: RunDirectory) -> dict[str, Any]:
    """What the kernel reports of the modules of the flows' algorithms; empty where the agent did not ask."""
    agent = directory.raw / "agent.json"
    return dict(read_raw_json(agent).get("algorithms") or {}) if raw_exists(agent) else {}


def _invalid(directory: RunDirectory, message: str) -> None:
    """Write the verdict of a run without usable data: invalid, with the reason."""
    write_verdict(directory, [Check("engine", ENGINE, False, message, "the run ends by itself")])
    write_json(directory.metrics, {"format": 1, "rows": []})


def execute(
    directory: RunDirectory, progress: Progress, *, keep_data: bool = True, engine: Engine | None = None
) -> str:
    """Run the plan in ``directory`` and analyse it; return the verdict.

    Without ``keep_data`` the caller removes the data of a run that counts, so they are neither compressed nor given
    digests first.
    ``engine`` is one that has been prepared for the plan: it does not look at what it has built once more. Without it
    that is the one which this process kept.

    A guest that died leaves an *invalid* run with its console, and run.json says ``failed``. So does a run whose
    records cannot be analysed, and an error of howdah's own. Raises only an error that is not about this run (a missing
    engine, a full disk).
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
        _failed(directory, record, error)
    except Exception as error:  # noqa: BLE001 - a mistake of ours costs the run that met it, and no other
        _failed(directory, record, _own_mistake(directory, error))
    verdict = read_verdict(directory).verdict
    remains = keep_data or not may_go(record, verdict)
    if record.status == "finished" and remains:
        with _timed(record, "compress"):
            compress_raw(directory.raw)
    record.ended = now()
    record.wall_s = round(time.monotonic() - start, 3)
    record.virtual_s = (plan.epoch_us + plan.duration_us) / 1e6
    shutil.rmtree(directory.share / "modules", ignore_errors=True)  # their hashes are in the record
    seal(directory, record, (lambda _name: True) if remains else stays)
    return verdict


def _failed(directory: RunDirectory, record: RunRecord, error: RunFailedError) -> None:
    record.status = "failed"
    if error.known is not None:
        record.take(error.known)
    # Whoever reads this finds the directory under the name it gets when it is kept.
    said = str(error).replace(directory.path.name, directory.name)
    record.error = said
    _invalid(directory, said)


def _own_mistake(directory: RunDirectory, error: Exception) -> RunFailedError:
    with directory.log.open("a", encoding="utf-8") as log:
        log.write(traceback.format_exc())
    return RunFailedError(
        f"howdah met an error of its own in this run: {type(error).__name__}: {str(error)[:200]}",
        where=str(directory.path),
        hint=f"{directory.log} says where. The other runs are made all the same.",
    )


@contextmanager
def _alone(directory: RunDirectory) -> Iterator[None]:
    """Lock a run, because only one process at a time may change its results. Does nothing where the file system has no
    locks."""
    handle = os.open(directory.path, os.O_RDONLY)
    try:
        with contextlib.suppress(OSError):
            fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


def is_current(record: RunRecord) -> bool:
    """Whether the results in run.json were made by today's analysis, or by none."""
    return record.status != "finished" or record.analysis_sha256 == analysis_sha256()


def refresh(directory: RunDirectory, *, force: bool = False) -> bool:
    """Recompute tables, metrics and verdict if the analysis has changed; return whether it had.

    The results of a run whose data were not kept stay as they are (see ``outdated``). Raises MismatchError when raw/ or
    the plan differ from the run's digests, and HowdahError when nothing can be written.
    """

    def needed(record: RunRecord) -> bool:
        return record.status == "finished" and can_be_analysed(record) and (force or not is_current(record))

    if not needed(read_record(directory)):
        return False
    try:
        with _alone(directory):
            record = read_record(directory)
            if not needed(record):
                return False  # another process has done it meanwhile
            wrong = mismatches(directory, record, is_source)
            if wrong:
                raise refusal(directory, wrong[0])
            if not raw_exists(directory.raw / "agent.json"):
                raise HowdahError(
                    "the results were made by another version of the analysis, and raw/ is gone",
                    where=str(directory.path),
                    hint="'howdah run --again' makes the run again.",
                )
            # Who finds it so, after this process was killed, makes the results again.
            write_record(directory, only(record, is_source).but(analysis_sha256=None))
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
    """Whether another analysis made the results, and the data to recompute them were not kept."""
    record = read_record(directory)
    return not can_be_analysed(record) and not is_current(record)
