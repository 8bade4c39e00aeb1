# SPDX-License-Identifier: Apache-2.0
"""Makes what Ansible needs from a machines file: an inventory and a new key pair, in a private directory."""

from __future__ import annotations

import hmac
import ipaddress
import json
import os
import shlex
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from howdah.build.cache import authentication_code
from howdah.errors import HowdahError, RecordError
from howdah.foreign import read_foreign
from howdah.machines.archive import modules, programs
from howdah.machines.image import sources_key
from howdah.machines.machine_set import DISTRIBUTION, MachineHostSection, MachineSet
from howdah.machines.state import MachineSetState

_ROLE_GROUPS = {"sender": "senders", "emulator": "emulators", "receiver": "receivers"}
# Scrape intervals by the machine's clock: an answer takes an emulated processor a good part of a local second.
_INTERVAL_OF_EMULATED, _INTERVAL_OF_DILATED = "10s", "5s"
_PYTHON_OF_IMAGE = "/usr/bin/python3"
_MARK = ".howdah-machines"
# Characters that cannot be quoted where the path is used.
_NOT_CARRIED = {
    '"': "ends a value in ssh's settings",
    "\\": "changes the next character in ssh's settings",
    "\n": "ends a line in ssh's settings",
    "${": "names a variable in ssh's settings",
    "{{": "begins an expression in Ansible's inventory",
    "{%": "begins an expression in Ansible's inventory",
    "{#": "begins a comment in Ansible's inventory",
}
EXTERNAL = "external"  # the kernel is given to the machine at boot, so none is installed


@dataclass(frozen=True)
class MachineSetDirectory:
    """The private directory of a machine set (mode 0700): ``inventory.json``, ``id_ed25519`` (mode 0600), its ``.pub``,
    ``known_hosts``, and the files for its hosts: ``howdah.zip``, ``modules.tar``."""

    path: Path

    @property
    def inventory(self) -> Path:
        return self.path / "inventory.json"

    @property
    def key(self) -> Path:
        return self.path / "id_ed25519"

    @property
    def known_hosts(self) -> Path:
        return self.path / "known_hosts"

    @property
    def state(self) -> Path:
        """The state of the virtual machines, while they are up."""
        return self.path / "state.json"

    @property
    def mark(self) -> Path:
        """A file that proves that this user's howdah made the directory: its content may be trusted and removed."""
        return self.path / _MARK

    @property
    def code(self) -> str:
        """The content of the mark, which is valid only for this directory."""
        return authentication_code(b"machines\0" + os.fsencode(self.path))


def inventory_of(
    machine_set: MachineSet, directory: MachineSetDirectory, file: Path, state: MachineSetState | None = None
) -> dict[str, Any]:
    """Return Ansible's YAML inventory as plain values: every host is in the groups of its role and its system.

    ``state`` is that of running virtual machines.
    """
    groups: dict[str, dict[str, Any]] = {
        name: {"hosts": {}} for name in (*_ROLE_GROUPS.values(), "monitors", "linux", "freebsd", "windows")
    }
    for name, host in machine_set.hosts.items():
        groups[_ROLE_GROUPS[host.role]]["hosts"][name] = {}
        groups[host.system]["hosts"][name] = {}
    if machine_set.monitor is not None:
        groups["monitors"]["hosts"][machine_set.monitor] = {}
    variables = {
        "howdah_machines": machine_set.name,
        "howdah_machines_public_key_file": str(directory.key.with_suffix(".pub")),
        "howdah_scrape_targets": {name: machine_set.hosts[name].listen_address for name in machine_set.watched()},
    }
    hosts = {name: _host(name, host, directory, file) for name, host in machine_set.hosts.items()}
    for name, machine in (state.machines if state else {}).items():
        hosts[name]["ansible_port"] = machine.port
        if machine.release is None:
            hosts[name] |= {"howdah_kernel_package": EXTERNAL, "howdah_own_image": True}
        else:
            hosts[name] |= {"howdah_kernel_package": EXTERNAL, "modules_wanted": machine.can_have_modules}
            hosts[name]["howdah_from_image"] = machine.image_sources == sources_key()
            # Searching for Python takes Ansible 5 s on an emulated processor.
            hosts[name]["ansible_python_interpreter"] = _PYTHON_OF_IMAGE
        if machine.accelerator != "kvm" and name == machine_set.monitor:
            interval = _INTERVAL_OF_EMULATED if machine.dilation == 1 else _INTERVAL_OF_DILATED
            hosts[name]["prometheus_interval"] = interval
    return {"all": {"vars": variables, "hosts": hosts, "children": groups}}


