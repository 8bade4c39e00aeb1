# SPDX-License-Identifier: Apache-2.0
"""What the launcher keeps a program from. A script stands for the kernel of a guest, in which any module may run."""

from __future__ import annotations

import ctypes
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from howdah.build.cache import Cache
from howdah.build.tools import Tools, build_tools
from howdah.engine.ending import BOUNDS, Bounds

pytestmark = pytest.mark.skipif(shutil.which("gcc") is None, reason="gcc is not installed")

_ATTACK = """
import ctypes, json, os, signal, socket, sys
place, outside, port, victim = sys.argv[1:]
libc = ctypes.CDLL(None, use_errno=True)
found = {}

def attempt(name, act):
    try:
        act()
        found[name] = "done"
    except OSError as error:
        found[name] = error.strerror

def called(result):
    if result < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))

def connect():
    socket.create_connection(("127.0.0.1", int(port)), timeout=2)

attempt("read", lambda: open(outside + "/secret.txt").read())
attempt("list", lambda: os.listdir(outside))
attempt("write", lambda: open(outside + "/new.txt", "w"))
attempt("change", lambda: open(outside + "/secret.txt", "a"))
attempt("remove", lambda: os.unlink(outside + "/secret.txt"))
attempt("rename", lambda: os.rename(outside + "/secret.txt", place + "/stolen"))
attempt("link", lambda: os.link(outside + "/secret.txt", place + "/stolen"))
attempt("symlink", lambda: os.symlink("/etc/passwd", place + "/symlink"))
attempt("pipe", lambda: os.mkfifo(place + "/pipe"))
attempt("device", lambda: os.mknod(place + "/zero", 0o20666, os.makedev(1, 5)))
attempt("environ", lambda: open(f"/proc/{victim}/environ").read())
attempt("memory", lambda: open(f"/proc/{victim}/mem", "rb"))
attempt("root", lambda: os.listdir(f"/proc/{victim}/root"))
attempt("signal", lambda: os.kill(int(victim), signal.SIGUSR1))
attempt("trace", lambda: called(libc.ptrace(16, int(victim), None, None)))
attempt("network", connect)
attempt("local socket", lambda: socket.socket(socket.AF_UNIX).connect(outside + "/service"))
attempt("ring", lambda: called(libc.syscall(425, 8, ctypes.create_string_buffer(120))))
attempt("mount", lambda: called(libc.mount(b"none", outside.encode(), b"tmpfs", 0, None)))
attempt("own", lambda: open(place + "/own.txt", "w").write("own"))
attempt("memory of its own", lambda: open(os.environ["TMPDIR"] + "/memory", "w").write("own"))
open(place + "/found.json", "w").write(json.dumps({"found": found, "orders": [n for n in os.environ if "LAUNCH" in n]}))
"""
_ALLOWED = {"own", "memory of its own"}


@pytest.fixture(scope="module")
def tools(tmp_path_factory: pytest.TempPathFactory) -> Tools:
    return build_tools(Cache(tmp_path_factory.mktemp("cache")))


def _require_landlock() -> None:
    if ctypes.CDLL(None).syscall(444, None, 0, 1) < 1:
        pytest.skip("this kernel has no Landlock")


def _launch(tools: Tools, tmp_path: Path, program: list[str], *links: str, **environment: str) -> Path:
    """Run it isolated; where the launcher wrote what it kept the program from."""
    bounds = tmp_path / "bounds.txt"
    command = [str(tools.launch), "isolate", str(os.getpid()), str(tmp_path / "private"), *links, "--", *program]
    values = {**os.environ, "LAUNCH_BOUNDS": str(bounds), **environment}
    done = subprocess.run(command, env=values, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    return bounds


def test_a_hostile_program_does_nothing_outside_its_places(tools: Tools, tmp_path: Path) -> None:
    _require_landlock()
    place, outside, memory = (tmp_path / name for name in ("place", "outside", "memory"))
    for directory in (place, outside, memory):
        directory.mkdir()
    (outside / "secret.txt").write_text("secret")
    (memory / "of another guest").write_text("secret")
    (place / "attack.py").write_text(_ATTACK)
    victim = subprocess.Popen(["/bin/sleep", "60"])
    listener = socket.create_server(("127.0.0.1", 0))
    service = socket.socket(socket.AF_UNIX)  # as a container's manager or the user's session has one
    service.bind(str(outside / "service"))
    service.listen()
    try:
        port = str(listener.getsockname()[1])
        python = Path(sys.base_prefix)
        program = [str(Path(sys.executable).resolve()), "-S", str(place / "attack.py"), str(place), str(outside), port]
        links = (f"out+={place}", f"python={python}")
        bounds = _launch(
            tools, tmp_path, [*program, str(victim.pid)], *links, TMPDIR=str(memory), PYTHONHOME=str(python)
        )
        assert victim.poll() is None, "a process outside was signalled"
    finally:
        listener.close()
        service.close()
        victim.kill()
        victim.wait()
    said = json.loads((place / "found.json").read_text())
    assert {name for name, how in said["found"].items() if how == "done"} == _ALLOWED, said
    assert said["orders"] == []
    assert (outside / "secret.txt").read_text() == "secret"
    assert sorted(path.name for path in outside.iterdir()) == ["secret.txt", "service"]
    assert [path.name for path in memory.iterdir()] == ["of another guest"], "its own directory is removed"
    assert Bounds.read(bounds) == Bounds(BOUNDS, addresses_fixed=True)


def test_a_program_has_no_privilege_and_cannot_get_one(tools: Tools, tmp_path: Path) -> None:
    status = tmp_path / "out"
    status.mkdir()
    text = f"grep -E '^(CapPrm|CapBnd|NoNewPrivs)' /proc/self/status >{status}/status.txt"
    _launch(tools, tmp_path, ["/bin/sh", "-c", text], f"out+={status}", "proc=/proc")
    held = dict(line.split() for line in (status / "status.txt").read_text().splitlines())
    override = 1 << 1  # CAP_DAC_OVERRIDE
    assert int(held["CapPrm:"], 16) & ~override == 0
    assert int(held["CapBnd:"], 16) & ~override == 0 or os.geteuid() != 0
    assert held["NoNewPrivs:"] == "1"


def test_a_place_that_cannot_be_written_is_refused_to_a_reader(tools: Tools, tmp_path: Path) -> None:
    _require_landlock()
    given = tmp_path / "given"
    given.mkdir()
    (given / "read.txt").write_text("read")
    out = tmp_path / "out"
    out.mkdir()
    text = "cat given/read.txt >out/copy.txt; echo x >given/read.txt; echo y >given/new.txt; echo $? >out/status"
    _launch(tools, tmp_path, ["/bin/sh", "-c", text], f"given={given}", f"out+={out}")
    assert (out / "copy.txt").read_text() == "read"
    assert (out / "status").read_text().strip() != "0"
    assert sorted(path.name for path in given.iterdir()) == ["read.txt"]
    assert (given / "read.txt").read_text() == "read"


def test_a_killed_launcher_leaves_no_memory_in_use(tools: Tools, tmp_path: Path) -> None:
    command = [str(tools.launch), "isolate", str(os.getpid()), str(tmp_path / "private"), "--", "/bin/sleep", "60"]
    running = subprocess.Popen(command, env={**os.environ, "TMPDIR": str(tmp_path)})
    running.send_signal(signal.SIGTERM)
    running.wait(20)
    assert not list(tmp_path.glob("private*"))
