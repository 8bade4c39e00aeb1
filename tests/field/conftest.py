# SPDX-License-Identifier: Apache-2.0
"""Where the answers lie that tests of this folder share."""

from __future__ import annotations

import os

import pytest

from tests.field.answer import keep_answers_in
from tests.guest.guest_run import require_engine


@pytest.fixture(scope="session", autouse=True)
def _place_of_answers(tmp_path_factory: pytest.TempPathFactory) -> None:
    """One directory for all workers; skips where this machine cannot run a guest."""
    require_engine()
    own = tmp_path_factory.getbasetemp()
    keep_answers_in((own.parent if "PYTEST_XDIST_WORKER" in os.environ else own) / "answers")
