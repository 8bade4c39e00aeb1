# SPDX-License-Identifier: Apache-2.0
"""Every column holds every value that its source can have: a window of 2^32 - 1 packets is a bug's, and is shown."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from howdah.ingest.framed import gather
from howdah.ingest.netlink import Slot
from howdah.ingest.run import ingest
from howdah.record import table as store
from howdah.record.schema import TABLES
from tests.unit.recorded_run import make_recorded_run

OURS = 63  # times, sums and numbers that howdah counts itself, or makes continuous
# Bits of the source's unsigned field. tcp_probe: include/trace/events/tcp.h; tcp_info: struct tcp_info of
# include/uapi/linux/tcp.h; qdisc: struct gnet_stats_basic, TCA_STATS_PKT64 and gnet_stats_queue of
# include/uapi/linux/gen_stats.h; interface: struct rtnl_link_stats64; counter: unsigned long of /proc/net/netstat;
# slow_start, processor: modules/include/slow_start_event.h, modules/processor/processor.h; segment: RFC 9293.
BITS: dict[str, dict[str, int]] = {
    "tcp_probe": {
        "time_ns": OURS,
        "data_len_bytes": 16,
        "snd_nxt_bytes": OURS,
        "snd_una_bytes": OURS,
        "cwnd_packets": 32,
        "ssthresh_packets": 32,
        "snd_wnd_bytes": 32,
        "srtt_us": 32,
        "rcv_wnd_bytes": 32,
    },
    "slow_start": {
        "time_ns": OURS,
        "cwnd_packets": 32,
        "ssthresh_packets": 32,
        "quantity": 64,
        "threshold": 64,
        "round": 32,
        "min_rtt_us": 32,
    },
    "tcp_info": {
        "time_ns": OURS,
        "state": 8,
        "bbr_bandwidth_bytes_per_second": 64,
        "bbr_version": 8,
        **dict.fromkeys(["bbr_min_rtt_us", "bbr_pacing_gain_256ths", "bbr_cwnd_gain_256ths"], 32),
        "ca_state": 8,
        **dict.fromkeys(
            [
                "cwnd_packets",
                "ssthresh_packets",
                "rtt_us",
                "rttvar_us",
                "min_rtt_us",
                "rto_us",
                "mss_bytes",
                "unacked_packets",
                "sacked_packets",
                "lost_packets",
                "retrans_packets",
                "total_retrans_packets",
                "segs_out_packets",
                "data_segs_in_packets",
                "data_segs_out_packets",
                "delivered_packets",
                "notsent_bytes",
                "snd_wnd_bytes",
                "rcv_wnd_bytes",
                "rcv_space_bytes",
                "rcv_ooopack_packets",
                "reordering_packets",
            ],
            32,
        ),
        **dict.fromkeys(
            [
                "bytes_acked_bytes",
                "bytes_sent_bytes",
                "bytes_retrans_bytes",
                "bytes_received_bytes",
                "pacing_rate_bytes_per_second",
                "delivery_rate_bytes_per_second",
                "busy_time_us",
                "rwnd_limited_us",
                "sndbuf_limited_us",
            ],
            64,
        ),
    },
    "qdisc": {
        "time_ns": OURS,
        "backlog_bytes": 32,
        "backlog_packets": 32,
        "sent_bytes": 64,
        "sent_packets": 64,
        "drops_packets": 32,
        "overlimits": 32,
        "marks_packets": 32,
    },
    "interface": {
        "time_ns": OURS,
        **{f"{way}_{what}": 64 for way in ("rx", "tx") for what in ("bytes", "packets", "dropped_packets")},
    },
    "counter": {"time_ns": OURS, "value": 64},
    "processor": {
        "time_ns": OURS,
        **dict.fromkeys(
            [
                "arrived_packets",
                "served_packets",
                "dropped_packets",
                "waiting_packets",
                "begun_packets",
                "acks_packets",
                "searched_packets",
                "cost_ns",
                "busy_ns",
                "rests",
            ],
            64,
        ),
    },
    # struct tc_dualpi2_xstats of include/uapi/linux/pkt_sched.h
    "two_queues": {
        "time_ns": OURS,
        **dict.fromkeys(["classic_delay_us", "low_latency_delay_us"], 32),
        **dict.fromkeys(["classic_packets", "low_latency_packets", "marks_packets", "step_marks_packets"], 32),
    },
    # struct link_stats of modules/link/link.h
    "opportunities": {
        **dict.fromkeys(["time_ns", "began_ns", "until_ns"], OURS),
        **dict.fromkeys(["passed", "used", "carried_bytes", "unused_bytes", "sent_packets"], 64),
    },
    "segment": {
        "time_ns": OURS,
        "flags": 9,
        "sequence_bytes": OURS,
        "payload_bytes": 16,
        "ack_bytes": OURS,
        "window_bytes": 30,
        "sack_blocks": 3,
        "mss_bytes": 16,
        "window_scale_bits": 8,
    },
    "sack_block": dict.fromkeys(["time_ns", "left_edge_bytes", "right_edge_bytes"], OURS),
    "flow": dict.fromkeys(["start_ns", "connected_ns", "end_ns", "bytes_sent_bytes", "bytes_received_bytes"], OURS),
    "cpu": dict.fromkeys(["time_ns", "duration_ns", "cpu_ns"], OURS),
    "cpu_sample": dict.fromkeys(["time_ns", "duration_ns", "cpu_ns"], OURS),
}
_OWN = ("flow",)  # howdah's number of a flow: tests/unit/test_flow_number.py
_SATURATED = 2**63 - 1


@pytest.mark.parametrize("name", TABLES)
def test_a_column_is_as_wide_as_its_source(name: str) -> None:
    numbers = {column.name: column.type for column in TABLES[name] if pa.types.is_integer(column.type)}
    numbers = {column: kind for column, kind in numbers.items() if column not in _OWN}
    assert numbers.keys() == BITS[name].keys()
    for column, kind in numbers.items():
        room = kind.bit_width - (1 if pa.types.is_signed_integer(kind) else 0)
        assert room >= min(BITS[name][column], OURS), f"{name}.{column}: {kind} for {BITS[name][column]} bits"


@pytest.mark.parametrize(("size", "signed", "value"), [(4, False, 2**32 - 1), (8, False, _SATURATED), (4, True, -1)])
def test_all_bits_of_a_field(size: int, signed: bool, value: int) -> None:
    assert gather(np.full((1, size), 255, dtype=np.uint8), Slot(0, size, signed)).tolist() == [value]


def test_a_counter_below_zero_is_no_end(tmp_path: Path) -> None:
    """The kernel prints one that was taken below zero as 2^64 - 1 (TcpCurrEstab is one of those)."""
    run = make_recorded_run(tmp_path)
    reading = {"time_ns": 0, "node": "s1", "source": "snmp", "values": {"TcpCurrEstab": 2**64 - 1, "TcpMaxConn": -1}}
    with (run.raw / "counters.jsonl").open("a") as file:
        file.write(json.dumps(reading) + "\n")
    assert ingest(run).all_problems == []
    values = {row["name"]: row["value"] for row in store.read(run, "counter").to_pylist()}
    assert (values["TcpCurrEstab"], values["TcpMaxConn"]) == (_SATURATED, -1)
