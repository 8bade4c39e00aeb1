# SPDX-License-Identifier: Apache-2.0
"""What was recorded, record by record: accounts of tracepoints, tables that must not be empty, gaps of readings."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from howdah.judge.collection import collection_checks, reading_gaps
from howdah.plan.plan import Plan
from howdah.record.verdict import Check
from tests.unit import path_factory
from tests.unit.plan_factory import collecting

TRACE = ("trace", "per-ACK record", "tcp_probe")
EVENT = ("event", "slow-start event", "slow_start")


def judged(
    source: tuple[str, str, str] = TRACE,
    account: dict[str, Any] | None = None,
    counts: dict[str, Any] | None = None,
    plan: Plan | None = None,
    **changes: Any,
) -> dict[str, Check]:
    """Of a healthy run but for what is given of one source; ``changes`` are of its report."""
    report = path_factory.report()
    found = report.sources[source[2]]
    found.counts = {**found.counts, **(counts or {})}
    for name, value in changes.items():
        setattr(found, name, value)
    trace, told = path_factory.trace(), dataclasses.replace(path_factory.trace(), **(account or {}))
    accounts = (told, None) if source is TRACE else (trace, told)
    return {check.name: check for check in collection_checks(plan or path_factory.path_plan(), report, *accounts)}


@pytest.mark.parametrize("source", [TRACE, EVENT])
@pytest.mark.parametrize(
    ("account", "counts", "lost"),
    [
        ({}, {}, 0),
        ({"overrun": 2, "dropped_events": 3, "commit_overrun": 4}, {}, 9),
        ({"overrun": 2}, {"lost_events": 5}, 5),  # what both saw is lost once
        ({"overrun": 7}, {"lost_events": 5}, 7),
        ({"overrun": 1}, {"gaps_of_unknown_size": 2}, 3),
        ({"bytes_lost": 4096}, {}, 1),
        ({"unread": 6}, {}, 6),
    ],
)
def test_what_was_lost_of_a_tracepoint(
    source: tuple[str, str, str], account: dict[str, Any], counts: dict[str, Any], lost: int
) -> None:
    name, record, _ = source
    message = f"no {record} was lost"
    if lost:
        message = f"{lost} {record}s were lost: the trace buffer was too small or was read too late"
    assert judged(source, account, counts)[f"lost {name} records"] == Check(
        f"lost {name} records", "collection", not lost, message, 0, lost, 0, "records"
    )


@pytest.mark.parametrize("source", [TRACE, EVENT])
@pytest.mark.parametrize("kind", ["receiver_rows", "control_rows", "other_rows", "unknown_rows", "foreign_events"])
def test_every_kind_of_record_was_handed_over(source: tuple[str, str, str], kind: str) -> None:
    name = f"{source[0]} records"
    for entries, ok in ((507, True), (506, False), (508, False)):
        message = f"507 records were decoded, the kernel handed over {entries}"
        expected = Check(name, "collection", ok, message, entries, 507, 0, "records")
        assert judged(source, {"entries": entries}, {kind: 7})[name] == expected


@pytest.mark.parametrize("entries", [None, 0])
def test_a_kernel_that_counts_no_records(entries: int | None) -> None:
    unknown = Check("trace records", "collection", None, "the kernel's count of records is not known")
    none = Check(
        "trace records", "collection", False, "500 records were decoded, the kernel handed over 0", 0, 500, 0, "records"
    )
    assert judged(account={"entries": entries})["trace records"] == (unknown if entries is None else none)
    checks = {each.name: each for each in collection_checks(path_factory.path_plan(), path_factory.report(), None)}
    assert checks["trace records"] == unknown
    missing = "trace.json is missing: lost records were not counted"
    assert checks["lost trace records"] == Check("lost trace records", "collection", False, missing)


@pytest.mark.parametrize(("source", "name"), [(TRACE, "unknown sockets"), (EVENT, "unknown sockets of events")])
def test_sockets_of_no_flow_are_named(source: tuple[str, str, str], name: str) -> None:
    sockets = [{"source_port": number, "destination_port": 10 * number} for number in range(1, 5)]
    counts = {"unknown_rows": 9, "unknown_sockets": sockets}
    message = (
        "9 records belong to sockets of no flow (ports 1 to 10, 2 to 20, 3 to 30): there is traffic nobody planned"
    )
    expected = Check(name, "collection", False, message, 0, 9, 0, "records")
    assert judged(source, counts=counts)[name] == expected
    good = "every record belongs to a flow of the plan"
    assert judged(source, counts={"unknown_rows": 0})[name] == Check(name, "collection", True, good, 0, 0, 0, "records")


def test_events_are_judged_where_there_is_an_account_or_a_problem() -> None:
    plan, report = path_factory.path_plan(), path_factory.report()
    names = {"lost event records", "event records", "unknown sockets of events", "event names"}
    everything = judged(EVENT)
    assert names < set(everything)
    assert list(everything) == [
        "raw files",
        "lost trace records",
        "trace records",
        "unknown sockets",
        "lost event records",
        "event records",
        "unknown sockets of events",
        "event names",
        "collectors",
    ]
    assert not names & {each.name for each in collection_checks(plan, report, path_factory.trace())}
    report.sources["slow_start"].problems.append("cut off")
    found = {each.name: each for each in collection_checks(plan, report, path_factory.trace())}
    assert found["lost event records"].message == "slow_start.json is missing: lost records were not counted"
    off = dataclasses.replace(plan, collect=dataclasses.replace(plan.collect, slow_start=False, tcp_probe=False))
    assert [each.name for each in collection_checks(off, report, None)] == ["raw files", "collectors"]


def test_an_event_without_a_name_is_no_fault() -> None:
    good = "every event and reason has a name"
    assert judged(EVENT)["event names"] == Check("event names", "collection", True, good, 0, 0, 0, "names")
    message = "the module reports event 9, reason 7, which this howdah has no name for: it is older than the module"
    found = judged(EVENT, counts={"unknown_names": ["event 9", "reason 7"]})["event names"]
    assert found == Check("event names", "collection", None, message, 0, 2, 0, "names")


@pytest.mark.parametrize(
    ("name", "collect", "flow", "missed"),
    [
        ("tcp_probe", {}, {}, True),
        ("tcp_probe", {"tcp_probe": False}, {}, False),
        ("tcp_probe", {}, {"datagram_bytes": 1200}, False),
        ("tcp_probe", {}, {"sender_stack": {"name": "lwip"}}, False),
        ("tcp_info", {}, {}, True),
        ("tcp_info", {"tcp_info_us": None}, {}, False),
        ("tcp_info", {}, {"datagram_bytes": 1200}, False),
        ("tcp_info", {}, {"sender_stack": {"name": "lwip"}}, False),
        ("qdisc", {}, {}, True),
        ("qdisc", {}, {"datagram_bytes": 1200}, True),
        ("qdisc", {"qdisc_us": None}, {}, False),
        ("interface", {}, {}, True),
        ("interface", {"interface_us": None}, {}, False),
        ("counter", {}, {}, True),
    ],
)
def test_every_collector_left_something(name: str, collect: dict[str, Any], flow: dict[str, Any], missed: bool) -> None:
    base = path_factory.path_plan()
    plan = dataclasses.replace(
        base,
        collect=collecting(base.collect, **collect),
        flows=[dataclasses.replace(base.flows[0], **flow)],
    )
    message = f"nothing was collected for {name}" if missed else "every collector has readings"
    found = judged(("", "", name), plan=plan, rows=0)["collectors"]
    assert found == Check("collectors", "collection", not missed, message, 0, int(missed), 0, "tables")
    assert judged(("", "", name), plan=dataclasses.replace(plan, flows=[]), rows=0)["collectors"].ok is True


def test_empty_tables_are_all_named() -> None:
    report = path_factory.report()
    for name in ("tcp_info", "counter"):
        report.sources[name].rows = 0
    found = {each.name: each for each in collection_checks(path_factory.path_plan(), report, path_factory.trace())}
    message = "nothing was collected for tcp_info, counter"
    assert found["collectors"] == Check("collectors", "collection", False, message, 0, 2, 0, "tables")


MS = 1_000_000
JUMPED = ": the guest's clock jumped, or a reading is missing"


@pytest.mark.parametrize(
    ("times_ms", "idle_ms", "ok", "longest_us", "words"),
    [
        ([0, 100, 200], None, True, 100_000, ""),
        ([0, 100, 350], None, True, 250_000, ""),  # two and a half intervals
        ([0, 100, 350.001, 400], None, False, 250_001, JUMPED),
        ([-50, 300], None, False, 350_000, JUMPED),
        # A reading that was due after 100 ms came 200 ms later; of these a twentieth may have been idle.
        ([0, 300, 400], 10, True, 300_000, ", because the processor was busy without a pause"),
        ([0, 300, 400], 10.1, False, 300_000, JUMPED),
    ],
)
def test_readings_follow_one_another(
    times_ms: list[float], idle_ms: float | None, ok: bool, longest_us: int, words: str
) -> None:
    asked: list[tuple[int, int]] = []

    def idle(begin_ns: int, end_ns: int) -> int:
        asked.append((begin_ns, end_ns))
        return int((idle_ms or 0) * MS)

    times = [round(each * MS) for each in times_ms]
    found = reading_gaps("the queue", 100_000, times, None if idle_ms is None else idle)
    message = f"the longest time between two readings of the queue is {longest_us} us, the interval 100000 us{words}"
    expected = Check("the queue readings", "collection", ok, message, 100_000, float(longest_us), 150_000.0, "us")
    assert found == expected
    assert asked == ([] if idle_ms is None else [(100 * MS, 300 * MS)])


def test_each_gap_needs_an_excuse() -> None:
    times = [0, 300 * MS, 600 * MS]
    assert reading_gaps("x", 100_000, times, lambda begin, _: 0 if begin < 200 * MS else 200 * MS).ok is False
    assert reading_gaps("x", 100_000, times, lambda *_: 0).ok is True


@pytest.mark.parametrize(("interval_us", "times"), [(100_000, []), (100_000, [5]), (None, [5, 6])])
def test_one_reading_has_no_gap(interval_us: int | None, times: list[int]) -> None:
    expected = Check("x readings", "collection", None, "x was not read twice", interval_us, None, None, "us")
    assert reading_gaps("x", interval_us, times) == expected
    assert reading_gaps("x", 100_000, [0, 100 * MS]).ok is True
