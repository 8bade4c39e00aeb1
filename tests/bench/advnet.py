# SPDX-License-Identifier: Apache-2.0
"""``make advnet``: what a search finds within AdvNet's bounds, beside what AdvNet's own search found in an hour.

The peer is AdvNet (PACMNET 4, CoNEXT2, 2026, doi 10.1145/3808660). Its score is the share of a trace's capacity that
did not arrive: of payload that iperf received within the trace. Here that is 1 − ``utilisation`` · MSS / frame. The
best eight candidates of each search are run once more with all checks, and the best of these counts. An interrupted
command goes on. Prints the table for docs/search.md.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

from howdah.command.common import cores
from howdah.counterexample.sampler import BATCH, Sampler
from howdah.counterexample.trial import Trials, Tried
from howdah.place import PROFILES
from howdah.unloaded import collect_rarely, leave_pandas_out
from tests import sought
from tests.sought import core_s

PROFILE = PROFILES / "search-two-steps.yaml"
PAYLOAD = 1448 / 1514
# The best of three seeds in its logs, for 2 to 5 steps; of two steps also the best pattern that it publishes.
LOGS = {
    "bbr": (0.358, 0.404, 0.348, 0.246),
    "cubic": (0.194, 0.116, 0.100, 0.051),
    "reno": (0.275, 0.139, 0.097, 0.091),
    "vegas": (0.619, 0.607, 0.601, 0.542),
    "westwood": (0.385, 0.214, 0.143, 0.134),
}
PUBLISHED = {("bbr", 2): 0.818, ("vegas", 2): 0.884}


def lost(tried: Tried) -> float:
    """AdvNet's score of a candidate; the search's is −utilisation."""
    assert tried.score.value is not None
    return 1 + tried.score.value * PAYLOAD


def trials_of(control: str, steps: int, place: Path, jobs: int) -> Trials:
    """One repetition of each candidate, in a directory of its own."""
    overrides = [f"algorithm={control}", f"search.steps.count={steps}", "repetitions=1"]
    return sought.trials_of(PROFILE, overrides, place / f"{control}-{steps}", jobs)


def screened(trials: Trials, sampler: Sampler, candidates: int) -> list[Tried]:
    """So many candidates, the best first, without those that have no score."""
    found: list[Tried] = []
    while len(found) < candidates:
        for each in trials.screen(sampler.ask(min(BATCH, candidates - len(found)))):
            sampler.tell(each.candidate, each.score.value)
            found.append(each)
    return sorted((each for each in found if each.score.value is not None), key=lost, reverse=True)


def search(trials: Trials, candidates: int, seed: int) -> tuple[Tried, Tried] | None:
    """The best candidate with all checks, as it was screened and so; None where no run said anything."""
    best = screened(trials, Sampler(trials.space, seed), candidates)[:BATCH]
    proven = trials.confirm([each.candidate for each in best]) if best else []
    both = [pair for pair in zip(best, proven, strict=True) if pair[1].score.value is not None]
    return max(both, key=lambda pair: lost(pair[1]), default=None)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.bench.advnet", description=__doc__)
    parser.add_argument("--controls", nargs="+", choices=LOGS, default=list(LOGS))
    parser.add_argument("--steps", type=int, nargs="+", default=[2, 3, 4, 5])
    parser.add_argument("--candidates", type=int, default=400, help="how many each search tries (default: 400)")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=cores())
    parser.add_argument("--runs", type=Path, default=Path("var/advnet"))
    options = parser.parse_args()
    collect_rarely()
    leave_pandas_out()
    sys.stdout.write("| control, steps | here | with all checks | AdvNet's logs | published | wall; processor |\n")
    sys.stdout.write("|---|---|---|---|---|---|\n")
    behind = 0
    for control in options.controls:
        for steps in options.steps:
            begun, used = time.monotonic(), core_s()
            trials = trials_of(control, steps, options.runs, options.jobs)
            best = search(trials, options.candidates, options.seed)
            logs, published = LOGS[control][steps - 2], PUBLISHED.get((control, steps))
            behind += best is None or lost(best[1]) <= logs
            here = "– | –" if best is None else f"{lost(best[0]):.3f} | {lost(best[1]):.3f}"
            times = f"{time.monotonic() - begun:.0f}; {core_s() - used:.0f} s"
            row = f"| {control}, {steps} | {here} | {logs:.3f} | {published or '–'} | {times} |\n"
            sys.stdout.write(row)
            sys.stdout.flush()
    return 1 if behind else 0


if __name__ == "__main__":
    sys.exit(main())
