# SPDX-License-Identifier: Apache-2.0
"""Guests get processors of their own, and which program of a guest uses one."""

from __future__ import annotations

import os
from contextlib import ExitStack
from pathlib import Path

import pytest

from howdah.engine import life
from howdah.engine.life import Life
from howdah.engine.processor import busiest, own_processor, parse_stack


def test_no_two_guests_have_one_processor(tmp_path: Path) -> None:
    there = sorted(os.sched_getaffinity(0))
    with ExitStack() as guests:
        given = [guests.enter_context(own_processor(tmp_path)) for _ in there]
        assert given == there
        with own_processor(tmp_path) as one_too_many:
            assert one_too_many is None
    with own_processor(tmp_path) as again:
        assert again == there[0]


def test_a_file_that_cannot_be_opened_is_left_alone(tmp_path: Path) -> None:
    for processor in os.sched_getaffinity(0):
        (tmp_path / f"howdah-processor-{os.geteuid()}-{processor}.lock").symlink_to("/nowhere")
    with own_processor(tmp_path) as given:
        assert given is None


# As fs/exec.c and fs/binfmt_elf.c lay it out.
STACK = b"\x13\x37random bytes" + b"x86_64\0"
ENVIRONMENT = b"PATH=/usr/bin\0HOME=/tmp\0/usr/bin/iperf3\0" + bytes(8)


def page_of(tail: bytes) -> bytes:
    return tail.rjust(4096, b"\xff")


def test_a_command_is_read_from_the_end_of_a_stack() -> None:
    page = page_of(STACK + b"iperf3\0--client\x0010.2.1.1\0" + ENVIRONMENT)
    assert parse_stack(page) == "iperf3 --client 10.2.1.1"


def test_a_program_without_an_environment_is_read_too() -> None:
    assert parse_stack(page_of(STACK + b"./busy\0/tmp/busy\0" + bytes(8))) == "./busy"


@pytest.mark.parametrize("page", [bytes(4096), b"x" * 4096, page_of(b"/usr/bin/iperf3\0" + bytes(8))])
def test_any_other_page_is_none(page: bytes) -> None:
    assert parse_stack(page) is None


def test_the_busiest_is_the_one_that_used_most_since() -> None:
    assert busiest({1: 50.0, 2: 1.0}, {1: 51.0, 2: 9.0, 3: 3.0}) == (2, 8.0)
    assert busiest({}, {}) is None


def test_a_program_that_polls_is_named_without_being_suspected(
    tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(life, "descendants", lambda _pid: [7])
    monkeypatch.setattr(life, "_statistics", lambda _pid: ("R", 11.0))
    monkeypatch.setattr(life, "_EXAMINE_EVERY_S", 0)
    monkeypatch.setattr(life, "command_of", lambda pid: "iperf3 --client 10.2.1.1" if pid == 7 else None)
    trouble = Life(1, tmp_path_factory.mktemp("raw") / "progress.json", 1000, 1000, busy_limit_s=10).trouble()
    assert trouble is not None
    assert "'iperf3 --client 10.2.1.1'" in trouble
    monkeypatch.setattr(life, "command_of", lambda _pid: None)  # the kernel itself, which may be slow
    assert Life(1, tmp_path_factory.mktemp("raw") / "progress.json", 1000, 1000, busy_limit_s=10).trouble() is None
