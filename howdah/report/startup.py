# SPDX-License-Identifier: Apache-2.0
"""Sentences on where flows left their start-up and what it cost."""

from __future__ import annotations

from howdah.algorithm import ALGORITHMS
from howdah.number import duration, listed, significant
from howdah.report.completion import NOTHING_LOST
from howdah.report.heldback import held_clause, held_sentences
from howdah.report.ratio import MOST_NAMED, Wording, compare_with_first
from howdah.report.repeated import (
    CAUSE,
    DIGITS,
    DRAINED,
    DRAINED_BY,
    EXIT,
    EXIT_PACKETS,
    GOODPUT,
    GROWN,
    LOST,
    NINETY,
    QUEUE,
    STARTUP_GAIN,
    STARTUP_LEFT,
    UTILISATION,
)
from howdah.report.subject import Subject, places, sides
from howdah.report.table import cause_text

_FIRST = "The first flow"
_EXITS = "leaves at {} the window of {}", "leaves at the window of {}"
_RETRANSMITS = Wording(LOST, "retransmits {} as many packets as {}", "retransmits as many packets as {}")
_RATE = Wording(GOODPUT, "gets {} the goodput of {}", "gets the goodput of {}")
# Reasons for an absent exit that was looked for.
_NO_EXIT_REASONS = ("the flow did not leave slow start", "no exit seen", "")
_INFINITE = "ssthresh stayed infinite"
_BBR_DRAIN = "bbr-drain"
_NONE_SEEN = "none seen"
_LEAST_USED = 0.5  # least use of the capacity for the statement that a flow reached 90 % of it
_LONG_QUEUE_RTTS = 2


def has_start(subject: Subject) -> bool:
    """Whether there is a measure of how the flow started; never true for a group."""
    is_known = subject.of.has(EXIT, EXIT_PACKETS, LOST, GROWN) or EXIT_PACKETS in subject.of.absent
    return is_known and not subject.is_group


def has_exit(subject: Subject) -> bool:
    return subject.of.has(EXIT, EXIT_PACKETS)


def startup(subjects: list[Subject]) -> list[str]:
    """The sentences on the first flow of each side and place."""
    first: dict[tuple[str, str], Subject] = {}
    for each in subjects:
        first.setdefault((each.side, each.place), each)
    shown = list(first.values())
    if not shown:
        return []
    where, who = places(shown), sides(shown)
    if len(where) > 1 and len(who) == 1:
        sentences = [_ranges(shown), *held_sentences(shown)]
    elif len(where) > 1:
        sentences = [*_over_places(shown), *held_sentences(shown)]
    elif len(shown) == 1:
        sentences = [_single(shown[0])]
    else:
        sentences = [_side_by_side(shown) if len(shown) <= MOST_NAMED else _extremes(shown)]
        sentences += _ratios(shown) if len(shown) == 2 else []
    if any(each.others for each in shown):
        name = shown[0].name
        sentences[0] = f"{_FIRST if name == 'first' else f'{_FIRST}, {name}'}: {sentences[0]}"
    return sentences


def _phase(each: Subject) -> str:
    """The name of the phase that was left: BBR has a start-up, not a slow start."""
    causes = each.of.texts.get(CAUSE, {}).values()
    has_none = each.of.has(STARTUP_GAIN) or each.has_bbr or _BBR_DRAIN in causes
    return "start-up" if has_none else "slow start"


def _exit_words(each: Subject, *, spread: bool = True) -> str:
    """``1.15 BDP by ACK train``; empty if the flow has no exit. On a changing path, the BDP is that of the moment."""
    where = each.of.quantity(EXIT, spread=spread)
    if where and each.path.rate_changes:
        where += " of that moment"
    where = where or each.of.quantity(EXIT_PACKETS, spread=spread)
    if not where:
        return ""
    by = _causes(each, CAUSE)
    drained = _causes(each, DRAINED_BY)
    ended = f" (its drain ended by {drained} at {each.of.quantity(DRAINED, spread=spread)})" if drained else ""
    return f"{where} by {by}{ended}" if by else f"{where}{ended}"


def _causes(each: Subject, name: str) -> str:
    """``loss``, or ``ACK train ×2, loss ×1`` if repetitions differ."""
    causes = list(each.of.texts.get(name, {}).values())
    if causes and name == CAUSE:
        causes += [_NONE_SEEN] * len(each.of.absent.get(name, {}))
    count = {cause: causes.count(cause) for cause in sorted(set(causes), key=lambda cause: -causes.count(cause))}
    return ", ".join(f"{cause_text(cause)}{f' ×{number}' if len(count) > 1 else ''}" for cause, number in count.items())


