# SPDX-License-Identifier: Apache-2.0
"""Remembered runs are what guests write now: each session makes some of them again, others each time."""

from __future__ import annotations

from itertools import islice
from pathlib import Path

import pytest

from howdah.record import table as store
from howdah.record.directory import RunDirectory
from tests.guest.guest_run import analysed, plan_of, require_engine, run
from tests.guest.remembered_run import key_of, recall, unchecked, was_equal
from tests.guest.shared_run import shared_run

pytestmark = pytest.mark.guest

RUNS = 3


def test_remembered_runs_are_made_again_and_equal(tmp_path: Path) -> None:
    engine = require_engine()
    shared_run(engine, plan_of("algorithm=cubic"))  # one at least is remembered
    current = ((key, plan) for key, plan in unchecked() if key_of(engine, plan) == key)
    compared = 0
    for key, plan in islice(current, RUNS):
        then = RunDirectory(tmp_path / key / "then")
        if not recall(key, then.path):  # another session has just forgotten it
            continue
        analysed(then, plan)
        now, _ = run(engine, plan, tmp_path / key / "now")
        assert store.equal(then, now) is None, f"{key}: {plan.run} of {plan.profile}"
        was_equal(key)
        compared += 1
    assert compared
