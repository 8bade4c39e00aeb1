# SPDX-License-Identifier: Apache-2.0
"""A forked process goes on with nothing that its parent was at, and ends as another one would."""

from __future__ import annotations

import fcntl
import io
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

import pytest
from rich.console import Console
from rich.progress import Progress

from howdah.work.forked import Forked, can_fork

pytestmark = pytest.mark.timeout(60)


def _say(*words: object) -> None:
    sys.stdout.write(f"{' '.join(map(str, words))}\n")
    sys.stdout.flush()


@contextmanager
def _forked(main: Callable[[], object], errors: Path) -> Iterator[Forked]:
    with errors.open("w") as file:
        process = Forked(main, file.fileno())
    try:
        yield process
    finally:
        process.stdin.close()
        process.wait()
        process.stdout.close()


@pytest.fixture
def errors(tmp_path: Path) -> Path:
    return tmp_path / "errors"


def test_it_hears_answers_and_ends(errors: Path) -> None:
    def answer() -> None:
        for line in iter(sys.stdin.readline, ""):
            _say(line.strip().upper())

    with _forked(answer, errors) as process:
        process.stdin.write(b"one\n")
        assert process.stdout.read(100) == b"ONE\n"
        assert process.poll() is None
        process.stdin.close()
        assert process.stdout.read(100) == b""
        assert (process.wait(), process.poll()) == (0, 0)
    assert errors.read_text() == ""


def test_what_it_raises_is_where_it_complains(errors: Path) -> None:
    def wrong() -> None:
        raise ValueError("out of range")

    with _forked(wrong, errors) as process:
        assert process.wait() == 1
    assert "ValueError: out of range" in errors.read_text()


def test_it_is_the_head_of_a_session(errors: Path) -> None:
    with _forked(lambda: _say(os.getpid(), os.getsid(0), os.getpgid(0)), errors) as process:
        assert process.stdout.read(100).split() == 3 * [str(process.pid).encode()]


def test_it_has_no_descriptor_and_no_lock_of_its_parents(errors: Path, tmp_path: Path) -> None:
    def wait() -> None:
        _say(*sorted(os.listdir("/proc/self/fd"))[:-1])  # noqa: PTH208 - the last one is that of the list
        sys.stdin.read()

    with (tmp_path / "lock").open("w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        with _forked(lambda: None, errors) as first, _forked(wait, errors) as second:
            assert second.stdout.read(100) == b"0 1 2\n"
            first.stdin.close()
            assert first.wait() == 0, "the second one has not kept its input open"
            held.close()
            with (tmp_path / "lock").open("w") as free:
                fcntl.flock(free, fcntl.LOCK_EX | fcntl.LOCK_NB)


def test_what_its_parent_has_not_yet_written_is_written_once(
    errors: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with (tmp_path / "said").open("w") as said:
        monkeypatch.setattr(sys, "stdout", said)
        said.write("once")
        with _forked(lambda: _say("hello"), errors) as process:
            assert process.stdout.read(100) == b"hello\n"
            process.wait()
    assert (tmp_path / "said").read_text() == "once"


def test_a_standard_stream_that_is_closed_is_there_again(errors: Path) -> None:
    """``howdah run … <&-``: the pipes get the lowest numbers that are free."""
    kept = os.dup(0)
    os.close(0)
    try:
        with _forked(lambda: _say(sys.stdin.readline().strip()), errors) as process:
            process.stdin.write(b"heard\n")
            assert process.stdout.read(100) == b"heard\n"
            assert process.wait() == 0
    finally:
        os.dup2(kept, 0)
        os.close(kept)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGALRM])
def test_a_signal_ends_it_that_its_parent_would_clean_up_after(errors: Path, number: signal.Signals) -> None:
    def raised(_number: int, _frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    def wait() -> None:
        _say("ready")
        time.sleep(60)

    before = signal.signal(number, raised)
    try:
        with _forked(wait, errors) as process:
            process.stdout.read(100)
            os.kill(process.pid, number)
            assert process.wait() == -number
    finally:
        signal.signal(number, before)
    assert errors.read_text() == ""


def test_its_parent_hears_signals_again(errors: Path) -> None:
    before = signal.pthread_sigmask(signal.SIG_BLOCK, ())
    with _forked(lambda: _say(*signal.pthread_sigmask(signal.SIG_BLOCK, ())), errors) as process:
        assert signal.pthread_sigmask(signal.SIG_BLOCK, ()) == before
        assert process.stdout.read(100).split() == [str(int(each)).encode() for each in before]


def test_where_there_can_be_none_nothing_is_left(errors: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse() -> int:
        raise BlockingIOError("too many processes")

    monkeypatch.setattr(os, "fork", refuse)
    there = os.listdir("/proc/self/fd")  # noqa: PTH208
    with pytest.raises(OSError, match="too many"), errors.open("w") as file:
        Forked(lambda: None, file.fileno())
    assert os.listdir("/proc/self/fd") == there  # noqa: PTH208


def test_a_thread_forbids_it_unless_it_draws_bars(errors: Path) -> None:
    others = [each for each in threading.enumerate() if each is not threading.current_thread()]
    over = threading.Event()
    thread = threading.Thread(target=over.wait)
    thread.start()
    assert not can_fork()
    over.set()
    thread.join()
    drawn = Console(file=io.StringIO(), force_terminal=True)
    with Progress(console=drawn, refresh_per_second=1000):
        assert can_fork() == (not others)
        for number in range(10):
            with _forked(lambda number=number: _say(number), errors) as process:  # type: ignore[misc]
                assert process.stdout.read(100) == b"%d\n" % number
