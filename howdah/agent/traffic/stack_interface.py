# SPDX-License-Identifier: Apache-2.0
"""The TAP interface that joins a stack to its host.

The stack has the host's address. Packets that arrive at the host for the stack's port are routed to the TAP instead of
the kernel's TCP. Packets from the stack leave by the host's interface, through its queues and its captures. The kernel
keeps the rest of the host: its name on the link, its probes of the path, its counters. Routing takes no time.
"""

from __future__ import annotations

import subprocess
from dataclasses import dataclass

from howdah.agent.error import AgentError
from howdah.linux.namespace import Namespace

_FIRST_TABLE = 100
_QUEUE_PACKETS = 10_000  # larger than a stack's backlog: it reads whenever the kernel is idle
_LOCAL_PRIORITY, _OWN_PRIORITY = 100, 50  # of the rule for local addresses, and of the stack's rule before it


@dataclass(frozen=True)
class StackInterface:
    """A TAP interface: ``name`` is the TAP's, ``mac`` is the destination of frames to the stack."""

    name: str
    mac: str
    host_interface: str
    address: str
    port: int
    mtu_bytes: int
    number: int

    def make(self, label: str, namespace: Namespace) -> None:
        """Make the interface and its routes. Raises AgentError with the message of ip(8)."""
        table = str(_FIRST_TABLE + self.number)
        tap, rule = self.name, ("ip", "rule")
        self._run(label, namespace, "ip", "tuntap", "add", "dev", tap, "mode", "tap")
        size = ("mtu", str(self.mtu_bytes), "txqueuelen", str(_QUEUE_PACKETS))
        self._run(label, namespace, "ip", "link", "set", tap, *size, "up")
        for name, value in self._settings():
            namespace.write_file(f"/proc/sys/net/ipv4/{name}", value)
        neighbour = (self.address, "lladdr", self.mac, "dev", tap, "nud", "permanent")
        self._run(label, namespace, "ip", "neighbour", "add", *neighbour)
        self._run(label, namespace, "ip", "route", "add", self.address, "dev", tap, "scope", "link", "table", table)
        if not self._has_local_rule(label, namespace):
            self._run(label, namespace, *rule, "add", "priority", str(_LOCAL_PRIORITY), "lookup", "local")
            self._run(label, namespace, *rule, "del", "priority", "0")
        chosen = ("iif", self.host_interface, "ipproto", "tcp", "dport", str(self.port))
        self._run(label, namespace, *rule, "add", "priority", str(_OWN_PRIORITY), *chosen, "lookup", table)

    def _settings(self) -> list[tuple[str, str]]:
        """Sysctls by which the host forwards, accepts its own address from the stack, and answers the stack's ARP at
        once."""
        own = f"conf/{self.name}"
        return [
            ("ip_forward", "1"),
            (f"{own}/accept_local", "1"),
            (f"{own}/rp_filter", "0"),
            (f"{own}/send_redirects", "0"),
            (f"{own}/proxy_arp", "1"),
            (f"neigh/{self.name}/proxy_delay", "0"),
        ]

    def _has_local_rule(self, label: str, namespace: Namespace) -> bool:
        rules = self._run(label, namespace, "ip", "rule", "show")
        return any(line.startswith(f"{_LOCAL_PRIORITY}:") for line in rules.splitlines())

    @staticmethod
    def _run(label: str, namespace: Namespace, *command: str) -> str:
        with namespace.entered():
            done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            raise AgentError(label, f"{' '.join(command)}: {done.stderr.strip() or f'status {done.returncode}'}")
        return done.stdout
