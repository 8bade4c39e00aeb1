# SPDX-License-Identifier: Apache-2.0
"""A whole plan as text, for ``howdah plan`` and ``--dry-run``: numbers, all operations in order, the timeline."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from itertools import groupby, islice
from pathlib import Path as FilePath

from howdah.plan.event import Event
from howdah.plan.host_queue import host_queues, queue_words
from howdah.plan.jitter import Jitter
from howdah.plan.kept import ModelRecord, SenderRecord
from howdah.plan.middlebox import middlebox_words
from howdah.plan.path import LinkFacts, Losses, Path
from howdah.plan.placed import Class, Qdisc
from howdah.plan.plan import Plan, Processor
from howdah.plan.policer import Policer
from howdah.profile.module import provided_modules
from howdah.quantity import format_duration, format_nanoseconds, format_rate, format_size
from howdah.registered import registered

_MOST_OFFSETS = 8  # offsets that are listed one by one
_CHANGES_SHOWN = 2  # changes at either end of a shortened run of changes
_UNITS = {"_us": format_duration, "_bits_per_second": format_rate, "_bytes": format_size}


def render(plan: Plan, *, every_change: bool = False) -> str:
    """Return the plan's text. Long runs of path changes (delay variation) are shortened unless ``every_change``."""
    sections = [
        ("run", _run(plan)),
        ("path", _path(plan)),
        *([("sender " + plan.sender.name, _sender(plan.sender))] if plan.sender else []),
        *((f"processor of {each.host} ({each.model})", _processor(each)) for each in plan.processors),
        ("hosts", _hosts(plan)),
        ("flows", _flows(plan)),
        *([(plan.traits.label, _model(plan.model))] if plan.model else [("calibration", _calibration(plan))]),
        ("collect", _collect(plan)),
        *([] if plan.model else [("operations", _operations(plan))]),
        ("timeline (seconds after the epoch)", _timeline(plan, every_change=every_change)),
    ]
    lines: list[str] = []
    for title, body in sections:
        lines += [f"{title}:", *(f"  {line}" for line in body), ""]
    return "\n".join(lines)


def _pairs(rows: list[tuple[str, object]]) -> Iterator[str]:
    width = max(len(name) for name, _ in rows)
    return (f"{name:<{width}}  {value}" for name, value in rows)


def perturbation_words(plan: Plan) -> str:
    """Return how a repetition differs from the nominal path."""
    perturbation = plan.perturbation
    if not perturbation.applied:
        return "none (one repetition)"
    later = perturbation.start_offset_us
    offsets = ", ".join(format_duration(offset) for offset in later)
    if len(later) > _MOST_OFFSETS:
        least, most = format_duration(min(later)), format_duration(max(later))
        offsets = f"{least} to {most}, each of {len(later)} flows by its own"
    jitter = f"; jitter up to {format_duration(perturbation.jitter_us)}" if perturbation.jitter_us else ""
    return f"RTT x {perturbation.rtt_factor:.6f}; starts later by {offsets}{jitter}"


def _run(plan: Plan) -> Iterator[str]:
    rows: list[tuple[str, object]] = [
        ("profile", plan.profile),
        ("run", plan.run),
        ("point", ", ".join(f"{name} = {value}" for name, value in plan.axes.items()) or "(no sweep)"),
        ("repetition", plan.repetition),
        ("seed", plan.seed),
        ("perturbation", perturbation_words(plan)),
        ("engine", plan.engine),
        ("kernel", plan.kernel),
        *((f"kernel of {part.name}", f"{part.kernel}: {' '.join(part.hosts)}") for part in plan.parts),
        ("kernel parameters", " ".join(f"{key}={value}" for key, value in plan.kernel_parameters.items()) or "none"),
        ("modules", ", ".join(_modules(plan)) or "none"),
        ("topology", plan.topology),
        ("duration", format_duration(plan.duration_us)),
        ("measured window", " to ".join(format_duration(time) for time in plan.measure_window_us)),
        ("epoch at uptime", format_duration(plan.epoch_us)),
        ("guest memory", f"{plan.guest_memory_bytes >> 20} MiB"),
        ("wall-clock limit", f"{plan.wall_clock_limit_s:g} s"),
    ]
    if plan.measure_cwnd_packets is not None:
        rows.append(("measured time to a window of", f"{plan.measure_cwnd_packets} packets"))
    return _pairs(rows)


