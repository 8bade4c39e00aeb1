# SPDX-License-Identifier: Apache-2.0
"""The report of a pack, made again from the runs beside it."""

from __future__ import annotations

from pathlib import Path

from howdah import __version__
from howdah.errors import HowdahError
from howdah.foreign import read_foreign
from howdah.pack.archive import INDEX
from howdah.pack.pack import page_of
from howdah.record.directory import read_object
from howdah.verify.experiment import runs_below
from howdah.verify.finding import Discrepancy, Report

PAGE = "report.html"


def check_page(path: Path, reports: list[Report]) -> None:
    """Add to the experiment's own report whether its page is what this version makes of an unpacked experiment.

    Of a pack of results this is unknown, because curves are drawn from tables; nor of one of another version.
    """
    mine = next((each for each in reports if each.path == str(path)), None)
    if mine is None or not (path / PAGE).exists():
        return
    mine.notes = [note for note in mine.notes if not note.startswith(f"{PAGE} is not checked")]
    index = read_object(path.parent / INDEX)
    if index.get("kind") == "results":
        mine.computed = False
        mine.notes.append(f"{PAGE} cannot be made again: its curves are of tables that were left out of the pack")
        return
    if index.get("howdah") != __version__:
        mine.computed = False
        mine.notes.append(f"{PAGE} is not checked: howdah {index.get('howdah')} made it, and this is {__version__}")
        return
    # Of some runs of an experiment, the page is theirs.
    ways = ([path], [run.path for run in runs_below(path)])
    try:
        page = read_foreign(path / PAGE)
        is_theirs = any(page_of(list(way)).encode() == page for way in ways)
    except (HowdahError, OSError, ValueError) as error:
        mine.findings.append(Discrepancy(PAGE, f"it cannot be made again: {error}"))
        return
    mine.checked.append(f"{PAGE} against the runs")
    if not is_theirs:
        mine.findings.append(Discrepancy(PAGE, "it is not the page that these runs give"))
