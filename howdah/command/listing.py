# SPDX-License-Identifier: Apache-2.0
"""``howdah list``: profiles, algorithms, kernels, receivers, stacks, metrics and runs."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import asdict, dataclass
from itertools import groupby
from pathlib import Path
from typing import Any

from howdah.algorithm import ALGORITHMS, BASES
from howdah.build.kernel_source import patch_sets
from howdah.build.uml_kernel import built_kernels
from howdah.command.answer import answer
from howdah.command.common import add_json_option, add_runs_option
from howdah.command.listed import DATA, stack_rows
from howdah.layout import DEFAULT_WIDTH, aligned, folded, glossary, records, terminal_width, write_stdout
from howdah.number import counted
from howdah.record.directory import experiment_indexes
from howdah.work.catalogue import GROUPS, ShippedProfile, entries, expected_s

Row = dict[str, Any]
_BESIDE = 120  # columns from which a profile's description stands beside its name
_COST = "The time beside a profile is expected of one core; runs are made side by side, one a core."
_OVER_CUBIC = BASES["cubic"]


@dataclass(frozen=True)
class _List:
    """One thing that can be listed: what it is, its rows for programs, and its lines for people."""

    about: str
    rows: Callable[[Path], list[Row]]
    lines: Callable[[list[Row], int], list[str]] = records


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser("list")
    about = "; ".join(f"{name}: {each.about}" for name, each in _LISTS.items())
    parser.add_argument("what", nargs="?", default="profiles", choices=list(_LISTS), metavar="WHAT", help=about)
    add_runs_option(parser)
    add_json_option(parser)
    parser.set_defaults(execute=execute)


def _profiles(_runs: Path) -> list[Row]:
    return [{"profile": each.profile, "group": each.group, **asdict(each)} for each in entries()]


def _profile_lines(rows: list[Row], width: int) -> list[str]:
    lines = [*folded(_COST, width), ""]
    about = {title: text for title, _, text in GROUPS}
    for group, members in groupby(rows, lambda row: str(row["group"])):
        found = [ShippedProfile(**{key: value for key, value in row.items() if key != "group"}) for row in members]
        lines += folded(f"{group}: {about[group]}" if group in about else group, width)
        facts = aligned(
            [[f"  {each.profile}", counted(each.runs, "run"), expected_s(each.core_s)] for each in found], (1, 2)
        )
        for fact, entry in zip(facts, found, strict=True):
            if width >= _BESIDE:
                lines += folded(entry.description, width, " " * (len(facts[0]) + 2), f"{fact}  ")
            else:
                lines += [fact, *folded(entry.description, width, "      ")]
        lines.append("")
    return [*lines, "'howdah run NAME' runs one, 'howdah plan NAME' only prints what it would do."]


def _algorithms(_runs: Path) -> list[Row]:
    return [
        {
            "algorithm": name,
            "kernel name": algorithm.kernel,
            "module": algorithm.module or "",
            "parameters": " ".join(f"{key}={value}" for key, value in algorithm.parameters.items()),
            "summary": algorithm.summary,
        }
        for name, algorithm in ALGORITHMS.items()
    ]


def _algorithm_lines(rows: list[Row], width: int) -> list[str]:
    """Plug-ins once: each is there over reno, and over cubic by its name with an ending."""
    own, plug_ins = [], []
    for row in rows:
        name, text = str(row["algorithm"]), str(row["summary"])
        if ALGORITHMS[name].builtin:
            own.append((name, text))
        elif not (name.endswith(_OVER_CUBIC) and name.removesuffix(_OVER_CUBIC) in ALGORITHMS):
            plug_ins.append((name, text.removesuffix("; then reno")))
    lines = ["Linux:", *glossary(own, width), ""]
    heading = f"modules of this project, followed by reno; NAME{_OVER_CUBIC} is followed by cubic:"
    lines += [*folded(heading, width), *glossary(plug_ins, width), ""]
    return [*lines, *folded("--json also has kernel names, modules and parameters.", width)]


def _kernels(_runs: Path) -> list[Row]:
    """Those in the cache, then those that a set of patches makes and nobody has built yet."""
    built = list(built_kernels())
    names = {row["kernel"] for row in built}
    columns = dict.fromkeys(built[0] if built else ("kernel", "release", "source"), "")
    return built + [
        {**columns, "kernel": each.kernel, "release": each.release, "source": f"not built yet; {each.what}"}
        for each in patch_sets().values()
        if each.kernel not in names
    ]


def _receiver_lines(rows: list[Row], width: int) -> list[str]:
    """Behaviours, which of them are emulated, and after what: each source once, with those that follow it."""
    lines = glossary(
        [(str(row["receiver"]), f"{'emulated: ' if row['emulated'] else ''}{row['summary']}") for row in rows], width
    )
    followers: dict[str, list[str]] = {}
    for row in rows:
        for source in row["sources"]:
            followers.setdefault(str(source["title"]), []).append(str(row["receiver"]))
    lines += [
        "",
        "Emulated after:",
        *glossary([(title, ", ".join(names)) for title, names in followers.items()], width),
    ]
    return [*lines, "", *folded("--json also has where the sources are; docs/receivers.md has what is in them.", width)]


def _stack_lines(rows: list[Row], width: int) -> list[str]:
    entries = []
    for row in rows:
        needs = f"; built with {', '.join(row['needs'])}" if row["needs"] else ""
        entries.append((str(row["stack"]), f"{row['summary']}{needs}"))
    hint = "A profile names one in receiver.stack, or the YAML file of your own with a / in its path."
    return [*glossary(entries, width), "", *folded(hint, width)]


def _metric_lines(rows: list[Row], width: int) -> list[str]:
    return glossary([(str(row["metric"]), str(row["meaning"])) for row in rows], width)


def _runs_there(runs: Path) -> list[Row]:
    from howdah.work.results import listed  # and pyarrow

    rows: list[Row] = []
    for index in experiment_indexes(runs):
        if index.parent.is_symlink():
            continue
        rows.extend(
            {"experiment": index.parent.name, "run": each.run, "status": each.status, "verdict": each.shown}
            for each in listed(index.parent)
        )
    return rows


def _run_lines(rows: list[Row], width: int) -> list[str]:
    lines: list[str] = []
    for experiment, members in groupby(rows, lambda row: str(row["experiment"])):
        inner = [{key: value for key, value in row.items() if key != "experiment"} for row in members]
        lines += [experiment, *(f"  {line}" for line in records(inner, width - 2)[1:])]
    return lines


_LISTS: dict[str, _List] = {
    "profiles": _List("experiments that are shipped, with what they cost", _profiles, _profile_lines),
    "algorithms": _List("congestion controls by the names that profiles use", _algorithms, _algorithm_lines),
    "kernels": _List("those that were built here", _kernels),
    "receivers": _List("how a receiver can acknowledge", DATA["receivers"], _receiver_lines),
    "stacks": _List("other TCPs that can receive or send, real code", stack_rows, _stack_lines),
    "metrics": _List("what is measured, for claims and figures", DATA["metrics"], _metric_lines),
    "runs": _List("those below --runs", _runs_there, _run_lines),
}


def execute(options: argparse.Namespace) -> int:
    if options.json:
        answer(f"list-{options.what}", {options.what: DATA[options.what](options.runs)})
        return 0
    chosen = _LISTS[options.what]
    rows = chosen.rows(options.runs)
    if not rows:
        write_stdout(f"no {options.what} here\n")
        return 0
    write_stdout("\n".join(chosen.lines(rows, terminal_width() or DEFAULT_WIDTH)) + "\n")
    return 0
