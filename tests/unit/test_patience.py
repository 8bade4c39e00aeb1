# SPDX-License-Identifier: Apache-2.0
"""A run whose simulated time stands still is ended; one that goes on, however slowly, is not."""

from __future__ import annotations

import pytest

from howdah.errors import RunFailedError
from howdah.work import worker
from howdah.work.worker import Patience


@pytest.fixture
def used_s(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """What the processor spent; the test sets it."""
    spent = [0.0]
    monkeypatch.setattr(worker, "processor_s", lambda _pid: spent[0])
    monkeypatch.setattr(worker, "LOOKS_AFTER_S", -1.0)
    return spent


def test_time_that_stands_still_ends_a_run(used_s: list[float]) -> None:
    told: list[tuple[str, int, int]] = []
    watched = Patience(lambda *said: told.append(said), 2.0, lambda: "; mine was in use")
    watched("boot", 0, 0)
    used_s[0] = 1.9
    watched("boot", 0, 0)
    used_s[0] = 3.0
    watched("flows", 1_000_000, 3_000_000)
    used_s[0] = 4.9
    watched("flows", 1_000_000, 3_000_000)
    used_s[0] = 5.1
    with pytest.raises(RunFailedError) as raised:
        watched("flows", 1_000_000, 3_000_000)
    assert raised.value.what == (
        "the run hangs, and was ended: 2.1 s of a processor passed without simulated time "
        "(phase flows, 1.0 of 3.0 simulated seconds); mine was in use"
    )
    assert len(told) == 5


def test_time_that_passes_slowly_does_not(used_s: list[float]) -> None:
    watched = Patience(lambda *_said: None, 2.0, str)
    for second in range(10):
        watched("flows", second * 1_000_000, 10_000_000)
        used_s[0] += 1.9
