# SPDX-License-Identifier: Apache-2.0
"""Changes of the path as steps: rate, added delay in each direction, loss in each direction.

Steps are (microseconds after the epoch, value from then on), sorted, without equal neighbours; before the first one the
path's own value holds. The last one, at the end of the run, restores it, so that the path can be measured.
"""

from __future__ import annotations

import bisect
import math
import random
from dataclasses import dataclass, field
from typing import TypeVar

from howdah.errors import ProfileError
from howdah.plan.perturbation import derived_seed
from howdah.plan.variation import normals
from howdah.profile import Cell
from howdah.profile.path import PathSection
from howdah.profile.varying import CHANGING, HandoverSection, RateVariationSection, StepSection, read_trace

Steps = list[tuple[int, int]]
_Value = TypeVar("_Value", int, float)
_Window = tuple[int, int, float]  # begin, end, and the loss in between


@dataclass(frozen=True)
class Timetable:
    """Rates in bit/s, ``forward`` and ``reverse`` in added microseconds (may be negative), losses as ratios."""

    rate: Steps = field(default_factory=list)
    forward: Steps = field(default_factory=list)
    reverse: Steps = field(default_factory=list)
    forward_loss: list[tuple[int, float]] = field(default_factory=list)
    reverse_loss: list[tuple[int, float]] = field(default_factory=list)
    reverse_rate: Steps = field(default_factory=list)


