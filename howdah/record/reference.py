# SPDX-License-Identifier: Apache-2.0
"""Write the tables of docs/data-format.md from the models of files."""

from __future__ import annotations

import dataclasses

from pydantic import BaseModel

from howdah.place import PROJECT
from howdah.record import agent, calibration, claims, run
from howdah.record.index import ExperimentIndex, IndexedRun, ProfileSource

PAGE = PROJECT / "docs" / "data-format.md"
# Heading and model of each table, by the file, which has a section of the page.
_SECTIONS: dict[str, tuple[tuple[str, type], ...]] = {
    "claims.json": (
        (
            "Every claim with its verdict.\nFields that do not apply are null.\n"
            "[claims.md](claims.md) says how each is judged.",
            claims.ClaimsFile,
        ),
        ("A row of `claims`:", claims.ClaimRow),
        ("`expected`:", claims.ExpectedRow),
        (
            "A sample is `measured`, `than`, or one of a control or a point.\nNumbers are in the unit of metrics.json:",
            claims.SampleRow,
        ),
        ("`measured` is the sample of the point that decides the verdict, and has:", claims.MeasuredRow),
        ("A row of its `points` is a sample, has `at` ({axis: value}), and:", claims.PointRow),
        ("A row of `trend`:", claims.TrendRow),
        ("`comparison`:", claims.ComparisonRow),
        ("`control`:", claims.ControlRow),
        ("`unknown` of a claim that fails as the profile is written:", claims.GridRow),
        ("A row of its `points`:", claims.GridPointRow),
        ("`unknown` of the file:", claims.OpenRow),
        ("Its `most`:", claims.MostRow),
    ),
    "calibration-*.json": (
        (
            "What could not be measured is null.\n"
            "`buffer_bytes` is (longest wait of a full frame − delay of a small one) × rate + half a frame.",
            calibration.CalibrationRecord,
        ),
        ("A row of `targets`:", calibration.TargetDelays),
        ("`loss`:", calibration.ProbesLost),
        ("`policer`:", calibration.PolicerTrain),
        ("A row of `jitter`:", calibration.DrawnDelays),
        ("A row of `round_trips`:", calibration.RoundTrip),
    ),
    "agent.json": (
        ("Fields of a kernel, of the run, or of each machine in `machines`:", agent.KernelRecord),
        ("Those of the run:", agent.AgentRecord),
        ("`error`:", agent.AgentFailure),
        ("A row of `phases`:", agent.Phase),
        ("A row of `flows`:", agent.FlowRecord),
        ("A row of a flow's `transactions`:", agent.TransactionRecord),
        ("A program of `programs`:", agent.ProgramRecord),
        ("`qdiscs` of a node:", agent.NodeQueues),
        ("A queue of `qdiscs`, as `tc -j qdisc show` prints it; what else tc prints is left out:", agent.ShownQueue),
        ("A class, as `tc -j class show` prints it; what else tc prints is left out:", agent.ShownClass),
        ("A row of `filters`:", agent.ShownFilter),
        ("A row of `policers`:", agent.ShownPolicer),
        ("An interface of `links`:", agent.ShownInterface),
        ("A row of `routes`; a metric that is not set is null:", agent.ShownRoute),
        ("A module of `modules`; only a profile's own has what follows `parameters`:", agent.ModuleRecord),
        ("An algorithm of `algorithms`:", agent.AlgorithmRecord),
        ("`memory`:", agent.MemoryRecord),
        ("`kernel_log`:", agent.KernelLogRecord),
        ("`processor`:", agent.ProcessorRecord),
    ),
    "run.json": (
        ("What the engine says:", run.EngineReport),
        ("The rest of the file:", run.RunRecord),
        ("`engine`; each engine gives what it has:", run.EngineOrigin),
        ("`kernel`:", run.KernelOrigin),
        ("`guest_tree`:", run.TreeOrigin),
        ("A module of `modules`; a profile's own also has what agent.json has of it:", run.ModuleOrigin),
        ("`confinement`:", run.Confinement),
        ("A stack of `stacks`:", run.StackOrigin),
        ("`howdah`:", run.Software),
        ("`host`:", run.HostMachine),
        ("A row of `stages`:", run.StageTime),
        ("A row of `extensions`:", run.AddedPart),
    ),
    "experiment.json": (
        ("The list of runs, one line a run in `cells`.", ExperimentIndex),
        ("Its `profile`:", ProfileSource),
        ("A row of `cells`:", IndexedRun),
    ),
}


_VERSION = "format"  # a field of every file, which the page describes once
_SHORT = 520  # most characters of a record that is described in one row
_HEADER = "\n| field | what it is |\n|---|---|\n"


def page(text: str) -> str:
    """The page with the section of each file replaced by what the models say."""
    for name, ((words, model), *parts) in _SECTIONS.items():
        before, title, after = text.partition(f"\n## {name}\n")
        _, heading, rest = after.partition("\n## ")
        rows = _rows(model) + "".join(_part(*part) for part in parts)
        text = f"{before}{title}{words}\n{_HEADER}{rows}{heading}{rest}"
    return text


def _part(words: str, model: type) -> str:
    """Rows for one part of a file: a single row with one line per field if that is short, else a heading row and one
    row per field."""
    words = words.replace("\n", " ")
    short = "<br>".join(f"`{name}`: {text}" for name, text in _told(model).items())
    return f"| **{words}** | {short} |\n" if len(short) <= _SHORT else f"| | **{words}** |\n{_rows(model)}"


def _rows(model: type) -> str:
    return "".join(f"| `{name}` | {text} |\n" for name, text in _told(model).items())


def _told(model: type) -> dict[str, str | None]:
    """What a model describes itself, without what it inherits."""
    inherited = {name for base in model.__bases__ for name in _descriptions(base)}
    return {name: text for name, text in _descriptions(model).items() if name not in {*inherited, _VERSION}}


def _descriptions(model: type) -> dict[str, str | None]:
    """Descriptions of all fields, by their names in the file."""
    if issubclass(model, BaseModel):
        return {field.serialization_alias or name: field.description for name, field in model.model_fields.items()}
    told = dataclasses.fields(model) if dataclasses.is_dataclass(model) else ()
    return {field.name: field.metadata["text"] for field in told}


if __name__ == "__main__":
    PAGE.write_text(page(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
