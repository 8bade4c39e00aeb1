# SPDX-License-Identifier: Apache-2.0
"""Run directories from somebody else: every file of them cut off, changed, missing, of another format or kind.

Each is given to the commands that read one. A command does its work, or says what is wrong and ends with an error.
"""

from __future__ import annotations

import json
import random
import shutil
from pathlib import Path
from typing import Any

from howdah.record.directory import read_json, write_json
from howdah.record.provenance import analysis_sha256
from tests.experiment_factory import Scenario, make_experiment, provenance
from tests.faults.mutation import Corpus, Mutator
from tests.faults.trial import Case, LimitedTrials
from tests.unit.recorded_run import make_recorded_run, recorded_plan

SYNTHETIC, RECORDED = "synthetic", "recorded"
_PROFILE = """\
howdah: 1
name: synthetic
path: {rate: 20 Mbit/s, rtt: 100 ms}
algorithm: [cubic, reno]
duration: 3 s
claims:
  - id: faster
    says: cubic uses more
    source: a choice
    value: {metric: utilisation, at: {algorithm: cubic}}
    expect: {above: 50 %}
"""
_COMMANDS = {
    "report": ["report", "{name}", "--without-prometheus"],
    "reanalyse": ["report", "{name}", "--without-prometheus", "--reanalyse"],
    "compare": ["compare", "{name}", "{name}", "--without-prometheus"],
    "claims": ["claims", "{name}"],
    "export": ["export", "{name}"],
    "list": ["list", "runs"],
    "clean": ["clean", "--unlisted"],
    "rerun": ["rerun", "{run}"],
    "export a run": ["export", "{run}"],
    "pack": ["pack", "{name}", "--output", "{pack}"],
    "publish": [],
    "verify": [],
}


class Records(LimitedTrials):
    """Good experiments, from which wrong ones are made in ``directory``; ``make(n)`` is the same for ever."""

    limit_s, commands = 60.0, True

    def __init__(self, directory: Path, seed: int) -> None:
        self.directory = directory
        self.environment = {"HOWDAH_CACHE": str(directory / "cache")}
        self.seed = seed
        self.good = directory / "good"
        self.good.mkdir()
        self._make_synthetic()
        self._make_recorded()
        self.files = sorted(file for file in self.good.rglob("*") if file.is_file() and "prometheus" not in file.parts)
        texts = {str(file.relative_to(self.good)): file.read_text() for file in self.files if file.suffix == ".json"}
        self.corpus = Corpus.of(texts, {name: json.loads(text) for name, text in texts.items()}, [])

    def _make_synthetic(self) -> None:
        root = make_experiment(self.good, Scenario(name=SYNTHETIC, repetitions=1, flows=1, duration_s=3.0))
        (root / "profile.yaml").write_text(_PROFILE)
        for record in root.glob("*/run.json"):
            write_json(record, {**read_json(record), "analysis_sha256": analysis_sha256()})

    def _make_recorded(self) -> None:
        root = self.good / RECORDED
        run = make_recorded_run(root)
        plan = recorded_plan()
        write_json(run.provenance, provenance(plan, "finished", "2025-06-01T12:00:00+00:00"))
        cell = {"run": run.name, "axes": {}, "algorithm": "cubic", "repetition": 0}
        index = {"format": 1, "name": RECORDED, "profile": {"file": "", "sha256": ""}, "description": "", "created": ""}
        write_json(root / "experiment.json", {**index, "cells": [{**cell, "status": "finished", "verdict": "pass"}]})

    def make(self, number: int) -> Case:
        """A copy of the good experiments with one to three files wrong, and the command that will meet it."""
        chance = random.Random(f"records-{self.seed}-{number}")
        runs = self.directory / "runs"
        shutil.rmtree(runs, ignore_errors=True)
        shutil.copytree(self.good, runs, symlinks=True)
        command = chance.choice(list(_COMMANDS))
        name = RECORDED if command == "reanalyse" or (command != "rerun" and chance.random() < 0.2) else SYNTHETIC
        files = [file for file in self.files if file.relative_to(self.good).parts[0] == name]
        damaged = []
        for _ in range(chance.choice([1, 1, 1, 2, 3])):
            file = chance.choice([each for each in files if chance.random() < 0.5 or each.suffix == ".json"] or files)
            damaged.append(self._damage(file, runs / file.relative_to(self.good), chance))
        run = next(path.parent.name for path in sorted((self.good / name).glob("*/plan.json")))
        if command in ("publish", "verify"):
            request: dict[str, Any] = {"kind": command, "directory": str(runs / name)}
        else:
            places = {"name": runs / name, "run": runs / name / run, "pack": runs / "mutated.howdah"}
            words = [word.format_map(places) for word in _COMMANDS[command]]
            request = {"kind": "command", "arguments": [*words, "--runs", str(runs)]}
        return Case(number, command, "; ".join(damaged), request, b"")

    def _damage(self, good: Path, file: Path, chance: random.Random) -> str:
        """Make the file wrong; says how."""
        mutator = Mutator(self.corpus, chance)
        name = str(good.relative_to(self.good))
        if not file.is_file():
            return f"{name} again"
        draw = chance.random()
        if draw < 0.07:
            file.unlink()
            return f"{name} missing"
        if draw < 0.12:
            file.unlink()
            file.mkdir()
            return f"{name} a directory"
        if draw < 0.17:
            other = chance.choice(self.files)
            file.write_bytes(other.read_bytes())
            return f"{name} is {other.relative_to(self.good)}"
        if file.suffix == ".json" and draw < 0.8:
            tree = mutator.tree(self.corpus.trees[name])
            file.write_text(json.dumps(tree), encoding="utf-8", errors="replace")
            return f"{name} changed"
        file.write_bytes(mutator.damaged(good.read_bytes()))
        return f"{name} damaged"

    def warm_up(self) -> dict[str, Any]:
        return {"kind": "command", "arguments": ["list", "runs", "--runs", str(self.good)]}
