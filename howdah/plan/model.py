# SPDX-License-Identifier: Apache-2.0
"""The plan of an engine whose TCP is a model, and the refusal of everything that has no counterpart in it.

``model`` of plan.json holds the resolved parameters: nothing downstream reads howdah/profile/ns2.yaml.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator

from howdah.algorithm import Algorithm
from howdah.errors import ProfileError
from howdah.plan.generated import GeneratedFlowSection
from howdah.plan.kept import ModelFlow, ModelRecord
from howdah.plan.plan import Flow, Plan
from howdah.profile import Cell
from howdah.profile.end import FIXED, TODAY
from howdah.profile.machine import Agent, ParameterSet, declared
from howdah.profile.model import FlowSection, Scenario
from howdah.profile.traffic import TrafficSection
from howdah.receiver import LINUX
from howdah.trait import Traits

Refusal = tuple[tuple[str | int, ...], str, str]  # place in the profile, what the model lacks, hint

MODELLED = "model"  # traffic and sink of every flow
_KERNEL_NEEDED = "run it with the uml engine, which boots a kernel"
_LEAVE_OUT = "leave it out"
# Operations that describe the network; the others concern kernels only.
_NETWORK = ("node", "link", "qdisc", "filter", "class")
# Fields of a path that a model supports; the other fields are unset unless the profile sets them.
_OF_PATHS = (
    *("like", "rate", "reverse_rate", "rtt", "one_way_delay", "buffer", "reverse_buffer", "queue", "reverse_queue"),
    *("ecn", "mtu", "sender_interface", "burst", "gso_max_segs", "loss"),
)
_LEAST_WINDOW_PACKETS = 10_000
_SPARE_WINDOWS = 4  # an unlimited window, as a multiple of what the path holds
_NEEDED_BUFFERS = 2  # a kernel's receive buffer is about twice the payload that it holds; a smaller one limits

# Kernel's name of an algorithm to its counterpart: a TCP of ns-2 by its name in ns2.yaml, None for that of the
# parameter set. Other names are congestion controls of Agent/TCP/Linux, if it has them.
_ALGORITHMS: dict[str, str | None] = {"standard_reno": None, "reno": None, "jump_reno": None, "vegas": "vegas"}
_JUMPS = "jump_reno"
_PARAMETERS = {"init_ssthresh": "ssthresh_"}  # parameters of algorithms to their names in ns-2
_HYSTART = ("hystart", "1")
_SINKS_WITHOUT_SACK = ("TCPSink",)
_DELAYED = {"TCPSink": "TCPSink/DelAck", "TCPSink/Sack1": "TCPSink/Sack1/DelAck"}
_TRUE = ("true", "1")
_DELAYED_ACK_S = "0.2"  # delay of the behaviour delayed-ack (howdah/receiver.py)


def check_model(cell: Cell, engine: str, kernel: str | None, kind: Traits) -> None:
    """Raise ProfileError, with file and line, for the first thing in the profile that the model lacks."""
    if not kind.model:
        return
    if kernel is not None:
        raise ProfileError(
            f"the {engine} engine boots no kernel: it is a {kind.label}", where=f"--kernel {kernel[:60]}"
        )
    scenario = cell.scenario
    for found in (_of_path, _of_hosts, _of_run, _of_traffic):
        for place, what, hint in found(scenario):
            where = cell.place(*place)
            raise ProfileError(f"the {engine} engine is a {kind.label} and has no {what}", where=where, hint=hint)


def _of_path(scenario: Scenario) -> Iterator[Refusal]:
    path = scenario.path
    for field in ("queue", "reverse_queue"):
        queue = getattr(path, field)
        if queue.kind != "fifo":
            yield ("path", field), f"queue {queue.kind} that would be the kernel's", "fifo drops at the tail"
        elif queue.counts is not None:
            yield ("path", field, "counts"), "choice of what a queue counts", "ns2.parameters say it"
    for field in type(path).model_fields:
        if field not in _OF_PATHS and getattr(path, field):
            yield ("path", field), field.replace("_", " "), "run it with the uml engine"
    if path.gso_max_segs != 1:
        yield ("path", "gso_max_segs"), "segmentation offload", _LEAVE_OUT
    if scenario.perturbation.jitter.amount:
        yield ("perturbation", "jitter"), "jitter", _LEAVE_OUT
    if scenario.topology.file is not None or scenario.topology.name not in (None, "dumbbell"):
        yield ("topology",), "topology but the dumbbell", _LEAVE_OUT


def _of_hosts(scenario: Scenario) -> Iterator[Refusal]:
    if scenario.sender.behaviour != TODAY:
        yield ("sender",), "sender of another time", "name a set: ns2.parameters"
    if scenario.sender.queue.kind != "fifo":
        yield ("sender", "queue"), f"queue {scenario.sender.queue.kind} of a host", _LEAVE_OUT
    host = scenario.host
    if host.sysctls:
        yield ("host", "sysctls"), "sysctls", "ns2.settings are its instance variables"
    for field in ("packets_per_ack", "first_acks_per_packet"):
        if getattr(host, field) is not None:
            yield ("host", field), "kernel's plug-ins", "ns2.settings are its instance variables"
    for field in ("tcp_rmem", "tcp_wmem"):
        asked = getattr(host, field)
        if asked and asked != FIXED and int(asked.split()[-1]) < _needed_bytes(scenario):
            yield ("host", field), "buffers of a host", "ns2.settings: {window_: PACKETS} is its receive window"
    for end in ("sender", "receiver"):
        if getattr(scenario, end).kernel is not None:
            yield (end, "kernel"), "kernel", _KERNEL_NEEDED
        if getattr(scenario, end).processor.is_there:
            yield (end, "processor"), "processor of a host", _KERNEL_NEEDED
    if scenario.split:
        yield ("split",), "kernel to divide", _LEAVE_OUT


def _needed_bytes(scenario: Scenario) -> int:
    path = scenario.path
    return int(_NEEDED_BUFFERS * (path.bdp() + path.buffer.to_bytes(path.bdp(), path.frame_bytes)))


def _of_run(scenario: Scenario) -> Iterator[Refusal]:
    if scenario.modules:
        yield ("modules", 0), "kernel to load modules into", _KERNEL_NEEDED
    if scenario.collect.pcap:
        yield ("collect", "pcap", 0), "packets to capture", _KERNEL_NEEDED
    if scenario.collect.cpu:
        yield ("collect", "cpu"), "processor whose time could be reported", _KERNEL_NEEDED
    for field in ("source", "sink"):
        program = getattr(scenario.traffic, field)
        if program not in (None, "kernel"):
            yield ("traffic", field), f"{program}", "leave traffic out: its own agents send and receive"
    traffics: list[tuple[tuple[str | int, ...], TrafficSection | None]] = [(("traffic",), scenario.traffic)]
    traffics += [
        ((*scenario.place_of(index), "traffic"), flow.traffic) for index, flow in enumerate(scenario.every_flow)
    ]
    for place, traffic in traffics:
        if traffic is not None and traffic.is_program:
            field = "client" if traffic.has_programs else "quic"
            yield (*place, field), "program to run", "leave traffic out: its own agents send and receive"


def _of_traffic(scenario: Scenario) -> Iterator[Refusal]:
    for index, group in enumerate(scenario.groups):
        place = ("groups", index)
        for field, what in (("udp", "datagrams"), ("http", "HTTP"), ("request", "requests")):
            if getattr(group, field) is not None:
                yield (*place, field), f"{what} in this howdah", _KERNEL_NEEDED
    for index, flow in enumerate(scenario.every_flow):
        place = scenario.place_of(index)
        if flow.opener != "sender":
            hint = "opener: sender; ns-2's one-way TCPs are opened by what sends"
            yield (*place, "opener"), "receiver that connects", hint
        if flow.receiver_kernel is not None:
            yield (*place, "receiver_kernel"), "kernel", _KERNEL_NEEDED


def as_model(cell: Cell, plan: Plan) -> Plan:
    """Return the plan with the model's parameters and without what only a kernel has; unchanged if a kernel runs.

    Raise ProfileError for an algorithm or a receiver that ns-2 lacks.
    """
    if not plan.traits.model:
        return plan
    known, section = declared(), cell.scenario.ns2
    chosen = known.sets[section.parameters]
    settings = {**chosen.settings, **section.settings}
    window = int(float(settings.pop("window_", chosen.window or _window_packets(plan))))
    asked: list[FlowSection] = list(cell.scenario.every_flow)
    flows = {
        str(flow.id): _flow(cell, index, flow, chosen, settings)
        for index, (flow, _) in enumerate(zip(plan.flows, asked, strict=True))
    }
    model = ModelRecord(known.release, section.parameters, chosen.queue, window, settings, flows)
    return dataclasses.replace(
        plan,
        kernel=plan.traits.label,
        flows=[dataclasses.replace(flow, traffic=MODELLED, sink=MODELLED) for flow in plan.flows],
        operations=[item for item in plan.operations if item.op in _NETWORK],
        module_parameters={},
        kernel_parameters={},
        required_modules=[],
        own_algorithms={},
        model=model,
    )


def _window_packets(plan: Plan) -> int:
    path = plan.path
    rtt_us = max(flow.rtt_us for flow in plan.flows)
    holds = path.held_bytes(rtt_us) // path.frame_bytes
    return max(_LEAST_WINDOW_PACKETS, _SPARE_WINDOWS * holds)


def _flow(cell: Cell, index: int, flow: Flow, chosen: ParameterSet, settings: dict[str, str]) -> ModelFlow:
    scenario = cell.scenario
    written = scenario.flow_at(index)
    place: tuple[str | int, ...] = (*scenario.place_of(index), "algorithm") if written.algorithm else ("algorithm",)
    if isinstance(written, GeneratedFlowSection) and written.algorithm:
        place = ("groups", written.origin, "algorithm")
    where = cell.place(*place)
    algorithm = cell.algorithms[written.algorithm or scenario.algorithm]
    section = scenario.algorithms.get(algorithm.name)
    by_kernel = section is not None and section.kernel is not None
    agent, congestion = _agent(algorithm, by_kernel, scenario.ns2.agent or chosen.agent, where)
    sink, sink_settings = _sink(cell, agent, flow)
    jumps = algorithm.kernel == _JUMPS
    if jumps and flow.size_bytes is None:
        hint = "give the flow a size, or the group its connections"
        raise ProfileError(
            f"{algorithm.name} sends all its data at once: {flow.title} has no size", where=where, hint=hint
        )
    own = {_PARAMETERS[name]: str(value) for name, value in algorithm.parameters.items() if name in _PARAMETERS}
    return ModelFlow(
        agent.sender,
        sink,
        congestion,
        jumps,
        handshake=agent.handshake and settings.get("syn_", "true") in _TRUE,
        settings={name: value for name, value in own.items() if settings.get(name) != value},
        sink_settings=sink_settings,
    )


def _agent(algorithm: Algorithm, by_kernel: bool, of_set: str, where: str) -> tuple[Agent, str | None]:
    """Return classes and congestion control; ``by_kernel``: a kernel's own is named, which Agent/TCP/Linux has."""
    known = declared()
    others = {name: value for name, value in algorithm.parameters.items() if name not in _PARAMETERS}
    name, value = _HYSTART
    if algorithm.kernel == "cubic" and others.pop(name, None) == value:
        what = "Agent/TCP/Linux has the cubic of Linux 2.6.22, which is older than HyStart"
        raise ProfileError(what, where=where, hint="cubic-no-hystart is it")
    if algorithm.kernel in _ALGORITHMS and not others and not by_kernel:
        return known.agents[_ALGORITHMS[algorithm.kernel] or of_set], None
    if algorithm.kernel in known.linux and not others:
        return Agent("TCP/Linux", "TCPSink/Sack1"), algorithm.kernel
    if others:
        what = f"ns-2 has no parameter {next(iter(others))} of {algorithm.name}"
        raise ProfileError(what, where=where, hint="ns2.settings are the instance variables of its TCPs")
    hint = (
        "it has standard, reno, jump-start, vegas and cubic-no-hystart, and, as algorithms: {NAME: {kernel: NAME}}, "
        f"those of Linux 2.6.22: {', '.join(known.linux)}"
    )
    raise ProfileError(f"ns-2 has no {algorithm.name}", where=where, hint=hint)


def _sink(cell: Cell, agent: Agent, flow: Flow) -> tuple[str, dict[str, str]]:
    behaviour = flow.receiver_behaviour
    if behaviour in (LINUX, "quick-ack"):
        return agent.sink, {}
    if behaviour == "delayed-ack":
        return _DELAYED[agent.sink], {"interval_": _DELAYED_ACK_S}
    if behaviour == "no-sack" and agent.sink in _SINKS_WITHOUT_SACK:
        return agent.sink, {}
    hint = "it has linux and quick-ack (an ACK for every packet), delayed-ack, and no-sack for a TCP without SACK"
    raise ProfileError(f"ns-2 has no receiver {behaviour} for {agent.sender}", where=cell.place("receiver"), hint=hint)
