# SPDX-License-Identifier: Apache-2.0
"""Virtual machines: machines files, QEMU's command lines, one image as several machines, priority while measuring."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

from howdah.build.cache import Cache
from howdah.engine.machines.priority import with_priority
from howdah.errors import HowdahError, ProfileError
from howdah.machines.inventory import directory_of, inventory_of
from howdah.machines.kernel import provide_machine_kernel
from howdah.machines.life import hub_of, macs_of, plugs_of
from howdah.machines.machine_set import load_machine_set
from howdah.machines.personal import MANAGE_ADDRESS, personal_files, write_initrd, write_seed
from howdah.machines.qemu import MANAGE_MAC, Hub, Plug, VirtualMachine, check_image, command_line
from howdah.machines.state import MachineSetState, MachineState, StartedProcess

ROOT = Path(__file__).resolve().parents[2]
SHIPPED = ROOT / "playbooks" / "machines" / "virtual.yaml"
GOOD = """\
name: attic
monitor: b
virtual: {kernel: debian-6.1, memory: 400 MiB}
hosts:
  a: {role: sender}
  b: {role: emulator, processors: 2}
  c: {role: receiver, kernel: debian-6.12}
wires:
  left: [a, b]
  right: [b, c]
"""


def _file(directory: Path, text: str) -> Path:
    path = directory / "machines.yaml"
    path.write_text(text, encoding="utf-8")
    return path


def test_the_shipped_machine_set_has_a_path_from_its_sender_through_its_emulator_to_its_receiver() -> None:
    machine_set = load_machine_set(SHIPPED)
    roles = {host.role: name for name, host in machine_set.hosts.items()}
    reached = {wire: {end.host for end in machine_set.ends(wire)} for wire in machine_set.wires}
    assert {roles["sender"], roles["emulator"]} in reached.values()
    assert {roles["emulator"], roles["receiver"]} in reached.values()


def test_virtual_hosts_get_addresses_and_a_link_of_monitoring_by_themselves(tmp_path: Path) -> None:
    machine_set = load_machine_set(_file(tmp_path, GOOD))
    assert {host.address for host in machine_set.hosts.values()} == {"127.0.0.1"}
    assert len({host.listen_address for host in machine_set.hosts.values()} - {"127.0.0.1"}) == 3
    assert machine_set.watched() == ["a", "b", "c"]
    assert machine_set.interfaces("b") == {"left": "left", "right": "right"}
    unwatched = load_machine_set(_file(tmp_path, GOOD.replace("monitor: b\n", "")))
    assert {host.listen_address for host in unwatched.hosts.values()} == {"127.0.0.1"}


@pytest.mark.parametrize(
    ("old", "new", "line", "said"),
    [
        ("debian-6.1,", "debian6.1,", 3, "there is no kernel 'debian6.1'"),
        ("debian-6.12", "./mine.deb", 7, "there is no kernel './mine.deb'"),
        ("{role: sender}", "{role: sender, address: 192.0.2.1}", 5, "gets this automatically"),
        ("{role: sender}", "{role: sender, memory: 64 MiB}", 5, "256 MiB at the least"),
        (
            "{role: sender}",
            "{role: sender, links: {left: 10.1.0.1/24, middle: 10.2.0.1/24}}",
            5,
            "no wire of that name",
        ),
        ("{role: sender}", "{role: sender, links: {manage: 10.1.0.1/24}}", 5, "gets this link automatically"),
        ("{role: sender}", "{role: sender, image: no.qcow2}", 5, "there is no file no.qcow2"),
        ("{role: emulator, processors: 2}", "{role: emulator, image: machines.yaml}", 2, "gets no monitoring link"),
        ("memory: 400 MiB}", "memory: 400 MiB, taps: perhaps}", 3, "virtual.taps"),
        ("[a, b]", "[a]", 9, "a wire has two ends, not 1"),
        ("[a, b]", "[a, d]", 9, "there is no host 'd'"),
        ("[a, b]", "[a, 'b:eth1']", 9, "has the wire's name"),
        ("[a, b]", "[a, a]", 9, "is an end of left already"),
        ("left:", "control:", 9, "cannot be called control"),
        ("left:", "much-too-long-name:", 9, "does not have the form"),
        ("virtual: {kernel: debian-6.1, memory: 400 MiB}\n", "", 4, "the field 'address' is missing"),
    ],
)
def test_a_wrong_file_is_refused_with_its_line(tmp_path: Path, old: str, new: str, line: int, said: str) -> None:
    assert old in GOOD
    path = _file(tmp_path, GOOD.replace(old, new))
    with pytest.raises(ProfileError) as caught:
        load_machine_set(path)
    assert said in str(caught.value)
    assert caught.value.where == f"{path}:{line}"


def test_wires_of_real_machines_name_their_interfaces(tmp_path: Path) -> None:
    text = """\
