# SPDX-License-Identifier: Apache-2.0
"""``howdah score``: score an experiment's runs against thresholds."""

from __future__ import annotations

import argparse
from itertools import groupby
from pathlib import Path

from howdah.claim.score import FAIL, PASS, THRESHOLDS, UNKNOWN, Score, read_thresholds, scores_of
from howdah.command.answer import answer
from howdah.command.common import add_json_option, add_runs_option
from howdah.command.shape import CommandAnswer
from howdah.errors import ExitCode
from howdah.layout import fitted, write_stdout
from howdah.place import recorded_name
from howdah.work.experiment import find
from howdah.work.results import read_results

TOO_LOW = 6
_SIGNS = {PASS: "✓", FAIL: "✕", UNKNOWN: "?"}


class Scores(CommandAnswer, shape="score"):
    thresholds: str
    scores: list[Score]


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("experiment", nargs="*", default=["latest"], help="directories or names (default: latest)")
    parser.add_argument(
        "--thresholds",
        type=Path,
        default=THRESHOLDS,
        metavar="FILE",
        help="thresholds to use instead of reports/scores.yaml",
    )
    add_runs_option(parser)
    add_json_option(parser)


def execute(options: argparse.Namespace) -> int:
    thresholds = read_thresholds(options.thresholds)
    found = [
        score for name in options.experiment for score in scores_of(read_results(find(options.runs, name)), thresholds)
    ]
    if options.json:
        answer(Scores(thresholds=recorded_name(options.thresholds), scores=found))
    else:
        write_stdout(fitted(_table(found)))
    verdicts = {each.verdict for each in found}
    if FAIL in verdicts:
        return TOO_LOW
    return 0 if PASS in verdicts else ExitCode.INVALID


def _table(scores: list[Score]) -> str:
    lines = []
    for (experiment, kernel, algorithm, point), rows in groupby(scores, key=_variant):
        lines.append("  ".join(filter(None, (algorithm, point, f"{experiment} on {kernel}"))))
        for row in rows:
            if row.value is None:
                lines.append(f"  {_SIGNS[row.verdict]} {row.score:<22}      –  {row.why}")
                continue
            spread = f"{min(row.values):.1f} to {max(row.values):.1f}, " if len(row.values) > 1 else ""
            least = f"least {row.least:g}" if row.least is not None else row.why
            lines.append(
                f"  {_SIGNS[row.verdict]} {row.score:<22} {row.value:6.1f}  {least:<10}  {spread}n = {len(row.values)}"
            )
    counts = [sum(each.verdict == verdict for each in scores) for verdict in (PASS, FAIL, UNKNOWN)]
    lines.append(
        f"{counts[0]} pass, {counts[1]} fail, {counts[2]} unknown; each score is 0 to 100, the median of n runs"
    )
    return "\n".join(lines) + "\n"


def _variant(score: Score) -> tuple[str, str, str, str]:
    return score.experiment, score.kernel, score.algorithm, score.point
