# SPDX-License-Identifier: Apache-2.0
"""How a path changes over time: written steps, traces, drawn rates, hand-overs; and reordering.

Traces are files that become steps of ``path.schedule``. Every error names the file and line. ``foreign_format``
identifies a file that is not a trace.
"""

from __future__ import annotations

import csv
import io
import itertools
import json
import re
import statistics
from fractions import Fraction
from pathlib import Path

from pydantic import Field, ValidationError, model_validator

from howdah.errors import ProfileError, did_you_mean
from howdah.profile.field import Duration, FieldError, PositiveDuration, Rate, Ratio, Section, Text, fixed, preset
from howdah.quantity import QuantityError, format_duration, parse_duration

SHORTEST_STEP_US = 1000
MOST_CHANGES = 50_000  # largest number of path changes in a run, whose plan takes a second to make
CHANGING = ("rate", "reverse_rate", "rtt", "forward_delay", "reverse_delay", "loss", "reverse_loss")
JITTER_INTERVAL_US = 20_000  # time between changes of the perturbation's jitter


class StepSection(Section):
    """One step of ``schedule``: changes that hold from ``at`` on. Fields that no step changes stay as in the path.

    At the end of the run the path is restored, so that it can be measured. Packets keep their order when a delay
    decreases.
    """

    at: Duration = Field(description="time after the epoch")
    rate: Rate | None = Field(default=None, description="rate of the bottleneck; its queue is kept")
    reverse_rate: Rate | None = Field(default=None, description="reverse rate, if path.reverse_rate is set")
    rtt: PositiveDuration | None = Field(default=None, description="round-trip delay, split like the path's")
    forward_delay: Duration | None = Field(default=None, description="instead of rtt: delay from sender to receiver")
    reverse_delay: Duration | None = Field(default=None, description="instead of rtt: delay from receiver to sender")
    loss: Ratio | None = Field(default=None, description="random forward loss; 100 % drops everything")
    reverse_loss: Ratio | None = Field(default=None, description="random reverse loss")
    loss_for: PositiveDuration | None = Field(
        default=None,
        description="how long this step's losses last; then they continue as without this step",
    )
    outage: PositiveDuration | None = Field(default=None, description="how long both directions drop everything")

    @model_validator(mode="after")
    def _something(self) -> StepSection:
        if all(getattr(self, name) is None for name in (*CHANGING, "outage")):
            raise FieldError("this step changes nothing; give it a rate, rtt, forward_delay, loss or outage")
        if self.loss_for is not None and self.loss is None and self.reverse_loss is None:
            raise FieldError("there is no loss to end; give loss or reverse_loss", "loss_for")
        if self.rtt is not None and (self.forward_delay is not None or self.reverse_delay is not None):
            raise FieldError("rtt and a one-way delay are both given; give one", "rtt")
        return self


def check_steps(steps: list[StepSection], *place: str) -> None:
    """Raise FieldError unless each step is at least a millisecond after the one before it."""
    for index, (earlier, later) in enumerate(itertools.pairwise(steps), start=1):
        if later.at < earlier.at + SHORTEST_STEP_US:
            what = "this step is not at least 1 ms after the one before it; steps are in order of time"
            raise FieldError(what, *place, index, "at")


class TraceSection(Section):
    """A path that changes according to a file. It is a CSV with a header (columns ``time`` and any of ``rate``,
    ``reverse_rate``, ``rtt``, ``forward_delay``, ``reverse_delay``, ``loss``, ``reverse_loss``, values with units). Or
    it is a Mahimahi trace, which has one line per 1500-byte packet, its time in milliseconds."""

    file: Text = fixed(description="relative to the profile; .csv, or anything else for Mahimahi's format")
    interval: PositiveDuration = preset(
        PositiveDuration, "100 ms", description="Mahimahi: interval over which the rate is averaged"
    )
    repeat: PositiveDuration | None = Field(
        default=None, description="repeat the trace after this time; default: keep the last value"
    )
    scale: Ratio | None = Field(default=None, description="factor for the trace's rates")


