# SPDX-License-Identifier: Apache-2.0
"""Two machines whose wire is of taps: what they say to each other passes through this kernel, and all of it."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from howdah.command.main import main
from howdah.errors import EngineUnavailableError
from howdah.machines import tap
from howdah.machines.fleet import Fleet
from howdah.machines.inventory import directory_of
from howdah.machines.machine_set import load_machine_set
from howdah.machines.state import read_state
from tests.vm.conftest import machines_up

pytestmark = [pytest.mark.vm, pytest.mark.timeout(1800)]

MACHINES = """\
name: tapped
virtual: {kernel: debian-6.12, memory: 512 MiB, taps: true}
hosts:
  sender: {role: sender, links: {wire: 10.77.0.1/24}}
  receiver: {role: receiver, links: {wire: 10.77.0.2/24}}
wires:
  wire: [sender, receiver]
"""
PINGS = 20


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    try:
        tap.require()
    except EngineUnavailableError as error:
        pytest.skip(str(error))
    with machines_up(tmp_path_factory.mktemp("sets"), MACHINES) as file:
        yield file


def _counted(namespace: str) -> dict[str, int]:
    """Frames that came from each host."""
    told = subprocess.run(["ip", "-n", namespace, "-s", "-json", "link"], capture_output=True, text=True, check=True)
    return {
        str(link["ifalias"]): int(link["stats64"]["rx"]["packets"])
        for link in json.loads(told.stdout)
        if "master" in link
    }


def test_what_they_say_passes_through_this_kernel_and_all_of_it(file: Path) -> None:
    fleet = Fleet.load(file, file.parent)
    assert fleet.state is not None
    namespace = fleet.state.namespace
    assert namespace is not None
    before = _counted(namespace)
    said = fleet.machines["sender"].check(["ping", "-c", str(PINGS), "-i", "0.02", "-w", "30", "10.77.0.2"])
    assert f"{PINGS} received" in said
    after = _counted(namespace)
    assert all(after[host] - before[host] >= PINGS for host in ("sender", "receiver"))
    assert set(tap.lost_frames(namespace).values()) == {0}
    # Frames are as long as on a cable: nothing is offloaded to a wire.
    features = fleet.machines["sender"].check(["ethtool", "-k", "wire"])
    assert "tcp-segmentation-offload: off" in features
    assert "tx-checksumming: off" in features


def test_they_reach_nothing_else(file: Path) -> None:
    fleet = Fleet.load(file, file.parent)
    assert fleet.state is not None
    told = subprocess.run(
        ["ip", "-n", str(fleet.state.namespace), "-json", "address"], capture_output=True, text=True, check=True
    )
    assert not [link["ifname"] for link in json.loads(told.stdout) if link["addr_info"]]


def test_down_leaves_no_wire(file: Path) -> None:
    state = read_state(directory_of(load_machine_set(file), file.parent).state)
    assert state is not None
    assert main(["machines", "down", str(file), "--machine-sets", str(file.parent)]) == 0
    assert not Path("/run/netns", str(state.namespace)).exists()