def _without_exit(each: Subject) -> str:
    """What a flow without an exit did, claiming no more than the data show."""
    grown = each.of.quantity(GROWN)
    if _is_in_startup(each):
        return f"did not leave {_phase(each)}"
    if not grown:
        return _unknown_end(each)
    if any(_INFINITE in reason for reason in each.of.reasons(STARTUP_LEFT)):
        return f"{_unknown_end(each)} and grew to {grown} in flight"
    return f"grew to {grown} in flight"


def _is_in_startup(each: Subject) -> bool:
    """Whether the flow was in its start-up to the end. Without a measure of that, an infinite ssthresh is taken as
    proof only for algorithms known to end slow start by setting ssthresh."""
    if STARTUP_LEFT in each.of.numbers or STARTUP_LEFT in each.of.absent:
        return each.of.median(STARTUP_LEFT) == 0
    reason = next(iter(each.of.reasons(EXIT_PACKETS)), "")
    known = each.algorithm in ALGORITHMS and not each.has_bbr and not each.of.has(GROWN)
    return known and reason.partition(";")[0] in _NO_EXIT_REASONS


def _unknown_end(each: Subject) -> str:
    """``has no known end of its start-up (ssthresh stayed infinite)``."""
    reason = next(iter(each.of.reasons(STARTUP_LEFT) or each.of.reasons(EXIT_PACKETS)), "")
    reason = reason.removeprefix("end of start-up unknown: ")
    return f"has no known end of its start-up ({_INFINITE if reason.partition(';')[0] in _NO_EXIT_REASONS else reason})"


def _retransmitted(each: Subject, *, short: bool = False) -> str:
    text = "nothing" if each.of.is_zero(LOST) else each.of.quantity(LOST)
    return text.replace(" packets", "").replace(" packet", "") if short else text


def _single(each: Subject) -> str:
    exit_text = _exit_words(each)
    parts = [f"left {_phase(each)} at {exit_text}" if exit_text else _without_exit(each)]
    if each.of.has(LOST):
        parts.append(f"retransmitted {_retransmitted(each)}")
    if _is_sustained(each):
        parts.append(f"reached 90 % of the capacity after {each.of.quantity(NINETY)}{_queue(each)}")
    return f"{each.side} {listed(parts)}{_held_back(each, '; ' if exit_text else ': ')}."


def _held_back(each: Subject, mark: str) -> str:
    """What held the flow back. It goes last, because a clause in the middle would become the subject of the rest."""
    why = held_clause(each, left=bool(_exit_words(each)))
    return f"{mark}{why}" if why else ""


def _is_sustained(each: Subject) -> bool:
    """Whether goodput after 90 % of the capacity was reached is at least half of it: one good round trip proves
    nothing."""
    reached = each.of.median(NINETY)
    if reached is None:
        return False
    goodput = each.of.median(GOODPUT)
    if goodput is None:
        used = each.whole.median(UTILISATION)
        return used is not None and used >= _LEAST_USED
    span_s = (each.flow.stop_us - each.flow.start_us) / 1e6
    capacity = each.path.capacity_goodput_bits_per_second
    return goodput * span_s >= _LEAST_USED * capacity * max(span_s - reached, 0.0)


def _queue(each: Subject) -> str:
    """A disproportionate standing queue, to qualify the good result before it."""
    peak = each.whole.median(QUEUE)
    if peak is None:
        return ""
    wait_us = peak * 8e6 / each.path.rate_bits_per_second
    return f", with up to {duration(wait_us)} of queue" if wait_us > _LONG_QUEUE_RTTS * each.path.rtt_us else ""


def _side_by_side(subjects: list[Subject]) -> str:
    """The first clause in full, the others without repetition."""
    clauses: list[str] = []
    left = ""
    lost = False
    for each in subjects:
        clause = each.side
        exit_text = _exit_words(each)
        if exit_text:
            clause += f" at {exit_text}" if left == _phase(each) else f" left {_phase(each)} at {exit_text}"
            left = _phase(each)
        else:
            clause += f" {_without_exit(each)}"
            left = ""
        if each.of.has(LOST):
            short = lost and each.of.median(LOST) and exit_text
            clause += (
                f", and {_retransmitted(each, short=True)}" if short else f" and retransmitted {_retransmitted(each)}"
            )
            lost = True
        why = _held_back(each, " (")
        clauses.append(f"{clause}{why})" if why else clause)
    return f"{'; '.join(clauses)}."