class RateVariationSection(Section):
    """A bottleneck with a varying rate, like a radio link's: every ``interval`` a rate between ``least`` and the path's
    rate, uniform, correlated in time like ``delay_variation``. The series is drawn from the seed."""

    least: Rate = Field(description="lowest rate; the path's rate is the highest")
    correlation_time: Duration = Field(description="time in which the autocorrelation falls to 1/e; 0: independent")
    interval: PositiveDuration = preset(PositiveDuration, "100 ms", description="time between changes")
    source: Text = fixed(description="where the numbers come from: a publication, a measurement, a choice")

    @model_validator(mode="after")
    def _rare(self) -> RateVariationSection:
        if self.interval < SHORTEST_STEP_US:
            raise FieldError("expected an interval of at least 1 ms", "interval")
        return self


class HandoverSection(Section):
    """Satellites in low orbit, with a hand-over after each interval ``every``. Nothing arrives for ``outage``. Then the
    path has a new delay, at most ``delay`` above its own: uniform, half in each direction, drawn from the seed."""

    every: PositiveDuration = Field(description="time between hand-overs")
    first: PositiveDuration | None = Field(default=None, description="time of the first one; default: every")
    delay: Duration = Field(description="largest addition to the round trip")
    outage: Duration = preset(Duration, "0", description="time without any delivery")
    source: Text = fixed(description="where the numbers come from: a publication, a measurement, a choice")

    @model_validator(mode="after")
    def _short(self) -> HandoverSection:
        if self.every < 10 * SHORTEST_STEP_US or self.outage >= self.every:
            raise FieldError("expected at least 10 ms between hand-overs, and an outage shorter than that", "every")
        return self


class ReorderSection(Section):
    """Packets that overtake, forward: netem sends some at once, past those that wait for the forward delay.

    After each of them, ``gap`` - 1 packets keep their place. Then each is sent at once with probability ``share``,
    until one is. The fraction of all packets that overtake is 1 / (gap - 1 + 1 / share) (net/sched/sch_netem.c,
    netem_enqueue).
    """

    share: Ratio = Field(description="probability that a packet overtakes")
    gap: int = Field(default=1, ge=1, le=1_000_000, description="minimum distance of overtaking packets, in packets")

    @model_validator(mode="after")
    def _rare(self) -> ReorderSection:
        if self.share == 0 or self.share_of_all > Fraction(1, 5):
            raise FieldError("expected a share of overtaking packets above 0 and at most 20 %", "share")
        return self

    @property
    def share_of_all(self) -> Fraction:
        """The long-run fraction of packets that overtake."""
        return 1 / (self.gap - 1 + 1 / self.share)


IPERF3 = "a result of iperf3 (JSON)"
_BEGINNINGS = (
    (b"\xd4\xc3\xb2\xa1", "a capture of packets (pcap)"),
    (b"\xa1\xb2\xc3\xd4", "a capture of packets (pcap)"),
    (b"\x4d\x3c\xb2\xa1", "a capture of packets (pcap)"),
    (b"\xa1\xb2\x3c\x4d", "a capture of packets (pcap)"),
    (b"\x0a\x0d\x0d\x0a", "a capture of packets (pcapng)"),
    (b"\x1f\x8b", "packed by gzip"),
    (b"BZh", "packed by bzip2"),
    (b"\xfd7zXZ", "packed by xz"),
    (b"\x28\xb5\x2f\xfd", "packed by zstd"),
    (b"PK\x03\x04", "a zip archive"),
    (b"PAR1", "a Parquet table"),
    (b"SQLite format 3", "an SQLite database"),
    (b"<", "XML or HTML"),
    (b"%PDF", "a PDF"),
)


def foreign_format(content: bytes) -> str | None:
    """The format of a file's contents, in words; None if it may be a trace."""
    start = content[:4096].removeprefix(b"\xef\xbb\xbf").lstrip()
    # pcapng begins with a line feed, so look at the unstripped content too.
    found = next((words for mark, words in _BEGINNINGS if content.startswith(mark) or start.startswith(mark)), None)
    return found or (_json(content) if start[:1] in (b"{", b"[") else None)


def _json(content: bytes) -> str:
    try:
        read = json.loads(content)
    except (ValueError, RecursionError):
        return "JSON, or something like it"
    members = set(read) if isinstance(read, dict) else set()
    if {"start", "intervals", "end"} <= members:
        return IPERF3
    if {"version", "metadata", "results", "x_values"} <= members:
        return "a result of flent (JSON)"
    return "a qlog (JSON)" if "qlog_version" in members else "JSON"


