# SPDX-License-Identifier: Apache-2.0
"""Mutated profiles, overrides, suites, machines files: each is accepted or refused with its place, soon, in words."""

from __future__ import annotations

import contextlib
import os
import random
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from howdah.profile.model import Scenario
from howdah.profile.source import parse_yaml
from howdah.profile.sweep import shape_of
from tests.faults.limited import Answer
from tests.faults.mutation import Corpus, Mutator
from tests.faults.trial import ROOT, Case, LimitedTrials

_SHARES = {"profile": 0.6, "override": 0.2, "suite": 0.1, "machines": 0.1}
_PLACED = re.compile(r".+:\d+($|: )|--set ", re.DOTALL)  # after the line perhaps the other file it is about
_ONLY_FILES = (  # what is wrong with these is not in a line
    *(f"the {what} is empty" for what in ("profile", "suite", "machines file")),
    *("larger than", "cannot be read", "there is no such", "not a regular file", "directory", "not UTF-8"),
)


def field_names(model: Any = Scenario, prefix: str = "", depth: int = 0) -> Iterator[str]:
    """Dotted names of every field a profile may have, with member 0 of lists."""
    for name, info in model.model_fields.items():
        dotted = f"{prefix}{info.alias or name}"
        yield dotted
        shape, inner = shape_of(info.annotation)
        if shape == "list":
            dotted, (shape, inner) = f"{dotted}.0", shape_of(inner)
        elif shape == "mapping":
            dotted, (shape, inner) = f"{dotted}.mine", shape_of(inner)
        if shape == "section" and depth < 4:
            yield from field_names(inner, f"{dotted}.", depth + 1)


class Inputs(LimitedTrials):
    """A copy of what howdah ships with, in which inputs are written and read. ``make(n)`` is the same for ever."""

    def __init__(self, directory: Path, seed: int) -> None:
        self.directory = directory
        self.seed = seed
        for name in ("profiles", "playbooks/machines", "docs/examples"):
            shutil.copytree(ROOT / name, directory / name)
        shutil.copytree(Path(__file__).parent / "corpus", directory / "profiles" / "corpus")
        for name in ("modules", "topologies"):
            (directory / name).symlink_to(ROOT / name)
        for place in ("profiles", "profiles/atlas", "profiles/corpus", "docs/examples"):
            os.mkfifo(directory / place / "fifo")
            os.mkfifo(directory / place / "fifo.c")
            os.mkfifo(directory / place / "fifo.csv")
            (directory / place / "loop").symlink_to("loop")
            (directory / place / "loop.c").symlink_to("loop.c")
        files = sorted(path for path in directory.rglob("*.yaml") if path.is_file() and "modules" not in path.parts)
        suites = [path for path in files if path.parent.name == "suites"]
        machine_sets = [path for path in files if path.parent.name == "machines"]
        profiles = [path for path in files if path not in (*suites, *machine_sets)]
        names = list(field_names())
        self._corpora = {
            "profile": self._corpus(profiles, names),
            "suite": self._corpus(suites, names),
            "machines": self._corpus(machine_sets, []),
        }

    def _corpus(self, files: list[Path], fields: list[str]) -> Corpus:
        texts = {str(file.relative_to(self.directory)): file.read_text(encoding="utf-8") for file in files}
        return Corpus.of(texts, {name: _plain(parse_yaml(text, name)[0]) for name, text in texts.items()}, fields)

    def make(self, number: int) -> Case:
        """Write input ``number`` to its file, and say how it is to be read."""
        chance = random.Random(f"{self.seed}-{number}")
        kind = chance.choices(list(_SHARES), list(_SHARES.values()))[0]
        read_as = "profile" if kind == "override" else kind
        mutator = Mutator(self._corpora[read_as], chance)
        overrides: list[str] = []
        if kind == "override":
            base = chance.choice(list(mutator.corpus.texts))
            content = mutator.corpus.texts[base].encode()
            overrides = [mutator.override(base) for _ in range(chance.choice([1, 1, 2, 3]))]
        else:
            base, content = mutator.document()
        file = self.directory / Path(base).with_name("mutated.yaml")
        file.write_bytes(content)
        request = {"kind": read_as, "file": str(file), "overrides": overrides, "quick": chance.random() < 0.1}
        return Case(number, kind, base, request, content)

    def warm_up(self) -> dict[str, Any]:
        file = str(self.directory / "profiles/quick.yaml")
        return {"kind": "profile", "file": file, "overrides": [], "quick": False}

    @contextlib.contextmanager
    def ready(self) -> Iterator[None]:
        with super().ready():
            self.worker.ask({"kind": "suite", "file": str(self.directory / "profiles/suites/nightly.yaml")}, 30)
            self.worker.ask({"kind": "machines", "file": str(self.directory / "playbooks/machines/virtual.yaml")}, 30)
            yield

    def meet(self, case: Case) -> None:
        super().meet(case)
        Path(case.request["file"]).unlink()

    def wrongly_refused(self, answer: Answer) -> str | None:
        return None if _placed(answer) else f"refused without a place: {answer.where}: {answer.said}"


def _placed(answer: Answer) -> bool:
    if answer.where is None:
        return False
    return bool(_PLACED.match(answer.where)) or any(words in answer.said for words in _ONLY_FILES)


def _plain(tree: Any) -> Any:
    """Without the floats that remember how they were written."""
    if isinstance(tree, dict):
        return {key: _plain(value) for key, value in tree.items()}
    if isinstance(tree, list):
        return [_plain(value) for value in tree]
    return float(tree) if isinstance(tree, float) else tree
