# SPDX-License-Identifier: Apache-2.0
"""Quick plots for a notebook, in the same style as the figures for print."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from howdah.errors import HowdahError
from howdah.library.rows import Rows
from howdah.metric import known_metrics
from howdah.record.schema import TCP_PROBE
from howdah.record.table import FLOW_NAME
from howdah.report.paper.line import thinned
from howdah.report.paper.panels import draw_lines, legend_keys
from howdah.report.paper.sheet import require_matplotlib
from howdah.report.plot.model import Panel, PlotAxis, PlotLine
from howdah.report.plot.scale import Tick
from howdah.report.plot.style import Style, styles

if TYPE_CHECKING:
    from matplotlib.axes import Axes


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
    """Draw ``what`` and return the matplotlib axes.

    A column of the ACKs (``cwnd_packets``, ``srtt_us``, ``snd_una_bytes`` …) is drawn over time, up to ``until_s``: one
    line per flow and run, with colours by ``by`` and dashes by flow name. A metric (``exit_cwnd_bdp``,
    ``retransmitted_packets`` …) is drawn as one point per run and flow over the axis ``x`` (default: the first of
    ``by``). ``where`` selects rows by column values as ``Rows.where`` does: ``e.plot(flow_name="first",
    repetition=0)``. ``Data.plot`` sets ``by`` to the axes that differ between the runs.

    Raises HowdahError if ``what`` is neither, and if matplotlib is not installed.
    """
    groups = [by] if isinstance(by, str) else list(by)
    require_matplotlib()
    if what in TCP_PROBE.names and what not in ("flow", "time_ns"):
        panel = _lines(acks.where(**where), what, groups, until_s)
    elif what in known_metrics():
        panel = _dots(metrics.where(metric=what, **where), what, groups, x or groups[0])
    else:
        columns = ", ".join(name for name in TCP_PROBE.names if name not in ("flow", "time_ns"))
        raise HowdahError(
            f"there is nothing called {what!r} to plot",
            hint=f"Columns of the ACKs are {columns}; metrics are listed in docs/measures.md.",
        )
    if ax is None:
        from matplotlib import pyplot  # slow to load (a second), and most programs plot nothing

        ax = pyplot.subplots(layout="constrained")[1]
    draw_lines(ax, panel, ax.bbox.width / ax.figure.dpi)
    ax.autoscale()  # include what these axes already show
    ax.set(xlabel=panel.across.label, ylabel=panel.up.label)
    keys = legend_keys([ax])
    ax.legend(list(keys.values()), list(keys))
    return ax


def _label(row: Mapping[str, Any], groups: Sequence[str]) -> str:
    return ", ".join("—" if row[name] is None else str(row[name]) for name in groups)


def _looks(rows: Sequence[Mapping[str, Any]], groups: list[str]) -> dict[str, Style]:
    first = {_label(row, groups): row for row in reversed(rows)}
    names = list(dict.fromkeys(_label(row, groups) for row in rows))
    return styles(names, {name: str(first[name]["algorithm"]) for name in names} if "algorithm" in groups else None)


def _lines(rows: Rows, what: str, groups: list[str], until_s: float | None) -> Panel:
    if until_s is not None:
        rows = rows.where(pc.field("time_ns") <= round(until_s * 1e9))
    keys = list(dict.fromkeys([*groups, "experiment", "run", FLOW_NAME]))
    table = rows.select(*dict.fromkeys([*keys, "time_ns", what])).to_arrow()
    if not table.num_rows:
        raise HowdahError("there are no ACKs to plot", hint="'where' selects none, or the collector tcp_probe was off.")
    found = [(dict(zip(keys, key, strict=True)), part) for key, part in _split(table, keys)]
    looks = _looks([row for row, _part in found], groups)
    several = len({row[FLOW_NAME] for row, _part in found}) > 1 and FLOW_NAME not in groups
    unit = rows.units.get(what)
    up = f"{what.removesuffix(f'_{unit}') if unit else what} ({unit})" if unit else what
    panel = Panel("", PlotAxis("time (s)"), PlotAxis(up), [], "time")
    for row, part in found:
        name = _label(row, groups)
        seconds = part["time_ns"].to_numpy() / 1e9
        x, y = thinned(seconds, part[what].to_numpy(zero_copy_only=False).astype(np.float64))
        label = f"{name}, {row[FLOW_NAME]}" if several else name
        panel.lines.append(PlotLine(label, looks[name], x.tolist(), y.tolist()))
    return panel


def _split(table: pa.Table, keys: list[str]) -> list[tuple[tuple[Any, ...], pa.Table]]:
    """Group the rows by their values of ``keys``, in order of first appearance."""
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


def _dots(rows: Rows, what: str, groups: list[str], x: str) -> Panel:
    found = [row for row in rows.to_pylist() if row["value"] is not None]
    if not found:
        raise HowdahError(f"no run has a value for {what!r}", hint="See the column 'why' of e.metrics.")
    metric = known_metrics()[what]
    places = list(dict.fromkeys(row[x] for row in found))
    lines = {name: PlotLine(name, style, [], []) for name, style in _looks(found, groups).items()}
    for row in found:
        line = lines[_label(row, groups)]
        line.x.append(float(places.index(row[x])))
        line.y.append(row["value"] * metric.factor)
    across = PlotAxis(x, ticks=[Tick(float(number), _label({x: place}, [x])) for number, place in enumerate(places)])
    up = PlotAxis(metric.title)
    return Panel("", across, up, list(lines.values()), "marks")
