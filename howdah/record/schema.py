# SPDX-License-Identifier: Apache-2.0
"""The tables of a run. Column names carry units, and the version changes whenever a column does.

In files, the columns of a table are followed by those of its axes (``howdah/record/table.py``). The events and reasons
of ``howdah:slow_start`` are named here, with their meaning and the units of their numbers.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import pyarrow as pa

from howdah.registered import registered

# 2: the table slow_start; 3: axes in every table, units of fields, names of flow; 4: data_segs_in; 5: bbr_ in tcp_info,
# 64 bits for cwnd_packets and srtt_us; 6: 32 bits for flow
SCHEMA_VERSION = 7
# A column can hold every value of the kernel's field, so a u32 has 64 bits. Values of a u64 above 2^63 - 1, such as the
# pacing rate of a socket that does not pace, become 2^63 - 1.
# Tables that describe the machine, so that two runs of one plan differ, and that exist only on request:
MACHINE_TABLES = ("cpu", "cpu_sample")

INFINITE_SSTHRESH = 0x7FFFFFFF  # packets: TCP_INFINITE_SSTHRESH, which is null in a table
TEXT = pa.dictionary(pa.int16(), pa.string())

TCP_PROBE = pa.schema(
    [
        ("flow", pa.int32()),
        ("time_ns", pa.int64()),  # when the ACK arrived; the record is the state before it was processed
        ("data_len_bytes", pa.int32()),
        ("snd_nxt_bytes", pa.int64()),  # relative to the first data byte, unwrapped
        ("snd_una_bytes", pa.int64()),
        ("cwnd_packets", pa.int64()),
        ("ssthresh_packets", pa.int64()),  # tcp_current_ssthresh(); null while infinite (0x7fffffff)
        ("snd_wnd_bytes", pa.int64()),
        ("srtt_us", pa.int64()),
        ("rcv_wnd_bytes", pa.int64()),
    ]
)

SLOW_START = pa.schema(
    [
        ("flow", pa.int32()),
        ("time_ns", pa.int64()),
        ("event", TEXT),  # of modules/include/slow_start_event.h: "exit", "phase" …
        ("reason", TEXT),  # "ack-train", "delay" …; the units of quantity and threshold follow from it
        ("cwnd_packets", pa.int64()),  # of an exit by loss or timeout: before it was cut
        ("ssthresh_packets", pa.int64()),  # null while infinite (0x7fffffff)
        ("quantity", pa.int64()),
        ("threshold", pa.int64()),
        ("round", pa.int64()),  # rounds completed since the start
        ("min_rtt_us", pa.int64()),  # null before the first sample
    ]
)

TCP_INFO = pa.schema(
    [
        ("flow", pa.int32()),
        ("end", TEXT),  # "sender" or "receiver"
        ("time_ns", pa.int64()),
        ("state", pa.int16()),
        ("ca_state", pa.int16()),
        ("cwnd_packets", pa.int64()),
        ("ssthresh_packets", pa.int64()),  # tcpi_snd_ssthresh; null while infinite
        ("rtt_us", pa.int64()),
        ("rttvar_us", pa.int64()),
        ("min_rtt_us", pa.int64()),
        ("rto_us", pa.int64()),
        ("mss_bytes", pa.int64()),
        ("unacked_packets", pa.int64()),
        ("sacked_packets", pa.int64()),
        ("lost_packets", pa.int64()),
        ("retrans_packets", pa.int64()),
        ("total_retrans_packets", pa.int64()),
        ("segs_out_packets", pa.int64()),
        ("data_segs_in_packets", pa.int64()),
        ("data_segs_out_packets", pa.int64()),
        ("delivered_packets", pa.int64()),
        ("bytes_acked_bytes", pa.int64()),
        ("bytes_sent_bytes", pa.int64()),
        ("bytes_retrans_bytes", pa.int64()),
        ("bytes_received_bytes", pa.int64()),
        ("notsent_bytes", pa.int64()),
        ("pacing_rate_bytes_per_second", pa.int64()),
        ("delivery_rate_bytes_per_second", pa.int64()),
        ("app_limited", pa.bool_()),
        ("busy_time_us", pa.int64()),
        ("rwnd_limited_us", pa.int64()),
        ("sndbuf_limited_us", pa.int64()),
        ("snd_wnd_bytes", pa.int64()),
        ("rcv_wnd_bytes", pa.int64()),
        ("rcv_space_bytes", pa.int64()),
        ("rcv_ooopack_packets", pa.int64()),
        ("reordering_packets", pa.int64()),
        # The state of the congestion control, if it reports struct tcp_bbr_info; a gain of 256 is 1.
        ("bbr_bandwidth_bytes_per_second", pa.int64()),
        ("bbr_min_rtt_us", pa.int64()),
        ("bbr_pacing_gain_256ths", pa.int64()),
        ("bbr_cwnd_gain_256ths", pa.int64()),
        ("bbr_version", pa.int64()),  # null for version 1, whose struct lacks the field
    ]
)

QDISC = pa.schema(
    [
        ("node", TEXT),
        ("interface", TEXT),
        ("handle", TEXT),
        ("parent", TEXT),
        ("kind", TEXT),
        ("time_ns", pa.int64()),
        ("backlog_bytes", pa.int64()),
        ("backlog_packets", pa.int64()),
        ("sent_bytes", pa.int64()),
        ("sent_packets", pa.int64()),
        ("drops_packets", pa.int64()),
        ("overlimits", pa.int64()),
        ("marks_packets", pa.int64()),  # ECN marks; null for a queue that does not count them
    ]
)

# A discipline with a low-latency queue and a classic one. Counts start when it was made.
TWO_QUEUES = pa.schema(
    [
        ("node", TEXT),
        ("interface", TEXT),
        ("handle", TEXT),
        ("time_ns", pa.int64()),
        ("probability", pa.float64()),  # the controller's; classic packets are dropped or marked with its square
        ("classic_delay_us", pa.int64()),  # age of the first packet in the queue; 0: it is empty
        ("low_latency_delay_us", pa.int64()),
        ("classic_packets", pa.int64()),  # arrived
        ("low_latency_packets", pa.int64()),
        ("marks_packets", pa.int64()),
        ("step_marks_packets", pa.int64()),  # of these, by the step
    ]
)

COUNTER = pa.schema(
    [
        ("node", TEXT),
        ("source", TEXT),  # snmp, netstat, softnet, sockstat, meminfo
        ("name", TEXT),
        ("time_ns", pa.int64()),
        ("value", pa.int64()),
    ]
)

# Captures at the ends of flows; rows of one end are in the order of its interface.
SEGMENT = pa.schema(
    [
        ("flow", pa.int32()),
        ("end", TEXT),  # where it was captured: "sender" or "receiver"
        ("sent_by", TEXT),  # "sender" or "receiver"
        ("time_ns", pa.int64()),
        ("flags", pa.int16()),  # of the TCP header: 1 FIN, 2 SYN, 4 RST, 8 PSH, 16 ACK, 32 URG, 64 ECE, 128 CWR
        ("sequence_bytes", pa.int64()),  # of its first byte, relative to the first byte of data, unwrapped
        ("payload_bytes", pa.int32()),
        ("ack_bytes", pa.int64()),  # relative to the first byte of data of the other end; null without the flag
        ("window_bytes", pa.int64()),  # scaled, except in a SYN; null if the handshake was not captured
        ("sack_blocks", pa.int16()),
        ("mss_bytes", pa.int32()),  # the option's value; null without it, as in all but SYNs
        ("window_scale_bits", pa.int16()),  # the option's value; null without it
        ("sack_permitted", pa.bool_()),
        ("time_stamps", pa.bool_()),
    ]
)

# SACK blocks of these segments, in the order of the option. Edges are bytes of the data of the other end.
SACK_BLOCK = pa.schema(
    [
        ("flow", pa.int32()),
        ("end", TEXT),
        ("sent_by", TEXT),
        ("time_ns", pa.int64()),
        ("left_edge_bytes", pa.int64()),  # of the first byte of the block, relative to the first byte of data
        ("right_edge_bytes", pa.int64()),  # of the byte after the block
    ]
)

FLOW = pa.schema(
    [
        ("flow", pa.int32()),
        ("flow_name", pa.string()),
        ("sender_node", pa.string()),
        ("receiver_node", pa.string()),
        ("algorithm", pa.string()),
        ("kernel_algorithm", pa.string()),
        ("start_ns", pa.int64()),
        ("connected_ns", pa.int64()),
        ("end_ns", pa.int64()),
        ("bytes_sent_bytes", pa.int64()),
        ("bytes_received_bytes", pa.int64()),
        ("complete", pa.bool_()),
    ]
)

CPU = pa.schema(
    [
        ("time_ns", pa.int64()),  # virtual time at which the interval begins
        ("duration_ns", pa.int64()),  # virtual length of the interval
        (
            "domain",
            TEXT,
        ),  # "kernel" (the image), "module", "library" (the kernel's process, outside its image), "user", "idle"
        ("symbol", TEXT),  # function that ran
        ("inlined", TEXT),  # functions inlined there, innermost first, joined by "<"; empty: none, or not known
        ("cpu_ns", pa.int64()),  # processor time of the machine
    ]
)

_OWN: dict[str, pa.Schema] = {
    "tcp_probe": TCP_PROBE,
    "slow_start": SLOW_START,
    "tcp_info": TCP_INFO,
    "qdisc": QDISC,
    "two_queues": TWO_QUEUES,  # only if a queue of the plan has two
    "counter": COUNTER,
    "flow": FLOW,
    "segment": SEGMENT,  # only if packets were captured
    "sack_block": SACK_BLOCK,
    "cpu": CPU,
    "cpu_sample": CPU,  # of the second source, if there are two
}
_HERE = {"tcp_info", "qdisc", "counters"}  # collectors whose tables are above, because measures and judge need them


class _Tables(Mapping[str, pa.Schema]):
    """The tables above, and one for each further collector; its file on the host is read when its schema is
    requested."""

    def __getitem__(self, name: str) -> pa.Schema:
        if name in _OWN:
            return _OWN[name]
        if name not in self._further():
            raise KeyError(name)
        return registered()[name].reader.schema

    def __iter__(self) -> Iterator[str]:
        yield from _OWN
        yield from self._further()

    def __len__(self) -> int:
        return len(_OWN) + len(self._further())

    @staticmethod
    def _further() -> list[str]:
        return [name for name in registered() if name not in _HERE]


TABLES: Mapping[str, pa.Schema] = _Tables()


@dataclass(frozen=True)
class EventName:
    """An event, in words for a report."""

    name: str
    words: str


@dataclass(frozen=True)
class Reason:
    """The reason of an event, in words; ``unit`` is that of the quantity times ``factor``.

    ``threshold_unit`` is that of the threshold times the same factor, None if the algorithm compares with nothing.
    """

    name: str
    words: str
    unit: str = ""
    threshold_unit: str | None = None
    factor: float = 1.0

    def quantity(self, value: int | None) -> float | None:
        """A quantity of the table ``slow_start`` in ``unit``; None if unknown."""
        return None if value is None else _plain(value * self.factor)

    def threshold(self, value: int | None) -> float | None:
        """A threshold of the table in ``threshold_unit``; None if unknown, or if the reason has none."""
        if self.threshold_unit is None or value is None:
            return None
        # A threshold in another unit, as a window beside a rate, is not scaled by the factor.
        return _plain(value * (self.factor if self.threshold_unit == self.unit else 1.0))


def _plain(value: float) -> float:
    """Round to remove the digits that binary fractions add."""
    rounded = round(value, 6)
    return int(rounded) if rounded == int(rounded) else rounded


_EVENTS = (
    EventName("exit", "left slow start"),
    EventName("phase", "another phase of slow start"),
    EventName("resume", "back to the phase before"),
    EventName("estimate", "ssthresh set from an estimate"),
    EventName("jump", "window set at once"),
    EventName("jump-end", "flight of the jump is out"),
    EventName("drain-end", "window has been drained"),
    EventName("retreat", "jump was too large"),
    EventName("share", "part of the window went to newer connections"),
    EventName("roll-back", "part of the window was taken back"),
)

_REASONS = (
    Reason("none", "no reason given"),
    Reason("ack-train", "the train of ACKs grew too long", "us", "us"),
    Reason("delay", "the round-trip time rose", "us", "us"),
    Reason("loss", "segments were lost", "packets"),
    Reason("rto", "the retransmission timer fired", "us"),
    Reason("congestion-signal", "ECN, or a drop in the sender's own queue"),
    Reason("initial-ssthresh", "the window reached a threshold set before", "packets", "packets"),
    Reason("delivery-rate", "deliveries fell behind what was sent", "ratio", "ratio", 0.001),
    Reason("css-rounds", "conservative slow start has lasted its rounds", "rounds", "rounds"),
    Reason("queue-estimate", "packets stood in the queue", "packets", "packets", 0.001),
    Reason("packet-pair", "bandwidth from the spacing of ACKs", "bit/s", "samples", 1000.0),
    Reason("rate-estimate", "estimated eligible rate", "bit/s", "packets", 1000.0),
    Reason("inflight-limit", "the limit of packets in flight", "packets", "packets"),
    Reason("jump-size", "the size of the jump", "packets", "packets"),
    Reason("cached", "a remembered window or threshold", "packets", "packets"),
    Reason("rtt-growth", "the round-trip time grew", "us", "us"),
    Reason("spurious", "the congestion was a false alarm", "packets"),
)

EVENTS = tuple(each.name for each in _EVENTS)
REASONS = tuple(each.name for each in _REASONS)
_EVENT_BY_NAME = {each.name: each for each in _EVENTS}
_REASON_BY_NAME = {each.name: each for each in _REASONS}

# Reasons that the core reports for any algorithm: signals of the network, not of a detector.
CONGESTION = ("loss", "rto", "congestion-signal")


def name_of(number: int, names: tuple[str, ...]) -> str:
    """The name of an event or reason; ``unknown-N`` if it is newer than this program."""
    return names[number] if 0 <= number < len(names) else f"unknown-{number}"


def event(name: str) -> EventName:
    """The event with this name; for an unknown one, the name itself in words."""
    return _EVENT_BY_NAME.get(name, EventName(name, name))


def reason(name: str) -> Reason:
    """The reason with this name; the numbers of an unknown one have no unit."""
    return _REASON_BY_NAME.get(name, Reason(name, name, "", ""))
