# SPDX-License-Identifier: Apache-2.0
"""Links that follow a trace: files to opportunities, what is refused and where, and what a plan says of them."""

from __future__ import annotations

import dataclasses
import json
import tracemalloc
from array import array
from itertools import accumulate
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from howdah.errors import ProfileError
from howdah.linux.netlink.discipline.gaps import packed, unpacked
from howdah.linux.netlink.discipline.howdah_link import TraceLink
from howdah.plan.link import most_bytes
from howdah.plan.plan import Plan
from howdah.plan.text import render
from howdah.profile import load
from howdah.profile.link import OPPORTUNITY_BYTES, LinkTrace
from howdah.record.delivery import opportunities
from howdah.work.compiled import compile_plans

HEAD = "howdah: 1\nname: link\nalgorithm: cubic\n"


def plans(place: Path, path: str, more: str = "duration: 4 s\n", engine: str | None = None) -> list[Plan]:
    (place / "p.yaml").write_text(f"{HEAD}{more}path: {{rtt: 40 ms, {path}}}\n", encoding="utf-8")
    return list(compile_plans(load(place / "p.yaml"), engine=engine))


def plan_of(place: Path, content: str | bytes, name: str = "t", more: str = "", duration: str = "4 s") -> Plan:
    file = place / name
    file.write_bytes(content if isinstance(content, bytes) else content.encode())
    (plan,) = plans(place, f"link: {{file: {name}{more}}}", f"duration: {duration}\n")
    return plan


def times_us(plan: Plan) -> list[int]:
    (link,) = [item for item in plan.operations if item.arguments().get("kind") == TraceLink.kind]
    return list(accumulate(unpacked(link.arguments()["options"]["gaps"])))


def test_a_trace_of_mahimahi_keeps_its_own_resolution(tmp_path: Path) -> None:
    """Several opportunities in a millisecond, a gap at the beginning, and a stall of seconds."""
    plan = plan_of(tmp_path, "\n".join(map(str, [700, 700, 700, 701, 3200, 3200, 5000])))
    assert times_us(plan) == [700_000, 700_000, 700_000, 701_000, 3_200_000, 3_200_000]
    link = plan.path.link
    assert link is not None
    assert (link.opportunities, link.round_us, link.longest_wait_us) == (7, 5_000_000, 2_499_000)
    assert plan.path.rate_bits_per_second == round(7 * 1514 * 8 / 5)
    assert plan.required_modules is not None
    assert "howdah_link" in plan.required_modules
    events = [(item.at_us, item.change.arguments()["follows"]) for item in plan.timeline if item.op == "link"]
    assert events == [(0, True), (4_000_000, False)]
    assert "link left left-eth0 1: follows its trace" in render(plan)
    assert "t, 7 opportunities of 1504 bytes in 5 s, then again; nothing passes for up to 2.499 s" in render(plan)
    assert Plan.from_json(plan.to_json()) == plan


