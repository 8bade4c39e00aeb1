# SPDX-License-Identifier: Apache-2.0
"""Receiver behaviours as operations on receiving hosts.

A behaviour belongs to a host, like an operating system: it applies to everything that the host receives.
"""

from __future__ import annotations

import dataclasses
import re
from dataclasses import dataclass

from howdah.errors import ProfileError
from howdah.frame import IP_AND_TCP_BYTES, TIME_STAMP_BYTES
from howdah.linux.netlink.discipline.howdah_receiver import EmulatedReceiver
from howdah.plan.network import Network
from howdah.plan.operation import AddRoute, Sysctl
from howdah.plan.placed import Qdisc
from howdah.plan.plan import Flow, Plan
from howdah.plan.step import Operation
from howdah.profile import Cell
from howdah.receiver import RECEIVERS, Receiver, Tuning

RECEIVER_MODULE = "howdah_receiver"
_HANDLE = "ac0:"

# A kernel before 6.6 offers half of a receive buffer as window. Later ones offer, in 256ths, the ratio of payload to
# memory of a full segment (tcp_measure_rcv_mss), which takes this many bytes of memory beside its packet.
_FIRST_BY_MEMORY = (6, 6)
_BESIDE_PACKET_BYTES = 788
# rmem_max, Linux' default. The kernel derives the window scale from the larger of this and tcp_rmem, always tcp_rmem.
_SOCKET_MAXIMUM_BYTES = "212992"


@dataclass(frozen=True)
class Receivers:
    """The behaviour of each receiving host, by the host's name."""

    of_host: dict[str, Receiver]

    @property
    def needs_module(self) -> bool:
        return any(receiver.ack_filter for receiver in self.of_host.values())


def find_receivers(cell: Cell, flows: list[Flow], *, virtual_time: bool) -> Receivers:
    """Return the behaviour of each receiving host. Background that names none takes its host's, else Linux' own. Raise
    ProfileError if flows that share a host disagree."""
    scenario = cell.scenario
    asked: dict[str, str] = {}
    for index, (flow, written) in enumerate(zip(flows, scenario.every_flow, strict=True)):
        name = written.receiver_behaviour or (scenario.receiver.behaviour if flow.role == "measured" else None)
        if name is None or flow.datagram_bytes is not None:
            continue
        if asked.setdefault(flow.receiver, name) != name:
            what = f"{flow.name} and an earlier flow share {flow.receiver}, as {name} and as {asked[flow.receiver]}"
            place = (*scenario.place_of(index), "receiver_behaviour")
            raise ProfileError(what, where=cell.place(*place), hint="give them hosts of their own")
    blocks = scenario.receiver.backlog_blocks
    found = Receivers({host: _with_backlog(RECEIVERS[name], blocks) for host, name in asked.items()})
    swept = any(axis.startswith("receiver") for axis in cell.axes)  # some of the swept ones may have such a number
    if blocks is not None and not swept and not any(each.stops_reporting for each in found.of_host.values()):
        raise ProfileError(
            f"{', '.join(sorted(set(asked.values())))} has no number of blocks at which it reports none",
            where=cell.place("receiver", "backlog_blocks"),
            hint="leave it out, or choose a receiver that has one: "
            + ", ".join(name for name, each in RECEIVERS.items() if each.stops_reporting),
        )
    if found.needs_module and not virtual_time:
        names = sorted({receiver.name for receiver in found.of_host.values() if receiver.ack_filter})
        raise ProfileError(
            f"the behaviour of {', '.join(names)} is made by a kernel module",
            where=cell.place("receiver"),
            hint="run it with the uml engine; linux, quick-ack and no-sack need no module",
        )
    bounded = sorted({receiver.name for receiver in found.of_host.values() if receiver.tuning})
    if bounded and scenario.host.tcp_rmem is not None:
        raise ProfileError(
            f"{', '.join(bounded)} has a receive buffer of its own",
            where=cell.place("host", "tcp_rmem"),
            hint="leave host.tcp_rmem out, or choose a receiver without one: delayed-ack acknowledges as they do",
        )
    return found


def _with_backlog(receiver: Receiver, blocks: int | None) -> Receiver:
    """Return ``receiver`` with another number of blocks at which it stops reporting SACK, if it has such a number."""
    if blocks is None or receiver.ack_filter is None or not receiver.stops_reporting:
        return receiver
    return dataclasses.replace(receiver, ack_filter=dataclasses.replace(receiver.ack_filter, backlog_blocks=blocks))


