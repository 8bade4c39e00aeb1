# SPDX-License-Identifier: Apache-2.0
"""Which collectors a plan asks for, and one schedule for all of them."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from collectors.collector import Collector, CollectorError, Surroundings
from collectors.counters import CountersCollector
from collectors.interface import InterfaceCollector
from collectors.pcap import PcapCollector
from collectors.processor import ProcessorCollector
from collectors.qdisc import QdiscCollector
from collectors.slow_start import SlowStartCollector
from collectors.ss import SsCollector
from collectors.tcp_info import TcpInfoCollector
from collectors.tcp_probe import TcpProbeCollector
from howdah.agent.error import AgentError
from howdah.agent.loop import Loop, align_to_tick
from howdah.linux.kernelfile import parse_meminfo


class Collecting:
    """Starts the collectors, samples each at its own interval, and stops them in reverse order."""

    def __init__(self, surroundings: Surroundings) -> None:
        collect = surroundings.planned.collect
        self._output = surroundings.output
        self.counters = CountersCollector(surroundings, collect.counters_us)
        self._intervals: list[int] = []
        self._collectors: list[Collector] = [self.counters]
        if collect.tcp_probe and surroundings.connections:
            self._collectors.append(TcpProbeCollector(surroundings))
        if collect.slow_start and surroundings.connections and SlowStartCollector.exists():
            self._collectors.append(SlowStartCollector(surroundings))
        if collect.tcp_info_us and surroundings.connections:
            self._collectors.append(TcpInfoCollector(surroundings, collect.tcp_info_us))
        if collect.qdisc_us:
            self._collectors.append(QdiscCollector(surroundings, collect.qdisc_us))
        if collect.interface_us:
            self._collectors.append(InterfaceCollector(surroundings, collect.interface_us))
        if collect.processor_us:
            self._collectors.append(ProcessorCollector(surroundings, collect.processor_us))
        self._ss = SsCollector(surroundings) if collect.ss and surroundings.connections else None
        if self._ss is not None:
            self._collectors.append(self._ss)
        if collect.pcap:
            self._collectors.append(PcapCollector(surroundings, collect.pcap))

    def start(self, loop: Loop, now: int, epoch_ns: int) -> None:
        """Raises AgentError when a collector cannot run, because a run must have the data it was asked for."""
        for collector in self._collectors:
            with _named(collector):
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
            with _named(collector):
                collector.stop(now)

    def memory(self) -> dict[str, int | None]:
        """``memory`` of agent.json; the least is over the readings of the counters, at least two."""
        total = parse_meminfo(Path("/proc/meminfo").read_text())["MemTotal_bytes"]
        return {"total_bytes": total, "available_bytes_least": self.counters.least_available_bytes}


@contextmanager
def _named(collector: Collector) -> Iterator[None]:
    try:
        yield
    except (CollectorError, OSError) as error:
        raise AgentError(type(collector).__name__, str(error)) from error
