# SPDX-License-Identifier: Apache-2.0
"""Reading a ring buffer in which records go on arriving: nothing is left behind, and there is an end of it."""

from __future__ import annotations

import io
import os
import struct
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from collectors import tracepoint
from collectors.tracepoint import TracepointCollector
from tests.unit.plan_factory import make_plan

_SUBBUFFER = 4096
_PIPE = 3


class Collector(TracepointCollector):
    name, event, account, record_bytes = "some", "some/event", "some.json", 100


@pytest.fixture
def collector() -> Collector:
    surroundings: Any = SimpleNamespace(planned=make_plan())
    made = Collector(surroundings, 1 << 20)
    made._pipes.append((_PIPE, io.BytesIO()))
    made._bytes.append(0)
    return made


def sub_buffers(monkeypatch: pytest.MonkeyPatch, committed: Iterator[int]) -> list[int]:
    """Make reads give sub-buffers of so many bytes; returns the list of what was read."""
    seen: list[int] = []

    def read(descriptor: int, parts: list[memoryview]) -> int:
        assert descriptor == _PIPE
        length = next(committed, None)
        if length is None:
            raise BlockingIOError
        seen.append(length)
        parts[0][:16] = struct.pack("@QQ", 0, length | 1 << 31)  # a flag of the kernel's beside it
        return _SUBBUFFER

    monkeypatch.setattr(tracepoint, "os", SimpleNamespace(**{**vars(os), "readv": read}))
    return seen


def test_records_that_arrive_while_others_are_read_wait_for_the_next_reading(
    collector: Collector, monkeypatch: pytest.MonkeyPatch
) -> None:
    def for_ever() -> Iterator[int]:
        while True:
            yield 80

    seen = sub_buffers(monkeypatch, for_ever())
    collector.sample(0)
    assert len(seen) == 2
    assert collector._bytes == [2 * _SUBBUFFER]


def test_the_rest_of_one_is_not_taken_for_the_last(collector: Collector, monkeypatch: pytest.MonkeyPatch) -> None:
    seen = sub_buffers(monkeypatch, iter([500, 4000, 4000, 4000, 900, 80]))
    collector.sample(0)
    assert seen == [500, 4000, 4000, 4000, 900]


def test_full_ones_are_read_beyond_the_copy_buffer(collector: Collector, monkeypatch: pytest.MonkeyPatch) -> None:
    many = tracepoint._READ_BYTES // _SUBBUFFER + 10
    seen = sub_buffers(monkeypatch, iter([4000] * many))
    collector.sample(0)
    assert len(seen) == many
    assert collector._bytes == [many * _SUBBUFFER]


def test_the_end_leaves_nothing(collector: Collector, monkeypatch: pytest.MonkeyPatch) -> None:
    seen = sub_buffers(monkeypatch, iter([80] * 9))
    collector._drain(most_partial=None)
    assert len(seen) == 9
