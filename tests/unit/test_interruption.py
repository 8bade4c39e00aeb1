# SPDX-License-Identifier: Apache-2.0
"""A second Ctrl-C does not end the clean-up that the first one began."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from howdah.command import interruption
from howdah.command.interruption import interruptible

_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)

# A command that is told to end twice more while it cleans up.
_COMMAND = """
import os, signal, sys
from pathlib import Path
from howdah.command.main import main
from howdah.command import listing

def interrupted(options):
    try:
        os.kill(os.getpid(), signal.SIGTERM)
    finally:
        for number in (signal.SIGTERM, signal.SIGHUP):
            os.kill(os.getpid(), number)
        Path(sys.argv[1]).write_text("cleaned up")

listing.execute = interrupted
signal.signal(signal.SIGHUP, signal.SIG_DFL)  # nohup would have it ignored
sys.exit(main(["list"]))
"""


_INTERRUPTED_LOADING = """
import signal, sys
from howdah.command import entry

signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell has it ignored in the background

class Finder:
    def find_spec(self, name, *_):
        if name == "argparse":
            sys.meta_path.remove(self)
            signal.raise_signal(signal.SIGINT)

sys.meta_path.insert(0, Finder())
sys.exit(entry.program())
"""


@pytest.fixture(autouse=True)
def handlers() -> Iterator[None]:
    before = {number: signal.getsignal(number) for number in _SIGNALS}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


def test_what_has_begun_to_clean_up_ends_cleaning_up(tmp_path: Path) -> None:
    marker = tmp_path / "marker"
    done = subprocess.run([sys.executable, "-c", _COMMAND, marker], capture_output=True, text=True, check=False)
    assert done.returncode == 130, done.stderr
    assert marker.read_text() == "cleaned up"
    patience = "howdah: cleaning up; a moment\n"
    said = "howdah: interrupted; runs are as they were; the same command starts over\n"
    assert done.stderr == 2 * patience + said


@pytest.mark.parametrize("words", [[], ["--json"]])
def test_an_interrupt_while_the_command_loads_prints_one_line(words: list[str]) -> None:
    command = [sys.executable, "-c", _INTERRUPTED_LOADING, *words]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (130, "howdah: interrupted; nothing was begun\n")
    assert bool(words) == ("nothing was begun" in done.stdout)


def test_a_clean_up_that_takes_long_says_so(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> None:
    before = signal.getsignal(signal.SIGALRM)
    monkeypatch.setattr(interruption, "_PATIENCE_AFTER_S", 0.01)
    try:
        with pytest.raises(KeyboardInterrupt), interruptible():
            try:
                os.kill(os.getpid(), signal.SIGTERM)
            finally:
                time.sleep(0.5)
        assert capfd.readouterr().err == "howdah: cleaning up; a moment\n"
        assert signal.getitimer(signal.ITIMER_REAL) == (0.0, 0.0)
    finally:
        signal.signal(signal.SIGALRM, before)


@pytest.mark.parametrize("number", _SIGNALS)
def test_the_first_interrupts_and_the_next_command_can_be_interrupted_too(number: int) -> None:
    for handled in _SIGNALS:
        signal.signal(handled, signal.SIG_DFL)
    with interruptible():
        pass
    assert signal.getsignal(number) is signal.SIG_DFL
    for _command in range(2):
        with pytest.raises(KeyboardInterrupt), interruptible():
            os.kill(os.getpid(), number)


def test_what_the_shell_ignores_stays_ignored() -> None:
    """nohup sets SIGHUP so, and a shell SIGINT of what it starts behind it."""
    for number in (signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    with interruptible():
        os.kill(os.getpid(), signal.SIGINT)
        os.kill(os.getpid(), signal.SIGHUP)


# A command that is told to end at a moment at which Python or a library would lose it, and goes on for long.
_LOST = """
import os, signal, sys, time
from howdah.command import interruption, listing
from howdah.command.main import main

interruption.LONGEST_IMPORT_S = float(sys.argv[1])
sys.path.insert(0, sys.argv[2])

class Thing:
    def __del__(self):
        os.kill(os.getpid(), signal.SIGTERM)
        for _ in range(100):
            pass

def execute(options):
    {work}
    time.sleep(60)

listing.execute = execute
sys.exit(main(["list"]))
"""
_DEAF = """
import os, signal

class Deaf:
    def __set_name__(self, owner, name):
        os.kill(os.getpid(), signal.SIGTERM)
        for _ in range(100):
            pass

try:
    class Owner:
        deaf = Deaf()
except BaseException as error:
    raise ImportError("initialisation failed") from error
"""
_ENDLESS = """
import os, signal

os.kill(os.getpid(), signal.SIGTERM)
while True:
    pass
"""


@pytest.mark.parametrize(
    ("work", "longest_import_s"), [("Thing(); time.sleep(0)", 60), ("import deaf", 60), ("import endless", 0.1)]
)
def test_a_signal_is_not_lost_where_no_exception_can_be_raised(
    tmp_path: Path, work: str, longest_import_s: float
) -> None:
    (tmp_path / "deaf.py").write_text(_DEAF)
    (tmp_path / "endless.py").write_text(_ENDLESS)
    command = [sys.executable, "-c", _LOST.format(work=work), str(longest_import_s), str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 130, done.stderr
    assert done.stderr == "howdah: interrupted; runs are as they were; the same command starts over\n"


def test_what_cannot_be_raised_for_another_reason_is_told_as_before() -> None:
    class Wrong:
        def __del__(self) -> None:
            raise ValueError("wrong")

    told: list[object] = []
    before, sys.unraisablehook = sys.unraisablehook, lambda what: told.append(what.exc_type)
    try:
        with interruptible():
            Wrong()
    finally:
        sys.unraisablehook = before
    assert told == [ValueError]
