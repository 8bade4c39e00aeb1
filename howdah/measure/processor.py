# SPDX-License-Identifier: Apache-2.0
"""A processor of finite speed (engine ``vm``): the machine's load, and its functions while a flow repairs its losses.

Time is the processor's: an instruction takes 2**shift ns, so busy time counts instructions. The exact source sees every
instruction, including interrupts; perf misses code that runs with interrupts off, and attributes it to the code that
follows. All hosts are one machine: its load is that of sender, receiver, routers and of the agent that observes them.
"""

from __future__ import annotations

import dataclasses

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from howdah.measure import overshoot
from howdah.measure.cpu import KERNEL, NAMED, RECEIVER, SENDER, CpuAccount, account_of, base_name
from howdah.measure.exit_rows import NO_ACKS, find_startup
from howdah.measure.measured import Measured
from howdah.measure.row import Sheet
from howdah.measure.trace import SECOND_NS, FlowTrace
from howdah.plan.plan import BACKGROUND
from howdah.record import table as store
from howdah.record.directory import RunDirectory

Reals = npt.NDArray[np.float64]
_SATURATED = 0.99  # busy share of an interval of a tenth of a second
_STAT_TOLERANCE = 0.02  # share of the time
_PERF_TOLERANCE = 0.15  # relative to the busy share, in addition to three standard deviations of a count
_NOTHING = "no profile covers it"


@dataclasses.dataclass(frozen=True)
class Course:
    """Busy time by interval (rows, in order) and function (columns). ``busy_ns`` is that of all code, ``kernel_ns``
    that of the kernel; waiting for an interrupt is neither."""

    begin_ns: npt.NDArray[np.int64]
    duration_ns: npt.NDArray[np.int64]
    spent_ns: Reals
    functions: list[frozenset[str]]
    domains: list[str]

    @property
    def end_ns(self) -> npt.NDArray[np.int64]:
        return self.begin_ns + self.duration_ns

    @property
    def busy_ns(self) -> Reals:
        return self._sum([domain != "idle" for domain in self.domains])

    @property
    def kernel_ns(self) -> Reals:
        return self._sum([domain in KERNEL for domain in self.domains])

    def of(self, names: tuple[str, ...]) -> Reals:
        """Return the time of each interval in kernel functions of these names, or in functions inlined there."""
        wanted = frozenset(names)
        return self._sum(
            [
                domain in KERNEL and bool(wanted & functions)
                for domain, functions in zip(self.domains, self.functions, strict=True)
            ]
        )

    def _sum(self, columns: list[bool]) -> Reals:
        return np.asarray(self.spent_ns[:, np.array(columns, dtype=bool)].sum(axis=1), dtype=np.float64)

    def between(self, begin_ns: float, end_ns: float) -> Course:
        """Return the intervals of which at least half lies between two instants."""
        middle = self.begin_ns + self.duration_ns // 2
        chosen = (middle >= begin_ns) & (middle < end_ns)
        return dataclasses.replace(
            self,
            begin_ns=self.begin_ns[chosen],
            duration_ns=self.duration_ns[chosen],
            spent_ns=self.spent_ns[chosen],
        )


def course_of(table: pa.Table) -> Course:
    """Read the table ``cpu`` or ``cpu_sample``."""
    begins, row = np.unique(table["time_ns"].to_numpy(), return_inverse=True)
    durations = np.zeros(begins.size, dtype=np.int64)
    durations[row] = table["duration_ns"].to_numpy()
    keys = list(zip(*(table[name].to_pylist() for name in ("domain", "symbol", "inlined")), strict=True))
    places = {key: number for number, key in enumerate(dict.fromkeys(keys))}
    column = np.fromiter((places[key] for key in keys), dtype=np.int64, count=len(keys))
    spent = np.zeros((begins.size, len(places)))
    np.add.at(spent, (row, column), table["cpu_ns"].to_numpy())
    functions = [frozenset([base_name(symbol), *filter(None, inlined.split("<"))]) for _, symbol, inlined in places]
    return Course(begins, durations, spent, functions, [domain for domain, _, _ in places])


def processor_rows(sheet: Sheet, directory: RunDirectory, data: Measured) -> None:
    """Add rows of the run: ``cpu_utilisation`` = busy time / time while the flows ran; ``cpu_peak_utilisation`` the
    most of a whole second; ``cpu_saturated_s`` the time of intervals of a tenth of a second that were busy for 99 %;
    ``cpu_instructions_per_second`` = instructions / second of virtual time; ``cpu_sender_…`` and
    ``cpu_receiver_instructions_per_second`` those in functions that only work for that end.

    For each flow, from its exit from slow start to the end of its first loss episode: ``cpu_recovery_utilisation``;
    ``cpu_recovery_sender_utilisation`` and ``…_receiver_…``, time of the end's functions / time;
    ``cpu_recovery_share_tcp_sacktag_write_queue`` of the kernel's time, ``cpu_recovery_sender_share_…`` of the
    senders', ``cpu_recovery_receiver_share_tcp_data_queue`` of the receivers'. Unavailable values are null, with the
    reason.
    """
    account = account_of(directory)
    course = course_of(store.read(directory, "cpu")).between(0, data.plan.duration_us * 1000)
    time_ns = float(course.duration_ns.sum())
    why = account.why or (_NOTHING if not time_ns else None)
    per_ns = 1 / (1 << (data.plan.processor_shift or 0))

    def add(metric: str, value: float | None) -> None:
        sheet.add(None, metric, None if why else value, why, unsupported=True if why else None)

    busy = course.busy_ns
    add("cpu_utilisation", busy.sum() / time_ns if time_ns else None)
    add("cpu_peak_utilisation", _peak(course, busy))
    saturated = course.duration_ns[busy >= _SATURATED * course.duration_ns].sum() / SECOND_NS
    add("cpu_saturated_s", float(saturated))
    rate = per_ns * SECOND_NS / time_ns if time_ns else 0.0
    add("cpu_instructions_per_second", float(busy.sum()) * rate)
    add("cpu_sender_instructions_per_second", float(course.of(SENDER).sum()) * rate)
    add("cpu_receiver_instructions_per_second", float(course.of(RECEIVER).sum()) * rate)
    for trace in data.traces:
        if trace.flow.role != BACKGROUND and trace.flow.group is None:
            _recovery_rows(sheet, data, trace, course, why)
    if not why:
        _cross_checks(sheet, directory, course, account)


