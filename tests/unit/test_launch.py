# SPDX-License-Identifier: Apache-2.0
"""The launcher: nothing of what it started survives, whoever dies first. Ordinary programs stand for the guest."""

from __future__ import annotations

import fcntl
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from howdah.build.cache import Cache
from howdah.build.supervise import CommandFailedError, run_logged
from howdah.build.tools import Tools, build_tools
from howdah.engine.life import descendants
from howdah.errors import HowdahError

pytestmark = pytest.mark.skipif(shutil.which("gcc") is None, reason="gcc is not installed")

_MODES = ("isolate", "watch")


@pytest.fixture(scope="module")
def tools(tmp_path_factory: pytest.TempPathFactory) -> Tools:
    return build_tools(Cache(tmp_path_factory.mktemp("cache")))


def _until(condition: Callable[[], bool], limit_s: float = 20) -> bool:
    end = time.monotonic() + limit_s
    while time.monotonic() < end:
        if condition():
            return True
        time.sleep(0.02)
    return False


def _alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def _start(tools: Tools, mode: str, private: Path, *program: str, reads: str | None = None) -> subprocess.Popen[bytes]:
    """``private.parent`` may be written, ``reads`` is a further place that may be read."""
    links = [f"there+={private.parent}", *([f"reads={reads}"] if reads else [])]
    command = [str(tools.launch), mode, str(os.getpid()), str(private), *links, "--", *program]
    environment = {**os.environ, "TMPDIR": str(private.parent)}
    return subprocess.Popen(command, env=environment, stdin=subprocess.DEVNULL, start_new_session=True)


@pytest.mark.parametrize("mode", _MODES)
def test_status_directory_and_links(tools: Tools, tmp_path: Path, mode: str) -> None:
    private, seen = tmp_path / "private", tmp_path / "seen"
    text = f"pwd >'{seen}'; test -L there && exit 7"
    assert _start(tools, mode, private, "/bin/sh", "-c", text).wait(20) == 7
    assert seen.read_text().strip() == str(private), "the program runs in the directory"
    assert not private.exists()


@pytest.mark.parametrize("mode", _MODES)
def test_a_signal_is_told(tools: Tools, tmp_path: Path, mode: str) -> None:
    assert _start(tools, mode, tmp_path / "private", "/bin/sh", "-c", "kill -SEGV $$").wait(20) == 128 + signal.SIGSEGV


def test_a_program_that_does_not_exist(tools: Tools, tmp_path: Path) -> None:
    assert _start(tools, "isolate", tmp_path / "private", "/no/such/program").wait(20) == 126
    assert not (tmp_path / "private").exists()


