# SPDX-License-Identifier: Apache-2.0
"""Compiles one cell of a profile to the plan of one run: a pure function; nothing downstream derives anything again."""

from __future__ import annotations

import dataclasses
from pathlib import Path as FilePath

from howdah.errors import ProfileError
from howdah.frame import STAMPED_TCP_BYTES
from howdah.plan.calibration import calibration
from howdah.plan.division import divide
from howdah.plan.event import Event, StartFlow, StopFlow
from howdah.plan.exchange import with_host_queues
from howdah.plan.flow import endpoints, host_delays, resolve_flows, spoken_of
from howdah.plan.group import expand, pairs_of
from howdah.plan.kept import PerturbationRecord
from howdah.plan.kernel import OwnKernel
from howdah.plan.link import facts, find_link
from howdah.plan.memory import Sizes, sizes, with_captures
from howdah.plan.middlebox import middlebox, through
from howdah.plan.model import as_model, check_model
from howdah.plan.module import check_bpf, module_builds, own_algorithms, required_modules
from howdah.plan.network import Network, bare
from howdah.plan.path import Hop, Path
from howdah.plan.perturbation import Perturbation, check_jitter, draw
from howdah.plan.plan import Collect, Flow, Host, Plan, RealTime
from howdah.plan.processor import find_processors, install
from howdah.plan.program import program_places
from howdah.plan.queue import check_drains, check_kernels, forward_buffer, policed, reverse_buffer
from howdah.plan.receiver import (
    ack_filters,
    acknowledge_at_once,
    find_receivers,
    name_receivers,
    receiver_settings,
    tune,
)
from howdah.plan.schedule import Schedule, schedule
from howdah.plan.sender import core_parameters, sender_record
from howdah.plan.shaping import Shaping, find_hops, shape
from howdah.plan.stack import name_stacks, receiver_name
from howdah.plan.sysctl import host_settings, kernel_settings
from howdah.plan.timetable import timetable
from howdah.plan.topology import load_topo, lower
from howdah.plan.wiring import wire
from howdah.profile import Cell
from howdah.profile.end import FIXED
from howdah.profile.model import Scenario
from howdah.profile.written import check_kernel_name, written_path
from howdah.quantity import exact_bdp
from howdah.registered import registered
from howdah.trait import Traits, engines, known_engines, traits

VIRTUAL_SETUP_US = 3_000_000  # boot and building the network, in virtual time
REAL_SETUP_US = 30_000_000

PACKETS_PER_WALL_SECOND = 20_000  # least speed of an engine: a tenth of one core's with in-kernel traffic
USER_SPACE_SLOWDOWN = 10
WALL_CLOCK_BASE_S = 120.0


