# SPDX-License-Identifier: Apache-2.0
"""Ingest cpu-profile.txt and cpu-profile.json into the table ``cpu``: processor time by function and second of virtual
time."""

from __future__ import annotations

import bisect
import io
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from howdah.ingest.source import Context, SourceReport, texts
from howdah.record import table as store
from howdah.record.model import checked
from howdah.record.raw import (
    PROFILE_FILE,
    PROFILE_SAMPLES,
    CpuProfile,
    open_raw,
    raw_value,
    read_raw_bytes,
    read_raw_text,
)

Key = tuple[int, str, str, str]  # interval, domain, symbol, inlined


def ingest_cpu(context: Context) -> tuple[Any, SourceReport]:
    """Make the table: one row per interval between two stamps and per code location with samples.

    Samples have host time; stamps, which show both clocks at one instant, assign them to intervals. Samples before the
    first stamp or after the last (boot, power off) are counted as ``outside``. Without a profile there are no rows, and
    ``counts.why`` says why.
    """
    report = SourceReport()
    raw = context.directory.raw
    counted: Counter[Key] = Counter()
    stamps: list[tuple[int, int]] = []
    period_ns = 0
    try:
        account = checked(CpuProfile, raw_value(read_raw_bytes(raw / PROFILE_FILE)), raw / PROFILE_FILE)
        report.counts = {"why": account.why, "inlined_why": account.inlined_why or None}
        report.counts |= {"samples": account.samples, "lost": account.lost, "event": account.event}
        if account.why is None:
            period_ns = int(account.period_ns)
            stamps = [(int(time_ns), int(host_us)) for time_ns, host_us in account.stamps]
            outside = _count(read_raw_text(raw / PROFILE_SAMPLES), stamps, counted)
            report.counts["outside"] = outside
            if account.lost:
                report.counts["why"] = f"perf lost {account.lost} samples"
    except FileNotFoundError as error:
        report.counts["why"] = f"there is no {error.filename and str(error.filename).rpartition('/')[2]}"
    except (OSError, ValueError, KeyError, TypeError) as error:
        report.counts["why"] = f"the profile cannot be read: {error}"
    rows = sorted(counted.items())
    begins = [stamps[key[0]][0] - context.epoch_ns for key, _count in rows]
    durations = [stamps[key[0] + 1][0] - stamps[key[0]][0] for key, _count in rows]
    columns: dict[str, object] = {
        "time_ns": begins,
        "duration_ns": durations,
        "cpu_ns": [count * period_ns for _key, count in rows],
    }
    for number, name in enumerate(("domain", "symbol", "inlined"), start=1):
        values = sorted({str(key[number]) for key, _count in rows})
        place = {value: index for index, value in enumerate(values)}
        columns[name] = texts(np.array([place[str(key[number])] for key, _count in rows], dtype=np.int64), values)
    table = store.table_of("cpu", columns)
    report.rows = table.num_rows
    return table, report


def _count(text: str, stamps: list[tuple[int, int]], counted: Counter[Key]) -> int:
    """Add samples to ``counted``; return how many were outside all intervals."""
    host_us = [host for _time, host in stamps]
    outside = 0
    for line in text.splitlines():
        time_us, domain, symbol, inlined = line.split()
        interval = bisect.bisect_right(host_us, int(time_us)) - 1
        if 0 <= interval < len(stamps) - 1:
            counted[interval, domain, symbol, "" if inlined == "-" else inlined] += 1
        else:
            outside += 1
    return outside


ACCOUNT_FILE, INSTRUCTIONS_FILE, SAMPLES_FILE = "processor.json", "instructions.jsonl", "samples.jsonl"
_TOLD = ("counter_why", "perf_why", "perf_event", "perf_period_ns", "samples", "lost", "throttled", "functions")


