# SPDX-License-Identifier: Apache-2.0
"""A run as a flent data file (``.flent.gz``, version 4 of the format), which flent plots like its own.

The run is filed under the flent test that resembles its flows most: ``tcp_nup`` if all data go from the senders' side
to the receivers', ``tcp_ndown`` if all go back, ``rrul_be_nflows`` if they go both ways. A run has no pings, so the
file has no ping series. docs/flent.md has the full mapping.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

from howdah import __version__
from howdah.errors import HowdahError
from howdah.export.flow import plan_of
from howdah.plan.plan import Flow, Plan
from howdah.record.directory import write_whole
from howdah.record.result import Run
from howdah.record.sample import Float64, Int64, Series, sample_run, step_ms

FORMAT_VERSION = 4
SUFFIX = ".flent.gz"
STEP_MS = 200  # flent's own default interval

Values = list[float | None]
Records = list[dict[str, float]]

# Published series -> key of flent's socket statistics, and what makes its unit of ours.
_SOCKET_KEYS = {
    "howdah_flow_cwnd_packets": ("tcp_cwnd", 1.0),
    "howdah_flow_ssthresh_packets": ("tcp_ssthresh", 1.0),
    "howdah_flow_srtt_seconds": ("tcp_rtt", 1e3),
    "howdah_flow_pacing_rate_bytes_per_second": ("tcp_pacing_rate", 8e-6),
}
_QUEUE_KEYS = {
    "howdah_queue_backlog_bytes": "backlog_bytes",
    "howdah_queue_backlog_packets": "backlog_pkts",
}
_DROPPED = "howdah_queue_dropped_packets_total"


@dataclass(frozen=True)
class Naming:
    """A flent test's names for the series of one direction, and the parameter that counts its flows."""

    series: str
    total: str
    parameter: str


@dataclass
class _Data:
    """Series on flent's grid (``x_values``, seconds from the epoch), and the records they were made from."""

    results: dict[str, Values] = field(default_factory=dict)
    raw: dict[str, Records] = field(default_factory=dict)
    about: dict[str, dict[str, str | None]] = field(default_factory=dict)
    parameters: dict[str, str] = field(default_factory=dict)


def flent_test(flows: Iterable[Flow]) -> tuple[str, dict[str, Naming]]:
    """The name of the test, and the naming of each direction that the flows have."""
    directions = {flow.direction for flow in flows}
    if directions == {"forward"}:
        return "tcp_nup", {"forward": Naming("TCP upload", "TCP upload", "upload_streams")}
    if directions == {"reverse"}:
        return "tcp_ndown", {"reverse": Naming("TCP download", "TCP download", "download_streams")}
    return "rrul_be_nflows", {
        "forward": Naming("TCP upload BE", "TCP upload", "upload_streams"),
        "reverse": Naming("TCP download BE", "TCP download", "download_streams"),
    }


