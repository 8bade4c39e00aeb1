# SPDX-License-Identifier: Apache-2.0
"""``howdah list``: print profiles, algorithms, kernels, receivers, stacks, metrics or runs."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import AliasChoices, BeforeValidator, ConfigDict, Field, create_model

from howdah.algorithm import ALGORITHMS, BASES, Algorithm
from howdah.build.cache import Cache
from howdah.build.kernel_source import patch_sets
from howdah.build.uml_kernel import Kernel, load_kernel
from howdah.command.answer import answer
from howdah.command.common import add_json_option, add_runs_option
from howdah.command.shape import CommandAnswer
from howdah.layout import DEFAULT_WIDTH, aligned, folded, glossary, records, terminal_width, write_stdout
from howdah.metric import Metric, known_metrics
from howdah.number import counted
from howdah.place import STACKS
from howdah.profile.stack import read_stack, shipped_stacks
from howdah.receiver import LINUX, RECEIVERS, Receiver
from howdah.record.directory import experiment_indexes
from howdah.record.model import FilePart
from howdah.work.catalogue import GROUPS, ShippedProfile, entries, expected_s

if TYPE_CHECKING:
    from howdah.work.results import Listed  # loads pyarrow

_WIDE = 120  # the terminal width from which a profile's description is beside its name
_COST = "Times are expected on one core; runs are made in parallel, one per core."
_OVER_CUBIC = BASES["cubic"]


class _Row(FilePart):
    """A row of a list, made from the attributes of the listed object."""

    model_config = ConfigDict(from_attributes=True)


def _field_named_by_kind(what: str) -> Any:
    """A field that has the object's ``name`` and is called after the kind of object."""
    return Field(validation_alias=AliasChoices(what, "name"))


class ListedProfile(_Row):
    profile: str
    file: str = Field(description="path below profiles/")
    runs: int
    core_s: float = Field(description="expected time of its runs on one core")
    description: str
    group: str


def _profile_lines(found: Sequence[ShippedProfile], width: int) -> list[str]:
    lines = [*folded(_COST, width), ""]
    about = {title: text for title, _, text in GROUPS}
    for group, grouped in groupby(found, lambda each: each.group):
        members = list(grouped)
        lines += folded(f"{group}: {about[group]}" if group in about else group, width)
        facts = aligned(
            [[f"  {each.profile}", counted(each.runs, "run"), expected_s(each.core_s)] for each in members], (1, 2)
        )
        for fact, entry in zip(facts, members, strict=True):
            if width >= _WIDE:
                lines += folded(entry.description, width, " " * (len(facts[0]) + 2), f"{fact}  ")
            else:
                lines += [fact, *folded(entry.description, width, "      ")]
        lines.append("")
    return [*lines, "'howdah run NAME' runs one, 'howdah plan NAME' only prints what it would do."]


class ListedAlgorithm(_Row):
    algorithm: str = _field_named_by_kind("algorithm")
    kernel_name: str = Field(validation_alias=AliasChoices("kernel_name", "kernel"))
    module: str | None
    parameters: dict[str, str]
    summary: str


def _algorithm_lines(found: Sequence[Algorithm], width: int) -> list[str]:
    """List each plug-in once, although it exists over reno and, with a suffix in its name, over cubic."""
    own, plug_ins = [], []
    for each in found:
        if each.builtin:
            own.append((each.name, each.summary))
        elif not (each.name.endswith(_OVER_CUBIC) and each.name.removesuffix(_OVER_CUBIC) in ALGORITHMS):
            plug_ins.append((each.name, each.summary.removesuffix("; then reno")))
    lines = ["Linux:", *glossary(own, width), ""]
    heading = f"modules of this project, followed by reno; NAME{_OVER_CUBIC} is followed by cubic:"
    lines += [*folded(heading, width), *glossary(plug_ins, width), ""]
    return [*lines, *folded("--json also has kernel names, modules and parameters.", width)]


class ListedKernel(_Row):
    kernel: str = _field_named_by_kind("kernel")
    release: str
    source: str
    image_sha256: str
    options_not_taken: tuple[str, ...]
    directory: Annotated[str, BeforeValidator(str)]


def built_kernels(cache: Cache) -> Iterator[Kernel]:
    return map(load_kernel, cache.entries("kernel"))


def _kernel_lines(found: Sequence[Kernel], width: int) -> list[str]:
    """List the kernels in the cache, then those of the shipped patch sets that are not built yet."""
    rows = [
        {
            "kernel": each.name,
            "release": each.release,
            "source": each.source,
            "image": each.image_sha256[:12],
            "options not taken": " ".join(each.options_not_taken),
            "directory": str(each.directory),
        }
        for each in found
    ]
    columns = dict.fromkeys(rows[0] if rows else ("kernel", "release", "source"), "")
    names = {each.name for each in found}
    rows += [
        {**columns, "kernel": each.kernel, "release": each.release, "source": f"not built yet; {each.what}"}
        for each in patch_sets().values()
        if each.kernel not in names
    ]
    return records(rows, width) if rows else []


class ReceiverSource(_Row):
    title: str
    address: str | None


class ListedReceiver(_Row):
    receiver: str = _field_named_by_kind("receiver")
    emulated: bool
    summary: str
    sources: tuple[ReceiverSource, ...]


