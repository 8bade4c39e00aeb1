# SPDX-License-Identifier: Apache-2.0
"""Sentences on how long transfers took: flows of a given size, and groups of connections."""

from __future__ import annotations

from howdah.number import counted, listed, significant, size
from howdah.report.ratio import MOST_NAMED, Wording, compare_with_first
from howdah.report.repeated import (
    CONNECTIONS,
    DIGITS,
    DONE,
    DONE_MEDIAN,
    DONE_P95,
    DONE_SHARE,
    DONE_THOUGHT,
    DONE_THOUGHT_MEDIAN,
    LOST,
    LOST_SHARE,
)
from howdah.report.subject import Subject, places, sides

_LONGER = ("takes {} as long as {}", "takes as long as {}")
_TAIL = ("takes {} as long as {} until 95 % are done", "takes as long as {} until 95 % are done")
_UNDONE = {True: "completes none of it", False: "does not complete it in the time of the run"}
NOTHING_LOST = "No segment was retransmitted."
_MOST_NAMES = 3  # flows and groups that get sentences


def is_transfer(subject: Subject) -> bool:
    """Whether the subject is a transfer, so that its completion time is the main result."""
    return subject.of.has(DONE, DONE_MEDIAN) or DONE in subject.of.absent or DONE_MEDIAN in subject.of.absent


def completion(subjects: list[Subject], beside: list[Subject]) -> list[str]:
    """Sentences on the transfers: completion times, the sides against each other, then losses. "Nothing was
    retransmitted" is left out if a subject in ``beside`` had losses."""
    names = list(dict.fromkeys(each.name for each in subjects))
    sentences = []
    for name in names[:_MOST_NAMES]:
        mine = [each for each in subjects if each.name == name]
        sentences += _one(mine, f"{name}: " if len(names) > 1 else "")
    if len(names) > _MOST_NAMES:
        sentences.append(f"The table has {counted(len(names) - _MOST_NAMES, 'transfer')} more.")
    return sentences + _losses(subjects, beside)


def _one(mine: list[Subject], begin: str) -> list[str]:
    metric = metric_of(mine)
    done = [each for each in mine if each.of.has(metric)]
    never = [f"{begin}{each.placed} {_UNDONE[each.is_group]}." for each in mine if not each.of.has(metric)]
    if not done:
        return never[:MOST_NAMED]
    if len(places(done)) == 1:
        absolute = _at_one_place(done, metric)
    elif len(sides(done)) == 1:
        absolute = _over_places(done, metric)
    else:
        absolute = ""
    ratios = compare_with_first(done, Wording(metric, *_LONGER)) + compare_with_first(done, Wording(DONE_P95, *_TAIL))
    first, *rest = [*([absolute] if absolute else []), *ratios]
    return [f"{begin}{first}", *rest, *_cut_short(done), *never[:MOST_NAMED]]


def metric_of(mine: list[Subject]) -> str:
    """The measure of completion time; the one without the clients' think time, which no sender can shorten, if it is
    known."""
    of_group = mine[0].is_group
    thought = DONE_THOUGHT_MEDIAN if of_group else DONE_THOUGHT
    if any(each.of.has(thought) for each in mine):
        return thought
    return DONE_MEDIAN if of_group else DONE


def _what(each: Subject) -> str:
    connections = each.of.median(CONNECTIONS)
    if not each.is_group:
        return (
            f"The {size(each.flow.size_bytes)} of {each.name}" if each.flow.size_bytes else f"The data of {each.name}"
        )
    if connections is None or connections > 1:
        number = f"{significant(connections)} " if connections else ""
        return f"Half of the {number}connections of {each.name}"
    return f"The connection of {each.name}"


def _verb(each: Subject) -> str:
    return "arrive" if not each.is_group else "are done" if each.of.median(CONNECTIONS) != 1 else "is done"


def _at_one_place(done: list[Subject], metric: str) -> str:
    shown = done
    if len(done) > MOST_NAMED:
        order = sorted(done, key=lambda each: each.of.median(metric) or 0.0)
        shown = [order[0], order[-1]]
    clauses = [f"in {each.of.quantity(metric)} with {each.side}{_tail(each, metric)}" for each in shown]
    span = f", of {len(done)}" if len(done) > MOST_NAMED else ""
    span += ", think time apart" if metric in (DONE_THOUGHT, DONE_THOUGHT_MEDIAN) else ""
    return f"{_what(done[0])} {_verb(done[0])} {'; '.join(clauses)}{span}."


def _tail(each: Subject, metric: str) -> str:
    last = each.of.quantity(DONE_P95) if metric == DONE_MEDIAN else ""
    return f", 95 % in {last}" if last else ""


def _over_places(done: list[Subject], metric: str) -> str:
    """For a single side: the times at the places where it is fastest and slowest."""
    order = sorted(done, key=lambda each: each.of.median(metric) or 0.0)
    first, last = order[0], order[-1]
    with_one = f"with {first.side} " if first.side else ""
    ends = [f"{each.of.quantity(metric)} ({each.place})" for each in (first, last)]
    if first.of.quantity(metric, spread=False) == last.of.quantity(metric, spread=False):
        return (
            f"{_what(first)} {_verb(first)} {with_one}in {ends[0].rpartition(' (')[0]} at each of {len(done)} points."
        )
    if len({_what(each) for each in done}) > 1:  # the size is what is swept
        return f"Over {len(done)} sweep points transfers {with_one}take {ends[0]} to {ends[1]}."
    return f"{_what(first)} {_verb(first)} {with_one}in {ends[0]} to {ends[1]}."


def _cut_short(done: list[Subject]) -> list[str]:
    """Say where some connections did not complete, because the median covers only those that did."""
    short = [(each, share) for each in done if (share := each.of.median(DONE_SHARE)) is not None and share < 1]
    if not short:
        return []
    each, share = min(short, key=lambda item: item[1])
    more = f", and fewer than all at {len(short)} points" if len(short) > 1 else ""
    return [f"With {each.placed} {significant(share * 100, DIGITS)} % of the connections are done at all{more}."]


def _losses(subjects: list[Subject], beside: list[Subject]) -> list[str]:
    counted_ones = [each for each in subjects if each.of.has(LOST, LOST_SHARE)]
    if not counted_ones:
        return []
    if not any(map(_has_lost, counted_ones)):
        return [] if any(map(_has_lost, beside)) else [NOTHING_LOST]
    if len({each.name for each in counted_ones}) > 1:
        return []  # the table has them
    metric = LOST_SHARE if counted_ones[0].is_group else LOST
    if len(places(counted_ones)) == 1 and len(counted_ones) <= MOST_NAMED:
        words = [f"with {each.side} {each.of.quantity(metric)}" for each in counted_ones]
        return [f"Retransmitted {'segments' if metric == LOST_SHARE else 'are'}: {listed(words)}."]
    if len(sides(counted_ones)) == 1:
        return []
    return compare_with_first(
        counted_ones, Wording(metric, "retransmits {} as much as {}", "retransmits as much as {}")
    )


def _has_lost(each: Subject) -> bool:
    return any(each.of.has(name) and not each.of.is_zero(name) for name in (LOST, LOST_SHARE))
