# SPDX-License-Identifier: Apache-2.0
"""Wrong inputs end in words with a place, within 2 s of processor time and 1 GB. ``make faults`` tries many more."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from howdah.ingest.run import ingest
from tests.faults.inputs import Inputs
from tests.faults.limited import LIMIT_S, Answer, Limited
from tests.faults.records import Records
from tests.faults.trial import Case
from tests.unit.recorded_run import make_recorded_run

INPUTS, RECORDS = 2000, 150
SEED = 1


def _said(faults: list[Case]) -> str:
    return "\n\n".join(f"{case.number} {case.kind} {case.base} {case.request}: {case.fault}" for case in faults[:5])


def test_mutated_profiles_overrides_suites_and_machine_sets(tmp_path: Path) -> None:
    tally = Inputs(tmp_path, SEED).run(range(INPUTS))
    assert tally.count == INPUTS
    assert not tally.faults, _said(tally.faults)
    # Inputs that are all refused at their first line would test nothing behind it.
    accepted = sum(count for (_, outcome), count in tally.outcomes.items() if outcome == "accepted")
    assert accepted > INPUTS / 20


def test_mutated_run_directories(tmp_path: Path) -> None:
    tally = Records(tmp_path, SEED).run(range(RECORDS))
    assert not tally.faults, _said(tally.faults)


def test_an_input_is_made_again_from_its_number(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    first, second = Inputs(tmp_path / "a", SEED), Inputs(tmp_path / "b", SEED)
    for number in (3, 70, 41):
        assert first.make(number).content == second.make(number).content


HEAD = "howdah: 1\nname: x\npath: {{rate: 10 Mbit/s, rtt: 20 ms{path}}}\nduration: {duration}\n{rest}"


def _many(count: int, text: str) -> str:
    return ", ".join(text.format(number) for number in range(count))


# What was slow, large or a traceback once, or would be without a bound.
HOSTILE = {
    "many points of many flows": HEAD.format(
        path="", duration="1 s", rest=f"seed: [{_many(1000, '{}')}]\nflows: [{_many(1000, '{{}}')}]\n"
    ),
    "a sweep of almost as many values as a profile may have": HEAD.format(
        path="",
        duration="1 s",
        rest=f"seed: [{_many(19000, '{}')}]\ncontrols: {{a: {{what: longer, set: {{duration: 2 s}}}}}}\n",
    ),
    "thousands of unknown fields": HEAD.format(path="", duration="1 s", rest=_many(9000, "k{}: 1").replace(", ", "\n")),
    "delay that varies for a day": HEAD.format(
        path=", delay_variation: {distribution: uniform, amplitude: 5 ms, correlation_time: 1 s, interval: 1 ms, "
        "source: x}",
        duration="1440 min",
        rest="",
    ),
    "hand-overs for a day": HEAD.format(
        path=", handover: {every: 10 ms, delay: 5 ms, outage: 1 ms, source: x}", duration="1440 min", rest=""
    ),
    "jitter for a day": HEAD.format(
        path="", duration="1440 min", rest="repetitions: 1000\nperturbation: {jitter: 1 ms}\n"
    ),
    "a web without end": HEAD.format(
        path="",
        duration="1 s",
        rest="flows: [{}]\ngroups: [{name: w, role: background, web: {sessions: 1000, between_sessions: 1440 min, "
        "pages: 1000, objects: 1000}}]\n",
    ),
    "sources that switch for ever": HEAD.format(
        path="",
        duration="1440 min",
        rest="flows: [{}]\ngroups: [{name: w, role: background, connections: 5000, udp: {rate: 1 Mbit/s, on_off: "
        "{on: 1 us, off: 1 us}}}]\n",
    ),
    "a class that is no topology": HEAD.format(
        path="", duration="1 s", rest="topology: {file: corpus/own_topology.py, class: Other}\n"
    ),
    "a module that is a zero byte": HEAD.format(path="", duration="1 s", rest='modules: ["a\\0b.c"]\n'),
    "a home of nobody": HEAD.format(path=", like: ~no-such-user/x", duration="1 s", rest=""),
    "a name that is too long": HEAD.format(path=f", like: {'x' * 3000}", duration="1 s", rest=""),
    "links in a circle": HEAD.format(path="", duration="1 s", rest="modules: [loop.c]\n"),
    "a pipe for a trace": HEAD.format(path=", trace: {file: fifo.csv}", duration="1 s", rest=""),
    "a device for a trace": HEAD.format(path=", trace: {file: /dev/zero}", duration="1 s", rest=""),
    "a device for a topology": HEAD.format(
        path="", duration="1 s", rest="topology: {file: /dev/zero, class: Own}\n"
    ),
}  # fmt: skip


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Limited]:
    """A process for all: each request has limits of its own, and a process that one of them ends is replaced."""
    inputs = Inputs(tmp_path_factory.mktemp("hostile"), SEED)
    good = {"kind": "profile", "file": str(inputs.directory / "profiles" / "quick.yaml"), "overrides": []}
    with Limited(inputs.directory, {**good, "quick": False}) as worker:
        yield worker


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_profiles_are_refused_at_once(hostile: Limited, name: str) -> None:
    file = hostile.directory / "profiles" / "hostile.yaml"
    file.write_text(HOSTILE[name])
    answer = hostile.ask({"kind": "profile", "file": str(file), "overrides": [], "quick": False})
    assert answer.outcome == "refused", answer
    assert answer.where is not None
    assert answer.where.startswith(str(file))
    assert answer.processor_s < LIMIT_S


def test_a_large_profile_is_refused_at_once_with_an_override(hostile: Limited) -> None:
    """It is not written out again, with the override in it, before it is checked."""
    file = hostile.directory / "profiles" / "hostile.yaml"
    file.write_text(HEAD.format(path="", duration="1 s", rest=f"sources: [{_many(15000, '{}')}]\nclaims: [{{}}]\n"))
    answer = hostile.ask({"kind": "profile", "file": str(file), "overrides": ["repetitions=3"], "quick": False})
    assert answer.outcome == "refused", answer


def _ask(limited: Limited, code: str, limit_s: float) -> Answer:
    """A topology is the user's own code: with it the limits themselves are tried."""
    corpus = limited.directory / "profiles" / "corpus"
    topology = corpus / "own_topology.py"
    before = topology.read_text()
    topology.write_text(code)
    try:
        answer = limited.ask({**limited.warm_up, "file": str(corpus / "own-topology.yaml")}, limit_s)
    finally:
        topology.write_text(before)
    assert limited.ask(limited.warm_up).outcome == "accepted", "the next input has a process again"
    return answer