def compile_plan(cell: Cell, engine: str | None = None, kernel: str | None = None) -> Plan:
    """Return the plan of one run; ``engine`` and ``kernel`` override the profile's. Raise ProfileError.

    The result depends only on the arguments, the topology's file and this package.
    """
    cell = expand(cell)
    scenario = cell.scenario
    engine = engine or scenario.engine
    if engine not in engines():
        raise ProfileError(f"there is no engine called {engine!r}", hint=f"The engines are {known_engines(engine)}.")
    real_time = _real_time(cell, traits(engine))
    kind = traits(engine, real_time=real_time is not None)
    check_model(cell, engine, kernel, kind)
    check_bpf(cell, engine, kind)
    # howdah's own kernel or simulator sends and receives.
    own = kind.own_kernel or bool(kind.model)
    processor_shift = scenario.machine.shift if kind.finite_processor else None
    network, topology_arguments = _network(cell)
    perturbation = draw(scenario, cell.repetition, scenario.path.forward_delay_us + scenario.path.reverse_delay_us)
    check_jitter(perturbation, cell.place("perturbation", "jitter"))
    pairs = endpoints(cell, network)
    delays = host_delays(cell, network, pairs, perturbation)
    flows = resolve_flows(
        cell, network, pairs, delays, perturbation, virtual_time=own, exact_uptime=kind.exact_uptime and not kind.model
    )
    receivers = find_receivers(cell, flows, virtual_time=own)
    flows = name_stacks(cell, network, name_receivers(flows, receivers), kind)
    processors = find_processors(cell, network, receivers, kind)
    varying = schedule(cell, perturbation, timetable(cell), kind)
    links = (find_link(cell, "link", kind), find_link(cell, "reverse_link", kind))
    path = _path(scenario, perturbation, varying, find_hops(cell, network, pairs[0]))
    path = through(dataclasses.replace(path, link=facts(links[0]), reverse_link=facts(links[1])), middlebox(cell, kind))
    path = policed(scenario.path, path, several_kernels=scenario.split or kind.several_machines)
    check_drains(cell, path)
    added_us = varying.forward_largest_us + varying.reverse_largest_us
    size = sizes(path, flows, scenario.duration, added_us, fixed_send_buffers=scenario.host.tcp_wmem == FIXED)
    shaping = shape(cell, network, pairs, path, delays, varying, links, virtual_time=kind.virtual_clock)
    measured = calibration(
        *(scenario, network, pairs, path, delays, varying, shaping.queues),
        several_clocks=kind.several_machines,
        processor_shift=processor_shift or 0,
    )
    builtin = {name: entry for name, entry in cell.algorithms.items() if entry.builtin}
    setup_us = VIRTUAL_SETUP_US if kind.exact_uptime else REAL_SETUP_US
    window = scenario.measure.window
    collected = _collect(cell, network, size, flows)
    kernel_parameters = {f"{a.module}.{key}": value for a in builtin.values() for key, value in a.parameters.items()}
    if not scenario.host.ipv6:
        kernel_parameters["ipv6.disable"] = "1"
    whole = Plan(
        profile=cell.profile,
        run=cell.run,
        engine=engine,
        kernel=engine if kind.several_machines else _kernel(cell, kernel),
        axes=dict(cell.axes),
        algorithm=spoken_of(cell, flows),
        repetition=cell.repetition,
        seed=scenario.seed,
        perturbation=_perturbation_record(scenario, perturbation),
        topology=network.name,
        hosts=[_host(network, node) for node in network.roles],
        path=path,
        flows=flows,
        operations=[
            *kernel_settings(cell, size, len(flows)),
            *acknowledge_at_once(wire(network, cell, pairs), receivers),
            *receiver_settings(receivers),
            *host_settings(cell, network, size, len(flows)),
            *shaping.operations,
            *ack_filters(cell, network, receivers, shaping.operations),
            *install(processors),
        ],
        timeline=_timeline(flows, shaping),
        calibration=measured,
        collect=collected,
        modules=[str(cell.absolute(module.file, "modules", index)) for index, module in enumerate(scenario.modules)],
        module_builds=module_builds(cell),
        module_parameters={
            entry.module: dict(entry.parameters)
            for entry in cell.algorithms.values()
            if entry.module and entry.parameters and not entry.builtin
        }
        | core_parameters(cell),
        kernel_parameters=kernel_parameters,
        traits=kind,
        required_modules=required_modules(cell, flows, receivers, processors),
        own_algorithms=own_algorithms(cell),
        # The same with and without calibration: it determines the phases of the kernel's ticks and timers at time zero.
        epoch_us=setup_us + measured.phase_us + measured.settle_us,
        duration_us=scenario.duration,
        guest_memory_bytes=with_captures(size.guest_memory_bytes, len(collected.pcap)),
        wall_clock_limit_s=_wall_clock_limit_s(scenario, path, flows),
        measure_window_us=(window.start, window.stop or scenario.duration),
        processor_shift=processor_shift,
        real_time=real_time,
        own_kernel=_own_kernel(cell, kind),
        machine_kernels=_machine_kernels(cell, engine, kind),
        measure_cwnd_packets=scenario.measure.reach,
        topology_arguments=topology_arguments,
        receiver=receiver_name(cell),
        sender=sender_record(scenario),
        processors=processors,
        parameter_places=cell.parameter_places() | program_places(cell, flows),
    )
    whole = as_model(cell, dataclasses.replace(whole, collect=_of_what_is_there(whole)))
    divided = divide(cell, whole, lambda name, place: str(cell.absolute(name, *place)) if "/" in name else name)
    check_kernels(cell, divided)
    return with_host_queues(cell, network, tune(divided, receivers))