name: rack
hosts:
  a: {role: sender, address: 192.0.2.1}
  b: {role: emulator, address: 192.0.2.2}
wires:
  left: ['a:enp2s0', 'b:enp3s0.7']
"""
    machine_set = load_machine_set(_file(tmp_path, text))
    assert machine_set.interfaces("a") == {"left": "enp2s0"}
    assert machine_set.interfaces("b") == {"left": "enp3s0.7"}
    with pytest.raises(ProfileError, match="expected HOST:INTERFACE, not 'a'"):
        load_machine_set(_file(tmp_path, text.replace("'a:enp2s0'", "a")))
    with pytest.raises(ProfileError, match="this is for virtual machines"):
        load_machine_set(_file(tmp_path, text.replace("{role: sender,", "{role: sender, memory: 1 GiB,")))


def test_every_socket_has_one_listener_and_one_caller(tmp_path: Path) -> None:
    machine_set = load_machine_set(_file(tmp_path, GOOD))
    listening: list[str] = []
    calling: list[str] = []
    for name in machine_set.hosts:
        macs = macs_of(machine_set, name)
        for plug in plugs_of(machine_set, name, macs):
            (listening if plug.listens else calling).append(plug.socket)
        hub = hub_of(machine_set, name, macs)
        listening += hub.sockets if hub else ()
    assert sorted(listening) == sorted(calling)
    assert len(set(listening)) == len(listening) == 4  # two wires, and monitoring's to a and c


def test_no_two_interfaces_have_one_address(tmp_path: Path) -> None:
    machine_set = load_machine_set(_file(tmp_path, GOOD))
    macs = [mac for name in machine_set.hosts for mac in macs_of(machine_set, name).values()]
    assert len(set(macs)) == len(macs) == 7
    assert {mac[:2] for mac in macs} == {"52"}  # locally administered, and of one station


def _machine(**changes: object) -> VirtualMachine:
    values: dict[str, object] = {
        "machine_set": "attic",
        "name": "b",
        "accelerator": "tcg",
        "memory_bytes": 400 << 20,
        "processors": 2,
        "disk": "machines/b/disk.qcow2",
        "port": 2222,
        "console": "machines/b/console.log",
        "pid_file": "machines/b/pid",
        "kernel": Path("/boot/vmlinuz"),
        "initrd": "machines/b/initrd",
        "plugs": (Plug("52:54:00:00:00:02", "wires/left", listens=True),),
        "hub": Hub("52:54:00:00:00:03", ("wires/.control-a", "wires/.control-c")),
    }
    return VirtualMachine(**(values | changes))  # type: ignore[arg-type]


def test_a_machine_is_reached_by_a_port_of_loopback_and_reaches_nothing() -> None:
    command = command_line(_machine())
    assert "user,id=manage,restrict=on,hostfwd=tcp:127.0.0.1:2222-:22" in command
    sockets = [word for word in command if word.startswith("stream,")]
    assert len(sockets) == 3
    assert all("addr.type=unix" in word for word in sockets)
    assert not [word for word in command if "0.0.0.0" in word or word.startswith(("tap,", "bridge,"))]


def test_a_tap_is_inherited_and_offers_no_offloading() -> None:
    command = command_line(_machine(plugs=(Plug("52:54:00:00:00:02", tap=7),), hub=None))
    assert "tap,id=wire0,fd=7" in command  # the descriptor was opened without IFF_VNET_HDR: frames as on a cable
    assert not [word for word in command if word.startswith("stream,")]


def test_a_disk_with_a_boot_loader_gets_no_kernel_and_may_restart() -> None:
    own = command_line(_machine(kernel=None, initrd=None, seed="machines/b/seed"))
    assert "-kernel" not in own
    assert "-no-reboot" not in own
    assert any("label=CIDATA" in word for word in own)
    assert "-no-reboot" in command_line(_machine())  # a kernel that restarts has panicked


def test_kvm_runs_the_processor_that_is_there() -> None:
    command = command_line(_machine(accelerator="kvm"))
    assert command[command.index("-accel") + 1] == "kvm"
    assert command[command.index("-cpu") + 1] == "host"


def test_what_is_a_machines_own_is_laid_over_its_disk(tmp_path: Path) -> None:
    macs, links = {"left": "52:54:00:00:00:02", "control": "52:54:00:00:00:03"}, {"control": "10.99.0.2/24"}
    files = personal_files("attic", "b", macs, links, {"a": "10.99.0.1"}, "ssh-ed25519 AAAA key\n", "SECRET\n")
    assert files["etc/hostname"][0] == "b\n"
    assert files["etc/ssh/ssh_host_ed25519_key"] == ("SECRET\n", 0o600)
    assert "10.99.0.1 a\n" in files["etc/hosts"][0]
    assert "Name=left" in files["etc/systemd/network/10-left.link"][0]
    assert "etc/systemd/network/10-left.network" not in files  # left alone, for a run to take
    assert "10.99.0.2/24" in files["etc/systemd/network/10-control.network"][0]
    assert not [text for text, _ in files.values() if "Gateway" in text]
    first = tmp_path / "first"
    first.write_bytes(b"")
    write_initrd(tmp_path / "initrd", first, files)
    assert b"put/root/.ssh/authorized_keys" in (tmp_path / "initrd").read_bytes()


def test_the_inventory_leads_to_the_ports_of_machines_that_run(tmp_path: Path) -> None:
    machine_set = load_machine_set(_file(tmp_path, GOOD))
    process = StartedProcess(1, 1, "mark")
    machine = MachineState(process, 2201, "tcg", None, "debian-6.1", "6.1.0-1-amd64", "a package", {})
    state = MachineSetState(dict.fromkeys(machine_set.hosts, machine))
    found = inventory_of(machine_set, directory_of(machine_set, tmp_path), tmp_path / "machines.yaml", state)["all"][
        "hosts"
    ]["a"]
    assert found["ansible_port"] == 2201
    assert found["howdah_kernel_package"] == "external"
    assert found["modules_wanted"] is False  # none was built: there were no headers
    assert found["howdah_from_image"] is False  # of other sources than those here, so it is set up in all
    assert found["ansible_python_interpreter"] == "/usr/bin/python3"  # nobody has to look for it


def test_a_machine_of_ones_own_image_keeps_its_kernel_and_gets_no_packages(tmp_path: Path) -> None:
    (tmp_path / "disk.qcow2").write_bytes(b"")
    machine_set = load_machine_set(_file(tmp_path, GOOD.replace("{role: sender}", "{role: sender, image: disk.qcow2}")))
    process = StartedProcess(1, 1, "mark")
    machine = MachineState(process, 2201, "tcg", None, "its own", None, "disk.qcow2", {})
    state = MachineSetState(dict.fromkeys(machine_set.hosts, machine))
    found = inventory_of(machine_set, directory_of(machine_set, tmp_path), tmp_path / "machines.yaml", state)["all"][
        "hosts"
    ]["a"]
    assert found["howdah_kernel_package"] == "external"
    assert found["howdah_own_image"] is True
    assert "modules_wanted" not in found  # the machine is asked whether it can build them
    assert "ansible_python_interpreter" not in found  # nor does anybody know its Python
    assert machine_set.watched() == ["b", "c"]


def test_cloud_init_gets_the_key_and_the_names_of_the_interfaces(tmp_path: Path) -> None:
    macs = {"left": "52:54:00:00:00:02", "right": "52:54:00:00:00:03"}
    write_seed(tmp_path / "seed", "attic", "b", macs, {"right": "10.1.0.1/24"}, "ssh-ed25519 AAAA key\n")
    user = (tmp_path / "seed/user-data").read_text()
    assert user.startswith("#cloud-config\n")
    assert YAML(typ="safe").load(user)["ssh_authorized_keys"] == ["ssh-ed25519 AAAA key"]
    assert YAML(typ="safe").load((tmp_path / "seed/meta-data").read_text())["local-hostname"] == "b"
    network = YAML(typ="safe").load((tmp_path / "seed/network-config").read_text())
    assert network["version"] == 2
    found = network["ethernets"]
    assert {name: each["match"]["macaddress"] for name, each in found.items()} == {"manage": MANAGE_MAC, **macs}
    assert {name: each["addresses"] for name, each in found.items()} == {
        "manage": [MANAGE_ADDRESS],
        "left": [],  # a run takes it as it is
        "right": ["10.1.0.1/24"],
    }
    assert all(each["set-name"] == name and each["dhcp4"] is False for name, each in found.items())


@pytest.fixture
def qemu_img(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """qemu-img, or where there is none one that calls every file raw, as the real one does without a format's mark."""
    if shutil.which("qemu-img") is None:
        (tmp_path / "qemu-img").write_text('#!/bin/sh\necho \'{"format": "raw"}\'\n')
        (tmp_path / "qemu-img").chmod(0o755)
        monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")


