# SPDX-License-Identifier: Apache-2.0
"""Machines whose wires are taps, with stand-ins for QEMU: which tap each machine gets, and that none is left behind."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from howdah.errors import EngineUnavailableError, HowdahError
from howdah.machines import life, tap
from howdah.machines.inventory import MachineSetDirectory
from howdah.machines.life import bring_up, take_down
from howdah.machines.machine_set import MachineSet
from howdah.machines.state import read_state
from tests.unit.test_machines_life import how, machine_set_of, programs

__all__ = ["programs"]  # a fixture
MACHINES = """\
name: attic
monitor: b
virtual: {kernel: debian-6.12, taps: true}
hosts:
  a: {role: sender}
  b: {role: emulator}
  c: {role: receiver}
wires:
  left: [a, b]
  right: [b, c]
"""


@pytest.fixture
def machine_set(tmp_path: Path) -> Iterator[tuple[MachineSet, MachineSetDirectory, Path]]:
    try:
        tap.require()
    except EngineUnavailableError as error:
        pytest.skip(str(error))
    with machine_set_of(tmp_path, MACHINES) as found:
        yield found


def _taps(namespace: str) -> set[str]:
    return set(tap.lost(namespace))


def _inherited(pid: int) -> int:
    """How many taps a process has."""
    links = [os.path.realpath(entry) for entry in list(Path(f"/proc/{pid}/fd").iterdir())]
    return links.count("/dev/net/tun")


@pytest.mark.usefixtures("programs")
def test_every_end_of_a_wire_is_a_tap_of_its_machine(
    machine_set: tuple[MachineSet, MachineSetDirectory, Path], tmp_path: Path
) -> None:
    found, directory, file = machine_set
    state = bring_up(found, directory, file, how(tmp_path))
    assert state.namespace is not None
    assert read_state(directory.state) == state
    assert _taps(state.namespace) == {
        *("left to a", "left to b", "right to b", "right to c"),
        *("control to a", "control to b", "control to c"),  # monitoring's segment is a bridge of all
    }
    assert {name: _inherited(each.process.pid) for name, each in state.machines.items()} == {"a": 2, "b": 3, "c": 2}
    assert _inherited(os.getpid()) == 0, "QEMU alone holds them: they go when it ends"
    assert not list((directory.path / "wires").iterdir())
    take_down(directory, lambda *_: None, stop_s=0.1)
    assert not Path("/run/netns", state.namespace).exists()


@pytest.mark.usefixtures("programs")
def test_wires_of_a_killed_howdah_are_cleaned_up(
    machine_set: tuple[MachineSet, MachineSetDirectory, Path], tmp_path: Path
) -> None:
    found, directory, file = machine_set
    first = bring_up(found, directory, file, how(tmp_path))
    for machine in first.machines.values():  # the machines as well as howdah: a power failure, nearly
        machine.process.end(5.0)
    assert first.namespace is not None
    end = time.monotonic() + 10
    while _taps(first.namespace):  # the kernel takes its time to remove a tap that nobody holds
        assert time.monotonic() < end
        time.sleep(0.05)
    again = bring_up(found, directory, file, how(tmp_path))
    assert len(_taps(first.namespace)) == 7
    assert set(again.alive()) == {"a", "b", "c"}


def test_a_machine_set_that_fails_leaves_no_wires(
    machine_set: tuple[MachineSet, MachineSetDirectory, Path],
    programs: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    found, directory, file = machine_set
    namespace = tap.TapNetwork(found.name, directory.path).namespace
    (programs / "behaviour").write_text("dies")
    with pytest.raises(HowdahError, match="no such thing"):
        bring_up(found, directory, file, how(tmp_path))
    assert not Path("/run/netns", namespace).exists()
    (programs / "behaviour").write_text("answers")
    missing = found.model_copy(update={"wires": {"left": ["a", "b"]}})
    monkeypatch.setattr(life, "macs_of", lambda *_: {"left": "52:54:00:00:00:02", "right": "52:54:00:00:00:03"})
    with pytest.raises(HowdahError, match="right"):
        bring_up(missing, directory, file, how(tmp_path))
    assert not Path("/run/netns", namespace).exists()
    assert _inherited(os.getpid()) == 0


def test_without_root_it_is_refused_before_anything_is_made(
    machine_set: tuple[MachineSet, MachineSetDirectory, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found, directory, file = machine_set
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    monkeypatch.setattr(life, "provide_machine_kernel", lambda *_: pytest.fail("a kernel was fetched"))
    with pytest.raises(EngineUnavailableError, match="wires by taps need root"):
        bring_up(found, directory, file, replace(how(tmp_path), bound=False))
    ran = subprocess.run(["ip", "netns", "list"], capture_output=True, text=True, check=True)
    assert tap.TapNetwork(found.name, directory.path).namespace not in ran.stdout