def _extremes(subjects: list[Subject]) -> str:
    """For many sides at one place: which left first and last, and which retransmitted least and most."""
    parts = []
    with_exit = sorted((each for each in subjects if each.of.has(EXIT)), key=lambda each: each.of.median(EXIT) or 0)
    if with_exit:
        first, last = with_exit[0], with_exit[-1]
        earliest = f"{first.side} left slow start earliest, at {_exit_words(first)}"
        parts.append(f"{earliest}, and {last.side} latest, at {_exit_words(last)}")
    lost = sorted((each for each in subjects if each.of.has(LOST)), key=lambda each: each.of.median(LOST) or 0)
    if lost:
        least = f"{lost[0].side} retransmitted least ({_retransmitted(lost[0])})"
        parts.append(f"{least}, {lost[-1].side} most, {_retransmitted(lost[-1])}")
    stayed = [each.side for each in subjects if not has_exit(each)]
    if stayed:
        verb = "has" if len(stayed) == 1 else "have"
        parts.append(f"{listed(stayed[:3])}{' and others' if len(stayed) > 3 else ''} {verb} no exit")
    return f"{'; '.join(parts)}."


def _ratios(subjects: list[Subject]) -> list[str]:
    """Compare the sides with the first: windows and retransmissions, and if no flow left its start-up also goodput."""
    window = EXIT if any(each.of.has(EXIT) for each in subjects) else EXIT_PACKETS
    wording = [Wording(window, *_EXITS), _RETRANSMITS]
    if not any(has_exit(each) for each in subjects):
        wording.append(_RATE)
    return compare_with_first(subjects, *wording)


def _over_places(subjects: list[Subject]) -> list[str]:
    """Compare the sides at each place of the sweep, then say where some of them have no exit."""
    count = len(places(subjects))
    without = []
    for side in sides(subjects)[:MOST_NAMED]:
        stayed = [each for each in subjects if each.side == side and not has_exit(each)]
        if stayed:
            number = "each" if len(stayed) == count else str(len(stayed))
            without.append(
                f"{side} {_without_exit(stayed[0])} (at {number} of {count} sweep points, the first {stayed[0].place})"
            )
    sentences = [*_ratios(subjects), *([f"{'; '.join(without)}."] if without else [])]
    counted = [each.of for each in subjects if each.of.has(LOST)]
    if counted and all(each.is_zero(LOST) for each in counted):
        sentences.append(NOTHING_LOST)
    return sentences or [f"Over {count} sweep points nothing can be compared."]


def _ranges(subjects: list[Subject]) -> str:
    """For one side over the sweep: the places where it left earliest and latest."""
    first = subjects[0]
    stayed = [each for each in subjects if not has_exit(each)]
    left = _range(subjects, EXIT, f"left {_phase(first)} at")
    parts = [left or _without_exit(first)]
    if stayed and left:
        parts[0] += f", has no exit at {len(stayed)} of them"
    lost = _range(subjects, LOST, "retransmitted", placed=False)
    if lost:
        parts.append(lost)
    if not left and (rate := _range(subjects, GOODPUT, "moved")):
        parts.append(rate)
    return f"Over {len(places(subjects))} sweep points {first.side} {listed(parts)}."


def _range(subjects: list[Subject], name: str, verb: str, *, placed: bool = True) -> str:
    """``left slow start at 0.6 BDP (round-trip time 20 ms) to 1.15 BDP (round-trip time 240 ms)``."""
    known = sorted((each for each in subjects if each.of.has(name)), key=lambda each: each.of.median(name) or 0.0)
    if not known:
        return ""
    low, high = (each.of.quantity(name, spread=False) for each in (known[0], known[-1]))
    if low == high:
        where = f" ({known[0].place})" if placed and len(known) == 1 < len(subjects) else ""
        return f"{verb} {'nothing' if all(each.of.is_zero(name) for each in known) else low}{where}"
    if not placed:
        return f"{verb} {significant(known[0].of.median(name) or 0.0, DIGITS)} to {high}"
    return f"{verb} {low} ({known[0].place}) to {high} ({known[-1].place})"
