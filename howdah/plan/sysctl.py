# SPDX-License-Identifier: Apache-2.0
"""Settings of the kernel and of each host, made before there are flows."""

from __future__ import annotations

from howdah.plan.memory import Sizes
from howdah.plan.network import Network
from howdah.plan.operation import ModuleParameter, Sysctl
from howdah.plan.step import Operation
from howdah.profile import Cell
from howdah.profile.end import FIXED

# Settings of the whole kernel; every other name under net.ipv4 and net.ipv6 belongs to a network namespace.
_GLOBAL_SYSCTLS = ("net.ipv4.tcp_mem", "net.ipv4.udp_mem", "net.ipv4.tcp_max_orphans", "net.ipv4.route.")
# Runs with more connections raise two limits: a kernel with half a gigabyte allows 4096 sockets in TIME_WAIT per host,
# and 4096 orphans in all. Sockets beyond are forgotten, or reset.
_FEW_CONNECTIONS = 2000


def kernel_settings(cell: Cell, size: Sizes, connections: int) -> list[Operation]:
    """Return the settings of the whole kernel; ``connections`` are all that a run opens."""
    buffer_max = max(size.receive_buffer_bytes, size.send_buffer_bytes)
    settings = {
        # veth delivers packets through this backlog; when full, it drops them, and no qdisc counts that.
        "net.core.netdev_max_backlog": str(size.backlog_packets),
        "net.core.rmem_max": str(buffer_max),
        "net.core.wmem_max": str(buffer_max),
        "net.ipv4.tcp_mem": " ".join(str(pages) for pages in size.tcp_mem_pages),
        **({"net.ipv4.tcp_max_orphans": str(2 * connections)} if connections > _FEW_CONNECTIONS else {}),
    }
    operations: list[Operation] = [Sysctl(None, name, value) for name, value in settings.items()]
    for algorithm in cell.algorithms.values():
        if algorithm.builtin and algorithm.module is not None:
            operations += [
                ModuleParameter(algorithm.module, name, value) for name, value in algorithm.parameters.items()
            ]
    return operations


def host_settings(cell: Cell, network: Network, size: Sizes, connections: int) -> list[Sysctl]:
    """Return the settings of each host's stack; the profile's own come last."""
    host = cell.scenario.host
    settings = {
        "net.ipv4.tcp_no_metrics_save": "1",
        **({"net.ipv4.tcp_ecn": "1"} if cell.scenario.path.ecn else {}),
        "net.ipv4.tcp_rmem": _buffer(host.tcp_rmem, 131072, size.receive_buffer_bytes),
        "net.ipv4.tcp_wmem": _buffer(host.tcp_wmem, 87380, size.send_buffer_bytes),
        **({"net.ipv4.tcp_max_tw_buckets": str(2 * connections)} if connections > _FEW_CONNECTIONS else {}),
    }
    operations = []
    for node, role in network.roles.items():
        if role != "router":
            operations += [Sysctl(node, name, value) for name, value in settings.items()]
    for name, value in host.sysctls.items():
        namespaced = name.startswith(("net.ipv4.", "net.ipv6.")) and not name.startswith(_GLOBAL_SYSCTLS)
        nodes: list[str | None] = list(network.roles) if namespaced else [None]
        operations += [Sysctl(node, name, value) for node in nodes]
    return operations


def _buffer(asked: str | None, initial_bytes: int, largest_bytes: int) -> str:
    """Return least, initial and largest size, as in the sysctls."""
    return asked if asked and asked != FIXED else f"4096 {largest_bytes if asked else initial_bytes} {largest_bytes}"
