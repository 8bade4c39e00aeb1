# SPDX-License-Identifier: Apache-2.0
"""Follows the growing ACK trace of a run in virtual time.

The guest writes its trace to tcp_probe.bin during the run, and this module reads the end of the file from outside.
Times are simulated seconds. Nothing here is a result: the analysis reads the whole trace after the run.
"""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from howdah.errors import HowdahError
from howdah.ingest.ring_buffer import Integers, Layout, decode
from howdah.ingest.trace_format import TraceField, parse_event_format, parse_event_header, parse_page_header
from howdah.measure.exit import find_exit
from howdah.measure.trace import FlowTrace, Reals
from howdah.plan.plan import Flow, Plan
from howdah.record.schema import INFINITE_SSTHRESH

_NAME = "tcp_probe"
_FIELDS = ("sport", "dport", "snd_cwnd", "ssthresh", "srtt", "address")
_MOST_AT_ONCE_BYTES = 64 << 20  # of one look; the rest waits for the next
_MOST_START_UP_RECORDS = 200_000  # of a flow: an exit that comes later is left to the analysis
_STEPS = 300  # of a course, over the whole duration
_SOCKADDR_ADDRESS = 4  # bytes, sockaddr_in


@dataclass(frozen=True)
class SoFarExit:
    """An exit as seen in the trace so far. Seconds count from the planned start of the flow; the cause is not known
    yet."""

    after_start_s: float
    cwnd_packets: int


