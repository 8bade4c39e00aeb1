# SPDX-License-Identifier: Apache-2.0
"""Every check on a healthy input, and on one doctored so that it must fail."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import pytest

from howdah.judge.accounting import accounting_checks
from howdah.judge.calibration import calibration_checks
from howdah.judge.check import Check
from howdah.judge.collection import collection_checks, reading_gaps
from howdah.judge.tolerance import REAL, VIRTUAL, tolerance_of
from howdah.plan.plan import CalibrationTarget, Plan
from howdah.plan.route import way
from tests.unit import path_factory
from tests.unit.plan_factory import on_engine

Doctor = Callable[[dict[str, Any]], Any]


def failed(checks: list[Check]) -> dict[str, str]:
    return {check.name: check.message for check in checks if check.ok is False}


# Calibration


def calibrated(doctor: Doctor | None = None, plan: Plan | None = None) -> list[Check]:
    found = path_factory.calibration()
    if doctor is not None:
        doctor(found)
    return calibration_checks(plan or path_factory.path_plan(), "before", found, VIRTUAL)


def test_a_healthy_calibration_passes_every_check() -> None:
    checks = calibrated()
    assert {check.name for check in checks} == {
        "rate",
        "forward delay s1-r1",
        "reverse delay s1-r1",
        "buffer",
        "loss",
    }
    assert all(check.ok for check in checks)


@pytest.mark.parametrize(
    ("doctor", "name", "words"),
    [
        (lambda found: found.update(rate_bits_per_second=19_970_000), "rate", "too low"),
        (lambda found: found.update(rate_bits_per_second=20_030_000), "rate", "too high"),
        (lambda found: found.update(buffer_bytes=99_160), "buffer", "too low"),
        (lambda found: found.update(buffer_bytes=100_690), "buffer", "too high"),
        (
            lambda found: found["targets"][0].update(forward_delay_ns=[20_100_000] * 3),
            "forward delay s1-r1",
            "from s1 to r1 is too long",
        ),
        (
            lambda found: found["targets"][0].update(forward_delay_ns=[20_000_000, 20_100_000, 20_100_000]),
            "forward delay s1-r1",
            "from s1 to r1 is too long: 20100 us, expected 20000",
        ),
        (
            lambda found: found["targets"][0].update(reverse_delay_ns=[19_900_000, 20_000_000, 20_000_000]),
            "reverse delay s1-r1",
            "from r1 to s1 is too short",
        ),
        (lambda found: found["targets"][0].update(reverse_delay_ns=None), "reverse delay s1-r1", "no probe arrived"),
        (lambda found: found.update(targets=[]), "forward delay s1-r1", "could not be measured"),
        (lambda found: found.update(loss={"sent": 94, "received": 93}), "loss", "1 of 94 probes were lost"),
        (lambda found: found.pop("loss"), "loss", "not measured"),
        (lambda found: found.update(silent=False), "silence", "did not fall silent"),
    ],
)
def test_a_wrong_path_is_named(doctor: Doctor, name: str, words: str) -> None:
    found = failed(calibrated(doctor))
    assert name in found
    assert words in found[name]


def test_a_short_train_is_timed_no_closer_than_the_clock() -> None:
    plan = path_factory.path_plan()
    fast = 10_000_000_000
    narrow = dataclasses.replace(plan.calibration, rate_bits_per_second=fast, buffer_bytes=1_514_000)
    for share, ok in ((1.0014, True), (1.0023, False)):

        def measured(found: dict[str, Any], share: float = share) -> None:
            found["rate_bits_per_second"] = fast * share

        checks = calibrated(measured, dataclasses.replace(plan, calibration=narrow))
        assert ("rate" not in failed(checks)) is ok


def test_an_earlier_calibration_added_a_whole_frame() -> None:
    def earlier(found: dict[str, Any]) -> None:
        found.update(format=1, buffer_bytes=found["buffer_bytes"] + 757)

    assert not failed(calibrated(earlier))


def test_a_missing_calibration_fails() -> None:
    assert failed(calibration_checks(path_factory.path_plan(), "after", None, VIRTUAL)) == {
        "calibration": "calibration-after.json is missing: the path was not measured"
    }


def test_a_calibration_nobody_asked_for_is_not_made() -> None:
    plan = path_factory.path_plan()
    off = dataclasses.replace(plan, calibration=dataclasses.replace(plan.calibration, enabled=False))
    checks = calibration_checks(off, "before", None, VIRTUAL)
    assert [check.ok for check in checks] == [None]


def test_a_buffer_that_cannot_be_filled_is_not_judged() -> None:
    def cannot(found: dict[str, Any]) -> None:
        found.update(buffer_bytes=None, buffer_why="1 sender(s) of 10 bit/s cannot outrun 20 bit/s")

    check = next(check for check in calibrated(cannot) if check.name == "buffer")
    assert check.ok is None
    assert "cannot outrun" in check.message


def test_variation_that_the_plan_asks_for_is_allowed() -> None:
    plan = path_factory.path_plan()
    target = CalibrationTarget("s1", "r1", "10.2.0.1", "10.4.0.1", 20_000, 20_000, 5_000)
    varied = dataclasses.replace(plan, calibration=dataclasses.replace(plan.calibration, targets=[target]))

    def later(found: dict[str, Any]) -> None:
        found["targets"][0].update(forward_delay_ns=[20_100_000, 24_000_000, 24_900_000])

    assert failed(calibrated(later, varied)) == {}
    assert set(failed(calibrated(later))) == {"forward delay s1-r1"}


def test_configured_loss_is_a_binomial_count() -> None:
    plan = path_factory.path_plan()
    lossy = dataclasses.replace(plan, path=dataclasses.replace(plan.path, loss_ratio=0.1))
    for received, ok in ((900, True), (870, True), (1000, False), (800, False)):
        found = calibrated(lambda item, count=received: item.update(loss={"sent": 1000, "received": count}), lossy)  # type: ignore[misc]
        assert ("loss" not in failed(found)) == ok


def test_real_time_engines_are_judged_less_closely() -> None:
    plan = path_factory.path_plan()
    assert tolerance_of(plan) is VIRTUAL
    assert tolerance_of(on_engine(plan, "host")) is REAL
    assert REAL.rate_share > VIRTUAL.rate_share
    assert REAL.delay(1000) > VIRTUAL.delay(1000)


# Accounting


def accounted(doctor: Doctor | None = None) -> list[Check]:
    found = path_factory.accounting()
    if doctor is not None:
        doctor(found)
    return accounting_checks(path_factory.path_plan(), found, VIRTUAL)


def _after(found: dict[str, Any], node: str, interface: str) -> dict[str, int]:
    counters: dict[str, int] = found["after"]["nodes"][node]["interfaces"][interface]
    return counters


def _queue(found: dict[str, Any], node: str, number: int) -> dict[str, Any]:
    queue: dict[str, Any] = found["after"]["nodes"][node]["qdiscs"][number]
    return queue


def test_drops_of_the_bottleneck_are_accounted_for() -> None:
    checks = accounted()
    assert failed(checks) == {}
    forward = next(check for check in checks if check.name == "packets forward")
    assert forward.message == "forward: 1000 packets sent, 992 received, 8 at the queue of left:left-eth1"


@pytest.mark.parametrize(
    ("doctor", "name", "words"),
    [
        (
            lambda found: _after(found, "r1", "r1-eth0").update(rx_packets=1042),
            "packets forward",
            "the path drops 50 packets that no queue admits to",
        ),
        (
            lambda found: _after(found, "s1", "s1-eth0").update(rx_packets=547),
            "packets reverse",
            "the path drops 3 packets that no queue admits to",
        ),
        (lambda found: _after(found, "r1", "r1-eth0").update(rx_packets=1093), "packets forward", "1 packets more"),
        (
            lambda found: found["after"]["softnet"].update(dropped=1958),
            "softnet drops",
            "netdev_max_backlog is too small",
        ),
        (
            lambda found: _queue(found, "right", 0).update(drops=12),
            "netem drops right:right-eth1",
            "its limit is too small",
        ),
        (
            lambda found: _queue(found, "s1", 0).update(drops=4),
            "host queue drops",
            "4 packets were dropped in the hosts'",
        ),
        (
            lambda found: found["after"]["netstat"]["s1"].update(TcpExtTCPMemoryPressures=2),
            "memory pressure",
            "tcp_mem is too small (at s1)",
        ),
        (lambda found: found["after"]["netstat"]["r1"].update(TcpExtPruneCalled=1), "receive queue pruned", "at r1"),
        (lambda found: found["after"]["netstat"]["r1"].update(TcpExtTCPRcvQDrop=1), "receive queue drops", "at r1"),
        (lambda found: found["after"]["netstat"]["r1"].update(TcpExtTCPBacklogDrop=1), "socket backlog drops", "at r1"),
        (lambda found: _queue(found, "right", 0).update(backlog_packets=3), "silence", "3 packets were still queued"),
        (lambda found: found["after"]["nodes"].pop("right"), "accounting", "lacks 'right'"),
        (lambda found: found["after"].pop("softnet"), "accounting", "lacks 'softnet'"),
    ],
)
def test_what_is_not_accounted_for_is_named(doctor: Doctor, name: str, words: str) -> None:
    found = failed(accounted(doctor))
    assert name in found
    assert words in found[name]


def test_drops_of_an_interface_are_known_drops() -> None:
    def refuse(found: dict[str, Any]) -> None:
        _after(found, "right", "right-eth0").update(rx_dropped=5)
        for node, interface, counter in (("right", "right-eth1", "tx_packets"), ("r1", "r1-eth0", "rx_packets")):
            _after(found, node, interface)[counter] -= 5

    checks = accounted(refuse)
    assert failed(checks) == {}
    assert "5 at right:right-eth0" in next(check.message for check in checks if check.name == "packets forward")


def test_netem_may_drop_what_the_plan_asks_for() -> None:
    plan = path_factory.path_plan()
    plan = dataclasses.replace(plan, path=dataclasses.replace(plan.path, loss_ratio=0.1))

    def lose(found: dict[str, Any], count: int) -> dict[str, Any]:
        queue = _queue(found, "right", 0)
        queue.update(drops=count, packets=queue["packets"] - count)
        _after(found, "right", "right-eth1")["tx_packets"] -= count
        _after(found, "r1", "r1-eth0")["rx_packets"] -= count
        return found

    assert failed(accounting_checks(plan, lose(path_factory.accounting(), 100), VIRTUAL)) == {}
    too_many = failed(accounting_checks(plan, lose(path_factory.accounting(), 200), VIRTUAL))
    assert set(too_many) == {"netem drops right:right-eth1"}


def test_missing_accounting_fails() -> None:
    assert failed(accounting_checks(path_factory.path_plan(), None, VIRTUAL))


def test_the_way_follows_links_through_routers_only() -> None:
    plan = path_factory.path_plan()
    assert [(hop.node, hop.interface) for hop in way(plan, "s1", "r1")] == list(path_factory.FORWARD)
    assert [(hop.node, hop.interface) for hop in way(plan, "r1", "s1")] == list(path_factory.REVERSE)
    assert way(plan, "s1", "nowhere") == []


# Collection


def collected(doctor: Callable[[dict[str, Any], Any], Any] | None = None) -> list[Check]:
    trace, report = path_factory.trace(), path_factory.report()
    if doctor is not None:
        doctor(trace, report)
    return collection_checks(path_factory.path_plan(), report, trace)


@pytest.mark.parametrize(
    ("doctor", "name", "words"),
    [
        (lambda trace, _: trace.update(overrun=7), "lost trace records", "7 per-ACK records were lost"),
        (lambda trace, _: trace.update(dropped_events=7), "lost trace records", "7 per-ACK records"),
        (lambda trace, _: trace.update(unread=2), "lost trace records", "2 per-ACK records"),
        (lambda _, report: report.sources["tcp_probe"].counts.update(lost_events=9), "lost trace records", "9 per-ACK"),
        (
            lambda _, report: report.sources["tcp_probe"].counts.update(gaps_of_unknown_size=1),
            "lost trace records",
            "1 per",
        ),
        (lambda trace, _: trace.update(entries=501), "trace records", "500 records were decoded"),
        (
            lambda _, report: report.sources["tcp_probe"].counts.update(
                unknown_rows=3, unknown_sockets=[{"source_port": 22, "destination_port": 9, "records": 3}]
            ),
            "unknown sockets",
            "(ports 22 to 9)",
        ),
        (
            lambda _, report: report.sources["qdisc"].problems.append("qdisc.bin at byte 12: cut off {here}"),
            "raw files",
            "qdisc: qdisc.bin at byte 12: cut off {here}",
        ),
        (
            lambda _, report: setattr(report.sources["tcp_info"], "rows", 0),
            "collectors",
            "nothing was collected for tcp_info",
        ),
    ],
)
def test_what_was_not_recorded_is_named(doctor: Callable[[Any, Any], Any], name: str, words: str) -> None:
    assert failed(collected()) == {}
    found = failed(collected(doctor))
    assert name in found
    assert words in found[name]


def test_a_missing_trace_record_fails() -> None:
    checks = collection_checks(path_factory.path_plan(), path_factory.report(), None)
    assert "trace.json is missing" in failed(checks)["lost trace records"]


def test_a_gap_between_readings_is_a_jump_of_the_clock() -> None:
    regular = [time * 100_000_000 for time in range(10)]
    assert reading_gaps("queue", 100_000, regular).ok is True
    jumped = [*regular, 10**12]
    check = reading_gaps("queue", 100_000, jumped)
    assert check.ok is False
    assert "the guest's clock jumped" in check.message
    assert reading_gaps("queue", None, regular).ok is None
