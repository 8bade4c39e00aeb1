# SPDX-License-Identifier: Apache-2.0
"""Flows of a plan: hosts, addresses, ports, times and delays, resolved from the profile's."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import Any

from howdah.errors import ProfileError, nearest
from howdah.frame import IP_AND_UDP_BYTES, frame_bytes
from howdah.number import duration
from howdah.plan.generated import GeneratedFlowSection
from howdah.plan.network import Network, bare
from howdah.plan.perturbation import Perturbation
from howdah.plan.plan import BACKGROUND, MEASURED, Flow
from howdah.plan.port import FIRST_DESTINATION_PORT, FIRST_SOURCE_PORT, MOST_PORTS, PortNeed, port_pairs
from howdah.plan.program import program_of, stack_algorithm, traffic_of, traffic_place
from howdah.plan.traffic import Exchange, HttpRequests
from howdah.profile import Cell
from howdah.profile.model import FlowSection
from howdah.traffic import PAIRED, PROGRAM, TRAFFIC, TrafficKind

KERNEL_INITIAL_WINDOW_PACKETS = 10  # TCP_INIT_CWND, RFC 6928


@dataclass(frozen=True)
class Delays:
    """One-way delay towards each host: the forward delay of a receiver, the reverse delay of a sender."""

    of_host: dict[str, int]


def endpoints(cell: Cell, network: Network) -> list[tuple[str, str]]:
    """Return the hosts on the senders' and on the receivers' side of each flow, background last: the i-th pair,
    starting over when there are more flows than pairs. Only background may bypass the bottleneck.
    """
    scenario = cell.scenario
    senders, receivers = network.nodes("sender"), network.nodes("receiver")
    senders = [host for host in senders if network.bottleneck_ends(host, receivers[0])] or senders
    receivers = [host for host in receivers if network.bottleneck_ends(senders[0], host)] or receivers
    pairs = []
    written = itertools.count()
    for index, flow in enumerate(scenario.every_flow):
        slot = flow.slot if isinstance(flow, GeneratedFlowSection) else next(written)
        sender = _host(cell, network, index, "sender", flow.sender) or senders[slot % len(senders)]
        receiver = _host(cell, network, index, "receiver", flow.receiver) or receivers[slot % len(receivers)]
        crosses = network.bottleneck_ends(sender, receiver) is not None
        if not crosses and (index < len(scenario.flows) or not network.way(sender, receiver)):
            where = cell.place("topology")
            raise ProfileError(f"the way from {sender} to {receiver} does not cross the bottleneck", where=where)
        pairs.append((sender, receiver))
    return pairs


def _host(cell: Cell, network: Network, index: int, role: str, name: str | None) -> str | None:
    if name is None or name in network.nodes(role):
        return name
    close = nearest(name, network.nodes(role))
    hint = f"did you mean {close}?" if close else f"the {role}s are {', '.join(network.nodes(role))}"
    raise ProfileError(
        f"there is no {role} {name!r}", where=cell.place(*cell.scenario.place_of(index), role), hint=hint
    )


def host_delays(cell: Cell, network: Network, pairs: list[tuple[str, str]], perturbation: Perturbation) -> Delays:
    """Return the delay of each host. Delays belong to hosts: flows can differ in RTT, but not flows of one host."""
    path = cell.scenario.path
    delays: dict[str, int] = {}
    for index, (flow, (sender, receiver)) in enumerate(zip(cell.scenario.every_flow, pairs, strict=True)):
        forward, reverse = _split(flow, path.forward_delay_us, path.reverse_delay_us)
        for host, delay in ((receiver, forward), (sender, reverse)):
            if delays.setdefault(host, delay) != delay:
                what = f"flow {index + 1} and an earlier one share {host} but ask for different delays"
                raise ProfileError(
                    what, where=cell.place(*cell.scenario.place_of(index), "rtt"), hint="give them hosts of their own"
                )
    for host in network.nodes("receiver"):
        delays.setdefault(host, path.forward_delay_us)
    for host in network.nodes("sender"):
        delays.setdefault(host, path.reverse_delay_us)
    return Delays({host: perturbation.delay_us(delay) for host, delay in delays.items()})


def _split(flow: FlowSection, forward_us: int, reverse_us: int) -> tuple[int, int]:
    """Return the flow's one-way delays: its own RTT, divided in the path's proportion, or the path's delays."""
    if flow.rtt is None:
        return forward_us, reverse_us
    forward = flow.rtt * forward_us // (forward_us + reverse_us)
    return forward, flow.rtt - forward