def _peak(course: Course, busy: Reals) -> float | None:
    """Return the largest share of a whole second, which consists of the intervals whose middle is in it."""
    second = (course.begin_ns + course.duration_ns // 2) // SECOND_NS
    found = [
        busy[second == number].sum() / course.duration_ns[second == number].sum()
        for number in np.unique(second)
        if course.duration_ns[second == number].sum() >= SECOND_NS // 2
    ]
    return float(max(found)) if found else None


def _recovery_rows(sheet: Sheet, data: Measured, trace: FlowTrace, course: Course, missing: str | None) -> None:
    flow = trace.flow
    found = find_startup(data, trace).found
    drain_ns = overshoot.first_drain_ns(trace, data.capacity, data.plan.path)
    info = data.info[flow.id]
    episode = overshoot.first_loss_episode(trace, info, data.bottleneck, drain_ns, len(data.plan.flows))
    part, no_loss = course, None
    if found is None or episode is None:
        no_loss = "no loss episode" if len(trace) else NO_ACKS
    else:
        part = course.between(min(found.time_ns, episode.begin_ns), episode.end_ns)
    time_ns, kernel_ns = float(part.duration_ns.sum()), float(part.kernel_ns.sum())
    sender_ns, receiver_ns = float(part.of(SENDER).sum()), float(part.of(RECEIVER).sum())
    sack_ns = float(part.of(("tcp_sacktag_write_queue", *NAMED["tcp_sacktag_write_queue"])).sum())
    queue_ns = float(part.of(("tcp_data_queue", *NAMED["tcp_data_queue"])).sum())
    why = missing or no_loss
    for metric, share_ns, of_ns in (
        ("cpu_recovery_utilisation", float(part.busy_ns.sum()), time_ns),
        ("cpu_recovery_sender_utilisation", sender_ns, time_ns),
        ("cpu_recovery_receiver_utilisation", receiver_ns, time_ns),
        ("cpu_recovery_share_tcp_sacktag_write_queue", sack_ns, kernel_ns),
        ("cpu_recovery_sender_share_tcp_sacktag_write_queue", sack_ns, sender_ns),
        ("cpu_recovery_receiver_share_tcp_data_queue", queue_ns, receiver_ns),
    ):
        reason = why or (None if of_ns else _NOTHING)
        value = None if reason else share_ns / of_ns
        sheet.add(flow, metric, value, reason, unsupported=True if missing else None)


def _cross_checks(sheet: Sheet, directory: RunDirectory, course: Course, account: CpuAccount) -> None:
    """Compare the machine's load by the counter, by /proc/stat, and by perf's samples."""
    used = float(course.busy_ns.sum() / course.duration_ns.sum())
    stat = [reading for reading in account.stat if course.begin_ns[0] <= reading[0] <= course.end_ns[-1]]
    if len(stat) >= 2:
        (_, idle_a, _), (_, idle_b, _) = stat[0], stat[-1]
        by_stat = 1 - (idle_b - idle_a) / (stat[-1][0] - stat[0][0])
        between = course.between(stat[0][0], stat[-1][0])
        there = float(between.busy_ns.sum() / between.duration_ns.sum())
        sheet.cross_check(
            None,
            "cpu_utilisation",
            {"profile": there, "stat": by_stat},
            abs(there - by_stat) <= _STAT_TOLERANCE,
            f"the profile and /proc/stat differ by more than {_STAT_TOLERANCE:.0%} of the time",
        )
    samples = course_of(store.read(directory, "cpu_sample"))
    samples = samples.between(int(course.begin_ns[0]), int(course.end_ns[-1]))
    period_ns = account.perf_period_ns
    if samples.begin_ns.size and period_ns:
        by_perf = float(samples.busy_ns.sum() / samples.duration_ns.sum())
        deviation = 3 * float(np.sqrt(used * samples.duration_ns.sum() / period_ns)) * period_ns
        tolerance = _PERF_TOLERANCE * used + deviation / float(samples.duration_ns.sum())
        sheet.cross_check(
            None,
            "cpu_utilisation",
            {"counter": used, "perf": by_perf},
            abs(used - by_perf) <= tolerance,
            f"the counter and perf differ by more than {tolerance:.2%} of the time",
        )
