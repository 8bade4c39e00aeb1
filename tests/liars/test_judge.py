# SPDX-License-Identifier: Apache-2.0
"""Every liar about a run is caught by the check it names, the honest run is not, and every check has its liar."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from howdah.judge.accounting import FORBIDDEN_COUNTERS
from howdah.judge.run import judge
from howdah.plan.plan import Plan
from howdah.record.directory import RunDirectory
from howdah.record.verdict import Verdict
from tests.liars.bench import Bench
from tests.liars.liar import RunLiar
from tests.liars.registry import RUNS
from tests.liars.sites import Site, sites, watched

pytestmark = pytest.mark.guest

SITES = sites()


@dataclass(frozen=True)
class Lied:
    """A lie, what the judge says of it, and the place of the judge that caught it."""

    directory: RunDirectory
    plan: Plan
    verdict: Verdict
    site: Site | None


class Court:
    """Makes each lie once and judges it."""

    def __init__(self, bench: Bench) -> None:
        self.bench = bench
        self._heard: dict[str, Lied] = {}

    def hear(self, liar: RunLiar) -> Lied:
        if liar.name not in self._heard:
            directory, plan = liar.make(self.bench, self.bench.root / f"liar-{liar.name}")
            with watched() as watch:
                verdict = judge(directory, plan)
            if (liar.caught.stage, liar.caught.name) in messages(verdict):
                self.bench.keep(directory, plan)
            site = watch.site(liar.caught.stage, liar.caught.name, SITES)
            self._heard[liar.name] = Lied(directory, plan, verdict, site)
        return self._heard[liar.name]


def messages(verdict: Verdict, ok: bool | None = False) -> dict[tuple[str, str], str]:
    return {(item.stage, item.name): item.message for item in verdict.checks if item.ok is ok}


@pytest.fixture(scope="module")
def court(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Court]:
    yield Court(Bench(tmp_path_factory.mktemp("liars")))


@pytest.mark.parametrize("liar", RUNS, ids=lambda liar: liar.name)
def test_a_liar_is_caught_by_name(court: Court, liar: RunLiar) -> None:
    lied = court.hear(liar)
    caught = messages(lied.verdict)
    place = (liar.caught.stage, liar.caught.name)
    assert place in caught
    assert liar.caught.words in caught[place]
    assert lied.verdict.verdict == "invalid"


@pytest.mark.parametrize("liar", RUNS, ids=lambda liar: liar.name)
def test_the_honest_run_passes_the_same_check(court: Court, liar: RunLiar) -> None:
    """A check that always fails catches every liar."""
    checks = court.bench.honest(liar.honest).checks
    place = (liar.caught.stage, liar.caught.name)
    assert checks.get(place, "absent") is (True if liar.appears else "absent")


def test_every_place_of_the_judge_that_can_say_no_has_a_liar(court: Court) -> None:
    caught = {court.hear(liar).site for liar in RUNS}
    assert [str(site) for site in SITES if site not in caught] == []


def test_every_check_of_an_honest_run_has_a_liar(court: Court) -> None:
    """By name; the numbers of flows and the names of hosts and machines do not count."""
    lied = {_general(liar.caught.name) for liar in RUNS}
    made = {_general(name) for liar in RUNS for _, name in court.bench.honest(liar.honest).checks}
    assert made - lied - NEVER_FAIL == set()
    assert {name for name, _ in FORBIDDEN_COUNTERS.values()} <= lied


NEVER_FAIL = {"event names"}  # an event without a name is told, and makes no run invalid


def _general(name: str) -> str:
    """The name of a check without what it is about."""
    words = name.split()
    places = re.compile(r".*[-:].*|\d+|[sr]\d+|alpha|beta|short")
    return " ".join(word for word in words if not places.fullmatch(word))


@pytest.mark.parametrize("liar", RUNS, ids=lambda liar: liar.name)
def test_a_check_that_is_blind_catches_no_liar(court: Court, liar: RunLiar) -> None:
    """With the place that caught it made blind, nothing else fails under the same name: the liar tests that place."""
    lied = court.hear(liar)
    assert lied.site is not None
    with watched(blind=lied.site):
        verdict = judge(lied.directory, lied.plan)
    assert (liar.caught.stage, liar.caught.name) not in messages(verdict)


def test_honest_runs_leave_no_check_unmade(court: Court) -> None:
    for name in dict.fromkeys(liar.honest for liar in RUNS):
        honest = court.bench.honest(name)
        assert honest.verdict.verdict == "pass", name
        unmade = set(messages(honest.verdict, None))
        if honest.plan.calibration.buffer_unknown is not None:  # its queue drops before it is full
            unmade -= {("before", "buffer"), ("after", "buffer")}
        assert unmade == set(), name
