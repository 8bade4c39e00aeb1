# SPDX-License-Identifier: Apache-2.0
"""Lies of an experiment as a whole: plans that are not its profile's, and runs that are missing, extra or copies."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from howdah.plan.compile import compile_plan
from howdah.profile import load
from howdah.record.directory import RunDirectory, read_json, write_json
from howdah.record.provenance import first_record, sha256_text
from howdah.record.run import write_record
from howdah.verify.experiment import verify_experiment
from tests.liars.bench import Bench
from tests.liars.liar import Catch, ToldLiar

Told = Callable[[Bench, Path], list[Catch]]
_PROFILE = """\
howdah: 1
name: lie
description: Two algorithms
path: {rate: 20 Mbit/s, rtt: 40 ms, buffer: 1 bdp, loss: 1 %}
algorithm: [cubic, reno]
duration: 2 s
repetitions: 2
"""


@dataclass(frozen=True)
class Experiment:
    """Four runs as they were planned; nobody made them, and nothing of them but plan and record is looked at."""

    path: Path

    @property
    def index(self) -> Path:
        return self.path / "experiment.json"

    def run(self, name: str = "cubic-r0") -> RunDirectory:
        return RunDirectory(self.path / f"{name}-00000000")

    def edit(self, name: str, change: Callable[[Any], object]) -> None:
        """A plan, and its digest."""
        run = self.run(name)
        plan = read_json(run.plan)
        change(plan)
        run.plan.write_text(json.dumps(plan, indent=1))
        record = read_json(run.provenance)
        write_json(run.provenance, {**record, "plan_sha256": sha256_text(run.plan.read_text())})

    def change_index(self, change: Callable[[Any], object]) -> None:
        index = read_json(self.index)
        change(index)
        write_json(self.index, index)

    def write_profile(self, text: str) -> None:
        (self.path / "profile.yaml").write_text(text)
        self.change_index(lambda index: index["profile"].update(sha256=sha256_text(text)))


def make_experiment(path: Path) -> Experiment:
    path.mkdir(parents=True)
    (path / "profile.yaml").write_text(_PROFILE)
    profile = load(path / "profile.yaml")
    made, cells = Experiment(path), []
    for cell in profile.cells():
        plan = compile_plan(cell)
        run = made.run(plan.run)
        run.path.mkdir()
        run.plan.write_text(plan.to_json())
        digests = {"raw/agent.json": sha256_text(run.name)}
        write_record(run, first_record(plan.to_json(), "0" * 64).replaced(status="finished", digests=digests))
        write_json(run.verdict, {"format": 1, "verdict": "pass", "checks": []})
        listed = {name: getattr(plan, name) for name in ("axes", "algorithm", "repetition")}
        cells.append({"run": run.name, **listed, "status": "finished", "verdict": "pass"})
    about = {"format": 1, "name": path.name, "description": profile.description, "axes": profile.axes, "quick": False}
    source = {"file": "elsewhere/lie.yaml", "sha256": sha256_text(_PROFILE)}
    write_json(made.index, {**about, "profile": source, "cells": cells})
    return made


def _told(lie: Callable[[Experiment], object]) -> Told:
    def told(_bench: Bench, path: Path) -> list[Catch]:
        each = make_experiment(path)
        lie(each)
        report = verify_experiment(each.path)
        return [Catch("state", report.state, str(what)) for what in (*report.findings, *report.gaps)]

    return told


_WHOLE = "an experiment as its profile has it"
HONEST_PLANS: dict[str, Told] = {_WHOLE: _told(lambda _each: None)}


def _liar(name: str, lie: str, state: str, words: str, do: Callable[[Experiment], object]) -> ToldLiar:
    return ToldLiar(name, "file", lie, Catch("state", state, words), _WHOLE, _told(do))


def _plan(name: str, lie: str, words: str, change: Callable[[Any], object], run: str = "cubic-r0") -> ToldLiar:
    said = f"plan.json: it is not what profile.yaml gives: {words}"
    return _liar(name, lie, "differs", said, lambda each: each.edit(run, change))


def _copied(each: Experiment) -> None:
    """The first repetition once more under the name of the second, whose digests name the same records."""
    first, second = each.run("cubic-r0"), each.run("cubic-r1")
    digests = read_json(first.provenance)["digests"]
    write_json(second.provenance, {**read_json(second.provenance), "digests": digests})


def _taken_out(each: Experiment) -> None:
    shutil.rmtree(each.run("reno-r1").path)
    each.change_index(lambda index: index["cells"].pop())


def _invented(each: Experiment) -> None:
    """A run of another algorithm, listed among the profile's."""
    run = RunDirectory(each.path / "bbr-r0-00000000")
    shutil.copytree(each.run().path, run.path)
    plan = {**read_json(run.plan), "run": "bbr-r0", "algorithm": "bbr", "axes": {"algorithm": "bbr"}}
    run.plan.write_text(json.dumps(plan, indent=1))
    write_json(run.provenance, {**read_json(run.provenance), "digests": {}})
    each.change_index(
        lambda index: index["cells"].append(
            {**index["cells"][0], "run": run.name, "algorithm": "bbr", "axes": {"algorithm": "bbr"}}
        )
    )