def _receiver_lines(found: Sequence[Receiver], width: int) -> list[str]:
    """List the behaviours, which of them are emulated, and each source once with the behaviours that follow it."""
    lines = glossary([(each.name, f"{'emulated: ' if each.emulated else ''}{each.summary}") for each in found], width)
    followers: dict[str, list[str]] = {}
    for each in found:
        for title, _address in each.sources:
            followers.setdefault(title, []).append(each.name)
    after = glossary([(title, ", ".join(names)) for title, names in followers.items()], width)
    hint = "--json also has where the sources are; docs/receivers.md has what is in them."
    return [*lines, "", "Emulated after:", *after, "", *folded(hint, width)]


class ListedStack(_Row):
    stack: str
    summary: str
    needs: list[str] = Field(description="programs that build it")


def _stacks() -> Iterator[ListedStack]:
    yield ListedStack(stack=LINUX, summary=RECEIVERS[LINUX].summary, needs=[])
    for name in shipped_stacks():
        section = read_stack(STACKS / f"{name}.yaml").section
        yield ListedStack(stack=name, summary=section.summary, needs=list(section.needs))


def _stack_lines(found: Sequence[ListedStack], width: int) -> list[str]:
    shown = [
        (each.stack, each.summary + (f"; built with {', '.join(each.needs)}" if each.needs else "")) for each in found
    ]
    hint = "A profile names one in receiver.stack, or the YAML file of your own with a / in its path."
    return [*glossary(shown, width), "", *folded(hint, width)]


class ListedMetric(_Row):
    metric: str = _field_named_by_kind("metric")
    unit: Annotated[str | None, BeforeValidator(lambda unit: unit or None)]
    meaning: str


def _metric_lines(found: Sequence[Metric], width: int) -> list[str]:
    return glossary([(each.name, each.meaning) for each in found], width)


class ListedRun(_Row):
    experiment: str
    run: str
    status: str
    verdict: Annotated[str | None, BeforeValidator(lambda verdict: verdict or None)]
    outdated: bool = Field(description="the verdict is from another version of the analysis")
    changed: bool = Field(description="verdict.json differs from its digest: no verdict is shown")


def _all_runs(runs: Path) -> Iterator[Listed]:
    from howdah.work.results import listed  # loads pyarrow

    for index in experiment_indexes(runs):
        if not index.parent.is_symlink():
            yield from listed(index.parent)


def _run_lines(found: Sequence[Listed], width: int) -> list[str]:
    lines: list[str] = []
    for experiment, members in groupby(found, lambda each: each.experiment):
        inner = [{"run": each.run, "status": each.status, "verdict": each.shown} for each in members]
        lines += [experiment, *(f"  {line}" for line in records(inner, width - 2)[1:])]
    return lines


@dataclass(frozen=True)
class _List:
    """One kind of list: its description, the function that finds its objects, the row class for JSON, and the function
    that formats lines for people."""

    about: str
    found: Callable[[Path], Iterable[Any]]
    row: type[_Row]
    lines: Callable[[Sequence[Any], int], list[str]]


_LISTS: dict[str, _List] = {
    "profiles": _List("shipped experiments and their cost", lambda _runs: entries(), ListedProfile, _profile_lines),
    "algorithms": _List(
        "congestion controls by the names that profiles use",
        *(lambda _runs: ALGORITHMS.values(), ListedAlgorithm, _algorithm_lines),
    ),
    "kernels": _List(
        "kernels built on this machine", lambda _runs: built_kernels(Cache()), ListedKernel, _kernel_lines
    ),
    "receivers": _List(
        "how a receiver can acknowledge", lambda _runs: RECEIVERS.values(), ListedReceiver, _receiver_lines
    ),
    "stacks": _List(
        "other TCPs that can receive or send, real code", lambda _runs: _stacks(), ListedStack, _stack_lines
    ),
    "metrics": _List(
        "what is measured, for claims and figures",
        *(lambda _runs: known_metrics().values(), ListedMetric, _metric_lines),
    ),
    "runs": _List("runs below --runs", _all_runs, ListedRun, _run_lines),
}


def _answer_of(what: str, row: type[_Row]) -> type[CommandAnswer]:
    fields: dict[str, Any] = {what: (list[row], ...)}  # type: ignore[valid-type]
    shape = {"shape": f"list-{what}"}
    return create_model(
        f"List{what.title()}", __base__=CommandAnswer, __module__=__name__, __cls_kwargs__=shape, **fields
    )


ANSWERS = {what: _answer_of(what, each.row) for what, each in _LISTS.items()}


def arguments(parser: argparse.ArgumentParser) -> None:
    about = "; ".join(f"{name}: {each.about}" for name, each in _LISTS.items())
    parser.add_argument("what", nargs="?", default="profiles", choices=list(_LISTS), metavar="WHAT", help=about)
    add_runs_option(parser)
    add_json_option(parser)


def execute(options: argparse.Namespace) -> int:
    what, chosen = options.what, _LISTS[options.what]
    found = list(chosen.found(options.runs))
    if options.json:
        answer(ANSWERS[what](**{what: [chosen.row.model_validate(each) for each in found]}))
        return 0
    lines = chosen.lines(found, terminal_width() or DEFAULT_WIDTH)
    write_stdout("\n".join(lines or [f"no {what} here"]) + "\n")
    return 0
