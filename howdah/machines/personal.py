# SPDX-License-Identifier: Apache-2.0
"""The personal files of a virtual machine: its name, keys, network.

With an image of howdah's they are laid over the disk at boot. With the user's own image, cloud-init applies them at the
first boot: a directory becomes a disk called CIDATA, where cloud-init looks for it (data source NoCloud, network
configuration format 2). An image without cloud-init must already have the machine set's key and request an address on
its first interface.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path

from howdah.build.cpio import Writer
from howdah.machines.machine_set import CONTROL, MANAGE
from howdah.machines.qemu import MANAGE_MAC

# The machine's address in QEMU's user network, which has no route to anywhere.
MANAGE_ADDRESS = "10.0.2.15/24"


def personal_files(
    machine_set: str,
    name: str,
    macs: Mapping[str, str],
    links: Mapping[str, str],
    peers: Mapping[str, str],
    public_key: str,
    host_key: str,
) -> dict[str, tuple[str, int]]:
    """Return the files by path below /, with content and permissions.

    ``macs`` and ``links`` map its interfaces to MAC and IP addresses, ``peers`` other hosts to their addresses on the
    monitoring link. An interface without an address only gets its name and stays down: a run configures it.
    """
    hosts = "".join(f"{address} {peer}\n" for peer, address in peers.items())
    files = {
        "etc/hostname": (f"{name}\n", 0o644),
        "etc/hosts": (f"127.0.0.1 localhost\n127.0.1.1 {name}\n{hosts}", 0o644),
        "etc/machine-id": (hashlib.sha256(f"{machine_set}/{name}".encode()).hexdigest()[:32] + "\n", 0o444),
        "root/.ssh/authorized_keys": (public_key, 0o600),
        "etc/ssh/ssh_host_ed25519_key": (host_key, 0o600),
        **_interface(MANAGE, MANAGE_MAC, MANAGE_ADDRESS),
    }
    for interface, mac in macs.items():
        files |= _interface(interface, mac, links.get(interface))
    return files


def _interface(name: str, mac: str, address: str | None) -> dict[str, tuple[str, int]]:
    # Match the permanent address: a run may set another one, and a VLAN would inherit it.
    place = f"etc/systemd/network/10-{name}"
    files = {f"{place}.link": (f"[Match]\nPermanentMACAddress={mac}\nDriver=virtio_net\n[Link]\nName={name}\n", 0o644)}
    if address is not None:
        # Booting must not wait for the two interfaces that are not wires of the machine set.
        own = "LinkLocalAddressing=no\nIPv6AcceptRA=no\n"
        text = f"[Match]\nName={name}\n[Network]\nAddress={address}\n{own}"
        if name in (MANAGE, CONTROL):
            text += "[Link]\nRequiredForOnline=no\n"
        files[f"{place}.network"] = (text, 0o644)
    return files


def write_initrd(target: Path, first: Path, files: Mapping[str, tuple[str, int]]) -> None:
    """Write the initial file system: the archive ``first``, and the files below /put."""
    with target.open("wb") as file:
        file.write(first.read_bytes())
        archive = Writer(file)
        archive.parents(f"put/{name}" for name in files)
        for name, (content, mode) in sorted(files.items()):
            archive.data(f"put/{name}", content.encode(), mode)
        archive.close()


def write_seed(
    seed: Path, machine_set: str, name: str, macs: Mapping[str, str], links: Mapping[str, str], public_key: str
) -> None:
    """Write the files for cloud-init. ``macs`` maps wires to MACs; interfaces not in ``links`` get no address."""
    seed.mkdir(exist_ok=True)
    user = {"disable_root": False, "hostname": name, "ssh_authorized_keys": [public_key.strip()]}
    network = {"version": 2, "ethernets": _ethernets(macs, links)}
    # JSON is also YAML.
    (seed / "meta-data").write_text(_json({"instance-id": f"howdah-{machine_set}-{name}", "local-hostname": name}))
    (seed / "user-data").write_text("#cloud-config\n" + _json(user))
    (seed / "network-config").write_text(_json(network))


def _ethernets(macs: Mapping[str, str], links: Mapping[str, str]) -> dict[str, object]:
    found: dict[str, object] = {MANAGE: _ethernet(MANAGE, MANAGE_MAC, MANAGE_ADDRESS)}
    for wire, mac in macs.items():
        found[wire] = _ethernet(wire, mac, links.get(wire))
    return found


def _ethernet(name: str, mac: str, address: str | None) -> dict[str, object]:
    own: dict[str, object] = {"match": {"macaddress": mac}, "set-name": name, "dhcp4": False, "dhcp6": False}
    return own | {"link-local": [], "optional": True, "addresses": [address] if address else []}


def _json(value: object) -> str:
    return json.dumps(value, indent=1) + "\n"
