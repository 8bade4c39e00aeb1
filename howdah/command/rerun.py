# SPDX-License-Identifier: Apache-2.0
"""``howdah rerun``: replay a run from its own plan and compare every row of every table."""

from __future__ import annotations

import argparse
import json
import os
import shutil
import sys
from datetime import UTC, datetime

from howdah.command.common import add_json_option, add_runs_option
from howdah.command.progress import Display
from howdah.engine.engine import engine as find_engine
from howdah.errors import HowdahError
from howdah.run.directory import RunDirectory, read_json, write_json
from howdah.run.experiment import find
from howdah.run.provenance import first_record
from howdah.run.retention import has_data
from howdah.run.stage import execute as execute_run
from howdah.run.stage import outdated, read_plan, refresh
from howdah.tables.store import equal

DIFFERENT = 6


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser("rerun", help="replay a run from its run.json and compare the tables")
    parser.add_argument("run", help="directory or name of a run")
    add_runs_option(parser)
    add_json_option(parser)
    parser.set_defaults(execute=execute)


def _difference(original: RunDirectory, again: RunDirectory) -> str | None:
    """The first difference of the tables; of the measures where the original's tables were not kept."""
    if has_data(original):
        found = equal(original, again)
        return str(found) if found else None
    if outdated(original):
        raise HowdahError(
            "the results of this run were made by an earlier version of the analysis, and its data were not kept",
            where=str(original.path),
            hint="There is nothing to compare with; 'howdah run --again' makes the run anew.",
        )
    before, after = (read_json(run.metrics)["rows"] for run in (original, again))
    for left, right in zip(before, after, strict=False):
        if left != right:
            of = f"{right['metric']} of flow {right['flow']}" if right["flow"] is not None else str(right["metric"])
            return f"metrics.json {of}: {left['value']!r} against {right['value']!r}"
    return None if len(before) == len(after) else f"metrics.json: {len(before)} against {len(after)} measures"


def execute(options: argparse.Namespace) -> int:
    original = RunDirectory(find(options.runs, options.run))
    plan = read_plan(original)
    record = read_json(original.provenance)
    if record["status"] != "finished":
        raise HowdahError(f"this run is {record['status']}: there is nothing to compare with", where=str(original.path))
    stamp = datetime.now(UTC).strftime("%Y%m%dT%H%M%S.%f")  # a short run is made more than once a second
    final = options.runs / "reruns" / f"{original.name}-{stamp}"
    partial = RunDirectory(final.with_name(f".partial-{final.name}-{os.getpid()}"))
    partial.raw.mkdir(parents=True)
    partial.share.mkdir()
    plan_json = original.plan.read_text(encoding="utf-8")
    partial.plan.write_text(plan_json, encoding="utf-8")
    write_json(partial.provenance, {**first_record(plan_json, record["key"]), "rerun_of": str(original.path)})
    try:
        with Display(quiet=options.json) as display:
            find_engine(plan.engine).prepare([plan], display.build)
            verdict = execute_run(partial, display.single)
        refresh(original)  # the same analysis on both sides, or the comparison would compare our code
        difference = _difference(original, partial)
        partial.path.rename(final)
    except BaseException:
        shutil.rmtree(partial.path, ignore_errors=True)
        raise
    again = read_json(final / "run.json")
    changes = {
        name: [record.get(name), again.get(name)]
        for name in ("kernel", "guest_tree", "modules", "howdah")
        if record.get(name) != again.get(name)
    }
    answer = {
        "rerun": str(final),
        "verdict": verdict,
        "equal": difference is None,
        "difference": difference,
        "changed": changes,
    }
    if options.json:
        sys.stdout.write(json.dumps(answer) + "\n")
    elif difference is None:
        what = (
            "every row and column of every table" if has_data(original) else "every measure; its tables were not kept"
        )
        sys.stdout.write(f"equal: {what} ({final})\n")
    else:
        sys.stdout.write(f"different: {difference}\n  rerun: {final}\n")
        for name in changes:
            sys.stdout.write(f"  {name} has changed since the original run\n")
    return 0 if difference is None else DIFFERENT
