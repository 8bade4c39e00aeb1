# SPDX-License-Identifier: Apache-2.0
"""What a guest is started with, and how its ending is read. No kernel is booted here."""

from __future__ import annotations

import dataclasses
import json
import stat
from pathlib import Path

import pytest

from howdah.build.tools import Tools
from howdah.engine.ending import Ending, check_agent, runtime_base
from howdah.engine.uml import guest as guest_module
from howdah.engine.uml.guest import Guest, boot, command_line
from howdah.errors import EngineUnavailableError, RunFailedError
from howdah.record.directory import RunDirectory
from howdah.record.kernel_log import console_tail


@pytest.fixture
def guest(tmp_path: Path) -> Guest:
    raw = tmp_path / "raw"
    raw.mkdir()
    tools = Tools(tmp_path / "tools", tmp_path / "launch", tmp_path / "shim.so", "key")
    return Guest(
        kernel=tmp_path / "linux",
        tree=tmp_path / "tree",
        tools=tools,
        share=tmp_path / "share",
        raw=raw,
        console=raw / "console.log",
        command=("/bin/true",),
        memory_bytes=100 * 2**20 + 1,
        wall_clock_limit_s=20,
    )


def _launcher(guest: Guest, text: str) -> None:
    """A launcher that does what a guest would do to the files, reports a peak of 20 MiB, and ends with a status."""
    said = 'echo 20480 >"$LAUNCH_PEAK"; echo files addresses >"$LAUNCH_BOUNDS"'
    guest.tools.launch.write_text(f"#!/bin/sh\n{said}\n{text}\n")
    guest.tools.launch.chmod(guest.tools.launch.stat().st_mode | stat.S_IXUSR)


def _progress(_phase: str, _done: int, _total: int) -> None:
    pass


def test_the_command_line_holds_no_name_that_changes_between_runs(guest: Guest) -> None:
    arguments = command_line(guest)
    assert arguments[0] == "mem=101M", "a started mebibyte counts"
    assert arguments[-2:] == ["--", "/bin/true"]
    text = " ".join(arguments)
    assert "time-travel=inf-cpu" in arguments
    assert str(guest.raw.parent) not in text
    assert "con0=null,fd:1" in arguments, "the console is a plain descriptor"


@pytest.mark.parametrize("word", ["two words", "tab\there", "", "line\n"])
def test_words_that_a_command_line_would_break_are_refused(guest: Guest, word: str) -> None:
    with pytest.raises(ValueError, match="command line"):
        command_line(dataclasses.replace(guest, kernel_arguments=(word,)))


def test_private_directories_are_short_and_plain(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    spaced = tmp_path / "run time"
    spaced.mkdir()
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(spaced))
    assert " " not in str(runtime_base())


def test_an_orderly_end(guest: Guest) -> None:
    _launcher(guest, f"echo '{{\"exit\": 3, \"signal\": null}}' >'{guest.raw}/guest-exit.json'")
    ending = boot(guest, _progress)
    assert (ending.exit_status, ending.signal) == (3, None)
    assert ending.memory_peak_bytes == 20 << 20


def test_a_panic_is_quoted_and_the_console_kept(guest: Guest) -> None:
    _launcher(guest, "echo booting; echo '[ 1.0] Kernel panic - not syncing: out of luck'; exit 134")
    with pytest.raises(RunFailedError, match="panicked: out of luck") as caught:
        boot(guest, _progress)
    assert str(caught.value).startswith(str(guest.console))
    assert console_tail(guest.console)[0] == "booting"


@pytest.mark.parametrize(
    ("status", "expected"), [(139, "signal 11"), (1, "status 1"), (124, "rebooted"), (125, "status 125")]
)
def test_a_kernel_that_ends_without_switching_off(guest: Guest, status: int, expected: str) -> None:
    _launcher(guest, f"exit {status}")
    with pytest.raises(RunFailedError, match=expected):
        boot(guest, _progress)


def test_a_launcher_that_is_killed_is_not_taken_for_a_kernel_that_dies(guest: Guest) -> None:
    """What the guest said while it lost its directory would mislead."""
    _launcher(guest, "echo 'ModuleNotFoundError: collectors'; kill -KILL $$")
    with pytest.raises(RunFailedError, match=r"outside howdah ended the guest's launcher \(SIGKILL\)") as caught:
        boot(guest, _progress)
    assert "ModuleNotFoundError" not in str(caught.value) + str(caught.value.hint)


def test_what_cannot_be_started_is_not_a_failed_run(guest: Guest) -> None:
    _launcher(guest, "echo 'howdah-launch: ./linux: Permission denied' >&2; exit 126")
    with pytest.raises(EngineUnavailableError, match="Permission denied"):
        boot(guest, _progress)


def test_the_ending_of_an_earlier_guest_is_not_taken_for_this_ones(guest: Guest) -> None:
    (guest.raw / "guest-exit.json").write_text('{"exit": 0, "signal": null}')
    _launcher(guest, "exit 1")
    with pytest.raises(RunFailedError):
        boot(guest, _progress)


def test_the_clock_limit_says_where_the_guest_was(guest: Guest) -> None:
    progress = json.dumps({"phase": "flows", "time_us": 1_000_000, "of_us": 2_000_000})
    _launcher(
        guest,
        f"echo '{progress}' >'{guest.raw}/progress.json'\n"
        f"echo '{{\"exit\": null, \"signal\": null}}' >'{guest.raw}/guest-exit.json'",
    )
    with pytest.raises(RunFailedError, match=r"clock reached its limit .*phase flows"):
        boot(guest, _progress)


def test_the_wall_clock_limit_ends_the_launcher(guest: Guest) -> None:
    mark = guest.raw / "ended"
    _launcher(guest, f"trap 'echo yes >\"{mark}\"; exit 125' TERM\nwhile :; do sleep 0.05; done")
    with pytest.raises(RunFailedError, match=r"wall-clock limit of 0\.5 s"):
        boot(dataclasses.replace(guest, wall_clock_limit_s=0.5), _progress)
    assert mark.read_text() == "yes\n"


def test_console_tail_of_no_console(tmp_path: Path) -> None:
    assert console_tail(tmp_path / "none") == []


@pytest.mark.parametrize(
    ("record", "exit_status", "expected"),
    [
        (None, 1, "status 1.* without a record"),
        ('{"status": "ok"', 0, "cannot be read"),
        (
            '{"status": "error", "error": {"operation": "link", "message": "no such device"}}',
            1,
            '"link".*no such',
        ),
        ('{"status": "error", "error": null}', 1, "status 1"),
        ('{"status": "ok", "error": null}', 7, "status 7 after its run"),
    ],
)
def test_an_agent_that_did_not_end_well(tmp_path: Path, record: str | None, exit_status: int, expected: str) -> None:
    directory = RunDirectory(tmp_path)
    directory.raw.mkdir()
    directory.console.write_text("the last words\n")
    if record is not None:
        (directory.raw / "agent.json").write_text(record)
    with pytest.raises(RunFailedError, match=expected):
        check_agent(directory, Ending(exit_status, None, 1.0, 4096))


def test_an_agent_that_ended_well(tmp_path: Path) -> None:
    directory = RunDirectory(tmp_path)
    directory.raw.mkdir()
    (directory.raw / "agent.json").write_text('{"status": "ok", "error": null}')
    check_agent(directory, Ending(0, None, 1.0, 4096))


def test_start_is_the_same_instant_for_every_guest() -> None:
    assert guest_module.START_NS == 1_700_000_000 * 10**9
