# SPDX-License-Identifier: Apache-2.0
"""Pack runs and experiments into one file, with a page of their results and their units; and unpack it."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from pathlib import Path

from howdah import __version__
from howdah.errors import HowdahError
from howdah.foreign import read_foreign
from howdah.metric import known_metrics
from howdah.pack.archive import INDEX, SUFFIX, extract, write_archive
from howdah.pack.content import Content, PackedFile, Paths, Spool, add_experiment, add_run, local_paths
from howdah.pack.shape import Kind, PackIndex
from howdah.record.directory import RunDirectory, read_object
from howdah.record.index import drawn
from howdah.record.result import Experiment
from howdah.record.schema import SCHEMA_VERSION, TABLES
from howdah.record.table import written_unit
from howdah.report.build import source_for
from howdah.report.page import render
from howdah.report.paper import Choice, available, needs_records
from howdah.report.results import read_all_shown
from howdah.verify.experiment import runs_below
from howdah.verify.finding import Discrepancy, Report
from howdah.work.results import check_results, runs_of

Tell = Callable[[str, int, int], None]  # called with a step, its parts done, and all its parts

_README = """\
These are runs of howdah {version}, which measures how TCP starts up on long paths.

  {experiments}/report.html   the results as a page; it needs no network
  pack.json           every file with its SHA-256
  units.json          the unit and meaning of every measure, and of every column of a table
  */*/metrics.json    the measures of a run; {held}

With howdah: 'howdah unpack FILE', 'howdah verify FILE' ({verified}), 'howdah rerun RUN'.
Without: 'zstd -d < FILE | tar x'{read}. Paths of the machine on which this was packed
are replaced by words in capitals (HOME, RUNS, CACHE, HOWDAH); run.json says in which files.

Commands that draw the figures, to be run in this directory:
{figures}

Commands with which the sender drew figures and made tables (drawn.json of each experiment), to be run here, too{lack}:
{drawn}
"""


_NONE = "  there are none"
_HELD: dict[Kind, str] = {
    "everything": "tables/*.parquet are its records, raw/ what the guest wrote",
    "tables": "tables/*.parquet are its records; large files of raw/ were left out",
    "results": "its records were left out",
}
_VERIFIED: dict[Kind, str] = {
    "everything": "recomputes everything",
    "tables": "recomputes measures and verdicts from the tables",
    "results": "compares digests; only 'howdah rerun' makes the numbers again",
}


@dataclass(frozen=True)
class Packed:
    """A pack file and its index (docs/pack.md)."""

    file: Path
    index: PackIndex


def _no_progress(_what: str, _done: int, _total: int) -> None:
    """Report no progress."""


def default_name(paths: list[Path]) -> str:
    return "-".join(dict.fromkeys(path.name for path in paths))[:100]


def pack(paths: list[Path], target: Path, *, kind: Kind = "everything", tell: Tell | None = None) -> Packed:
    """Write directories of runs or experiments to ``target``. ``kind`` tables leaves out large raw records, ``kind``
    results all records and tables.

    Results are brought up to date first. Raises HowdahError for what cannot be read, and MismatchError for a file that
    differs from the one recorded.
    """
    chosen = _runs_by_experiment(paths)
    with Spool(target) as spool:
        return _packed(chosen, Content(spool), target, kind, tell or _no_progress)


def _packed(chosen: dict[Path, list[RunDirectory]], content: Content, target: Path, kind: Kind, tell: Tell) -> Packed:
    names: dict[str, Path] = {}
    commands: list[str] = []
    senders: dict[str, None] = {}
    count, read = sum(map(len, chosen.values())), 0
    for home, runs in chosen.items():
        if names.setdefault(home.name, home) != home:
            raise HowdahError(f"two experiments are called {home.name!r}", where=f"{names[home.name]} and {home}")
        hidden = Paths(home.parent, local_paths(runs))
        for run in runs:
            add_run(content, run, f"{home.name}/{run.name}", hidden, kind=kind)
            read += 1
            tell("check and read runs", read, count)
        if (home / "experiment.json").exists():
            tell("report", 0, 0)
            whole = len(runs) == len(runs_of(home))
            shown = _read_runs([home] if whole else [run.path for run in runs])
            page = _page(shown)
            commands += figure_commands(shown, kind)
            # A command with a path of this machine works nowhere else.
            senders |= dict.fromkeys(each for each in drawn(home) if hidden.replaced(each.encode()) == each.encode())
            add_experiment(content, home, runs, home.name, hidden, page)
    units = (json.dumps(_units(), indent=1) + "\n").encode()
    readme = _readme(names, commands, senders, kind).encode()
    content.entries += [PackedFile("units.json", content=units), PackedFile("README.txt", content=readme)]
    about = PackIndex(
        howdah=__version__,
        experiments=list(names),
        runs=[f"{home.name}/{run.name}" for home, runs in chosen.items() for run in runs],
        kind=kind,
        raw=kind == "everything" or not content.left_out,
        rewritten=sorted(content.rewritten),
        left_out=sorted(content.left_out),
    )
    top = target.name.removesuffix(SUFFIX).removesuffix(".tar.zst") or "pack"
    return Packed(target, write_archive(target, top, about, content.entries, tell=tell))


def _readme(names: Iterable[str], figures: Iterable[str], drawn_before: Iterable[str], kind: Kind) -> str:
    """The text of README.txt: ``figures`` are commands that draw figures, ``drawn_before`` those the sender ran."""
    own, given = ("\n".join(f"  {command}" for command in some) or _NONE for some in (figures, drawn_before))
    return _README.format(
        version=__version__,
        experiments=" ".join(names),
        figures=own,
        drawn=given,
        lack=";\nthose of curves need records, which a pack of results lacks" if kind == "results" else "",
        held=_HELD[kind],
        verified=_VERIFIED[kind],
        read="" if kind == "results" else "; pandas, polars and DuckDB read Parquet",
    )


def _runs_by_experiment(paths: list[Path]) -> dict[Path, list[RunDirectory]]:
    found: dict[Path, dict[Path, RunDirectory]] = {}
    for path in paths:
        check_results(path)
        runs = runs_of(path)
        home = path if (path / "experiment.json").exists() else path.parent
        if not runs:
            raise HowdahError("there are no runs to pack", where=str(path))
        for run in runs:
            if run.path.is_symlink():
                what = "this run is a symbolic link, which is not followed"
                raise HowdahError(what, where=str(run.path), hint="Name the run itself, or copy it.")
        found.setdefault(home.resolve(), {}).update({run.path.resolve(): run for run in runs})
    return {home: [RunDirectory(place) for place in sorted(runs)] for home, runs in sorted(found.items())}


def page_of(paths: list[Path]) -> str:
    """The report of a pack, drawn from tables alone."""
    return _page(_read_runs(paths))


def _read_runs(paths: list[Path]) -> Experiment:
    experiments = read_all_shown(paths)
    return replace(experiments[0], runs=[run for each in experiments for run in each.runs])


def _page(merged: Experiment) -> str:
    with source_for([merged], "off") as (source, note):
        return render(merged.name, merged.description, [merged], source, note)


def _units() -> object:
    metrics = {
        name: {"unit": None if metric.is_text else metric.unit, "meaning": metric.meaning}
        for name, metric in known_metrics().items()
    }
    tables = {
        name: {column.name: {"type": str(column.type), "unit": written_unit(column.name)} for column in schema}
        for name, schema in TABLES.items()
    }
    return {"format": 1, "schema": SCHEMA_VERSION, "metrics": metrics, "tables": tables}


def unpack(file: Path, target: Path) -> PackIndex:
    """Write a pack to the new directory ``target`` and return its index. Raises PackError (howdah/pack/archive.py)."""
    return extract(file, target)


def figure_commands(experiment: Experiment, kind: Kind) -> list[str]:
    """A command for each figure that can be drawn from a pack of that kind, to run beside the experiment."""
    return [
        f"howdah figure --runs . {experiment.path.name} --figure {name}"
        for name, problem in available([experiment], Choice()).items()
        if problem is None and not (kind == "results" and needs_records(name, [experiment]))
    ]


PAGE = "report.html"


def check_page(path: Path, reports: list[Report]) -> None:
    """Add to the experiment's report whether its page is the one that this version makes of the unpacked experiment.

    This cannot be checked for a pack of results, because curves are drawn from tables, nor for one of another version.
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
    # The page of a partial pack shows only its runs.
    ways = ([path], [run.path for run in runs_below(path)])
    try:
        page = read_foreign(path / PAGE)
        is_theirs = any(page_of(list(way)).encode() == page for way in ways)
    except (HowdahError, OSError, ValueError) as error:
        mine.findings.append(Discrepancy(PAGE, f"it cannot be made again: {getattr(error, 'what', error)}"))
        return
    mine.checked.append(f"{PAGE} against the runs")
    if not is_theirs:
        mine.findings.append(Discrepancy(PAGE, "it is not the page that these runs give"))
