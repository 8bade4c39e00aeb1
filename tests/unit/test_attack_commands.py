# SPDX-License-Identifier: Apache-2.0
"""A small seeded part of those classes of ``make attack`` in which whole commands meet what a stranger sent or did."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator

import pytest

from howdah.publish.prometheus import find as find_prometheus
from tests.faults.blocks import Blocks
from tests.faults.bounded import run_bounded
from tests.faults.directories import NO_FILES, Directories
from tests.faults.operations import Operations
from tests.faults.packs import Packs
from tests.faults.pairs import Pairs
from tests.faults.processes import state_of
from tests.faults.sandbox import NAME, Sandbox, sandbox
from tests.faults.starter import Started
from tests.faults.surroundings import Surroundings
from tests.faults.trial import Trials

SEED = 1
CLASSES: dict[str, tuple[Callable[[Sandbox, int], Trials], range]] = {
    "directories": (Directories, range(len(NO_FILES))),
    "packs": (Packs, range(1, 14, 4)),
    "pairs": (Pairs, range(5)),
    "blocks": (Blocks, range(0, 18, 3)),
    "surroundings": (
        Surroundings,
        range(8),
    ),  # the last: files belong to another user afterwards
}


@pytest.fixture(scope="module")
def place() -> Iterator[Sandbox]:
    with sandbox(recorded=True, forks=True) as made:
        yield made


@pytest.mark.parametrize("name", CLASSES)
def test_what_a_stranger_sends_or_does(name: str, place: Sandbox) -> None:
    if name == "blocks" and find_prometheus() is None:
        pytest.skip("Prometheus is not in the cache: 'howdah report' has not fetched it yet")
    trials, numbers = CLASSES[name]
    tally = trials(place, SEED).run(numbers)
    assert tally.count == len(numbers)
    assert not tally.faults, [(case.number, case.kind, case.base, case.fault) for case in tally.faults]
    # No hostile pack is accepted; the class itself makes sure of a good one.
    assert name == "packs" or any(outcome == "accepted" for _, outcome in tally.outcomes)


def test_a_fork_is_a_command_of_its_own(place: Sandbox) -> None:
    """The second one finds loaded what the first has loaded, and nothing else of it."""
    place.copy_reference()
    for _ in range(2):
        status, faults = run_bounded(place, ["list", "runs", "--runs", str(place.runs)])
        assert (status, faults) == (0, [])
        assert NAME in place.said()
    status, faults = run_bounded(place, ["list", "runs", "--runs", str(place.root / "none")])
    assert faults == []
    assert NAME not in place.said()
    status, faults = run_bounded(place, ["list", "runs"], space_bytes=1 << 20)
    assert (status, faults) == (1, [])
    assert "memory" in place.said()


def test_a_command_stops_before_an_operation_on_a_file(place: Sandbox) -> None:
    place.copy_reference()
    pack = place.root / "whole.howdah.tar.zst"
    words = ["pack", NAME, "--output", str(pack), "--runs", str(place.runs)]
    operations = Operations(place.root / "operations")
    operations.begin()
    assert place.fork(words, operations=operations.file, recorded=True).wait(120) == 0, place.said()
    whole = operations.done
    assert whole > 3
    for number in (1, whole // 2):
        pack.unlink(missing_ok=True)
        operations.begin(number)
        started = place.fork(words, operations=operations.file, recorded=True)

        def ended(process: Started = started) -> bool:
            return process.poll() is not None

        stopped = operations.stopped(120.0, ended)
        assert stopped == started.pid, place.said()
        assert state_of(stopped) == "T"
        assert not pack.exists()
        started.kill()
        assert started.wait(60) == -signal.SIGKILL
        assert not pack.exists()
