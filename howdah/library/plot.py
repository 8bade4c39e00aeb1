# SPDX-License-Identifier: Apache-2.0
"""Quick pictures for a notebook, by matplotlib. Reports draw their own figures."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from howdah.errors import HowdahError
from howdah.library.rows import Rows
from howdah.metric import known_metrics
from howdah.record.schema import TCP_PROBE
from howdah.record.table import FLOW_NAME
from howdah.report.codec import extremes
from howdah.report.paper.sheet import drawing
from howdah.report.variant import Colour, colours, dashes

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_POINTS = 4000  # of a line: more than a figure has pixels
_MARKS = "os^DvPX*"


def plot(
    acks: Rows,
    metrics: Rows,
    what: str = "cwnd_packets",
    *,
    by: str | Sequence[str] = ("algorithm",),
    x: str | None = None,
    until_s: float | None = None,
    ax: Axes | None = None,
    **where: Any,
) -> Axes:
    """Draw ``what`` and return the axes.

    A column of the ACKs (``cwnd_packets``, ``srtt_us``, ``snd_una_bytes`` …) is drawn over time, up to ``until_s``: a
    line for each flow of each run, colours by ``by``, dashes by flow. A metric (``exit_cwnd_bdp``,
    ``retransmitted_packets`` …) is drawn as points, one for each run and flow, over the axis ``x`` (the first of
    ``by``). ``where`` are values of columns, as in ``Rows.where``: ``e.plot(flow_name="first", repetition=0)``.
    ``Data.plot`` takes the axes that differ between the runs for ``by``.

    Raises HowdahError for what is neither, and without matplotlib.
    """
    groups = [by] if isinstance(by, str) else list(by)
    if ax is None:
        ax = _new_axes()
    if what in TCP_PROBE.names and what not in ("flow", "time_ns"):
        _lines(acks.where(**where), what, groups, until_s, ax)
    elif what in known_metrics():
        _dots(metrics.where(metric=what, **where), what, groups, x or groups[0], ax)
    else:
        columns = ", ".join(name for name in TCP_PROBE.names if name not in ("flow", "time_ns"))
        raise HowdahError(
            f"there is nothing called {what!r} to plot",
            hint=f"Columns of the ACKs are {columns}; metrics are listed in docs/measures.md.",
        )
    return ax


def _new_axes() -> Axes:
    drawing()
    from matplotlib import pyplot  # takes a second to load, and most programs plot nothing

    return pyplot.subplots(layout="constrained")[1]


def _label(values: Sequence[Any]) -> str:
    return ", ".join("—" if value is None else str(value) for value in values)


def _lines(rows: Rows, what: str, groups: list[str], until_s: float | None, ax: Axes) -> None:
    if until_s is not None:
        rows = rows.where(pc.field("time_ns") <= round(until_s * 1e9))
    keys = list(dict.fromkeys([*groups, "experiment", "run", FLOW_NAME]))
    table = rows.select(*dict.fromkeys([*keys, "time_ns", what])).to_arrow()
    if not table.num_rows:
        raise HowdahError("there are no ACKs to plot", hint="'where' leaves none, or the collector tcp_probe was off.")
    lines = list(_split(table, keys))
    names = list(dict.fromkeys(_label(key[: len(groups)]) for key, _rows in lines))
    algorithm = groups.index("algorithm") if "algorithm" in groups else None
    first = {_label(key[: len(groups)]): key for key, _rows in lines}
    palette = colours([(name, str(first[name][algorithm]) if algorithm is not None else name) for name in names])
    flows = sorted({str(key[keys.index(FLOW_NAME)]) for key, _rows in lines})
    dash = _dashes(names, flows, palette)
    labelled: set[str] = set()
    for key, part in lines:
        name, flow = _label(key[: len(groups)]), str(key[keys.index(FLOW_NAME)])
        label = f"{name}, {flow}" if len(flows) > 1 and FLOW_NAME not in groups else name
        values = part[what].to_numpy(zero_copy_only=False).astype(np.float64)
        kept = extremes(values, _POINTS)
        ax.plot(
            part["time_ns"].to_numpy()[kept] / 1e9,
            values[kept],
            color=palette[name].light,
            linestyle=dash[name, flow],
            linewidth=1,
            label=None if label in labelled else label,
        )
        labelled.add(label)
    ax.set_xlabel("time (s)")
    unit = rows.units.get(what)
    ax.set_ylabel(f"{what.removesuffix(f'_{unit}') if unit else what} ({unit})" if unit else what)
    ax.legend()


def _dashes(names: list[str], flows: list[str], palette: dict[str, Colour]) -> dict[tuple[str, str], Any]:
    """Matplotlib's style of each line: the first flow has the dashes of its colour, others take free dashes as long as
    there are any."""
    patterns = dashes()
    taken = [palette[name].dashes for name in names]
    found = dict(zip(((name, flows[0]) for name in names), taken, strict=True))
    free = [number for number in range(len(patterns)) if number not in taken]
    for number, (flow, name) in enumerate((flow, name) for flow in flows[1:] for name in names):
        found[name, flow] = free[number % len(free)] if free else (palette[name].dashes + number + 1) % len(patterns)
    return {line: (0, tuple(patterns[number])) if patterns[number] else "-" for line, number in found.items()}


def _split(table: pa.Table, keys: list[str]) -> list[tuple[tuple[Any, ...], pa.Table]]:
    """The rows of each combination of values, in the order in which they come."""
    plain = [
        table[name].cast(pa.string()) if pa.types.is_dictionary(table[name].type) else table[name] for name in keys
    ]
    codes = np.zeros(table.num_rows, dtype=np.int64)
    for column in plain:
        encoded = column.combine_chunks().dictionary_encode(null_encoding="encode")
        codes = codes * (len(encoded.dictionary) + 1) + encoded.indices.to_numpy(zero_copy_only=False)
    _, starts, member = np.unique(codes, return_index=True, return_inverse=True)
    found = []
    for number in np.argsort(starts):
        rows = np.flatnonzero(member == number)
        found.append((tuple(column[int(rows[0])].as_py() for column in plain), table.take(pa.array(rows))))
    return found


def _dots(rows: Rows, what: str, groups: list[str], x: str, ax: Axes) -> None:
    found = [row for row in rows.to_pylist() if row["value"] is not None]
    if not found:
        raise HowdahError(f"no run has a value of {what!r}", hint="'why' in e.metrics says the reason.")
    metric = known_metrics()[what]
    places = list(dict.fromkeys(row[x] for row in found))
    series = list(dict.fromkeys(_label([row[name] for name in groups]) for row in found))
    algorithms = {_label([row[name] for name in groups]): str(row["algorithm"]) for row in found}
    palette = colours([(name, algorithms[name] if "algorithm" in groups else name) for name in series])
    for number, name in enumerate(series):
        mine = [row for row in found if _label([row[group] for group in groups]) == name]
        shift = 0.0 if x in groups else (number - (len(series) - 1) / 2) * 0.6 / max(len(series), 1)
        at = [places.index(row[x]) + shift for row in mine]
        values = [row["value"] * metric.factor for row in mine]
        ax.plot(at, values, _MARKS[number % len(_MARKS)], color=palette[name].light, alpha=0.8, label=name)
    ax.set_xticks(range(len(places)), [_label([place]) for place in places])
    ax.set_xlabel(x)
    ax.set_ylabel(f"{metric.label} ({metric.shown})" if metric.shown else metric.label)
    ax.legend()
