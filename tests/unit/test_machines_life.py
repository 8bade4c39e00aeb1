# SPDX-License-Identifier: Apache-2.0
"""Virtual machines' lives with stand-ins for QEMU and ssh: what is said when one fails, and what is left behind."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from howdah.build.cache import Cache
from howdah.command.machines import StepLines
from howdah.errors import HowdahError, RunFailedError
from howdah.machines import life
from howdah.machines.image import MachineImage
from howdah.machines.inventory import MachineSetDirectory, directory_of, write_inventory
from howdah.machines.kernel import MachineKernel
from howdah.machines.life import StartOptions, bring_up, clear, take_down
from howdah.machines.machine_set import MachineSet, load_machine_set
from howdah.machines.qemu import WHY_EMULATED
from howdah.machines.ssh import SshRoute, UnreachableError
from howdah.machines.state import (
    MachineSetState,
    MachineState,
    StartedProcess,
    identify,
    locked,
    read_state,
    start_ticks,
)

MACHINES = """\
name: attic
virtual: {kernel: debian-6.12}
hosts:
  a: {role: sender}
  b: {role: receiver}
wires:
  left: [a, b]
"""
# Does what a machine is watched for, by the files in its own directory: answers on its port, or ends with words.
QEMU = """\
#!/usr/bin/env python3
import os, socket, sys, time
from pathlib import Path
words = sys.argv
name = words[words.index("-name") + 1]
behaviour = (Path(__file__).parent / "behaviour").read_text().strip()
Path(words[words.index("-serial") + 1].removeprefix("file:")).write_text("first line\\nlast line of " + name + "\\n")
if behaviour == "dies":
    sys.exit("qemu: no such thing")
if behaviour == "port":
    (Path(__file__).parent / "behaviour").write_text("answers")
    sys.exit("qemu: Could not set up host forwarding rule 'tcp:127.0.0.1:1-:22'")
Path(words[words.index("-pidfile") + 1]).write_text(str(os.getpid()))
if behaviour == "panics":
    time.sleep(0.3)
    sys.exit(0)
if behaviour == "silent":
    time.sleep(600)
forward = next(word for word in words if word.startswith("user,")).split("tcp:127.0.0.1:")[1]
server = socket.create_server(("127.0.0.1", int(forward.split("-")[0])))
while True:
    connection, _ = server.accept()
    connection.sendall(b"SSH-2.0-stand-in\\r\\n")
    connection.close()
"""
SSH = """\
#!/bin/sh
if [ -e "$(dirname "$0")/refused" ]; then
  cat "$(dirname "$0")/refused" >&2
  exit 255
fi
exit 0
"""


@pytest.fixture
def programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory in front of PATH with stand-ins for QEMU and ssh; ``behaviour`` and ``refused`` steer them."""
    if shutil.which("qemu-img") is None:
        pytest.skip("qemu-img is not installed (qemu-utils)")
    found = tmp_path / "programs"
    found.mkdir()
    for name, text in (("qemu-system-x86_64", QEMU), ("ssh", SSH)):
        (found / name).write_text(text)
        (found / name).chmod(0o755)
    (found / "behaviour").write_text("answers")
    monkeypatch.setenv("PATH", f"{found}:{os.environ['PATH']}")
    kernel = MachineKernel("debian-6.12", "6.12.0", tmp_path / "vmlinuz", tmp_path, None, "a package", "key")
    disk, first = tmp_path / "disk.ext4", tmp_path / "first.cpio"
    disk.write_bytes(bytes(1 << 20))
    first.write_bytes(b"")
    left_out = {"ss_jump": "algorithms/ss_jump.c:3: no"}
    image = MachineImage(disk, first, tmp_path / "vmlinux", kernel, "sources", ["ss_pair"], left_out)
    monkeypatch.setattr(life, "provide_machine_kernel", lambda *_: kernel)
    monkeypatch.setattr(life, "provide_machine_image", lambda *_: image)
    monkeypatch.setattr(life, "cached_why_no_kvm", lambda *_: "there is no /dev/kvm")
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1})
    return found


@contextmanager
def machine_set_of(directory: Path, text: str) -> Iterator[tuple[MachineSet, MachineSetDirectory, Path]]:
    """The machine set of that file, ready to be brought up; whatever of it runs at the end is ended."""
    file = directory / "machines.yaml"
    file.write_text(text, encoding="utf-8")
    found = load_machine_set(file)
    place = directory_of(found, directory / "sets")
    write_inventory(found, place, file)
    try:
        yield found, place, file
    finally:
        clear(place)


