# SPDX-License-Identifier: Apache-2.0
"""From Mininet topologies to networks: the shipped dumbbell, one's own, and ones that cannot be planned."""

from __future__ import annotations

import ast
import importlib.util
import ipaddress
from pathlib import Path
from typing import Any

import pytest
from mininet.net import Mininet
from mininet.node import Node
from mininet.topo import Topo

from howdah.errors import ProfileError
from howdah.plan.network import Network, bare
from howdah.plan.topology import load_topo, lower
from tests.unit.profile_factory import make_one, operations

DUMBBELL = Path(__file__).resolve().parents[2] / "topologies" / "dumbbell.py"


def _dumbbell(pairs: int = 2) -> Network:
    return lower(load_topo("dumbbell", None, None, {"pairs": pairs}), "dumbbell")


def test_the_dumbbell_is_a_mininet_topology() -> None:
    topo = load_topo("dumbbell", None, None, {"pairs": 3})
    assert isinstance(topo, Topo)
    assert topo.hosts() == ["left", "r1", "r2", "r3", "right", "s1", "s2", "s3"]
    assert topo.switches() == []


def test_it_imports_nothing_of_the_project() -> None:
    """So that plain ``mn --custom`` can load it wherever Mininet is."""
    imported = set()
    for node in ast.walk(ast.parse(DUMBBELL.read_text())):
        if isinstance(node, ast.Import):
            imported |= {name.name.partition(".")[0] for name in node.names}
        elif isinstance(node, ast.ImportFrom):
            imported.add(str(node.module).partition(".")[0])
    assert imported <= {"__future__", "functools", "typing", "mininet"}


def test_mn_finds_it_by_name() -> None:
    """What ``mn --custom FILE --topo dumbbell,2`` does: run the file, look up ``topos``, pass arguments as texts."""
    specification = importlib.util.spec_from_file_location("custom", DUMBBELL)
    assert specification is not None
    assert specification.loader is not None
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    assert len(module.topos["dumbbell"]("2").hosts()) == 6
    assert len(module.topos["dumbbell"]().hosts()) == 4


def test_names_and_order_are_mininets() -> None:
    network = _dumbbell()
    assert [(link.a.name, link.b.name) for link in network.links] == [
        ("left-eth0", "right-eth0"),
        ("r1-eth0", "right-eth1"),
        ("r2-eth0", "right-eth2"),
        ("s1-eth0", "left-eth1"),
        ("s2-eth0", "left-eth2"),
    ]
    assert list(network.roles) == ["left", "r1", "r2", "right", "s1", "s2"]
    assert (network.bottleneck.a.name, network.bottleneck.b.name) == ("left-eth0", "right-eth0")


class _Recorder(Mininet):  # type: ignore[misc]
    """Stock Mininet building a topology, with the nodes left out: what would it have made?"""

    def __init__(self, topo: Topo) -> None:
        self.made_hosts: list[tuple[str, dict[str, Any]]] = []
        self.made_links: list[dict[str, Any]] = []
        self.topo, self.controller, self.cleanup = topo, None, False
        self.controllers: list[Any] = []
        self.hosts: list[str] = []
        self.switches: list[str] = []

    def addHost(self, name: str, cls: Any = None, **params: Any) -> None:  # noqa: N802 - Mininet's name
        self.made_hosts.append((name, {"cls": cls, **params}))

    def addLink(self, node1: str, node2: str, **params: Any) -> None:  # noqa: N802 - Mininet's name
        self.made_links.append({"node1": node1, "node2": node2, **params})

    def configureControlNetwork(self) -> None:  # noqa: N802 - Mininet's name
        return

    configHosts = configureControlNetwork  # noqa: N815 - Mininet's name


def test_mininet_itself_builds_what_was_lowered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Node, "__init__", lambda *_, **__: None)  # a node starts a shell
    recorder = _Recorder(load_topo("dumbbell", None, None, {"pairs": 2}))
    recorder.buildFromTopo(recorder.topo)
    network = _dumbbell()
    assert [name for name, _ in recorder.made_hosts] == list(network.roles)
    for made, link in zip(recorder.made_links, network.links, strict=True):
        assert (made["node1"], made["node2"]) == (link.a.node, link.b.node)
        assert (f"{made['node1']}-eth{made['port1']}", made["addr1"]) == (link.a.name, link.a.mac)
        assert (f"{made['node2']}-eth{made['port2']}", made["addr2"]) == (link.b.name, link.b.mac)
        assert made["params1"]["ip"] == link.a.address
        assert made["params1"].get("second_ip") == link.a.second_address
    for name, parameters in recorder.made_hosts:
        assert isinstance(parameters["cls"](name), Node)
        if network.roles[name] == "router":
            assert parameters["ip"] is None, "Mininet would give the router an address of its own"
        else:
            assert parameters["ip"] == network.access_link(name).at(name).address
            (route,) = [route for route in network.routes if route.node == name]
            assert parameters["defaultRoute"] == f"via {route.via}"


def _reaches(network: Network, sender: str, destination: str) -> bool:
    """Follow the routes hop by hop, as the kernels would."""
    node, target = sender, ipaddress.ip_address(destination)
    for _ in range(10):
        for link in network.links_of(node):
            if any(bare(address) == destination for address in link.facing(node).addresses):
                return True
        matching = [
            route
            for route in network.routes
            if route.node == node
            and (route.destination == "default" or target in ipaddress.ip_network(route.destination))
        ]
        if not matching:
            return False
        link = next(link for link in network.links_of(node) if link.at(node).name == matching[0].interface)
        node = link.facing(node).node
    return False


