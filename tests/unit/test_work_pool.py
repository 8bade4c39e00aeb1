# SPDX-License-Identifier: Apache-2.0
"""Processes that analyse side by side: one that is killed is an error in words, and the others end."""

from __future__ import annotations

import errno
import multiprocessing
import os
import signal
import sys
import threading
import time
from collections.abc import Iterator
from multiprocessing.context import ForkProcess
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

from howdah.errors import HowdahError
from howdah.work.pool import pool


def _kill_myself(others: Path | None = None) -> None:
    while others is not None and not others.exists():
        time.sleep(0.01)
    os.kill(os.getpid(), signal.SIGKILL)


def _stay(here: Path) -> None:
    here.touch()
    time.sleep(600)


def _kill_myself_with_the_lock(others: Path) -> None:
    """As when the kernel ends a process that is just taking its next task: nobody else can take one any more."""
    frame: Any = sys._getframe()
    while "call_queue" not in frame.f_locals:
        frame = frame.f_back
    frame.f_locals["call_queue"]._rlock.acquire()
    _kill_myself(others)


@pytest.fixture
def as_in_a_command() -> Iterator[None]:
    """SIGTERM raises, as ``howdah.command.main`` has it."""

    def raised(_signal: int, _frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, raised)
    yield
    signal.signal(signal.SIGTERM, before)


@pytest.mark.timeout(60)
@pytest.mark.usefixtures("as_in_a_command")
def test_the_others_of_a_killed_one_end_in_the_middle_of_their_work(tmp_path: Path) -> None:
    with pytest.raises(HowdahError, match="worker process of this command was killed"), pool(2) as processes:
        processes.submit(_stay, tmp_path / "here")
        processes.submit(_kill_myself, tmp_path / "here").result()


@pytest.mark.timeout(60)
@pytest.mark.usefixtures("as_in_a_command")
def test_the_others_end_where_the_killed_one_held_the_lock(tmp_path: Path) -> None:
    with pytest.raises(HowdahError, match="worker process of this command was killed"), pool(2) as processes:
        processes.submit(_stay, tmp_path / "here")
        processes.submit(_kill_myself_with_the_lock, tmp_path / "here").result()


@pytest.mark.timeout(60)
@pytest.mark.usefixtures("as_in_a_command")
def test_ctrl_c_ends_what_they_are_at(tmp_path: Path) -> None:
    def interrupted() -> None:
        while not (tmp_path / "here").exists():
            time.sleep(0.01)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt), pool(2) as processes:
        processes.submit(_stay, tmp_path / "here")
        interrupted()


def test_a_process_that_is_killed_is_told_in_words() -> None:
    with pytest.raises(HowdahError, match="worker process of this command was killed") as caught, pool(2) as processes:
        processes.submit(_kill_myself).result()
    assert caught.value.hint is not None


def test_what_they_answer_and_what_they_raise_comes_back() -> None:
    with pool(2) as processes:
        assert processes.submit(abs, -3).result() == 3
        with pytest.raises(ZeroDivisionError):
            processes.submit(divmod, 1, 0).result()


@pytest.mark.timeout(60)
@pytest.mark.parametrize("error", [OSError(errno.EMFILE, "Too many open files"), MemoryError()])
def test_the_first_ends_where_the_second_cannot_be_started(monkeypatch: pytest.MonkeyPatch, error: Exception) -> None:
    """Else this process waits for it at its exit, for ever."""
    start = ForkProcess.start
    started: list[ForkProcess] = []

    def start_one(process: ForkProcess) -> None:
        if started:
            raise error
        started.append(process)
        start(process)

    monkeypatch.setattr(ForkProcess, "start", start_one)
    with pytest.raises(type(error)), pool(2) as processes:
        processes.submit(abs, -3)
    assert len(started) == 1
    started[0].join(30)
    assert started[0].exitcode == -signal.SIGKILL
    assert not multiprocessing.active_children()


@pytest.mark.timeout(60)
def test_they_end_where_no_thread_can_be_started(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    with monkeypatch.context() as patched, pytest.raises(BlockingIOError) as caught, pool(2) as processes:
        patched.setattr(threading.Thread, "start", refuse)
        processes.submit(abs, -3)
    assert caught.value.errno == errno.EAGAIN
    for process in multiprocessing.active_children():
        process.join(30)
        assert process.exitcode == -signal.SIGKILL
