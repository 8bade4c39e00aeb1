# SPDX-License-Identifier: Apache-2.0
"""What the agent measured of a path, at what is just allowed and one step beyond it: 20 Mbit/s, 20 ms each way, a
buffer of 100 000 bytes."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from howdah.judge.calibration import calibration_checks, whole_nanoseconds
from howdah.judge.check import REAL, VIRTUAL, Tolerance, tolerance_of
from howdah.plan.plan import CalibrationTarget, Plan
from howdah.record.calibration import CalibrationRecord
from howdah.record.verdict import Check
from tests.calibrated import calibrated
from tests.unit import path_factory
from tests.unit.plan_factory import on_engine

RATE = 20_000_000
FILLED = 66 * 1514  # of 100 000 bytes: no part of a frame is taken


def plan(path: dict[str, Any] | None = None, **calibration: Any) -> Plan:
    base = path_factory.path_plan()
    return dataclasses.replace(
        base,
        path=dataclasses.replace(base.path, **(path or {})),
        calibration=dataclasses.replace(base.calibration, **calibration),
    )


def judged(
    name: str, of: Plan | None = None, tolerance: Tolerance = VIRTUAL, without: str = "", **found: Any
) -> list[Check]:
    told = path_factory.calibration() | found
    told.pop(without, None)
    return [
        check for check in calibration_checks(of or plan(), "before", calibrated(told), tolerance) if check.name == name
    ]


def _near(value: float) -> Any:
    return pytest.approx(value, rel=1e-9)


@pytest.mark.parametrize(
    ("of", "tolerance", "rate", "allowed", "what"),
    [
        # A train may be as long as 52 frames, 0.8 of the buffer; three quarters of them, 39, take 39 * 605.6 us. Two
        # steps of the clock are 0.512 us of that.
        (plan(), VIRTUAL, RATE, RATE * (0.001 + 0.512 / (39 * 605.6)), "the rate of the bottleneck"),
        (plan(), REAL, RATE, RATE * (0.01 + 0.512 / (39 * 605.6)), "the rate of the bottleneck"),
        (plan(train_packets=5), VIRTUAL, RATE, RATE * (0.001 + 0.512 / (2 * 605.6)), "the rate of the bottleneck"),
        (plan(train_packets=90), VIRTUAL, RATE, RATE * (0.001 + 0.512 / (39 * 605.6)), "the rate of the bottleneck"),
        # One frame behind the burst, which a timer sent up to a microsecond late.
        (plan(train_packets=3), VIRTUAL, RATE, RATE * (0.001 + 1.512 / 605.6), "the rate of the bottleneck"),
        (
            plan(train_rate_bits_per_second=RATE // 2),
            VIRTUAL,
            RATE // 2,
            RATE / 2 * (0.001 + 0.512 / (39 * 1211.2)),
            "the rate of the sender's interface, which is slower than the bottleneck,",
        ),
    ],
)
def test_a_train_has_the_rate_of_the_path(of: Plan, tolerance: Tolerance, rate: int, allowed: float, what: str) -> None:
    for off, ok, words in (
        (allowed * 0.9999, True, "is as configured"),
        (-allowed * 0.9999, True, "is as configured"),
        (allowed * 1.0001, False, "is too high"),
        (-allowed * 1.0001, False, "is too low"),
    ):
        (check,) = judged("rate", of, tolerance, rate_bits_per_second=rate + off)
        assert (check.ok, check.stage, check.expected, check.unit) == (ok, "before", rate, "bit/s")
        assert check.tolerance == _near(allowed)
        assert check.message.startswith(f"{what} {words}: ")
    (check,) = judged("rate", of, tolerance, without="rate_bits_per_second")
    assert (check.ok, check.message) == (None, f"{what} was not measured: too little of the packet train arrived")


def target(**changes: Any) -> CalibrationTarget:
    return dataclasses.replace(plan().calibration.targets[0], **changes)


@pytest.mark.parametrize(
    ("of", "way", "delay_us", "low_us", "high_us", "told", "tolerance"),
    [
        # 20 us and a ten thousandth: 22 us of 20 ms, 23 of 30.
        (plan(), "forward", 20_000, 19_978, 20_022, "expected 20000 ± 22", 22),
        (plan(), "reverse", 20_000, 19_978, 20_022, "expected 20000 ± 22", 22),
        (plan(targets=[target(forward_delay_us=30_000)]), "forward", 30_000, 29_977, 30_023, "expected 30000 ± 23", 23),
        (plan(targets=[target(reverse_delay_us=30_000)]), "reverse", 30_000, 29_977, 30_023, "expected 30000 ± 23", 23),
        (
            plan(targets=[target(variation_us=5_000)]),
            "forward",
            20_000,
            19_978,
            25_022,
            "expected 20000 + up to 5000 of variation ± 22",
            5022,
        ),
        (
            plan(targets=[target(variation_reverse_us=7_000)]),
            "reverse",
            20_000,
            19_978,
            27_022,
            "expected 20000 + up to 7000 of variation ± 22",
            7022,
        ),
    ],
)
def test_a_delay_is_the_planned_one(
    of: Plan, way: str, delay_us: int, low_us: int, high_us: int, told: str, tolerance: float
) -> None:
    ends = "from s1 to r1" if way == "forward" else "from r1 to s1"
    name = f"{way} delay s1-r1"
    for us, words in (
        (low_us, "as configured"),
        (high_us, "as configured"),
        (low_us - 1, "too short"),
        (high_us + 1, "too long"),
    ):
        values = [us * 1000, us * 1000, 10**9]
        item = {"sender": "s1", "receiver": "r1", f"{way}_delay_ns": values}
        message = f"the {way} delay {ends} is {words}: {us} us, {told}"
        ok = words == "as configured"
        assert judged(name, of, targets=[item]) == [
            Check(name, "before", ok, message, delay_us, float(us), tolerance, "us")
        ]


@pytest.mark.parametrize(
    ("least_us", "median_us", "ok", "worst_us", "words"),
    [
        (18_978, 20_000, True, 20_000, "is as configured"),  # a millisecond early, and half of the probes are not
        (18_977, 20_000, False, 18_977, "is too short"),
        (18_978, 19_978, True, 19_978, "is as configured"),
        (18_978, 19_977, False, 19_977, "is too short"),
        (18_978, 20_023, False, 20_023, "is too long"),
        (20_023, 20_022, False, 20_022, "is too long"),
    ],
)
def test_some_probes_may_be_early(least_us: int, median_us: int, ok: bool, worst_us: int, words: str) -> None:
    of = plan(early_us=1_000)
    item = {"sender": "s1", "receiver": "r1", "forward_delay_ns": [least_us * 1000, median_us * 1000]}
    message = f"the forward delay from s1 to r1 {words}: {worst_us} us, expected 20000, some 1000 early ± 22"
    name = "forward delay s1-r1"
    expected = Check(name, "before", ok, message, 20_000, float(worst_us), 22.0, "us")
    assert judged(name, of, targets=[item]) == [expected]
    back = {"sender": "s1", "receiver": "r1", "reverse_delay_ns": [19_977_000, 20_000_000]}
    (check,) = judged("reverse delay s1-r1", of, targets=[back])
    assert (check.ok, "early" in check.message) == (False, False), "none is early on the way back"


def test_a_delay_that_no_probe_tells_fails() -> None:
    other = {"sender": "s2", "receiver": "r1", "forward_delay_ns": [20_000_000] * 2}
    silent = {"sender": "s1", "receiver": "r1", "forward_delay_ns": []}
    message = "the forward delay from s1 to r1 could not be measured: no probe arrived"
    missing = Check("forward delay s1-r1", "before", False, message, 20_000, unit="us")
    for targets in ([other], [silent], []):
        assert judged("forward delay s1-r1", targets=targets) == [missing]
    assert judged("forward delay s1-r1", without="targets") == [missing]


@pytest.mark.parametrize(
    ("of", "tolerance", "allowed"),
    [
        # Half a frame, and what a microsecond is at 20 Mbit/s: 2.5 bytes, so 3. In real time a frame and 100 us.
        (plan(), VIRTUAL, 757 + 3),
        (plan(), REAL, 1514 + 250),
    ],
)
def test_a_buffer_is_full_to_half_a_frame(of: Plan, tolerance: Tolerance, allowed: int) -> None:
    exact = dataclasses.replace(of.calibration, rate_bits_per_second=RATE)
    drained = whole_nanoseconds(RATE, 1514)
    for off, words in ((allowed, "is as configured"), (-allowed, "is as configured")):
        rate = drained  # the error of a rate that is known to the nanosecond is none
        (check,) = judged(
            "buffer",
            dataclasses.replace(of, calibration=exact),
            tolerance,
            rate_bits_per_second=rate,
            buffer_bytes=FILLED + off,
        )
        assert (check.ok, check.expected, check.measured, check.tolerance) == (True, FILLED, FILLED + off, allowed)
        assert check.message.startswith(
            f"the buffer of the bottleneck {words}: {FILLED + off} bytes, expected {FILLED}"
        )
    for off, words in ((allowed + 1, "is too high"), (-allowed - 1, "is too low")):
        (check,) = judged("buffer", of, tolerance, rate_bits_per_second=drained, buffer_bytes=FILLED + off)
        assert (check.ok, check.unit, words in check.message) == (False, "bytes", True)


def test_the_error_of_the_measured_rate_is_taken_out_of_the_depth() -> None:
    """The agent has turned a wait into bytes by a rate that is 0.1 % too high; but for half a frame."""
    wait_s = (FILLED - 757) * 8 / whole_nanoseconds(RATE, 1514)
    high = RATE * 1.001
    (check,) = judged("buffer", rate_bits_per_second=high, buffer_bytes=wait_s * high / 8 + 757)
    assert check.measured == FILLED
    wrong = RATE * 1.002  # that is no error of the measurement
    (check,) = judged("buffer", rate_bits_per_second=wrong, buffer_bytes=wait_s * wrong / 8 + 757)
    assert check.measured == _near(wait_s * wrong / 8 + 757)
    (check,) = judged("buffer", rate_bits_per_second=None, buffer_bytes=FILLED)
    assert (check.ok, check.measured) == (True, FILLED)
    (check,) = judged("buffer", rate_bits_per_second=None, buffer_bytes=FILLED + 757, format=1)
    assert check.measured == FILLED, "the first format had half a frame more"


def test_a_full_frame_takes_whole_nanoseconds() -> None:
    """1514 bytes take 1211.2 ns at 10 Gbit/s and 605 600 ns at 20 Mbit/s; less than one counts as one."""
    assert whole_nanoseconds(10_000_000_000, 1514) == 1514 * 8e9 / 1211
    assert whole_nanoseconds(RATE, 1514) == RATE
    assert whole_nanoseconds(10**15, 1514) == 1514 * 8e9


@pytest.mark.parametrize(
    ("found", "ok", "message"),
    [
        # 65 of the 66 frames came, of all that was sent to fill it.
        (
            {"buffer_offered_bytes": 10**6, "buffer_delivered_packets": 65},
            False,
            f"the buffer of the bottleneck is too low: {65 * 1514} bytes came of all that filled it, expected {FILLED}",
        ),
        (
            {"buffer_offered_bytes": 10**6, "buffer_delivered_packets": 66},
            None,
            "the buffer of the bottleneck was not measured: no echo",
        ),
        (
            {"buffer_offered_bytes": 10**6, "buffer_delivered_packets": None},
            None,
            "the buffer of the bottleneck was not measured: no echo",
        ),
        (
            {"buffer_offered_bytes": 0, "buffer_delivered_packets": 1},
            None,
            "the buffer of the bottleneck was not measured: no echo",
        ),
        ({"buffer_why": None}, None, "the buffer of the bottleneck was not measured: no data"),
    ],
)
def test_a_buffer_that_was_not_measured(found: dict[str, Any], ok: bool | None, message: str) -> None:
    (check,) = judged("buffer", buffer_bytes=None, **{"buffer_why": "no echo", **found})
    came = 65 * 1514 if ok is False else None
    tolerance = None if ok is False else 760.0
    assert check == Check("buffer", "before", ok, message, FILLED, came, tolerance, "bytes")


PART = "the buffer of the bottleneck, 50000 of its 100000 bytes filled,"


@pytest.mark.parametrize(
    ("found", "ok", "message"),
    [
        (
            {"buffer_bytes": 50_000},
            True,
            f"{PART} held 50000 bytes and dropped 0 packets; the rest is what its queue says of itself",
        ),
        ({"buffer_bytes": 49_999}, False, f"{PART} held 49999 bytes and dropped 0 packets: it is too low"),
        (
            {"buffer_bytes": 60_000, "buffer_dropped_packets": 1},
            False,
            f"{PART} held 60000 bytes and dropped 1 packets: it is too low",
        ),
        (
            {"buffer_bytes": None, "buffer_dropped_packets": 1},
            False,
            f"{PART} held fewer bytes and dropped 1 packets: it is too low",
        ),
    ],
)
def test_a_part_of_a_deep_buffer_is_filled(found: dict[str, Any], ok: bool, message: str) -> None:
    (check,) = judged("buffer", plan(part_bytes=50_000), **found)
    assert check == Check("buffer", "before", ok, message, 50_000, found["buffer_bytes"], 0, "bytes")


def test_a_part_that_was_not_measured_and_a_buffer_nobody_knows() -> None:
    (check,) = judged("buffer", plan(part_bytes=50_000), buffer_bytes=None, buffer_why="no echo")
    assert check == Check("buffer", "before", None, f"{PART} could not be measured: no echo", 50_000)
    (check,) = judged("buffer", plan(part_bytes=50_000, buffer_unknown=True), buffer_bytes=FILLED)
    assert check.expected == FILLED


@pytest.mark.parametrize(
    ("ratio", "sent", "lost", "ok", "message"),
    [
        (0.0, 94, 0, True, "0 of 94 probes were lost, expected 0 ± 0"),
        (0.0, 94, 1, False, "1 of 94 probes were lost, expected 0 ± 0"),
        # Four deviations and a packet: 4 * sqrt(1000 * 0.1 * 0.9) + 1 = 38.9.
        (0.1, 1000, 138, True, "138 of 1000 probes were lost, expected 100 ± 38.9"),
        (0.1, 1000, 139, False, "139 of 1000 probes were lost, expected 100 ± 38.9"),
        (0.1, 1000, 62, True, "62 of 1000 probes were lost, expected 100 ± 38.9"),
        (0.1, 1000, 61, False, "61 of 1000 probes were lost, expected 100 ± 38.9"),
    ],
)
def test_probes_are_lost_as_planned(ratio: float, sent: int, lost: int, ok: bool, message: str) -> None:
    of = plan({"loss_ratio": ratio})
    (check,) = judged("loss", of, loss={"sent": sent, "received": sent - lost})
    allowed = 4 * (sent * ratio * (1 - ratio)) ** 0.5 + (1 if ratio else 0)
    assert (check.ok, check.stage, check.message) == (ok, "before", message)
    assert (check.expected, check.measured, check.unit) == (ratio * sent, lost, "packets")
    assert check.tolerance == _near(allowed)


def test_probes_may_be_lost_in_bursts() -> None:
    """Bursts of 5 packets: begins 0.2 * 0.1 / 0.9, ends 0.2; the variance is (2 - b - e) / (b + e) = 8 times 90. Above
    the mean 4^2 / 2 bursts more are allowed."""
    of = plan({"loss_ratio": 0.1, "loss_burst_packets": 5.0})
    for lost, more in ((100, 0), (101, 40)):
        (check,) = judged("loss", of, loss={"sent": 1000, "received": 1000 - lost})
        assert check.tolerance == _near(4 * (90 * 8) ** 0.5 + more)


@pytest.mark.parametrize("loss", [{}, None, {"sent": 0, "received": 0}, {"sent": 5}, {"received": 5}])
def test_a_loss_that_was_not_counted_fails(loss: Any) -> None:
    message = "the loss of the path was not measured"
    expected = Check("loss", "before", False, message, 0.0, None, None, "ratio")
    assert judged("loss", loss=loss) == [expected]
    (check,) = judged("loss", plan({"loss_ratio": 0.1}), loss={"sent": 5, "received": 0})
    assert check.measured == 5


def test_a_network_that_is_not_silent_fails() -> None:
    message = "the network did not fall silent after the measurement: its packets may reach the flows"
    assert judged("silence", silent=False) == [Check("silence", "before", False, message)]
    assert judged("silence", silent=True) == judged("silence", without="silent") == []
    nothing = Check("calibration", "after", None, "the plan asks for no calibration")
    assert calibration_checks(plan(enabled=False), "after", CalibrationRecord(), VIRTUAL) == [nothing]


def test_real_time_engines_are_judged_less_closely() -> None:
    plan = path_factory.path_plan()
    assert tolerance_of(plan) is VIRTUAL
    assert tolerance_of(on_engine(plan, "host")) is REAL
    assert REAL.rate_share > VIRTUAL.rate_share
    assert REAL.delay(1000) > VIRTUAL.delay(1000)
