# SPDX-License-Identifier: Apache-2.0
"""What happens while runs are made, as data: for ``howdah run --json-events`` and for programs (``howdah.run``).

An event is an object with ``event`` and, for each kind, the fields of ``RunEvent``. Events come in the order in
which they happen. An event more, or a field more, changes nothing for a reader that passes over what it does not know.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, NotRequired, TypedDict

from howdah.work.batch import Outcome, Rest, Work

Kind = Literal["build", "begin", "start", "progress", "run", "say", "end"]


class RunEvent(TypedDict):
    """``build``: a step (``what``, ``done`` of ``total``, which is 0 while it is not known). ``begin``: ``experiment``
    and how many ``runs`` it has. ``start`` and ``progress`` of a ``run``: its ``phase``, and the simulated seconds done
    and in all. ``run``: it has ended, with a ``verdict`` or an ``error``. ``say``: a sentence for a person. ``end``:
    the ``exit_code`` of the command, and the ``report``."""

    event: Kind
    what: NotRequired[str]
    done: NotRequired[int]
    total: NotRequired[int]
    experiment: NotRequired[str]
    runs: NotRequired[int]
    run: NotRequired[str]
    phase: NotRequired[str]
    simulated_s: NotRequired[float]
    of_s: NotRequired[float]
    verdict: NotRequired[str | None]
    error: NotRequired[str | None]
    reused: NotRequired[bool]
    wall_s: NotRequired[float]
    report: NotRequired[str | None]
    exit_code: NotRequired[int]


class Events:
    """Listens to builds and batches, and hands on each event."""

    def __init__(self, tell: Callable[[RunEvent], None]) -> None:
        self.tell = tell
        self._step: tuple[str, int, int] | None = None
        self._told: dict[str, tuple[Any, ...]] = {}
        self._ended = 0

    def say(self, text: str) -> None:
        self.tell({"event": "say", "what": text})

    def build(self, what: str, done: int, total: int) -> None:
        if self._step != (what, done, total):
            self._step = (what, done, total)
            self.tell({"event": "build", "what": what, "done": done, "total": total})

    def batch(self, active: list[Work], outcomes: list[Outcome], rest: Rest) -> None:
        """``outcomes`` grows at its end; of a long sweep, those that ``rest`` counts are no longer in it."""
        for outcome in outcomes[max(self._ended - rest.past.count, 0) :]:
            self._end(outcome)
        self._ended = rest.past.count + len(outcomes)
        for work in active:
            name, state = work.cell.directory_name, (work.phase, work.done_us)
            if name not in self._told:
                self.tell({"event": "start", "run": name})
            if self._told.get(name) != state:
                self._told[name] = state
                done, whole = work.done_us / 1e6, work.of_us / 1e6
                told: RunEvent = {"event": "progress", "run": name, "phase": work.phase}
                self.tell({**told, "simulated_s": done, "of_s": whole})

    def _end(self, outcome: Outcome) -> None:
        name = outcome.cell.directory_name
        self._told.pop(name, None)
        error = None if outcome.error is None else str(outcome.error)
        told: RunEvent = {"event": "run", "run": name, "verdict": outcome.verdict, "error": error}
        self.tell({**told, "reused": outcome.reused, "wall_s": round(outcome.wall_s, 3)})