def _network(cell: Cell) -> tuple[Network, dict[str, int]]:
    """Return the network and the arguments of its class."""
    section = cell.scenario.topology
    file = cell.absolute(section.file, "topology", "file") if section.file is not None else None
    hops = cell.scenario.path.hops
    name = section.class_ or section.name or ("chain" if hops else "dumbbell")
    # A user's topology decides how many hosts it has, unless the profile does.
    pairs = section.pairs if section.pairs or file else pairs_of(cell.scenario)
    arguments = {} if pairs is None else {"pairs": pairs}
    if file is None and name == "chain":
        before = sum(hop.place == "before" for hop in hops)
        arguments |= {"before": before, "after": len(hops) - before}
    try:
        return lower(load_topo(name, file, section.class_, arguments), name), arguments
    except ProfileError as error:
        place = cell.place("topology", "file") if file else cell.place("topology")
        where = f"{place}: {error.where}" if error.where else place
        raise ProfileError(error.what, where=where, hint=error.hint) from error


def _path(scenario: Scenario, perturbation: Perturbation, varying: Schedule, hops: list[Hop]) -> Path:
    """Resolve the path. The buffer is a multiple of the *nominal* BDP: a perturbed RTT does not change the buffer."""
    asked = scenario.path
    frame = asked.frame_bytes
    forward, reverse = perturbation.delay_us(asked.forward_delay_us), perturbation.delay_us(asked.reverse_delay_us)
    bdp = int(exact_bdp(asked.rate, forward + reverse))
    mss = asked.mtu - STAMPED_TCP_BYTES
    (size_bytes, packets), (reverse_bytes, reverse_packets) = forward_buffer(asked, frame), reverse_buffer(asked, frame)
    return Path(
        rate_bits_per_second=asked.rate,
        reverse_rate_bits_per_second=asked.reverse_rate,
        forward_delay_us=forward,
        reverse_delay_us=reverse,
        rtt_us=forward + reverse,
        buffer_bytes=size_bytes,
        buffer_packets=packets,
        reverse_queue=asked.reverse_queue.kind,
        bdp_bytes=bdp,
        bdp_packets=bdp // frame,
        mtu_bytes=asked.mtu,
        mss_bytes=mss,
        frame_bytes=frame,
        capacity_goodput_bits_per_second=asked.rate * mss / frame,
        sender_interface_bits_per_second=asked.sender_interface,
        gso_max_segs=asked.gso_max_segs,
        loss_ratio=float(asked.loss),
        delay_variation=varying.record(asked.delay_variation),
        queue=asked.queue.kind,
        ecn=asked.ecn,
        hops=hops,
        early_us=asked.early_us,
        reorder_ratio=float(asked.reorder.share_of_all) if asked.reorder else 0.0,
        least_added_us=varying.least_us,
        rate_steps=[list(step) for step in varying.other.rate],
        forward_loss_steps=[list(step) for step in varying.other.forward_loss],
        reverse_loss_steps=[list(step) for step in varying.other.reverse_loss],
        carried_bits_per_second=_carried(scenario, varying),
        tick_us=asked.tick or 0,
        reverse_buffer_bytes=reverse_bytes,
        reverse_buffer_packets=reverse_packets,
        loss_burst_packets=asked.loss_burst,
        reverse_loss_ratio=float(asked.reverse_loss),
        reverse_loss_burst_packets=asked.reverse_loss_burst,
        jitter=varying.jitter,
        delay_limit_packets=asked.delay_limit,
        reverse_rate_steps=[list(step) for step in varying.other.reverse_rate],
    )


def _carried(scenario: Scenario, varying: Schedule) -> int:
    """Return the highest rate of all flows together: over the bottleneck, the other hops, and in reverse."""
    asked = scenario.path
    hops = sum(hop.rate for hop in asked.hops) if scenario.background else 0
    back = asked.reverse_rate or 0 if any(flow.direction == "reverse" for flow in scenario.background) else 0
    return max([asked.rate, *(rate for _, rate in varying.other.rate)]) + hops + back


def _perturbation_record(scenario: Scenario, perturbation: Perturbation) -> PerturbationRecord:
    return PerturbationRecord(
        scenario.repetitions > 1,
        float(perturbation.rtt_factor),
        list(perturbation.start_offset_us),
        perturbation.jitter_us,
    )


def _host(network: Network, node: str) -> Host:
    role = network.roles[node]
    if role == "router":
        return Host(node, role)
    own = network.access_link(node).at(node)
    return Host(node, role, bare(own.address), bare(own.second_address or own.address))


