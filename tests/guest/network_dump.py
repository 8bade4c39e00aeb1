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

INPUTS = Path("/howdah/in")
OUTPUT = Path("/howdah/out")
LINK_WATCH_S = 3  # until the kernel's link watch has settled every operational state; virtual


def shown(*command: str) -> Any:
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=True)
    return json.loads(done.stdout or "[]")


def main(wiring_kind: str) -> None:
    plan = json.loads((INPUTS / "plan.json").read_text())
    wiring = make_wiring(wiring_kind, plan, INPUTS)
    wiring.apply(plan["operations"])
    time.sleep(LINK_WATCH_S)
    found: dict[str, Any] = {}
    for node, namespace in wiring.namespaces.items():
        state = {kind: shown("ip", "-n", node, "-j", "-d", kind, "show") for kind in ("addr", "link", "route", "neigh")}
        state["qdisc"] = shown("tc", "-n", node, "-j", "-d", "qdisc", "show")
        state["class"] = {
            link.name: shown("tc", "-n", node, "-j", "-d", "class", "show", "dev", link.name)
            for link in links(namespace.netlink)
        }
        found[node] = state
    (OUTPUT / f"{wiring_kind}.json").write_text(json.dumps(found))


if __name__ == "__main__":
    main(sys.argv[1])