def name_receivers(flows: list[Flow], receivers: Receivers) -> list[Flow]:
    """Return the flows with the behaviour of their receiver's host."""

    def named(flow: Flow) -> Flow:
        receiver = receivers.of_host.get(flow.receiver)
        if receiver is None or flow.datagram_bytes is not None or flow.receiver_behaviour == receiver.name:
            return flow
        return dataclasses.replace(flow, receiver_behaviour=receiver.name)

    return [named(flow) for flow in flows]


def acknowledge_at_once(operations: list[Operation], receivers: Receivers) -> list[Operation]:
    """Return ``operations`` with quick ACKs on the routes of hosts that acknowledge every segment."""
    quick = {host for host, receiver in receivers.of_host.items() if receiver.quick_ack}
    return [
        dataclasses.replace(item, quick_ack=1) if isinstance(item, AddRoute) and item.node in quick else item
        for item in operations
    ]


def receiver_settings(receivers: Receivers) -> list[Sysctl]:
    """Return the sysctls of the receiving hosts; the profile's own must follow them."""
    return [Sysctl(host, "net.ipv4.tcp_sack", "0") for host, receiver in receivers.of_host.items() if not receiver.sack]


def tune(plan: Plan, receivers: Receivers) -> Plan:
    """Return ``plan`` with buffers and options for receivers with bounded windows; the profile's own settings come
    later. Buffers depend on the host's kernel, which may be that of the plan's part.
    """
    if not any(receiver.tuning for receiver in receivers.of_host.values()):
        return plan
    left = {host: receiver for host, receiver in receivers.of_host.items() if receiver.tuning}
    operations: list[Operation] = []
    for item in plan.operations:
        if isinstance(item, Sysctl) and item.name == "net.core.rmem_max":
            item = dataclasses.replace(item, value=_SOCKET_MAXIMUM_BYTES)
        elif isinstance(item, Sysctl) and item.name == "net.ipv4.tcp_rmem" and item.node in left:
            host = item.node
            receiver = left.pop(host)
            assert receiver.tuning is not None
            payload = plan.path.mtu_bytes - IP_AND_TCP_BYTES - (TIME_STAMP_BYTES if receiver.time_stamps else 0)
            memory = plan.path.mtu_bytes + _BESIDE_PACKET_BYTES
            value = _buffers(receiver.tuning, _kernel_of(host, plan), payload * 256 // memory)
            item = dataclasses.replace(item, value=value)
            if not receiver.time_stamps:
                operations.append(Sysctl(host, "net.ipv4.tcp_timestamps", "0"))
        operations.append(item)
    return dataclasses.replace(plan, operations=operations)


def _kernel_of(host: str, plan: Plan) -> str:
    return next((part.kernel for part in plan.parts or () if host in part.hosts), plan.kernel)


def _buffers(tuning: Tuning, kernel: str, share: int) -> str:
    """Return least, initial and largest buffer, as in tcp_rmem; ``share``: of 256, what current kernels offer."""
    if tuning.of_buffer:
        return f"4096 {tuning.initial_bytes} {tuning.largest_bytes}"
    version = re.search(r"([0-9]+)\.([0-9]+)", kernel.rpartition("/")[2])
    if version and (int(version[1]), int(version[2])) < _FIRST_BY_MEMORY:
        share = 128
    # On every kernel, a connection begins with half of the buffer as window.
    return f"4096 {2 * tuning.initial_bytes} {-(-tuning.largest_bytes * 256 // share)}"


def ack_filters(cell: Cell, network: Network, receivers: Receivers, shaping: list[Operation]) -> list[Qdisc]:
    """Return the qdiscs that thin out a host's ACKs. Raise ProfileError if ``shaping`` limits that host's rate."""
    operations = []
    for host, receiver in receivers.of_host.items():
        chosen = receiver.ack_filter
        if chosen is None:
            continue
        interface = network.access_link(host).at(host).name
        if any(isinstance(item, Qdisc) and (item.node, item.parent) == (host, "root") for item in shaping):
            what = f"{host} cannot be {receiver.name}: the rate of its interface is limited, because it also sends"
            raise ProfileError(what, where=cell.place("receiver"), hint="give background in reverse hosts of its own")
        operations.append(Qdisc(host, interface, "root", _HANDLE, EmulatedReceiver(**dataclasses.asdict(chosen))))
    return operations