def test_rounds_follow_each_other_as_in_mm_link(tmp_path: Path) -> None:
    """The last line is the length of a round, and its opportunity comes with the first ones of the next."""
    plan = plan_of(tmp_path, "0\n0\n30\n100\n", duration="250 ms")
    found = opportunities(plan)
    assert found is not None
    ms = [0, 29, 30, 99, 100, 129, 130, 199, 200, 250]
    assert found.until(np.array(ms) * 1_000_000).tolist() == [2, 2, 3, 3, 6, 6, 7, 7, 10, 11]
    assert found.until(-1) == 0
    assert found.until(np.array(ms) * 1e6).tolist() == found.until(np.array(ms) * 1_000_000).tolist()


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    gaps_ms=st.lists(st.integers(0, 3) | st.integers(0, 3900), min_size=1, max_size=40),
    end=st.sampled_from(["\n", "\r\n"]),
    whole_last_line=st.booleans(),
    before=st.sampled_from(["", " ", "\t"]),
)
def test_what_mm_link_takes_is_taken_as_mm_link_does(
    tmp_path: Path, gaps_ms: list[int], end: str, whole_last_line: bool, before: str
) -> None:
    """Times that never decrease, however many are equal and however long nothing passes; the last one is the round."""
    times_ms = list(accumulate(gaps_ms))
    times_ms[-1] = max(times_ms[-1], 1)
    content = end.join(f"{before}{time}" for time in times_ms) + (end if whole_last_line else "")
    found = opportunities(plan_of(tmp_path, content))
    assert found is not None
    model = [at + number * times_ms[-1] for number in range(4000 // times_ms[-1] + 1) for at in times_ms]
    for moment_ms in {*times_ms, 1, 1999, 4000}:
        if moment_ms <= 4000:
            assert found.until(moment_ms * 1_000_000) == sum(at <= moment_ms for at in model)


def test_a_question_copies_no_opportunities(tmp_path: Path) -> None:
    """Ten million of a trace of 220 Mbit/s, which are asked at each of a hundred thousand readings."""
    link = opportunities(plan_of(tmp_path, "1\n2\n", duration="250 ms"))
    assert link is not None
    once_ns = np.arange(1, 1_000_001, dtype=np.int64)
    many = dataclasses.replace(link, once_ns=once_ns, round_ns=1_000_001)
    for asked in (np.array([7, 9]), np.array([7.0, 9.5])):
        tracemalloc.start()
        many.until(asked)
        _now, most = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert most < once_ns.nbytes / 8


def test_a_stall_behind_the_end_of_the_run_refuses_nothing(tmp_path: Path) -> None:
    plan = plan_of(tmp_path, "0\n10\n" + 9 * "64000\n", duration="1 s")
    assert times_us(plan) == [0, 10_000]
    assert plan.path.link is not None
    assert plan.path.link.longest_wait_us == 990_000


def test_a_delay_line_holds_what_the_link_s_peak_sends(tmp_path: Path) -> None:
    """1000 Mbit/s for the first of 100 seconds: what is on its way then is a hundred times what the mean sends."""
    plan = plan_of(tmp_path, "time,mbps\n0,1000\n1,0\n100,0\n", "r.csv", ", interpolation: step")
    lines = [item.arguments()["options"] for item in plan.operations if item.arguments().get("kind") == "netem"]
    assert min(line["limit_packets"] for line in lines) > 40e-3 * 1e9 / 8 / 1514
    trace = LinkTrace("t", "", array("I", [10, 10, 10, 970]), 1000, 4, 970, 1)
    assert [most_bytes(trace, window_us) for window_us in (1, 10, 25, 1000)] == [
        OPPORTUNITY_BYTES * count for count in (1, 2, 3, 5)
    ]


def test_kernels_that_are_joined_have_no_link(tmp_path: Path) -> None:
    (tmp_path / "t").write_text("10\n", encoding="ascii")
    with pytest.raises(ProfileError, match="each kernel would have a link"):
        plans(tmp_path, "link: t", "duration: 4 s\nsplit: true\n")


def test_a_link_s_queue_reads_the_mark_that_it_looks_at(tmp_path: Path) -> None:
    (tmp_path / "t").write_text("10\n", encoding="ascii")
    (plan,) = plans(tmp_path, "link: t, buffer: 60 packets, queue: {kind: gred, dscp: 14}")
    assert [item.arguments()["dscp"] for item in plan.operations if item.op == "filter"] == [14]


def test_a_million_opportunities_are_cheap_to_plan(tmp_path: Path) -> None:
    """A plan has no operation for each."""
    trace = tmp_path / "long"
    trace.write_text("".join(f"{number // 8}\n" for number in range(1_000_000)), encoding="ascii")
    one, other = plans(tmp_path, "link: long", "duration: 100 s\nrepetitions: 2\n")
    assert len(one.operations) < 100
    assert len(one.to_json()) < 400_000
    assert times_us(one) == times_us(other)


def test_a_trace_may_be_as_large_as_the_largest_public_ones(tmp_path: Path) -> None:
    """Ten minutes at 220 Mbit/s are 77 MB; blanks are passed over faster than lines are read."""
    assert times_us(plan_of(tmp_path, b" " * (80 << 20) + b"1\n2\n2\n3000\n")) == [1000, 2000, 2000, 3_000_000]
    with pytest.raises(ProfileError, match="larger than 128 MiB"):
        plan_of(tmp_path, b" " * (129 << 20))


def test_several_traces_are_a_sweep_in_both_directions(tmp_path: Path) -> None:
    for name, times in (("a.down", "1\n10\n"), ("b.down", "1\n20\n"), ("x.up", "5\n")):
        (tmp_path / name).write_text(times, encoding="ascii")
    found = plans(tmp_path, "link: [a.down, b.down], reverse_link: x.up")
    assert [plan.path.link.file for plan in found if plan.path.link] == ["a.down", "b.down"]
    assert [plan.path.rate_bits_per_second for plan in found] == [2_422_400, 1_211_200]
    assert {plan.path.reverse_rate_bits_per_second for plan in found} == {2_422_400}
    assert len({plan.run for plan in found}) == 2


@pytest.mark.parametrize(
    ("text", "interpolation", "expected"),
    [
        # 12.032 Mbit/s are one opportunity a millisecond.
        ("0,12.032,1\n3,0,1\n5,24.064,1\n", "step", [1000, 2000, 3000, 5500, 6000, 6500, 7000]),
        # One a millisecond, growing to three within two: n = t + t^2 / 2. The last holds as long.
        ("0,12.032,1\n2,36.096,1\n", "linear", [732, 1236, 1646, 2000, 2333, 2667, 3000, 3333, 3667, 4000]),
        # Falling to none within two, and nothing after: n = t - t^2 / 4.
        ("0,12.032,1\n2,0,1\n3,0,1\n", "linear", [2000]),
    ],
)
def test_rates_become_opportunities(tmp_path: Path, text: str, interpolation: str, expected: list[int]) -> None:
    rows = f"time_ms,down (Mbit/s),rtt\n{text}"
    plan = plan_of(tmp_path, rows, "r.csv", f", interpolation: {interpolation}")
    assert times_us(plan) == expected


def iperf3(rates: list[float]) -> str:
    intervals = [{"sum": {"start": n, "end": n + 1, "bits_per_second": rate}} for n, rate in enumerate(rates)]
    return json.dumps({"start": {}, "intervals": intervals, "end": {}})


def test_a_result_of_iperf3_and_a_table_of_starlink_are_links(tmp_path: Path) -> None:
    plan = plan_of(tmp_path, iperf3([12_032, 0, 24_064]), "i.json", ", interpolation: step")
    assert times_us(plan) == [1_000_000, 2_500_000, 3_000_000]
    rows = "timestamp,ping_ms,downlink_throughput_bps,uplink_throughput_bps\n"
    rows += "2024-05-01T10:00:00,30,12032,1\n2024-05-01T10:00:15,31,24064,2\n"
    more = ", interpolation: step, column: downlink_throughput_bps"
    plan = plan_of(tmp_path, rows, "s.csv", more, "31 s")
    assert times_us(plan)[:16] == [1_000_000 * (n + 1) for n in range(15)] + [15_500_000]
    assert plan.path.link is not None
    assert plan.path.link.round_us == 30_000_000


REFUSED = [
    ("negative", "-5\n10\n", "t:1", "expected a time in whole milliseconds, not '-5'", "one time in milliseconds"),
    ("backward", "0\n7\n5\n", "t:3", "5 ms is before the time of the line above", "sort the lines"),
    ("empty", "", "t", "the trace is empty", "one time in milliseconds"),
    ("blank", "\n \n", "t:1", "the line is empty", "remove it"),
    ("blank between", "1\n2\n\n3\n", "t:3", "the line is empty", "remove it"),
    ("blank at the end", "1\n2\n \t\n", "t:3", "the line is empty", "remove it"),
    ("half", "0\n1.5\n", "t:2", "expected a time in whole milliseconds, not '1.5'", "one time in milliseconds"),
    ("blank behind", "0\n15 \n", "t:2", "expected a time in whole milliseconds, not '15 '", "one time in milliseconds"),
    ("unit", "0\n15 ms\n", "t:2", "expected a time in whole milliseconds", "one time in milliseconds"),
    ("zero loop", "0\n0\n", "t", "ends at 0 ms, so it would repeat forever", "its last line is its length"),
    ("words", "0\n5\nfive\n", "t:3", "expected a time in whole milliseconds, not 'five'", "one time in milliseconds"),
    ("huge", f"0\n{'9' * 5000}\n", "t:2", "", "milliseconds"),
    ("late", "0\n90000000\n", "t:2", "is later than a day", "milliseconds from 0"),
    ("infinite", "0\nnan\n", "t:2", "expected a time", "one time in milliseconds"),
    ("binary", b"\x00\x01\xff\xfe", None, "is not text", "one time in milliseconds"),
    ("zero byte", b"1\n\x00\n", None, "is not text", "one time in milliseconds"),
    ("JSON", '{"a": 1}', None, "is JSON, not a trace of a link", "iperf3"),
    ("capture", b"\xd4\xc3\xb2\xa1 more", None, "a capture of packets", "iperf3"),
    ("nothing in time", "9000\n", "t", "nothing can pass: the first opportunity is at 9 s", "make duration longer"),
    ("too slow", "0\n80000000\n", "t", "are 0 bit/s", "between 1 kbit/s and 1 Tbit/s"),
]


@pytest.mark.parametrize(("content", "line", "what", "hint"), [row[1:] for row in REFUSED], ids=[r[0] for r in REFUSED])
def test_a_malformed_trace_is_one_message(
    tmp_path: Path, content: str | bytes, line: str | None, what: str, hint: str
) -> None:
    with pytest.raises(ProfileError) as caught:
        plan_of(tmp_path, content)
    assert what in caught.value.what
    assert len(str(caught.value)) < 700
    assert caught.value.where is not None
    assert caught.value.where == (f"{tmp_path}/{line}" if line else f"{tmp_path}/p.yaml:5")
    assert hint in (caught.value.hint or "")


STEP = ", interpolation: step"
REFUSED_RATES = [
    ("no interpolation", "time,mbps\n0,1\n1,2\n", "", "p.yaml:5", "give an interpolation", "interpolation: step}, or"),
    ("not measured", "1\n2\n", STEP, "p.yaml:5", "nothing to interpolate", "leave interpolation out"),
    ("two rates", "time,down_mbps,up_mbps\n0,1,1\n", STEP, "r.csv:1", "2 columns could be the rate", "column:"),
    ("no unit", "time,throughput\n0,5\n1,6\n", STEP, "r.csv:2", "has no unit", "throughput_mbps"),
    ("no time", "down_mbps,rtt\n0,1\n", STEP, "r.csv:1", "no column of time", "time_s"),
    (
        "no such column",
        "time,mbps\n0,1\n",
        f"{STEP}, column: mbits",
        "r.csv:1",
        "no column 'mbits'",
        "did you mean mbps",
    ),
    ("bytes", "time_s,throughput_MBps\n0,1\n1,2\n", STEP, "r.csv:1", "has bytes a second", "throughput_mbps"),
    ("late", "0,0\n60,10\n120,10\n", STEP, "r.csv", "the first opportunity is at 60.0012", "make duration longer"),
    ("negative", "time,mbps\n0,1\n1,-2\n", STEP, "r.csv:3", "a rate of -2e+06 bit/s", "between 0 and"),
    ("infinite", "time,mbps\n0,1\n1,inf\n", STEP, "r.csv:3", "a rate of inf", "between 0 and"),
    ("backward", "time,mbps\n0,1\n2,2\n1,3\n", STEP, "r.csv:4", "time does not grow", "sort the rows"),
    ("only zeros", "time,mbps\n0,0\n1,0\n", STEP, "r.csv", "every rate is 0", "carries something"),
    ("one row", "time,mbps\n0,1\n", STEP, "r.csv", "at least two", "a column of time"),
    ("no rows", "time,mbps\n", STEP, "r.csv", "at least two", "a column of time"),
    ("short row", "time,mbps\n0,1\n1\n", STEP, "r.csv:3", "1 values under 2 columns", ""),
    ("words", "time,mbps\n0,fast\n1,2\n", STEP, "r.csv:2", "expected a rate, not 'fast'", "write 0 for a stall"),
    ("less than one", "time_ms,bps\n0,1\n1,1\n", STEP, "r.csv", "less than one opportunity", "is its unit right"),
]


@pytest.mark.parametrize(
    ("content", "more", "line", "what", "hint"), [row[1:] for row in REFUSED_RATES], ids=[r[0] for r in REFUSED_RATES]
)
def test_malformed_rates_are_one_message(
    tmp_path: Path, content: str, more: str, line: str, what: str, hint: str
) -> None:
    with pytest.raises(ProfileError) as caught:
        plan_of(tmp_path, content, "t" if content[1:] == "\n2\n" else "r.csv", more)
    assert what in caught.value.what
    assert caught.value.where == f"{tmp_path}/{line}"
    assert hint in (caught.value.hint or "")


def test_an_iperf3_result_without_intervals_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ProfileError, match="no intervals with start, end and bits_per_second"):
        plan_of(tmp_path, '{"start": 1, "intervals": [{}], "end": 2}', "i.json", STEP)


@pytest.mark.parametrize(
    ("path", "what"),
    [
        ("link: t, rate: 5 Mbit/s", "path.link and path.rate are both given"),
        ("rate: 5 Mbit/s, reverse_link: t, reverse_rate: 1 Mbit/s", "are both given"),
        ("link: t, schedule: [{at: 1 s, rate: 5 Mbit/s}]", "the link's trace gives the rate"),
        ("link: missing", "cannot be read"),
        ("link: .", "is not a regular file"),
        ("link: {file: t, interval: 1 s}", "interval"),
    ],
)
def test_what_contradicts_a_link_is_refused(tmp_path: Path, path: str, what: str) -> None:
    (tmp_path / "t").write_text("10\n", encoding="ascii")
    with pytest.raises(ProfileError) as caught:
        plans(tmp_path, path)
    assert what in str(caught.value)
    assert f"{tmp_path}/p.yaml:5" in str(caught.value.where)


@pytest.mark.parametrize("engine", ["host", "machines", "ns2"])
def test_an_engine_without_the_module_refuses_before_anything_runs(tmp_path: Path, engine: str) -> None:
    (tmp_path / "t").write_text("10\n", encoding="ascii")
    with pytest.raises(ProfileError, match="link") as caught:
        plans(tmp_path, "link: t", engine=engine)
    assert caught.value.hint


def test_a_path_is_taken_with_the_file_of_its_link(tmp_path: Path) -> None:
    """The file's name starts where it was written, and a rate of one's own takes the link's place."""
    inner = tmp_path / "inner"
    inner.mkdir()
    (inner / "t").write_text("10\n", encoding="ascii")
    (inner / "base.yaml").write_text(f"{HEAD}duration: 1 s\npath: {{rtt: 10 ms, link: t}}\n", encoding="utf-8")
    (plan,) = plans(tmp_path, "like: inner/base.yaml")
    assert plan.path.link is not None
    (plan,) = plans(tmp_path, "like: inner/base.yaml, rate: 5 Mbit/s")
    assert plan.path.link is None


def test_packed_opportunities_come_back_and_damage_is_told() -> None:
    gaps = array("I", [0, 1, 0xFFFFFFFF, 7])
    assert unpacked(packed(gaps)) == gaps
    for damaged in ("", "AAAA", packed(gaps)[:-4], "é"):
        with pytest.raises(ValueError, match=r".+"):
            unpacked(damaged)


def test_the_kernel_gets_a_long_trace_in_parts() -> None:
    link = TraceLink(1000, 1504, 10, 40_000, 40_000, packed(array("I", [1] * 40_000)))
    parts = link.further()
    assert [len(part) for part in parts] == [60_004, 60_004, 40_004]
    assert all(len(part) < 1 << 16 for part in parts)
