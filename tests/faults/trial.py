# SPDX-License-Identifier: Apache-2.0
"""One trial after the other: what was made, how it ended, and what of that is wrong. Each class of trials is a file."""

from __future__ import annotations

import contextlib
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.faults.limited import LIMIT_S, Answer, Limited

ROOT = Path(__file__).resolve().parents[2]


@dataclass
class Case:
    """One input: ``number`` and the seed give it again. ``where`` is the place its errors must name."""

    number: int
    kind: str
    base: str
    request: dict[str, Any]
    content: bytes
    answer: Answer | None = None
    fault: str | None = None


@dataclass
class Tally:
    """How many inputs of each kind ended how, the slowest one, and those that ended wrong."""

    outcomes: Counter[tuple[str, str]] = field(default_factory=Counter)
    processor_s: float = 0.0
    slowest_s: float = 0.0
    faults: list[Case] = field(default_factory=list)

    @property
    def count(self) -> int:
        return sum(self.outcomes.values())

    def add(self, other: Tally) -> None:
        self.outcomes += other.outcomes
        self.processor_s += other.processor_s
        self.slowest_s = max(self.slowest_s, other.slowest_s)
        self.faults += other.faults

    def take(self, case: Case) -> None:
        assert case.answer is not None
        self.outcomes[case.kind, (case.fault and "fault") or case.answer.outcome] += 1
        self.processor_s += case.answer.processor_s
        self.slowest_s = max(self.slowest_s, case.answer.processor_s)
        if case.fault:
            self.faults.append(case)


class Trials(ABC):
    """``make(n)`` is the same for ever, for one seed; ``meet`` has howdah meet it, and judges how that ended."""

    @abstractmethod
    def make(self, number: int) -> Case: ...

    @abstractmethod
    def meet(self, case: Case) -> None:
        """Sets ``answer`` and ``fault``."""

    @contextlib.contextmanager
    def ready(self) -> Iterator[None]:
        """What all trials need, as long as they need it."""
        yield

    def run(self, numbers: Iterable[int], told: Callable[[Case], None] = lambda _case: None) -> Tally:
        """The trials of these numbers, one after the other."""
        tally = Tally()
        with self.ready():
            for number in numbers:
                case = self.make(number)
                self.meet(case)
                tally.take(case)
                told(case)
        return tally


class LimitedTrials(Trials):
    """Inputs in ``directory`` that a limited process reads: each is accepted or refused in words, soon and small."""

    limit_s = LIMIT_S
    commands = False
    environment: Mapping[str, str] = {}
    directory: Path

    @abstractmethod
    def warm_up(self) -> dict[str, Any]:
        """A good input."""

    @contextlib.contextmanager
    def ready(self) -> Iterator[None]:
        environment = {"PYTHONPATH": str(ROOT), "HOME": str(self.directory), **self.environment}
        with Limited(self.directory, self.warm_up(), environment, commands=self.commands) as self.worker:
            yield

    def meet(self, case: Case) -> None:
        case.answer = self.worker.ask(case.request, self.limit_s)
        case.fault = self.fault_of(case.answer)

    def fault_of(self, answer: Answer) -> str | None:
        """What is wrong with how an input ended; None where nothing is."""
        if answer.is_fault:
            return f"{answer.outcome}: {answer.said}"
        return self.wrongly_refused(answer) if answer.outcome == "refused" else None

    def wrongly_refused(self, _answer: Answer) -> str | None:
        """What is wrong with a refusal."""
        return None


class CommandTrials(Trials):
    """Commands in a sandbox."""

    @abstractmethod
    def tried(self, case: Case) -> tuple[bool, list[str]]:
        """Whether the command refused its input, and what is wrong."""

    def meet(self, case: Case) -> None:
        refused, faults = self.tried(case)
        case.fault = "; ".join(faults) or None
        case.answer = Answer("refused" if refused else "accepted", "")
