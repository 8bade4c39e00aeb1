# SPDX-License-Identifier: Apache-2.0
"""A limit is a result, and breaks a promise only where a buffer of ours is at its maximum."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from howdah.judge.check import VIRTUAL
from howdah.judge.limits import limit_checks, receive_window_reason
from howdah.measure.trace import FlowTrace
from howdah.plan.step import Operation
from tests.unit.plan_factory import make_plan
from tests.unit.trace_factory import MSS, make_flow, make_info, make_measured, make_trace


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


@pytest.mark.parametrize(
    ("name", "value"),
    [("tcp_window_scaling", "0"), ("tcp_moderate_rcvbuf", "0"), ("tcp_rmem", "4096 131072 200000000")],
)
def test_what_else_a_profile_sets_is_its_own(name: str, value: str) -> None:
    """268 435 456 bytes are what every plan has where the profile says nothing."""
    plan = make_plan()
    for node, asked in (("r1", True), ("s1", False)):
        operation = Operation("sysctl", {"node": node, "name": f"net.ipv4.{name}", "value": value})
        changed = dataclasses.replace(plan, operations=[operation])
        assert (receive_window_reason(changed, plan.flows[0]) is not None) is asked


@pytest.mark.parametrize(("traffic", "ok"), [("program", True), ("kernel", False)])
def test_a_group_is_judged_by_all_its_connections(traffic: str, ok: bool) -> None:
    """One of two connections waits for its program's buffer for a fifth of the time; the other may wait for ours."""
    info = make_info([0, 1000], busy_time_us=[0, 1_000_000], rwnd_limited_us=[0, 200_000], sndbuf_limited_us=[0, 0])
    traces = [
        held_trace([65536] * 8, id=1, group="web", traffic="program"),
        held_trace([65536] * 8, id=2, group="web", traffic=traffic),
    ]
    checks = limit_checks(make_measured(traces, info=info), VIRTUAL)
    assert (checks[0].name, checks[0].ok, checks[0].measured) == ("receive window group web", ok, 0.2)
