# SPDX-License-Identifier: Apache-2.0
"""The subjects of sentences: one flow or group of one side of the comparison, at one place of the sweep.

The *sides* are normally the variants. If there is only one variant, the sides are the values of a swept field that
changes the method rather than the path or the load: a sysctl, an initial window, a receiver. If several kernels or
experiments have the same algorithms, they are the sides, because each algorithm has its counterpart. The rest of the
sweep point is the *place*; sides are only compared at the same place.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from howdah.algorithm import ALGORITHMS
from howdah.plan.path import Path
from howdah.plan.plan import BACKGROUND, Flow
from howdah.report.plot.swept import field_name, with_value
from howdah.report.repeated import Repeated
from howdah.report.table import Block, Table, TableRow

CHECKING = "traffic"  # axis of the runs that check the traffic generator
_OWN = (CHECKING, "control", "unknown")
_OF_THE_PLACE = {"size", "connections", "requests", "request", "think", "start", "stop", "rtt", "duration", "every"}
_BBR = "bbr"
_PATHS = "paths/"  # where the ready-made ones are


@dataclass(frozen=True)
class Subject:
    """One flow or group of one side at one place. ``of`` has what its runs report for the flow or group, ``whole`` for
    the run as a whole. ``others`` is the number of further measured flows and groups in the same runs."""

    side: str
    place: str
    algorithm: str
    name: str
    flow: Flow
    path: Path
    of: Repeated
    whole: Repeated
    others: int = 0
    variant: str = ""
    axes: Mapping[str, str] = field(default_factory=dict)  # those of the sweep that have several values
    is_variant: bool = True  # else its side is a value of a swept field

    @property
    def placed(self) -> str:
        return f"{self.side} ({self.place})" if self.place else self.side

    @property
    def is_group(self) -> bool:
        return self.flow.group is not None

    @property
    def has_bbr(self) -> bool:
        """Whether its start-up is BBR's, which is not a slow start."""
        known = ALGORITHMS.get(self.algorithm)
        return known is not None and known.base == _BBR


def subjects_of(table: Table) -> list[Subject]:
    """The subjects of the runs that count, in table order. Runs that check the traffic generator are left out unless
    there are no others."""
    blocks = [block for _, of_point in table.points for block in of_point if block.count and block.rows]
    blocks = [block for block in blocks if CHECKING not in block.axes] or blocks
    swept = _swept(blocks)
    contrast = None
    if len({block.variant.key for block in blocks}) == 1:
        contrast = next((name for name in swept if not _is_place(name)), None)
    by_home = _have_counterparts(blocks)
    return [subject for block in blocks for subject in _of_block(block, swept, contrast, by_home)]


def _have_counterparts(blocks: list[Block]) -> bool:
    """Whether several kernels or experiments have the same algorithms, at least two."""
    of_home: dict[str, set[str]] = {}
    for block in blocks:
        of_home.setdefault(block.variant.home, set()).add(block.variant.algorithm)
    first, *others = of_home.values() or [set()]
    return len(first) > 1 and bool(others) and all(each == first for each in others)


def _swept(blocks: list[Block]) -> list[str]:
    """The fields with several values."""
    values: dict[str, set[str]] = {}
    for block in blocks:
        for name, value in block.axes.items():
            values.setdefault(name, set()).add(str(value))
    return [name for name, each in values.items() if len(each) > 1]


def _is_place(name: str) -> bool:
    section, _, rest = name.partition(".")
    return section == "path" or name in _OWN or rest.rpartition(".")[2] in _OF_THE_PLACE or name in _OF_THE_PLACE


def _of_block(block: Block, swept: list[str], contrast: str | None, by_home: bool) -> Iterator[Subject]:
    place = ", ".join(
        [block.variant.algorithm] * by_home
        + [_value(name, block) for name in swept if name != contrast and name in block.axes]
    )
    rows = [row for row in block.rows if row.planned is not None and row.planned.role != BACKGROUND]
    side = _value(contrast, block) if contrast else block.variant.home if by_home else _side(block, rows)
    for row in rows:
        assert row.planned is not None and block.path is not None
        if row.of.numbers or row.of.texts or row.of.absent:
            yield Subject(
                side,
                place,
                row.planned.algorithm,
                row.flow,
                row.planned,
                block.path,
                row.of,
                block.whole,
                len(rows) - 1,
                block.variant.label,
                {name: str(block.axes[name]) for name in swept if name in block.axes},
                contrast is None,
            )


def _side(block: Block, rows: list[TableRow]) -> str:
    """The variant's label. If no flow has the variant's algorithm, because each flow names its own, the first flow's
    algorithm."""
    named = [row.planned.algorithm for row in rows if row.planned is not None]
    return block.variant.label if not named or block.variant.algorithm in named else named[0]


def _value(name: str, block: Block) -> str:
    """A swept value as a reader expects it: ``path.rtt=20 ms`` becomes ``round-trip time 20 ms``."""
    value = str(block.axes.get(name, "")).removeprefix(_PATHS)
    return with_value(name, value) if value else f"no {field_name(name)}"


def sides(subjects: list[Subject]) -> list[str]:
    """The sides in order; the others are compared with the first."""
    return list(dict.fromkeys(each.side for each in subjects))


def places(subjects: list[Subject]) -> list[str]:
    return list(dict.fromkeys(each.place for each in subjects))
