# SPDX-License-Identifier: Apache-2.0
"""Which limits somebody asked for, and the shares of time at which others break the promise."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest

from howdah.judge.check import VIRTUAL
from howdah.judge.limits import (
    RECEIVE_BUFFER,
    SEND_BUFFER,
    has_sack,
    is_set_by_profile,
    limit_checks,
    receive_window_reason,
    send_buffer_reason,
    sending_checks,
)
from howdah.linux.netlink.discipline.howdah_hop import OPTIONS
from howdah.measure.trace import FlowTrace
from howdah.plan.operation import Sysctl
from howdah.plan.path import Middlebox
from howdah.plan.plan import Plan
from howdah.record.verdict import Check
from tests.unit.plan_factory import make_plan
from tests.unit.test_measure_limit import RECOVERY, readings
from tests.unit.trace_factory import MSS, make_flow, make_info, make_measured, make_trace
from tests.unit.traffic_factory import make_stack

LARGE = 268_435_456  # what every plan has where a profile says nothing


def with_sysctl(name: str, value: object, node: str | None = None, **path: Any) -> Plan:
    plan = make_plan()
    return dataclasses.replace(
        plan, operations=[Sysctl(node, name, str(value))], path=dataclasses.replace(plan.path, **path)
    )


DEEP = {"rate_bits_per_second": 8_000_000_000, "buffer_bytes": 100_000_000}  # with 40 ms: 40 and 100 MB, twice


@pytest.mark.parametrize(("sysctl", "host"), [(RECEIVE_BUFFER, "r1"), (SEND_BUFFER, "s1")])
@pytest.mark.parametrize(
    ("largest", "path", "asked"),
    [
        (LARGE, {}, False),
        (LARGE - 1, {}, True),
        (280_000_000, DEEP, False),
        (279_999_999, DEEP, True),
    ],
)
def test_a_buffer_that_cannot_hold_the_path_is_the_profiles(
    sysctl: str, host: str, largest: int, path: dict[str, Any], asked: bool
) -> None:
    flow = make_flow()
    for node, counts in ((host, True), (None, True), ("s2", False)):
        plan = with_sysctl(sysctl, f"4096 999999999 {largest}", node, **path)
        assert is_set_by_profile(plan, host, sysctl, flow) is (asked and counts)
    other = SEND_BUFFER if sysctl == RECEIVE_BUFFER else RECEIVE_BUFFER
    assert not is_set_by_profile(with_sysctl(other, "1 1 1"), host, sysctl, flow)
    assert is_set_by_profile(with_sysctl(sysctl, 1), host, sysctl, flow), "a single number"
    first = with_sysctl(sysctl, f"1 1 {LARGE}").operations
    plan = with_sysctl(sysctl, "1 1 1")
    plan = dataclasses.replace(plan, operations=[*with_sysctl(sysctl, 1, "s2").operations, *first, *plan.operations])
    assert is_set_by_profile(plan, host, sysctl, flow), "the last of three"


BOUNDS = {
    RECEIVE_BUFFER: ("window_scaling", "moderate_rcvbuf", "adv_win_scale", "shrink_window", "app_win"),
    SEND_BUFFER: ("notsent_lowat", "limit_output_bytes"),
}


@pytest.mark.parametrize("sysctl", list(BOUNDS))
@pytest.mark.parametrize("name", [name for names in BOUNDS.values() for name in names])
def test_other_settings_bound_a_buffer_too(sysctl: str, name: str) -> None:
    plan = with_sysctl(f"net.ipv4.tcp_{name}", "1", "h")
    assert is_set_by_profile(plan, "h", sysctl, make_flow()) is (name in BOUNDS[sysctl])
    assert not is_set_by_profile(plan, "other", sysctl, make_flow())


@pytest.mark.parametrize(
    ("plan", "behaviour", "sack"),
    [
        (make_plan(), "linux", True),
        (make_plan(), "no-sack", False),
        (with_sysctl("net.ipv4.tcp_sack", 0), "linux", False),
        (with_sysctl("net.ipv4.tcp_sack", " 0 ", "s1"), "linux", False),
        (with_sysctl("net.ipv4.tcp_sack", "0", "r1"), "linux", False),
        (with_sysctl("net.ipv4.tcp_sack", "0", "s2"), "linux", True),
        (with_sysctl("net.ipv4.tcp_sack", "1"), "linux", True),
        (with_sysctl("net.ipv4.tcp_dsack", "0"), "linux", True),
    ],
)
def test_both_ends_must_have_sack(plan: Plan, behaviour: str, sack: bool) -> None:
    assert has_sack(plan, make_flow(receiver_behaviour=behaviour)) is sack


@pytest.mark.parametrize(
    ("option", "sack", "window"),
    [("sack", False, "without SACK"), ("window-scale", True, "without window scale"), ("timestamps", True, None)],
)
def test_a_middlebox_may_take_options_away(option: str, sack: bool, window: str | None) -> None:
    nothing: dict[str, Any] = {"clears_ecn": False, "duplicate_ratio": 0, "corrupt_ratio": 0, "lost": []}
    hop = Middlebox(mtu_bytes=0, answers=True, strips=[OPTIONS[option]], **nothing)
    plan = make_plan()
    plan = dataclasses.replace(plan, path=dataclasses.replace(plan.path, middlebox=hop))
    assert has_sack(plan, make_flow()) is sack
    reason = receive_window_reason(plan, make_flow())
    assert reason is None if window is None else str(reason).startswith(window)


SMALL = with_sysctl(RECEIVE_BUFFER, "1 1 1"), with_sysctl(SEND_BUFFER, "1 1 1")


@pytest.mark.parametrize(
    ("plan", "flow", "receive", "send"),
    [
        (make_plan(), {}, None, None),
        (SMALL[0], {}, "the profile sets the receiver's buffer", None),
        (SMALL[1], {}, None, "the profile sets the sender's buffer"),
        (
            SMALL[0],
            {"receiver_stack": make_stack("lwip"), "receiver_behaviour": "macos"},
            "the stack lwip offers no more",
            None,
        ),
        (SMALL[0], {"receiver_behaviour": "macos"}, "the receiver macos offers no more", None),
        (
            make_plan(),
            {"traffic": "program", "receiver_behaviour": "no-sack"},
            "its program sets the receiver's buffer",
            "its program sets the sender's buffer",
        ),
        (
            make_plan(),
            {"receiver_behaviour": "no-sack"},
            "without SACK, Linux offers no more for what lies beyond a gap",
            None,
        ),
    ],
)
def test_the_first_reason_is_told(plan: Plan, flow: dict[str, Any], receive: str | None, send: str | None) -> None:
    asked = make_flow(**flow)
    assert (receive_window_reason(plan, asked), send_buffer_reason(plan, asked)) == (receive, send)


TITLE = "flow 1 (bulk)"
TOO_SMALL = "the sender's buffers are too small"


def limited(send_us: int = 0, receive_us: int = 0, busy_us: int = 1_000_000, **columns: list[int]) -> Any:
    told = {"busy_time_us": [0, busy_us], "sndbuf_limited_us": [0, send_us], "rwnd_limited_us": [0, receive_us]}
    return make_info([0, 1000], **{**told, **columns})


@pytest.mark.parametrize(
    ("send_us", "flow", "ok", "words"),
    [
        (0, {}, True, "0.0% of its time, as the kernel counts it"),
        (50_000, {}, True, "5.0% of its time, as the kernel counts it"),
        (50_001, {}, False, f"5.0% of its time, as the kernel counts it: {TOO_SMALL}"),
        (
            50_001,
            {"traffic": "program"},
            True,
            "5.0% of its time, as the kernel counts it: its program sets the sender's buffer",
        ),
        (2_000_000, {}, False, f"200.0% of its time, as the kernel counts it: {TOO_SMALL}"),
    ],
)
def test_a_send_buffer_may_hold_a_flow_for_a_twentieth(
    send_us: int, flow: dict[str, Any], ok: bool, words: str
) -> None:
    data = make_measured([make_trace([10], [0], [10], flow=make_flow(**flow))], info=limited(send_us))
    message = f"the send buffer held {TITLE} back for {words}"
    assert limit_checks(data, VIRTUAL)[1] == Check(
        "send buffer flow 1", "during", ok, message, 0.0, send_us / 1_000_000, 0.05, "ratio"
    )


def test_a_flow_that_was_never_busy_was_not_held() -> None:
    data = make_measured([make_trace([10], [0], [10])], info=limited(7, 7, busy_us=0))
    assert [(check.ok, check.measured) for check in limit_checks(data, VIRTUAL)] == [(True, 0.0)] * 2


def test_without_its_counts_a_limit_is_not_known() -> None:
    stack = make_flow(sender_stack=make_stack("lwip"))
    why = f"{TITLE} is sent by the stack lwip, which does not count this time"
    unread = f"tcp_info of {TITLE} was not read"
    cases = [
        (make_measured([make_trace([10], [0], [10], flow=stack)], info=limited()), why),
        (make_measured([make_trace([10], [0], [10])]), unread),
        (make_measured([make_trace([10], [0], [10])], info=make_info([0], busy_time_us=[1])), unread),
        (
            make_measured(
                [make_trace([10], [0], [10])], info=make_info([0], rwnd_limited_us=[1], sndbuf_limited_us=[1])
            ),
            unread,
        ),
    ]
    for data, words in cases:
        assert limit_checks(data, VIRTUAL) == [
            Check(f"{what} flow 1", "during", None, words, unit="ratio") for what in ("receive window", "send buffer")
        ]


def test_a_group_is_held_for_the_time_of_all_its_connections() -> None:
    """The first was busy for 3 s and held for 0.6, of the second nothing was read; a program's is its own affair."""
    flows = [make_flow(id=number, group="web", size_bytes=None) for number in (1, 2)]
    traces = [make_trace([10], [0], [10], flow=flow) for flow in flows]
    data = make_measured(traces, info=limited(600_000, busy_us=3_000_000))
    data = dataclasses.replace(data, info={1: data.info[1], 2: make_info([])})
    found = {check.name: check for check in limit_checks(data, VIRTUAL)}
    message = f"the send buffer held the connections of web back for 20.0% of their time: {TOO_SMALL}"
    assert found["send buffer group web"] == Check(
        "send buffer group web", "during", False, message, 0.0, 0.2, 0.05, "ratio"
    )
    other = make_trace([10], [0], [10], flow=make_flow(id=3, group="api"))
    single = make_trace([10], [0], [10], flow=make_flow(id=4))
    many = limit_checks(make_measured([*traces, other, single], info=limited()), VIRTUAL)
    assert [check.name for check in many] == [
        "receive window group web",
        "send buffer group web",
        "receive window group api",
        "send buffer group api",
        "receive window flow 4",
        "send buffer flow 4",
    ]
    assert "the connections of api back for 0.0% of its time" in many[2].message, "it has one"