def resolve_flows(
    cell: Cell,
    network: Network,
    pairs: list[tuple[str, str]],
    delays: Delays,
    perturbation: Perturbation,
    *,
    virtual_time: bool,
    exact_uptime: bool,
) -> list[Flow]:
    scenario = cell.scenario
    flows = []
    port_pair = _port_pairs(cell, pairs, delays, perturbation)
    for index, (flow, pair) in enumerate(zip(scenario.every_flow, pairs, strict=True)):
        background = index >= len(scenario.flows)
        source, sink = traffic_of(cell, flow).ends(virtual_time=virtual_time)
        direction = getattr(flow, "direction", "forward")
        sender, receiver = pair if direction == "forward" else pair[::-1]
        number = index + 1 - (len(scenario.flows) if background else 0)
        algorithm = cell.algorithms[flow.algorithm or scenario.algorithm]
        start, stop = _times(flow, perturbation.start_offset_us[index], scenario.duration)
        if start >= stop:
            what = f"flow {index + 1} would start at {start} us, perturbed, and ends at {stop} us"
            raise ProfileError(what, where=cell.place(*scenario.place_of(index), "start"), hint="start it earlier")
        generated = flow if isinstance(flow, GeneratedFlowSection) else None
        if generated and generated.udp and source != "kernel":
            hint = "run it with the uml engine and its own traffic"
            what = "datagrams are sent and counted by the in-kernel traffic only"
            raise ProfileError(what, where=cell.place("groups", generated.origin, "udp"), hint=hint)
        if generated and generated.udp and generated.udp.packet > scenario.path.mtu:
            what = f"a packet of {generated.udp.packet} bytes is larger than the path's MTU, {scenario.path.mtu}"
            raise ProfileError(what, where=cell.place("groups", generated.origin, "udp", "packet"))
        if generated and generated.http and not virtual_time:
            hint = "run it with the uml engine"
            what = "the server takes its congestion control from the kernel's default, which is not ours in real time"
            raise ProfileError(what, where=cell.place("groups", generated.origin, "http"), hint=hint)
        moved_us = start - flow.start
        if generated is None:
            _require_time(TRAFFIC[source], cell, flow, index, virtual_time=virtual_time)
        forward, reverse = delays.of_host[receiver], delays.of_host[sender]
        if generated is None:
            _require_round_trips(cell, flow, index, stop - start, forward + reverse)
        if generated is None and flow.opener == "receiver" and TRAFFIC[source].sender_connects:
            what = f"with {source} it is the sender that connects"
            hint = "let kernel or python send (traffic.source), or leave opener out"
            raise ProfileError(what, where=cell.place("flows", index, "opener"), hint=hint)
        program = None
        if generated is None and source == PROGRAM:
            program = program_of(cell, index, stop_us=stop, start_us=start, exact_uptime=exact_uptime)
        ports = port_pair[index][0], flow.port or port_pair[index][1]
        server_sends = program is not None and program.sends == "server"
        source_port, destination_port = ports[::-1] if server_sends else ports
        flows.append(
            Flow(
                id=index + 1,
                name=flow.name or f"{'background' if background else 'flow'}{number}",
                sender=sender,
                receiver=receiver,
                source_address=bare(network.access_link(sender).at(sender).address),
                source_port=source_port,
                destination_address=bare(network.access_link(receiver).at(receiver).address),
                destination_port=destination_port,
                algorithm=algorithm.name,
                kernel_algorithm=(stack_algorithm(cell, index, algorithm.name) if program else None)
                or algorithm.kernel,
                traffic=_end(generated, source),
                sink=_end(generated, sink),
                start_us=start,
                stop_us=stop,
                size_bytes=flow.size,
                forward_delay_us=forward,
                reverse_delay_us=reverse,
                rtt_us=forward + reverse,
                initial_window_packets=flow.initial_window or KERNEL_INITIAL_WINDOW_PACKETS,
                opener="receiver" if server_sends else flow.opener,
                role=BACKGROUND if background else MEASURED,
                direction=direction,
                group=generated.group if generated else None,
                request_bytes=generated.request if generated and generated.requests == 1 else None,
                **(_datagrams(generated, moved_us, stop) if generated and generated.udp else {}),
                http=_transactions(generated) if generated and generated.http else None,
                exchange=_exchange(generated) if generated and generated.requests > 1 else None,
                program=program,
                like=algorithm.like,
            )
        )
    _require_free_ports(cell, flows)
    return flows