COLUMNS = ("time", *CHANGING)
FORMS = (
    f"a trace is a .csv with a column time and any of {', '.join(CHANGING)}, "
    "or Mahimahi's: one time in milliseconds on each line, at which a packet may be sent"
)
LARGEST_FILE_BYTES = 64 << 20
_RATES = ("rate", "reverse_rate")
_GAP_FACTOR = 10  # a gap is longer than this many times the median spacing of rows
_ZERO_RATE = re.compile(r"0*\.?0+(?![0-9.])")
_LONGEST_TIME = 16  # digits of a time
_OPPORTUNITY_BITS = 1500 * 8  # bits per line of a Mahimahi trace


def read_trace(section: TraceSection, file: Path, where: str, duration_us: int) -> list[StepSection]:
    """The steps of a trace before ``duration_us``. The profile names the file at ``where``. Raises ProfileError."""
    try:
        if file.exists() and not file.is_file():
            raise ProfileError(f"{file} is not a regular file", where=where)
        if file.stat().st_size > LARGEST_FILE_BYTES:
            raise ProfileError(
                f"{file} is larger than {LARGEST_FILE_BYTES >> 20} MiB, too large for a trace", where=where
            )
        content = file.read_bytes()
    except OSError as error:
        what = f"the trace {file} cannot be read: {error.strerror}"
        raise ProfileError(what, where=where, hint="a name is a file beside the profile, or a path") from None
    other = foreign_format(content)
    if other is not None:
        raise ProfileError(f"{file} is {other}, not a trace of a path", where=where, hint=FORMS)
    try:
        text = content.decode("utf-8-sig").replace("\r\n", "\n").replace("\r", "\n")
    except UnicodeDecodeError:
        raise ProfileError(f"the trace {file} is not text", where=where, hint=FORMS) from None
    if file.suffix == ".csv":
        steps, period_us = _csv(text, str(file)), section.repeat
    else:
        steps, end_us = _mahimahi(text, str(file), section.interval, where)
        period_us = section.repeat or end_us
    if period_us is not None:
        steps = _repeated(steps, period_us, duration_us, where)
    if section.scale is not None:
        steps = [_scaled(step, section.scale) for step in steps]
    steps = [step for step in steps if step.at < duration_us]
    if len(steps) > MOST_CHANGES:
        raise ProfileError(f"the trace makes {len(steps)} steps, more than {MOST_CHANGES}", where=where)
    return steps


def _csv(text: str, name: str) -> list[StepSection]:
    rows = csv.reader(io.StringIO(text))
    header: list[str] | None = None
    found: list[tuple[int, StepSection]] = []
    for row in rows:
        cells, line = [cell.strip() for cell in row], f"{name}:{rows.line_num}"
        if not any(cells) or cells[0].startswith("#"):
            continue
        if header is None:
            header = _header(cells, line)
            continue
        if len(cells) != len(header):
            what = f"{len(cells)} values under {len(header)} columns"
            raise ProfileError(what, where=line, hint="give each row one value for each column")
        found.append((rows.line_num, _row(dict(zip(header, cells, strict=True)), line)))
    if header is None or not found:
        raise ProfileError("the trace has no rows", where=name, hint=f"its columns are {', '.join(COLUMNS)}")
    _check_times(found, name)
    return [step for _, step in found]


def _header(cells: list[str], line: str) -> list[str]:
    for column in cells:
        if column not in COLUMNS:
            hint = did_you_mean(column, COLUMNS, f"the columns are {', '.join(COLUMNS)}")
            raise ProfileError(f"there is no column {column!r}", where=line, hint=hint)
        if cells.count(column) > 1:
            raise ProfileError(f"the column {column} is given twice", where=line)
    if "time" not in cells or len(cells) < 2:
        raise ProfileError("a trace needs a column time and at least one other", where=line)
    return cells


def _row(cells: dict[str, str], line: str) -> StepSection:
    for column, cell in cells.items():
        if not cell:
            raise ProfileError(f"{column} is missing in this row", where=line, hint="howdah fills no gaps of a trace")
    if any(_ZERO_RATE.match(cells.get(name, "")) for name in _RATES):
        raise ProfileError("a rate of zero", where=line, hint="for a path that carries nothing, write a loss of 100 %")
    values = {("at" if column == "time" else column): cell for column, cell in cells.items()}
    try:
        return StepSection.model_validate(values)
    except ValidationError as error:
        item = error.errors(include_url=False)[0]
        column = str(item["loc"][0]) if item["loc"] else ""
        cause = item.get("ctx", {}).get("error", item["msg"])
        raise ProfileError(f"{'time' if column == 'at' else column}: {cause}".lstrip(": "), where=line) from None


