# SPDX-License-Identifier: Apache-2.0
"""The ``ns2`` engine: converts a plan to input for dumbbell.tcl, runs ns, and keeps its traces as raw/.

The input has one Tcl list per line, in seconds, bits per second and bytes. agent.json, which every engine leaves, is
derived from the traces.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from howdah.build.cache import file_sha256
from howdah.build.supervise import CommandFailedError, run_logged
from howdah.engine.engine import BuildProgress, Identity, Lack, RunProgress, lacks_of, require
from howdah.engine.ns2.needs import NS, checks
from howdah.errors import HowdahError, RunFailedError
from howdah.ingest.ns2 import FlowAcks, read_acks, read_ends, read_release
from howdah.linux.netlink.discipline.netem import Netem
from howdah.plan.plan import Flow, Plan
from howdah.record.directory import RunDirectory, write_json
from howdah.record.run import EngineOrigin, EngineReport, KernelOrigin
from howdah.trait import Traits

PROGRAM = Path(__file__).with_name("dumbbell.tcl")
DATA = "network.txt"
# Ends with this process, however it ends, and at its time limit.
_CONTAINED = ["setpriv", "--pdeathsig", "KILL"]
_KILLED_AFTER_S = 5
_TIMED_OUT = (124, 137)  # statuses of timeout(1): the command was terminated, or killed
_SEED_RANGE = 2**31 - 2  # largest seed of ns-2's generator; the smallest is 1
_SPARE_US = 1_000_000
_NONE = "none"


class Ns2Engine:
    """The ns-2 engine. Several simulations may run at once: one core each."""

    name = "ns2"
    parallel = True

    def lacks(self) -> list[Lack]:
        return lacks_of(checks())

    def prepare(self, plans: Sequence[Plan], progress: BuildProgress) -> Identity:
        progress("look at this machine", len(plans), len(plans))
        require(self.lacks(), self.name, "It is for controls; the uml engine runs a real kernel.")
        return {"engine": self.name, "ns": _binary_sha256(), "program": file_sha256(PROGRAM)}

    def run(self, directory: RunDirectory, plan: Plan, progress: RunProgress) -> EngineReport:
        directory.share.mkdir(exist_ok=True)
        directory.raw.mkdir(exist_ok=True)
        shutil.copyfile(directory.plan, directory.share / "plan.json")
        shutil.copyfile(PROGRAM, directory.share / PROGRAM.name)
        (directory.share / DATA).write_text(network_data(plan), encoding="utf-8")
        started = time.monotonic()
        kernel = _described(plan)
        try:
            _simulate(directory, plan, progress)
            write_outcome(directory, plan)
        except RunFailedError as error:
            error.known = EngineReport(kernel=kernel)
            raise
        took_s = round(time.monotonic() - started, 3)
        return EngineReport(
            engine=EngineOrigin(name=self.name, wall_s=took_s, model=plan.traits.model),
            kernel=kernel,
            guest_tree=None,
            modules={},
        )


def _simulate(directory: RunDirectory, plan: Plan, progress: RunProgress) -> None:
    """Run ns. File names on its command line are relative: Tcl decodes the system's names in the locale's encoding."""

    def told(line: str) -> None:
        word, _, value = line.partition(" ")
        if word == "time":
            progress("flows", min(round(float(value) * 1e6), plan.duration_us), plan.duration_us)

    limit = [*_CONTAINED, "timeout", "-k", str(_KILLED_AFTER_S), f"{plan.wall_clock_limit_s:g}"]
    command = [*limit, *_CONTAINED, NS, PROGRAM.name, DATA, f"../{directory.raw.name}"]
    try:
        run_logged(command, directory.console, cwd=directory.share, on_line=told)
    except CommandFailedError as error:
        if error.status in _TIMED_OUT:
            what = f"ns-2 was ended at its wall-clock limit of {plan.wall_clock_limit_s:g} s"
        else:
            what = f"ns-2 ended with status {error.status}"
        said = "\n    ".join(error.tail)
        raise RunFailedError(what, where=str(directory.console), hint=f"Last lines:\n    {said}") from error


def _binary_sha256() -> str | None:
    found = shutil.which(NS)
    return file_sha256(Path(found)) if found else None


def _described(plan: Plan) -> KernelOrigin:
    """Return what run.json has in place of a kernel."""
    return KernelOrigin(
        release=plan.traits.label,
        image_sha256=_binary_sha256(),
        config_sha256=file_sha256(PROGRAM),
        source="a simulator: no kernel ran",
    )


def write_outcome(directory: RunDirectory, plan: Plan) -> None:
    """Write raw/agent.json. Raises RunFailedError if ns-2 left no readable traces."""
    try:
        acks = read_acks(directory.raw, plan)
        ends = read_ends(directory.raw)
        release = read_release(directory.raw)
        flows = [_flow(plan, flow, acks[flow.id], ends[flow.id]) for flow in plan.flows]
    except (HowdahError, OSError, ValueError, LookupError, StopIteration) as error:
        raise RunFailedError(f"ns-2's traces cannot be read: {error}", where=str(directory.raw)) from error
    record = {
        "status": "ok",
        "engine": "ns2",
        "kernel_release": Traits(model=release).label,
        "epoch_monotonic_ns": 0,
        "silent_ns": silent_us(plan) * 1000,
        "flows": flows,
    }
    write_json(directory.raw / "agent.json", record)


def _flow(plan: Plan, flow: Flow, acks: FlowAcks, end: dict[str, int]) -> dict[str, Any]:
    mss = plan.path.mss_bytes
    wanted = None if flow.size_bytes is None else -(-flow.size_bytes // mss)
    acked = acks.acknowledged_packets
    whole = wanted is not None and acked >= wanted
    received = acked * mss if flow.size_bytes is None else min(acked * mss, flow.size_bytes)
    return {
        "id": flow.id,
        "start_ns": acks.start_ns,
        "connected_ns": acks.connected_ns,
        "end_ns": acks.time_of(wanted) if whole and wanted is not None else flow.stop_us * 1000,
        "bytes_sent": received,
        "bytes_received": received,
        "complete": whole or wanted is None,
        "segments_sent": end["sent_packets"] - acks.syn,
        "segments_retransmitted": end["retransmitted_packets"],
    }


def network_data(plan: Plan) -> str:
    """Return the whole input file. Numbers come from the plan; words are names that profile and plan have checked."""
    assert plan.model is not None  # an engine only gets plans that were compiled for it
    lines = [
        "# What this run simulates, for dumbbell.tcl; made from plan.json.",
        _line("run", end=_seconds(plan.duration_us), silent=_seconds(silent_us(plan))),
        _path(plan),
        _line("collect", queue=_seconds(plan.collect.qdisc_us or 0), info=_seconds(plan.collect.tcp_info_us or 0)),
        *_hosts(plan),
        *(_flow_data(plan, flow) for flow in plan.flows),
    ]
    return "\n".join(lines) + "\n"


def silent_us(plan: Plan) -> int:
    """Return the time by which no packet is left in the network: its end, all queues drained, plus a round trip."""
    return plan.duration_us + plan.path.holding_us + 2 * max(flow.rtt_us for flow in plan.flows) + _SPARE_US


def _path(plan: Plan) -> str:
    path = plan.path
    assert plan.model is not None
    unit = plan.model.queue
    frame = path.frame_bytes if unit == "packets" else 1
    return _line(
        "path",
        rate=path.rate_bits_per_second,
        limit=path.buffer_bytes // frame,
        unit=unit,
        reverse_rate=path.reverse_rate_bits_per_second or _NONE,
        reverse_limit=(path.reverse_buffer_bytes or 0) // frame,
        loss=repr(path.loss_ratio),
        seed=_seed(plan),
    )


def _seed(plan: Plan) -> int:
    """Return the seed of the delay line that drops packets, which depends on the profile's seed and the repetition."""
    for queue in plan.queues:
        netem = queue.discipline
        if isinstance(netem, Netem) and netem.seed is not None:
            return netem.seed % _SEED_RANGE + 1
    return plan.seed % _SEED_RANGE + 1