def _port_pairs(
    cell: Cell, pairs: list[tuple[str, str]], delays: Delays, perturbation: Perturbation
) -> list[tuple[int, int]]:
    """Return sender's and receiver's port of each flow. Raise ProfileError."""
    scenario = cell.scenario
    wanted = []
    for index, (flow, pair) in enumerate(zip(scenario.every_flow, pairs, strict=True)):
        start_us, _ = _times(flow, perturbation.start_offset_us[index], scenario.duration)
        rtt_us = sum(delays.of_host[host] for host in pair)
        hosts = pair if getattr(flow, "direction", "forward") == "forward" else pair[::-1]
        wanted.append(PortNeed(not _takes_turns(flow), start_us, rtt_us, hosts))
    try:
        return port_pairs(wanted)
    except ProfileError as error:
        raise ProfileError(error.what, where=cell.place("groups"), hint=error.hint) from None


def _takes_turns(flow: FlowSection) -> bool:
    """Whether the flow has its ports only while it lasts: a connection of a group between two sockets of the agent."""
    return isinstance(flow, GeneratedFlowSection) and flow.udp is None and flow.http is None


def _require_free_ports(cell: Cell, flows: list[Flow]) -> None:
    """Raise ProfileError if a port that the profile names is also used by another flow on that host.

    Nor may it be one of the senders' ports: sockets in a trace are distinguished by the two ports alone.
    """
    scenario = cell.scenario
    given = [flow.port for flow in scenario.every_flow]
    last_source_port = FIRST_SOURCE_PORT + min(len(flows), MOST_PORTS) - 1
    users: dict[tuple[str, int, bool], Flow] = {}
    for index, flow in enumerate(flows):
        server, port = _listens(flow)
        if given[index] is not None and FIRST_SOURCE_PORT <= port <= last_source_port:
            what = f"port {port} is one of those that senders connect from"
            hint = f"choose one outside of {FIRST_SOURCE_PORT} to {last_source_port}"
            where = cell.place(*scenario.place_of(index), "port")
            raise ProfileError(what, where=where, hint=hint)
        further = flow.program.ports if flow.program is not None else []
        for number in (port, *further):
            other = users.setdefault((server, number, not flow.is_tcp), flow)
            if other is not flow and not (other.group and flow.group):
                break
        else:
            continue
        where = cell.place(*scenario.place_of(index), "port")
        if number in further:
            where = cell.place(*traffic_place(cell, index), "ports", further.index(number))
        elif given[index] is None:
            where = cell.place(*scenario.place_of(flows.index(other)), "port")
        what = f"{other.name} and {flow.name} would both use port {number} of {server}"
        hint = "choose another port; the i-th flow has 5000 + i if it names none"
        raise ProfileError(what, where=where, hint=hint.replace("5000", str(FIRST_DESTINATION_PORT - 1)))


