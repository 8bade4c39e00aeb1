# SPDX-License-Identifier: Apache-2.0
"""The engine of tests in guests, and where they keep the runs that they share."""

from __future__ import annotations

import os

import pytest

from howdah.engine.uml.engine import UmlEngine
from tests.guest.guest_run import require_engine
from tests.guest.shared_run import share_runs_in


@pytest.fixture(scope="module")
def engine() -> UmlEngine:
    return require_engine()


@pytest.fixture(scope="session", autouse=True)
def _place_of_shared_runs(tmp_path_factory: pytest.TempPathFactory) -> None:
    """One directory for all workers: each has a temporary directory of its own in that of the session."""
    own = tmp_path_factory.getbasetemp()
    share_runs_in((own.parent if "PYTEST_XDIST_WORKER" in os.environ else own) / "shared-runs")