def _own_topology(each: Experiment) -> None:
    mark = each.path / "ran"
    (each.path / "t.py").write_text(f"open({str(mark)!r}, 'w')\n")
    each.write_profile(_PROFILE + "topology: {file: t.py, class: T}\n")
    assert verify_experiment(each.path).gaps
    assert not mark.exists(), "a profile that is looked at runs nothing"


def _renamed(each: Experiment) -> None:
    """The runs of two algorithms change their directories' names, and the list has them so."""
    one, other, aside = each.run("cubic-r0").path, each.run("reno-r0").path, each.path / ".aside"
    one.rename(aside)
    other.rename(one)
    aside.rename(other)

    def change(index: Any) -> None:
        cells = {cell["run"]: cell for cell in index["cells"]}
        cells[one.name]["run"], cells[other.name]["run"] = other.name, one.name

    each.change_index(change)


def _said_twice(each: Experiment) -> None:
    each.index.write_text(each.index.read_text().replace("{", '{"description": "Ten algorithms",', 1))


PLANS = [
    _plan(
        "plan-without-hystart",
        "A run that is called cubic was made without HyStart.",
        "kernel_parameters.tcp_cubic.hystart is '0', the profile gives '1'",
        lambda plan: plan["kernel_parameters"].update({"tcp_cubic.hystart": "0"}),
    ),
    _plan(
        "plan-with-another-seed",
        "A run was made with a seed that suits its author.",
        "seed is 7, the profile gives",
        lambda plan: plan.update(seed=7),
    ),
    _plan(
        "plan-of-another-engine's-traits",
        "The plan says that its engine's clock is a real one, so that wider tolerances hold.",
        "traits.virtual_clock is False, the profile gives True",
        lambda plan: plan["traits"].update(virtual_clock=False),
    ),
    _plan(
        "plan-that-calibrates-nothing",
        "The plan leaves out the calibration that would show another path.",
        "calibration.enabled is False",
        lambda plan: plan["calibration"].update(enabled=False),
    ),
    _plan(
        "plan-of-a-shorter-run",
        "A run was ended before its path was lost.",
        "duration_us is 1000000",
        lambda plan: plan.update(duration_us=1_000_000),
    ),
    _plan(
        "plan-of-less-loss",
        "The path of a run lost less than the profile says.",
        "path.loss_ratio is 0.001, the profile gives 0.01",
        lambda plan: plan["path"].update(loss_ratio=0.001),
    ),
    _plan(
        "plan-of-a-larger-buffer",
        "The bottleneck of a run had a larger buffer than the profile says.",
        "path.buffer_bytes is 1000000",
        lambda plan: plan["path"].update(buffer_bytes=1_000_000),
    ),
    _plan(
        "plan-of-another-algorithm",
        "A flow that is called cubic was one of BBR.",
        "flows.0.kernel_algorithm is 'bbr', the profile gives 'cubic'",
        lambda plan: plan["flows"][0].update(kernel_algorithm="bbr"),
    ),
    _plan(
        "plan-of-another-initial-window",
        "A flow began with a larger window than the profile says.",
        "flows.0.initial_window_packets is 40",
        lambda plan: plan["flows"][0].update(initial_window_packets=40),
    ),
    _plan(
        "plan-of-the-nominal-path-twice",
        "The second repetition has no perturbation.",
        "perturbation",
        lambda plan: plan.update(perturbation={}),
        "cubic-r1",
    ),
    _plan(
        "plan-that-records-less",
        "A run has no trace of the windows.",
        "collect.tcp_probe is False",
        lambda plan: plan["collect"].update(tcp_probe=False),
    ),
    _plan(
        "plan-with-one-operation-more",
        "The plan sets a sysctl that the profile does not have.",
        "operations is",
        lambda plan: plan["operations"].append(
            {"op": "sysctl", "arguments": {"node": "s1", "name": "x", "value": "1"}}
        ),
    ),
    _plan(
        "plan-with-a-field-more",
        "The plan has a module of the author's own.",
        "modules is ['/m.ko'], the profile gives []",
        lambda plan: plan.update(modules=["/m.ko"]),
    ),
    _plan(
        "plan-measured-over-the-good-part",
        "The measures are of the part of the run in which they are good.",
        "measure_window_us",
        lambda plan: plan.update(measure_window_us=[500_000, 900_000]),
    ),
    _liar(
        "profile-of-another-path",
        "The profile was written anew: it has a faster path than its runs.",
        "differs",
        "path.rate_bits_per_second is 20000000, the profile gives 400000000",
        lambda each: each.write_profile(_PROFILE.replace("20 Mbit/s", "400 Mbit/s")),
    ),
    _liar(
        "profile-that-is-none",
        "The profile cannot be read, so that nobody compiles it.",
        "unchecked",
        "its plans were not compared with profile.yaml",
        lambda each: each.write_profile("howdah: 1\n  name: [\n"),
    ),
    _liar(
        "profile-that-is-a-program",
        "The profile has a topology of its own, which would run where it is verified.",
        "unchecked",
        "it has a topology of its own, which is a program",
        _own_topology,
    ),
    _liar(
        "profile-that-is-gone",
        "The profile is missing, so that nobody compiles it.",
        "differs",
        "profile.yaml: it is missing",
        lambda each: (each.path / "profile.yaml").unlink(),
    ),
    _liar(
        "run-taken-out",
        "A run that did not suit its author is gone, with its row.",
        "unchecked",
        "1 of the profile's 4 runs are missing: reno-r1",
        _taken_out,
    ),
    _liar(
        "run-that-was-not-asked-for",
        "A run of another algorithm is listed among those of the profile.",
        "differs",
        "bbr-r0-00000000 is not a run of this profile",
        _invented,
    ),
    _liar(
        "runs-under-each-other's-names",
        "The runs of two algorithms lie under each other's names.",
        "differs",
        "reno-r0-00000000 is the name of another run: its plan is that of cubic-r0",
        _renamed,
    ),
    _liar(
        "description-said-twice",
        "experiment.json has two descriptions, of which each reader takes another one.",
        "differs",
        "experiment.json: it says 'description' twice",
        _said_twice,
    ),
    _plan(
        "algorithm-that-looks-alike",
        "The algorithm's name has a letter that nobody sees.",
        r"algorithm is 'c\u200bubic'",
        lambda plan: plan.update(algorithm="c\u200bubic"),
    ),
    _liar(
        "repetition-copied",
        "A repetition is a copy of the one before it.",
        "differs",
        "raw/agent.json is that of cubic-r0-00000000: one of these runs is a copy",
        _copied,
    ),
    _liar(
        "experiment-without-runs",
        "An experiment has no runs, and nothing in it is wrong.",
        "unchecked",
        "it has no runs",
        lambda each: each.change_index(lambda index: index.update(cells=[])),
    ),
    _liar(
        "description-of-another-experiment",
        "experiment.json describes another experiment.",
        "differs",
        "description is 'Ten algorithms', profile.yaml has 'Two algorithms'",
        lambda each: each.change_index(lambda index: index.update(description="Ten algorithms")),
    ),
    _liar(
        "axis-of-more-values",
        "experiment.json says that more was swept than was.",
        "differs",
        "axes is {'algorithm': ['bbr']}",
        lambda each: each.change_index(lambda index: index.update(axes={"algorithm": ["bbr"]})),
    ),
]
