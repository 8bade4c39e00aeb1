# SPDX-License-Identifier: Apache-2.0
"""Where runs came from, as a page shows it: what they share once, what differs for each."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from howdah.number import significant
from howdah.record.result import Run


@dataclass(frozen=True)
class Fact:
    """A name and what to write after it."""

    name: str
    value: str


@dataclass(frozen=True)
class Origins:
    """Facts that all runs share, and for each run the others."""

    shared: list[Fact]
    own: list[tuple[Run, list[Fact]]]


def origins(runs: list[Run]) -> Origins:
    """Facts of all runs, from run.json and the plan."""
    of_run = [(run, _facts(run)) for run in runs]
    if len(runs) < 2:
        return Origins([], of_run)
    shared = [fact for fact in of_run[0][1] if all(fact in facts for _, facts in of_run)]
    return Origins(shared, [(run, [fact for fact in facts if fact not in shared]) for run, facts in of_run])


def _facts(run: Run) -> list[Fact]:
    """What made a run, from run.json and the plan; only what is there."""
    record = run.provenance
    facts: list[Fact] = []

    def add(name: str, value: Any) -> None:
        if value not in (None, "", {}, []):
            facts.append(Fact(name, value_text(value)))

    add("kernel", run.release or (run.plan.kernel if run.plan else None))
    add("kernel source", record.get("kernel", {}).get("source"))
    add("kernel image sha256", record.get("kernel", {}).get("image_sha256"))
    add("kernel config sha256", record.get("kernel", {}).get("config_sha256"))
    add("engine", record.get("engine"))
    add("plan sha256", record.get("plan_sha256"))
    add("run key", record.get("key"))
    add("howdah", record.get("howdah"))
    add("guest tree sha256", (record.get("guest_tree") or {}).get("sha256"))
    add("modules", record.get("modules"))
    add("algorithms", record.get("algorithms"))
    add("host", record.get("host"))
    add("started", record.get("started"))
    add(
        "simulated",
        f"{significant(record['virtual_s'])} s" if isinstance(record.get("virtual_s"), int | float) else None,
    )
    add("took", f"{significant(record['wall_s'])} s" if isinstance(record.get("wall_s"), int | float) else None)
    if run.plan:
        add("seed", run.plan.seed)
        add("perturbation", run.plan.perturbation)
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
