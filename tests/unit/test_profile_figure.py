# SPDX-License-Identifier: Apache-2.0
"""Figures in a profile: what each kind needs, and that a wrong one is named with its line before anything runs."""

from __future__ import annotations

from pathlib import Path

import pytest

from howdah.errors import ProfileError
from howdah.profile import load
from howdah.profile.figure import FigureSection

BASE = """\
howdah: 1
name: drawn
path: {rate: 10 Mbit/s, rtt: [20 ms, 50 ms], buffer: [1 bdp, 6.10 bdp]}
algorithm: [cubic, reno]
flows: [{}, {name: late, start: 1 s}]
duration: 2 s
figures:
"""
GOOD = [
    "id: a, title: T, kind: sweep, x: path.rtt, y: utilisation, panels: path.buffer",
    "id: a, title: T, kind: sweep, x: path.rtt, y: utilisation, at: {path.buffer: 1 bdp},"
    " relative_to: {algorithm: cubic}",
    "id: a, title: T, kind: bars, x: algorithm, lines: path.rtt, y: exit_time_s, flow: late,"
    " at: {path.buffer: 6.10 bdp}",
    "id: a, title: T, kind: time, series: [cwnd, queue], at: {path.buffer: 1 bdp, path.rtt: 20 ms}, window: [0 s, 1 s]",
    "id: a, title: T, kind: time, series: [cwnd], panels: algorithm, at: {path.buffer: 1 bdp, path.rtt: 20 ms}",
    "id: a, title: T, kind: table, rows: [algorithm, path.buffer], columns: path.rtt, y: utilisation,"
    " paper: {label: Table 3, 'reno, 1 bdp': {20 ms: 95.6 %}}",
    "id: a, title: T, kind: table, rows: algorithm, columns: [{metric: exit_time_s, flow: 2, title: exit}, exit_cause],"
    " flow: 1, at: {path.buffer: 1 bdp, path.rtt: 20 ms}, paper: {cubic: {exit: 1.5 s, exit_cause: loss}}",
    "id: a, title: T, kind: sweep, x: path.rtt, y: utilisation, panels: path.buffer,"
    " paper: {points: {'1 bdp / cubic': {20 ms: 95 %}}}",
]
WRONG = [
    ("id: a, title: T, kind: sweep, x: path.rtt", "a figure of kind sweep needs y"),
    ("id: a, title: T, kind: cdf, metric: completion_time_s, x: path.rtt", "a figure of kind cdf has no x"),
    ("id: a, title: T, kind: pie", "expected sweep, bars, cdf, time or table"),
    ("id: a, title: T, kind: sweep, x: path.rtt, y: utilisaton, panels: path.buffer", "did you mean utilisation"),
    ("id: a, title: T, kind: sweep, x: path.rt, y: utilisation, panels: path.buffer", "did you mean path.rtt"),
    ("id: a, title: T, kind: sweep, x: path.rtt, y: utilisation", "the axis path.buffer is not fixed"),
    (
        "id: a, title: T, kind: sweep, x: path.rtt, y: utilisation, at: {path.buffer: 2 bdp}",
        "path.buffer is never 2 bdp",
    ),
    ("id: a, title: T, kind: sweep, x: path.rtt, y: exit_time_s, flow: 3, panels: path.buffer", "there is no flow 3"),
    ("id: a, title: T, kind: sweep, x: path.rtt, y: exit_time_s, flow: all, panels: path.buffer", "needs take"),
    (
        "id: a, title: T, kind: sweep, x: path.rtt, y: exit_time_s, take: sum, panels: path.buffer",
        "take is over flow: all",
    ),
    (
        "id: a, title: T, kind: cdf, metric: completion_time_s, at: {path.buffer: 1 bdp, path.rtt: 20 ms}",
        "no flow or group of the profile has a size",
    ),
    (
        "id: a, title: T, kind: time, series: [cwnd], window: [2 s, 1 s], at: {path.rtt: 20 ms}",
        "a begin and a later end",
    ),
    ("id: a, title: T, kind: time, series: [speed], at: {path.rtt: 20 ms}", "series"),
    (
        "id: a, entry: Figure_1, title: T, kind: sweep, x: path.rtt, y: utilisation, panels: path.buffer",
        "no entry 'Figure_1'",
    ),
    (
        "id: a, title: T, kind: sweep, x: path.rtt, y: exit_time_s, flow: 1, at: {path.buffer: 1 bdp},"
        " paper: {points: {cubic: {20 ms: 3 MB}}}",
        "exit_time_s: expected a number with its unit",
    ),
    (
        "id: a, title: T, kind: sweep, x: path.rtt, y: utilisation, at: {path.buffer: 1 bdp},"
        " paper: {points: {cubik: {20 ms: 3 %}}}",
        "did you mean cubic",
    ),
    (
        "id: a, title: T, kind: sweep, x: path.rtt, y: utilisation, at: {path.buffer: 1 bdp},"
        " paper: {points: {cubic: {30 ms: 3 %}}}",
        "the figure has no '30 ms'",
    ),
    ("id: a, title: T, kind: table, rows: algorithm, columns: path.rtt", "columns that are an axis need y"),
    (
        "id: a, title: T, kind: sweep, x: path.rtt, y: utilisation, panels: path.buffer,"
        " relative_to: {path.rtt: 20 ms}",
        "expected the value of algorithm",
    ),
]


def _write(folder: Path, figure: str) -> Path:
    file = folder / "drawn.yaml"
    file.write_text(BASE + f"  - {{{figure}}}\n")
    return file


@pytest.mark.parametrize("figure", GOOD)
def test_a_figure_that_fits_is_read(tmp_path: Path, figure: str) -> None:
    profile = load(_write(tmp_path, figure))
    assert [each.id for each in profile.figures] == ["a"]
    assert len(profile.cells()) == 8


@pytest.mark.parametrize(("figure", "said"), WRONG)
def test_a_wrong_figure_is_named_with_its_line(tmp_path: Path, figure: str, said: str) -> None:
    file = _write(tmp_path, figure)
    with pytest.raises(ProfileError) as caught:
        load(file)
    assert said in str(caught.value)
    assert str(caught.value).startswith(f"{file}:8")


def test_a_figure_changes_no_run(tmp_path: Path) -> None:
    from howdah.plan.compile import compile_plan

    with_figure = load(_write(tmp_path, GOOD[0]))
    plans = [compile_plan(cell).to_json() for cell in with_figure.cells()]
    (tmp_path / "drawn.yaml").write_text(BASE.removesuffix("figures:\n"))
    assert [compile_plan(cell).to_json() for cell in load(tmp_path / "drawn.yaml").cells()] == plans


def test_values_are_kept_as_they_were_written(tmp_path: Path) -> None:
    figure = load(_write(tmp_path, GOOD[2])).figures[0]
    assert figure.at == {"path.buffer": "6.10 bdp"}


def test_a_table_may_give_its_printed_numbers_without_points() -> None:
    short = {"id": "t", "title": "T", "kind": "table", "rows": "algorithm", "columns": ["utilisation"]}
    figure = FigureSection.model_validate({**short, "paper": {"reno": {"utilisation": "95 %"}}})
    assert figure.paper is not None
    assert figure.paper.points == {"reno": {"utilisation": "95 %"}}
    whole = FigureSection.model_validate({**short, "paper": {"points": {"reno": {"utilisation": "95 %"}}}})
    assert whole.paper == figure.paper