def _model(model: ModelRecord) -> Iterator[str]:
    """Yield the declared parameters and each flow's counterpart in the model."""
    settings = " ".join(f"{name}={value}" for name, value in model.settings.items())
    rows: list[tuple[str, object]] = [
        ("parameters", model.parameters),
        ("queue counts", model.queue),
        ("advertised window", f"{model.window_packets} packets"),
        ("settings", settings or "none but ns-2's own"),
    ]
    for flow, own in model.flows.items():
        congestion = f" with {own.congestion_control}" if own.congestion_control else ""
        told = " ".join(f"{name}={value}" for name, value in {**own.settings, **own.sink_settings}.items())
        what = f"Agent/{own.sender}{congestion} to Agent/{own.sink}{', all data at once' if own.jumps else ''}"
        rows.append((f"flow {flow}", f"{what} {told}".rstrip()))
    return _pairs(rows)


def _modules(plan: Plan) -> Iterator[str]:
    for path in plan.modules:
        build = plan.module_builds.get(path)
        extras = (tuple(map(FilePath, build.sources)), tuple(build.define.items())) if build else ()
        found = provided_modules(FilePath(path), *extras)
        names = {module.name for module in found}
        parameters = {key: value for name in names for key, value in plan.module_parameters.get(name, {}).items()}
        provides = [kernel for kernel, own in plan.own_algorithms.items() if own in names]
        what = ""
        if provides:
            what = f" (provides {' and '.join(provides)})"
        elif not names.intersection(plan.required_modules or []):
            what = " (not loaded in this run)"
        yield " ".join([path, *(f"{key}={value}" for key, value in parameters.items())]) + what


def _path(plan: Plan) -> Iterator[str]:
    path = plan.path
    reverse, sender = path.reverse_rate_bits_per_second, path.sender_interface_bits_per_second
    rows: list[tuple[str, object]] = [
        ("rate", format_rate(path.rate_bits_per_second)),
        ("reverse rate", "unlimited" if reverse is None else format_rate(reverse)),
        ("delay forward", format_duration(path.forward_delay_us)),
        ("delay reverse", format_duration(path.reverse_delay_us)),
        ("RTT", format_duration(path.rtt_us)),
        ("BDP", f"{path.bdp_bytes} bytes = {path.bdp_packets} frames of {path.frame_bytes} bytes"),
        ("buffer", _buffer(path)),
        *([("reverse buffer", _reverse_buffer(path))] if path.reverse_buffer_bytes is not None else []),
        ("MTU, MSS", f"{path.mtu_bytes}, {path.mss_bytes} bytes"),
        ("goodput at capacity", f"{path.capacity_goodput_bits_per_second / 1e6:.3f} Mbit/s"),
        ("sender interface", "unlimited" if sender is None else format_rate(sender)),
        *(("sender queue", f"{queue_words(own.queue)}, while flows run") for own in islice(host_queues(plan), 1)),
        ("gso_max_segs", "the kernel's" if path.gso_max_segs is None else path.gso_max_segs),
        ("loss", _loss(path.losses(ahead=True))),
        *([("reverse loss", _loss(back))] if (back := path.losses(ahead=False)).ratio else []),
    ]
    if path.queue != "fifo":
        rows.append(("queue", path.queue + (", marks (ECN)" if path.ecn else "")))
    if path.reverse_queue != "fifo":
        rows.append(("reverse queue", path.reverse_queue))
    if path.policer is not None:
        rows.append(("policer", _policer(path.policer)))
    for hop in path.hops:
        held = f"{hop.buffer_bytes} bytes = {hop.buffer_bytes // path.frame_bytes} full frames"
        shown = f"{format_rate(hop.rate_bits_per_second)}, {held}, {hop.queue}"
        rows.append((f"hop {hop.node}:{hop.interface}", shown))
    rows += _shown(path)
    if path.jitter is not None:
        rows.append(("drawn delay", _jitter(path.jitter)))
    if path.middlebox is not None:
        rows.append(("middlebox", ", ".join(middlebox_words(path.middlebox))))
    if path.early_us:
        rows.append(
            ("overtaking", f"{path.reorder_ratio * 100:g} % of packets, {format_duration(path.early_us)} early")
        )
    for name, changes in (("rate changes", path.rate_steps), ("reverse rate changes", path.reverse_rate_steps)):
        if changes:
            rates = [rate for _, rate in changes]
            rows.append((name, f"{len(rates)}, {format_rate(min(rates))} to {format_rate(max(rates))}"))
    for name, link in (("link", path.link), ("reverse link", path.reverse_link)):
        if link is not None:
            rows.append((name, _link(link)))
    for direction, steps in (("forward", path.forward_loss_steps), ("reverse", path.reverse_loss_steps)):
        if steps:
            rows.append((f"loss changes {direction}", f"{len(steps)}, at most {max(loss for _, loss in steps):.2%}"))
    for direction, drawn in (path.delay_variation.drawn if path.delay_variation else {}).items():
        words = [f"{name.removesuffix('_us').replace('_', ' ')} {format_duration(us)}" for name, us in drawn.items()]
        rows.append((f"added delay {direction}", ", ".join(words)))
    return _pairs(rows)