@pytest.mark.parametrize("pairs", [1, 2, 200])
def test_every_host_reaches_every_other_by_both_addresses(pairs: int) -> None:
    network = _dumbbell(pairs)
    hosts = ("s1", f"s{pairs}", "r1", f"r{pairs}")
    for start in hosts:
        for end in hosts:
            if start != end:
                for address in network.access_link(end).at(end).addresses:
                    assert _reaches(network, start, bare(address)), f"{start} to {address}"


def test_neighbours_cover_every_next_hop(tmp_path: Path) -> None:
    plan = make_one(tmp_path, "flows: [{}, {}]\n")
    known = {(item.arguments()["node"], item.arguments()["address"]) for item in operations(plan, "neighbour")}
    for route in operations(plan, "route"):
        assert (route.arguments()["node"], route.arguments()["via"]) in known
    for host in plan.hosts:
        if host.role != "router":
            router = "left" if host.role == "sender" else "right"
            assert {(router, host.address), (router, host.calibration_address)} <= known


OWN = '''\
from mininet.topo import Topo
class Chain(Topo):
    """a - x - y - z - b, bottleneck y - z, all addresses left to the planner"""
    def build(self, **params):
        for name, role in (("a", "sender"), ("x", "router"), ("y", "router"), ("z", "router"), ("b", "receiver")):
            self.addHost(name, role=role)
        self.addLink("a", "x")
        self.addLink("x", "y")
        self.addLink("z", "y", role="bottleneck")
        self.addLink("z", "b")
'''


def test_a_topology_of_ones_own(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(OWN)
    plan = make_one(tmp_path, "topology: {file: mine.py, class: Chain}\n")
    assert plan.topology == "Chain"
    assert (plan.flows[0].sender, plan.flows[0].receiver) == ("a", "b")
    assert (plan.calibration.bottleneck_node, plan.calibration.bottleneck_interface) == ("y", "y-eth1")
    (buffer,) = operations(plan, "qdisc", kind="bfifo")
    assert buffer.arguments()["interface"] == "y-eth1", "in the direction of the data, however the link was written"
    delays = {
        item.arguments()["node"]: item.arguments()["interface"] for item in operations(plan, "qdisc", kind="netem")
    }
    assert delays == {"z": "z-eth1", "x": "x-eth0"}
    network = lower(load_topo("Chain", tmp_path / "mine.py", "Chain", {}), "Chain")
    for start, end in (("a", "b"), ("b", "a")):
        for address in network.access_link(end).at(end).addresses:
            assert _reaches(network, start, bare(address))


@pytest.mark.parametrize(
    ("change", "what"),
    [
        (('role="bottleneck"', "bw=10"), "0 links have role='bottleneck'"),
        (('addLink("a", "x")', 'addLink("a", "x", role="bottleneck")'), "2 links have role='bottleneck'"),
        (('("a", "sender")', '("a", "client")'), "node a has no role"),
        (('("a", "sender")', '("a", "receiver")'), "no node has role='sender'"),
        (('addLink("a", "x")', 'addLink("a", "b")'), "must have exactly one link, to a router"),
        (('self.addLink("z", "b")', 'self.addLink("x", "b")'), "does not cross the bottleneck"),
        (('self.addLink("x", "y")', "pass"), "does not cross the bottleneck"),
        (('self.addLink("z", "b")', 'self.addLink("z", "b", intfName2="an-interface-name")'), "longer than an"),
        (('self.addLink("x", "y")', 'self.addLink("x", "y", params1={"ip": "10.9.9.9/33"})'), "10.9.9.9/33"),
        (('self.addLink("x", "y")', 'self.addLink("x", "y", params1={"ip": "10.9.9.9/24"})'), "not in one network"),
        (('self.addLink("x", "y")', 'self.addLink("x", "y", addr1="02:00:01:00:00:01")'), "the same address"),
        (('self.addHost(name, role=role)', "self.addSwitch(name)"), "is a switch"),
        (("import Topo", "import Topo, missing"), "cannot be imported: ImportError"),
        (("class Chain", "class Other"), "there is no class Chain"),
        (("def build(self, **params):", "def build(self, **params):\n        raise OSError(5)"), "failed: OSError(5)"),
        (("from mininet", "from from"), "cannot be imported: SyntaxError"),
    ],
)  # fmt: skip
def test_topologies_that_cannot_be_planned(tmp_path: Path, change: tuple[str, str], what: str) -> None:
    assert change[0] in OWN
    (tmp_path / "mine.py").write_text(OWN.replace(*change))
    with pytest.raises(ProfileError) as caught:
        make_one(tmp_path, "topology: {file: mine.py, class: Chain}\n")
    assert what in caught.value.what
    assert caught.value.where is not None
    assert caught.value.where.startswith(f"{tmp_path / 'small.yaml'}:7")


def test_too_many_pairs_are_refused_by_the_topology() -> None:
    with pytest.raises(ProfileError, match="a dumbbell has 1 to 200 pairs, not 201"):
        load_topo("dumbbell", None, None, {"pairs": 201})
