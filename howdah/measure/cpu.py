# SPDX-License-Identifier: Apache-2.0
"""Processor time of the guest's kernel: in total, at its peak, of both ends of TCP, and of functions named in papers.

One process simulates every host, so only the function distinguishes a sender's cost from a receiver's. Functions of
``SENDER`` work only for the end that sends data, those of ``RECEIVER`` for the end that receives it. Most of the time
is the network's and belongs to neither. docs/cpu.md explains the consequences.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, fields

import pyarrow as pa

from howdah.measure.row import Sheet
from howdah.measure.trace import SECOND_NS
from howdah.plan.plan import Plan
from howdah.record import table as store
from howdah.record.directory import RunDirectory, read_json
from howdah.traffic import TRAFFIC

# Functions named in papers, as metrics cpu_share_NAME. A sample counts if it was in the function's own code, in code
# that the compiler inlined there, or in one of the listed helpers, which nothing else calls.
NAMED: dict[str, tuple[str, ...]] = {
    "tcp_sacktag_write_queue": (
        "tcp_sacktag_walk",
        "tcp_sacktag_one",
        "tcp_sacktag_skip",
        "tcp_sacktag_bsearch",
        "tcp_maybe_skipping_dsack",
        "tcp_match_skb_to_sack",
        "tcp_shift_skb_data",
        "tcp_shifted_skb",
        "tcp_skb_shift",
        "tcp_check_sack_reordering",
    ),
    "tcp_clean_rtx_queue": ("tcp_rtx_queue_unlink_and_free", "tcp_tso_acked", "tcp_ack_tstamp"),
    "tcp_fastretrans_alert": (
        "tcp_identify_packet_loss",
        "tcp_mark_head_lost",
        "tcp_update_scoreboard",
        "tcp_rack_mark_lost",
        "tcp_rack_detect_loss",
        "tcp_try_undo_recovery",
        "tcp_try_undo_partial",
    ),
    "tcp_data_queue": (
        "tcp_data_queue_ofo",
        "tcp_ofo_queue",
        "tcp_queue_rcv",
        "tcp_try_coalesce",
        "tcp_ooo_try_coalesce",
        "tcp_sack_new_ofo_skb",
        "tcp_dsack_extend",
        "tcp_dsack_set",
    ),
    "tcp_ack": (),  # with everything inlined there
    "user_copy": (
        "simple_copy_to_iter",
        "_copy_to_iter",
        "raw_copy_to_user",
        "copy_chunk_to_user",
        "skb_copy_datagram_iter",
    ),
}
SENDER = (
    *(name for group in list(NAMED)[:3] for name in (group, *NAMED[group])),
    *("tcp_ack", "tcp_ack_update_rtt", "tcp_xmit_retransmit_queue", "tcp_retransmit_skb", "__tcp_retransmit_skb"),
    *("tcp_write_xmit", "tcp_xmit_recovery", "tcp_process_tlp_ack", "tcp_cong_control", "tcp_newly_delivered"),
    *("tcp_rate_skb_sent", "tcp_rate_skb_delivered", "tcp_rate_gen", "tcp_rack_advance", "tcp_rack_update_reo_wnd"),
    *("tcp_rack_skb_timeout", "tcp_rack_reo_timeout", "tcp_sendmsg_locked", "tcp_skb_entail", "tcp_pace_kick"),
)
RECEIVER = (
    *("tcp_data_queue", *NAMED["tcp_data_queue"], "tcp_event_data_recv", "tcp_rcv_space_adjust", "tcp_grow_window"),
    *("__tcp_ack_snd_check", "tcp_recvmsg_locked", "tcp_read_sock", "tcp_cleanup_rbuf", "tcp_recv_skb"),
    *("sink_tasklet", "sink_consume", "sink_actor", "traffic_sink_data_ready"),
)
KERNEL = ("kernel", "module")  # domains
_HALF_INTERVAL_NS = 50_000_000  # half of the interval of the vm engine's marks
_COPYING = " and ".join(kind.name for kind in TRAFFIC.values() if kind.copies)


@dataclass(frozen=True)
class CpuSample:
    """Part of the processor time of one interval. ``functions`` are the symbol and all functions inlined there."""

    begin_ns: int
    duration_ns: int
    functions: frozenset[str]
    cpu_ns: int


def cpu_rows(sheet: Sheet, directory: RunDirectory, plan: Plan) -> None:
    """Add the rows of a run with a processor profile (collect.cpu). Values that are unavailable are null, with the
    reason.

    ``cpu_seconds_per_simulated_second`` = processor time in the guest's kernel and modules / virtual time, over the
    intervals that begin within the run's flows; ``cpu_peak_…`` the most of one interval of a second; ``cpu_sender_…``,
    ``cpu_receiver_…`` that of SENDER, RECEIVER; ``cpu_share_NAME`` the time of NAMED over that of the kernel and its
    modules; ``cpu_sender_share_NAME`` (``cpu_receiver_share_NAME``) over that of SENDER (RECEIVER).
    """
    account = account_of(directory)
    samples = _samples(store.read(directory, "cpu"), plan)
    spans = {sample.begin_ns: sample.duration_ns for sample in samples}
    total_ns = sum(sample.cpu_ns for sample in samples)
    why = account.why or ("perf saw nothing while the flows ran" if not total_ns else None)
    simulated_ns = sum(spans.values())

    def add(metric: str, value: float | None, missing: str | None = None) -> None:
        reason = why or missing
        if reason:
            sheet.add(None, metric, None, reason, unsupported=True)  # not a claim that fails
        else:
            sheet.add(None, metric, value)

    def time_of(names: tuple[str, ...]) -> int:
        wanted = frozenset(names)
        return sum(sample.cpu_ns for sample in samples if sample.functions & wanted)

    add("cpu_seconds_per_simulated_second", total_ns / simulated_ns if simulated_ns else None)
    per_interval: dict[int, int] = {}
    for sample in samples:
        per_interval[sample.begin_ns] = per_interval.get(sample.begin_ns, 0) + sample.cpu_ns
    whole = [cpu_ns / spans[begin] for begin, cpu_ns in per_interval.items() if spans[begin] >= SECOND_NS // 2]
    add("cpu_peak_seconds_per_simulated_second", max(whole, default=None), None if whole else "no whole second")
    unknown = account.inlined_why and f"what is inlined where is not known ({account.inlined_why})"
    ends_ns = {"sender": time_of(SENDER), "receiver": time_of(RECEIVER)}
    for end, cpu_ns in ends_ns.items():
        add(f"cpu_{end}_seconds_per_simulated_second", cpu_ns / simulated_ns if simulated_ns else None, unknown)
    functions = account.functions
    if functions is not None:
        unknown = None
    copies = any(flow.sink_kind.copies for flow in plan.flows)
    for name, helpers in NAMED.items():
        cpu_ns = time_of((name, *helpers))
        missing = unknown
        if functions is not None and name != "user_copy" and name not in functions:
            missing = f"{name} is not a function of its own in this kernel: the compiler has inlined it"
        elif functions is not None and name == "user_copy":
            missing = "the function of this kernel that copies serves both directions"
        elif name == "user_copy" and not copies:
            missing = f"nothing is copied to user space by this traffic's sink; {_COPYING} do it"
        add(f"cpu_share_{name}", cpu_ns / total_ns if total_ns else None, missing)
        end = "receiver" if name in RECEIVER else "sender"
        if name == "user_copy":
            continue
        of_ns = ends_ns[end]
        nothing = missing or (None if of_ns else f"no time of the {end} was seen")
        add(f"cpu_{end}_share_{name}", cpu_ns / of_ns if of_ns else None, nothing)


@dataclass(frozen=True)
class CpuAccount:
    """Ingest's account of the profile; ``why`` is the reason if it is missing. ``functions`` are those of a stock
    kernel, of which only the symbols are known."""

    why: str | None = None
    inlined_why: str | None = None
    functions: list[str] | None = None
    stat: list[list[int]] = field(default_factory=list)
    perf_period_ns: int | None = None


def account_of(directory: RunDirectory) -> CpuAccount:
    try:
        said = dict(read_json(directory.ingested)["sources"]["cpu"]["counts"])
    except (OSError, ValueError, KeyError, TypeError):
        return CpuAccount("there is no profile")
    return CpuAccount(**{each.name: said[each.name] for each in fields(CpuAccount) if each.name in said})


def _samples(table: pa.Table, plan: Plan) -> list[CpuSample]:
    """Return the time of the kernel and its modules while the flows ran; intervals below a second are merged."""
    end_ns = plan.duration_us * 1000
    first_ns = -_HALF_INTERVAL_NS if plan.traits.finite_processor else -SECOND_NS // 2
    rows = [row for row in table.to_pylist() if first_ns <= row["time_ns"] < end_ns]
    intervals = {row["time_ns"]: row["duration_ns"] for row in rows}
    into = {begin: begin for begin in intervals}
    if plan.traits.finite_processor:
        into = {begin: (begin + _HALF_INTERVAL_NS) // SECOND_NS * SECOND_NS for begin in intervals}
    spans: Counter[int] = Counter()
    for begin, duration in intervals.items():
        spans[into[begin]] += duration
    spent: Counter[tuple[int, str, str]] = Counter()
    for row in rows:
        if row["domain"] in KERNEL:
            spent[into[row["time_ns"]], row["symbol"], row["inlined"]] += row["cpu_ns"]
    return [
        CpuSample(begin, spans[begin], frozenset([base_name(symbol), *filter(None, inlined.split("<"))]), cpu_ns)
        for (begin, symbol, inlined), cpu_ns in spent.items()
    ]


def base_name(symbol: str) -> str:
    """Return a function's name without the compiler's suffix for a changed copy (``.part.0``)."""
    return symbol.partition(".")[0]