def _shown(path: Path) -> Iterator[tuple[str, object]]:
    """Yield the fields that define their own text, if they differ from their default."""
    for field in dataclasses.fields(path):
        value = getattr(path, field.name)
        if field.metadata.get("shown") and value != field.default:
            title, words = field.metadata["shown"]
            unit = next((form for suffix, form in _UNITS.items() if field.name.endswith(suffix)), str)
            yield title, words.format(unit(value))


def _link(link: LinkFacts) -> str:
    carried = (
        f"{link.opportunities} opportunities of {link.opportunity_bytes} bytes in {format_duration(link.round_us)}"
    )
    wait = f"nothing passes for up to {format_duration(link.longest_wait_us)}"
    return f"{link.file}, {carried}, then again; {wait}; the rate is its mean (SHA-256 {link.sha256[:12]})"


def _buffer(path: Path) -> str:
    """Return the size in the unit that the queue counts, then in the other unit."""
    frames = f"{path.buffer_bytes // path.frame_bytes} full frames"
    size = f"{path.buffer_bytes} bytes = {frames}"
    if path.buffer_packets is not None:
        size = f"{path.buffer_packets} packets of any size = {path.buffer_bytes} bytes in full frames"
    return f"{size} = {path.buffer_share:.3f} BDP"


def _jitter(jitter: Jitter) -> str:
    ways = " and ".join(name for name in ("forward", "reverse") if getattr(jitter, name))
    mean, deviation, most = map(format_duration, (jitter.mean_us, jitter.deviation_us, jitter.largest_us))
    drawn = f"{ways}, each packet for itself, so that some overtake: mean {mean}, deviation {deviation}, at most {most}"
    return f"{drawn}; measured by {jitter.packets} packets each {format_duration(jitter.spacing_us)}"


def _policer(policer: Policer) -> str:
    rate, size = format_rate(policer.rate_bits_per_second), format_size(policer.burst_bytes)
    full = format_duration(policer.full_us)
    measured = f"not measured: {policer.unmeasured}" if policer.unmeasured else f"measured by {policer.packets} frames"
    return f"before the queue, drops what exceeds {rate} and {size} at once (full again after {full}); {measured}"


