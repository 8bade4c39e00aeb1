# SPDX-License-Identifier: Apache-2.0
"""Lies of somebody who knows every digest and writes it anew: files that say more, twice, or of another run."""

from __future__ import annotations

import json
from typing import Any

from howdah.record.directory import read_json, write_json
from tests.liars.liar import ToldLiar
from tests.liars.seals import Recorded, differs, edited

_MORE = "it says more than the tables give, or in another order"


def _said_twice(each: Recorded) -> None:
    text = each.run.verdict.read_text()
    each.run.verdict.write_text(text.replace("{", '{"verdict": "pass",', 1))


def _passing_first(verdict: Any) -> None:
    """A check that failed stands there twice, and passed the first time."""
    failed = next(check for check in verdict["checks"] if check["ok"] is False)
    verdict["checks"].insert(0, {**failed, "ok": True})


def _tolerance(verdict: Any) -> None:
    check = next(check for check in verdict["checks"] if check["tolerance"] == 0)
    check["tolerance"] = 1


def _no_number(each: Recorded) -> None:
    metrics = read_json(each.run.metrics)
    next(row for row in metrics["rows"] if row["metric"] == "utilisation")["value"] = float("nan")
    each.run.metrics.write_text(json.dumps(metrics))


def _of_another_repetition(each: Recorded) -> None:
    """raw/ of one repetition in the directory of another, as two that are swapped have it."""
    file = each.run.raw / "agent.json"
    write_json(file, {**read_json(file), "run": read_json(each.run.plan)["run"], "seed": 7})


def _of_another_run(each: Recorded) -> None:
    file = each.run.raw / "agent.json"
    write_json(file, {**read_json(file), "run": "reno-r1", "seed": read_json(each.run.plan)["seed"]})


def _extra_table(each: Recorded) -> None:
    (each.run.tables / "goodput.parquet").write_bytes(each.run.table("flow").read_bytes())


FORGERIES: list[ToldLiar] = [
    differs(
        "verdict-said-twice",
        "verdict.json has two verdicts, of which each reader takes another one.",
        "verdict.json: it says 'verdict' twice",
        _said_twice,
    ),
    differs(
        "check-said-twice",
        "A check that failed stands in verdict.json a second time, and passed.",
        f"verdict.json: {_MORE}",
        edited("verdict.json", _passing_first),
    ),
    differs(
        "words-beside-the-verdict",
        "verdict.json has a sentence that howdah did not write.",
        f"verdict.json: {_MORE}",
        edited("verdict.json", lambda verdict: verdict.update(comment="calibrated by hand")),
    ),
    differs(
        "words-beside-the-measures",
        "metrics.json has a summary that howdah did not write.",
        f"metrics.json: {_MORE}",
        edited("metrics.json", lambda metrics: metrics.update(summary="the best of all")),
    ),
    differs(
        "check-by-another-tolerance",
        "A check says that more is tolerated than it was judged by.",
        "tolerance: 1 against 0",
        edited("verdict.json", _tolerance),
    ),
    differs(
        "measure-that-is-no-number",
        "A measure is not a number, which is equal to nothing and above nothing.",
        "metrics.json: exit_time_s of flow 1: only now",
        _no_number,
    ),
    differs(
        "measures-of-an-old-format",
        "metrics.json says that it is of an older format.",
        "format: input should be 1, not 0",
        edited("metrics.json", lambda metrics: metrics.update(format=0)),
    ),
    differs(
        "raw-of-another-repetition",
        "The records of two repetitions are swapped.",
        "raw/agent.json: it is of seed 7",
        _of_another_repetition,
    ),
    differs(
        "raw-of-another-run",
        "The records are those of another run.",
        "raw/agent.json: it is of run 'reno-r1'",
        _of_another_run,
    ),
    differs(
        "table-that-howdah-does-not-make",
        "tables/ has one table more, which nothing of raw/ gives.",
        "tables/goodput.parquet: howdah makes no such table",
        _extra_table,
    ),
]
