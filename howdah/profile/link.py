# SPDX-License-Identifier: Apache-2.0
"""``path.link``: a bottleneck that carries bytes at the instants of a trace, called opportunities.

Every error names the file and line.
"""

from __future__ import annotations

import hashlib
import io
import math
from array import array
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from pathlib import Path
from typing import ClassVar, Literal

from pydantic import Field, TypeAdapter

from howdah.errors import ProfileError
from howdah.frame import frame_bytes
from howdah.linux.netlink.discipline.gaps import LARGEST_GAP_US, MOST_OPPORTUNITIES
from howdah.profile.field import PositiveDuration, ShortSection, Text
from howdah.profile.measured import MeasuredRates, rates_of_csv, rates_of_iperf3
from howdah.profile.source import Document
from howdah.profile.varying import IPERF3, foreign_format
from howdah.profile.written import written_path
from howdah.quantity import format_duration

FORMS = (
    "a link's trace has one time in milliseconds on each line (Mahimahi's), or is a .csv of time and rate, or a .json "
    "of iperf3; the last two need interpolation: step or linear"
)
LARGEST_FILE_BYTES = 128 << 20  # Mahimahi's fastest trace (Orange, 220 Mbit/s) has 77 MB in ten minutes
_LONGEST_US = 86_400_000_000
_DIGITS = 12


@dataclass(frozen=True)
class Opportunities:
    """The opportunities of a trace. ``times_us`` are sorted, from the first round of the trace, up to the end of the
    run; ``count`` is the number in a whole round."""

    times_us: array[int]
    count: int
    first_us: int
    round_us: int
    sha256: str


def read_opportunities(
    file: Path, interpolation: str | None, column: str | None, where: str, duration_us: int, opportunity_bytes: int
) -> Opportunities:
    """Read a link's trace. ``where`` is the place in the profile that names the file. Raises ProfileError."""
    try:
        if file.stat().st_size > LARGEST_FILE_BYTES:
            what = f"{file} is larger than {LARGEST_FILE_BYTES >> 20} MiB, too large for a trace"
            raise ProfileError(what, where=where, hint=FORMS)
        content = file.read_bytes()
    except OSError as error:
        what = f"the trace {file} cannot be read: {error.strerror}"
        raise ProfileError(what, where=where, hint="a name is a file beside the profile, or a path") from None
    digest = hashlib.sha256(content).hexdigest()
    other = foreign_format(content)
    measured = file.suffix.lower() == ".csv" or other == IPERF3
    if other not in (None, IPERF3):
        raise ProfileError(f"{file} is {other}, not a trace of a link", where=where, hint=FORMS)
    if measured and interpolation is None:
        what = f"{file.name} has measured rates; give an interpolation"
        raise ProfileError(what, where=where, hint=f"link: {{file: {file.name}, interpolation: step}}, or linear")
    if not measured and (interpolation or column):
        what = f"{file.name} has one opportunity per line and nothing to {'interpolate' if interpolation else 'choose'}"
        raise ProfileError(what, where=where, hint=f"leave {'interpolation' if interpolation else 'column'} out")
    if other == IPERF3:
        rates = rates_of_iperf3(content, str(file))
    else:
        text = _text(content, file, where)
        if not measured:
            return _opportunities_at(_times_us(text, str(file)), str(file), duration_us, digest)
        rates = rates_of_csv(text, str(file), column)
    return _opportunities_at_rates(rates, str(file), interpolation == "linear", duration_us, opportunity_bytes, digest)


def _text(content: bytes, file: Path, where: str) -> str:
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise ProfileError(f"the trace {file} is not text", where=where, hint=FORMS) from None
    if "\0" in text:
        raise ProfileError(f"the trace {file} is not text", where=where, hint=FORMS)
    return text.replace("\r\n", "\n").replace("\r", "\n")