@pytest.fixture
def machine_set(tmp_path: Path) -> Iterator[tuple[MachineSet, MachineSetDirectory, Path]]:
    with machine_set_of(tmp_path, MACHINES) as found:
        yield found


def how(tmp_path: Path, limit_s: float = 30.0) -> StartOptions:
    return StartOptions(Cache(tmp_path / "cache"), lambda *_: None, bound=False, boot_limit_s=limit_s)


def _sleeper() -> tuple[subprocess.Popen[bytes], StartedProcess]:
    process = subprocess.Popen(["sleep", "600.25"])
    found = identify(process.pid, "600.25")
    assert found is not None
    end = time.monotonic() + 10
    while not found.is_alive():  # exec has closed the pipe by which Popen knows of it before it shows its arguments
        assert time.monotonic() < end
        time.sleep(0.001)
    return process, found


def test_a_machine_set_comes_up_and_goes_down(
    programs: Path, machine_set: tuple[MachineSet, MachineSetDirectory, Path], tmp_path: Path
) -> None:
    del programs
    found, directory, file = machine_set
    state = bring_up(found, directory, file, how(tmp_path))
    assert set(state.alive()) == {"a", "b"}
    assert read_state(directory.state) == state
    assert state.machines["a"].modules_left_out == {"ss_jump": "algorithms/ss_jump.c:3: no"}
    assert {machine.accelerator for machine in state.machines.values()} == {"tcg"}
    for name, machine in state.machines.items():
        assert machine.dilation == 8, "emulated machines have a slower clock by themselves"
        told = Path(f"/proc/{machine.process.pid}/environ").read_bytes().decode().split("\0")
        assert "HOWDAH_DILATION=8" in told
        command = (directory.path / f"machines/{name}/qemu.command").read_text()
        assert "HOWDAH_DILATION=8" in command
        assert "no_timer_check" in command
    assert (directory.path / "machines/a/disk.qcow2").exists()
    assert directory.key.stat().st_mode & 0o777 == 0o600
    assert len(directory.known_hosts.read_text().splitlines()) == 2
    assert take_down(directory, lambda *_: None, stop_s=0.1) == ["a", "b"]
    assert not state.alive()
    assert read_state(directory.state) is None
    assert not list(directory.path.glob("machines/*/disk.qcow2"))
    assert (directory.path / "machines/a/console.log").exists()  # consoles are kept
    assert take_down(directory, lambda *_: None) == []


def test_a_machine_starts_after_those_that_listen_for_it(programs: Path, tmp_path: Path) -> None:
    """The monitor is the last of the file; QEMU ends a machine whose monitoring link nobody listens at."""
    del programs
    text = MACHINES.replace("name: attic\n", "name: attic\nmonitor: c\n")
    text = text.replace("wires:", "  c: {role: emulator}\nwires:").replace("[a, b]\n", "[a, c]\n  right: [b, c]\n")
    started: list[str] = []
    progress = lambda what, *_: started.append(what.removeprefix("start ")) if "start " in what else None  # noqa: E731
    with machine_set_of(tmp_path, text) as (found, directory, file):
        bring_up(found, directory, file, StartOptions(Cache(tmp_path / "cache"), progress, bound=False))
        assert started == ["c", "a", "b"]


