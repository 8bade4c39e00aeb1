# SPDX-License-Identifier: Apache-2.0
"""Writes a synthetic experiment directory through the contract, for tests of the stages that only read one.

The traces come from the fluid model beside it, so that curves look and add up like real ones. Nothing here pretends to
be a measurement: the runs say ``engine: synthetic``.
"""

from __future__ import annotations

import dataclasses
import shutil
from dataclasses import dataclass
from functools import cache, lru_cache
from hashlib import sha256
from pathlib import Path as FilePath
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pyarrow as pa

from howdah.plan.kept import PerturbationRecord
from howdah.plan.path import Path
from howdah.plan.plan import Calibration, Collect, Flow, Host, Plan
from howdah.record import table as store
from howdah.record.directory import RunDirectory, write_json
from howdah.record.provenance import analysis_sha256
from howdah.record.schema import TABLES
from howdah.record.table import axes_of
from howdah.trait import Traits
from tests.experiment_rows import metric_rows, told_rows
from tests.fluid_model import STEP_S, Trace, simulate

FRAME_BYTES = 1514
MSS_BYTES = 1448


@dataclass
class Scenario:
    """What to make. ``rate_bits_per_second`` is small by default so that unit tests stay quick."""

    name: str = "synthetic"
    description: str = "A synthetic experiment"
    algorithms: tuple[str, ...] = ("cubic", "reno")
    repetitions: int = 2
    flows: int = 2
    flow_names: tuple[str, ...] = ()  # flow1, flow2 … where there are none
    rate_bits_per_second: int = 20_000_000
    rtt_us: int = 100_000
    duration_s: float = 8.0
    second_flow_s: float = 3.0
    invalid: tuple[tuple[str, int], ...] = ()
    axes: tuple[dict[str, Any], ...] = ({},)
    without_tables: tuple[str, ...] = ()
    failed: tuple[tuple[str, int], ...] = ()
    told: bool = False  # whether modules tell of events
    kernel: str = "6.12.0-synthetic"
    started: str = "2025-06-01T12:00:{second:02d}+00:00"


def make_plan(scenario: Scenario, algorithm: str, repetition: int, axes: dict[str, Any]) -> Plan:
    rate = int(axes.get("path.rate", scenario.rate_bits_per_second))
    bdp = rate * scenario.rtt_us // 8_000_000
    path = Path(
        rate_bits_per_second=rate,
        reverse_rate_bits_per_second=None,
        forward_delay_us=scenario.rtt_us // 2,
        reverse_delay_us=scenario.rtt_us // 2,
        rtt_us=scenario.rtt_us,
        buffer_bytes=bdp,
        bdp_bytes=bdp,
        bdp_packets=bdp // FRAME_BYTES,
        mtu_bytes=1500,
        mss_bytes=MSS_BYTES,
        frame_bytes=FRAME_BYTES,
        capacity_goodput_bits_per_second=rate * MSS_BYTES / FRAME_BYTES,
        sender_interface_bits_per_second=1_000_000_000,
        gso_max_segs=None,
        loss_ratio=0.0,
        delay_variation=None,
    )
    duration_us = int(scenario.duration_s * 1e6)
    flows = [
        Flow(
            id=index + 1,
            name=scenario.flow_names[index] if scenario.flow_names else f"flow{index + 1}",
            sender=f"s{index + 1}",
            receiver=f"r{index + 1}",
            source_address=f"10.1.{index}.1",
            source_port=5001 + index,
            destination_address=f"10.2.{index}.1",
            destination_port=5201,
            algorithm=algorithm,
            kernel_algorithm=algorithm.split("-")[0],
            traffic="kernel",
            start_us=int(index * scenario.second_flow_s * 1e6),
            stop_us=duration_us,
            size_bytes=None,
            forward_delay_us=scenario.rtt_us // 2,
            reverse_delay_us=scenario.rtt_us // 2,
            rtt_us=scenario.rtt_us,
            initial_window_packets=10,
        )
        for index in range(scenario.flows)
    ]
    hosts = [Host(flow.sender, "sender", flow.source_address) for flow in flows]
    hosts += [Host("left", "router"), Host("right", "router")]
    hosts += [Host(flow.receiver, "receiver", flow.destination_address) for flow in flows]
    point = "".join(f"-{value}" for value in axes.values())
    return Plan(
        profile=scenario.name,
        run=f"{algorithm}{point}-r{repetition}",
        engine="synthetic",
        traits=Traits(),
        kernel=scenario.kernel,
        axes={"algorithm": algorithm, **axes},
        algorithm=algorithm,
        repetition=repetition,
        seed=repetition + 1,
        perturbation=PerturbationRecord(True, 1 + 0.001 * repetition, [1000 * repetition]),
        topology="dumbbell",
        hosts=hosts,
        path=path,
        flows=flows,
        operations=[],
        timeline=[],
        calibration=Calibration(
            enabled=False,
            before_us=-5_000_000,
            after_us=duration_us + 2_000_000,
            phase_us=1_000_000,
            settle_us=1_000_000,
            rate_bits_per_second=rate,
            buffer_bytes=bdp,
            frame_bytes=FRAME_BYTES,
            bottleneck_node="left",
            bottleneck_interface="left-eth0",
            bottleneck_handle="10:",
            targets=[],
        ),
        collect=Collect(
            tcp_probe=True,
            intervals_us={"tcp_info": 100_000, "qdisc": 20_000, "interface": 100_000, "counters": 1_000_000},
            ss=True,
            pcap=[],
            trace_buffer_bytes=1 << 20,
        ),
        modules=[],
        module_parameters={},
        kernel_parameters={},
        epoch_us=30_000_000,
        duration_us=duration_us,
        guest_memory_bytes=1 << 30,
        wall_clock_limit_s=60.0,
        measure_window_us=(0, duration_us),
    )