def _timeline(flows: list[Flow], shaping: Shaping) -> list[Event]:
    events = [Event(flow.start_us, StartFlow(flow.id)) for flow in flows]
    events += [Event(flow.stop_us, StopFlow(flow.id)) for flow in flows]
    # At the same instant the path changes first, then flows stop, then flows start.
    order = {"class": 0, "qdisc": 0, "link": 0, "stop_flow": 1, "start_flow": 2}
    return sorted(events + shaping.changes, key=lambda item: (item.at_us, order[item.op]))


def _collect(cell: Cell, network: Network, size: Sizes, flows: list[Flow]) -> Collect:
    asked = cell.scenario.collect
    names = [f"{end.node}:{end.name}" for link in network.links for end in (link.a, link.b)]
    for index, name in enumerate(asked.pcap):
        if name not in names:
            hint = f"the interfaces are {', '.join(names)}"
            raise ProfileError(f"there is no interface {name!r}", where=cell.place("collect", "pcap", index), hint=hint)
    return Collect(
        tcp_probe=asked.tcp_probe,
        intervals_us=asked.intervals_us,
        ss=asked.ss,
        # A qlog is only the stack's claim, so its host's packets are captured as well. For a TCP that is not the
        # kernel's, the capture is the only record.
        pcap=list(
            dict.fromkeys(
                [*asked.pcap, *(_access(network, flow.sender) for flow in flows if flow.quic or flow.sender_stack)]
            )
        ),
        trace_buffer_bytes=size.trace_buffer_bytes,
        slow_start=asked.slow_start,
        cpu=asked.cpu,
    )


def _of_what_is_there(plan: Plan) -> Collect:
    """Remove the collectors of features that the plan lacks."""
    asked = {name: registered()[name].collector for name in plan.collect.intervals_us}
    return plan.collect.at(**{name: None for name, kind in asked.items() if not kind.planned_for(plan)})


def _access(network: Network, host: str) -> str:
    return f"{host}:{network.access_link(host).at(host).name}"


def _real_time(cell: Cell, kind: Traits) -> RealTime | None:
    """Return the real-time machine, if any. Raise ProfileError for processor time, which needs virtual time."""
    machine = cell.scenario.machine
    if not kind.boots_machine or machine.time == "virtual":
        return None
    if cell.scenario.collect.cpu:
        what = "processor time by function needs machine.time: virtual on the vm engine"
        raise ProfileError(what, where=cell.place("collect", "cpu"))
    return RealTime(machine.accelerator)


def _own_kernel(cell: Cell, kind: Traits) -> OwnKernel | None:
    machine = cell.scenario.machine
    if not kind.boots_machine or (machine.modules is None and machine.headers is None):
        return None
    modules, headers = (
        str(cell.absolute(path, "machine", name)) if path is not None else None
        for name, path in (("modules", machine.modules), ("headers", machine.headers))
    )
    return OwnKernel(modules, headers)


def _machine_kernels(cell: Cell, engine: str, kind: Traits) -> dict[str, str] | None:
    """Return the kernel of each machine. Raise ProfileError if some are named and the engine has no such machines."""
    asked = cell.scenario.machines.kernels()
    if asked and not kind.several_machines:
        role = next(iter(asked))
        what = f"the {engine} engine has no {role} machine to choose by its kernel"
        raise ProfileError(
            what, where=cell.place("machines", role, "kernel"), hint="run it on several machines: --engine machines"
        )
    return asked or None


def _kernel(cell: Cell, asked: str | None) -> str:
    """Return the name of a kernel, or the absolute path of its tree; a relative path starts where it was written."""
    if asked is not None:
        where = f"--kernel {asked[:60]}"
        check_kernel_name(asked, where)
        return str(written_path(FilePath.cwd(), asked, where).resolve()) if "/" in asked else asked
    kernel = cell.scenario.kernel
    return str(cell.absolute(kernel, "kernel")) if "/" in kernel else kernel


def _wall_clock_limit_s(scenario: Scenario, path: Path, flows: list[Flow]) -> float:
    """Return a limit far above a run's duration; a guest that exceeds it without progress in simulated time hangs."""
    seconds = scenario.duration / 1e6
    packets = (path.carried_bits_per_second or path.rate_bits_per_second) / 8 / path.frame_bytes * seconds
    in_kernel = all(flow.traffic == flow.sink == "kernel" and not flow.stacks for flow in flows)
    slowdown = 1 if in_kernel else USER_SPACE_SLOWDOWN
    return round(WALL_CLOCK_BASE_S + 2 * seconds + slowdown * packets / PACKETS_PER_WALL_SECOND, 1)
