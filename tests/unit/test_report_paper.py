# SPDX-License-Identifier: Apache-2.0
"""Figures for papers: the points are the tables', the size is the one asked for, and grey paper is enough."""

from __future__ import annotations

import csv
import json
import os
import re
import struct
import subprocess
import sys
from itertools import combinations
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pyarrow.parquet as pq
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg

import howdah
from howdah.command.main import main
from howdah.errors import HowdahError
from howdah.report.ackwindow import exit_of, measured
from howdah.report.exitstrip import ExitMark, ExitRow
from howdah.report.paper import NAMES, Choice, FigureSheet, draw, parse_length_inches
from howdah.report.paper.choice import at_point
from howdah.report.paper.figures import TIME_FIGURES
from howdah.report.paper.line import DASHES, MARKS, MOST_LINES
from howdah.report.paper.panels import draw_limits
from howdah.report.paper.strip import draw_rows
from howdah.work.results import read_results
from tests.experiment_factory import Scenario, make_experiment

SVG = "{http://www.w3.org/2000/svg}"
WIDTH = FigureSheet(3.4)
# What there is of an experiment without sweep, groups and captures; test_figure_kinds.py has the others.
DRAWN = [name for name in NAMES if name not in ("completion", "map", "receivers")]


@pytest.fixture(scope="module")
def experiment(tmp_path_factory: pytest.TempPathFactory) -> Path:
    scenario = Scenario(
        name="paper",
        algorithms=("cubic-no-hystart", "cubic"),
        invalid=(("cubic", 1),),
        duration_s=4.0,
        second_flow_s=2.0,
    )
    return make_experiment(tmp_path_factory.mktemp("paper"), scenario)


def drawn(experiment: Path, name: str, target: Path, choice: Choice | None = None, sheet: FigureSheet = WIDTH) -> Path:
    return draw(name, [read_results(experiment, lambda _: None)], choice or Choice(), sheet, target, target.suffix[1:])


def points(svg: Path, gid: str) -> np.ndarray[tuple[int, int], np.dtype[np.float64]]:
    """The places of a line's points on the sheet, in points from its corner."""
    group = next(each for each in ElementTree.parse(svg).iter(f"{SVG}g") if each.get("id") == gid)
    path = next(group.iter(f"{SVG}path")).get("d", "")
    return np.array([[float(x), float(y)] for x, y in re.findall(r"[ML] ([-\d.e]+) ([-\d.e]+)", path)])


def lies_on_a_line(sheet: np.ndarray[tuple[int], np.dtype[np.float64]], table: list[float]) -> bool:
    """Whether places on the sheet are the table's values on a linear axis."""
    slope, offset = np.polyfit(np.array(table), sheet, 1)
    return bool(np.abs(np.array(table) * slope + offset - sheet).max() < 0.01)  # in points: a 7000th of an inch


def test_the_points_are_the_rows_of_the_table(experiment: Path, tmp_path: Path) -> None:
    svg = drawn(experiment, "start-up", tmp_path / "figure.svg", Choice(repetition=0))
    for number, algorithm in enumerate(("cubic-no-hystart", "cubic")):
        run = next(
            run for run in read_results(experiment, lambda _: None).runs if run.name.startswith(f"{algorithm}-r0")
        )
        rows = [row for row in pq.read_table(run.directory.table("tcp_probe")).to_pylist() if row["flow"] == 1]
        on_sheet = points(svg, f"line-{number}")
        assert len(on_sheet) > 20
        shown = rows[: len(on_sheet)]
        assert lies_on_a_line(on_sheet[:, 0], [row["time_ns"] / 1e9 for row in shown])
        assert lies_on_a_line(on_sheet[:, 1], [row["cwnd_packets"] for row in shown])