@pytest.mark.parametrize("mode", _MODES)
def test_the_peak_of_memory_is_told_of_a_program_that_lives_for_an_instant(
    tools: Tools, tmp_path: Path, mode: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LAUNCH_PEAK", str(tmp_path / "peak"))
    peaks = []
    for size in (0, 64 << 20):
        program = [sys.executable, "-S", "-c", f"bytes(bytearray({size})[:1])"]
        assert _start(tools, mode, tmp_path / "private", *program, reads=sys.base_prefix).wait(20) == 0
        peaks.append(int((tmp_path / "peak").read_text()) * 1024)
    assert 64 << 20 <= peaks[1] - peaks[0] + (1 << 20) < 80 << 20


def _memory_of(tools: Tools, directory: Path) -> list[str]:
    """TMPDIR of a program, and the file system there as /proc/mounts has it, if it is a mount."""
    text = """echo "$TMPDIR" >there/seen; grep " $TMPDIR " /proc/mounts >>there/seen; true"""
    assert _start(tools, "isolate", directory / "private", "/bin/sh", "-c", text, reads="/proc").wait(20) == 0
    assert not (directory / "private").exists()
    return (directory / "seen").read_text().splitlines()


def test_a_program_has_huge_pages_of_its_own_where_they_may_be_mounted(
    tools: Tools, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setenv("LAUNCH_MEMORY", "67108864")
    trial = [
        "unshare",
        "--user",
        "--map-root-user",
        "--mount",
        "mount",
        "-t",
        "tmpfs",
        "-o",
        "huge=always",
        "t",
        "/mnt",
    ]
    if subprocess.run(trial, check=False, capture_output=True).returncode:
        pytest.skip("this machine mounts no file system of huge pages in a namespace")
    place, mount = _memory_of(tools, tmp_path)
    assert place == str(tmp_path / "private/memory")
    assert "huge=always" in mount
    assert "size=65536k" in mount
    assert place not in Path("/proc/mounts").read_text()


@pytest.mark.parametrize("asked", ["much", None])
def test_where_they_may_not_be_mounted_its_memory_has_a_directory_of_its_own(
    tools: Tools, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, asked: str | None
) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    if asked is not None:
        monkeypatch.setenv("LAUNCH_MEMORY", asked)
    place = tmp_path / "private.memory"
    assert _memory_of(tools, tmp_path) == [str(place)]
    assert not place.exists()


def test_a_directory_that_exists_is_not_touched(tools: Tools, tmp_path: Path) -> None:
    (tmp_path / "private").mkdir()
    (tmp_path / "private" / "file").write_text("mine")
    assert _start(tools, "isolate", tmp_path / "private", "/bin/true").wait(20) == 126
    assert (tmp_path / "private" / "file").read_text() == "mine"


_FAMILY = "sleep 1000 & setsid sleep 1001 & sh -c 'sleep 1002 & sleep 1003' & echo up >there/up; wait"


@pytest.mark.parametrize("mode", _MODES)
@pytest.mark.parametrize("order", [signal.SIGTERM, signal.SIGINT])
def test_an_order_to_end_ends_the_whole_family(tools: Tools, tmp_path: Path, mode: str, order: signal.Signals) -> None:
    private = tmp_path / "private"
    launcher = _start(tools, mode, private, "/bin/sh", "-c", _FAMILY)
    assert _until(lambda: (tmp_path / "up").exists() and len(descendants(launcher.pid)) >= 6)
    family = descendants(launcher.pid)
    launcher.send_signal(order)
    assert launcher.wait(20) == 125
    assert _until(lambda: not any(_alive(pid) for pid in family))
    assert not private.exists()


@pytest.mark.parametrize("mode", _MODES)
def test_the_family_dies_with_a_killed_parent(tools: Tools, tmp_path: Path, mode: str) -> None:
    private = tmp_path / "private"
    parent_code = (
        "import os, subprocess, sys\n"
        "command = [sys.argv[1], sys.argv[2], str(os.getpid()), *sys.argv[3:]]\n"
        "subprocess.run(command, start_new_session=True)\n"
    )
    arguments = [str(tools.launch), mode, str(private), f"there+={tmp_path}", "--", "/bin/sh", "-c", _FAMILY]
    parent = subprocess.Popen([sys.executable, "-c", parent_code, *arguments])
    assert _until(lambda: (tmp_path / "up").exists() and len(descendants(parent.pid)) >= 7)
    family = descendants(parent.pid)
    parent.kill()
    parent.wait()
    assert _until(lambda: not any(_alive(pid) for pid in family))
    assert _until(lambda: not private.exists())


def test_a_killed_launcher_takes_an_isolated_family_along(tools: Tools, tmp_path: Path) -> None:
    launcher = _start(tools, "isolate", tmp_path / "private", "/bin/sh", "-c", _FAMILY)
    assert _until(lambda: (tmp_path / "up").exists() and len(descendants(launcher.pid)) >= 6)
    family = descendants(launcher.pid)
    launcher.kill()
    launcher.wait()
    assert _until(lambda: not any(_alive(pid) for pid in family))


@pytest.mark.parametrize("mode", _MODES)
def test_a_killed_keeper_leaves_nothing(tools: Tools, tmp_path: Path, mode: str) -> None:
    private = tmp_path / "private"
    launcher = _start(tools, mode, private, "/bin/sh", "-c", _FAMILY)
    assert _until(lambda: (tmp_path / "up").exists() and len(descendants(launcher.pid)) >= 6)
    family = descendants(launcher.pid)
    children = Path(f"/proc/{launcher.pid}/task/{launcher.pid}/children").read_text().split()
    os.kill(int(children[0]), signal.SIGKILL)
    assert launcher.wait(20) == 128 + signal.SIGKILL
    assert not any(_alive(pid) for pid in family)
    assert not private.exists()


def test_the_directory_is_locked_as_long_as_it_is_used(tools: Tools, tmp_path: Path) -> None:
    private = tmp_path / "private"
    launcher = _start(tools, "isolate", private, "/bin/sh", "-c", _FAMILY)
    assert _until(lambda: (tmp_path / "up").exists())
    descriptor = os.open(private, os.O_RDONLY)
    try:
        with pytest.raises(BlockingIOError):
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        launcher.kill()  # it cannot remove the directory any more
        launcher.wait()

        def free() -> bool:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                return False
            return True

        assert _until(free)
    finally:
        os.close(descriptor)
    assert private.exists()


def test_run_logged_keeps_the_output_and_names_the_failure(tools: Tools, tmp_path: Path) -> None:
    lines: list[str] = []
    log = tmp_path / "log"
    run_logged(["sh", "-c", "echo one; echo two >&2"], log, launcher=tools.launch, on_line=lines.append)
    assert lines == ["one", "two"]
    with pytest.raises(CommandFailedError) as caught:
        run_logged(["sh", "-c", "echo three; exit 4"], log, launcher=tools.launch)
    assert caught.value.status == 4
    assert caught.value.tail == ["three"]
    # A caller that has no better words is no reason for a traceback: this is what is printed then.
    assert isinstance(caught.value, HowdahError)
    assert str(caught.value).splitlines() == [f"{log}: sh ended with status 4", "  Its last lines:", "    three"]
    assert [line for line in log.read_text().splitlines() if not line.startswith("$")] == ["one", "two", "three"]


def test_a_program_that_is_not_installed(tmp_path: Path) -> None:
    with pytest.raises(HowdahError, match="howdah-no-such-program is not installed"):
        run_logged(["howdah-no-such-program"], tmp_path / "log")


def test_an_error_in_the_listener_ends_the_command(tools: Tools, tmp_path: Path) -> None:
    mark = tmp_path / "still"

    def stop(_line: str) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run_logged(
            ["sh", "-c", f"echo go; sleep 1004; touch '{mark}'"], tmp_path / "log", launcher=tools.launch, on_line=stop
        )
    assert not mark.exists()
