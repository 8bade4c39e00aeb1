# SPDX-License-Identifier: Apache-2.0
"""What became of a cell: its comparisons, its state, and in words why it fails."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Literal, get_args

from howdah.nightly.change import Comparison, Outcome, change_text
from howdah.record.model import Scalar

_NOT_TEXT = re.compile(r"[\x00-\x1f\x7f]+")
_NAMED = 6  # of many measures, in a line

Failing = Literal["regression", "not repeatable", "howdah changed", "cannot tell"]  # whatever a night is asked
State = Literal[Failing, "unproven", "not built", "improvement", "unchanged", "equal", "new", "gone"]
FAILING: tuple[Failing, ...] = get_args(Failing)  # Night.fails has the others
LABELS = {"unproven": "changed, too few repetitions"}  # of other states it is the state


def label(state: str) -> str:
    """What a reader sees of a state, or of a comparison's outcome."""
    return LABELS.get(state, state)


@dataclass
class CellResult:
    """``broken`` are runs that counted in the baseline and do not tonight; ``untold`` says why nothing can be said of
    the cell; ``notes`` fail nothing. ``pairs`` are repetitions that count in both nights; ``wall_s`` is
    what tonight's runs took to make, whenever that was."""

    experiment: str
    slug: str
    item: str
    kernel: str
    algorithm: str
    receiver: str
    axes: dict[str, Scalar] = field(default_factory=dict)
    comparisons: list[Comparison] = field(default_factory=list)
    broken: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    untold: str | None = None
    problem: str | None = None
    is_new: bool = False
    is_gone: bool = False
    was_built: bool = False
    is_claim: bool = False
    pairs: int = 0
    wall_s: float = 0.0

    @property
    def id(self) -> str:
        return f"{self.experiment}/{self.slug}"

    def of(self, *outcomes: Outcome) -> list[Comparison]:
        return [each for each in self.comparisons if each.outcome in outcomes]

    @property
    def regressions(self) -> list[str]:
        """What is proven to be worse, in words."""
        found = []
        if self.problem is not None and self.was_built:
            found.append(f"cannot be run: {self.problem}")
        found += self.broken
        found += [f"{each.name} has vanished: {each.pairs} runs count and none has it" for each in self.of("vanished")]
        found += [change_text(each) for each in self.of("regression")]
        return found

    @property
    def differences(self) -> list[str]:
        """What differs though kernel and plan are the same and time is virtual, in words."""
        found = [f"not repeatable: {change_text(each)}" for each in self.of("not repeatable")]
        return found + [f"howdah changed: {change_text(each)}" for each in self.of("howdah changed")]

    @property
    def unproven(self) -> list[str]:
        """Changes of primary measures that matter if they are real, in words."""
        return [change_text(each) for each in self.of("unproven") if each.is_primary]

    @property
    def reasons(self) -> list[str]:
        """Everything that speaks against the cell, the surest first; empty if nothing does."""
        return [*self.regressions, *self.differences, *self.unproven, *([self.untold] if self.untold else [])]

    @property
    def hints(self) -> list[str]:
        """What the page reports and fails nothing, in words."""
        found = [f"better: {change_text(each)}" for each in self.of("improvement")]
        others = [each.name for each in self.of("unproven") if not each.is_primary]
        if others:
            count = f"{len(others)} other measure{'s' if others[1:] else ''}"
            more = f" and {len(others) - _NAMED} more" if others[_NAMED:] else ""
            found.append(f"for information: {count} changed, not proven: {', '.join(others[:_NAMED])}{more}")
        return found + self.notes

    @property
    def state(self) -> State:
        if self.regressions:
            return "regression"
        if self.of("not repeatable"):
            return "not repeatable"
        if self.of("howdah changed"):
            return "howdah changed"
        if self.unproven:
            return "unproven"
        if self.problem is not None:
            return "not built"
        if self.is_gone:
            return "gone"
        if self.is_new:
            return "new"
        if self.untold is not None:
            return "cannot tell"
        if self.of("improvement"):
            return "improvement"
        return "equal" if all(each.outcome == "equal" for each in self.comparisons) else "unchanged"


def one_line(text: str) -> str:
    """Without line ends and what a terminal takes for a command."""
    return _NOT_TEXT.sub(" ", text)