@dataclass
class FlowSoFar:
    """One flow: the values of its last record, and its history in ``_STEPS`` equal steps, NaN where no ACK arrived."""

    flow: Flow
    acks: int = 0
    time_ns: int = 0
    cwnd_packets: int = 0
    ssthresh_packets: int | None = None
    srtt_us: int = 0
    exit: SoFarExit | None = None
    cwnd: Reals = field(default_factory=lambda: np.full(_STEPS, np.nan))
    srtt_ms: Reals = field(default_factory=lambda: np.full(_STEPS, np.nan))
    acks_of_step: Integers = field(default_factory=lambda: np.zeros(_STEPS, dtype=np.int64))
    start_up: list[tuple[Integers, Integers, Reals]] = field(default_factory=list)

    def take(self, time_ns: Integers, columns: dict[str, Integers], step_ns: int) -> None:
        """Append records that follow the earlier ones."""
        cwnd, ssthresh, srtt = columns["snd_cwnd"], columns["ssthresh"], columns["srtt"]
        self.acks += time_ns.size
        self.time_ns, self.cwnd_packets, self.srtt_us = int(time_ns[-1]), int(cwnd[-1]), int(srtt[-1])
        self.ssthresh_packets = int(ssthresh[-1]) if ssthresh[-1] < INFINITE_SSTHRESH else None
        step = np.clip(time_ns // step_ns, 0, _STEPS - 1)
        self.acks_of_step += np.bincount(step, minlength=_STEPS)
        last = np.flatnonzero(np.append(step[1:] != step[:-1], True))
        self.cwnd[step[last]] = cwnd[last]
        self.srtt_ms[step[last]] = srtt[last] / 1e3
        if sum(part[0].size for part in self.start_up) < _MOST_START_UP_RECORDS:
            finite = np.where(ssthresh < INFINITE_SSTHRESH, ssthresh.astype(np.float64), np.inf)
            self.start_up.append((time_ns, cwnd, finite))
            self._look_for_exit()

    def acks_per_second(self, step_ns: int) -> Reals:
        """The ACK rate at each step."""
        return _rate(self.acks_of_step, self.flow.rtt_us, step_ns)

    def _look_for_exit(self) -> None:
        """Apply the analysis' rule to the whole start-up again, because a raised threshold can revoke an exit."""
        time_ns = np.concatenate([part[0] for part in self.start_up])
        cwnd = np.concatenate([part[1] for part in self.start_up])
        ssthresh = np.concatenate([part[2] for part in self.start_up])
        start_ns, none = self.flow.start_us * 1000, np.zeros(time_ns.size, dtype=np.int64)
        trace = FlowTrace(
            *(self.flow, 1, start_ns, None, self.flow.stop_us * 1000),
            *(time_ns, none, none, cwnd, ssthresh, none),
        )
        found = find_exit(trace)
        self.exit = SoFarExit((found.time_ns - start_ns) / 1e9, found.cwnd_packets) if found is not None else None


@dataclass
class GroupSoFar:
    """The connections of a group, which may be thousands, taken together: how many have begun, and their ACKs."""

    name: str
    members: list[Flow]
    acks: int = 0
    time_ns: int = 0
    begun: set[int] = field(default_factory=set)
    acks_of_step: Integers = field(default_factory=lambda: np.zeros(_STEPS, dtype=np.int64))

    def take(self, time_ns: Integers, connections: Integers, step_ns: int) -> None:
        """Append records that follow the earlier ones."""
        self.acks += time_ns.size
        self.time_ns = int(time_ns[-1])
        self.begun.update(np.unique(connections).tolist())
        self.acks_of_step += np.bincount(np.clip(time_ns // step_ns, 0, _STEPS - 1), minlength=_STEPS)

    def acks_per_second(self, step_ns: int) -> Reals:
        """The ACK rate at each step, averaged over the longest round trip of a member."""
        return _rate(self.acks_of_step, max(each.rtt_us for each in self.members), step_ns)


def _rate(acks_of_step: Integers, rtt_us: int, step_ns: int) -> Reals:
    """ACKs a second at each step, averaged over the preceding round trip because ACKs arrive in bursts."""
    steps = max(1, round(rtt_us * 1000 / step_ns))
    sums = np.convolve(acks_of_step, np.ones(steps))[:_STEPS]
    return np.asarray(sums / (steps * step_ns / 1e9), dtype=np.float64)


class AckTrace:
    """The trace of one run, read further at each ``look``: flows separately, the connections of a group together."""

    def __init__(self, raw: Path, plan: Plan) -> None:
        self._raw = raw
        self._plan = plan
        self._epoch_ns = plan.epoch_us * 1000  # kept exactly in virtual time, where alone this is used
        self._layout: Layout | None = None
        self._offset = 0
        self.step_ns = max(1, -(-plan.duration_us * 1000 // _STEPS))
        self.flows = [FlowSoFar(flow) for flow in plan.flows if flow.group is None]
        members: dict[str, list[Flow]] = {}
        for flow in plan.flows:
            if flow.group is not None:
                members.setdefault(flow.group, []).append(flow)
        self.groups = [GroupSoFar(name, flows) for name, flows in members.items()]
        self.acks_per_second: float | None = None  # of simulated time, in what the last look found

    def look(self) -> None:
        """Read what was added. A trace that cannot be read (yet) changes nothing."""
        try:
            self._layout = self._layout or _layout(self._raw)
            new = self._read_on(self._layout.subbuffer_bytes)
            if not new:
                return
            trace = decode(np.frombuffer(new, dtype=np.uint8), _NAME, self._layout, _FIELDS)
        except (OSError, HowdahError, ValueError):
            return
        time_ns = trace.time_ns - self._epoch_ns
        taken = sum(self._take(flow, time_ns, trace.columns) for flow in self.flows)
        taken += sum(self._take_group(group, time_ns, trace.columns) for group in self.groups)
        span_ns = int(time_ns[-1] - time_ns[0]) if time_ns.size > 1 else 0
        if span_ns > 0:
            self.acks_per_second = taken / span_ns * 1e9

    def _read_on(self, whole: int) -> bytes:
        with (self._raw / f"{_NAME}.bin").open("rb") as file:
            file.seek(self._offset)
            new = file.read(_MOST_AT_ONCE_BYTES)
        new = new[: len(new) - len(new) % whole]
        self._offset += len(new)
        return new

    def _take(self, flow: FlowSoFar, time_ns: Integers, columns: dict[str, Integers]) -> int:
        ours = (columns["address"] == _address(flow.flow)) & (columns["dport"] == flow.flow.destination_port)
        exact = ours & (columns["sport"] == flow.flow.source_port)
        alone = sum(_ends(other.flow) == _ends(flow.flow) for other in self.flows) == 1
        rows = np.flatnonzero(exact if exact.any() or not alone else ours)
        if rows.size:
            flow.take(time_ns[rows], {name: values[rows] for name, values in columns.items()}, self.step_ns)
        return int(rows.size)

    def _take_group(self, group: GroupSoFar, time_ns: Integers, columns: dict[str, Integers]) -> int:
        """Take the records that match a member's sender address and receiver port; the sender's port distinguishes
        connections."""
        ends = np.unique([(_address(each) << 16) | each.destination_port for each in group.members])
        rows = np.flatnonzero(np.isin((columns["address"].astype(np.int64) << 16) | columns["dport"], ends))
        if rows.size:
            connections = (columns["address"][rows].astype(np.int64) << 16) | columns["sport"][rows]
            group.take(time_ns[rows], connections, self.step_ns)
        return int(rows.size)


def _address(flow: Flow) -> int:
    """The sender's address as an integer, as in the trace."""
    return int.from_bytes(ipaddress.IPv4Address(flow.source_address).packed, "little")


def _ends(flow: Flow) -> tuple[str, int]:
    """The addresses that identify a flow if the kernel chose the sender's port."""
    return flow.source_address, flow.destination_port


def _layout(raw: Path) -> Layout:
    """The layout of records from the kernel's own description, which exists before the first record; trace.json is
    written only at the end."""
    texts = {
        name: (raw / name).read_text(encoding="ascii") for name in ("header_page", "header_event", f"{_NAME}.format")
    }
    page = parse_page_header(texts["header_page"], str(raw / "header_page"))
    room = _data_bytes(texts["header_page"])
    form = parse_event_format(texts[f"{_NAME}.format"], str(raw / f"{_NAME}.format"))
    source = form.field("saddr")
    form.fields["address"] = TraceField("address", source.offset + _SOCKADDR_ADDRESS, 4, False)
    event = parse_event_header(texts["header_event"], str(raw / "header_event"))
    return Layout(page, event, form, page.data_offset + room)


def _data_bytes(text: str) -> int:
    line = next(line for line in text.splitlines() if "char data;" in line)
    return int(line.partition("size:")[2].partition(";")[0])
