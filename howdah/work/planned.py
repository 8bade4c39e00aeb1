# SPDX-License-Identifier: Apache-2.0
"""The runs of an experiment whose engine is ready, each with its plan, its key and its expected cost.

Runs whose plans are kept are kept as well; the others are made on each access. Any run also takes some 20 bytes, for
its place in the order and its cost.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from howdah.engine.engine import Identity
from howdah.errors import HowdahError
from howdah.place import recorded_name
from howdah.plan.plan import Plan
from howdah.profile import Profile
from howdah.profile.sweep import Computed
from howdah.record.closure import remembered_sha256
from howdah.record.digest import keeps_data
from howdah.record.model import Scalar
from howdah.record.provenance import agent_sha256, analysis_sha256, run_key, sha256_text
from howdah.work.compiled import Plans, Wanted
from howdah.work.cost import expected_core_s
from howdah.work.experiment import ExperimentDirectory, PlannedRun
from howdah.work.sweep_memory import SweepMemory

Costs = np.ndarray[tuple[int], np.dtype[np.float32]]
Places = np.ndarray[tuple[int], np.dtype[np.int32]]


def _needs(plan: Plan) -> set[tuple[str, ...]]:
    """Return what the engine must prepare for a plan."""
    modules = {("module", *plan.kernels, name) for name in (*plan.modules, *(plan.required_modules or ()))}
    modules |= {("module build", path, str(build)) for path, build in plan.module_builds.items()}
    return {("engine", plan.engine), *(("kernel", name) for name in plan.kernels), *modules} | (
        {("profiled",)} if plan.collect.cpu else set()
    )


class Runs(Computed[PlannedRun]):
    """The runs of these plans. ``identities`` has the identity of each prepared engine by its name."""

    def __init__(self, plans: Plans, identities: dict[str, Identity]) -> None:
        self.plans, self._identities = plans, identities
        self.chosen = {place: self._planned(place, plan) for place, plan in plans.chosen.items()}
        self._prepared = set().union(*(_needs(plan) for plan in plans.chosen.values()))

    def __len__(self) -> int:
        return len(self.plans)

    def at(self, index: int) -> PlannedRun:
        """Return a run. Raise HowdahError if it cannot be planned, or needs what was not prepared."""
        known = self.chosen.get(index)
        if known is not None:
            return known
        plan = self.plans[index]
        lacking = _needs(plan) - self._prepared
        if lacking:
            raise HowdahError(
                f"{plan.run} needs parts that no value of the sweep needs by itself: {sorted(lacking)}",
                hint="Split the profile: a sweep of at most 1000 runs is planned whole before it is made.",
            )
        return self._planned(index, plan)

    def _planned(self, place: int, plan: Plan) -> PlannedRun:
        key = run_key(plan.to_json(), self._identities[plan.engine])
        return PlannedRun(plan, key, keeps_data(self.plans.profile.keep, plan.repetition), number=place)

    @property
    def places(self) -> Places:
        return np.arange(len(self), dtype=np.int32)

    @property
    def whole(self) -> bool:
        """Whether all runs are kept."""
        return self.plans.whole

    def name(self, index: int) -> tuple[str, dict[str, Scalar]]:
        """Return the name of a run and its values on the axes, even if the run cannot be planned."""
        return self.plans.cells.name(self.plans.places[index])

    def unplanned(self, index: int) -> PlannedRun:
        """Return a placeholder for a run that cannot be planned: its own name, and the plan of another run."""
        run, axes = self.name(index)
        other = next(iter(self.chosen.values())).plan
        return PlannedRun(replace(other, run=run, axes=axes), "", number=index)

    def costs(self) -> Costs:
        """Return the expected core seconds of each run.

        The cost of a point is that of the first point of its part, times the factor of each of its values there. That
        is exact if the factors are independent, which they nearly are: bits are rate times duration.
        """
        if self.whole:
            return np.array([expected_core_s(run.plan) for run in self], np.float32)
        cells, found = self.plans.cells, []
        known = {place: expected_core_s(plan) for place, plan in self.plans.compiled.items()}
        for number, (part, (points, repetitions)) in enumerate(zip(cells.sweep.parts, cells.sizes, strict=True)):
            if not points:
                continue
            first = known[cells.first_of(number, 0)]
            costs = np.array([first], np.float32)
            for line in part.lines:
                factors = [known[cells.first_of(number, point)] / first for point in line]
                costs = np.multiply.outer(costs, np.array(factors, np.float32)).ravel()
            found.append(np.repeat(costs, repetitions))
        whole: Costs = np.concatenate(found)
        return whole[np.asarray(self.plans.places)] if len(self) < len(whole) else whole

    def recipe(self) -> str:
        """Return a digest of everything that the keys depend on. Other files that go into plans are covered by the
        chosen plans."""
        profile = self.plans.profile
        code = remembered_sha256(["howdah.plan.compile", "howdah.profile.load"])
        parts = [profile.text, str(profile.path.resolve()), str(len(self)), code, agent_sha256(), analysis_sha256()]
        keys = [run.key for run in self.chosen.values()]
        return sha256_text("\0".join([*parts, profile.keep, repr(sorted(self._identities.items())), *keys]))


@dataclass(frozen=True, eq=False)
class Prepared:
    """An experiment whose engine is ready. ``parallel``: whether several of its runs may be made at once. ``wanted``
    has the places of the runs to make."""

    experiment: ExperimentDirectory
    profile: Profile
    cells: Runs
    parallel: bool
    wanted: Places
    memory: SweepMemory

    @property
    def engines(self) -> list[str]:
        return list(dict.fromkeys(run.plan.engine for run in self.cells.chosen.values()))

    def only(self, wanted: Wanted) -> Prepared:
        """Return the same experiment with only some of its runs wanted."""
        return replace(
            self,
            wanted=np.array([place for place in self.wanted.tolist() if wanted(*self.cells.name(place))], np.int32),
        )

    def open(self) -> None:
        """Open the memory of a sweep that is not planned whole. Raise OSError if the cache cannot be written."""
        if not self.cells.whole:
            self.memory.open(self.cells.recipe())

    def write_index(self) -> None:
        """Write experiment.json. For a sweep that is not planned whole, it lists the ended runs that the memory has."""
        profile, whole = self.profile, self.cells.whole
        rows = self.experiment.indexed(self.cells) if whole else (run for _, run in self.memory.runs())
        self.experiment.write_index(
            profile.text,
            recorded_name(profile.path),
            profile.description,
            rows,
            quick=profile.is_quick,
            axes=profile.axes,
            total=None if whole else len(self.cells),
        )