def test_a_machine_set_goes_down_though_nobody_reads_of_it(
    programs: Path,
    machine_set: tuple[MachineSet, MachineSetDirectory, Path],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    del programs
    found, directory, file = machine_set
    state = bring_up(found, directory, file, how(tmp_path))
    reader, writer = os.pipe()
    os.close(reader)
    nobody = os.fdopen(writer, "w", buffering=1)
    monkeypatch.setattr(sys, "stderr", nobody)
    progress = StepLines(quiet=False)
    assert take_down(directory, progress, stop_s=0.1) == ["a", "b"]
    monkeypatch.undo()
    with contextlib.suppress(BrokenPipeError):
        nobody.close()  # it may hold a line that was not written
    assert not state.alive()
    assert read_state(directory.state) is None


def test_a_machine_boots_an_image_of_ones_own_as_an_overlay(programs: Path, tmp_path: Path) -> None:
    del programs
    disk = tmp_path / "mine.raw"
    disk.write_bytes(bytes(510) + b"\x55\xaa" + bytes(1 << 20))
    before = disk.read_bytes()
    text = MACHINES.replace("{role: receiver}", "{role: receiver, image: mine.raw}")
    with machine_set_of(tmp_path, text) as (found, directory, file):
        state = bring_up(found, directory, file, how(tmp_path))
        assert (state.machines["b"].kernel, state.machines["b"].release) == ("its own", None)
        command = (directory.path / "machines/b/qemu.command").read_text().split()
        assert "-kernel" not in command
        seed = directory.path / "machines/b/seed"
        assert {each.name for each in seed.iterdir()} == {"meta-data", "user-data", "network-config"}
        assert directory.key.with_suffix(".pub").read_text().strip() in (seed / "user-data").read_text()
        told = subprocess.run(
            ["qemu-img", "info", "-U", str(directory.path / "machines/b/disk.qcow2")],
            capture_output=True,
            text=True,
            check=True,
        )
        assert f"backing file: {disk}" in told.stdout
        take_down(directory, lambda *_: None, stop_s=0.1)
    assert not (directory.path / "machines/b/seed").exists()
    assert disk.read_bytes() == before


def test_a_machine_set_whose_clock_is_ours_is_left_alone(
    programs: Path,
    machine_set: tuple[MachineSet, MachineSetDirectory, Path],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    del programs
    found, directory, file = machine_set
    assert found.virtual is not None
    real = found.model_copy(update={"virtual": found.virtual.model_copy(update={"dilation": 1})})
    assert {machine.dilation for machine in bring_up(real, directory, file, how(tmp_path)).machines.values()} == {1}
    assert "LD_PRELOAD" not in (directory.path / "machines/a/qemu.command").read_text()
    take_down(directory, lambda *_: None, stop_s=0.1)
    monkeypatch.setattr(life, "cached_why_no_kvm", lambda *_: None)
    slow = found.model_copy(update={"virtual": found.virtual.model_copy(update={"dilation": 20})})
    for machine in bring_up(slow, directory, file, how(tmp_path / "other")).machines.values():
        assert (machine.dilation, machine.accelerator) == (20, "tcg"), "KVM's clock cannot be dilated"
        assert machine.why_no_kvm == WHY_EMULATED
    take_down(directory, lambda *_: None, stop_s=0.1)


def test_what_a_killed_howdah_has_left_is_cleaned_up_first(
    programs: Path, machine_set: tuple[MachineSet, MachineSetDirectory, Path], tmp_path: Path
) -> None:
    del programs
    found, directory, file = machine_set
    left, remembered = _sleeper()
    machine = MachineState(remembered, 1, "tcg", None, "debian-6.12", "6.12.0", "a package", {})
    MachineSetState({"a": machine}).write(directory.state)
    stale = directory.path / "machines" / "a" / "disk.qcow2"
    stale.parent.mkdir(parents=True)
    stale.write_text("of before")
    state = bring_up(found, directory, file, how(tmp_path))
    assert left.wait(timeout=10) == -15
    assert set(state.alive()) == {"a", "b"}
    assert stale.read_bytes()[:4] == b"QFI\xfb"


def test_a_number_that_another_process_has_got_is_left_alone(
    machine_set: tuple[MachineSet, MachineSetDirectory, Path],
) -> None:
    _, directory, _ = machine_set
    other, remembered = _sleeper()
    try:
        for wrong in (
            StartedProcess(other.pid, remembered.start_ticks - 1, remembered.mark),
            StartedProcess(other.pid, remembered.start_ticks, "howdah-attic-a"),
        ):
            MachineSetState({"a": MachineState(wrong, 1, "tcg", None, "debian-6.12", None, "", {})}).write(
                directory.state
            )
            assert clear(directory) == []
            assert other.poll() is None
    finally:
        other.kill()
        other.wait()
    assert start_ticks(other.pid) is None


def test_a_machine_whose_qemu_ends_is_told_with_qemus_words(
    programs: Path, machine_set: tuple[MachineSet, MachineSetDirectory, Path], tmp_path: Path
) -> None:
    found, directory, file = machine_set
    (programs / "behaviour").write_text("dies")
    with pytest.raises(RunFailedError, match="machine a ended: qemu: no such thing") as caught:
        bring_up(found, directory, file, how(tmp_path))
    assert "last line of howdah-attic-a" in str(caught.value)
    assert read_state(directory.state) is None


def test_a_kernel_that_panics_is_told_before_the_limit(
    programs: Path, machine_set: tuple[MachineSet, MachineSetDirectory, Path], tmp_path: Path
) -> None:
    found, directory, file = machine_set
    (programs / "behaviour").write_text("panics")
    with pytest.raises(RunFailedError, match=r"machine [ab] ended"):
        bring_up(found, directory, file, how(tmp_path, limit_s=3600))


def test_a_port_that_somebody_was_quicker_to_take_is_replaced(
    programs: Path, machine_set: tuple[MachineSet, MachineSetDirectory, Path], tmp_path: Path
) -> None:
    found, directory, file = machine_set
    (programs / "behaviour").write_text("port")
    assert len(bring_up(found, directory, file, how(tmp_path)).alive()) == 2


def test_a_machine_that_never_boots_is_told_with_its_console_and_nothing_stays(
    programs: Path, machine_set: tuple[MachineSet, MachineSetDirectory, Path], tmp_path: Path
) -> None:
    found, directory, file = machine_set
    (programs / "behaviour").write_text("silent")
    with pytest.raises(RunFailedError, match=r"does not answer by SSH after 0\.5 s") as caught:
        bring_up(found, directory, file, how(tmp_path, limit_s=0.5))
    assert "last line of howdah-attic-" in str(caught.value)
    assert not [path for path in Path("/proc").glob("[0-9]*/cmdline") if b"howdah-attic-" in _bytes(path)]


def _bytes(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:
        return b""


@pytest.mark.parametrize(
    ("said", "told"),
    [
        ("root@127.0.0.1: Permission denied (publickey).\n", "refuses the machine set's key"),
        ("Host key verification failed.\n", "is not the one this machine set knows"),
    ],
)
def test_a_machine_that_refuses_is_told_at_once(
    programs: Path, machine_set: tuple[MachineSet, MachineSetDirectory, Path], tmp_path: Path, said: str, told: str
) -> None:
    found, directory, file = machine_set
    (programs / "refused").write_text(said)
    with pytest.raises(UnreachableError, match=told) as caught:
        bring_up(found, directory, file, how(tmp_path, limit_s=3600))
    assert caught.value.final
    assert read_state(directory.state) is None


def test_a_machine_that_is_not_there_yet_is_waited_for(programs: Path, tmp_path: Path) -> None:
    (programs / "refused").write_text("ssh: connect to host 127.0.0.1 port 1: Connection refused\n")
    with pytest.raises(UnreachableError, match="SSH cannot connect") as caught:
        SshRoute("a", "127.0.0.1", 1, "root", tmp_path, accept_new=False).run(["true"], timeout_s=10)
    assert not caught.value.final


def test_two_at_one_machine_set_are_one_too_many(machine_set: tuple[MachineSet, MachineSetDirectory, Path]) -> None:
    _, directory, _ = machine_set
    script = (
        "import sys, time; from pathlib import Path; from howdah.machines.state import locked\n"
        "with locked(Path(sys.argv[1]), 'howdah machines run'):\n    print('held', flush=True); time.sleep(600)"
    )
    holder = subprocess.Popen([sys.executable, "-c", script, str(directory.path)], stdout=subprocess.PIPE)
    try:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"held\n"
        with (
            pytest.raises(HowdahError, match=f"process {holder.pid}, howdah machines run"),
            locked(directory.path, "me"),
        ):
            pass
    finally:
        holder.kill()
        holder.wait()
    with locked(directory.path, "me"):
        assert str(os.getpid()) in (directory.path / ".lock").read_text()


def test_machines_of_a_run_end_with_it(
    programs: Path, machine_set: tuple[MachineSet, MachineSetDirectory, Path], tmp_path: Path
) -> None:
    """kill -9 on the process that started them: nothing of it survives."""
    del programs
    found, directory, file = machine_set
    if shutil.which("gcc") is None:
        pytest.skip("gcc is not installed")
    child = os.fork()
    if child == 0:
        try:
            bring_up(found, directory, file, StartOptions(Cache(tmp_path / "cache"), lambda *_: None, bound=True))
            time.sleep(600)
        finally:
            os._exit(1)
    end = time.monotonic() + 60
    while (state := read_state(directory.state)) is None or len(state.machines) < 2 or not state.times_s:
        assert time.monotonic() < end, "the machine set did not come up"
        time.sleep(0.05)
    assert set(state.alive()) == {"a", "b"}
    os.kill(child, 9)
    os.waitpid(child, 0)
    assert all(machine.process.wait(10) for machine in state.machines.values())
