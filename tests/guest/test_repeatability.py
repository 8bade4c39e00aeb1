# SPDX-License-Identifier: Apache-2.0
"""The same plan and seed twice gives equal tables, every row and column; another seed or path does not.

Nor does a run that an earlier session remembered differ from one that is made now.
"""

from __future__ import annotations

import dataclasses
from itertools import islice
from pathlib import Path

import pytest

from howdah.engine.uml.engine import UmlEngine
from howdah.record import table as store
from howdah.record.directory import RunDirectory
from howdah.record.schema import MACHINE_TABLES, TABLES
from tests.guest import guest_run
from tests.guest.remembered_run import key_of, recall, unchecked, was_equal
from tests.guest.shared_run import shared_run

pytestmark = pytest.mark.guest

RUNS = 3  # that are made again


@pytest.mark.parametrize(
    "overrides",
    [
        ("algorithm=cubic",),
        ("algorithm=bbr",),
        ("algorithm=hystart-plus-plus",),
        ("algorithm=cubic", "path.loss=0.1 %", "perturbation.jitter=1 ms", "repetitions=2"),
        ("algorithm=reno", "traffic.source=python", "traffic.sink=python", "duration=1 s"),
    ],
)
def test_the_same_plan_twice_gives_equal_tables(engine: UmlEngine, overrides: tuple[str, ...], tmp_path: Path) -> None:
    plan = guest_run.plan_of(*overrides)
    first, _verdict = guest_run.run(engine, plan, tmp_path / "first")
    second, _verdict = guest_run.run(engine, plan, tmp_path / "second")
    told = "ss_hystartpp" in (plan.required_modules or [])
    absent = {"processor", "opportunities", "two_queues", "segment", "sack_block"}  # nothing of the plan has these
    for name in TABLES.keys() - MACHINE_TABLES - absent:
        assert (store.read(first, name).num_rows > 0) == (told or name != "slow_start"), name
    assert store.equal(first, second) is None


@pytest.mark.parametrize("stack", ["ngtcp2", "aioquic"])
def test_the_same_plan_over_quic_twice_gives_equal_tables(engine: UmlEngine, stack: str, tmp_path: Path) -> None:
    """Their handshakes draw keys, connection IDs and packet numbers."""
    plan = guest_run.plan_of(
        "algorithm=cubic",
        f"traffic={{quic: {stack}}}",
        "path.rate=10 Mbit/s",
        "path.rtt=60 ms",
        "duration=2 s",
        "collect.tcp_info=100 ms",
    )
    engine.prepare([plan], guest_run.ignore)
    first, verdict = guest_run.run(engine, plan, tmp_path / "first")
    second, _verdict = guest_run.run(engine, plan, tmp_path / "second")
    assert verdict.verdict != "invalid", guest_run.failures(verdict)
    assert store.read(first, "tcp_probe").num_rows > 100
    assert store.equal(first, second) is None


def test_another_path_gives_other_tables(engine: UmlEngine, tmp_path: Path) -> None:
    plan = guest_run.plan_of("algorithm=cubic", "duration=1 s")
    first, _verdict = guest_run.run(engine, plan, tmp_path / "first")
    flow = dataclasses.replace(plan.flows[0], source_port=plan.flows[0].source_port + 1)
    other: RunDirectory = guest_run.run(engine, dataclasses.replace(plan, flows=[flow]), tmp_path / "same")[0]
    # Ports and initial sequence numbers are not in the tables.
    assert store.read(first, "tcp_probe").equals(store.read(other, "tcp_probe"))
    faster = guest_run.plan_of("algorithm=cubic", "duration=1 s", "path.rate=21 Mbit/s")
    changed, _verdict = guest_run.run(engine, faster, tmp_path / "faster")
    difference = store.equal(first, changed)
    assert difference is not None
    assert difference.table == "tcp_probe"


def test_remembered_runs_are_made_again_and_equal(engine: UmlEngine, tmp_path: Path) -> None:
    """Each session makes some of them again, others each time."""
    shared_run(engine, guest_run.plan_of("algorithm=cubic"))  # one at least is remembered
    current = ((key, plan) for key, plan in unchecked() if key_of(engine, plan) == key)
    compared = 0
    for key, plan in islice(current, RUNS):
        then = RunDirectory(tmp_path / key / "then")
        if not recall(key, then.path):  # another session has just forgotten it
            continue
        guest_run.analysed(then, plan)
        now, _ = guest_run.run(engine, plan, tmp_path / key / "now")
        assert store.equal(then, now) is None, f"{key}: {plan.run} of {plan.profile}"
        was_equal(key)
        compared += 1
    assert compared