def test_the_start_up_ends_a_little_behind_the_last_exit(experiment: Path, tmp_path: Path) -> None:
    found = read_results(experiment, lambda _: None)
    exits = [exit_of(run, run.plan.flows[0]) for run in found.runs if run.plan and run.repetition == 0]
    last = max(each.after_start_s for each in exits if each)
    run = next(run for run in found.runs if run.name.startswith("cubic-no-hystart-r0"))
    rows = [row for row in pq.read_table(run.directory.table("tcp_probe")).to_pylist() if row["flow"] == 1]
    svg = drawn(experiment, "start-up", tmp_path / "figure.svg", Choice(repetition=0))
    inside = sum(row["time_ns"] / 1e9 <= last * 1.35 for row in rows)
    assert len(points(svg, "line-0")) == inside + 1  # and the one behind the edge, to which the line goes on
    whole = drawn(experiment, "start-up", tmp_path / "whole.svg", Choice(repetition=0, whole=True))
    assert len(points(whole, "line-0")) > inside + 1


def test_the_queue_is_the_backlog_of_the_bottleneck(experiment: Path, tmp_path: Path) -> None:
    svg = drawn(experiment, "queue", tmp_path / "figure.svg", Choice(repetition=0))
    run = next(
        run for run in read_results(experiment, lambda _: None).runs if run.name.startswith("cubic-no-hystart-r0")
    )
    on_sheet = points(svg, "line-0")
    rows = pq.read_table(run.directory.table("qdisc")).to_pylist()[: len(on_sheet)]
    assert lies_on_a_line(on_sheet[:, 1], [row["backlog_bytes"] for row in rows])


def test_behind_a_line_is_the_band_of_its_repetitions(tmp_path: Path) -> None:
    """Of runs that count and differ. A repetition that is asked for stands alone."""
    scenario = Scenario(name="bands", algorithms=("cubic", "cubic-no-hystart"), repetitions=6, duration_s=3.0, flows=1)
    experiment = make_experiment(tmp_path, scenario)
    svg = drawn(experiment, "start-up", tmp_path / "figure.svg")
    groups = [str(group.get("id")) for group in ElementTree.parse(svg).iter(f"{SVG}g")]
    assert [name for name in groups if name.startswith("band-")] == ["band-0"]
    band, line = points(svg, "band-0"), points(svg, "line-0")
    # Places on the sheet: y grows downwards. The line is one of the repetitions, and the other leaves it.
    assert band[:, 1].min() <= line[:, 1].min() + 0.01
    widths = [np.ptp(band[np.abs(band[:, 0] - x) < 0.01, 1]) for x in np.unique(band[:, 0])]
    assert max(widths) > 1.0
    alone = drawn(experiment, "start-up", tmp_path / "alone.svg", Choice(repetition=1))
    assert "band-" not in alone.read_text(encoding="utf-8")


def test_every_flow_of_every_repetition_is_a_mark_of_the_strip(experiment: Path, tmp_path: Path) -> None:
    svg = drawn(experiment, "exit-strip", tmp_path / "figure.svg")
    found = read_results(experiment, lambda _: None)
    wanted = {
        f"exit-{run.name}-{flow.name}": float(str(measured(run, flow.id, "exit_cwnd_bdp")))
        for run in found.runs
        if run.plan
        for flow in run.plan.flows
        if exit_of(run, flow) is not None
    }
    uses = {
        str(group.get("id")): float(next(group.iter(f"{SVG}use")).get("x", "nan"))
        for group in ElementTree.parse(svg).iter(f"{SVG}g")
        if str(group.get("id")).startswith("exit-")
    }
    assert uses.keys() == wanted.keys()
    assert lies_on_a_line(np.array([uses[name] for name in wanted]), list(wanted.values()))


