# SPDX-License-Identifier: Apache-2.0
"""What was found, in a sentence or two: for the top of a page and for the end of a command."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby

from howdah.number import between, listed, significant
from howdah.report.plot.swept import field_name
from howdah.report.table import Block, Table, TableCell, TableRow

_DIGITS = 3
_FIRST = "The first flow"
_MOST_ONE_BY_ONE = 4  # variants that get a clause each; of more, the extremes are named
_EXIT, _EXIT_PACKETS, _CAUSE, _LOST = "exit_cwnd_bdp", "exit_cwnd_packets", "exit_cause", "retransmitted_packets"
_GROWN = "growth_end_bdp"
_LEFT, _GAIN = "startup_left", "startup_gain"
_TRAFFIC = "traffic="
_NINETY, _DONE, _GROUP_LOST = "time_to_90_percent_s", "completion_time_median_s", "retransmission_ratio"


@dataclass(frozen=True)
class _Said:
    """One variant at one sweep point: the flow that speaks for it, its cells by measure, and how many flows do not."""

    point: str
    who: str
    algorithm: str
    row: TableRow
    cells: dict[str, TableCell]
    units: dict[str, str]
    others: int

    def value(self, name: str) -> float | None:
        cell = self.cells.get(name)
        return None if cell is None else cell.value

    def quantity(self, name: str, *, spread: bool = True) -> str:
        """``1.15 BDP (1.12 … 1.18)``; empty where there is no such number."""
        cell = self.cells.get(name)
        if cell is None or cell.value is None:
            return ""
        number, unit = significant(cell.value, _DIGITS), self.units[name]
        text = f"{number} {unit.removesuffix('s') if number == '1' and unit == 'packets' else unit}".rstrip()
        return f"{text} ({between(*cell.spread, _DIGITS)})" if spread and cell.spread else text

    @property
    def left(self) -> str:
        """A control that paces like BBR has no slow start: it has a start-up."""
        return "slow start" if self.value(_GAIN) is None else "start-up"

    @property
    def stayed(self) -> bool:
        """Whether there is an exit to look for, and the flow was in its start-up to its end."""
        if _LEFT in self.cells:
            return not self.exit and self.value(_LEFT) == 0
        return not self.exit and self.value(_GROWN) is None

    @property
    def stay(self) -> str:
        """What it did in the place of an exit."""
        if self.stayed:
            return f"did not leave {self.left}"
        grown = self.quantity(_GROWN)
        return f"grew to {grown} in flight" if grown else "did not show the end of its start-up"

    @property
    def exit(self) -> str:
        """``1.15 BDP by ACK train``; empty where the flow did not leave slow start."""
        where = self.quantity(_EXIT) or self.quantity(_EXIT_PACKETS)
        cause = self.cells.get(_CAUSE)
        return f"{where} by {cause.text}" if where and cause is not None and cause.text != "—" else where


def found(table: Table) -> list[str]:
    """Sentences: what the algorithms did, then what the numbers leave out. At least one."""
    said = _ordinary(list(_said(table)))
    sentences = [*_groups(said), *_flows([each for each in said if _speaks(each)])]
    if any(" … " in sentence for sentence in sentences):
        sentences.append(f"In brackets: {table.spread_words}.")
    sentences += [*_modelled(table), *_left_out(table)]
    return sentences or ["No run has a number that says how the flows started."]


def _said(table: Table) -> Iterator[_Said]:
    for point, blocks in table.points:
        for block in blocks:
            if block.count and block.rows:
                row = block.rows[0]
                named = zip(table.measures, row.cells, strict=True)
                cells = {measure.name: cell for measure, cell in named if cell is not None}
                units = {measure.name: measure.unit for measure in table.measures}
                yield _Said(point, block.variant.label, block.variant.algorithm, row, cells, units, len(block.rows) - 1)


def _ordinary(said: list[_Said]) -> list[_Said]:
    """Without the runs that check the traffic generator, unless there are no others."""
    return [each for each in said if not each.point.startswith(_TRAFFIC)] or said


def _speaks(each: _Said) -> bool:
    """Whether anything is known of the start of its flow: no group of connections, and no run without a measure."""
    return any(name in each.cells for name in (_EXIT, _EXIT_PACKETS, _LOST)) and each.value(_DONE) is None


def _flows(said: list[_Said]) -> list[str]:
    points = list(dict.fromkeys(each.point for each in said))
    if not said:
        return []
    if len(points) > 1:
        text = _swept(said, points)
    elif len(said) == 1:
        text = _alone(said[0])
    else:
        text = _side_by_side(said) if len(said) <= _MOST_ONE_BY_ONE else _extremes(said)
    if not any(each.others for each in said):
        return [text]
    flow = said[0].row.flow
    return [f"{_FIRST}: {text}" if flow == "first" else f"{_FIRST}, {flow}: {text}"]


def _alone(each: _Said) -> str:
    parts = [f"left {each.left} at {each.exit}" if each.exit else each.stay]
    if each.value(_LOST) is not None:
        parts.append(f"retransmitted {_lost(each)}")
    if each.value(_NINETY) is not None:
        parts.append(f"reached 90 % of the capacity after {each.quantity(_NINETY)}")
    return f"{each.who} {listed(parts)}."


def _side_by_side(said: list[_Said]) -> str:
    """The first clause in full, the others without what they would repeat."""
    clauses: list[str] = []
    left = ""
    lost = False
    for each in said:
        clause = each.who
        if each.exit:
            clause += f" at {each.exit}" if left == each.left else f" left {each.left} at {each.exit}"
            left = each.left
        else:
            clause += f" {each.stay}"
            left = ""
        if each.value(_LOST) is not None:
            clause += (
                f", and {_lost(each, short=True)}"
                if lost and each.value(_LOST)
                else f" and retransmitted {_lost(each)}"
            )
            lost = True
        clauses.append(clause)
    return f"{'; '.join(clauses)}."


def _lost(each: _Said, *, short: bool = False) -> str:
    text = each.quantity(_LOST) if each.value(_LOST) else "nothing"
    return text.replace(f" {each.units[_LOST]}", "") if short else text


def _extremes(said: list[_Said]) -> str:
    """Of many: who left first and last, who retransmitted least and most."""
    parts = []
    with_exit = sorted(
        (each for each in said if each.value(_EXIT) is not None), key=lambda each: each.value(_EXIT) or 0
    )
    if with_exit:
        first, last = with_exit[0], with_exit[-1]
        parts.append(
            f"{_place(first)} left slow start earliest, at {first.exit}, and {_place(last)} latest, at {last.exit}"
        )
    lost = sorted((each for each in said if each.value(_LOST) is not None), key=lambda each: each.value(_LOST) or 0)
    if lost:
        most = f"{_place(lost[-1])} most, {lost[-1].quantity(_LOST)}"
        parts.append(f"{_place(lost[0])} retransmitted least ({_lost(lost[0])}), {most}")
    stayed = [_place(each) for each in said if each.stayed]
    if stayed:
        parts.append(f"{listed(stayed[:3])}{' and others' if len(stayed) > 3 else ''} did not leave it")
    return f"{'; '.join(parts)}."


def _place(each: _Said) -> str:
    return f"{each.who} ({_point(each.point)})" if each.point else each.who


def _swept(said: list[_Said], points: list[str]) -> str:
    """Over sweep points: of few variants each with its range, of many the extremes over all."""
    by_variant = {who: list(each) for who, each in groupby(sorted(said, key=lambda s: s.who), key=lambda s: s.who)}
    order = list(dict.fromkeys(each.who for each in said))
    over = f"Over {len(points)} sweep points "
    if len(order) > _MOST_ONE_BY_ONE:
        return over + _extremes(said)
    clauses = []
    for who in order:
        mine = by_variant[who]
        clause = f"{who} {_range(mine, _EXIT, f'left {mine[0].left} at') or mine[0].stay}"
        stayed = sum(each.stayed for each in mine)
        if stayed and stayed < len(mine):
            clause += f", did not leave it at {stayed} of them"
        lost = _range(mine, _LOST, "retransmitted", placed=False)
        clauses.append(f"{clause} and {lost}" if lost else clause)
    return f"{over}{'; '.join(clauses)}."


def _range(said: list[_Said], name: str, verb: str, *, placed: bool = True) -> str:
    """``left slow start at 0.6 BDP (round-trip time 20 ms) to 1.15 BDP (round-trip time 240 ms)``."""
    known = sorted((each for each in said if each.value(name) is not None), key=lambda each: each.value(name) or 0.0)
    if not known:
        return ""
    low, high = (each.quantity(name, spread=False) for each in (known[0], known[-1]))
    if low == high:
        return f"{verb} {low}"
    if not placed:
        return f"{verb} {significant(known[0].value(name) or 0.0, _DIGITS)} to {high}"
    return f"{verb} {low} ({_point(known[0].point)}) to {high} ({_point(known[-1].point)})"


def _point(point: str) -> str:
    """A sweep point as a reader wants it: ``path.rtt=20 ms`` is ``round-trip time 20 ms``."""
    parts = [each.partition("=") for each in point.split(", ")]
    return ", ".join(f"{field_name(name)} {value}" if value else name for name, _, value in parts)


def _groups(said: list[_Said]) -> list[str]:
    """Of groups of connections."""
    with_group = [each for each in said if each.value(_DONE) is not None]
    if not with_group:
        return []
    ordered = sorted(with_group, key=lambda each: each.value(_DONE) or 0.0)
    clauses = []
    for each in with_group if len(with_group) <= _MOST_ONE_BY_ONE else [ordered[0], ordered[-1]]:
        clause = f"{_place(each)} in {each.quantity(_DONE)}"
        if each.value(_GROUP_LOST) is not None:
            clause += f" with {each.quantity(_GROUP_LOST, spread=False)} of its segments retransmitted"
        clauses.append(clause)
    return [f"Half of the connections were done: {'; '.join(clauses)}."]


def _modelled(table: Table) -> list[str]:
    """Which numbers are a simulator's."""
    if not table.models:
        return []
    names = listed(list(table.models))
    if table.all_modelled:
        return [f"No kernel ran: the numbers are those of a {names}."]
    return [f"Some of the numbers are those of a {names}, where no kernel ran."]


def _left_out(table: Table) -> list[str]:
    """How many runs count in none of it, and why."""
    blocks: list[Block] = [block for _, blocks in table.points for block in blocks]
    out = [each for block in blocks for each in block.excluded]
    if not out:
        return []
    total = sum(block.total for block in blocks)
    verdicts = Counter(verdict for _, verdict, _ in out)
    counts = listed([f"{count} {verdict}" for verdict, count in verdicts.most_common()])
    reasons = list(dict.fromkeys(why for _, _, why in out if why))
    why = f" ({reasons[0]}{' and others' if len(reasons) > 1 else ''})" if reasons else ""
    if len(out) == total:
        return [f"No run counts, so nothing is said of the algorithms: {counts}{why}."]
    return [f"{len(out)} of {total} runs do not count: {counts}{why}."]
