# SPDX-License-Identifier: Apache-2.0
"""A small plan made by hand, so that tests of later stages do not depend on earlier ones."""

from __future__ import annotations

import dataclasses
from typing import Any

from howdah.plan.kept import PerturbationRecord
from howdah.plan.path import Path
from howdah.plan.plan import Calibration, CalibrationTarget, Collect, Flow, Host, Plan
from howdah.trait import traits


def on_engine(plan: Plan, engine: str, **changes: Any) -> Plan:
    """The same plan as if it had been compiled for another engine, as far as its traits go."""
    real_time = changes.get("real_time", plan.real_time) is not None
    return dataclasses.replace(plan, engine=engine, traits=traits(engine, real_time=real_time), **changes)


def collecting(collect: Collect, **changes: Any) -> Collect:
    """The same with other fields, or other intervals: ``qdisc_us=None`` switches that collector off."""
    intervals_us = {name.removesuffix("_us"): us for name, us in changes.items() if name.endswith("_us")}
    rest = {name: value for name, value in changes.items() if not name.endswith("_us")}
    return dataclasses.replace(collect.at(**intervals_us), **rest)


def make_plan(run: str = "cubic-r0", algorithm: str = "cubic", repetition: int = 0) -> Plan:
    """20 Mbit/s, 40 ms, one BDP of buffer, one flow of two seconds."""
    bdp_bytes = 20_000_000 * 40_000 // 8 // 1_000_000
    return Plan(
        profile="hand-made",
        run=run,
        engine="uml",
        traits=traits("uml"),
        kernel="debian-6.12",
        axes={"algorithm": algorithm},
        algorithm=algorithm,
        repetition=repetition,
        seed=1,
        perturbation=PerturbationRecord(),
        topology="dumbbell",
        hosts=[
            Host("s1", "sender", "10.1.0.1", "10.2.0.1"),
            Host("left", "router"),
            Host("right", "router"),
            Host("r1", "receiver", "10.3.0.1", "10.4.0.1"),
        ],
        path=Path(
            rate_bits_per_second=20_000_000,
            reverse_rate_bits_per_second=None,
            forward_delay_us=20_000,
            reverse_delay_us=20_000,
            rtt_us=40_000,
            buffer_bytes=bdp_bytes,
            bdp_bytes=bdp_bytes,
            bdp_packets=bdp_bytes // 1514,
            mtu_bytes=1500,
            mss_bytes=1448,
            frame_bytes=1514,
            capacity_goodput_bits_per_second=20e6 * 1448 / 1514,
            sender_interface_bits_per_second=1_000_000_000,
            gso_max_segs=1,
            loss_ratio=0.0,
            delay_variation=None,
        ),
        flows=[
            Flow(
                id=1,
                name="bulk",
                sender="s1",
                receiver="r1",
                source_address="10.1.0.1",
                source_port=40001,
                destination_address="10.3.0.1",
                destination_port=5001,
                algorithm=algorithm,
                kernel_algorithm="cubic",
                traffic="kernel",
                start_us=0,
                stop_us=2_000_000,
                size_bytes=None,
                forward_delay_us=20_000,
                reverse_delay_us=20_000,
                rtt_us=40_000,
                initial_window_packets=10,
            )
        ],
        operations=[],
        timeline=[],
        calibration=Calibration(
            enabled=True,
            before_us=-3_000_000,
            after_us=3_000_000,
            phase_us=2_000_000,
            settle_us=500_000,
            rate_bits_per_second=20_000_000,
            buffer_bytes=bdp_bytes,
            frame_bytes=1514,
            bottleneck_node="left",
            bottleneck_interface="left-eth1",
            bottleneck_handle="10:",
            targets=[CalibrationTarget("s1", "r1", "10.2.0.1", "10.4.0.1", 20_000, 20_000, 0)],
        ),
        collect=Collect(
            tcp_probe=True,
            intervals_us={"tcp_info": 100_000, "qdisc": 100_000, "interface": 100_000},
            ss=True,
            pcap=[],
            trace_buffer_bytes=1 << 24,
        ),
        modules=[],
        module_parameters={},
        kernel_parameters={},
        epoch_us=5_000_000,
        duration_us=2_000_000,
        guest_memory_bytes=512 << 20,
        wall_clock_limit_s=60.0,
        measure_window_us=(0, 2_000_000),
    )
