# SPDX-License-Identifier: Apache-2.0
"""``make gaps``: by how much each of the kernel's 17 controls can do worse than each other one on the same path.

Each path of two steps within AdvNet's bounds (profiles/search-two-steps.yaml) is run with all 17, so one path is a try
for all 272 pairs. The first eight paths are corners of the space, and then half of all is drawn at random. Each further
one is the best path so far of one pair after another, with one or two values changed. The same seed and number of paths
give the same table. An interrupted command goes on. Prints the table for docs/search.md.
"""

from __future__ import annotations

import argparse
import itertools
import json
import random
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from howdah.algorithm import ALGORITHMS
from howdah.command.common import cores
from howdah.counterexample.sampler import BATCH, corners
from howdah.counterexample.space import Candidate, Space, slug, words
from howdah.counterexample.trial import Trials
from howdah.place import PROFILES
from howdah.record.directory import read_json
from howdah.unloaded import collect_rarely, leave_pandas_out
from tests.sought import core_s, trials_of

PROFILE = PROFILES / "search-two-steps.yaml"
METRIC = "link_utilisation"
CONTROLS = tuple(sorted(each.name for each in ALGORITHMS.values() if each.builtin and each.name == each.kernel))
# The space is the profile's; its goal is one number, and here is one for each pair.
OVERRIDES = [
    f"algorithm=[{', '.join(CONTROLS)}]",
    f"search.minimise={{metric: {METRIC}, at: {{algorithm: {CONTROLS[0]}}}}}",
]
Pair = tuple[str, str]  # the one that does worse, the one that does better


@dataclass
class Gaps:
    """The largest gap of each pair so far, and the path on which it was."""

    best: dict[Pair, tuple[float, Candidate]] = field(default_factory=dict)

    def add(self, candidate: Candidate, used: Mapping[str, float]) -> None:
        """``used`` is which share of the path each control used."""
        for worse, better in itertools.permutations(used, 2):
            gap = used[better] - used[worse]
            if gap > self.best.get((worse, better), (-1.0, {}))[0]:
                self.best[worse, better] = gap, candidate

    def rows(self) -> Iterator[str]:
        """The table in Markdown, in hundredths."""
        yield f"| worse \\ better | {' | '.join(CONTROLS)} |"
        yield "|" + "---|" * (len(CONTROLS) + 1)
        for worse in CONTROLS:
            cells = ["–" if worse == better else self._cell((worse, better)) for better in CONTROLS]
            yield f"| {worse} | {' | '.join(cells)} |"

    def _cell(self, pair: Pair) -> str:
        return f"{100 * self.best[pair][0]:.0f}".replace("-", "−") if pair in self.best else ""


def changed(space: Space, candidate: Candidate, chance: random.Random) -> dict[str, Any]:
    """The candidate with one or two of its values replaced: by a near one, or by any."""
    found = dict(candidate)
    for name in chance.sample(sorted(found), chance.randint(1, 2)):
        values = space.variables[name].values
        near = max(1, len(values) // 10)
        at = values.index(found[name]) + chance.randint(-near, near)
        found[name] = values[min(max(at, 0), len(values) - 1)] if chance.random() < 0.7 else chance.choice(values)
    return found


def shares(experiment: Path) -> dict[str, float]:
    """By control; without those whose run says nothing."""
    found = {}
    for file in experiment.glob("*/metrics.json"):
        rows = read_json(file)["rows"]
        value = next((row["value"] for row in rows if row["metric"] == METRIC), None)
        if value is not None and read_json(file.with_name("verdict.json"))["verdict"] == "pass":
            found[file.parent.name.rpartition("-r0-")[0]] = float(value)
    return found


def search(trials: Trials, paths: int, seed: int) -> Gaps:
    """Try so many paths, in batches of the same size whatever the number of workers."""
    space, chance, found = trials.space, random.Random(seed), Gaps()
    known: set[str] = set()
    first = [each for each in corners(space, random.Random(seed), BATCH) if space.allows(each)]
    pairs = list(itertools.permutations(CONTROLS, 2))
    chance.shuffle(pairs)
    turn = itertools.cycle(pairs)
    while len(known) < paths:
        batch: list[Candidate] = []
        while len(batch) < min(BATCH, paths - len(known)):
            if first:
                candidate = first.pop()
            else:
                best = found.best.get(next(turn)) if len(known) + len(batch) >= paths // 2 else None
                candidate = space.draw(chance) if best is None else changed(space, best[1], chance)
            if slug(candidate) not in known and candidate not in batch:
                batch.append(candidate)
        for each in trials.screen(batch):
            known.add(slug(each.candidate))
            if each.directory:
                found.add(each.candidate, shares(trials.directory / each.directory))
        sys.stderr.write(f"{len(known)} of {paths} paths\n")
    return found


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.bench.gaps", description=__doc__)
    parser.add_argument("--paths", type=int, default=600, help="how many are tried, each with 17 runs (default: 600)")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=cores())
    parser.add_argument("--runs", type=Path, default=Path("var/gaps"))
    options = parser.parse_args()
    collect_rarely()
    leave_pandas_out()
    trials = trials_of(PROFILE, [*OVERRIDES, "repetitions=1"], options.runs, options.jobs)
    found = search(trials, options.paths, options.seed)
    where = {" ".join(pair): {"gap": gap, "path": dict(at)} for pair, (gap, at) in sorted(found.best.items())}
    (options.runs / "gaps.json").write_text(json.dumps(where, indent=1) + "\n", encoding="utf-8")
    sys.stdout.write("\n".join(found.rows()) + "\n")
    (worse, better), (gap, at) = max(found.best.items(), key=lambda each: each[1][0])
    sys.stdout.write(f"largest: {worse} against {better}, {gap:.3f} at {words(at)}; {core_s():.0f} s of a processor\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
