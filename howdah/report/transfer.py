# SPDX-License-Identifier: Apache-2.0
"""Completion times of transfers by size class: percentiles with intervals, and slowdown over the ideal time."""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import product
from typing import NamedTuple

from pydantic import Field

from howdah.measure.group import asked_of, times_s
from howdah.measure.statistics import Quantile, quantile
from howdah.number import between, significant
from howdah.number import size as size_words
from howdah.plan.path import Path
from howdah.plan.plan import Flow
from howdah.record.digest import check
from howdah.record.model import FilePart, Scalar
from howdah.record.raw import read_agent
from howdah.record.result import Experiment, Run, without_controls
from howdah.record.table import swept
from howdah.report.plot.swept import place_words
from howdah.report.tabular import Tabular

SHARES = {"p50": 0.5, "p90": 0.9, "p95": 0.95, "p99": 0.99, "p99.9": 0.999}
MOST_OWN_CLASSES = 8  # up to this many distinct sizes are a class each
_TIME = "completion_time_s"
_ALL = "all"
EVERY_GROUP = "all groups"  # no group can have this name
_DIGITS = 3


@dataclass
class SizeClass:
    """The transfers of one size class of a group, over all repetitions that count. ``times_s`` has the times of the
    completed ones and ``slowdowns`` these over their ideal times, both sorted; ``count`` includes incomplete ones.
    """

    experiment: str
    algorithm: str
    kernel: str
    point: dict[str, Scalar]
    group: str
    least_bytes: int
    most_bytes: int
    words: str
    count: int = 0
    times_s: list[float] = field(default_factory=list)
    slowdowns: list[float] = field(default_factory=list)

    def add(self, time_s: float | None, ideal_s: float | None) -> None:
        """Count a transfer; ``time_s`` is None if it was not completed."""
        self.count += 1
        if time_s is not None:
            self.times_s.append(time_s)
            self.slowdowns += [] if ideal_s is None else [time_s / ideal_s]

    def times(self) -> dict[str, Quantile]:
        return {name: quantile(self.times_s, share) for name, share in SHARES.items()}

    def slowed(self) -> dict[str, Quantile]:
        return {name: quantile(self.slowdowns, share) for name, share in SHARES.items()}