def held_trace(windows: list[int], **flow: object) -> FlowTrace:
    """Each ACK comes a round trip behind the one before and acknowledges a flight that fills the window it finds."""
    flights = [window // MSS for window in windows]
    nxt = np.cumsum(flights).tolist()
    times = [40.0 * (number + 1) for number in range(len(windows))]
    made = make_flow(size_bytes=None, **flow)
    return make_trace(
        times, [0, *nxt[:-1]], nxt, [10_000] * len(nxt), flow=made, stop_ms=times[-1], window_bytes=windows
    )


@pytest.mark.parametrize(
    ("windows", "flow", "ok", "words"),
    [
        ([2**number * 65536 for number in range(8)], {}, True, "it grew later than the sender needed it"),
        ([65160, *[2_000_000] * 2], {}, True, "in the handshake it is not scaled"),
        ([65536] * 8, {}, False, "the receiver's buffers are too small"),
        ([65536] * 8, {"traffic": "program"}, True, "its program sets the receiver's buffer"),
        # Five of eight round trips at the end are no growth: more than 5 % are to blame on the buffer.
        ([65536, 131072, 262144, *[524288] * 5], {}, False, "the receiver's buffers are too small"),
    ],
)
def test_only_a_buffer_at_its_maximum_breaks_the_promise(
    windows: list[int], flow: dict[str, object], ok: bool, words: str
) -> None:
    info = make_info([0, 1000], busy_time_us=[0, 1_000_000], rwnd_limited_us=[0, 400_000], sndbuf_limited_us=[0, 0])
    checks = limit_checks(make_measured([held_trace(windows, **flow)], info=info), VIRTUAL)
    assert (checks[0].ok, checks[0].measured) == (ok, 0.4)
    assert words in checks[0].message


def test_a_count_that_the_trace_does_not_explain_is_to_blame_on_the_buffer() -> None:
    info = make_info([0, 1000], busy_time_us=[0, 1_000_000], rwnd_limited_us=[0, 400_000], sndbuf_limited_us=[0, 0])
    roomy = make_trace([40, 80], [0, 10], [10, 30], [10, 20], window_bytes=[65536, 10**7], flow=make_flow())
    assert limit_checks(make_measured([roomy], info=info), VIRTUAL)[0].ok is False


def test_the_share_that_the_buffer_is_to_blame_for_counts() -> None:
    """40 % of the time with a full window: of a window that grew until the end, none of it is the buffer's."""
    grown = held_trace([2**number * 65536 for number in range(8)])
    check = limit_checks(make_measured([grown], info=limited(receive_us=400_000)), VIRTUAL)[0]
    message = f"the receive window held {TITLE} back for 40.0% of its time, as the kernel counts it"
    assert check == Check(
        "receive window flow 1",
        "during",
        True,
        f"{message}: it grew later than the sender needed it",
        0.0,
        0.4,
        0.05,
        "ratio",
    )
    late = held_trace([65160, *[2_000_000] * 2])
    check = limit_checks(make_measured([late], info=limited(receive_us=400_000)), VIRTUAL)[0]
    assert "in the handshake it is not scaled, so 64 KiB at most" in check.message


@pytest.mark.parametrize(
    ("notsent", "ca_state", "share", "words"),
    [
        ([9] * 10, [0] * 10, 0.0, ""),
        # Ten readings in a second: one of them, 10 %, is above a twentieth.
        ([0, *[9] * 9], [0] * 10, 0.1, " (0.1 s): its application stalled, or its send buffer is too small"),
        (
            [9, 9, *[0] * 8],
            [*[0] * 6, *[RECOVERY] * 4],
            0.8,
            " (0.8 s, 0.4 s of it in recoveries): its application stalled, or its send buffer is too small",
        ),
        (
            [9, 9, *[0] * 8],
            [*[0] * 5, *[RECOVERY] * 5],
            0.8,
            " (0.8 s, 0.5 s of it in recoveries): its application stalled, or what lies beyond a gap filled its send "
            "buffer",
        ),
    ],
)
def test_a_sender_with_nothing_to_send_says_where(
    notsent: list[int], ca_state: list[int], share: float, words: str
) -> None:
    trace = make_trace([10], [0], [10], flow=make_flow(), stop_ms=1000)
    info = readings(notsent_bytes=notsent, ca_state=ca_state)
    message = f"{TITLE} had nothing to send for {share:.1%} of its time while its window had room{words}"
    (check,) = sending_checks(make_measured([trace], info=info), VIRTUAL)
    assert check.measured == pytest.approx(share)
    expected = Check("nothing to send flow 1", "during", not words, message, 0.0, check.measured, 0.05, "ratio")
    assert check == expected


def test_a_twentieth_of_the_time_may_be_without_data() -> None:
    for count, ok in ((20, True), (19, False)):
        trace = make_trace([10], [0], [10], flow=make_flow(), stop_ms=100 * count)
        info = readings(count, notsent_bytes=[0, *[9] * (count - 1)])
        assert [check.ok for check in sending_checks(make_measured([trace], info=info), VIRTUAL)] == [ok]


@pytest.mark.parametrize(
    ("flow", "words"),
    [
        ({"sender_stack": make_stack("lwip")}, "is sent by the stack lwip, which does not tell what is left to send"),
        ({}, None),
    ],
)
def test_a_sender_that_tells_nothing(flow: dict[str, Any], words: str | None) -> None:
    trace = make_trace([10], [0], [10], flow=make_flow(**flow))
    why = f"{TITLE} {words}" if words else f"tcp_info of {TITLE} was not read twice while the flow was to send"
    expected = Check("nothing to send flow 1", "during", None, why, unit="ratio")
    assert sending_checks(make_measured([trace], info=make_info([])), VIRTUAL) == [expected]
    group = make_trace([10], [0], [10], flow=make_flow(group="web"))
    assert sending_checks(make_measured([group], info=readings()), VIRTUAL) == []


@pytest.mark.parametrize(
    ("plan", "flow", "words"),
    [
        (SMALL[1], {"traffic": "program", "http": {"x": 1}}, "its traffic is requests and answers"),
        (SMALL[1], {"traffic": "program"}, "its programs decide what they send, and when"),
        (SMALL[1], {"receiver_stack": make_stack("lwip")}, "the profile sets the sender's buffer"),
        (
            make_plan(),
            {"receiver_stack": make_stack("lwip"), "receiver_behaviour": "no-sack"},
            "the send buffer holds what the stack lwip does not acknowledge",
        ),
        (
            make_plan(),
            {"receiver_behaviour": "no-sack"},
            "without SACK, what lies beyond a gap fills the send buffer until the gap is closed",
        ),
    ],
)
def test_the_first_excuse_of_a_sender_is_told(plan: Plan, flow: dict[str, Any], words: str) -> None:
    trace = make_trace([10], [0], [10], flow=make_flow(**flow), stop_ms=1000)
    data = make_measured(
        [trace], plan=dataclasses.replace(plan, flows=[trace.flow]), info=readings(notsent_bytes=[9] * 2 + [0] * 8)
    )
    (check,) = sending_checks(data, VIRTUAL)
    message = f"{TITLE} had nothing to send for 80.0% of its time while its window had room (0.8 s): {words}"
    assert (check.ok, check.message) == (True, message)
