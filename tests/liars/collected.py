# SPDX-License-Identifier: Apache-2.0
"""Lies of what was collected: a collector that stopped early, a sender that stalled, a module that was not used."""

from __future__ import annotations

import dataclasses
import struct
from typing import Any

from howdah.plan.plan import Plan
from howdah.record.directory import RunDirectory
from tests.liars.bench import edited
from tests.liars.doctor import (
    Doctor,
    add,
    answers,
    change_column,
    cut,
    doctored,
    edit,
    edit_agent,
    empty,
    lines,
    remove,
    rows,
)
from tests.liars.liar import check

PLACE = "r1:r1-eth0"
_IDLE = ("notsent_bytes", "unacked_packets", "sacked_packets", "lost_packets", "retrans_packets")


def _module(**changes: Any) -> Doctor:
    return edit_agent(lambda agent: agent["modules"]["tcp_cubic"].update(changes))


def _capture(**changes: Any) -> Doctor:
    return edit("pcap.json", lambda found: found["captures"][0].update(changes))


def _stalled(directory: RunDirectory) -> None:
    for name in _IDLE:
        change_column("tcp_info", name, lambda values: values * 0)(directory)


def _capture_ends_early(directory: RunDirectory) -> None:
    """The last seven packets are not in the file, and tcpdump knows nothing of them."""
    file = directory.raw / "pcap" / f"{PLACE.replace(':', '-')}.pcap"
    data, places, at = file.read_bytes(), [], 24
    while at < len(data):
        places.append(at)
        at += 16 + struct.unpack_from("<8xI", data, at)[0]
    file.write_bytes(data[: places[-7]])
    with edited(directory, "pcap.json") as found:
        for name in ("captured", "received"):
            add(found["captures"][0], name, -7)


def _ss_of_one_host(directory: RunDirectory) -> None:
    file = directory.raw / "ss-begin.txt"
    parts = file.read_text(encoding="utf-8").split("# ")
    file.write_text("# ".join(part for part in parts if not part.startswith("r1 ")), encoding="utf-8")


def _nothing(_directory: RunDirectory) -> None:
    """The record stays as it is; the plan lies."""


def _other_port(plan: Plan) -> Plan:
    """The plan names another port, so that the records are those of a connection it does not know."""
    flow = plan.flows[0]
    return dataclasses.replace(plan, flows=[dataclasses.replace(flow, destination_port=flow.destination_port + 1)])


