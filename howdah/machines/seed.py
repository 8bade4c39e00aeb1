# SPDX-License-Identifier: Apache-2.0
"""What a disk image of the user's own learns at its first boot, if it has cloud-init: who may log in, its network.

The directory becomes a disk called CIDATA, where cloud-init looks for it (data source NoCloud, network configuration
format 2). An image without cloud-init must have the machine set's key already and ask for an address on its
first interface.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from howdah.machines.personal import MANAGE_ADDRESS
from howdah.machines.qemu import MANAGE_MAC
from howdah.machines.wire import MANAGE


def write_seed(
    seed: Path, machine_set: str, name: str, macs: Mapping[str, str], links: Mapping[str, str], public_key: str
) -> None:
    """``macs`` are of its interfaces, by wire; those in ``links`` have an address, the others are left without."""
    seed.mkdir(exist_ok=True)
    user = {"disable_root": False, "hostname": name, "ssh_authorized_keys": [public_key.strip()]}
    network = {"version": 2, "ethernets": _interfaces(macs, links)}
    # YAML, since JSON is.
    (seed / "meta-data").write_text(_json({"instance-id": f"howdah-{machine_set}-{name}", "local-hostname": name}))
    (seed / "user-data").write_text("#cloud-config\n" + _json(user))
    (seed / "network-config").write_text(_json(network))


def _interfaces(macs: Mapping[str, str], links: Mapping[str, str]) -> dict[str, object]:
    found: dict[str, object] = {MANAGE: _interface(MANAGE, MANAGE_MAC, MANAGE_ADDRESS)}
    for wire, mac in macs.items():
        found[wire] = _interface(wire, mac, links.get(wire))
    return found


def _interface(name: str, mac: str, address: str | None) -> dict[str, object]:
    own: dict[str, object] = {"match": {"macaddress": mac}, "set-name": name, "dhcp4": False, "dhcp6": False}
    return own | {"link-local": [], "optional": True, "addresses": [address] if address else []}


def _json(value: object) -> str:
    return json.dumps(value, indent=1) + "\n"
