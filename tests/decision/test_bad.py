# SPDX-License-Identifier: Apache-2.0
"""Plug-ins with a planted bug each: the rules and the fuzzer must catch them, or they would catch nothing."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.decision.build import HERE, compiler_for_fuzzing, program
from tests.decision.fuzz import NO_CLANG, fuzz
from tests.decision.runner import Runner
from tests.decision.test_properties import LONGEST

BAD = {
    "beside": "memory beside icsk_ca_priv|stack-buffer-overflow|a field of the socket",
    "divide": "division by zero",
    "foreign": "a field of the socket that is TCP's was changed",
    "leak": "memory is left over",
    "overflow": "signed integer overflow",
    "shrink": "cwnd shrank without congestion or an event",
    "stopped": "a pacing rate of 0",
    "twice": "heap-use-after-free|double-free",
    "zero": "cwnd is not at least 1",
}


def _short_path(runner: Runner) -> None:
    runner.open().path(duration_us=2_000_000, buffer_packets=2_000)


def _long_path(runner: Runner) -> None:
    runner.open().path(**LONGEST, duration_us=9_000_000)


def _short_flows(runner: Runner) -> None:
    for _ in range(3):
        connection = runner.open()
        # Time stands still between the ACKs of a round: there is no queue.
        for _ in range(5):
            connection.round(rtt_us=50_000)
        connection.close()
    runner.unload()
    if runner.command("modules")["allocations"]:
        raise AssertionError("memory is left over")


def _source(name: str) -> Path:
    return HERE / "bad" / f"ss_{name}.c"


def _matches(pattern: str, text: str) -> bool:
    return any(part in text for part in pattern.split("|"))


def test_every_planted_bug_is_listed() -> None:
    assert {path.stem.removeprefix("ss_") for path in (HERE / "bad").glob("ss_*.c")} == set(BAD)


@pytest.mark.parametrize("name", BAD)
def test_a_life_on_a_path_shows_it(built: Callable[[Path], Path], name: str) -> None:
    reports = []
    for drive in (_short_flows, _short_path, _long_path):
        with pytest.raises(AssertionError) as caught, Runner(built(_source(name))) as runner:
            assert runner.load().error == 0
            drive(runner)
            raise AssertionError("nothing was noticed")
        reports.append(str(caught.value))
    assert any(_matches(BAD[name], report) for report in reports), reports


@pytest.mark.parametrize("name", BAD)
def test_the_fuzzer_finds_it(tmp_path: Path, name: str) -> None:
    clang = compiler_for_fuzzing()
    if clang is None:
        pytest.skip(NO_CLANG)
    outcome = fuzz(program(_source(name), tmp_path, fuzzer=clang), tmp_path / "found", "-runs=30000", "-seed=1")
    assert not outcome.ok, "the fuzzer noticed nothing"
    assert _matches(BAD[name], outcome.report), outcome.explain()


def test_what_the_fuzzer_tells_can_be_done_again(built: Callable[[Path], Path], tmp_path: Path) -> None:
    clang = compiler_for_fuzzing()
    if clang is None:
        pytest.skip(NO_CLANG)
    outcome = fuzz(program(_source("zero"), tmp_path, fuzzer=clang), tmp_path / "found", "-runs=30000", "-seed=1")
    with pytest.raises(AssertionError, match="cwnd is not at least 1"), Runner(built(_source("zero"))) as runner:
        runner.commands([line for line in outcome.story if line])