@pytest.mark.parametrize("name", DRAWN)
def test_the_width_is_the_one_asked_for_and_fonts_are_in_the_file(experiment: Path, tmp_path: Path, name: str) -> None:
    pdf = drawn(experiment, name, tmp_path / "figure.pdf", sheet=FigureSheet(parse_length_inches("86 mm"))).read_bytes()
    box = re.search(rb"/MediaBox \[ 0 0 ([\d.]+) ([\d.]+) \]", pdf)
    assert box is not None
    assert float(box.group(1)) == pytest.approx(86 / 25.4 * 72, abs=0.01)
    assert b"/FontFile2" in pdf
    assert b"/Type3" not in pdf
    svg = ElementTree.parse(drawn(experiment, name, tmp_path / "figure.svg", sheet=FigureSheet(3.4, 2.0))).getroot()
    assert (svg.get("width"), svg.get("height")) == ("244.8pt", "144pt")
    assert not list(svg.iter(f"{SVG}text"))  # letters are outlines: no font is asked of the reader's machine


def test_the_same_figure_has_the_same_bytes_whatever_the_user_has_set(experiment: Path, tmp_path: Path) -> None:
    (tmp_path / "matplotlibrc").write_text(
        "font.size: 20\nsvg.fonttype: none\nxtick.direction: in\naxes.labelpad: 30\n"
    )
    for format_ in ("pdf", "svg"):
        first = drawn(experiment, "start-up", tmp_path / f"first.{format_}").read_bytes()
        command = [sys.executable, "-m", "howdah.command.main", "figure", str(experiment), "--figure", "start-up"]
        subprocess.run(
            [*command, "--output", str(tmp_path / f"second.{format_}")],
            env=os.environ | {"MATPLOTLIBRC": str(tmp_path), "PYTHONHASHSEED": "7", "TZ": "Asia/Tokyo"},
            capture_output=True,
            check=True,
        )
        assert (tmp_path / f"second.{format_}").read_bytes() == first, format_


def test_a_png_has_the_size_in_dots_and_no_date(experiment: Path, tmp_path: Path) -> None:
    png = drawn(experiment, "exit-strip", tmp_path / "figure.png", sheet=FigureSheet(2.0, 1.0)).read_bytes()
    assert struct.unpack(">II", png[16:24]) == (1200, 600)
    assert b"Software" not in png
    assert b"Creation" not in png


def test_lines_are_told_apart_without_colour(experiment: Path, tmp_path: Path) -> None:
    pairs = [(str(DASHES[number % len(DASHES)]), MARKS[number % len(MARKS)]) for number in range(MOST_LINES)]
    assert len(set(pairs)) == MOST_LINES
    assert all(one != other and (one[0] != other[0] or one[1] != other[1]) for one, other in combinations(pairs, 2))
    svg = ElementTree.parse(drawn(experiment, "goodput", tmp_path / "figure.svg"))
    groups = [each for each in svg.iter(f"{SVG}g") if str(each.get("id")).startswith("line-")]
    dashes = [
        re.search(r"stroke-dasharray: ([^;]+)", next(each.iter(f"{SVG}path")).get("style", "")) for each in groups
    ]
    assert len(groups) == 2
    assert len({each.group(1) if each else "" for each in dashes}) == 2
    # Each ink is as dark on grey paper as text must be: 3:1 for lines (WCAG 1.4.11).
    for group in groups:
        ink = re.search(r"stroke: #(\w{6})", next(group.iter(f"{SVG}path")).get("style", ""))
        assert ink is not None
        shares = [int(ink.group(1)[at : at + 2], 16) / 255 for at in (0, 2, 4)]
        linear = [each / 12.92 if each <= 0.04045 else ((each + 0.055) / 1.055) ** 2.4 for each in shares]
        luminance = sum(weight * each for weight, each in zip((0.2126, 0.7152, 0.0722), linear, strict=True))
        assert 1.05 / (luminance + 0.05) >= 3


def test_more_lines_than_print_can_hold_are_refused(tmp_path: Path) -> None:
    axes = tuple({"path.rate": (number + 2) * 1_000_000} for number in range(MOST_LINES + 1))
    made = make_experiment(
        tmp_path, Scenario(name="sweep", algorithms=("cubic",), repetitions=1, flows=1, duration_s=1.0, axes=axes)
    )
    with pytest.raises(HowdahError, match="cannot be distinguished"):
        drawn(made, "start-up", tmp_path / "figure.svg")
    two = drawn(made, "start-up", tmp_path / "figure.svg", Choice(point="path.rate=2000000"))
    assert len(points(two, "line-0")) > 1


