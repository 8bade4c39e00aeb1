# SPDX-License-Identifier: Apache-2.0
"""Runs inside a guest: builds the network of /howdah/in/plan.json and writes what ``ip`` and ``tc`` say of it.

Usage: network_dump.py netlink|mininet. Writes /howdah/out/WIRING.json: {node: {"addr", "link", "route", "neigh",
"qdisc", "class": {interface: ...}}}, each as the tool's JSON.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from howdah.agent.wiring import make_wiring
from howdah.linux.netlink.link import links
from howdah.plan.plan import Plan

INPUTS = Path("/howdah/in")
OUTPUT = Path("/howdah/out")
_KINDS = ("addr", "link", "route", "neigh")
LINK_WATCH_S = 3  # until the kernel's link watch has settled every operational state; virtual


def shown(program: str, node: str, commands: list[str]) -> list[Any]:
    """What each command prints: one process for all of a node, because starting one is what takes long in a guest."""
    done = subprocess.run(
        [program, "-n", node, "-j", "-d", "-batch", "-"],
        input="".join(f"{command}\n" for command in commands),
        capture_output=True,
        text=True,
        check=True,
    )
    found, rest, decoder = [], done.stdout.strip(), json.JSONDecoder()
    while rest:
        value, end = decoder.raw_decode(rest)
        found.append(value)
        rest = rest[end:].strip()
    assert len(found) == len(commands), f"{program} of {node} printed {done.stdout!r}"
    return found


def main(wiring_kind: str) -> None:
    plan = Plan.from_json((INPUTS / "plan.json").read_text())
    wiring = make_wiring(wiring_kind, plan, INPUTS)
    wiring.apply(plan.operations)
    time.sleep(LINK_WATCH_S)
    found: dict[str, Any] = {}
    for node, namespace in wiring.namespaces.items():
        state = dict(zip(_KINDS, shown("ip", node, [f"{kind} show" for kind in _KINDS]), strict=True))
        names = [link.name for link in links(namespace.netlink)]
        state["qdisc"], *classes = shown("tc", node, ["qdisc show", *(f"class show dev {name}" for name in names)])
        state["class"] = dict(zip(names, classes, strict=True))
        found[node] = state
    (OUTPUT / f"{wiring_kind}.json").write_text(json.dumps(found))


if __name__ == "__main__":
    main(sys.argv[1])
