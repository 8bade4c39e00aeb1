# SPDX-License-Identifier: Apache-2.0
"""Lies of the record: an honest run of which one file, one table or one number is changed afterwards."""

from __future__ import annotations

import dataclasses
from typing import Any

from howdah.plan.operation import AddRoute
from howdah.plan.plan import Plan
from howdah.record.directory import RunDirectory
from tests.liars.doctor import (
    Doctor,
    add,
    change_column,
    change_interface,
    doctored,
    edit,
    edit_account,
    edit_agent,
    remove,
)
from tests.liars.liar import check


def _queue(node: str, interface: str, kind: str, name: str, more: int) -> Doctor:
    def change(after: dict[str, Any]) -> None:
        (found,) = [
            item for item in after["nodes"][node]["qdiscs"] if (item["interface"], item["kind"]) == (interface, kind)
        ]
        add(found, name, more)

    return edit_account(change)


def _host_counter(node: str, name: str) -> Doctor:
    return edit_account(lambda after: add(after["netstat"][node], name, 1))


def _phase(phase: str, end_ns: int) -> Doctor:
    def change(agent: dict[str, Any]) -> None:
        next(item for item in agent["phases"] if item["phase"] == phase)["end_ns"] = end_ns

    return edit_agent(change)


def _flow(**changes: Any) -> Doctor:
    return edit_agent(lambda agent: agent["flows"][0].update(changes))


def _disconnected(plan: Plan) -> Plan:
    """The plan with one link less: its network joins no host to another."""
    links = [operation for operation in plan.operations if operation.op == "link"]
    return dataclasses.replace(plan, operations=[item for item in plan.operations if item is not links[0]])


def _nothing(_directory: RunDirectory) -> None:
    """The record stays as it is; the plan lies."""


