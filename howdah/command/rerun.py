# SPDX-License-Identifier: Apache-2.0
"""``howdah rerun``: repeat a run from its own plan and compare tables, measures and verdict."""

from __future__ import annotations

import argparse
from datetime import UTC, datetime
from typing import Any

from howdah.command.answer import answer
from howdah.command.common import add_json_option, add_runs_option, add_trust_option
from howdah.command.shape import CommandAnswer
from howdah.errors import UsageError
from howdah.layout import fitted, write_stdout
from howdah.record.digest import mismatches
from howdah.record.directory import RunDirectory
from howdah.record.model import FilePart
from howdah.record.run import read_record
from howdah.work.again import Again, FileDifference, make_again
from howdah.work.display import Display
from howdah.work.experiment import find

DIFFERENT = 6
_MOST_SHOWN = 8


class Rerun(CommandAnswer, shape="rerun"):
    rerun: str
    verdict: str
    equal: bool
    difference: str | None
    differences: list[FileDifference]
    changed_files: list[str]
    changed: dict[str, list[Any]]


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("run", help="directory or name of a run")
    add_trust_option(parser)
    add_runs_option(parser)
    add_json_option(parser)


def execute(options: argparse.Namespace) -> int:
    original = RunDirectory(find(options.runs, options.run))
    if not original.plan.exists():
        runs = sorted(plan.parent.name for plan in original.path.glob("*/plan.json"))
        named = f"Name one of its runs: {', '.join(runs[:4])}{' …' if len(runs) > 4 else ''}." if runs else None
        raise UsageError("this is an experiment; name one of its runs", where=str(original.path), hint=named)
    wrong = [str(each) for each in mismatches(original, read_record(original))]
    stamp = datetime.now(UTC).strftime("%Y%m%dT%H%M%S.%f")  # a short run may be repeated within a second
    final = options.runs / "reruns" / f"{original.name}-{stamp}"
    with Display(quiet=options.json) as display:
        again = make_again(original, final, display.build, display.single, trust=options.trust)
    if options.json:
        answer(
            Rerun(
                rerun=str(final),
                verdict=again.verdict,
                equal=again.equal,
                difference=str(again.differences[0]) if again.differences else None,
                differences=again.differences,
                changed_files=wrong,
                changed={name: [_plain(each) for each in both] for name, both in again.changed.items()},
            )
        )
    else:
        write_stdout(fitted(_text(again, wrong)))
    return DIFFERENT if again.differences or wrong else 0


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _plain(each) for name, each in value.items()}
    return value.plain() if isinstance(value, FilePart) else value


def _text(again: Again, wrong: list[str]) -> str:
    place = again.directory.path
    if again.equal:
        what = (
            "every row and column of every table, every measure and the verdict"
            if again.tables_compared
            else "every measure and the verdict; its tables were not kept"
        )
        lines = [f"equal: {what} ({place})"]
    else:
        lines = [f"different: {again.differences[0]}"]
        lines += [f"  {each}" for each in again.differences[1:_MOST_SHOWN]]
        if len(again.differences) > _MOST_SHOWN:
            lines.append(f"  and {len(again.differences) - _MOST_SHOWN} more; --json lists them")
        lines.append(f"  rerun: {place}")
    lines += [f"  in the original, {each}" for each in wrong]
    lines += [f"  changed since the original run: {each}" for each in again.changes_text()]
    if not again.changed:
        lines.append("  made on the same kernel, guest tree, modules and howdah")
    return "\n".join(lines) + "\n"
