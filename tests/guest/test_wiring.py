# SPDX-License-Identifier: Apache-2.0
"""The network the agent builds over netlink is the one that stock Mininet and the stock tools build."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.guest.agent_kit import agent_guest, quick_plan
from tests.guest.guest_kit import build_or_skip
from tests.guest.remembered_guest import run_once

pytestmark = pytest.mark.guest

SCRIPT = Path(__file__).with_name("network_dump.py")
SETTINGS = ["flows=[{start: 0 s}, {start: 1 s, initial_window: 20}]"]
# Every kind of queue is a hop of one path: a boot with Mininet's hundreds of commands costs more than the hops do.
HOPS = {
    "before": ["{kind: choke, probability: 4 %}", "gred", "{kind: codel, target: 7 ms}", "{kind: fq_codel, flows: 64}"],
    "after": ["{kind: pie, target: 20 ms, alpha: 3}", "{kind: cake, rtt: 60 ms, isolation: flows}", "fifo"],
}
PATHS = {
    "fifo": [],
    "queues": [
        f"path.hops=[{', '.join(f'{{rate: 30 Mbit/s, queue: {q}, place: {at}}}' for at in HOPS for q in HOPS[at])}]",
        *("path.queue={kind: red, probability: 5 %}", "path.ecn=true", "path.buffer=4 bdp"),
    ],
    "loss and order": ["path.loss=1 %", "path.reorder={share: 2 %, gap: 5}", "path.reverse_rate=1 Mbit/s"],
}

# What legitimately differs between two boots, and nothing else:
# - interface indices and namespace numbers: the order in which the kernel met things;
# - the seed a netem draws by itself when the plan gives none, because nothing in it is random;
# - statistics that tc prints with -j although none were asked for.
TRANSIENT = ("ifindex", "link_index", "link_netnsid", "seed", "stats64", "stats", "direct_packets_stat")


def normalised(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: normalised(item) for name, item in value.items() if name not in TRANSIENT}
    if isinstance(value, list):
        return [normalised(item) for item in value]
    return value


def in_any_order(dump: dict[str, Any]) -> dict[str, Any]:
    """Neighbours come in the order of a hash table with a random key."""
    for state in dump.values():
        state["neigh"] = sorted(state["neigh"], key=lambda entry: (entry["dev"], entry["dst"]))
    return dump


@pytest.fixture(scope="module", params=PATHS)
def path(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def dumps(path: str, tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, Any]]:
    """What ``ip`` and ``tc`` say of the same plan, once built each way."""
    built = build_or_skip()
    plan = quick_plan("cubic", [*SETTINGS, *PATHS[path]])
    found = {}
    for wiring in ("netlink", "mininet"):
        directory = tmp_path_factory.mktemp(wiring)
        # Not -S: Mininet lies in the guest's own site directory.
        guest = agent_guest(built, directory, plan, "/usr/bin/python3", f"/howdah/in/{SCRIPT.name}", wiring)
        assert run_once(built, guest) == 0, (directory / "raw" / "console.log").read_text()
        text = (directory / "raw" / f"{wiring}.json").read_text()
        found[wiring] = in_any_order(normalised(json.loads(text)))
    return found


@pytest.mark.parametrize("kind", ["addr", "link", "route", "neigh", "qdisc", "class"])
def test_stock_mininet_builds_the_same(dumps: dict[str, dict[str, Any]], kind: str) -> None:
    ours, stock = dumps["netlink"], dumps["mininet"]
    assert list(ours) == list(stock)
    for node in ours:
        assert ours[node][kind] == stock[node][kind], f"{kind} of {node}"


def test_the_dumps_hold_what_the_plan_asks_for(path: str, dumps: dict[str, dict[str, Any]]) -> None:
    """Two equal but empty dumps would prove nothing."""
    kinds = {item["kind"] for state in dumps["netlink"].values() for item in state["qdisc"]}
    active = {"red", "choke", "gred", "clsact", "codel", "fq_codel", "pie", "cake"}
    queues = {"bfifo"} | (active if path == "queues" else set())
    assert kinds >= {"htb", "netem", *queues}
    if path != "fifo":
        return
    left, sender = dumps["netlink"]["left"], dumps["netlink"]["s2"]
    assert {item["kind"] for item in left["qdisc"]} >= {"htb", "bfifo", "netem"}
    assert left["class"]["left-eth0"][0]["rate"] == 2_500_000
    assert [item["metrics"][0]["initcwnd"] for item in sender["route"] if "metrics" in item] == [20]
    assert len(left["neigh"]) == 5
    assert all(item["operstate"] == "UP" for item in left["link"] if item["ifname"] != "lo")
