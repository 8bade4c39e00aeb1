# SPDX-License-Identifier: Apache-2.0
"""What a sampler asks for where scores say nothing, and that it learns from all of them."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

pytest.importorskip("optuna", reason="optuna is not installed")

from howdah.counterexample.sampler import BATCH, STARTING, Kind, Sampler
from howdah.counterexample.space import Candidate, read_space
from howdah.profile import load

PROFILE = """\
howdah: 1
name: sought
path: {rate: 10 Mbit/s, rtt: 40 ms, buffer: 1 bdp}
algorithm: cubic
duration: 5 s
search:
  space:
    path.rate: {from: 1 Mbit/s, to: 20 Mbit/s, scale: log}
    path.rtt: {from: 10 ms, to: 250 ms, step: 10 ms}
    path.buffer: [6 packets, 0.5 bdp, 1 bdp, 2 bdp, 4 bdp]
  minimise: {metric: link_utilisation}
"""


def _sampler(directory: Path, kind: Kind) -> Sampler:
    file = directory / "sought.yaml"
    file.write_text(PROFILE, encoding="utf-8")
    profile = load(file)
    assert profile.search is not None
    return Sampler(read_space(file, [], profile.search), 1, kind)


def _batches(sampler: Sampler, count: int, score: float) -> list[Candidate]:
    found: list[Candidate] = []
    for _ in range(count):
        asked = sampler.ask(BATCH)
        for each in asked:
            sampler.tell(each, score)
        found += asked
    return found


@pytest.mark.parametrize("kind", ["tpe", "genetic", "random"])
def test_equal_scores_lead_nowhere_so_candidates_are_spread(tmp_path: Path, kind: Kind) -> None:
    sampler = _sampler(tmp_path, kind)
    found = _batches(sampler, 8, -0.2)
    assert len({tuple(each.items()) for each in found}) == 64
    assert min(Counter(each["path.buffer"] for each in found[STARTING:]).values()) >= 4
    assert sum(int(each["path.rtt"].partition(" ")[0]) <= 50 for each in found[STARTING:]) >= 5
    assert _batches(_sampler(tmp_path, kind), 8, -0.2) == found


def test_the_sampler_learns_from_what_was_drawn(tmp_path: Path) -> None:
    sampler = _sampler(tmp_path, "tpe")
    found = _batches(sampler, 4, -0.2)
    told = [trial.params for trial in sampler.study.trials if trial.value == -0.2]
    assert len(told) == len(found) == 32
    values = sampler.space.variables["path.rtt"].values
    assert [values[params["path.rtt"]] for params in told] == [each["path.rtt"] for each in found]
    better = _batches(sampler, 1, 0.5)
    assert better != found[-BATCH:]
    assert sampler.importances() != {}