def _times_us(text: str, name: str) -> array[int]:
    """Parse Mahimahi's lines as mm-link does: whole milliseconds, leading blanks allowed, no empty lines."""
    times = array("q")
    last = 0
    for number, line in enumerate(io.StringIO(text), start=1):  # a list of lines would need ten times the file's size
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


def _opportunities_at(times_us: array[int], name: str, duration_us: int, digest: str) -> Opportunities:
    if not times_us:
        raise ProfileError("the trace is empty", where=name, hint=FORMS)
    if times_us[-1] == 0:
        what = "the trace ends at 0 ms, so it would repeat forever"
        raise ProfileError(what, where=name, hint="its last line is its length")
    until = bisect_right(times_us, duration_us)
    return Opportunities(times_us[:until], len(times_us), times_us[0], times_us[-1], digest)


def _opportunities_at_rates(
    rates: MeasuredRates, name: str, linear: bool, duration_us: int, opportunity_bytes: int, digest: str
) -> Opportunities:
    """Place an opportunity whenever the integral of the rate reaches another ``opportunity_bytes``."""
    pieces = list(_intervals(rates, linear))
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
            at_us = min(round((begin_s + _seconds_until(lacking, begin, end, length_s)) * 1e6), round_us)
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


def _intervals(rates: MeasuredRates, linear: bool) -> Iterator[tuple[float, float, float, float]]:
    """For each interval: its begin and length in seconds, and the rates at its begin and end."""
    times = [*rates.times_s, rates.end_s]
    values = [*rates.rates, rates.rates[-1]]
    for number, (begin, end) in enumerate(pairwise(times)):
        yield begin, end - begin, values[number], values[number + 1] if linear else values[number]


def _seconds_until(bits: float, begin: float, end: float, length_s: float) -> float:
    slope = (end - begin) / length_s
    if abs(slope) * length_s <= 1e-9 * max(begin, end):
        return min(bits / begin, length_s)
    # Solve begin t + slope t^2 / 2 = bits; this form of the root loses no digits.
    return min(2 * bits / (begin + math.sqrt(max(begin * begin + 2 * slope * bits, 0.0))), length_s)


OPPORTUNITY_BYTES = 1504  # PACKET_SIZE of mm-link: an IP packet of 1500 bytes and the header of its tun device
TUN_BYTES = 4
LEAST_RATE, MOST_RATE = 1000, 10**12  # the same bounds as path.rate
RATE_OF = {"link": "rate", "reverse_link": "reverse_rate"}


class LinkSection(ShortSection):
    """A link that carries 1504 bytes at each instant of a trace, like Mahimahi's mm-link: an IP packet counts as its
    length plus 4 bytes. Small packets share an opportunity, and a large packet waits for as many as it needs. Unused
    bytes are lost, and the trace repeats. A text alone is the `file`."""

    short: ClassVar[str] = "file"

    file: Text = Field(
        description="relative to the profile: Mahimahi's format (one time in milliseconds on each line), a .csv of "
        "time and rate, or a .json of iperf3"
    )
    interpolation: Literal["step", "linear"] | None = Field(
        default=None,
        description="required for measured rates (.csv, .json). step: a rate holds until the next; "
        "linear: it changes linearly to the next",
    )
    column: Text | None = Field(
        default=None, description="a .csv's rate column, if several could be it; its name gives the unit"
    )


@dataclass(frozen=True)
class LinkTrace:
    """The opportunities of a run. ``gaps_us`` are the microseconds from each to the next, in the first round, up to the
    end of the run.

    ``in_file`` is the number in a whole round, and ``rate_bits_per_second`` their mean rate, counted in full frames.
    """

    file: str
    sha256: str
    gaps_us: array[int]
    round_us: int
    in_file: int
    longest_wait_us: int  # longest wait in the run for the next opportunity, or for the end of the run
    rate_bits_per_second: int