@pytest.mark.usefixtures("qemu_img")
def test_an_image_that_is_none_is_told(tmp_path: Path) -> None:
    image = tmp_path / "disk.img"
    image.write_bytes(b"this is a text" * 100)
    with pytest.raises(HowdahError, match="is not a disk image"):
        check_image(image, "machines.yaml:7")
    image.write_bytes(b"")
    with pytest.raises(HowdahError, match="is empty"):
        check_image(image, "machines.yaml:7")
    image.write_bytes(bytes(510) + b"\x55\xaa" + bytes(1 << 20))
    assert check_image(image, "machines.yaml:7") == "raw"


def test_a_kernel_package_that_is_none_is_told(tmp_path: Path) -> None:
    package = tmp_path / "mine.deb"
    package.write_bytes(b"no archive")
    cache = Cache(tmp_path / "cache")
    with pytest.raises(HowdahError, match="this is not a Debian package"):
        provide_machine_kernel("mine.deb", tmp_path, cache, lambda *_: None)
    (tmp_path / "tree" / "boot").mkdir(parents=True)
    with pytest.raises(HowdahError, match="there is none"):
        provide_machine_kernel("tree", tmp_path, cache, lambda *_: None)
    (tmp_path / "tree" / "boot" / "vmlinuz-6.12.9").write_bytes(b"a text")
    (tmp_path / "tree" / "lib/modules/6.12.9").mkdir(parents=True)
    with pytest.raises(HowdahError, match="is not a Linux kernel for this processor"):
        provide_machine_kernel("tree", tmp_path, cache, lambda *_: None)