def ingest_finite_processor(context: Context) -> dict[str, tuple[pa.Table, SourceReport]]:
    """Make the tables ``cpu`` and ``cpu_sample`` of a processor of finite speed. ``cpu`` has the exact source if it
    exists: instructions counted from outside the machine, each 2**shift ns long; ``cpu_sample`` then has perf's samples
    from the guest, each worth its period. Without that counter, ``cpu`` has perf's samples.

    ``counts`` of ``cpu`` has ``why`` (null: there is a profile), ``source`` ("counter" or "perf") and ``stat``: [[ns
    from the epoch, idle ns, total ns]] of /proc/stat, both since the machine's start.
    """
    report, second = SourceReport(), SourceReport()
    raw = context.directory.raw
    tables = {"cpu": _table([], [], context, 1), "cpu_sample": _table([], [], context, 1)}
    try:
        if context.plan.processor_shift is None:
            raise ValueError("in real time the processor has no declared speed")
        account = raw_value(read_raw_bytes(raw / ACCOUNT_FILE))
        report.counts = {"why": None, **{key: account.get(key) for key in _TOLD}}
        report.counts["stat"] = [_idle(time_ns - context.epoch_ns, kinds) for time_ns, kinds in account["stat"]]
        ways = {
            "counter": (account["counter_why"], INSTRUCTIONS_FILE, 1 << (context.plan.processor_shift or 0)),
            "perf": (account["perf_why"], SAMPLES_FILE, int(account["perf_period_ns"])),
        }
        there = [name for name, (why, _file, _worth) in ways.items() if why is None]
        if not there:
            report.counts["why"] = "; ".join(str(why) for why, _file, _worth in ways.values())
        for name, target in zip(there, ("cpu", "cpu_sample"), strict=False):
            _why, file, worth = ways[name]
            places, intervals = _read_intervals(raw / file)
            if name == "counter":
                _add_idle(places, intervals, worth)
            tables[target] = _table(places, intervals, context, worth)
            (report if target == "cpu" else second).counts["source"] = name
    except FileNotFoundError as error:
        report.counts["why"] = f"there is no {error.filename and str(error.filename).rpartition('/')[2]}"
    except (OSError, ValueError, KeyError, TypeError, IndexError) as error:
        report.counts["why"] = f"the profile cannot be read: {error}"
    report.rows, second.rows = tables["cpu"].num_rows, tables["cpu_sample"].num_rows
    return {"cpu": (tables["cpu"], report), "cpu_sample": (tables["cpu_sample"], second)}


_USER_HZ_NS = 10_000_000


def _idle(time_ns: int, kinds: dict[str, int]) -> list[int]:
    return [time_ns, (kinds["idle"] + kinds["iowait"]) * _USER_HZ_NS, sum(kinds.values()) * _USER_HZ_NS]


@dataclass
class _Interval:
    """An interval; ``counts`` has pairs (number of a code location, how often it was seen)."""

    begin_ns: int
    end_ns: int
    counts: list[list[int]]


def _read_intervals(file: Path) -> tuple[list[list[str]], list[_Interval]]:
    with io.TextIOWrapper(open_raw(file), encoding="utf-8") as lines:
        places = raw_value(next(lines))["places"]
        read = [raw_value(line) for line in lines]
    return places, [_Interval(each["begin_ns"], each["end_ns"], each["counts"]) for each in read]


def _add_idle(places: list[list[str]], intervals: list[_Interval], worth_ns: int) -> None:
    """Add the time of each interval without instructions as idle."""
    for interval in intervals:
        busy_ns = worth_ns * sum(number for _place, number in interval.counts)
        left_ns = max(interval.end_ns - interval.begin_ns - busy_ns, 0)
        interval.counts.append([len(places), left_ns // worth_ns])
    places.append(["idle", "?", ""])


def _table(places: list[list[str]], intervals: list[_Interval], context: Context, worth_ns: int) -> pa.Table:
    lengths = [len(each.counts) for each in intervals]
    pairs = np.array([pair for each in intervals for pair in each.counts], dtype=np.int64).reshape(-1, 2)
    begins = np.array([each.begin_ns for each in intervals], dtype=np.int64)
    durations = np.array([each.end_ns for each in intervals], dtype=np.int64) - begins
    columns: dict[str, object] = {
        "time_ns": np.repeat(begins - context.epoch_ns, lengths),
        "duration_ns": np.repeat(durations, lengths),
        "cpu_ns": pairs[:, 1] * worth_ns,
    }
    for number, name in enumerate(("domain", "symbol", "inlined")):
        columns[name] = texts(pairs[:, 0], [place[number] for place in places])
    return store.table_of("cpu", columns)
