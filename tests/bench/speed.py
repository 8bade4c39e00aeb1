# SPDX-License-Identifier: Apache-2.0
"""Simulated seconds per wall second at 400 Mbit/s and 240 ms, and the memory the guest took."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from howdah.record.directory import read_json
from tests.bench.figure import Figure
from tests.bench.simulation import LONG_FAT, Simulation, simulate, single_plan

ONE_FLOW = ("algorithm=cubic", "flows=[{name: first, start: 0 s}]")


def kernel_traffic(place: Path, simulated_s: int) -> tuple[Simulation, list[Figure]]:
    """Also returns the run, whose trace other figures use."""
    plan = single_plan(LONG_FAT, [*ONE_FLOW, f"duration={simulated_s} s", f"measure.window.stop={simulated_s} s"])
    run = simulate(plan, place)
    return run, [*_speed(run, "kernel traffic", ">= 8"), *_memory(run)]


def iperf3(place: Path, simulated_s: int) -> list[Figure]:
    overrides = [
        f"duration={simulated_s} s",
        f"measure.window.stop={simulated_s} s",
        "traffic.source=iperf3",
        "traffic.sink=iperf3",
    ]
    return list(_speed(simulate(single_plan(LONG_FAT, [*ONE_FLOW, *overrides]), place), "iperf3", ""))


def _speed(run: Simulation, traffic: str, target: str) -> Iterator[Figure]:
    wall = run.phase("flows")[1] + run.phase("quiesce")[1]  # until the last byte of the trace is out
    simulated = run.plan.duration_us / 1e6
    trace = sum(cpu["bytes"] for cpu in run_trace(run)["cpus"])
    note = f"{simulated:.0f} s of flows, {trace / 1e6:.0f} MB of per-ACK trace on disk, one core"
    yield Figure(f"simulated s per wall s, {traffic}", simulated / wall, "", target, note)
    yield Figure(f"whole run, {traffic}", run.wall_s, "s", "", "boot, wiring, calibration, flows, power off")
    note = "less than the whole run's wall time where other work shares the core"
    yield Figure(f"processor time of it, {traffic}", run.processor_s, "s", "", note)


def run_trace(run: Simulation) -> dict[str, list[dict[str, int]]]:
    """trace.json; raises if the trace is not whole, for then the speed means nothing."""
    trace = read_json(run.directory.raw / "trace.json")
    lost = {name: trace[name] for name in ("overrun", "dropped_events", "commit_overrun", "bytes_lost") if trace[name]}
    if lost:
        raise RuntimeError(f"{run.directory.path}: the trace is not whole: {lost}")
    found: dict[str, list[dict[str, int]]] = trace
    return found


def _memory(run: Simulation) -> Iterator[Figure]:
    peak = run.engine.engine.guest_memory_peak_bytes or 0
    planned = run.plan.guest_memory_bytes
    yield Figure("guest memory planned", planned / 2**20, "MiB")
    yield Figure("guest memory touched", peak / 2**20, "MiB", "<= planned", f"{100 * peak / planned:.0f} %")
    memory = run.agent.get("memory")
    if memory:
        used = memory["total_bytes"] - memory["available_bytes_least"]
        yield Figure("guest memory in use at most", used / 2**20, "MiB", "", "MemTotal - least MemAvailable")
