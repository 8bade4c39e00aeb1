# SPDX-License-Identifier: Apache-2.0
"""Wires by taps: frames from one end to the other, which tap each machine gets, and nothing left behind."""

from __future__ import annotations

import os
import select
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
from howdah.machines.tap import TapNetwork, lost_frames, remove, require
from tests.unit.test_machines_life import how, machine_set_of, programs

ONE, OTHER = bytes.fromhex("525400000001"), bytes.fromhex("525400000002")
LLDP = bytes.fromhex("0180c200000e")


def _frame(size: int, target: bytes = OTHER, mark: int = 0) -> bytes:
    return target + ONE + b"\x88\xb5" + mark.to_bytes(4, "big") + bytes(size - 18)  # an EtherType for experiments


def _read(descriptor: int, limit_s: float = 5.0) -> bytes | None:
    ready, _, _ = select.select([descriptor], [], [], limit_s)
    return os.read(descriptor, 70_000) if ready else None


@pytest.fixture
def network(tmp_path: Path) -> Iterator[TapNetwork]:
    try:
        require()
    except EngineUnavailableError as error:
        pytest.skip(str(error))
    found = TapNetwork("attic", tmp_path)
    found.make(["left", "right"])
    yield found
    remove(found.namespace)


@pytest.fixture
def ends(network: TapNetwork) -> Iterator[dict[str, int]]:
    """Descriptors of the taps, by wire and host."""
    found = {f"{wire}-{host}": network.tap(wire, host) for wire, host in (("left", "a"), ("left", "b"), ("right", "b"))}
    yield found
    for descriptor in found.values():
        os.close(descriptor)


def test_a_frame_arrives_at_the_other_end_and_nowhere_else(ends: dict[str, int]) -> None:
    for size in (60, 1514, 9014):
        os.write(ends["left-a"], _frame(size))
        assert _read(ends["left-b"]) == _frame(size)
    os.write(ends["left-b"], _frame(60, LLDP))  # what a bridge would keep for itself
    assert _read(ends["left-a"]) == _frame(60, LLDP)
    assert _read(ends["right-b"], 0.2) is None


def test_this_machine_sees_nothing_of_it(network: TapNetwork) -> None:
    own = Path("/proc/self/ns/net").readlink()
    os.close(network.tap("left", "a"))
    assert Path("/proc/thread-self/ns/net").readlink() == own
    here = subprocess.run(["ip", "-brief", "link"], capture_output=True, text=True, check=True).stdout
    assert "tap-" not in here
    assert not [line for line in here.splitlines() if line.split()[0] in ("left", "right")]


def test_a_wire_says_nothing_itself(ends: dict[str, int]) -> None:
    """No router is sought, no group is joined: frames of nobody would be in every capture of a run."""
    assert [_read(descriptor, 1.0) for descriptor in ends.values()] == [None, None, None]


def test_what_a_machine_does_not_take_is_counted(network: TapNetwork, ends: dict[str, int]) -> None:
    assert lost_frames(network.namespace) == {"left to a": 0, "left to b": 0, "right to b": 0}
    sent = tap._QUEUE_PACKETS + 500
    for number in range(sent):
        os.write(ends["left-a"], _frame(60, mark=number))
    missing = lost_frames(network.namespace)
    assert 0 < missing["left to b"] <= 500
    assert missing["left to a"] == missing["right to b"] == 0
    taken = 0
    while _read(ends["left-b"], 0.2) is not None:
        taken += 1
    assert taken + missing["left to b"] == sent


def test_the_taps_go_with_who_holds_them_and_the_rest_when_it_is_removed(network: TapNetwork) -> None:
    def links() -> str:
        return subprocess.run(
            ["ip", "-n", network.namespace, "link", "show"], capture_output=True, text=True, check=True
        ).stdout

    descriptor = network.tap("left", "a")
    assert "alias a" in links()
    os.close(descriptor)
    end = time.monotonic() + 10
    while "alias a" in links():
        assert time.monotonic() < end
        time.sleep(0.05)
    assert remove(network.namespace)
    assert not remove(network.namespace)


def test_wires_that_a_killed_howdah_left_are_made_anew(network: TapNetwork) -> None:
    again = TapNetwork(network.machine_set, network.directory)
    again.make(["left"])  # would be refused by names that are taken
    assert lost_frames(again.namespace) == {}


def test_two_machine_sets_of_one_name_have_wires_of_their_own(tmp_path: Path) -> None:
    assert TapNetwork("attic", tmp_path / "one").namespace != TapNetwork("attic", tmp_path / "two").namespace


def test_what_cannot_be_made_is_told_and_nothing_stays(network: TapNetwork) -> None:
    with pytest.raises(HowdahError, match="no-such-wire"):
        network.tap("no-such-wire", "a")
    remove(network.namespace)
    with pytest.raises(HowdahError, match=r"left.*failed"):
        network.make(["left", "left"])
    assert not remove(network.namespace)


def test_only_root_can(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    with pytest.raises(EngineUnavailableError, match="need root") as caught:
        require()
    assert "sockets" in (caught.value.hint or "")


def test_a_machine_without_taps_is_told(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setattr(tap, "_TUN", tmp_path / "tun")
    with pytest.raises(EngineUnavailableError, match="this machine has no taps"):
        require()


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
    return set(tap.lost_frames(namespace))


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