def ideal_s(flow: Flow, path: Path, answer_bytes: int | None = None) -> float | None:
    """The least possible time of a transfer: a round trip for the handshake, the delay to its receiver, and its frames
    at the bottleneck's rate; for an answer over an open connection, a round trip and its frames. None if its direction
    has no single, constant rate."""
    reverse = flow.direction == "reverse"
    rate = path.reverse_rate_bits_per_second if reverse else path.rate_bits_per_second
    size_bytes = flow.size_bytes if answer_bytes is None else answer_bytes
    if size_bytes is None or rate is None or (path.reverse_rate_changes if reverse else path.rate_changes):
        return None
    frames = -(-size_bytes // path.mss_bytes)
    on_wire_bytes = size_bytes + frames * (path.frame_bytes - path.mss_bytes)
    there_us = flow.reverse_delay_us if reverse else flow.forward_delay_us
    return (flow.rtt_us + (there_us if answer_bytes is None else 0)) / 1e6 + on_wire_bytes * 8 / rate


def size_classes(experiments: list[Experiment], limits_bytes: Sequence[int] = ()) -> list[SizeClass]:
    """The size classes of each group and single flow, for every algorithm at every point, with ``all`` if there are
    several classes. If there are several groups, also the classes of all groups together.

    ``limits_bytes`` are the sizes at which the next class begins. By default up to eight distinct sizes are a class
    each, and more are grouped by powers of ten. Points, algorithms and groups are in the order of the runs.
    """
    runs = [run for each in without_controls(experiments) for run in each.runs if run.counts and run.plan is not None]
    sizes = sorted({size for run in runs for _flow, size, _time, _ideal in _transfers(run)})
    bounds = _bounds(sizes, limits_bytes)
    found: dict[_ClassKey, SizeClass] = {}
    for run in runs:
        transfers = list(_transfers(run))
        several_groups = len({flow.group for flow, _size, _time, _ideal in transfers if flow.group is not None}) > 1
        for flow, size, time, ideal in transfers:
            groups = [flow.group or flow.name, *([EVERY_GROUP] if several_groups and flow.group is not None else [])]
            for group, (least, most, words) in product(groups, (bounds[size], (sizes[0], sizes[-1], _ALL))):
                key = _ClassKey(run.experiment, run.point, run.algorithm, run.kernel, group, words == _ALL, least)
                if key not in found:
                    about = (run.experiment, run.algorithm, run.kernel, swept(run.axes), group)
                    found[key] = SizeClass(*about, least, most, words)
                found[key].add(time, ideal)
    classes_of = Counter(key[:5] for key in found)
    kept = [found[key] for key in _in_order(found) if not key.is_all or classes_of[key[:5]] > 2]
    for each in kept:
        each.times_s.sort()
        each.slowdowns.sort()
    return kept


class _ClassKey(NamedTuple):
    experiment: str
    point: str
    algorithm: str
    kernel: str
    group: str
    is_all: bool
    least_bytes: int


def _bounds(sizes: list[int], limits_bytes: Sequence[int]) -> dict[int, tuple[int, int, str]]:
    """The class of each size: its least and greatest size, and its name."""
    if limits_bytes:
        return {each: _between(sorted(limits_bytes), each, sizes[-1]) for each in sizes}
    if len(sizes) > MOST_OWN_CLASSES:
        return {each: _decade(each) for each in sizes}
    return {each: (each, each, size_words(each)) for each in sizes}


def _in_order(keys: Iterable[_ClassKey]) -> list[_ClassKey]:
    """Sort by first appearance, with all groups together after single groups, and all sizes after single classes."""
    keys = list(keys)
    rank = [{value: number for number, value in enumerate(dict.fromkeys(part))} for part in zip(*keys, strict=True)]
    return sorted(
        keys,
        key=lambda key: (
            *(rank[part][key[part]] for part in range(4)),
            key.group == EVERY_GROUP,
            rank[4][key.group],
            key.is_all,
            key.least_bytes,
        ),
    )


def _transfers(run: Run) -> Iterator[tuple[Flow, int, float | None, float | None]]:
    """Yield measured flows of a fixed size, and each request of flows with several requests: flow, size, time (None if
    not completed) and ideal time."""
    assert run.plan is not None
    flows, path = {flow.id: flow for flow in run.plan.flows}, run.plan.path
    found = [(row.flow, row.value) for row in run.metrics if row.metric == _TIME and row.flow is not None]
    connections = run.connections().of(_TIME)
    found += zip(connections.flows, connections.table["value"].to_pylist(), strict=True)
    asked: list[Flow] = []
    for number, value in found:
        flow = flows[number]
        if asked_of(flow) is not None:
            asked.append(flow)
        elif flow.size_bytes is not None:
            time = float(value) if isinstance(value, int | float) else None
            yield flow, flow.size_bytes, time, ideal_s(flow, path)
    if asked:
        yield from _answers(run, path, asked)


def _answers(run: Run, path: Path, asking: list[Flow]) -> Iterator[tuple[Flow, int, float | None, float | None]]:
    """Yield each request of a closed loop from its client's record; nothing if a pack left that record out."""
    file = run.directory.raw / "agent.json"
    if not file.exists():
        return
    check(run.directory, run.provenance, [file])
    record = read_agent(run.directory)
    for flow in asking:
        asked = asked_of(flow)
        assert asked is not None
        times = times_s(record.flow(flow.id))
        later = ideal_s(flow, path, asked.object_bytes)
        first = ideal_s(replace(flow, size_bytes=asked.object_bytes), path)
        for number in range(asked.requests):
            time = times[number] if number < len(times) else None
            yield flow, asked.object_bytes, time, later if number else first


def _decade(size_bytes: int) -> tuple[int, int, str]:
    least = 10 ** (len(str(size_bytes)) - 1)
    return least, 10 * least - 1, f"{size_words(least)} … {size_words(10 * least)}"


def _between(limits_bytes: list[int], size_bytes: int, largest_bytes: int) -> tuple[int, int, str]:
    place = bisect_right(limits_bytes, size_bytes)
    if not place:
        return 0, limits_bytes[0] - 1, f"below {size_words(limits_bytes[0])}"
    least = limits_bytes[place - 1]
    if place == len(limits_bytes):
        return least, largest_bytes, f"from {size_words(least)}"
    return least, limits_bytes[place] - 1, f"{size_words(least)} … {size_words(limits_bytes[place])}"


class CompletionRow(FilePart):
    """A percentile of the times of a size class, in seconds; ``slowdown`` is a time over the ideal one."""

    experiment: str
    algorithm: str
    kernel: str
    point: dict[str, Scalar]
    group: str = Field(description="name of the group, or of the flow")
    sizes: str = Field(description="the class of size in words; all: every one of them")
    least_bytes: int
    most_bytes: int
    transfers: int = Field(description="of all repetitions that count")
    completed: int
    percentile: str
    time_s: float | None = Field(description="null where fewer than one transfer is beyond it")
    time_low_s: float | None = Field(description="95 % interval of order statistics; null where it has no bound")
    time_high_s: float | None
    slowdown: float | None = Field(description="time over the ideal one; null where the path has no one rate")
    slowdown_low: float | None
    slowdown_high: float | None


def completion_data(experiments: list[Experiment]) -> list[CompletionRow]:
    return [
        CompletionRow(
            experiment=each.experiment,
            algorithm=each.algorithm,
            kernel=each.kernel,
            point=each.point,
            group=each.group,
            sizes=each.words,
            least_bytes=each.least_bytes,
            most_bytes=each.most_bytes,
            transfers=each.count,
            completed=len(each.times_s),
            percentile=name,
            time_s=time.value,
            time_low_s=time.low,
            time_high_s=time.high,
            slowdown=slowed.value,
            slowdown_low=slowed.low,
            slowdown_high=slowed.high,
        )
        for each in size_classes(experiments)
        for (name, time), slowed in zip(each.times().items(), each.slowed().values(), strict=True)
    ]


def completion_table(experiments: list[Experiment], least: int = 1, limits_bytes: Sequence[int] = ()) -> Tabular:
    """A row for each size class with at least ``least`` completed transfers: percentiles in seconds with intervals, and
    two percentiles of the slowdown."""
    found = [each for each in size_classes(experiments, limits_bytes) if len(each.times_s) >= least]
    incomplete = any(len(each.times_s) < each.count for each in found)
    several = {name: len({getattr(each, name) for each in found}) > 1 for name in ("experiment", "kernel", "group")}
    columns = ["experiment", "point", "algorithm", "kernel", "group", "sizes", "n", "completed"]
    columns += [cell for name in SHARES for cell in (f"{name} (s)", "")]
    columns += [cell for name in ("p50", "p99") for cell in (f"slowdown, {name}", "")]
    rows = []
    for each in found:
        said = {name: str(getattr(each, name)) if several[name] else "" for name in several}
        point = place_words({key: value for key, value in each.point.items() if key != "algorithm"})
        head = [said["experiment"], point, each.algorithm, said["kernel"], said["group"], each.words]
        counts = [str(each.count), str(len(each.times_s)) if incomplete else ""]
        slowed = each.slowed()
        shown = [*each.times().values(), slowed["p50"], slowed["p99"]]
        rows.append([*head, *counts, *(cell for one in shown for cell in _cells(one))])
    return Tabular("Completion times by size, with 95 % intervals (order statistics)", columns, rows)


def _cells(one: Quantile) -> tuple[str, str]:
    if one.value is None:
        return "", ""
    value = significant(one.value, _DIGITS)
    return (value, "") if one.low is None or one.high is None else (value, between(one.low, one.high, _DIGITS))