def _check_times(found: list[tuple[int, StepSection]], name: str) -> None:
    if found[0][1].at != 0:
        what = f"the trace begins at {format_duration(found[0][1].at)}: it must begin at 0 s"
        raise ProfileError(what, where=f"{name}:{found[0][0]}", hint="let the first row have time 0 s")
    spacings = []
    for (_, earlier), (line, later) in itertools.pairwise(found):
        if later.at < earlier.at + SHORTEST_STEP_US:
            what = "the time does not grow by at least 1 ms from the row before; rows are in order of time"
            raise ProfileError(what, where=f"{name}:{line}")
        spacings.append(later.at - earlier.at)
    usual = statistics.median(spacings) if spacings else 0
    for (line, _), spacing in zip(found[1:], spacings, strict=True):
        if spacing > _GAP_FACTOR * usual:
            what = f"a gap of {format_duration(spacing)} before this row; rows are {format_duration(int(usual))} apart"
            raise ProfileError(what, where=f"{name}:{line}", hint="fill it in; or write steps into path.schedule")


def _mahimahi(text: str, name: str, interval_us: int, where: str) -> tuple[list[StepSection], int]:
    """Steps of the mean rate, and the trace's length (its last time), after which Mahimahi repeats it."""
    if interval_us % 1000:
        raise ProfileError("trace.interval: expected whole milliseconds, as the trace has them", where=where)
    times: list[tuple[int, int]] = []
    for number, written in enumerate(text.splitlines(), start=1):
        if not written.strip():
            continue
        try:
            # A trace has tens of thousands of lines, almost always whole milliseconds.
            whole = written.isascii() and written.isdecimal() and len(written) < _LONGEST_TIME
            time_us = 1000 * int(written) if whole else parse_duration(f"{written.strip()} ms")
        except QuantityError:
            what = f"expected a time in milliseconds, not {written.strip()[:40]!r}"
            raise ProfileError(what, where=f"{name}:{number}", hint=FORMS) from None
        if times and time_us < times[-1][1]:
            raise ProfileError("this time is before that of the line above", where=f"{name}:{number}")
        times.append((number, time_us))
    if not times or times[-1][1] == 0:
        raise ProfileError("the trace is empty", where=name)
    end_us = times[-1][1]
    steps = []
    position = 0
    for begin in range(0, end_us, interval_us):
        stop = min(begin + interval_us, end_us)
        first = position
        while position < len(times) and (times[position][1] < stop or stop == end_us):
            position += 1
        if position == first:
            what = f"no packet may be sent from {begin // 1000} to {stop // 1000} ms: a rate of zero"
            line = times[min(position, len(times) - 1)][0]
            hint = "make trace.interval longer, or run it as path.link, in which a stall keeps its queue"
            raise ProfileError(what, where=f"{name}:{line}", hint=hint)
        rate = (position - first) * _OPPORTUNITY_BITS * 1_000_000 // (stop - begin)
        steps.append(_step(begin, rate))
    return steps, end_us


def _step(at_us: int, rate_bits_per_second: int) -> StepSection:
    return StepSection.model_validate({"at": f"{at_us} us", "rate": f"{rate_bits_per_second} bit/s"})


def _repeated(steps: list[StepSection], period_us: int, duration_us: int, where: str) -> list[StepSection]:
    if period_us <= steps[-1].at:
        what = f"trace.repeat: the trace is longer than that, {format_duration(steps[-1].at)}"
        raise ProfileError(what, where=where)
    rounds = -(-duration_us // period_us)
    if rounds * len(steps) > MOST_CHANGES:
        raise ProfileError(f"the trace makes {rounds * len(steps)} steps, more than {MOST_CHANGES}", where=where)
    return [step.model_copy(update={"at": step.at + number * period_us}) for number in range(rounds) for step in steps]


def _scaled(step: StepSection, scale: Fraction) -> StepSection:
    rates = {name: rate for name in _RATES if (rate := getattr(step, name)) is not None}
    return step.model_copy(update={name: max(int(rate * scale), 1000) for name, rate in rates.items()})