def _host(name: str, host: MachineHostSection, directory: MachineSetDirectory, file: Path) -> dict[str, Any]:
    found: dict[str, Any] = {
        "ansible_host": host.address,
        "ansible_port": host.ssh_port,
        "ansible_user": host.user,
        "ansible_ssh_private_key_file": _escape_percent(directory.key),  # Ansible quotes it
        "ansible_ssh_common_args": " ".join(
            (
                "-o IdentitiesOnly=yes",
                # Ansible needs one word, and ssh a quoted value in it, because it takes several files.
                "-o " + shlex.quote(f'UserKnownHostsFile="{_escape_percent(directory.known_hosts)}"'),
                "-o StrictHostKeyChecking=accept-new",
                f"-o HostKeyAlias={name}",
            )
        ),
        "howdah_role": host.role,
        "howdah_links": [_link(interface, address) for interface, address in host.links.items()],
        "howdah_listen_address": host.listen_address,
    }
    if host.system == "linux":
        found["howdah_kernel_package"] = host.kernel or DISTRIBUTION
    if host.system == "windows":
        found |= {"ansible_connection": "ssh", "ansible_shell_type": "powershell"}
    elif host.user != "root":
        found["ansible_become"] = True
    if host.system == "freebsd":
        found["ansible_python_interpreter"] = "/usr/local/bin/python3"
    if host.image is not None:
        found["howdah_image"] = str((file.resolve().parent / host.image).resolve())
    return found


def _escape_percent(path: Path) -> str:
    """Escape a file name for ssh's settings, where % begins a token (ssh_config(5), TOKENS)."""
    return str(path).replace("%", "%%")


def _link(interface: str, address: str) -> dict[str, Any]:
    parsed = ipaddress.ip_interface(address)
    return {
        "interface": interface,
        "address": str(parsed.ip),
        "prefix_length": parsed.network.prefixlen,
        "network": str(parsed.network),
    }


def directory_of(machine_set: MachineSet, parent: Path) -> MachineSetDirectory:
    """Return a machine set's directory, absolute because Ansible resolves relative paths from several places.

    Raises HowdahError for a path that ssh's settings or Ansible's inventory cannot represent, and for a directory that
    somebody else made: its content decides which processes are ended, and which hosts are reached and given keys.
    """
    path = parent.resolve() / machine_set.name
    for text, why in _NOT_CARRIED.items():
        if text in str(path):
            raise HowdahError(
                f"the path of the machine set's directory holds {text!r}, which {why}",
                where=str(path),
                hint="Choose another with --machine-sets.",
            )
    directory = MachineSetDirectory(path)
    if (directory.mark.exists() or directory.state.exists()) and not _is_ours(directory):
        raise HowdahError(
            "this machine set is not one that you made here, with this cache",
            where=str(path),
            hint="Choose another directory with --machine-sets. If it is yours, end its machines (ps shows them) and "
            "remove it.",
        )
    return directory


def _is_ours(directory: MachineSetDirectory) -> bool:
    try:
        said = read_foreign(directory.mark).decode()
    except (OSError, RecordError, UnicodeError):
        return False
    return hmac.compare_digest(said.strip().encode(), directory.code.encode())


def write_inventory(
    machine_set: MachineSet, directory: MachineSetDirectory, file: Path, state: MachineSetState | None = None
) -> bool:
    """Make or renew a machine set's directory; its key is made once and kept. Return whether the key is new.

    ``state`` is that of running virtual machines.

    Raises HowdahError if the directory belongs to somebody else, or ssh-keygen is missing or fails.
    """
    path = directory.path
    if path.exists() and not directory.mark.exists():
        raise HowdahError(
            "this is not a directory of a machine set", where=str(path), hint="Choose another with --machine-sets."
        )
    path.mkdir(parents=True, exist_ok=True)
    path.chmod(0o700)
    directory.mark.write_text(f"{directory.code}\n", encoding="utf-8")
    is_new = not directory.key.exists()
    if is_new:
        _make_key(directory.key, f"howdah machines {machine_set.name}")
    text = json.dumps(inventory_of(machine_set, directory, file, state), indent=1) + "\n"
    _replace(directory.inventory, text.encode())
    _replace(path / "howdah.zip", programs())
    _replace(path / "modules.tar", modules())
    return is_new


def _replace(path: Path, content: bytes) -> None:
    """Write unless the content is there already; a reader sees the old file or the whole new one."""
    if path.exists() and path.read_bytes() == content:
        return
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    temporary.write_bytes(content)
    temporary.replace(path)


def _make_key(key: Path, comment: str) -> None:
    program = shutil.which("ssh-keygen")
    if program is None:
        raise HowdahError("the program ssh-keygen is missing", hint="It is part of Debian's openssh-client.")
    done = subprocess.run(
        [program, "-q", "-t", "ed25519", "-N", "", "-C", comment, "-f", str(key)],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        raise HowdahError(f"ssh-keygen failed: {done.stderr.strip()}", where=str(key))


def make_host_key(directory: MachineSetDirectory, name: str) -> str:
    """Return the private host key of a virtual machine, made once; the public key is added to the known hosts."""
    key = directory.path / f"host_{name}"
    if not key.exists():
        _make_key(key, name)
    public = " ".join(key.with_name(f"{key.name}.pub").read_text().split()[:2])
    known = directory.known_hosts.read_text().splitlines() if directory.known_hosts.exists() else []
    line = f"{name} {public}"
    if line not in known:
        kept = [other for other in known if other.split()[:1] != [name]]
        directory.known_hosts.write_text("\n".join([*kept, line]) + "\n")
    return key.read_text()


def remove_directory(directory: MachineSetDirectory) -> None:
    """Remove inventory, key and known hosts from this machine. Raises HowdahError if they do not exist."""
    if not directory.mark.exists():
        raise HowdahError(
            "there is no machine set here to remove",
            where=str(directory.path),
            hint="'howdah machines inventory FILE' makes one.",
        )
    shutil.rmtree(directory.path)
