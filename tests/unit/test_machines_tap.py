# SPDX-License-Identifier: Apache-2.0
"""Wires by taps: frames from one end to the other, nothing else, and nothing left behind."""

from __future__ import annotations

import os
import select
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from howdah.errors import EngineUnavailableError, HowdahError
from howdah.machines import tap
from howdah.machines.tap import TapNetwork, lost, remove, require

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
    assert lost(network.namespace) == {"left to a": 0, "left to b": 0, "right to b": 0}
    sent = tap._QUEUE_PACKETS + 500
    for number in range(sent):
        os.write(ends["left-a"], _frame(60, mark=number))
    missing = lost(network.namespace)
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
    assert lost(again.namespace) == {}


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
