# SPDX-License-Identifier: Apache-2.0
"""Quantities: exact, in base units, those of metrics in theirs, and an error that says what was expected."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from howdah.metric import Metric, known_entries, known_metrics, read_share
from howdah.quantity import (
    BufferSize,
    QuantityError,
    Span,
    format_duration,
    format_rate,
    format_size,
    parse_duration,
    parse_rate,
    parse_ratio,
    parse_size,
)


@pytest.mark.parametrize(
    ("text", "bits_per_second"),
    [
        ("400 Mbit/s", 400_000_000),
        ("400Mbit/s", 400_000_000),
        ("400 Mbit", 400_000_000),
        ("400 mbps", 400_000_000),
        ("1.5 Gbit/s", 1_500_000_000),
        (".5 kbit/s", 500),
        ("9600 bit/s", 9600),
        ("  20   Mbit/s ", 20_000_000),
    ],
)
def test_rates(text: str, bits_per_second: int) -> None:
    assert parse_rate(text) == bits_per_second


@pytest.mark.parametrize(
    "text",
    ["400", 400, "400 MB/s", "400 MBps", "400 Mbit/h", "fast", "", "-1 Mbit/s", "0.5 bit/s", "1e9 bit/s", None, True],
)
def test_wrong_rates_say_what_a_rate_is(text: object) -> None:
    with pytest.raises(QuantityError):
        parse_rate(text)


def test_a_missing_unit_is_named() -> None:
    with pytest.raises(QuantityError, match=r"expected a rate such as 400 Mbit/s .* not '400' \(the unit is missing\)"):
        parse_rate("400")
    with pytest.raises(QuantityError, match=r"expected a duration such as 120 ms .* not 120 \(the unit is missing\)"):
        parse_duration(120)


@pytest.mark.parametrize(
    ("text", "us"),
    [("120 ms", 120_000), ("120ms", 120_000), ("1.5 s", 1_500_000), ("2 min", 120_000_000), ("7 us", 7), ("7 µs", 7),
     ("2000 ns", 2), (0, 0), ("0", 0), ("0.1 ms", 100)],
)  # fmt: skip
def test_durations(text: object, us: int) -> None:
    assert parse_duration(text) == us


@pytest.mark.parametrize("text", ["1 ns", "0.5 us", "1 h", "1 MS", "5", "-5 ms", "ms", [1], {}])
def test_wrong_durations(text: object) -> None:
    with pytest.raises(QuantityError):
        parse_duration(text)


@pytest.mark.parametrize(
    ("text", "size_bytes"),
    [("12 MB", 12_000_000), ("36MB", 36_000_000), ("1500 B", 1500), ("2 KiB", 2048), ("1 MiB", 1_048_576),
     ("1 kB", 1000), ("0.5 KiB", 512), ("3 bytes", 3)],
)  # fmt: skip
def test_sizes(text: str, size_bytes: int) -> None:
    assert parse_size(text) == size_bytes


@pytest.mark.parametrize("text", ["12 Mb", "12 mb", "0.5 B", "12", "1 bdp"])
def test_wrong_sizes(text: str) -> None:
    with pytest.raises(QuantityError, match=r"expected a size|not a whole number of bytes"):
        parse_size(text)


def test_buffers_are_exact_in_bytes() -> None:
    bdp_bytes = Fraction(400_000_000 * 240_000, 8_000_000)
    assert BufferSize.parse("1 bdp").to_bytes(bdp_bytes, 1514) == 12_000_000
    assert BufferSize.parse("0.01 bdp").to_bytes(bdp_bytes, 1514) == 120_000
    assert BufferSize.parse("100 packets").to_bytes(bdp_bytes, 1514) == 151_400
    assert BufferSize.parse("36 MB").to_bytes(bdp_bytes, 1514) == 36_000_000


@pytest.mark.parametrize("text", ["1", "1 rtt", "-1 bdp", "0.5 packets", "bdp", None])
def test_wrong_buffers(text: object) -> None:
    with pytest.raises(QuantityError):
        BufferSize.parse(text)


def test_ratios_and_spans() -> None:
    assert parse_ratio("0.5 %") == Fraction(1, 200) == parse_ratio("0.005") == parse_ratio(0.005)
    assert Span.parse("1 rtt").to_us(240_000) == 240_000
    assert Span.parse("0.5 rtt").to_us(240_000) == 120_000
    assert Span.parse("20 ms").to_us(240_000) == 20_000
    for wrong in ("101 %", "-1 %", "1.5", "5 ms"):
        with pytest.raises(QuantityError, match="expected a share"):
            parse_ratio(wrong)
    with pytest.raises(QuantityError, match="expected a duration such as 20 ms, or round trips"):
        Span.parse("2 rounds")


_CASES: list[tuple[Callable[[int], str], Callable[[object], int]]] = [
    (format_rate, parse_rate),
    (format_duration, parse_duration),
    (format_size, parse_size),
]


@given(value=st.integers(min_value=0, max_value=10**15), case=st.sampled_from(_CASES))
def test_what_is_printed_reads_back(value: int, case: tuple[Callable[[int], str], Callable[[object], int]]) -> None:
    shown, read = case
    assert read(shown(value)) == value


@given(number=st.integers(0, 10**9), digits=st.integers(0, 5), unit=st.sampled_from(["bdp", "rtt", "%"]))
def test_relative_quantities_read_back(number: int, digits: int, unit: str) -> None:
    text = f"{number // 10**digits}.{str(number % 10**digits).zfill(digits)}" if digits else str(number)
    if unit == "bdp":
        size = BufferSize.parse(f"{text} bdp")
        assert size.amount == Fraction(number, 10**digits)
        assert BufferSize.parse(str(size)) == size
    elif unit == "rtt":
        assert Span.parse(str(Span.parse(f"{text} rtt"))) == Span.parse(f"{text}rtt")
    elif Fraction(number, 10**digits) <= 100:
        assert parse_ratio(f"{text} %") == Fraction(number, 100 * 10**digits)


@given(
    whole=st.integers(0, 10**6),
    fraction=st.integers(0, 999),
    unit=st.sampled_from([("kbit/s", 10**3), ("Mbit/s", 10**6), ("Gbit/s", 10**9)]),
    space=st.sampled_from(["", " ", "  "]),
)
def test_decimals_are_exact(whole: int, fraction: int, unit: tuple[str, int], space: str) -> None:
    name, scale = unit
    assert parse_rate(f"{whole}.{fraction:03d}{space}{name}") == whole * scale + fraction * scale // 1000


@given(st.one_of(st.text(max_size=80), st.integers(), st.floats(), st.none(), st.lists(st.integers())))
def test_no_input_gives_anything_but_a_value_or_a_quantity_error(value: object) -> None:
    for read in (parse_rate, parse_duration, parse_size, parse_ratio, BufferSize.parse, Span.parse):
        try:
            read(value)
        except QuantityError as error:
            assert len(str(error)) < 300


@pytest.mark.parametrize(
    ("metric", "text", "value"),
    [
        ("goodput_bits_per_second", "12.9 Mbit/s", 12.9e6),
        ("goodput_bits_per_second", "1 Gbit/s", 1e9),
        ("exit_time_s", "20 s", 20),
        ("exit_time_s", "250 ms", 0.25),
        ("exit_time_s", "2 min", 120),
        ("min_rtt_us", "204.5 ms", 204_500),
        ("queue_peak_bytes", "1.275 MB", 1_275_000),
        ("queue_peak_bytes", "64 KiB", 65_536),
        ("exit_cwnd_packets", "870", 870),
        ("exit_cwnd_packets", "870 packets", 870),
        ("overshoot_packets", "-12", -12),
        ("utilisation", "23.2 %", 0.232),
        ("utilisation", "0.232", 0.232),
        ("exit_cwnd_bdp", "1.5 bdp", 1.5),
        ("exit_round", "9 rounds", 9),
        ("exit_time_s", "0", 0),
    ],
)
def test_quantities_in_the_unit_of_the_metric(metric: str, text: str, value: float) -> None:
    assert known_metrics()[metric].read(text) == pytest.approx(value)


@pytest.mark.parametrize(
    ("metric", "text"),
    [
        ("exit_time_s", "20"),
        ("exit_time_s", "20 %"),
        ("exit_time_s", "20 Mbit/s"),
        ("goodput_bits_per_second", "12 MB"),
        ("goodput_bits_per_second", "12"),
        ("queue_peak_bytes", "3"),
        ("exit_cwnd_packets", "3 s"),
        ("exit_cwnd_packets", "many"),
        ("utilisation", "0.3 s"),
        ("utilisation", ""),
        ("utilisation", "1e999"),
        ("utilisation", "nan"),
    ],
)
def test_what_is_no_such_quantity_is_refused(metric: str, text: str) -> None:
    with pytest.raises(QuantityError):
        known_metrics()[metric].read(text)


def test_tolerances() -> None:
    packets = Metric("exit_cwnd_packets", "packets")
    assert packets.read_tolerance("10 %", 870) == pytest.approx(87)
    assert packets.read_tolerance("10 %", -50) == pytest.approx(5)
    assert packets.read_tolerance("12", 870) == 12
    share = known_metrics()["utilisation"]
    assert share.read_tolerance("10 %", 0.5) == pytest.approx(0.05)  # of what is expected
    assert share.read_tolerance("2 points", 0.5) == pytest.approx(0.02)
    with pytest.raises(QuantityError, match="negative"):
        packets.read_tolerance("-1", 870)
    with pytest.raises(QuantityError, match="between 0 and 100"):
        read_share("120 %")


def test_entries_are_those_of_the_atlas() -> None:
    """90 of the five papers, two of a load's paper, two of TCPEVAL, and three of where start-ups break."""
    assert "HyStart_fig9" in known_entries()
    assert len([entry for entry in known_entries() if not entry.startswith("RFC")]) == 97
