# SPDX-License-Identifier: Apache-2.0
"""Files of ``path.link`` as opportunities: instants at which a link carries so many bytes."""

from __future__ import annotations

import hashlib
import io
import math
from array import array
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from howdah.errors import ProfileError
from howdah.linux.netlink.discipline.gaps import MOST_OPPORTUNITIES
from howdah.profile.measured import MeasuredRates, rates_of_csv, rates_of_iperf3
from howdah.profile.trace import IPERF3, what_it_is

FORMS = (
    "a link's trace has one time in milliseconds on each line (Mahimahi's), or is a .csv of time and rate, or a .json "
    "of iperf3; the last two need interpolation: step or linear"
)
LARGEST_FILE_BYTES = 128 << 20  # ten minutes at 220 Mbit/s, Orange's fastest among Mahimahi's traces, are 77 MB
_LONGEST_US = 86_400_000_000
_DIGITS = 12


@dataclass(frozen=True)
class Opportunities:
    """``times_us`` are those of the first round until the run ends, in order; ``count`` are in a whole round."""

    times_us: array[int]
    count: int
    first_us: int
    round_us: int
    sha256: str


def read_opportunities(
    file: Path, interpolation: str | None, column: str | None, where: str, duration_us: int, opportunity_bytes: int
) -> Opportunities:
    """``where`` is where the profile names the file. Raises ProfileError."""
    try:
        if file.stat().st_size > LARGEST_FILE_BYTES:
            what = f"{file} is larger than {LARGEST_FILE_BYTES >> 20} MiB, too large for a trace"
            raise ProfileError(what, where=where, hint=FORMS)
        content = file.read_bytes()
    except OSError as error:
        what = f"the trace {file} cannot be read: {error.strerror}"
        raise ProfileError(what, where=where, hint="a name is a file beside the profile, or a path") from None
    digest = hashlib.sha256(content).hexdigest()
    other = what_it_is(content)
    measured = file.suffix.lower() == ".csv" or other == IPERF3
    if other not in (None, IPERF3):
        raise ProfileError(f"{file} is {other}, and no trace of a link", where=where, hint=FORMS)
    if measured and interpolation is None:
        what = f"{file.name} has measured rates; say how they continue between two of them"
        raise ProfileError(what, where=where, hint=f"link: {{file: {file.name}, interpolation: step}}, or linear")
    if not measured and (interpolation or column):
        what = (
            f"{file.name} has opportunities, one a line, and nothing to {'interpolate' if interpolation else 'choose'}"
        )
        raise ProfileError(what, where=where, hint=f"leave {'interpolation' if interpolation else 'column'} out")
    if other == IPERF3:
        rates = rates_of_iperf3(content, str(file))
    else:
        text = _text(content, file, where)
        if not measured:
            return _of_times(_times_us(text, str(file)), str(file), duration_us, digest)
        rates = rates_of_csv(text, str(file), column)
    return _of_rates(rates, str(file), interpolation == "linear", duration_us, opportunity_bytes, digest)


def _text(content: bytes, file: Path, where: str) -> str:
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise ProfileError(f"the trace {file} is not text", where=where, hint=FORMS) from None
    if "\0" in text:
        raise ProfileError(f"the trace {file} is not text", where=where, hint=FORMS)
    return text.replace("\r\n", "\n").replace("\r", "\n")


def _times_us(text: str, name: str) -> array[int]:
    """Of Mahimahi's lines, as mm-link takes them: whole milliseconds, blanks before them, no line without."""
    times = array("q")
    last = 0
    for number, line in enumerate(io.StringIO(text), start=1):  # a list of all would take ten times the file
        written = line.rstrip("\n").lstrip(" \t")
        # A trace has up to ten million lines, almost always whole milliseconds.
        if written.isdecimal() and written.isascii() and len(written) <= _DIGITS:
            time_us = 1000 * int(written)
        elif not written:
            raise ProfileError("the line is empty", where=f"{name}:{number}", hint="mm-link takes none; remove it")
        else:
            what = f"expected a time in whole milliseconds, not {written[:40]!r}"
            raise ProfileError(what, where=f"{name}:{number}", hint=FORMS)
        if time_us < last:
            what = f"{written[:20]} ms is before the time of the line above"
            raise ProfileError(what, where=f"{name}:{number}", hint="sort the lines by time")
        if time_us > _LONGEST_US:
            what = f"{written[:20]} ms is later than a day"
            raise ProfileError(what, where=f"{name}:{number}", hint="times are milliseconds from 0")
        times.append(time_us)
        last = time_us
    return times


def _of_times(times_us: array[int], name: str, duration_us: int, digest: str) -> Opportunities:
    if not times_us:
        raise ProfileError("the trace is empty", where=name, hint=FORMS)
    if times_us[-1] == 0:
        what = "the trace ends at 0 ms, where it would begin again without end"
        raise ProfileError(what, where=name, hint="its last line is its length")
    until = bisect_right(times_us, duration_us)
    return Opportunities(times_us[:until], len(times_us), times_us[0], times_us[-1], digest)


def _of_rates(
    rates: MeasuredRates, name: str, linear: bool, duration_us: int, opportunity_bytes: int, digest: str
) -> Opportunities:
    """One opportunity whenever the rates have let its bytes pass."""
    pieces = list(_pieces(rates, linear))
    bits = opportunity_bytes * 8
    total_bits = sum((begin + end) / 2 * length_s for _, length_s, begin, end in pieces)
    round_us = round(rates.end_s * 1e6)
    count = math.floor(total_bits / bits + 1e-9)
    if not count:
        what = f"the trace lets {total_bits / 8:.0f} bytes pass, less than one opportunity of {opportunity_bytes}"
        raise ProfileError(what, where=name, hint="is its unit right?")
    times = array("q")
    passed_bits = 0.0
    first_us: int | None = None
    for begin_s, length_s, begin, end in pieces:
        if times and begin_s * 1e6 > duration_us:
            break
        piece_bits = (begin + end) / 2 * length_s
        while len(times) < count and (lacking := (len(times) + 1) * bits - passed_bits) <= piece_bits + 1e-6:
            at_us = min(round((begin_s + _after(lacking, begin, end, length_s)) * 1e6), round_us)
            first_us = at_us if first_us is None else first_us
            if at_us > duration_us:
                break
            times.append(at_us)
            if len(times) > MOST_OPPORTUNITIES:
                what = f"the trace has more than {MOST_OPPORTUNITIES} opportunities until the run ends"
                raise ProfileError(what, where=name, hint="make duration shorter, or use path.trace")
        passed_bits += piece_bits
        if first_us is not None and first_us > duration_us:
            break
    return Opportunities(times, count, round_us if first_us is None else first_us, round_us, digest)


def _pieces(rates: MeasuredRates, linear: bool) -> Iterator[tuple[float, float, float, float]]:
    """Begin and length in seconds, rate at the begin and at the end."""
    times = [*rates.times_s, rates.end_s]
    values = [*rates.rates, rates.rates[-1]]
    for number, (begin, end) in enumerate(pairwise(times)):
        yield begin, end - begin, values[number], values[number + 1] if linear else values[number]


def _after(bits: float, begin: float, end: float, length_s: float) -> float:
    """Seconds until so many bits have passed at a rate that changes evenly."""
    slope = (end - begin) / length_s
    if abs(slope) * length_s <= 1e-9 * max(begin, end):
        return min(bits / begin, length_s)
    # begin t + slope t^2 / 2 = bits; this form of the root loses no digits.
    return min(2 * bits / (begin + math.sqrt(max(begin * begin + 2 * slope * bits, 0.0))), length_s)
