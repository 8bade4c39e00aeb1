# SPDX-License-Identifier: Apache-2.0
"""``howdah lab``: the inventory and keys that the playbooks need to set up machines of one's own."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from howdah.command.common import add_json_option
from howdah.lab.inventory import directory_of, remove_directory, write_inventory
from howdah.lab.lab import load_lab


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser("lab", help="inventory and keys of a lab of your own machines, for playbooks/")
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    for name, text in (
        ("inventory", "check a lab file; write its inventory, and a key pair of its own the first time"),
        ("remove", "remove a lab's inventory, keys and known hosts from this machine"),
    ):
        action = actions.add_parser(name, help=text)
        action.add_argument("file", type=Path, help="the lab file, e.g. playbooks/labs/example.yaml")
        action.add_argument(
            "--labs", type=Path, default=Path("var/labs"), metavar="DIR", help="where labs lie (default: ./var/labs)"
        )
        add_json_option(action)
        action.set_defaults(execute=_inventory if name == "inventory" else _remove)


def _say(options: argparse.Namespace, value: dict[str, object], lines: list[str]) -> int:
    sys.stdout.write(json.dumps(value) + "\n" if options.json else "\n".join(lines) + "\n")
    return 0


def _inventory(options: argparse.Namespace) -> int:
    lab = load_lab(options.file)
    directory = directory_of(lab, options.labs)
    is_new = write_inventory(lab, directory, options.file)
    lines = [f"inventory: {directory.inventory}"]
    if is_new:
        lines.append(f"new key: {directory.key}.pub; allow it on each host (ssh-copy-id -i {directory.key}.pub HOST)")
    lines.append(f"next: ansible-playbook -i {directory.inventory} playbooks/site.yml")
    value = {"inventory": str(directory.inventory), "public_key": f"{directory.key}.pub", "new_key": is_new}
    return _say(options, value, lines)


def _remove(options: argparse.Namespace) -> int:
    directory = directory_of(load_lab(options.file), options.labs)
    remove_directory(directory)
    return _say(options, {"removed": str(directory.path)}, [f"removed {directory.path}"])