def test_the_limits_are_seen(hostile: Limited, tmp_path: Path) -> None:
    answer = _ask(hostile, "while True: pass\n", 0.5)
    assert answer.outcome == "slow"
    assert "own_topology.py" in answer.said
    assert Inputs(tmp_path, SEED).fault_of(answer) == f"slow: {answer.said}"


def test_a_process_that_ends_is_seen(hostile: Limited) -> None:
    assert _ask(hostile, "import os\nos._exit(3)\n", LIMIT_S).outcome == "died"


def test_a_traceback_is_seen(tmp_path: Path) -> None:
    inputs = Inputs(tmp_path, SEED)
    assert "without a place" in str(inputs.fault_of(Answer("refused", json.dumps("what"), None)))
    assert inputs.fault_of(Answer("traceback", "AttributeError")) is not None
    assert inputs.fault_of(Answer("refused", "what", "a.yaml:3")) is None


@pytest.mark.parametrize(
    ("change", "what"),
    [
        (lambda cpus: cpus * 1500, "names a file twice"),
        (lambda cpus: [{**cpus[0], "file": "../raw/tcp_probe.bin"}], "is not in raw/"),
    ],
)
def test_a_trace_that_names_other_files(tmp_path: Path, change: Callable[[Any], Any], what: str) -> None:
    run = make_recorded_run(tmp_path)
    account = run.raw / "trace.json"
    value = json.loads(account.read_text())
    account.write_text(json.dumps({**value, "cpus": change(value["cpus"])}))
    report = ingest(run)
    assert any(what in problem for problem in report.sources["tcp_probe"].problems), report