def read_link(section: LinkSection, file: Path, where: str, duration_us: int, mtu_bytes: int) -> LinkTrace:
    """Read and check a link's trace. ``where`` is the place in the profile that names the file. Raises ProfileError."""
    try:
        if file.exists() and not file.is_file():
            raise ProfileError(f"{file} is not a regular file", where=where, hint=FORMS)
        state = file.stat()
    except OSError as error:
        what = f"the trace {file} cannot be read: {error.strerror}"
        raise ProfileError(what, where=where, hint="a name is a file beside the profile, or a path") from None
    stamp = (state.st_mtime_ns, state.st_size)
    return _read(file, stamp, section.interpolation, section.column, where, duration_us, mtu_bytes)


@lru_cache(maxsize=16)  # each run of a sweep reads it
def _read(
    file: Path,
    _stamp: tuple[int, int],
    interpolation: str | None,
    column: str | None,
    where: str,
    duration_us: int,
    mtu_bytes: int,
) -> LinkTrace:
    found = read_opportunities(file, interpolation, column, where, duration_us, OPPORTUNITY_BYTES)
    name = str(file)
    rate = _mean_rate(found, mtu_bytes)
    if not LEAST_RATE <= rate <= MOST_RATE:
        what = f"{found.count} opportunities in {format_duration(found.round_us)} are {rate} bit/s"
        raise ProfileError(what, where=name, hint="a link has between 1 kbit/s and 1 Tbit/s on average")
    if not found.times_us:
        what = f"nothing can pass: the first opportunity is at {format_duration(found.first_us)}"
        hint = f"the run ends at {format_duration(duration_us)}; make duration longer"
        raise ProfileError(what, where=name, hint=hint)
    if len(found.times_us) > MOST_OPPORTUNITIES:
        what = f"the trace has {len(found.times_us)} opportunities until the run ends, more than {MOST_OPPORTUNITIES}"
        raise ProfileError(what, where=name, hint="make duration shorter")
    waits = [found.times_us[0], *(later - earlier for earlier, later in pairwise(found.times_us))]
    if max(waits) > LARGEST_GAP_US:
        what = f"nothing is carried for {format_duration(max(waits))}"
        raise ProfileError(what, where=name, hint=f"{format_duration(LARGEST_GAP_US)} is the longest wait of a link")
    # The wait across the end of a round, or until the run ends.
    last_us = found.times_us[-1]
    again_us = found.round_us + waits[0] if found.round_us <= duration_us else duration_us
    longest_us = max(*waits, again_us - last_us)
    return LinkTrace(file.name, found.sha256, array("I", waits), found.round_us, found.count, longest_us, rate)


def _mean_rate(found: Opportunities, mtu_bytes: int) -> int:
    frames = found.count * OPPORTUNITY_BYTES / (mtu_bytes + TUN_BYTES)
    return round(frames * frame_bytes(mtu_bytes) * 8_000_000 / found.round_us)


def set_link_rates(document: Document, directory: Path) -> None:
    """Set the rates of a point's ``path``, in place, to the mean rates of its links' traces. Raises ProfileError.

    Errors in other fields are left for their own check.
    """
    path = document.data.get("path")
    if not isinstance(path, dict):
        return
    for name, rate in RATE_OF.items():
        if path.get(name) is None:
            continue
        if rate in path:
            what = f"path.{name} and path.{rate} are both given; give one"
            raise ProfileError(what, where=document.place(("path", rate)), hint="a link's trace gives its rate")
        try:
            section = LinkSection.model_validate(path[name])
            duration = TypeAdapter(PositiveDuration).validate_python(document.data.get("duration"))
        except ValueError:
            path[rate] = "1 Mbit/s"
            continue
        place = document.place(("path", name, "file") if isinstance(path[name], dict) else ("path", name))
        mtu = path.get("mtu", 1500)
        file = written_path(directory, section.file, place).resolve()
        found = read_link(section, file, place, duration, mtu if isinstance(mtu, int) and mtu > 0 else 1500)
        path[rate] = f"{found.rate_bits_per_second} bit/s"
