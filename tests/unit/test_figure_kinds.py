# SPDX-License-Identifier: Apache-2.0
"""Every figure that a page shows is drawn by ``howdah figure`` in every format, with caption and data."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from statistics import mean, median
from types import SimpleNamespace
from typing import cast
from xml.etree import ElementTree

import pytest
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.text import Text

from howdah.command.main import main
from howdah.profile.figure import FigureSection
from howdah.record.result import load_experiment
from howdah.report.distribution import Distribution
from howdah.report.paper import FORMATS, NAMES, Choice, FigureSheet, aggregate, available
from howdah.report.paper import line as paper_line
from howdah.report.paper.line import PaperLine, end_s
from howdah.report.paper.panels import DRAWN_KINDS, PREFIX
from howdah.report.paper.reference import figure_list
from howdah.report.paper.reference import main as reference
from howdah.report.paper.sheet import legend_columns, legend_entries, legend_lines, plain_logarithm, wrapped
from howdah.report.sequence import ACKED, SENT, WINDOW, sequence_curves
from howdah.work.results import read_results
from tests.unit import figured_experiment as figured

SVG = "{http://www.w3.org/2000/svg}"
DECLARED = tuple(f"{PREFIX}{name}" for name in figured.DECLARED)
COLUMN_IN = 3.4
IN_DOTS = ("start-up", f"{PREFIX}swept")
BEGINS = {"pdf": b"%PDF-", "svg": b"<?xml", "png": b"\x89PNG\r\n"}


@pytest.fixture(scope="module")
def experiment(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return figured.make(tmp_path_factory.mktemp("figured"))


@dataclass(frozen=True)
class Drawn:
    """Where the command has drawn everything, a column wide, and each figure by its name."""

    place: Path
    figures: dict[str, Figure]


@contextmanager
def kept_figures() -> Iterator[list[Figure]]:
    """Those that are drawn meanwhile."""
    figures: list[Figure] = []
    original = FigureSheet.figure

    def keep(sheet: FigureSheet, height_in: float) -> Figure:
        figures.append(original(sheet, height_in))
        return figures[-1]

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(FigureSheet, "figure", keep)
        yield figures


@pytest.fixture(scope="module")
def drawn(experiment: Path, tmp_path_factory: pytest.TempPathFactory) -> Drawn:
    """In the formats of lines; dots are drawn of two."""
    place = tmp_path_factory.mktemp("written")
    words = ["figure", "figured", "--runs", str(experiment.parent), "--width", f"{COLUMN_IN} in"]
    with kept_figures() as figures:
        assert main([*words, "--format", "svg", "--data", "--output", str(place)]) == 0
    assert main([*words, "--format", "pdf", "--output", str(place)]) == 0
    for name in IN_DOTS:
        target = file_of(place, name, "png")
        assert main([*words, "--format", "png", "--figure", name, "--output", str(target)]) == 0
    return Drawn(place, dict(zip([*NAMES, *DECLARED], figures, strict=True)))


@pytest.fixture(scope="module")
def written(drawn: Drawn) -> Path:
    return drawn.place


def file_of(written: Path, name: str, ending: str) -> Path:
    return written / f"figured-{name.replace(':', '-')}.{ending}"


def rows_of(written: Path, name: str) -> list[dict[str, str]]:
    return list(csv.DictReader(file_of(written, name, "csv").open(encoding="utf-8")))


@pytest.mark.parametrize("name", [*NAMES, *DECLARED])
def test_every_figure_is_drawn_in_every_format_with_caption_and_data(written: Path, name: str) -> None:
    for format_ in FORMATS:
        if format_ != "png" or name in IN_DOTS:
            assert file_of(written, name, format_).read_bytes().startswith(BEGINS[format_])
    pdf = file_of(written, name, "pdf").read_bytes()
    assert b"/FontFile2" in pdf
    assert b"/Type3" not in pdf
    drawing = ElementTree.parse(file_of(written, name, "svg"))
    assert sum(1 for each in drawing.iter(f"{SVG}path") if each.get("d")) > 10, "axes and something in them"
    caption = file_of(written, name, "caption.txt").read_text(encoding="utf-8")
    assert caption.startswith("figured: ")
    assert re.search(r"(sweep points|bottleneck, .* BDP\)); kernels? .*repetitions?\.$", caption), (
        "where it was measured"
    )
    assert len(caption.split()) > 3
    assert len(rows_of(written, name)) >= 2


def test_there_is_no_other_figure(experiment: Path) -> None:
    assert list(available([read_results(experiment, lambda _: None)], Choice())) == [*NAMES, *DECLARED]


def test_every_kind_of_a_profile_is_drawn_but_the_table() -> None:
    kinds = FigureSection.model_fields["kind"].annotation
    assert kinds is not None
    assert set(kinds.__args__) - set(DRAWN_KINDS) == {"table"}


def test_one_declared_figure_is_drawn_by_its_name(experiment: Path, tmp_path: Path) -> None:
    target = tmp_path / "one.svg"
    words = ["figure", "figured", "--runs", str(experiment.parent), "--figure", "profile:swept"]
    assert main([*words, "--output", str(target)]) == 0
    assert sorted(file.name for file in tmp_path.iterdir()) == ["one.caption.txt", "one.svg"]
    assert "Utilisation against RTT." in (tmp_path / "one.caption.txt").read_text(encoding="utf-8")


def test_a_declared_figure_that_is_not_there_is_refused_with_those_that_are(
    experiment: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["figure", "figured", "--runs", str(experiment.parent), "--figure", "profile:swep"]
    assert main(words) == 2
    assert "Did you mean profile:swept?" in capsys.readouterr().err


def test_points_of_a_sweep_and_bars_are_the_means_of_the_repetitions(written: Path) -> None:
    wanted = {
        (buffer, rtt): mean(100 * figured.utilisation(rtt, buffer, repetition) for repetition in range(2))
        for buffer in figured.BUFFERS
        for rtt in figured.RTTS
    }
    rows = rows_of(written, "profile:swept")
    measured = [row for row in rows if row["line"] in figured.ALGORITHMS]
    found = {(row["panel"].removeprefix("buffer "), f"{row['x']} ms"): float(row["y"]) for row in measured}
    assert found == pytest.approx(wanted)
    printed = [(row["panel"], row["line"], row["x"], float(row["y"])) for row in rows if row not in measured]
    assert printed == [("buffer 1 bdp", "cubic (Table 1)", "50", 70.0)]
    assert "Hollow marks: Table 1." in file_of(written, "profile:swept", "caption.txt").read_text(encoding="utf-8")
    bars = {f"{row['x']} bdp": float(row["y"]) for row in rows_of(written, "profile:barred")}
    assert bars == pytest.approx({buffer: wanted[buffer, "50 ms"] for buffer in figured.BUFFERS})


@pytest.mark.parametrize("name", ["completion", "profile:shares"])
def test_distributions_are_of_every_connection(written: Path, name: str) -> None:
    for algorithm in figured.ALGORITHMS:
        values = sorted(
            figured.completion_s(algorithm, repetition, number)
            for repetition in range(2)
            for number in range(figured.CONNECTIONS)
        )
        rows = [row for row in rows_of(written, name) if row["line"] == algorithm]
        panels = {row["panel"] for row in rows}
        for panel in panels:
            mine = [row for row in rows if row["panel"] == panel]
            assert [float(row["x"]) for row in mine] == pytest.approx(values)
            shares = [100 * (place + 1) / len(values) for place in range(len(values))]
            assert [float(row["y"]) for row in mine] == pytest.approx(shares)
        assert len(panels) == (4 if name == "completion" else 1)


def test_distributions_of_one_measure_have_one_axis(experiment: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    values = {"near": [1.0, 1.5, 2.0], "far": [8.0, 8.5, 9.0]}
    found = [
        Distribution(point, "web", "completion time (s)", False, [(0, "cubic", each)], ends=(1.0, 9.0))
        for point, each in values.items()
    ]
    monkeypatch.setattr(aggregate, "distributions", lambda *_: found)
    panels = aggregate.completion_figure([load_experiment(experiment)]).panels
    (ends,) = {panel.across.ends for panel in panels}
    assert ends[0] <= 1.0 and ends[1] >= 9.0


def test_the_map_has_the_median_of_the_measure_that_is_asked_for(experiment: Path, tmp_path: Path) -> None:
    target = tmp_path / "map.svg"
    words = ["figure", "figured", "--runs", str(experiment.parent), "--figure", "map", "--measure", "utilisation"]
    assert main([*words, "--data", "--output", str(target)]) == 0
    rows = list(csv.DictReader((tmp_path / "map.csv").open(encoding="utf-8")))
    found = {(row["panel"], f"{row['x']} ms", f"{row['line']} bdp"): float(row["y"]) for row in rows}
    assert found == pytest.approx(
        {
            (algorithm, rtt, buffer): median(100 * figured.utilisation(rtt, buffer, each) for each in range(2))
            for algorithm in figured.ALGORITHMS
            for rtt in figured.RTTS
            for buffer in figured.BUFFERS
        }
    )


def test_a_measure_that_no_run_has_is_refused(experiment: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["figure", "figured", "--runs", str(experiment.parent), "--figure", "map", "--measure", "utilisatoin"]
    assert main(words) == 2
    assert "did you mean utilisation?" in capsys.readouterr().err


def test_marks_of_receivers_are_their_measures(written: Path) -> None:
    assert sorted({float(row["y"]) for row in rows_of(written, "receivers")}) == [2.0, 3.0]


def test_curves_have_words_and_a_unit_and_a_threshold_without_bound_is_not_drawn(written: Path) -> None:
    rows = rows_of(written, "profile:curves")
    assert {row["y_name"] for row in rows} == {"congestion window, ssthresh (packets)"}
    windows = [float(row["y"]) for row in rows if row["line"].endswith("congestion window")]
    thresholds = [float(row["y"]) for row in rows if row["line"].endswith("ssthresh")]
    assert thresholds
    assert max(thresholds) < 2 * max(windows)


def test_the_picture_of_time_and_sequence_has_what_the_page_shows(experiment: Path, tmp_path: Path) -> None:
    run = next(run for run in read_results(experiment, lambda _: None).runs if run.plan)
    assert run.plan is not None
    wanted = set(sequence_curves(run, run.plan.flows[0]))
    words = ["figure", str(run.directory.path), "--figure", "time-sequence", "--whole", "--data"]
    with kept_figures() as figures:
        assert main([*words, "--output", str(tmp_path / "s.svg")]) == 0
    lines = {row["line"].partition(", from")[0] for row in csv.DictReader((tmp_path / "s.csv").open(encoding="utf-8"))}
    assert {SENT, WINDOW} <= wanted
    assert lines == (wanted - {ACKED}) | {run.algorithm}
    looks = {line.get_label(): line for line in figures[0].axes[0].get_lines()}
    sent, window = looks[SENT], looks[WINDOW]
    assert sent.get_color() != window.get_color(), "they coincide where what is sent fills the window"
    assert sent.get_linewidth() > window.get_linewidth()
    assert sent.get_zorder() == window.get_zorder()
    assert list(looks).index(SENT) < list(looks).index(WINDOW), "the dashes lie over it"


def test_data_is_not_thinned_where_the_drawing_is(
    experiment: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = next(run for run in read_results(experiment, lambda _: None).runs if run.plan)
    words = ["figure", str(run.directory.path), "--figure", "start-up", "--data", "--output"]
    assert main([*words, str(tmp_path / "all.svg")]) == 0
    monkeypatch.setattr(paper_line, "_MOST_POINTS", 10)
    assert main([*words, str(tmp_path / "few.svg")]) == 0
    assert (tmp_path / "few.csv").read_bytes() == (tmp_path / "all.csv").read_bytes()
    assert len((tmp_path / "few.csv").read_text(encoding="utf-8").splitlines()) > 12
    assert (tmp_path / "few.svg").stat().st_size < (tmp_path / "all.svg").stat().st_size


def _beyond_the_view(axes: Axes) -> Iterator[Text]:
    """Labels of ticks that matplotlib keeps and does not draw."""
    for axis in (axes.xaxis, axes.yaxis):
        low, high = sorted(axis.get_view_interval())
        for tick in [*axis.get_major_ticks(), *axis.get_minor_ticks()]:
            if not low - 1e-9 <= tick.get_loc() <= high + 1e-9:
                yield from (tick.label1, tick.label2)


def test_nothing_that_is_written_leaves_the_sheet_or_lies_on_something_else(drawn: Drawn) -> None:
    """Of every figure a column wide: its texts, as matplotlib places them."""
    found: dict[str, list[str]] = {}
    with FigureSheet(COLUMN_IN).styled():
        for name, figure in drawn.figures.items():
            canvas = FigureCanvasAgg(figure)
            canvas.draw()  # type: ignore[no-untyped-call]
            renderer = canvas.get_renderer()  # type: ignore[no-untyped-call]
            texts = [each for each in figure.findobj(Text) if each.get_visible() and each.get_text().strip()]
            unseen = {id(each) for axes in figure.axes for each in _beyond_the_view(axes)}
            boxes = [(each.get_text(), each.get_window_extent(renderer)) for each in texts if id(each) not in unseen]
            wide, high = figure.get_size_inches() * figure.dpi
            wrong = [
                f"{text!r} leaves the sheet"
                for text, box in boxes
                if box.x0 < -1 or box.x1 > wide + 1 or box.y0 < -1 or box.y1 > high + 1
            ]
            for at, (text, box) in enumerate(boxes):
                for other, its in boxes[at + 1 :]:
                    across = min(box.x1, its.x1) - max(box.x0, its.x0)
                    down = min(box.y1, its.y1) - max(box.y0, its.y0)
                    if across > 1 and down > 2:
                        wrong.append(f"{text!r} on {other!r}")
            if wrong:
                found[name] = wrong
    assert found == {}


@pytest.mark.parametrize("ends", [(0.25, 7.5), (0.06, 7.5), (1.0, 4.0), (3.0, 4000.0)])
def test_numbers_of_a_logarithmic_axis_stand_apart(ends: tuple[float, float]) -> None:
    with FigureSheet(3.4).styled():
        figure = FigureSheet(3.4).figure(1.5)
        axes = figure.subplots()
        axes.set_xscale("log")
        axes.set_xlim(*ends)
        plain_logarithm(axes.xaxis)
        canvas = FigureCanvasAgg(figure)
        canvas.draw()  # type: ignore[no-untyped-call]
        renderer = canvas.get_renderer()  # type: ignore[no-untyped-call]
        labels = [each for each in axes.get_xticklabels(which="both") if each.get_text()]
        boxes = [each.get_window_extent(renderer) for each in labels]
    assert len(boxes) >= 2
    assert all(before.x1 < after.x0 for before, after in pairwise(boxes))
    assert axes.get_xlim() == ends


def test_a_long_name_is_broken_between_words_and_not_before_a_unit() -> None:
    long = "cubic-no-hystart, buffer 1 bdp, round-trip time 100 ms"
    lines = wrapped(long, 1.2).split("\n")
    assert len(lines) > 1
    assert " ".join(lines).replace("\u00a0", " ") == long
    assert any("100\u00a0ms" in line for line in lines)
    assert legend_columns(legend_entries([long, long], 3.4), 3.4) == 1
    assert legend_lines(["a", "b\nc", "d"], 1) == 4
    assert legend_lines(["a", "b", "c"], 2) == 2


def test_the_list_in_the_documentation_is_current_and_whole(capsys: pytest.CaptureFixture[str]) -> None:
    assert reference(["--check"]) == 0, capsys.readouterr().out
    listed = re.findall(r"^\| `([^`]+)` \|", figure_list(), re.MULTILINE)
    assert listed == [*NAMES, f"{PREFIX}ID"]
    assert all(f"(`kind: {kind}`)" in figure_list() for kind in DRAWN_KINDS)


@pytest.mark.parametrize("name", ["completion", "profile:swept"])
def test_a_figure_in_the_place_of_an_experiment_is_told_how_it_is_asked_for(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["figure", "made", name, "--runs", str(tmp_path)]) != 0
    assert main(["figure", name, "--runs", str(tmp_path)]) != 0
    assert f"--figure {name}" in capsys.readouterr().err


def test_a_line_without_an_exit_is_shown_beside_those_with_one() -> None:
    """Flows of 160 ms that completed within their start-up ended at the edge, a little behind the exits of 40 ms."""

    def line(rtt_ms: int, exit_s: float | None) -> PaperLine:
        found = None if exit_s is None else SimpleNamespace(after_start_s=exit_s)
        return cast(PaperLine, SimpleNamespace(flow=SimpleNamespace(rtt_us=1000 * rtt_ms), exit=found))

    assert end_s([line(40, 0.36), line(160, None)], whole=False) == pytest.approx(0.96)
    assert end_s([line(40, 0.36), line(40, None)], whole=False) == pytest.approx(0.486)
    assert end_s([line(40, None)], whole=False) == pytest.approx(0.48)
