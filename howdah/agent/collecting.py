# SPDX-License-Identifier: Apache-2.0
"""The collectors that a plan needs, on one schedule."""

from __future__ import annotations

import functools
import importlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from collectors.collector import Collector, CollectorError, IntervalCollector, Surroundings
from collectors.interval.counters import CountersCollector
from collectors.pcap import PcapCollector
from collectors.slow_start import SlowStartCollector
from collectors.ss import SsCollector
from collectors.tcp_probe import TcpProbeCollector
from howdah.agent.error import AgentError
from howdah.agent.loop import Loop, align_to_tick
from howdah.linux.kernelfile import parse_meminfo
from howdah.record.agent import MemoryRecord


class Collecting:
    """Starts the collectors, samples each at its own interval, and stops them in reverse order."""

    def __init__(self, surroundings: Surroundings) -> None:
        collect = surroundings.planned.collect
        self._output = surroundings.output
        intervals_us = dict(collect.intervals_us)
        self.counters = CountersCollector(surroundings, intervals_us.pop("counters", None))
        self._intervals: list[int] = []
        self._collectors: list[Collector] = [self.counters]
        if collect.tcp_probe and surroundings.connections:
            self._collectors.append(TcpProbeCollector(surroundings))
        if collect.slow_start and surroundings.connections and SlowStartCollector.exists():
            self._collectors.append(SlowStartCollector(surroundings))
        for name, interval_us in intervals_us.items():
            kind = collector_class(name)
            if kind.works_in(surroundings):
                self._collectors.append(kind(surroundings, interval_us))
        self._ss = SsCollector(surroundings) if collect.ss and surroundings.connections else None
        if self._ss is not None:
            self._collectors.append(self._ss)
        if collect.pcap:
            self._collectors.append(PcapCollector(surroundings, collect.pcap))

    def start(self, loop: Loop, now: int, epoch_ns: int) -> None:
        """Start the collectors and schedule their samples. Raises AgentError if one cannot run, because a run must have
        all data that the plan names."""
        for collector in self._collectors:
            with _naming_collector(collector):
                collector.check()
                collector.start(now)
            if collector.interval_ns:
                self._intervals.append(loop.every(collector.interval_ns, epoch_ns, collector.sample))
        if self._ss is not None:
            ss = self._ss
            for name, time_us in ss.times_us().items():
                loop.at(align_to_tick(epoch_ns + time_us * 1000), functools.partial(ss.take, name))

    def stop(self, loop: Loop, now: int) -> None:
        for number in self._intervals:
            loop.cancel(number)
        for collector in reversed(self._collectors):
            with _naming_collector(collector):
                collector.stop(now)

    def memory(self) -> MemoryRecord:
        """Return ``memory`` of agent.json; the minimum is over the counters' readings, at least two of them."""
        total = parse_meminfo(Path("/proc/meminfo").read_text())["MemTotal_bytes"]
        return MemoryRecord(total, self.counters.least_available_bytes)


def collector_class(name: str) -> type[IntervalCollector]:
    """Import an interval collector by its file's name; installed packages' files are beside howdah's. Raises AgentError
    for an unknown name."""
    try:
        found: type[IntervalCollector] = importlib.import_module(f"collectors.interval.{name}").COLLECTOR
    except ModuleNotFoundError as error:
        raise AgentError(name, f"there is no such collector here: {error}") from error
    return found


@contextmanager
def _naming_collector(collector: Collector) -> Iterator[None]:
    try:
        yield
    except (CollectorError, OSError) as error:
        raise AgentError(type(collector).__name__, str(error)) from error
