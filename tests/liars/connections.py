# SPDX-License-Identifier: Apache-2.0
"""Lies of many connections: one that is missing, twice, refused, or said to be done and was not."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from howdah.record import table as store
from howdah.record.directory import RunDirectory
from tests.liars.breaking import options, with_operations
from tests.liars.doctor import Doctor, add, doctored, edit_account, edit_agent
from tests.liars.liar import RunLiar, check
from tests.liars.paths import path_liar

_NO_ROOM = {"node": "r1", "name": "net.ipv4.tcp_max_tw_buckets", "value": "0"}


def _third(**changes: Any) -> Doctor:
    return edit_agent(lambda agent: agent["flows"][2].update(changes))


def _lost(agent: dict[str, Any]) -> None:
    del agent["flows"][2]


def _again(directory: RunDirectory) -> None:
    table = store.read(directory, "flow")
    store.write(directory, "flow", pa.concat_tables([table, table.slice(2, 1)]))


def _counted(node: str, name: str, more: int = 1) -> Doctor:
    return edit_account(lambda after: add(after["netstat"][node], name, more))


CONNECTIONS: list[RunLiar] = [
    doctored(
        "connection-without-a-record",
        "The agent started five connections and tells of four.",
        check("accounting", "connections recorded", "agent.json lacks flow 3"),
        edit_agent(_lost),
        honest="group",
    ),
    doctored(
        "connection-with-two-rows",
        "The table has one connection twice.",
        check("accounting", "connections recorded", "the table flow has twice flow 3"),
        _again,
        honest="group",
        about="table",
        table=True,
    ),
    doctored(
        "connection-of-a-group-that-failed",
        "One of the connections of a group was reset.",
        check("engine", "connections short", "4 of the 5 connections"),
        _third(error="connection reset", complete=False),
        honest="group",
    ),
    doctored(
        "finished-and-failed",
        "One connection counts as finished and as failed.",
        check("accounting", "connections ended", "flow 3 finished and failed"),
        _third(error="connection reset"),
        honest="group",
    ),
    doctored(
        "done-and-called-unfinished",
        "One connection moved all of its bytes, and is said to be unfinished.",
        check("accounting", "connections ended", "flow 3 moved all of its bytes and is not finished"),
        _third(complete=False),
        honest="group",
    ),
    doctored(
        "connection-nobody-planned",
        "A host opened a connection that is no flow.",
        check("accounting", "connections opened", "1 that nobody planned"),
        _counted("s1", "TcpActiveOpens"),
        honest="group",
    ),
    doctored(
        "connection-that-was-not-accepted",
        "The receiver's kernel accepted one connection less than the agent has both ends of.",
        check("accounting", "connections opened", "the agent has both ends of 5"),
        _counted("r1", "TcpPassiveOpens", -1),
        honest="group",
    ),
    doctored(
        "reset-and-called-finished",
        "A kernel reset a socket that still had data, and every connection is said to be finished.",
        check("accounting", "connections opened", "the kernels reset 1 socket"),
        _counted("s1", "TcpExtTCPAbortOnData"),
        honest="group",
    ),
    doctored(
        "full-listener",
        "A listener refused a connection, which came again later.",
        check("accounting", "connections refused", "TcpExtListenOverflows 1"),
        _counted("r1", "TcpExtListenOverflows"),
        honest="group",
    ),
    path_liar(
        "forgotten-connections",
        "The receiver's kernel has no room for connections in TIME_WAIT and forgets them.",
        check("accounting", "connections refused", "TcpExtTCPTimeWaitOverflow"),
        lambda plan: with_operations(plan, ("sysctl", _NO_ROOM)),
        honest="group",
        about="run",
    ),
    path_liar(
        "connections-over-a-shorter-path",
        "Both delays are a quarter too short, so that the RTT of a group's connections is below the path's.",
        check("during", "minimum RTT group short", "shorter than the path's"),
        options("qdisc", {"delay_us": 7_500}, kind="netem"),
        honest="group",
    ),
]