def timetable(cell: Cell) -> Timetable:
    """Return the profile's changes, without its delay variation. Raise ProfileError for a bad trace."""
    scenario, path = cell.scenario, cell.scenario.path
    duration = scenario.duration
    steps = _steps(cell)
    rate = [(step.at, step.rate) for step in steps if step.rate is not None]
    reverse_rate = [(step.at, step.reverse_rate) for step in steps if step.reverse_rate is not None]
    if path.rate_variation is not None:
        seed = derived_seed(scenario.seed, "rate-variation", cell.repetition)
        rate = _drawn_rates(path, path.rate_variation, duration, seed)
    forward, reverse = _delays(path, steps)
    outages = [(step.at, step.at + step.outage, 1.0) for step in steps if step.outage is not None]
    if path.handover is not None:
        generator = random.Random(derived_seed(scenario.seed, "handover", cell.repetition))
        added, silent = _handovers(path.handover, duration, generator)
        forward = add_steps([forward, [(at, us // 2) for at, us in added]])
        reverse = add_steps([reverse, [(at, us - us // 2) for at, us in added]])
        outages += silent
    return Timetable(
        rate=_ended(rate, path.rate, duration),
        forward=_ended(forward, 0, duration),
        reverse=_ended(reverse, 0, duration),
        forward_loss=_losses(steps, "loss", float(path.loss), outages, duration),
        reverse_loss=_losses(steps, "reverse_loss", float(path.reverse_loss), outages, duration),
        reverse_rate=_ended(reverse_rate, path.reverse_rate or 0, duration),
    )


def _steps(cell: Cell) -> list[StepSection]:
    """Return the steps of the schedule and of the trace, ordered by time. Raise ProfileError if both change the same
    quantity, or if the trace changes what a link determines."""
    path, duration_us = cell.scenario.path, cell.scenario.duration
    written = [step for step in path.schedule if step.at < duration_us]
    if path.trace is None:
        return written
    at = ("path", "trace", "file")
    traced = read_trace(path.trace, cell.absolute(path.trace.file, *at), cell.place(*at), duration_us)
    says = _said(traced)
    for name, why in (
        ("rate", "the link's trace says its rate" if path.link is not None else None),
        ("reverse_rate", path.no_reverse_steps),
    ):
        if name in says and why:
            hint = f"take the column {name} out"
            raise ProfileError(f"{why}; this one may say delays and losses", where=cell.place(*at), hint=hint)
    if both := says & _said(written):
        what = f"path.trace and path.schedule both say {' and '.join(sorted(both))}"
        raise ProfileError(what, where=cell.place(*at), hint="let one of them say it")
    return sorted([*written, *traced], key=lambda step: step.at)


def _said(steps: list[StepSection]) -> set[str]:
    """Return the quantities that the steps change; a round trip is a delay of both directions."""
    names = {name for name in CHANGING for step in steps if getattr(step, name) is not None}
    return (names | {"forward_delay", "reverse_delay"}) - {"rtt"} if "rtt" in names else names


def value_at(steps: list[tuple[int, _Value]], time_us: int, before: _Value) -> _Value:
    """Return the value that holds at a time."""
    number = bisect.bisect_right(steps, time_us, key=lambda step: step[0])
    return steps[number - 1][1] if number else before


def add_steps(parts: list[Steps]) -> Steps:
    """Return the sum of several step functions, each 0 before its first step."""
    parts = [part for part in parts if part]
    positions = [0] * len(parts)
    values = [0] * len(parts)
    summed: Steps = []
    for time_us in sorted({at_us for part in parts for at_us, _ in part}):
        for number, part in enumerate(parts):
            while positions[number] < len(part) and part[positions[number]][0] <= time_us:
                values[number] = part[positions[number]][1]
                positions[number] += 1
        if not summed or summed[-1][1] != sum(values):
            summed.append((time_us, sum(values)))
    return summed


def _ended(steps: list[tuple[int, _Value]], base: _Value, duration_us: int) -> list[tuple[int, _Value]]:
    """Remove steps that change nothing, and add the return to ``base`` at the end of the run."""
    kept: list[tuple[int, _Value]] = []
    now = base
    for at_us, value in steps:
        if at_us < duration_us and value != now:
            kept.append((at_us, value))
            now = value
    if kept:
        kept.append((duration_us, base))
    return kept


def _delays(path: PathSection, steps: list[StepSection]) -> tuple[Steps, Steps]:
    """Return the scheduled delays relative to the path's own; a round trip is divided in the path's proportion."""
    forward_us, reverse_us = path.forward_delay_us, path.reverse_delay_us
    forward: Steps = []
    reverse: Steps = []
    for step in steps:
        ahead, back = step.forward_delay, step.reverse_delay
        if step.rtt is not None:
            ahead = step.rtt * forward_us // (forward_us + reverse_us)
            back = step.rtt - ahead
        if ahead is not None:
            forward.append((step.at, ahead - forward_us))
        if back is not None:
            reverse.append((step.at, back - reverse_us))
    return forward, reverse


def _drawn_rates(path: PathSection, asked: RateVariationSection, duration_us: int, seed: int) -> Steps:
    """Draw a uniform rate per interval from correlated normal values, like the delay variation (a Gaussian copula)."""
    values = normals(asked.interval, asked.correlation_time, random.Random(seed))
    steps: Steps = []
    for at_us, value in zip(range(0, duration_us, asked.interval), values, strict=False):
        share = 0.5 * math.erfc(-value / math.sqrt(2))
        # Whole multiples of 8 kbit/s: the kernel counts bytes, and a smaller step has no effect.
        steps.append((at_us, max(asked.least, asked.least + round((path.rate - asked.least) * share / 8000) * 8000)))
    return steps


def _handovers(asked: HandoverSection, duration_us: int, generator: random.Random) -> tuple[Steps, list[_Window]]:
    """Return the round trip that is added from each hand-over on (and from the beginning), and the outages."""
    added: Steps = [(0, int(generator.random() * asked.delay))]
    silent: list[_Window] = []
    for at_us in range(asked.every if asked.first is None else asked.first, duration_us, asked.every):
        if asked.outage:
            silent.append((at_us, at_us + asked.outage, 1.0))
        added.append((at_us, int(generator.random() * asked.delay)))
    return added, silent


def _losses(
    steps: list[StepSection], name: str, base: float, outages: list[_Window], duration_us: int
) -> list[tuple[int, float]]:
    """Return the random losses of one direction: those of a limited time override lasting ones, outages all."""
    lasting: list[tuple[int, float]] = []
    limited: list[_Window] = []
    for step in steps:
        loss = getattr(step, name)
        if loss is not None and step.loss_for is not None:
            limited.append((step.at, step.at + step.loss_for, float(loss)))
        elif loss is not None:
            lasting.append((step.at, float(loss)))
    return _ended(_overlaid(_overlaid(lasting, base, limited), base, outages), base, duration_us)


def _overlaid(steps: list[tuple[int, float]], base: float, windows: list[_Window]) -> list[tuple[int, float]]:
    """Return steps with the windows' values; of overlapping windows, the one that began last wins."""
    edges = sorted({at_us for at_us, _ in steps} | {edge for begin, end, _ in windows for edge in (begin, end)})
    waiting = sorted(windows, reverse=True)
    open_windows: list[_Window] = []
    found: list[tuple[int, float]] = []
    for at_us in edges:
        while waiting and waiting[-1][0] <= at_us:
            open_windows.append(waiting.pop())
        while open_windows and open_windows[-1][1] <= at_us:
            open_windows.pop()
        found.append((at_us, open_windows[-1][2] if open_windows else value_at(steps, at_us, base)))
    return found
