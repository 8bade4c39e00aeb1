# SPDX-License-Identifier: Apache-2.0
"""The provenance of runs, as a page shows it: the facts that all share, and those that differ by run."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from howdah.number import significant
from howdah.plan.text import perturbation_words
from howdah.record.result import Run


@dataclass(frozen=True)
class Fact:
    """A name and its value as text."""

    name: str
    value: str


@dataclass(frozen=True)
class Origins:
    """The facts that all runs share, and the remaining facts of each run."""

    shared: list[Fact]
    own: list[tuple[Run, list[Fact]]]


def origins(runs: list[Run]) -> Origins:
    """The facts of all runs, from run.json and the plan."""
    of_run = [(run, _facts(run)) for run in runs]
    if len(runs) < 2:
        return Origins([], of_run)
    shared = [fact for fact in of_run[0][1] if all(fact in facts for _, facts in of_run)]
    return Origins(shared, [(run, [fact for fact in facts if fact not in shared]) for run, facts in of_run])


def _facts(run: Run) -> list[Fact]:
    """The facts of one run, from run.json and the plan, without empty ones."""
    record = run.provenance
    facts: list[Fact] = []

    def add(name: str, value: Any) -> None:
        if value not in (None, "", {}, []):
            facts.append(Fact(name, value_text(value)))

    add("kernel", run.release or (run.plan.kernel if run.plan else None))
    add("kernel source", record.kernel.source)
    add("kernel image sha256", record.kernel.image_sha256)
    add("kernel config sha256", record.kernel.config_sha256)
    add("engine", record.engine.plain())
    add("plan sha256", record.plan_sha256)
    add("run key", record.key)
    add("howdah", record.howdah.plain())
    add("guest tree sha256", record.guest_tree and record.guest_tree.sha256)
    add("modules", {name: module.plain() for name, module in record.modules.items()})
    add("algorithms", record.algorithms)
    add("host", record.host.plain())
    add("started", record.started)
    add("simulated", None if record.virtual_s is None else f"{significant(record.virtual_s)} s")
    add("took", None if record.wall_s is None else f"{significant(record.wall_s)} s")
    if run.plan:
        add("seed", run.plan.seed)
        add("perturbation", perturbation_words(run.plan))
        add("kernel parameters", run.plan.kernel_parameters)
        add("module parameters", run.plan.module_parameters)
    return facts


def value_text(value: Any) -> str:
    """Any JSON value in one line for a person."""
    if value is None:
        return "—"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return significant(value, 6)
    if isinstance(value, dict):
        return ", ".join(f"{key}: {value_text(each)}" for key, each in value.items())
    if isinstance(value, list | tuple):
        return ", ".join(value_text(each) for each in value)
    return str(value)
