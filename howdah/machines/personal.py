# SPDX-License-Identifier: Apache-2.0
"""What makes a virtual machine of an image this very one: its name, keys, network. Laid over the disk at boot."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path

from howdah.build.cpio import Writer
from howdah.machines.qemu import MANAGE_MAC
from howdah.machines.wire import CONTROL, MANAGE

# What QEMU's user network gives its one machine. There is no route to anywhere.
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
    """Path below / to content and permissions.

    ``macs`` are of its interfaces, by name; ``links`` have addresses, ``peers`` are other hosts' on the link of
    monitoring. An interface without an address is named and left alone, down: a run takes it as it is.
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
    # Its own address, not one that a run gives it, and not a VLAN that inherits it.
    place = f"etc/systemd/network/10-{name}"
    files = {f"{place}.link": (f"[Match]\nPermanentMACAddress={mac}\nDriver=virtio_net\n[Link]\nName={name}\n", 0o644)}
    if address is not None:
        # Of the two that are not the machine set's wires nothing waits for an answer.
        own = "LinkLocalAddressing=no\nIPv6AcceptRA=no\n"
        text = f"[Match]\nName={name}\n[Network]\nAddress={address}\n{own}"
        if name in (MANAGE, CONTROL):
            text += "[Link]\nRequiredForOnline=no\n"
        files[f"{place}.network"] = (text, 0o644)
    return files


def write_initrd(target: Path, first: Path, files: Mapping[str, tuple[str, int]]) -> None:
    """The first file system: ``first`` (an archive), and below /put the files."""
    with target.open("wb") as file:
        file.write(first.read_bytes())
        archive = Writer(file)
        archive.parents(f"put/{name}" for name in files)
        for name, (content, mode) in sorted(files.items()):
            archive.data(f"put/{name}", content.encode(), mode)
        archive.close()
