# SPDX-License-Identifier: Apache-2.0
"""Builds the same network from the same plan with stock Mininet and the stock tools.

Mininet makes nodes, links, addresses and routes from the ``Topo`` class; operations that a Topo does not express are
run as equivalent commands (howdah/plan/step.py). This needs Mininet, the topology's file and the writers of tc commands
to be importable, and a guest's share/ has them only if a test puts them there.
"""

from __future__ import annotations

import importlib.util
import os
import shlex
import subprocess
import tempfile
from pathlib import Path
from typing import Any

from howdah.agent.error import AgentError
from howdah.agent.settings import Settings
from howdah.agent.wiring.netlink import NetlinkWiring, describe
from howdah.linux.namespace import Namespace
from howdah.linux.netlink.discipline.netem import Netem
from howdah.plan.operation import Address, AddRoute, Adopt, ModuleParameter, Node, Sysctl, Up, VethLink
from howdah.plan.placed import Qdisc
from howdah.plan.plan import Plan
from howdah.plan.step import Operation

# Operations that Mininet itself performs when it builds a Topo.
_MININET_DOES = (Node, VethLink, Address, Up)
_ENDS = ("node1", "node2", "port1", "port2")


class MininetWiring(NetlinkWiring):
    """A network built by Mininet. Changes during the run use netlink, like the other wiring."""

    def __init__(self, plan: Plan, inputs: Path, settings: Settings | None = None) -> None:
        super().__init__(settings)
        self._plan = plan
        self._inputs = inputs
        self._net: Any = None
        self._distributions = Path(tempfile.mkdtemp(prefix="howdah-dist-"))

    def apply(self, operations: list[Operation]) -> None:
        numbered = [(f"operation {number}", operation) for number, operation in enumerate(operations)]
        kernel_wide = [item for item in numbered if _is_kernel_wide(item[1])]
        for label, operation in kernel_wide:
            self.apply_one(label, operation)
        self._build()
        adopted: set[tuple[str, str]] = set()
        for label, operation in numbered:
            if (label, operation) in kernel_wide:
                continue
            if isinstance(operation, Adopt):
                self.apply_one(label, operation)
                adopted.add(operation.at)
                continue
            if isinstance(operation, _MININET_DOES) and getattr(operation, "at", None) not in adopted:
                continue
            if isinstance(operation, AddRoute) and not operation.metrics:
                continue
            self._run(label, operation)

    def _build(self) -> None:
        try:
            from mininet.net import Mininet
        except ImportError as error:
            raise AgentError("wiring mininet", f"Mininet is not installed here: {error}") from error
        topology = self._own_part(self._topology())
        # Without switches a controller has nothing to do.
        self._net = Mininet(topo=topology, controller=None, waitConnected=False)
        for host in self._net.hosts:
            self.namespaces[host.name] = Namespace.of_process(host.name, host.pid)

    def _topology(self) -> Any:
        name = self._plan.topology
        path = self._inputs / "topologies" / f"{name}.py"
        specification = importlib.util.spec_from_file_location(f"howdah_topology_{name}", path)
        if not path.is_file() or specification is None or specification.loader is None:
            raise AgentError("wiring mininet", f"there is no topology file {path}")
        module = importlib.util.module_from_spec(specification)
        specification.loader.exec_module(module)
        return module.topos[name](**self._plan.topology_arguments)

    def _own_part(self, topology: Any) -> Any:
        """Return only this machine's nodes and links if the plan is one machine's part."""
        part = self._plan.slice
        if part is None:
            return topology
        from mininet.topo import Topo

        own = Topo()
        for node in topology.hosts():
            if node in part.nodes:
                own.addHost(node, **topology.nodeInfo(node))
        for one, other, information in topology.links(sort=True, withInfo=True):
            if one in part.nodes and other in part.nodes:
                options = {name: value for name, value in information.items() if name not in _ENDS}
                ends, ports = _ends(information)
                own.addLink(*ends, *ports, **options)
        return own

    def _enter(self, node: str, interface: str) -> None:
        """Move an interface of the machine into a Mininet node."""
        from mininet.link import Intf

        Intf(interface, node=self._net[node])

    def _run(self, label: str, operation: Operation) -> None:
        text = f"{label} ({describe(operation)})"
        for line in operation.lines():
            words = [self._distribution(word, operation) for word in shlex.split(line)]
            done = subprocess.run(
                words,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                check=False,
                env={**os.environ, "TC_LIB_DIR": str(self._distributions)},
            )
            if done.returncode:
                said = (done.stderr or done.stdout).strip()
                raise AgentError(text, f"{shlex.join(words)}: status {done.returncode}: {said}")

    def _distribution(self, word: str, operation: Operation) -> str:
        """Replace a netem table by the name of a file with its values. tc reads a distribution from a file; the command
        line shows only the table's length."""
        netem = operation.discipline if isinstance(operation, Qdisc) else None
        if not isinstance(netem, Netem) or netem.distribution is None or not word.startswith("table["):
            return word
        table = netem.distribution
        name = f"howdah{abs(hash(tuple(table)))}"
        (self._distributions / f"{name}.dist").write_text("\n".join(map(str, table)) + "\n")
        return name

    def remove(self) -> None:
        super().remove()
        if self._net is not None:
            self._net.stop()


def _ends(information: dict[str, Any]) -> tuple[tuple[str, str], tuple[int, int]]:
    """Nodes and ports of a ``Topo``'s link, in the order of the arguments of addLink."""
    one, other, *ports = (information[name] for name in _ENDS)
    return (one, other), (ports[0], ports[1])


def _is_kernel_wide(operation: Operation) -> bool:
    return isinstance(operation, ModuleParameter) or (isinstance(operation, Sysctl) and operation.node is None)