RECORDS = [
    # The guest and the plan
    doctored(
        "no-end",
        "The guest died before it could write what it did.",
        check("engine", "agent", "did not finish"),
        remove("agent.json"),
    ),
    doctored(
        "operation-not-carried-out",
        "An operation of the plan failed, and everything after it is missing.",
        check("engine", "agent", "stopped at qdisc 12: no such device"),
        edit_agent(lambda a: a.update(status="error", error={"operation": "qdisc 12", "message": "no such device"})),
    ),
    doctored(
        "phase-that-did-not-happen",
        "The agent waited for no silence.",
        check("engine", "clock quiesce", "did not happen"),
        edit_agent(lambda a: a.update(phases=[item for item in a["phases"] if item["phase"] != "quiesce"])),
    ),
    doctored(
        "flows-cut-short",
        "The flows' time ended half a second early.",
        check("engine", "clock flows", "cut short"),
        _phase("flows", 1_000_000_000),
        about="clock",
    ),
    doctored(
        "slow-set-up",
        "The set-up took so long that it reached into the calibration.",
        check("engine", "clock setup", "clock ran away"),
        _phase("setup", 0),
        about="clock",
    ),
    doctored(
        "slow-calibration",
        "The calibration reached into the flows' time.",
        check("engine", "clock calibrate-before", "clock ran away"),
        _phase("calibrate-before", 1_000_000_000),
        about="clock",
    ),
    doctored(
        "slow-quiesce",
        "The network fell silent after the second calibration had begun.",
        check("engine", "clock quiesce", "clock ran away"),
        _phase("quiesce", 60_000_000_000),
        about="clock",
    ),
    doctored(
        "slow-last-calibration",
        "The second calibration took an hour of the guest's time.",
        check("engine", "clock calibrate-after", "clock ran away"),
        _phase("calibrate-after", 3_600_000_000_000),
        about="clock",
    ),
    doctored(
        "epoch-a-nanosecond-late",
        "Time zero was one nanosecond later than the plan says.",
        check("engine", "epoch", "the plan says"),
        edit_agent(lambda a: add(a, "epoch_monotonic_ns", 1)),
        about="clock",
    ),
    doctored(
        "no-epoch",
        "In real time: nobody knows when time zero was.",
        check("engine", "epoch", "follows from when the network was built"),
        edit_agent(lambda a: a.update(epoch_monotonic_ns=None)),
        about="clock",
        honest="machines",
    ),
    doctored(
        "flow-never-started",
        "A flow of the plan was never started.",
        check("engine", "flow 1", "never started"),
        edit_agent(lambda a: a.update(flows=[])),
    ),
    doctored(
        "flow-that-failed",
        "A flow's connection was reset.",
        check("engine", "flow 1", "failed: connection reset"),
        _flow(error="connection reset"),
    ),
    doctored(
        "flow-never-connected",
        "A flow's handshake was never answered.",
        check("engine", "flow 1", "never connected"),
        _flow(connected_ns=None),
    ),
    doctored(
        "flow-without-data",
        "A flow connected and moved nothing.",
        check("engine", "flow 1", "moved no data"),
        _flow(bytes_received=0),
    ),
    doctored(
        "transfer-of-another-size",
        "A transfer of a fixed size moved one byte less and calls itself complete.",
        check("engine", "flow 1", "499999 bytes instead of 500000"),
        _flow(bytes_received=499_999),
        honest="transfer",
    ),
    doctored(
        "no-dump-of-the-queues",
        "Nobody asked the kernel which queues it had.",
        check("engine", "netem placement", "holds no dump of the qdiscs"),
        edit_agent(lambda a: a.pop("qdiscs")),
    ),
    # Calibration
    doctored(
        "not-calibrated",
        "The path was not measured after the flows.",
        check("after", "calibration", "calibration-after.json is missing"),
        remove("calibration-after.json"),
        about="path",
        appears=False,
    ),
    doctored(
        "no-probe-arrived",
        "No probe came through from sender to receiver.",
        check("before", "forward delay s1-r1", "no probe arrived"),
        edit("calibration-before.json", lambda found: found["targets"][0].update(forward_delay_ns=None)),
        about="path",
    ),
    doctored(
        "median-too-early",
        "Half of the probes came through too early, the fastest one is as it should be.",
        check("before", "forward delay s1-r1", "too short"),
        edit(
            "calibration-before.json",
            lambda found: found["targets"][0].update(forward_delay_ns=[10_000_000, 9_900_000, 10_000_000]),
        ),
        about="path",
    ),
    doctored(
        "median-too-late",
        "Half of the probes came through too late, the fastest one is as it should be.",
        check("before", "forward delay s1-r1", "too long"),
        edit(
            "calibration-before.json",
            lambda found: found["targets"][0].update(forward_delay_ns=[10_000_000, 10_100_000, 10_200_000]),
        ),
        about="path",
    ),
    doctored(
        "fastest-probe-too-early",
        "One probe came through too early, as on a path of two ways.",
        check("after", "reverse delay s1-r1", "too short"),
        edit(
            "calibration-after.json",
            lambda found: found["targets"][0].update(reverse_delay_ns=[9_900_000, 10_000_000, 10_000_000]),
        ),
        about="path",
    ),
    doctored(
        "loss-not-measured",
        "Nobody counted the probes.",
        check("before", "loss", "was not measured"),
        edit("calibration-before.json", lambda found: found.pop("loss")),
        about="path",
    ),
    doctored(
        "one-probe-lost",
        "One probe was lost on a path that should lose none.",
        check("after", "loss", "1 of"),
        edit("calibration-after.json", lambda found: add(found["loss"], "received", -1)),
        about="path",
    ),
    doctored(
        "calibration-leaks-into-the-flows",
        "The network was not silent when the flows began.",
        check("before", "silence", "its packets may reach the flows"),
        edit("calibration-before.json", lambda found: found.update(silent=False)),
        about="path",
        appears=False,
    ),
    # Accounting
    doctored(
        "nobody-counted",
        "Nobody counted packets.",
        check("accounting", "accounting", "packets were not counted"),
        remove("accounting.json"),
        appears=False,
    ),
    doctored(
        "counters-incomplete",
        "The counters of one router are missing.",
        check("accounting", "accounting", "lacks 'right'"),
        edit_account(lambda after: after["nodes"].pop("right")),
        appears=False,
    ),
    doctored(
        "packets-vanish",
        "50 packets are lost where no counter counts them.",
        check("accounting", "packets forward", "the path drops 50 packets that no queue admits to"),
        change_interface("r1", "r1-eth0", "rx_packets", -50),
        about="path",
    ),
    doctored(
        "acknowledgements-vanish",
        "Three acknowledgements are lost where no counter counts them.",
        check("accounting", "packets reverse", "the path drops 3 packets that no queue admits to"),
        change_interface("s1", "s1-eth0", "rx_packets", -3),
        about="path",
    ),
    doctored(
        "packets-of-another",
        "A host sends a packet of its own, as IPv6 does to find its neighbours.",
        check("accounting", "packets forward", "the path drops 1 packets that no queue admits to"),
        change_interface("s1", "s1-eth0", "tx_packets", 1),
        about="path",
    ),
    doctored(
        "packets-twice",
        "A packet arrives twice.",
        check("accounting", "packets forward", "1 packets more than were sent"),
        change_interface("r1", "r1-eth0", "rx_packets", 1),
        about="path",
    ),
    doctored(
        "flow-without-a-way",
        "The plan's network does not join the two hosts of its flow.",
        check("accounting", "packets forward", "does not connect the hosts"),
        _nothing,
        plan=_disconnected,
    ),
    doctored(
        "drops-in-the-sender",
        "The sender dropped packets in its own queue, before the path.",
        check("accounting", "host queue drops", "4 packets were dropped in the hosts' own queues (s1:s1-eth0)"),
        _queue("s1", "s1-eth0", "pfifo", "drops", 4),
        about="path",
    ),
    doctored(
        "receiver-prunes",
        "The receiver ran short of memory and threw queued data away.",
        check("accounting", "receive queue pruned", "at r1"),
        _host_counter("r1", "TcpExtPruneCalled"),
    ),
    doctored(
        "receiver-drops",
        "The receiver's queue dropped a packet that the path had delivered.",
        check("accounting", "receive queue drops", "at r1"),
        _host_counter("r1", "TcpExtTCPRcvQDrop"),
    ),
    doctored(
        "socket-backlog-drops",
        "A busy socket's backlog dropped a packet.",
        check("accounting", "socket backlog drops", "at s1"),
        _host_counter("s1", "TcpExtTCPBacklogDrop"),
    ),
    doctored(
        "counted-too-early",
        "Three packets were still queued when the packets were counted.",
        check("accounting", "silence", "3 packets were still queued"),
        _queue("right", "right-eth1", "netem", "backlog_packets", 3),
    ),
    # Settings
    doctored(
        "no-dump-of-the-sysctls",
        "Nobody asked the kernel for its settings.",
        check("engine", "sysctls", "holds no sysctls"),
        edit_agent(lambda a: a.pop("sysctls")),
    ),
    doctored(
        "kernel-wide-setting",
        "A setting of the whole kernel is not the plan's.",
        check("engine", "sysctls", "net.core.rmem_max is 212992 in the kernel"),
        edit_agent(lambda a: a["sysctls"]["*"].update({"net.core.rmem_max": "212992"})),
    ),
    doctored(
        "no-dump-of-the-interfaces",
        "Nobody asked the kernel for its interfaces.",
        check("engine", "interfaces", "holds no links"),
        edit_agent(lambda a: a.pop("links")),
    ),
    doctored(
        "window-of-the-route-is-lost",
        "The plan asks for an initial window of 30 packets, and the kernel's route has none.",
        check("engine", "routes", "has no window of its own, the plan says initial_window_packets 30"),
        _nothing,
        plan=lambda plan: dataclasses.replace(
            plan,
            operations=[
                dataclasses.replace(item, initial_window_packets=30)
                if isinstance(item, AddRoute) and item.node == "s1"
                else item
                for item in plan.operations
            ],
        ),
    ),
    doctored(
        "no-dump-of-the-modules",
        "Nobody asked the kernel for the parameters of its modules.",
        check("engine", "module parameters", "holds no modules"),
        edit_agent(lambda a: a.pop("modules")),
        about="module",
    ),
    # Tables
    doctored(
        "table-with-another-rate",
        "The table of the queue has 1 % more bytes than were sent.",
        check("during", "dequeue rate", "too high"),
        change_column("qdisc", "sent_bytes", lambda values: values + values // 4),
        about="table",
        table=True,
    ),
    doctored(
        "table-with-a-larger-queue",
        "The table of the queue has more bytes than its limit.",
        check("during", "peak backlog", "the buffer is larger than configured"),
        change_column("qdisc", "backlog_bytes", lambda values: values * 2),
        about="table",
        table=True,
    ),
    doctored(
        "table-with-a-gap",
        "A stretch of readings is missing from the table of the queue.",
        check("collection", "the bottleneck's queue readings", "a reading is missing"),
        change_column("qdisc", "time_ns", lambda values: values + 50_000_000 * (values > 700_000_000)),
        about="table",
        table=True,
    ),
    doctored(
        "connections-held-back",
        "The receivers of a group of connections held them back.",
        check("during", "receive window group short", "the receiver's buffers are too small"),
        change_column("tcp_info", "rwnd_limited_us", lambda values: values + 1_000_000),
        about="run",
        honest="group",
        table=True,
    ),
    doctored(
        "senders-held-back",
        "The send buffers of a group of connections held them back.",
        check("during", "send buffer group short", "the sender's buffers are too small"),
        change_column("tcp_info", "sndbuf_limited_us", lambda values: values + 1_000_000),
        about="run",
        honest="group",
        table=True,
    ),
]
