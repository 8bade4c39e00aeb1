# SPDX-License-Identifier: Apache-2.0
"""What became of a sample of mutants, and the share that tests noticed."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from ruamel.yaml import YAML

EQUIVALENT = Path(__file__).with_name("equivalent.yaml")
_SURVIVED = 0
_NO_TEST = (5, 33)
_TIMEOUTS = (-24, 24, 36, 152, 255)


@dataclass(frozen=True)
class Change:
    """The lines that a mutant takes away and adds, without their indentation."""

    file: str
    was: str
    becomes: str


@dataclass(frozen=True)
class Outcome:
    """Names of the mutants. ``equivalent`` ones are no part of the score."""

    killed: Sequence[str]
    timed_out: Sequence[str]
    survived: Mapping[str, Change]
    equivalent: Mapping[str, str]

    @classmethod
    def of(cls, codes: Mapping[str, int | None], tree: Path, why: Mapping[Change, str]) -> Outcome:
        """From mutmut's exit codes; ``why`` says of known changes why nothing can notice them."""
        with contextlib.chdir(tree):
            alive = {name: change_of(name) for name, code in codes.items() if code in (None, _SURVIVED, *_NO_TEST)}
        known = {name: why[change] for name, change in alive.items() if change in why}
        return cls(
            killed=[name for name, code in codes.items() if name not in alive and code not in _TIMEOUTS],
            timed_out=[name for name, code in codes.items() if code in _TIMEOUTS],
            survived={name: change for name, change in alive.items() if name not in known},
            equivalent=known,
        )

    def text(self) -> str:
        noticed = len(self.killed) + len(self.timed_out)
        count = noticed + len(self.survived)
        low, high = wilson(noticed, count)
        lines = [f"survived: {name}\n  - {each.was}\n  + {each.becomes}" for name, each in self.survived.items()]
        lines += [f"equivalent: {name}: {why}" for name, why in self.equivalent.items()]
        score = f"{noticed} of {count} noticed, {noticed / count:.1%} ({low:.1%} to {high:.1%})"
        return "\n".join(
            [*lines, f"{score}; {len(self.timed_out)} by a timeout; {len(self.equivalent)} equivalent ones left out"]
        )


def change_of(name: str) -> Change:
    """The lines that a mutant changes, as mutmut has them."""
    from mutmut.mutation.diff_apply import get_diff_for_mutant  # reads its settings from where it is imported

    file = "/".join(name.split(".")[:-1]) + ".py"
    lines = get_diff_for_mutant(name, path=Path(file)).splitlines()
    was, becomes = (
        " ".join(line[1:].strip() for line in lines if line.startswith(sign) and not line.startswith(sign * 3))
        for sign in "-+"
    )
    return Change(file, was, becomes)


def read_equivalent() -> dict[Change, str]:
    """Changes that alter nothing that can be seen, and why."""
    listed = YAML(typ="safe").load(EQUIVALENT.read_text()) or []
    return {Change(each["file"], each["was"], each["becomes"]): each["why"] for each in listed}


def wilson(hits: int, count: int) -> tuple[float, float]:
    """95 % interval of a share (Wilson 1927)."""
    z = 1.959964
    middle = (hits + z * z / 2) / (count + z * z)
    half = z / (count + z * z) * math.sqrt(hits * (count - hits) / count + z * z / 4)
    return middle - half, middle + half
