# SPDX-License-Identifier: Apache-2.0
"""``howdah report``: make the HTML report of an experiment again, using only its directory."""

from __future__ import annotations

import argparse

from pydantic import Field

from howdah.claim.claims import claims_profile, judge_claims
from howdah.command.answer import answer
from howdah.command.common import add_json_option, add_runs_option, cores
from howdah.command.shape import CommandAnswer
from howdah.command.twin import compare_with_recording
from howdah.errors import HowdahError
from howdah.layout import write_stdout
from howdah.record.claims import ClaimRow, read_claims
from howdah.report.build import report
from howdah.report.results import read_shown
from howdah.report.tidy import ResultData, result_data
from howdah.work.display import Display
from howdah.work.experiment import find
from howdah.work.results import bring_up_to_date


class _ResultsJudged(ResultData):
    claims: list[ClaimRow] = Field(description="as in claims.json (docs/data-format.md)")


class ReportMade(_ResultsJudged, CommandAnswer, shape="report"):
    report: str = Field(description="path of the page")
    experiment: str


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("experiment", nargs="?", default="latest", help="directory or name (default: latest)")
    parser.add_argument("--reanalyse", action="store_true", help="recompute tables, metrics and verdicts first")
    parser.add_argument("--without-prometheus", action="store_true", help="draw from the Parquet tables")
    add_runs_option(parser)
    add_json_option(parser)


def execute(options: argparse.Namespace) -> int:
    path = find(options.runs, options.experiment)
    if (path / "plan.json").exists():
        path = path.parent
    if not (path / "experiment.json").exists():
        raise HowdahError("this is not an experiment: it has no experiment.json", where=str(path))
    with Display(quiet=options.json) as display:
        bring_up_to_date(path, force=options.reanalyse, workers=cores(), progress=display.build)
        display.build("claims", 0, 0)
        judge_claims(path, claims_profile(path))
        display.build("report", 0, 0)
        shown = read_shown(path)
        prometheus = "off" if options.without_prometheus else "auto"
        page = report(path, prometheus=prometheus, shown=shown, tell=display.build)
        compare_with_recording(path, shown, page=True)
    if options.json:
        claims = read_claims(path)
        answer(ReportMade.over(result_data([shown]), report=str(page), experiment=str(path), claims=claims))
    else:
        write_stdout(f"{page}\n")
    return 0