def _listens(flow: Flow) -> tuple[str, int]:
    """Return the host and port that listen: the receiver's, except if a program sends that accepted the connection."""
    if flow.program is not None and flow.program.sends == "server":
        return flow.sender, flow.source_port
    return flow.receiver, flow.destination_port


def _times(flow: FlowSection, offset_us: int, duration_us: int) -> tuple[int, int]:
    """Return start and stop of a flow, delayed by its perturbation; one of a group keeps its lifetime."""
    start, stop = flow.start + offset_us, flow.stop or duration_us
    if not isinstance(flow, GeneratedFlowSection):
        return start, stop
    moved = stop if flow.stop is None else min(stop + offset_us, duration_us)
    return min(start, moved - 1), moved


def _end(flow: GeneratedFlowSection | None, asked: str) -> str:
    """Return what sends or receives. Short transfers do not use iperf3, whose control connection would dominate."""
    if flow is not None and flow.http is not None:
        return "http"
    if flow is not None and flow.requests > 1:
        return "python"
    if flow is not None and asked == PROGRAM:
        return "kernel"
    return "python" if flow is not None and asked in PAIRED else asked


def _require_time(kind: TrafficKind, cell: Cell, flow: FlowSection, index: int, *, virtual_time: bool) -> None:
    """Raise ProfileError if a kind of traffic cannot make the flow: outside a guest, or by size instead of time."""
    if kind.needs_guest and not virtual_time:
        raise ProfileError(kind.needs_guest, where=cell.place("traffic", "source"), hint="run it with the uml engine")
    if kind.needs_time and flow.size is not None:
        where = cell.place("flows", index, "size")
        raise ProfileError(kind.needs_time, where=where, hint="give the flow start and stop")


def _require_round_trips(cell: Cell, flow: FlowSection, index: int, lasts_us: int, rtt_us: int) -> None:
    """Raise ProfileError for a flow that ends before the first ACK of its data, after the handshake and one more RTT.

    Nothing could be recorded about it.
    """
    if lasts_us > 2 * rtt_us:
        return
    what = f"flow {index + 1} lasts {duration(lasts_us)}, and the first ACK of its data comes after two round trips"
    hint = f"let it last longer than {duration(2 * rtt_us)}"
    where = cell.place("duration") if flow.stop is None else cell.place(*cell.scenario.place_of(index), "stop")
    raise ProfileError(what, where=where, hint=hint)


def _transactions(flow: GeneratedFlowSection) -> HttpRequests:
    """Return the field ``http`` of a flow."""
    assert flow.http is not None
    return HttpRequests(flow.http.object, flow.http.requests, flow.http.every)


def _exchange(flow: GeneratedFlowSection) -> Exchange:
    """Return the field ``exchange`` of a flow."""
    assert flow.request is not None
    return Exchange(flow.answer, flow.request, flow.requests, flow.think)


def _datagrams(flow: GeneratedFlowSection, moved_us: int, stop_us: int) -> dict[str, Any]:
    """Return the fields of a flow of datagrams: an interval to the nanosecond, and bursts that end with the flow."""
    assert flow.udp is not None
    bursts = [[begin + moved_us, min(end + moved_us, stop_us)] for begin, end in flow.bursts]
    return {
        "datagram_bytes": flow.udp.packet - IP_AND_UDP_BYTES,
        "datagram_interval_ns": round(frame_bytes(flow.udp.packet) * 8_000_000_000 / flow.udp.rate),
        "bursts": [burst for burst in bursts if burst[0] < burst[1]],
    }


def spoken_of(cell: Cell, flows: list[Flow]) -> str:
    """Return the algorithm that the run is named after: the profile's, or the first flow's if each flow names its own
    and none is swept."""
    asked = cell.scenario.algorithm
    is_swept = any(name.rpartition(".")[2] == "algorithm" for name in cell.axes)
    users = [flow for flow in flows if flow.datagram_bytes is None]
    return asked if is_swept or not users or any(flow.algorithm == asked for flow in users) else users[0].algorithm
