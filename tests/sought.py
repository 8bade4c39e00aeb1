# SPDX-License-Identifier: Apache-2.0
"""A profile whose claim is searched for paths on which it fails; BOUND is what is claimed."""

from __future__ import annotations

import os
from pathlib import Path

from howdah.counterexample.goal import read_goal
from howdah.counterexample.space import read_space
from howdah.counterexample.trial import Trials
from howdah.profile import load

PROFILE = """\
howdah: 1
name: sought
path: {rate: 10 Mbit/s, rtt: 40 ms, buffer: 1 bdp}
algorithm: cubic
duration: 8 s
repetitions: 2
background: [{algorithm: reno}]
claims:
  - id: high
    says: start-up ends above half the BDP
    value: {metric: exit_cwnd_bdp, flow: 1}
    expect: {at_least: BOUND}
search:
  space:
    path.rate: {from: 1 Mbit/s, to: 20 Mbit/s, step: 500 kbit/s}
    path.rtt: {from: 10 ms, to: 300 ms, step: 1 ms}
    path.buffer: [1 bdp, 2 bdp, 4 bdp]
  falsify: high
  budget: {candidates: 16}
  seed: 3
"""


def trials_of(file: Path, overrides: list[str], directory: Path, jobs: int) -> Trials:
    """What searches the space of a profile and says nothing, in a directory of its own."""
    profile = load(file, overrides)
    assert profile.search is not None
    space, goal = read_space(file, overrides, profile.search), read_goal(profile.search, profile.claims)
    directory.mkdir(parents=True, exist_ok=True)

    def quiet(*_said: object) -> None: ...

    return Trials(space, goal, directory, jobs, quiet, quiet, quiet)


def core_s() -> float:
    """Processor time of this process and of the children it waited for."""
    return sum(os.times()[:4])
