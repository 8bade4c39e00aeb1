# SPDX-License-Identifier: Apache-2.0
"""Flows on ports of the profile's choice: the same run as without, and captures that have it whole."""

from __future__ import annotations

import pytest

from howdah.engine.uml.engine import UmlEngine
from howdah.ingest.run import read_report
from howdah.record import table as store
from howdah.record.directory import RunDirectory, read_json
from howdah.record.verdict import Verdict
from tests.guest.guest_run import failures, plan_of, require_engine
from tests.guest.receiver_capture import Conversation, read_conversation
from tests.guest.shared_run import shared_run

pytestmark = pytest.mark.guest

# The first ends in time and is acknowledged to its FIN; the second's is sent when the run ends.
CHOSEN = "flows=[{size: 500 kB, port: 443}, {start: 1 s, port: 443}]"
DEFAULT = "flows=[{size: 500 kB}, {start: 1 s}]"
CAPTURES = "collect.pcap=[r1:r1-eth0, r2:r2-eth0, s1:s1-eth0]"
_FIN = 1

Made = tuple[RunDirectory, Verdict]


@pytest.fixture(scope="module")
def engine() -> UmlEngine:
    return require_engine()


@pytest.fixture(scope="module")
def chosen(engine: UmlEngine) -> Made:
    return shared_run(engine, plan_of(CHOSEN, CAPTURES))


def test_the_run_is_valid_and_every_collector_covers_it(chosen: Made) -> None:
    _directory, verdict = chosen
    assert failures(verdict) == {}
    made = {check.name: check.ok for check in verdict.checks}
    for name in (
        "qdisc from begin to end",
        "interface from begin to end",
        "counter from begin to end",
        "tcp_info from begin to end",
        "trace to the end",
        "ss at begin and end",
        "capture r1:r1-eth0",
        "capture r1:r1-eth0 and interface",
        "capture s1:s1-eth0",
        "capture s1:s1-eth0 and interface",
    ):
        assert made[name] is True, name


def _capture(chosen: Made, host: str) -> Conversation:
    return read_conversation(chosen[0].raw / "pcap" / f"{host}-{host}-eth0.pcap", 443)


@pytest.mark.parametrize(("host", "flow"), [("r1", 1), ("r2", 2), ("s1", 1)])
def test_a_capture_has_every_packet_up_to_both_fins(chosen: Made, host: str, flow: int) -> None:
    seen = _capture(chosen, host)
    directory = chosen[0]
    record = store.read(directory, "flow").to_pylist()[flow - 1]
    assert len(seen.handshake) == 2
    fins = [segment for segment in seen.segments if segment.flags & _FIN]
    assert {segment.sent for segment in fins} == {True, False}, "each end closed"
    assert max(segment.sequence + segment.payload_bytes for segment in seen.data) == record["bytes_received_bytes"]
    (counted,) = (
        item for item in read_report(directory).sources["pcap"].counts["captures"] if item["place"].startswith(host)
    )
    assert counted["captured"] == counted["received"] == counted["in_file"] > 100


def test_tables_and_measures_are_those_of_other_ports(engine: UmlEngine, chosen: Made) -> None:
    directory, verdict = shared_run(engine, plan_of(DEFAULT, CAPTURES))
    assert failures(verdict) == {}
    for name in ("tcp_probe", "tcp_info", "qdisc"):
        here, there = store.read(chosen[0], name), store.read(directory, name)
        assert here.num_rows > 0
        for column in ("flow", "end", "cwnd_packets", "snd_una_bytes", "bytes_acked_bytes", "backlog_bytes"):
            if column in here.column_names:
                assert here[column].equals(there[column]), f"{name}.{column}"
    assert {row["flow"] for row in store.read(chosen[0], "tcp_probe").to_pylist()} == {1, 2}
    assert {row["end"] for row in store.read(chosen[0], "tcp_info").to_pylist()} == {"sender", "receiver"}
    assert read_json(chosen[0].metrics)["rows"] == read_json(directory.metrics)["rows"]


def test_iperf3_serves_the_port(engine: UmlEngine) -> None:
    plan = plan_of("flows=[{port: 443}, {port: 443}]", "traffic={source: iperf3}", "duration=2 s")
    directory, verdict = shared_run(engine, plan)
    assert failures(verdict) == {}
    assert read_report(directory).sources["tcp_probe"].counts["unknown_rows"] == 0
    assert set(store.read(directory, "tcp_probe")["flow"].to_pylist()) == {1, 2}
