# SPDX-License-Identifier: Apache-2.0
"""The stages of one run after its plan: engine, ingest, measure, judge. Each can be done alone, from the directory."""

from __future__ import annotations

import dataclasses
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from howdah.engine.engine import engine as find_engine
from howdah.errors import HowdahError, RunFailedError
from howdah.export.flent import write_flent
from howdah.ingest import ingest
from howdah.judge import judge
from howdah.measure import measure
from howdah.plan.plan import Plan
from howdah.publish.experiment import load_run
from howdah.run.directory import RunDirectory, read_json, write_json
from howdah.run.provenance import analysis_sha256, now
from howdah.run.retention import REMOVED

Progress = Callable[[str, int, int], None]  # phase, done, total (microseconds of simulated time)


@contextmanager
def _timed(record: dict[str, Any], stage: str) -> Iterator[None]:
    start = time.monotonic()
    try:
        yield
    finally:
        record["stages"].append({"stage": stage, "wall_s": round(time.monotonic() - start, 3)})


def read_plan(directory: RunDirectory) -> Plan:
    try:
        return Plan.from_json(directory.plan.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise HowdahError(
            "this is not a run directory: it has no plan.json",
            where=str(directory.path),
            hint="Name a directory below runs/, or see 'howdah list runs'.",
        ) from None
    except (ValueError, TypeError, KeyError) as error:
        raise HowdahError(f"the plan cannot be read: {error}", where=str(directory.plan)) from error


def analyse(directory: RunDirectory, plan: Plan, record: dict[str, Any], progress: Progress) -> None:
    """raw/ to tables, metrics and verdict. Needs no kernel; overwrites what an older analysis left."""
    progress("ingest", 0, 0)
    with _timed(record, "ingest"):
        ingest(directory)
    progress("measure", 0, 0)
    with _timed(record, "measure"):
        measure(directory, plan)
    with _timed(record, "judge"):
        judge(directory, plan)
    record["analysis_sha256"] = analysis_sha256()


def _export(directory: RunDirectory) -> None:
    """The run for flent, beside its tables. What flent has no place for (a run without TCP) is no fault of the run."""
    try:
        write_flent(load_run(directory.path, directory.path.parent.name))
    except HowdahError as error:
        with directory.log.open("a", encoding="utf-8") as log:
            log.write(f"not exported for flent: {error.what}\n")


def _invalid(directory: RunDirectory, message: str) -> None:
    """A run without usable data is invalid, and its verdict says why."""
    check = {
        "name": "engine",
        "stage": "engine",
        "ok": False,
        "expected": "the run ends by itself",
        "measured": None,
        "tolerance": None,
        "unit": None,
        "message": message,
    }
    write_json(directory.verdict, {"format": 1, "verdict": "invalid", "checks": [check]})
    write_json(directory.metrics, {"format": 1, "rows": []})


def execute(directory: RunDirectory, progress: Progress) -> str:
    """Run the plan in ``directory`` and analyse it; return the verdict.

    A guest that died leaves an *invalid* run with its console, and run.json says ``failed``. Only an error that is not
    about this run (a missing engine, a full disk) is raised.
    """
    plan = read_plan(directory)
    record: dict[str, Any] = read_json(directory.provenance)
    plan = dataclasses.replace(plan, parameter_places=record.get("parameter_places", {}))
    start = time.monotonic()
    try:
        with _timed(record, "engine"):
            record.update(find_engine(plan.engine).run(directory, plan, progress))
        analyse(directory, plan, record, progress)
        record["status"] = "finished"
    except RunFailedError as error:
        record["status"] = "failed"
        # Whoever reads this finds the directory under the name it gets when it is kept.
        said = str(error).replace(directory.path.name, directory.name)
        record["error"] = said
        _invalid(directory, said)
    record["ended"] = now()
    record["wall_s"] = round(time.monotonic() - start, 3)
    record["virtual_s"] = (plan.epoch_us + plan.duration_us) / 1e6
    shutil.rmtree(directory.share / "modules", ignore_errors=True)  # their hashes are in the record
    write_json(directory.provenance, record)
    if record["status"] == "finished":
        _export(directory)
    verdict: str = read_json(directory.verdict)["verdict"]
    return verdict


def refresh(directory: RunDirectory, *, force: bool = False) -> bool:
    """Make tables, metrics and verdict again when the analysis has changed since; return whether it was done.

    Of a run whose data were not kept nothing can be made again: its results stay as they are (see ``outdated``).
    """
    record: dict[str, Any] = read_json(directory.provenance)
    if record["status"] != "finished" or record.get(REMOVED, False):
        return False
    if not force and record.get("analysis_sha256") == analysis_sha256():
        return False
    record["stages"] = [item for item in record["stages"] if item["stage"] == "engine"]
    analyse(directory, read_plan(directory), record, lambda _phase, _done, _total: None)
    write_json(directory.provenance, record)
    _export(directory)
    return True


def outdated(directory: RunDirectory) -> bool:
    """Whether the results were made by another analysis than today's and there are no data to make them again from."""
    record: dict[str, Any] = read_json(directory.provenance)
    return bool(record.get(REMOVED, False)) and record.get("analysis_sha256") != analysis_sha256()
