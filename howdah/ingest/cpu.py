# SPDX-License-Identifier: Apache-2.0
"""cpu-profile.txt and cpu-profile.json to the table ``cpu``: processor time by function and second of virtual time."""

from __future__ import annotations

import bisect
from collections import Counter
from typing import Any

import numpy as np

from howdah.ingest.source import Context, SourceReport, texts
from howdah.record import table as store
from howdah.record.raw import raw_value, read_raw_bytes, read_raw_text

PROFILE_FILE, SAMPLES_FILE = "cpu-profile.json", "cpu-profile.txt"

Key = tuple[int, str, str, str]  # interval, domain, symbol, inlined


def ingest_cpu(context: Context) -> tuple[Any, SourceReport]:
    """A row for each interval between two stamps, and each place that a sample was in.

    The time of a sample is the host's; stamps, which tell both clocks at one instant, say in which interval it was.
    Samples before the first stamp and after the last (boot, power off) are counted as ``outside``. Without a profile
    there are no rows, and ``counts.why`` says why.
    """
    report = SourceReport()
    raw = context.directory.raw
    counted: Counter[Key] = Counter()
    stamps: list[tuple[int, int]] = []
    period_ns = 0
    try:
        account = raw_value(read_raw_bytes(raw / PROFILE_FILE))
        report.counts = {key: account.get(key) for key in ("why", "inlined_why", "samples", "lost", "event")}
        if account["why"] is None:
            period_ns = int(account["period_ns"])
            stamps = [(int(time_ns), int(host_us)) for time_ns, host_us in account["stamps"]]
            outside = _count(read_raw_text(raw / SAMPLES_FILE), stamps, counted)
            report.counts["outside"] = outside
            if account["lost"]:
                report.counts["why"] = f"perf lost {account['lost']} samples"
    except FileNotFoundError as error:
        report.counts["why"] = f"there is no {error.filename and str(error.filename).rpartition('/')[2]}"
    except (OSError, ValueError, KeyError, TypeError) as error:
        report.counts["why"] = f"the profile cannot be read: {error}"
    rows = sorted(counted.items())
    begins = [stamps[key[0]][0] - context.epoch_ns for key, _count in rows]
    durations = [stamps[key[0] + 1][0] - stamps[key[0]][0] for key, _count in rows]
    columns: dict[str, Any] = {
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
    """Samples into ``counted``; returns how many were outside all intervals."""
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