def write_tables(run: RunDirectory, plan: Plan, without: tuple[str, ...], told: bool = False) -> list[Trace]:
    # What is in them does not hang on the names of experiment and run.
    traces, tables = _tables(dataclasses.replace(plan, profile="", run="", axes={}).to_json(), told)
    run.tables.mkdir()
    for name, table in tables.items():
        if name not in without:
            store.write(run, name, table, axes_of(plan, None))
    return traces


@lru_cache(maxsize=32)
def _tables(plan_json: str, told: bool) -> tuple[list[Trace], dict[str, pa.Table]]:
    """The same plans come in many experiments, each of which takes longer to simulate than to write."""
    plan = Plan.from_json(plan_json)
    traces, queues, drops = simulate(plan)
    steps = len(queues)
    time_ns = np.arange(steps, dtype=np.int64) * round(STEP_S * 1e9)
    columns: dict[str, list[dict[str, Any]]] = {name: [] for name in TABLES}
    for flow, trace in zip(plan.flows, traces, strict=True):
        first = int(np.ceil((flow.start_us + flow.rtt_us) / 1e6 / STEP_S))
        if first >= steps:
            raise ValueError(f"{flow.name} starts after the end of the experiment")
        acked = np.asarray(trace.acked) * MSS_BYTES
        acked -= acked[first]
        cwnd = np.asarray(trace.cwnd)
        for step in range(first, steps):
            threshold = trace.ssthresh[step]
            columns["tcp_probe"].append(
                {
                    "flow": flow.id,
                    "time_ns": int(time_ns[step]),
                    "data_len_bytes": 0,
                    "snd_una_bytes": int(acked[step]),
                    "snd_nxt_bytes": int(acked[step] + cwnd[step] * MSS_BYTES),
                    "cwnd_packets": int(cwnd[step]),
                    "ssthresh_packets": None if np.isinf(threshold) else int(threshold),
                    "snd_wnd_bytes": 1 << 26,
                    "srtt_us": int(trace.rtt[step] * 1e6),
                    "rcv_wnd_bytes": 65536,
                }
            )
        for step in range(first, steps, int(0.1 / STEP_S)):
            for end in ("sender", "receiver"):
                columns["tcp_info"].append(
                    {
                        "flow": flow.id,
                        "end": end,
                        "time_ns": int(time_ns[step]),
                        "cwnd_packets": int(cwnd[step]),
                        "rtt_us": int(trace.rtt[step] * 1e6),
                        "min_rtt_us": plan.path.rtt_us,
                        "bytes_acked_bytes": int(acked[step]),
                        "bytes_received_bytes": int(acked[step]),
                        "data_segs_in_packets": int(acked[step]) // MSS_BYTES if end == "receiver" else 0,
                        "total_retrans_packets": int(trace.lost[step]),
                    }
                )
        columns["flow"].append(
            {
                "flow": flow.id,
                "flow_name": flow.name,
                "sender_node": flow.sender,
                "receiver_node": flow.receiver,
                "algorithm": flow.algorithm,
                "kernel_algorithm": flow.kernel_algorithm,
                "start_ns": flow.start_us * 1000,
                "connected_ns": (flow.start_us + flow.rtt_us) * 1000,
                "end_ns": flow.stop_us * 1000,
                "bytes_sent_bytes": int(acked[-1]),
                "bytes_received_bytes": int(acked[-1]),
                "complete": True,
            }
        )
    rate = plan.path.rate_bits_per_second / 8
    for step in range(0, steps, int(0.02 / STEP_S)):
        columns["qdisc"].append(
            {
                "node": "left",
                "interface": "left-eth0",
                "handle": "10:",
                "parent": "1:1",
                "kind": "bfifo",
                "time_ns": int(time_ns[step]),
                "backlog_bytes": int(queues[step] * FRAME_BYTES),
                "backlog_packets": int(queues[step]),
                "sent_bytes": int(rate * step * STEP_S),
                "sent_packets": int(rate * step * STEP_S / FRAME_BYTES),
                "drops_packets": int(drops[step]),
                "overlimits": 0,
            }
        )
    for step in range(0, steps, int(0.1 / STEP_S)):
        columns["interface"].append(
            {
                "node": "left",
                "interface": "left-eth0",
                "time_ns": int(time_ns[step]),
                "rx_bytes": int(rate * step * STEP_S * 0.02),
                "rx_packets": step,
                "rx_dropped_packets": 0,
                "tx_bytes": int(rate * step * STEP_S),
                "tx_packets": step,
                "tx_dropped_packets": 0,
            }
        )
    columns["counter"].append({"node": "left", "source": "softnet", "name": "dropped", "time_ns": 0, "value": 0})
    if told:
        columns["slow_start"] += told_rows(plan, traces)
    return traces, {name: pa.Table.from_pylist(columns[name], schema=schema) for name, schema in TABLES.items()}


