# SPDX-License-Identifier: Apache-2.0
"""A plan as the data that dumbbell.tcl reads: one Tcl list a line, seconds, bits a second, bytes."""

from __future__ import annotations

from howdah.linux.netlink.discipline.netem import Netem
from howdah.plan.plan import Flow, Plan

_SEED_RANGE = 2**31 - 2  # of ns-2's generator, which takes 1 to this
_SPARE_US = 1_000_000
_NONE = "none"


def network_data(plan: Plan) -> str:
    """The whole file. Every number comes from the plan; words are names that profile and plan have checked."""
    assert plan.model is not None  # an engine is given the plans that were compiled for it
    lines = [
        "# What this run simulates, for dumbbell.tcl; made from plan.json.",
        _line("run", end=_seconds(plan.duration_us), silent=_seconds(silent_us(plan))),
        _path(plan),
        _line("collect", queue=_seconds(plan.collect.qdisc_us or 0), info=_seconds(plan.collect.tcp_info_us or 0)),
        *_hosts(plan),
        *(_flow(plan, flow) for flow in plan.flows),
    ]
    return "\n".join(lines) + "\n"


def silent_us(plan: Plan) -> int:
    """When no packet is left in the network that has been quiet since the end: every queue drained, one round trip."""
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
    """That of the delay line which loses packets; it is drawn from the profile's and the repetition."""
    for queue in plan.queues:
        netem = queue.discipline
        if isinstance(netem, Netem) and netem.seed is not None:
            return netem.seed % _SEED_RANGE + 1
    return plan.seed % _SEED_RANGE + 1


def _hosts(plan: Plan) -> list[str]:
    """The hosts that have flows: the delay of the way to each, and the rate of the interface of those that send."""
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


def _flow(plan: Plan, flow: Flow) -> str:
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