def _loss(of: Losses) -> str:
    bursts = "" if of.burst_packets is None else f", in bursts of {of.burst_packets:g} packets on average"
    return f"{of.ratio * 100:g} %{bursts}"


def _reverse_buffer(path: Path) -> str:
    """Return how many bare ACKs or full frames it holds, and how long each number takes to leave."""
    most, packets, rate = path.reverse_buffer_bytes or 0, path.reverse_buffer_packets, path.reverse_rate_bits_per_second
    assert rate is not None  # a buffer implies a rate
    ack_bytes = path.frame_bytes - path.mss_bytes
    held = {
        "bare ACKs": (packets or most // ack_bytes, ack_bytes),
        "full frames": (packets or most // path.frame_bytes, path.frame_bytes),
    }
    kinds = (
        f"{count} {name} of {size} bytes ({format_duration(count * size * 8_000_000 // rate)})"
        for name, (count, size) in held.items()
    )
    counted = f"{packets} packets of any size, {most} bytes in full frames" if packets else f"{most} bytes"
    return f"{counted} = {' or '.join(kinds)}"


def _sender(sender: SenderRecord) -> Iterator[str]:
    """Yield every setting of the bundle with its value in force."""
    rows: list[tuple[str, object]] = []
    for field, setting in sender.settings.items():
        instead = "" if setting.instead_of is None else f", the profile's, instead of {setting.instead_of}"
        rows.append((field, f"{setting.value}{instead}: {setting.what} ({setting.source})"))
    return _pairs(rows)


def _processor(each: Processor) -> Iterator[str]:
    """Yield every constant with its source."""
    values: dict[str, object] = {
        "packet": format_nanoseconds(each.packet_ns),
        "ack": format_nanoseconds(each.ack_ns),
        "searched": format_nanoseconds(each.searched_ns),
        "search": each.search,
        "queue": f"{each.queue_packets} packets",
    }
    return _pairs([(name, f"{value}: {each.sources[name]}") for name, value in values.items()])


def _hosts(plan: Plan) -> Iterator[str]:
    for host in plan.hosts:
        addresses = f"  {host.address}, calibration {host.calibration_address}" if host.address else ""
        yield f"{host.name:<8} {host.role:<8}{addresses}".rstrip()


def _flows(plan: Plan) -> Iterator[str]:
    for flow in plan.flows:
        ends = f"{flow.source_address}:{flow.source_port} > {flow.destination_address}:{flow.destination_port}"
        kernel = f" ({flow.kernel_algorithm})" if flow.kernel_algorithm != flow.algorithm else ""
        yield f"{flow.id} {flow.name}: {flow.sender} > {flow.receiver}, {ends}, {flow.algorithm}{kernel}"
        amount = f"{format_size(flow.size_bytes)}, at the latest " if flow.size_bytes is not None else ""
        times = f"from {format_duration(flow.start_us)} to {amount}{format_duration(flow.stop_us)}"
        window = f"initial window {flow.initial_window_packets} packets"
        opened = ", opened by the receiver" if flow.opener == "receiver" else ""
        if flow.role != "measured":
            yield f"    {flow.role}, {flow.direction}"
        if flow.sender_stack is not None:
            yield f"    sender {flow.sender_stack.name}, a stack of its own ({flow.sender_stack.file})"
        if flow.receiver_stack is not None:
            yield f"    receiver {flow.receiver_stack.name}, a stack of its own ({flow.receiver_stack.file})"
        if flow.receiver_behaviour != "linux":
            yield f"    receiver {flow.receiver_behaviour} (emulated)"
        ends = f"{flow.traffic} source, {flow.sink} sink"
        if flow.http is not None:
            every = flow.http.every_us
            pace = f", one each {format_duration(every)} at most" if every else ""
            size = format_size(flow.http.object_bytes)
            ends = f"nginx to curl, {flow.http.requests} requests of {size}{pace}"
        if flow.program is not None:
            first, second = ("server", "client") if flow.program.sends == "server" else ("client", "server")
            names = [flow.program.end(end).command[0] for end in (first, second)]
            kind = f"QUIC of {flow.quic}" if flow.quic else flow.program.protocol.upper()
            ends = f"{kind}, {first} {names[0]} to {second} {names[1]}"
        if flow.exchange is not None:
            ends += f", {flow.exchange.requests} requests of {format_size(flow.exchange.object_bytes)}"
            ends += f", {format_duration(flow.exchange.think_us)} between" if flow.exchange.think_us else ""
        yield f"    {times}, RTT {format_duration(flow.rtt_us)}, {window}, {ends}{opened}"


def _calibration(plan: Plan) -> Iterator[str]:
    calibration = plan.calibration
    if not calibration.enabled:
        yield "off"
        return
    phase, silence = format_duration(calibration.phase_us), format_duration(calibration.settle_us)
    begins = " and ".join(_seconds(time) for time in (calibration.before_us, calibration.after_us))
    yield f"begins at {begins}, at most {phase} each, then {silence} of silence"
    buffer = calibration.buffer_unknown or f"buffer {calibration.buffer_bytes} bytes"
    if calibration.part_bytes and not calibration.buffer_unknown:
        buffer += f", of which {calibration.part_bytes} are filled"
    expected = f"{format_rate(calibration.rate_bits_per_second)}, {buffer}"
    yield f"bottleneck {' '.join(calibration.bottleneck)} must measure {expected}"
    for target in calibration.targets:
        ends = f"{target.sender} {target.sender_address} > {target.receiver} {target.receiver_address}"
        delays = (
            f"{format_duration(target.forward_delay_us)} forward, {format_duration(target.reverse_delay_us)} reverse"
        )
        yield f"{ends}: {delays}"


def _collect(plan: Plan) -> Iterator[str]:
    collect = plan.collect
    rows: list[tuple[str, object]] = [
        ("tcp_probe", f"on, buffer {collect.trace_buffer_bytes >> 20} MiB" if collect.tcp_probe else "off"),
        ("slow_start", "on, where a module reports events" if collect.slow_start else "off"),
        *(
            (each.word, _interval(collect.intervals_us.get(name)))
            for name, each in registered().items()
            if each.collector.planned_for(plan)
        ),
        ("ss", "at the beginning and the end" if collect.ss else "off"),
        ("pcap", ", ".join(collect.pcap) or "off"),
    ]
    if collect.cpu:
        rows.append(("cpu", "time of the guest's kernel by function"))
    return _pairs(rows)


def _interval(us: int | None) -> str:
    return "off" if us is None else f"every {format_duration(us)}"


def _operations(plan: Plan) -> Iterator[str]:
    width = len(str(len(plan.operations)))
    for number, item in enumerate(plan.operations, start=1):
        for index, line in enumerate(item.lines()):
            yield f"{number if index == 0 else '':>{width}}  {line}"


def _timeline(plan: Plan, *, every_change: bool) -> Iterator[str]:
    for is_change, group in groupby(plan.timeline, key=lambda item: isinstance(item.change, (Qdisc, Class))):
        events = list(group)
        hidden = len(events) - 2 * _CHANGES_SHOWN
        if not is_change or every_change or hidden <= 1:
            yield from map(_event, events)
            continue
        yield from map(_event, events[:_CHANGES_SHOWN])
        yield f"{'':>12}  … {hidden} more changes of {_changed(events)}"
        yield from map(_event, events[-_CHANGES_SHOWN:])


def _changed(events: list[Event]) -> str:
    """Return ``delay``, or ``the path`` if classes (rates) change as well."""
    return "the path" if any(isinstance(item.change, Class) for item in events) else "delay"


def _event(item: Event) -> str:
    return f"{_seconds(item.at_us):>12}  {item.change.line()}"


def _seconds(us: int) -> str:
    return f"{us / 1e6:.6f} s"
