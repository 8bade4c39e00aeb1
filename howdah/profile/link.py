# SPDX-License-Identifier: Apache-2.0
"""``path.link``: a bottleneck that carries bytes at the instants of a trace. Every complaint names file and line."""

from __future__ import annotations

from array import array
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
from howdah.profile.opportunity import FORMS, Opportunities, read_opportunities
from howdah.profile.source import Document
from howdah.profile.written import written_path
from howdah.quantity import format_duration

OPPORTUNITY_BYTES = 1504  # PACKET_SIZE of mm-link: an IP packet of 1500 bytes and the header of its tun device
TUN_BYTES = 4
LEAST_RATE, MOST_RATE = 1000, 10**12  # as path.rate is bounded
RATE_OF = {"link": "rate", "reverse_link": "reverse_rate"}


class LinkSection(ShortSection):
    """A link that carries 1504 bytes at each instant of a trace, as Mahimahi's mm-link does: an IP packet counts its
    length and 4 bytes. Several small packets share an opportunity, a large one waits for as many as it needs, what is
    not used is lost, and the trace begins again at its end. A text is its ``file``."""

    short: ClassVar[str] = "file"

    file: Text = Field(
        description="relative to the profile: Mahimahi's format (one time in milliseconds on each line), a .csv of "
        "time and rate, or a .json of iperf3"
    )
    interpolation: Literal["step", "linear"] | None = Field(
        default=None,
        description="of measured rates (.csv, .json), which need it: step, a rate holds until the next one; "
        "linear, it changes evenly from each to the next",
    )
    column: Text | None = Field(
        default=None, description="of a .csv: the column of the rate, where several could be it; its name has the unit"
    )


@dataclass(frozen=True)
class LinkTrace:
    """Opportunities of a run: microseconds from each to the next, of the first round until the run ends.

    ``in_file`` are those of a whole round, of which ``rate_bits_per_second`` is the mean, full frames counted.
    """

    file: str
    sha256: str
    gaps_us: array[int]
    round_us: int
    in_file: int
    longest_wait_us: int  # of the run, for the next opportunity or its end
    rate_bits_per_second: int


def read_link(section: LinkSection, file: Path, where: str, duration_us: int, mtu_bytes: int) -> LinkTrace:
    """``where`` is where the profile names the file. Raises ProfileError."""
    try:
        if file.exists() and not file.is_file():
            raise ProfileError(f"{file} is not a regular file", where=where, hint=FORMS)
        state = file.stat()
    except OSError as error:
        what = f"the trace {file} cannot be read: {error.strerror}"
        raise ProfileError(what, where=where, hint="a name is a file beside the profile, or a path") from None
    stamp = (state.st_mtime_ns, state.st_size)
    return _read(file, stamp, section.interpolation, section.column, where, duration_us, mtu_bytes)


@lru_cache(maxsize=16)  # each run of a sweep asks for it
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
        what = f"nothing could pass: the first opportunity is at {format_duration(found.first_us)}"
        hint = f"the run ends at {format_duration(duration_us)}; make duration longer"
        raise ProfileError(what, where=name, hint=hint)
    if len(found.times_us) > MOST_OPPORTUNITIES:
        what = f"the trace has {len(found.times_us)} opportunities until the run ends, more than {MOST_OPPORTUNITIES}"
        raise ProfileError(what, where=name, hint="make duration shorter")
    waits = [found.times_us[0], *(later - earlier for earlier, later in pairwise(found.times_us))]
    if max(waits) > LARGEST_GAP_US:
        what = f"nothing is carried for {format_duration(max(waits))}"
        raise ProfileError(what, where=name, hint=f"{format_duration(LARGEST_GAP_US)} is the longest a link can wait")
    # Over the end of a round, or until the run ends.
    last_us = found.times_us[-1]
    again_us = found.round_us + waits[0] if found.round_us <= duration_us else duration_us
    longest_us = max(*waits, again_us - last_us)
    return LinkTrace(file.name, found.sha256, array("I", waits), found.round_us, found.count, longest_us, rate)


def _mean_rate(found: Opportunities, mtu_bytes: int) -> int:
    frames = found.count * OPPORTUNITY_BYTES / (mtu_bytes + TUN_BYTES)
    return round(frames * frame_bytes(mtu_bytes) * 8_000_000 / found.round_us)


def take_links(document: Document, directory: Path) -> None:
    """Give the ``path`` of a point the mean rates of its links; its data is changed in place. Raises ProfileError.

    What is wrong with other fields is said when they are checked.
    """
    path = document.data.get("path")
    if not isinstance(path, dict):
        return
    for name, rate in RATE_OF.items():
        if path.get(name) is None:
            continue
        if rate in path:
            what = f"path.{name} and path.{rate} are both given; give one"
            raise ProfileError(what, where=document.place(("path", rate)), hint="a link's trace says its rate")
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