COLLECTED = [
    # Records that are lost, damaged or of another connection
    doctored(
        "trace-cut-short",
        "The last half of the per-ACK trace is missing.",
        check("collection", "raw files", "tcp_probe.bin"),
        cut("tcp_probe.bin", 0.5),
        about="capture",
    ),
    doctored(
        "readings-cut-short",
        "A file of readings ends in the middle of one.",
        check("collection", "raw files", "tcp_info.bin"),
        cut("tcp_info.bin", 0.5),
        about="capture",
    ),
    doctored(
        "losses-not-counted",
        "Nobody counted the records that the trace lost.",
        check("collection", "lost trace records", "lost records were not counted"),
        remove("trace.json"),
        about="capture",
    ),
    doctored(
        "records-dropped",
        "The kernel dropped seven records of the trace and says so.",
        check("collection", "lost trace records", "7 per-ACK records were lost"),
        edit("trace.json", lambda trace: trace.update(overrun=7)),
        about="capture",
    ),
    doctored(
        "records-unread",
        "Two records were still in the kernel's buffer when the trace was closed.",
        check("collection", "lost trace records", "2 per-ACK records were lost"),
        edit("trace.json", lambda trace: trace.update(unread=2)),
        about="capture",
    ),
    doctored(
        "records-not-decoded",
        "The kernel handed over one record more than was decoded.",
        check("collection", "trace records", "the kernel handed over"),
        edit("trace.json", lambda trace: add(trace, "entries", 1)),
        about="capture",
    ),
    doctored(
        "records-of-another-connection",
        "The records are those of a connection that the plan does not know.",
        check("collection", "unknown sockets", "belong to sockets of no flow"),
        _nothing,
        plan=_other_port,
        about="capture",
    ),
    doctored(
        "collector-that-collected-nothing",
        "The collector of tcp_info was on and left no reading.",
        check("collection", "collectors", "nothing was collected for tcp_info"),
        empty("tcp_info.bin"),
        about="capture",
    ),
    doctored(
        "interfaces-not-read",
        "The collector of the interfaces was on and left no reading.",
        check("collection", "collectors", "nothing was collected for interface"),
        empty("interface.bin"),
        about="capture",
    ),
    doctored(
        "events-not-counted",
        "Nobody counted the events that the trace lost.",
        check("collection", "lost event records", "lost records were not counted"),
        remove("slow_start.json"),
        about="capture",
        honest="events",
    ),
    doctored(
        "events-dropped",
        "The kernel dropped three events of a slow-start module.",
        check("collection", "lost event records", "3 slow-start events were lost"),
        edit("slow_start.json", lambda account: account.update(dropped_events=3)),
        about="capture",
        honest="events",
    ),
    doctored(
        "events-not-decoded",
        "The kernel handed over one event more than was decoded.",
        check("collection", "event records", "the kernel handed over"),
        edit("slow_start.json", lambda account: add(account, "entries", 1)),
        about="capture",
        honest="events",
    ),
    doctored(
        "events-of-another-connection",
        "The events are those of a connection that the plan does not know.",
        check("collection", "unknown sockets of events", "belong to sockets of no flow"),
        _nothing,
        plan=_other_port,
        about="capture",
        honest="events",
    ),
    # A user's own module
    doctored(
        "module-nobody-looked-at",
        "Nobody looked whether the flows use the profile's module.",
        check("engine", "module of cubic", "not checked whether"),
        _module(uses_most=None),
        about="module",
        honest="own",
    ),
    doctored(
        "built-in-instead-of-ones-own",
        "The flows use the kernel's CUBIC, because the profile's module registers another name.",
        check("engine", "module of cubic", "registered even"),
        _module(algorithms=["even"]),
        about="module",
        honest="own",
    ),
    doctored(
        "module-that-is-never-used",
        "No connection used the profile's module.",
        check("engine", "module of cubic", "no connection used"),
        _module(uses_most=1),
        about="module",
        honest="own",
    ),
    # The sender
    doctored(
        "sender-with-nothing-to-send",
        "The sender had nothing to send although its window had room.",
        check("during", "nothing to send flow 1", "its application stalled, or its send buffer is too small"),
        _stalled,
        table=True,
    ),
    # Collectors that stop early
    doctored(
        "queue-readings-end-early",
        "Nobody read the queues in the last part of the run.",
        check("collection", "qdisc from begin to end", "not all of the run"),
        answers("qdisc.bin", 0.6),
        about="capture",
    ),
    doctored(
        "counters-read-once",
        "The kernel's counters were read only when the run began.",
        check("collection", "counter from begin to end", "not all of the run"),
        lines("counters.jsonl", 1),
        about="capture",
    ),
    doctored(
        "interface-counters-never-read",
        "No reading of the interfaces' counters exists.",
        check("collection", "interface from begin to end", "has no reading"),
        empty("interface.bin"),
        about="capture",
    ),
    doctored(
        "tcp-info-ends-early",
        "Nobody read tcp_info in the last part of the flow.",
        check("collection", "tcp_info from begin to end", "tcp_info stops early"),
        answers("tcp_info.bin", 0.6),
        about="capture",
    ),
    doctored(
        "trace-ends-early",
        "The per-ACK trace has only the first 70 % of its records.",
        check("collection", "trace to the end", "the trace ends before the ACKs do"),
        rows("tcp_probe", 0.7),
        about="capture",
        table=True,
    ),
    doctored(
        "ss-not-asked-at-the-end",
        "ss was not asked when the run ended.",
        check("collection", "ss at begin and end", "there is no ss-end.txt of r1"),
        remove("ss-end.txt"),
        about="capture",
    ),
    doctored(
        "ss-of-one-host",
        "ss was asked on the sender only.",
        check("collection", "ss at begin and end", "there is no ss-begin.txt of r1"),
        _ss_of_one_host,
        about="capture",
    ),
    # Captures
    doctored(
        "capture-not-counted",
        "tcpdump's own count of the packets is missing.",
        check("collection", f"capture {PLACE}", "were not counted"),
        remove("pcap.json"),
        about="capture",
        honest="capture",
    ),
    doctored(
        "capture-without-last-words",
        "tcpdump was killed and did not say how many packets it had captured.",
        check("collection", f"capture {PLACE}", "did not say"),
        _capture(captured=None),
        about="capture",
        honest="capture",
    ),
    doctored(
        "capture-lost-packets",
        "tcpdump captured fewer packets than its filter received.",
        check("collection", f"capture {PLACE}", "the capture is not whole"),
        edit("pcap.json", lambda found: add(found["captures"][0], "received", 1048)),
        about="capture",
        honest="capture",
    ),
    doctored(
        "capture-dropped-by-the-kernel",
        "The kernel dropped three packets of the capture.",
        check("collection", f"capture {PLACE}", "3 were dropped"),
        _capture(dropped_by_kernel=3),
        about="capture",
        honest="capture",
    ),
    doctored(
        "capture-ends-early",
        "tcpdump was not there for the last seven packets, and finds nothing missing.",
        check("collection", f"capture {PLACE} and interface", "it does not cover the run"),
        _capture_ends_early,
        about="capture",
        honest="capture",
    ),
]