def test_a_kernel_of_ones_own_is_a_directory_with_boot_and_modules(tmp_path: Path) -> None:
    tree = tmp_path / "tree"
    (tree / "boot").mkdir(parents=True)
    (tree / "lib/modules/6.12.9").mkdir(parents=True)
    (tree / "boot" / "vmlinuz-6.12.9").write_bytes(bytes(0x202) + b"HdrS" + bytes(16))
    kernel = provide_machine_kernel("tree", tmp_path, Cache(tmp_path / "cache"), lambda *_: None)
    assert kernel.release == "6.12.9"
    assert kernel.headers is None
    os.utime(tree, (1, 1))
    again = provide_machine_kernel("tree", tmp_path, Cache(tmp_path / "cache"), lambda *_: None)
    assert again.key != kernel.key  # it was installed anew


@dataclass
class Stub:
    name: str
    role: str
    state: Any


@dataclass
class State:
    process: Any


@dataclass
class Process:
    pid: int


@pytest.fixture
def process() -> Iterator[int]:
    running = subprocess.Popen(["sleep", "60"], start_new_session=True)
    yield running.pid
    running.kill()
    running.wait()


def test_it_is_given_back(process: int) -> None:
    if os.geteuid() != 0:
        pytest.skip("going before others needs root")
    said: list[str] = []
    for role in ("sender", "emulator"):
        machine: Any = Stub("m", role, State(Process(process)))
        with with_priority([machine], said.append):
            assert os.sched_getscheduler(process) == os.SCHED_FIFO
        assert os.sched_getscheduler(process) == os.SCHED_OTHER
    assert said == []


def test_real_machines_are_left_alone_and_one_that_ended_is_told() -> None:
    said: list[str] = []
    real: Any = Stub("real", "sender", None)
    ended: Any = Stub("gone", "sender", State(Process(2**22 + 5)))
    with with_priority([real, ended], said.append):
        assert len(said) == 1 and said[0].startswith("gone does not go before other processes")
