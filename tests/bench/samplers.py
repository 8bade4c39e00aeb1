# SPDX-License-Identifier: Apache-2.0
"""``make samplers``: which sampler finds most within AdvNet's bounds for the same number of candidates.

Each control is searched over two steps, with each sampler and seed; candidates are screened alone. What two searches
have in common is run once. An interrupted command goes on. Prints the table for docs/search.md.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from statistics import mean
from typing import get_args

from howdah.command.common import cores
from howdah.counterexample.sampler import BATCH, Kind, Sampler
from howdah.unloaded import collect_rarely, leave_pandas_out
from tests.bench.advnet import LOGS, lost, screened, trials_of

STEPS = 2
WITHOUT = "-without-corners"


def main() -> int:
    names = [f"{kind}{corners}" for kind in get_args(Kind) for corners in ("", WITHOUT)]
    parser = argparse.ArgumentParser(prog="python -m tests.bench.samplers", description=__doc__)
    parser.add_argument("--controls", nargs="+", choices=LOGS, default=["bbr", "westwood", "cubic"])
    parser.add_argument("--samplers", nargs="+", choices=names, default=names)
    parser.add_argument("--candidates", type=int, default=120, help="how many each search tries (default: 120)")
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2, 3])
    parser.add_argument("--jobs", type=int, default=cores())
    parser.add_argument("--runs", type=Path, default=Path("var/samplers"))
    options = parser.parse_args()
    collect_rarely()
    leave_pandas_out()
    sys.stdout.write(f"| control | sampler | {' | '.join(f'seed {each}' for each in options.seeds)} | mean |\n")
    sys.stdout.write("|---|---|" + "---|" * (len(options.seeds) + 1) + "\n")
    for control in options.controls:
        trials = trials_of(control, STEPS, options.runs, options.jobs)
        for name in options.samplers:
            kind: Kind = name.removesuffix(WITHOUT)
            most = 0 if name.endswith(WITHOUT) else BATCH
            found = []
            for seed in options.seeds:
                sampler = Sampler(trials.space, seed, kind, most)
                found.append(lost(screened(trials, sampler, options.candidates)[0]))
            cells = " | ".join(f"{each:.3f}" for each in [*found, mean(found)])
            sys.stdout.write(f"| {control} | {name.replace('-', ' ')} | {cells} |\n")
            sys.stdout.flush()
    return 0


if __name__ == "__main__":
    sys.exit(main())