def flent_document(run: Run) -> dict[str, Any]:
    """The content of a data file. Raises HowdahError for a run without a plan, without its tables or without TCP."""
    plan = plan_of(run)
    flows = [flow for flow in plan.flows if flow.datagram_bytes is None]
    series = list(sample_run(run))
    if not flows or not any(each.metric == "howdah_flow_acked_bytes_total" for each in series):
        raise HowdahError("there is nothing to export: the run recorded no TCP flow", where=str(run.directory.path))
    step = -(-STEP_MS // step_ms(plan)) * step_ms(plan)
    grid = np.arange(step, plan.duration_us // 1000 + step, step, dtype=np.int64)
    epoch_s = run.started_s
    test, naming = flent_test(flows)
    data = _Data()
    for direction, names in naming.items():
        _add_direction(data, names, [flow for flow in flows if flow.direction == direction], series, grid, epoch_s)
    if len(naming) == 2:
        _put(data, "TCP totals", _combined(list(_of_flows(data, naming.values())), "sum"), "Mbits/s")
    _add_queue(data, plan, series, grid, epoch_s)
    return {
        "version": FORMAT_VERSION,
        "metadata": _metadata(run, plan, test, flows, step, data),
        "x_values": (grid / 1e3).tolist(),
        "results": data.results,
        "raw_values": data.raw,
    }


def write_flent(run: Run, directory: Path) -> list[Path]:
    """Write one data file, ``EXPERIMENT-RUN.flent.gz``; equal runs give equal bytes. Raises HowdahError for a run
    without a plan, without its tables or without TCP."""
    file = directory / f"{run.experiment}-{run.name}{SUFFIX}"
    text = json.dumps(flent_document(run), sort_keys=True)
    write_whole(file, gzip.compress(text.encode(), compresslevel=6, mtime=0))
    return [file]


def _add_direction(
    data: _Data, names: Naming, flows: list[Flow], series: list[Series], grid: Int64, epoch_s: float
) -> None:
    every: list[Values] = []
    data.parameters[names.parameter] = str(len(flows))
    for number, flow in enumerate(flows, 1):
        own = [each for each in series if each.label("flow") == str(flow.id) and each.label("role") == "sender"]
        arrived = next((each for each in series if _is_delivery(each, flow)), None)
        goodput: Values = _goodput(arrived, grid) if arrived else [None] * len(grid)
        every.append(goodput)
        name = f"{names.series}::{number}"
        _put(data, name, goodput, "Mbits/s")
        data.about[name] |= {
            "LOCAL_HOST": flow.sender,
            "REMOTE_HOST": flow.receiver,
            "CONGESTION_CONTROL": flow.kernel_algorithm,
            "FLOW": flow.name,
        }
        records = _records([(each, *_SOCKET_KEYS[each.metric]) for each in own if each.metric in _SOCKET_KEYS], epoch_s)
        step_s = float(grid[0]) / 1e3
        records += [
            {"t": epoch_s + float(at) / 1e3, "val": value, "dur": step_s}
            for at, value in zip(grid, goodput, strict=True)
            if value is not None
        ]
        data.raw[name] = sorted(records, key=lambda record: record["t"])
    _put(data, f"{names.total} avg", _combined(every, "average"), "Mbits/s")
    _put(data, f"{names.total} sum", _combined(every, "sum"), "Mbits/s")
    if names.series == names.total:  # the tests of one direction have it
        _put(data, f"{names.total} fairness", _combined(every, "fairness"), "Idx")


def _put(data: _Data, name: str, values: Values, units: str) -> None:
    data.results[name] = values
    data.about[name] = {"UNITS": units}


def _of_flows(data: _Data, naming: Iterable[Naming]) -> Iterable[Values]:
    prefixes = tuple(f"{names.series}::" for names in naming)
    return (values for name, values in data.results.items() if name.startswith(prefixes))


def _is_delivery(each: Series, flow: Flow) -> bool:
    return each.metric == "howdah_flow_delivered_bytes_total" and each.label("flow") == str(flow.id)


def _goodput(arrived: Series, grid: Int64) -> Values:
    """Mbit/s that arrived in the interval before each instant; None outside the flow's lifetime."""
    step = int(grid[0])
    end: Float64 = np.interp(grid, arrived.time_ms, arrived.value)
    start: Float64 = np.interp(grid - step, arrived.time_ms, arrived.value)
    there = (grid > arrived.time_ms[0]) & (grid - step < arrived.time_ms[-1])
    rates = (end - start) * 8 / (step * 1e3)
    return [float(rate) if is_there else None for rate, is_there in zip(rates, there, strict=True)]


def _combined(every: list[Values], how: str) -> Values:
    """Sum, average or Jain's index over the active flows at each instant."""
    found: Values = []
    for at in zip(*every, strict=True):
        present = [value for value in at if value is not None]
        squares = sum(value * value for value in present)
        if not present or (how == "fairness" and not squares):
            found.append(None)
        elif how == "fairness":
            found.append(sum(present) ** 2 / (len(present) * squares))
        else:
            found.append(sum(present) / (len(present) if how == "average" else 1))
    return found


def _records(columns: list[tuple[Series, str, float]], epoch_s: float) -> Records:
    """One record per instant, with the keys that have a value there."""
    found: dict[int, dict[str, float]] = {}
    for series, key, factor in columns:
        for at, value in zip(series.time_ms.tolist(), series.value.tolist(), strict=True):
            found.setdefault(at, {"t": epoch_s + at / 1e3})[key] = value * factor
    return [found[at] for at in sorted(found)]


def _add_queue(data: _Data, plan: Plan, series: list[Series], grid: Int64, epoch_s: float) -> None:
    """Add the bottleneck's queue as flent's ``tc`` runner would have read it; drops are counted per interval."""
    own = [each for each in series if each.label("role") == "bottleneck"]
    dropped = next((each for each in own if each.metric == _DROPPED), None)
    if not own:
        return
    node, interface, _ = plan.calibration.bottleneck
    columns = [(each, _QUEUE_KEYS[each.metric], 1.0) for each in own if each.metric in _QUEUE_KEYS]
    name = f"qdisc_stats_{node}"
    if dropped is not None:
        lost = np.diff(dropped.value, prepend=dropped.value[:1])
        columns.append((Series(dropped.metric, dropped.labels, dropped.time_ms, lost), "dropped", 1.0))
        at = np.interp(grid, dropped.time_ms, dropped.value)
        before = np.interp(grid - grid[0], dropped.time_ms, dropped.value)
        _put(data, f"{name}::dropped", (at - before).tolist(), "packets")
    data.raw[name] = _records(columns, epoch_s)
    data.parameters |= {"qdisc_stats_hosts": node, "qdisc_stats_interfaces": interface}


def _date(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def _metadata(run: Run, plan: Plan, test: str, flows: list[Flow], step: int, data: _Data) -> object:
    receivers = sorted({flow.ends[1] for flow in flows})
    title = " ".join(part for part in (run.experiment, run.algorithm, run.point, f"r{run.repetition}") if part)
    length_s = plan.duration_us / 1e6
    return {
        "NAME": test,
        "TITLE": title,
        "NOTE": f"verdict: {run.verdict_name}; exported by howdah {__version__}, see HOWDAH",
        "HOST": receivers[0],
        "HOSTS": receivers,
        "LOCAL_HOST": sorted({flow.ends[0] for flow in flows})[0],
        "TIME": _date(run.started_s),
        "T0": _date(run.started_s),
        "LENGTH": length_s,
        "TOTAL_LENGTH": length_s,
        "STEP_SIZE": step / 1e3,
        "TEST_PARAMETERS": data.parameters,
        "IP_VERSION": 4,
        "FLENT_VERSION": f"howdah {__version__}",
        "DATA_FILENAME": f"{run.name}{SUFFIX}",
        "KERNEL_NAME": "Linux",
        "KERNEL_RELEASE": run.kernel,
        "SERIES_META": data.about,
        "HOWDAH": {
            "version": __version__,
            "experiment": run.experiment,
            "run": run.name,
            "engine": plan.engine,
            "algorithm": run.algorithm,
            "repetition": run.repetition,
            "axes": run.axes,
            "verdict": run.verdict_name,
            "plan_sha256": run.provenance.plan_sha256,
            "kernel_image_sha256": run.provenance.kernel.image_sha256,
            "path": {
                "rate_bits_per_second": plan.path.rate_bits_per_second,
                "rtt_us": plan.path.rtt_us,
                "buffer_bytes": plan.path.buffer_bytes,
            },
        },
    }
