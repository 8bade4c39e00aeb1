# SPDX-License-Identifier: Apache-2.0
"""Every flow names its own algorithm: what is said names these, and not the one that no flow has."""

from __future__ import annotations

import pytest

from tests.field.answer import ask

pytestmark = pytest.mark.guest

PROFILE = """howdah: 1
name: own
path: {rate: 20 Mbit/s, rtt: 40 ms, buffer: 1 bdp}
flows: [{name: one, algorithm: htcp}, {name: two, algorithm: reno, start: 1 s}]
duration: 3 s
repetitions: 1
"""


def test_the_algorithm_of_the_flow_is_named() -> None:
    answer = ask(PROFILE)
    assert "htcp" in answer.sentence
    assert "cubic" not in answer.sentence
