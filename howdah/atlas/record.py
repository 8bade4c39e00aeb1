# SPDX-License-Identifier: Apache-2.0
"""atlas.json: what making the atlas took, added up over the commands that made it."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from pathlib import Path

from howdah.codec import encoded
from howdah.errors import RecordError
from howdah.record.directory import read_json, write_json
from howdah.record.provenance import now

FORMAT = 1


@dataclass
class Sitting:
    """One command's work: runs it made and found, and its wall time."""

    started: str
    quick: bool
    made: int = 0
    found: int = 0
    failed: int = 0
    simulated_s: float = 0.0
    core_s: float = 0.0
    wall_s: float = 0.0
    workers: int = 0
    interrupted: bool = False


_OF_A_SITTING = {each.name for each in fields(Sitting)}


@dataclass
class Record:
    """Sittings of the quick atlas and of the full one are distinguished: their wall times do not add up to one
    figure."""

    sittings: list[Sitting] = field(default_factory=list)

    def of(self, *, quick: bool) -> list[Sitting]:
        return [sitting for sitting in self.sittings if sitting.quick == quick]

    def wall_s(self, *, quick: bool) -> float:
        """Seconds on the wall of all sittings that made runs, resumed ones included."""
        return sum(sitting.wall_s for sitting in self.of(quick=quick) if sitting.made or sitting.failed)

    def core_s(self, *, quick: bool) -> float:
        return sum(sitting.core_s for sitting in self.of(quick=quick))

    def simulated_s(self, *, quick: bool) -> float:
        return sum(sitting.simulated_s for sitting in self.of(quick=quick))


def begin(quick: bool, workers: int) -> Sitting:
    return Sitting(started=now(), quick=quick, workers=workers)


def read_record(path: Path) -> Record:
    """The record at ``path``; an empty one if the file is missing, or has another format."""
    try:
        data = read_json(path)
    except (FileNotFoundError, RecordError):
        return Record()
    if not isinstance(data, dict) or data.get("format") != FORMAT:
        return Record()
    return Record(
        [Sitting(**{name: sitting[name] for name in sitting.keys() & _OF_A_SITTING}) for sitting in data["sittings"]]
    )


def add(path: Path, sitting: Sitting) -> Record:
    """Add a sitting to the record at ``path`` and return it."""
    record = read_record(path)
    record.sittings.append(sitting)
    write_json(path, {"format": FORMAT, "sittings": encoded(record.sittings)})
    return record