def verdict_of(invalid: bool) -> dict[str, Any]:
    checks = [
        {
            "name": "bottleneck rate",
            "stage": "during",
            "ok": not invalid,
            "expected": 1.0,
            "measured": 0.9931 if invalid else 1.0002,
            "tolerance": 0.001,
            "unit": "ratio",
            "message": "dequeue rate while backlogged",
        },
        {
            "name": "trace records lost",
            "stage": "collection",
            "ok": True,
            "expected": 0,
            "measured": 0,
            "tolerance": 0,
            "unit": "records",
            "message": "",
        },
    ]
    if invalid:
        unknown = {"name": "peak backlog", "ok": None, "message": "the queue was not read", "measured": None}
        checks.insert(0, {**checks[1], **unknown})
    return {"format": 1, "verdict": "invalid" if invalid else "pass", "checks": checks}


@cache
def _templates() -> TemporaryDirectory[str]:
    return TemporaryDirectory(prefix="howdah-experiments-")


def make_experiment(parent: FilePath, scenario: Scenario | None = None) -> FilePath:
    """Write one experiment below ``parent`` and return its directory.

    An experiment that was made before in this process is copied.
    """
    scenario = scenario or Scenario()
    template = FilePath(_templates().name) / sha256(f"{scenario}".encode()).hexdigest()
    if not template.exists():
        _write_experiment(template, scenario)
    root = parent / scenario.name
    shutil.copytree(template, root, copy_function=shutil.copyfile)
    return root


def _write_experiment(root: FilePath, scenario: Scenario) -> None:
    root.mkdir()
    cells: list[dict[str, Any]] = []
    for axes in scenario.axes:
        for algorithm in scenario.algorithms:
            for repetition in range(scenario.repetitions):
                plan = make_plan(scenario, algorithm, repetition, axes)
                run = RunDirectory(root / f"{plan.run}-{len(cells):08x}")
                run.path.mkdir()
                run.plan.write_text(plan.to_json(), encoding="utf-8")
                failed = (algorithm, repetition) in scenario.failed
                invalid = (algorithm, repetition) in scenario.invalid
                status = "failed" if failed else "finished"
                if not failed:
                    traces = write_tables(run, plan, scenario.without_tables, scenario.told)
                    write_json(run.metrics, {"format": 1, "rows": metric_rows(run.name, plan, traces)})
                    write_json(run.verdict, verdict_of(invalid))
                write_json(
                    run.provenance, provenance(plan, status, scenario.started.format(second=7 * len(cells) % 60))
                )
                cells.append(
                    {
                        "run": run.name,
                        "axes": plan.axes,
                        "algorithm": algorithm,
                        "repetition": repetition,
                        "status": status,
                        "verdict": None if failed else ("invalid" if invalid else "pass"),
                    }
                )
    index = {
        "format": 1,
        "name": scenario.name,
        "profile": {"file": f"profiles/{scenario.name}.yaml", "sha256": "0" * 64},
        "description": scenario.description,
        "created": "2025-06-01T12:00:00+00:00",
        "cells": cells,
    }
    write_json(root / "experiment.json", index)


def provenance(plan: Plan, status: str, started: str) -> dict[str, Any]:
    return {
        "format": 1,
        "status": status,
        "key": "ab" * 32,
        "analysis_sha256": analysis_sha256(),
        "plan_sha256": "cd" * 32,
        "howdah": {"version": "0.1.0", "revision": "0123456789abcdef", "modified": False},
        "engine": {"name": "synthetic"},
        "kernel": {
            "release": plan.kernel,
            "image_sha256": "ef" * 32,
            "config_sha256": "01" * 32,
            "source": "synthetic",
        },
        "guest_tree": {"sha256": "23" * 32, "packages": {"iperf3": "3.18"}},
        "modules": {},
        "host": {"machine": "x86_64", "system": "Linux", "cpu": "synthetic", "python": "3.11"},
        "started": started,
        "ended": started,
        "wall_s": 3.5,
        "virtual_s": plan.duration_us / 1e6,
        "stages": [{"stage": "run", "wall_s": 3.0}],
        "error": "the guest died" if status == "failed" else None,
    }


def rewrite_plan(run: FilePath, **changes: Any) -> None:
    """Replace fields of a run's plan, for hostile input."""
    directory = RunDirectory(run)
    plan = Plan.from_json(directory.plan.read_text(encoding="utf-8"))
    directory.plan.write_text(dataclasses.replace(plan, **changes).to_json(), encoding="utf-8")