def _hosts(plan: Plan) -> list[str]:
    """Return a line for each host with flows: the delay towards it and, for a sender, the rate of its interface."""
    delay_us: dict[str, int] = {}
    for flow in plan.flows:
        delay_us |= {flow.receiver: flow.forward_delay_us, flow.sender: flow.reverse_delay_us}
    sending = {flow.sender for flow in plan.flows}
    rate = plan.path.sender_interface_bits_per_second or _NONE
    return [
        _line(
            f"host {host.name}",
            router="left" if host.role == "sender" else "right",
            rate=rate if host.name in sending else _NONE,
            delay=_seconds(delay_us[host.name]),
        )
        for host in plan.hosts
        if host.name in delay_us
    ]


def _flow_data(plan: Plan, flow: Flow) -> str:
    assert plan.model is not None
    model, path = plan.model, plan.path
    own = model.flows[str(flow.id)]
    settings = {**model.settings, **own.settings}
    ssthresh = settings.pop("ssthresh_", _NONE)
    size = flow.size_bytes
    packets = 0 if size is None else -(-size // path.mss_bytes)
    return _line(
        f"flow {flow.id}",
        **{"from": flow.sender},
        to=flow.receiver,
        agent=own.sender,
        sink=own.sink,
        congestion=own.congestion_control or _NONE,
        start=_seconds(flow.start_us),
        stop=_seconds(flow.stop_us),
        packets=packets,
        rtt=_seconds(flow.rtt_us),
        jump=int(own.jumps),
        payload=path.mss_bytes,
        header=path.frame_bytes - path.mss_bytes,
        initial_window=packets if own.jumps else settings.pop("windowInit_", flow.initial_window_packets),
        window=model.window_packets,
        ssthresh=ssthresh,
        settings=_pairs(settings),
        sink_settings=_pairs(own.sink_settings),
    )


def _pairs(values: dict[str, str]) -> str:
    return "{" + " ".join(f"{name} {value}" for name, value in values.items()) + "}"


def _seconds(time_us: int) -> str:
    return f"{time_us // 1_000_000}.{time_us % 1_000_000:06d}"


def _line(word: str, **values: object) -> str:
    return " ".join([word, *(f"{name} {value}" for name, value in values.items())])