@pytest.mark.parametrize(
    ("text", "sizes"),
    [
        ("1mb", ["1 MB"]),
        ("1 MB", ["1 MB"]),
        ("flows.1.size=1 MB", ["1 MB"]),
        ("21mb", ["21 MB"]),
        ("MB", ["1 MB", "21 MB"]),
    ],
)
def test_a_point_is_chosen_by_its_value_in_either_spelling(tmp_path: Path, text: str, sizes: list[str]) -> None:
    axes = tuple({"flows.1.size": size} for size in ("300 kB", "1 MB", "21 MB"))
    made = make_experiment(
        tmp_path, Scenario(name="sizes", algorithms=("cubic",), repetitions=1, flows=1, duration_s=1.0, axes=axes)
    )
    runs = sorted(at_point(read_results(made).runs, text), key=lambda run: sizes.index(str(run.axes["flows.1.size"])))
    assert [run.axes["flows.1.size"] for run in runs] == sizes


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--point", "2mb"], "no run is at the point '2mb'"),
        (["--algorithm", "cubicc"], "did you mean cubic?"),
        (["--repetition", "9"], "no run is repetition 9"),
        (["--flow", "flow9"], "no run has the flow 'flow9'"),
        (["--figure", "startup"], "Did you mean start-up?"),
        (["--width", "3"], "'3' is not a length"),
        (["--format", "gif"], "expected one of pdf"),
    ],
)
def test_a_wrong_choice_is_one_message(
    experiment: Path, words: list[str], said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ["figure", "paper", "--runs", str(experiment.parent), "--output", str(tmp_path / "new"), *words]
    try:
        code: object = main(arguments)
    except SystemExit as ended:
        code = ended.code
    assert code == 2
    told = capsys.readouterr().err
    assert said in told
    assert (
        sum(line.startswith(("howdah:", "howdah figure:")) and "digests" not in line for line in told.splitlines()) == 1
    )
    assert not (tmp_path / "new").exists()


def test_a_name_close_to_a_figures_is_suggested(experiment: Path, tmp_path: Path) -> None:
    with pytest.raises(HowdahError) as refused:
        drawn(experiment, "startup", tmp_path / "figure.svg")
    assert "Did you mean start-up?" in str(refused.value)


@pytest.mark.parametrize("text", ["3.4", "in", "-3in", "3.4 px", "1in", "40in", ""])
def test_what_is_no_width_is_refused(text: str) -> None:
    with pytest.raises(HowdahError):
        parse_length_inches(text)


def test_tex_points_are_those_of_columnwidth() -> None:
    assert parse_length_inches("245.7 pt") == pytest.approx(3.4, abs=0.001)
    assert parse_length_inches("8.6cm") == pytest.approx(86 / 25.4)


def test_the_command_draws_all_that_can_be_drawn(
    experiment: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    runs = ["--runs", str(experiment.parent)]
    assert main(["figure", "paper", *runs, "--format", "svg", "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert [Path(file).name for file in said["written"]] == [f"paper-{name}.svg" for name in DRAWN]
    assert set(said["passed_over"]) == set(NAMES) - set(DRAWN)
    assert all((tmp_path / file).is_file() for file in said["written"])
    assert main(["figure", "paper", *runs, "--list"]) == 0
    assert [line.split()[0] for line in capsys.readouterr().out.splitlines()] == list(NAMES)
    # The ending of the file's name is the format, and two that differ are refused.
    assert main(["figure", "paper/cubic-r0", *runs, "--figure", "queue", "--output", "q.svg"]) == 0
    assert (tmp_path / "q.svg").read_bytes().startswith(b"<?xml")
    assert main(["figure", "paper/cubic-r0", *runs, "--figure", "queue", "--output", "new/place/q.svg"]) == 0
    assert Path("new/place/q.svg").is_file()
    assert main(["figure", "paper", *runs, "--figure", "queue", "--format", "pdf", "--output", "q.svg"]) == 2
    assert main(["figure", "paper", *runs, "--output", "all.pdf"]) == 2


def test_without_matplotlib_the_extra_is_named(
    experiment: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    assert main(["figure", str(experiment), "--output", str(tmp_path)]) == 1
    assert "howdah[figures]" in capsys.readouterr().err
    assert not list(tmp_path.iterdir())
    with pytest.raises(HowdahError, match="matplotlib"):
        howdah.load(experiment).plot()


@pytest.mark.parametrize(("full", "share"), [(2.0, 1.9), (2.0, 4.0), (1.1, 1.0), (1.05, 5.0), (9.0, 2.0)])
def test_names_of_limits_stand_apart_and_on_the_sheet(full: float, share: float) -> None:
    row = ExitRow("cubic", full, [ExitMark(share, "run", 0, "flow1", True, "loss", 10.0, True, 0)], "")
    with WIDTH.styled():
        figure = draw_rows([row], ["#000000"], WIDTH)
        canvas = FigureCanvasAgg(figure)
        canvas.draw()  # type: ignore[no-untyped-call]
        (axes,) = figure.axes
        renderer = canvas.get_renderer()  # type: ignore[no-untyped-call]
        boxes = [text.get_window_extent(renderer) for text in axes.texts]
    assert len(boxes) == 2
    assert not boxes[0].overlaps(boxes[1])
    wide, high = figure.get_size_inches() * figure.dpi
    assert all(box.x0 >= 0 and box.x1 <= wide + 1 and box.y1 <= high for box in boxes)


@pytest.mark.parametrize("alone", [False, True])
def test_names_of_limits_have_numbers_and_stand_beside_marks(alone: bool) -> None:
    with WIDTH.styled():
        figure = WIDTH.figure(2.0)
        axes = figure.subplots()
        axes.set(xlim=(0, 10), ylim=(0, 120))
        # Marks whose centres are on the limit, below its name, or one that stands alone in the name's place.
        x, y = ([9.5], [108.0]) if alone else (np.linspace(6.0, 10.0, 9).tolist(), [100.0] * 9)
        axes.plot(x, y, marker="s", markersize=6)
        draw_limits(figure, {axes: [("buffer", 100.0)]})
        canvas = FigureCanvasAgg(figure)
        canvas.draw()  # type: ignore[no-untyped-call]
        (name,) = axes.texts
        box = name.get_window_extent(canvas.get_renderer())  # type: ignore[no-untyped-call]
        marks = axes.transData.transform(list(zip(x, y, strict=True)))
    assert name.get_text() == "buffer 100"
    half = 3 * figure.dpi / 72
    assert not any(
        box.x0 < right + half and right - half < box.x1 and box.y0 < up + half and up - half < box.y1
        for right, up in marks
    )


@pytest.mark.parametrize(
    ("name", "label"),
    [("time-sequence", "Sequence (MB)"), ("rtt", "Smoothed RTT (ms)"), ("queue", "Bottleneck queue (kB)")],
)
def test_an_axis_says_what_the_figure_shows(name: str, label: str) -> None:
    """Which is more than what is acknowledged, and of the sender's round-trip times the smoothed one."""
    assert TIME_FIGURES[name].label == label


def test_the_difference_has_a_caption_and_its_data(experiment: Path, tmp_path: Path) -> None:
    words = ["figure", "paper", "--runs", str(experiment.parent), "--figure", "difference", "--data"]
    assert main([*words, "--output", str(tmp_path / "d.svg")]) == 0
    assert "Ratios to " in (tmp_path / "d.caption.txt").read_text(encoding="utf-8")
    rows = list(csv.DictReader((tmp_path / "d.csv").open(encoding="utf-8")))
    assert rows and all(float(row["y"]) > 0 for row in rows)
