# SPDX-License-Identifier: Apache-2.0
"""What a cluster would do to the full atlas: a model, from what runs took and what a run costs on the way."""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from howdah.engine.engine_bundle import Portable
from howdah.engine.registry import engine
from howdah.errors import HowdahError
from howdah.plan.plan import Plan
from howdah.profile import load
from howdah.record.directory import read_json
from howdah.work.compiled import compile_plans
from howdah.work.cost import expected_core_s
from tests.bench.cluster_cost import Cost, cluster_cost
from tests.bench.figure import Figure
from tests.bench.scheduler_memory import scheduler_memory
from tests.bench.simulation import ROOT

CORES = (2, 16, 128, 1000, 4000)
LINK_BITS_PER_S = 1e9  # of the client, and of the scheduler
CORES_OF_A_MACHINE = 8
_WINDOW = 3  # runs that are given for each core (howdah/cluster/executor.py): one is made, two wait
_RESULTS = ROOT / "reports" / "atlas" / "results"
_PROFILES = ROOT / "profiles" / "atlas"


@dataclass(frozen=True)
class Atlas:
    """Seconds of a core of each run, in the order in which they are begun; ``staying_s`` of those that only the
    client's own machine makes."""

    travelling_s: list[float]
    staying_s: list[float]


def scale(place: Path) -> Iterator[Figure]:
    """The throughput of this machine's workers, and the atlas on more cores than it has."""
    costs, figures = cluster_cost(place)
    yield from figures
    yield from scheduler_memory(place / "memory")
    yield from modelled(costs[-1], atlas())


def modelled(cost: Cost, found: Atlas) -> Iterator[Figure]:
    """How long the travelling runs of the atlas take, by the number of cores, and what a run waits for then."""
    servers = {
        "the client": cost.client_s,
        "the scheduler": cost.scheduler_s,
        "a link of 1 Gbit/s": cost.scheduler_bytes / 2 * 8 / LINK_BITS_PER_S,  # in and out at once
    }
    slowest = max(servers, key=lambda name: servers[name])
    runs, total = found.travelling_s, sum(found.travelling_s)
    longest = max(runs)
    note = f"{len(runs)} runs of {total / 3600:.2f} h of a core; the longest {longest:.0f} s"
    for cores in CORES:
        took = makespan(runs, cores, servers[slowest])
        busy = total / cores / took
        name = f"full atlas, model, {cores} cores"
        yield Figure(name, took / 60, "min", "", f"{note}; cores busy {100 * busy:.0f} %")
    for name, seconds in servers.items():
        rate = 1 / seconds
        full = f"keeps {rate * total / len(runs):.0f} cores at work with runs of {total / len(runs):.1f} s"
        yield Figure(f"most runs that {name} takes", rate, "runs/s", "", full)
    name, note = "full atlas, what the client's machine alone makes", f"{len(found.staying_s)} runs, after the others"
    yield Figure(name, sum(found.staying_s) / 60, "min of a core", "", note)


def makespan(runs: Sequence[float], cores: int, serial_s: float) -> float:
    """Until the last run is in its place: each core makes one at a time, and ``serial_s`` of each run pass in a place
    that all go through one after the other."""
    free = [0.0] * cores
    ended: list[float] = []
    taken, through = 0, 0.0
    for number, seconds in enumerate(runs):
        given = 0.0
        while number - taken >= _WINDOW * cores:
            through = max(through, heapq.heappop(ended)) + serial_s
            taken, given = taken + 1, through
        end = max(heapq.heappop(free), given) + seconds
        heapq.heappush(free, end)
        heapq.heappush(ended, end)
    while ended:
        through = max(through, heapq.heappop(ended)) + serial_s
    return through


def atlas() -> Atlas:
    """Runs in the order of a batch: the cheapest experiment first, of each the longest run first.

    What an experiment's runs held a core for is published; among them it is divided by their expected cost.
    """
    experiments: list[tuple[float, list[tuple[float, bool]]]] = []
    for file in sorted(_RESULTS.glob("*.json")):
        published = read_json(file)
        plans = compile_plans(load(_PROFILES / f"{published['profile']}.yaml", ["repetitions=1"]))
        expected = [expected_core_s(plan) for plan in plans]
        number = sum(published["runs"].values())
        factor = published["core_s"] / number / (sum(expected) / len(expected))
        repetitions = round(number / len(plans))
        runs = [(seconds * factor, _travels(plan)) for plan, seconds in zip(plans, expected, strict=True)]
        experiments.append((sum(expected) * repetitions, sorted(runs * repetitions, reverse=True)))
    experiments.sort(key=lambda each: each[0])
    ordered = [run for _, runs in experiments for run in runs]
    return Atlas([s for s, travels in ordered if travels], [s for s, travels in ordered if not travels])


def _travels(plan: Plan) -> bool:
    found = engine(plan.engine)
    if isinstance(found, Portable):
        with suppress(HowdahError):
            found.check_portable(plan)
            return True
    return False
