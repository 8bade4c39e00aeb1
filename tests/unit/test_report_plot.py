# SPDX-License-Identifier: Apache-2.0
"""Declared figures: what is drawn is what was measured, and what is missing is said."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from howdah.profile.figure import FigureSection
from howdah.record.result import load_experiment
from howdah.report.plot import draw
from tests.experiment_factory import Scenario, make_experiment
from tests.unit.completed_run import add_connections

RTTS = ("20 ms", "50 ms", "200 ms")
SWEEP = Scenario(
    algorithms=("cubic", "reno"),
    repetitions=3,
    flows=2,
    duration_s=2.0,
    second_flow_s=0.5,
    rtt_us=20_000,
    axes=tuple({"path.rtt": rtt} for rtt in RTTS),
    rate_bits_per_second=5_000_000,
)


@pytest.fixture(scope="module")
def experiment(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_experiment(tmp_path_factory.mktemp("plot"), SWEEP)


def _figure(**fields: Any) -> FigureSection:
    return FigureSection.model_validate({"id": "f", "title": "A title", **fields})


def _parsed(html: str) -> ElementTree.Element:
    """The figure as a tree; it is XML as well as HTML."""
    return ElementTree.fromstring(html.replace("&nbsp;", " "))


def _with(root: ElementTree.Element, tag: str, css: str) -> list[ElementTree.Element]:
    return [each for each in root.iter(tag) if css in each.get("class", "").split()]


def _wide(root: ElementTree.Element) -> ElementTree.Element:
    return _with(root, "svg", "wide")[0]


def _titles(root: ElementTree.Element, css: str) -> list[str]:
    found = [each.findtext("title") for each in root.iter() if css in each.get("class", "").split()]
    return [title for title in found if title]


def _change(experiment: Path, pattern: str, metric: str, value: Any) -> None:
    """Another value of a measure in the runs whose names match."""
    for file in experiment.glob(f"{pattern}/metrics.json"):
        metrics = json.loads(file.read_text())
        for row in metrics["rows"]:
            if row["metric"] == metric:
                row["value"] = value
        file.write_text(json.dumps(metrics))


def test_a_sweep_has_a_mark_a_place_at_the_mean_with_its_interval(experiment: Path) -> None:
    html = draw(_figure(kind="sweep", x="path.rtt", y="utilisation", log="x"), load_experiment(experiment))
    wide = _wide(_parsed(html))
    titles = _titles(wide, "mark")
    assert len(titles) == 2 * len(RTTS)
    low, high = 0.91, 0.93
    assert titles[0] == f"cubic, 20 ms: 92 ({100 * low:g} … {100 * high:g}), n = 3"
    assert len(_with(wide, "path", "whisker")) == 2 * len(RTTS)
    assert "n = 3" in html
    assert [each.text for each in _with(wide, "text", "note")][-3:] == ["20", "50", "200"]
    assert "round-trip time (ms)" in html and "utilisation (%)" in html


def test_marks_stand_where_their_values_are(tmp_path: Path) -> None:
    """A planted value moves its mark, along the axis and by as much as the ticks say."""
    root = make_experiment(tmp_path, SWEEP)
    for rtt, value in zip(RTTS, (0.2, 0.4, 0.8), strict=True):
        _change(root, f"cubic-{rtt}-*", "utilisation", value)
        _change(root, f"reno-{rtt}-*", "utilisation", 0.4)
    wide = _wide(_parsed(draw(_figure(kind="sweep", x="path.rtt", y="utilisation"), load_experiment(root))))
    circles = _with(wide, "circle", "mark")
    heights = [float(each.get("cy", "nan")) for each in circles]
    ticks_at = {
        each.text: float(each.get("y", "nan")) - 4
        for each in _with(wide, "text", "note")
        if each.get("text-anchor") == "end"
    }
    for height, text in zip(heights, ("20", "40", "80"), strict=True):
        assert height == pytest.approx(ticks_at[text], abs=0.2)
    across = [float(each.get("cx", "nan")) for each in circles]
    assert (across[2] - across[0]) / (across[1] - across[0]) == pytest.approx((200 - 20) / (50 - 20), rel=0.02)
    assert "deterministic" not in "".join(_titles(wide, "mark"))
    assert not _with(wide, "path", "whisker"), "equal repetitions have no interval"


def test_a_place_without_a_valid_run_is_a_cross_and_is_named(tmp_path: Path) -> None:
    scenario = Scenario(**{**SWEEP.__dict__, "invalid": (("reno", 0), ("reno", 1), ("reno", 2))})
    root = make_experiment(tmp_path, scenario)
    html = draw(_figure(kind="sweep", x="path.rtt", y="utilisation"), load_experiment(root))
    tree = _parsed(html)
    assert [title.split(":")[0] for title in _titles(_wide(tree), "missing-mark")] == [f"reno, {rtt}" for rtt in RTTS]
    assert "reno, 20 ms: 3 x invalid" in html
    assert "3 missing" in html
    assert not [title for title in _titles(_wide(tree), "mark") if title.startswith("reno")]


def test_fewer_repetitions_at_a_place_are_counted(tmp_path: Path) -> None:
    root = make_experiment(tmp_path, Scenario(**{**SWEEP.__dict__, "invalid": (("reno", 2),)}))
    html = draw(_figure(kind="bars", x="path.rtt", y="utilisation"), load_experiment(root))
    assert "n = 2 … 3" in html
    assert "reno, 50 ms: 1 x invalid (n = 2)" in html


def test_relative_to_takes_repetitions_in_pairs(tmp_path: Path) -> None:
    root = make_experiment(tmp_path, SWEEP)
    for repetition, factor in enumerate((1.10, 1.20, 1.30)):
        value = 0.5 + 0.1 * repetition
        _change(root, f"cubic-*-r{repetition}-*", "utilisation", value)
        _change(root, f"reno-*-r{repetition}-*", "utilisation", value * factor)
    figure = _figure(kind="bars", x="path.rtt", y="utilisation", relative_to={"algorithm": "cubic"})
    html = draw(figure, load_experiment(root))
    titles = _titles(_wide(_parsed(html)), "bar")
    assert titles[0].startswith("reno, 20 ms: 20 (10 … 30)")
    assert len(titles) == len(RTTS), "the line it is compared with is not drawn"
    assert "% more than cubic" in html


def test_printed_numbers_are_hollow_and_in_the_same_unit(experiment: Path) -> None:
    paper = {"label": "Table 1", "points": {"reno": {"20 ms": "95.6 %", "200 ms": 0.5}}}
    figure = _figure(kind="sweep", x="path.rtt", y="utilisation", paper=paper)
    html = draw(figure, load_experiment(experiment))
    assert _titles(_wide(_parsed(html)), "hollow") == ["Table 1: reno, 20 ms: 95.6", "Table 1: reno, 200 ms: 50"]
    assert "hollow: Table 1" in html


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"kind": "sweep", "x": "path.rtt", "y": "no_such_measure"}, "no run has the measure no_such_measure"),
        ({"kind": "sweep", "x": "path.buffer", "y": "utilisation"}, "no run has the axis path.buffer"),
        ({"kind": "bars", "x": "algorithm", "lines": "control", "y": "utilisation"}, "path.rtt has several values"),
        ({"kind": "sweep", "x": "path.rtt", "y": "exit_time_s"}, "say which with flow"),
        (
            {"kind": "sweep", "x": "path.rtt", "y": "utilisation", "at": {"path.rtt": "9 ms"}},
            "no run has path.rtt = 9 ms",
        ),
        ({"kind": "cdf", "metric": "completion_time_s", "at": {"path.rtt": "20 ms"}}, "no run has a group"),
        ({"kind": "time", "series": ["cwnd"]}, "path.rtt has several values"),
    ],
)
def test_what_cannot_be_drawn_is_said_in_its_place(experiment: Path, fields: dict[str, Any], said: str) -> None:
    html = draw(_figure(**fields), load_experiment(experiment))
    assert said in html
    assert 'role="status"' in html
    assert "<svg" not in html


@pytest.mark.parametrize("kind", ["sweep", "bars"])
def test_shares_below_the_whole_are_not_drawn_on_a_scale_beyond_it(tmp_path: Path, kind: str) -> None:
    root = make_experiment(tmp_path, SWEEP)
    _change(root, "*", "utilisation", 0.99)
    wide = _wide(_parsed(draw(_figure(kind=kind, x="path.rtt", y="utilisation"), load_experiment(root))))
    labels = [each.text or "" for each in _with(wide, "text", "note") if each.get("text-anchor") == "end"]
    assert len(labels) >= 2
    assert max(float(label) for label in labels) <= 100


def test_a_value_that_no_run_has_is_said_where_others_are_drawn(experiment: Path) -> None:
    figure = _figure(kind="sweep", x="path.rtt", y="utilisation", at={"algorithm": ["reno", "bbr"]})
    html = draw(figure, load_experiment(experiment))
    assert len(_titles(_wide(_parsed(html)), "mark")) == len(RTTS)
    assert "algorithm = bbr: no run" in html


def test_a_line_keeps_its_colour_whatever_else_is_drawn(experiment: Path) -> None:
    loaded = load_experiment(experiment)
    alone = draw(_figure(kind="sweep", x="path.rtt", y="utilisation", at={"algorithm": "reno"}), loaded)
    both = draw(_figure(kind="sweep", x="path.rtt", y="utilisation"), loaded)
    colour = re.findall(r"--on-light:(#\w+)", alone)
    assert len(set(colour)) == 1
    assert set(colour) < set(re.findall(r"--on-light:(#\w+)", both))


def test_control_runs_show_only_where_they_are_asked_for(tmp_path: Path) -> None:
    axes = tuple({**each, **extra} for each in SWEEP.axes for extra in ({}, {"control": "no-rack"}))
    root = make_experiment(tmp_path, Scenario(**{**SWEEP.__dict__, "axes": axes}))
    _change(root, "*no-rack*", "utilisation", 0.1)
    loaded = load_experiment(root)
    plain = _titles(_wide(_parsed(draw(_figure(kind="sweep", x="path.rtt", y="utilisation"), loaded))), "mark")
    assert all(": 92 (" in title for title in plain)
    asked = _figure(kind="sweep", x="path.rtt", y="utilisation", at={"control": "no-rack"})
    assert all(": 10, n" in title for title in _titles(_wide(_parsed(draw(asked, loaded))), "mark"))
    both = _figure(kind="sweep", x="path.rtt", y="utilisation", lines="control", at={"algorithm": "reno"})
    labels = {title.split(",")[0] for title in _titles(_wide(_parsed(draw(both, loaded))), "mark")}
    assert labels == {"none", "no-rack"}


def test_names_that_are_markup_are_text(tmp_path: Path) -> None:
    nasty = "<script>alert(1)&\"'"
    root = make_experiment(
        tmp_path, Scenario(**{**SWEEP.__dict__, "axes": ({"path.rtt": nasty}, {"path.rtt": "20 ms"})})
    )
    for kind in ("sweep", "bars"):
        html = draw(_figure(kind=kind, x="path.rtt", y="utilisation", title=nasty, note=nasty), load_experiment(root))
        assert "<script" not in html
        assert _parsed(html).findtext("h3") == nasty
    table = _figure(kind="table", rows="path.rtt", columns=["utilisation"], at={"algorithm": "reno"}, title=nasty)
    html = draw(table, load_experiment(root))
    assert "<script" not in html
    assert nasty in [each.text for each in _parsed(html).iter("th")]
    time = _figure(kind="time", series=["cwnd"], panels="path.rtt", title=nasty)
    html = draw(time, load_experiment(root))
    assert "<script" not in html
    assert any(nasty in (each.text or "") for each in _parsed(html).iter("h4"))


def test_a_time_line_draws_the_curve_of_one_repetition(experiment: Path) -> None:
    figure = _figure(
        kind="time", series=["cwnd", "ssthresh", "queue"], at={"path.rtt": "20 ms"}, window=["0.5 s", "1.5 s"]
    )
    html = draw(figure, load_experiment(experiment))
    root = _parsed(html)
    assert len(_with(root, "div", "panel")) == 2, "windows share a panel, the queue has its own"
    titles = _titles(root, "curve")
    assert "cubic, flow1, congestion window" in titles
    assert "cubic, bottleneck queue" in titles
    for path in (each for each in root.iter("path") if "curve" in each.get("class", "").split()):
        if path.find("title") is None:
            continue
        across = [float(x) for x in re.findall(r"[ML]([\d.]+) ", path.get("d", ""))]
        assert across == sorted(across)
        assert min(across) > 0 and max(across) <= 430
    assert "(r0)" in html
    assert "BDP + buffer" in html


def test_a_time_line_is_thinned_and_small(tmp_path: Path) -> None:
    scenario = Scenario(algorithms=("cubic", "reno", "bbr"), repetitions=1, flows=4, duration_s=25.0, second_flow_s=0.1)
    root = make_experiment(tmp_path, scenario)
    series = ["cwnd", "ssthresh", "goodput", "rtt", "queue", "sequence", "drops"]
    html = draw(_figure(kind="time", series=series, panels="series"), load_experiment(root))
    assert len(html.encode()) < 200_000
    assert html.count('class="curve') > 60


def test_a_time_line_takes_the_repetition_that_has_its_data(tmp_path: Path) -> None:
    scenario = Scenario(algorithms=("cubic",), repetitions=3, duration_s=2.0, flows=1, invalid=(("cubic", 0),))
    root = make_experiment(tmp_path, scenario)
    figure = _figure(kind="time", series=["cwnd"])
    assert "(r1)" in draw(figure, load_experiment(root))
    for file in root.glob("*-r[12]-*/run.json"):
        file.write_text(json.dumps({**json.loads(file.read_text()), "data_removed": True}))
    html = draw(figure, load_experiment(root))
    assert "Nothing to draw" in html
    assert "is invalid" in html and "were not kept" in html


def test_runs_that_have_no_number_are_a_result_and_those_that_do_not_count_a_fault(tmp_path: Path) -> None:
    root = make_experiment(tmp_path, Scenario(**{**SWEEP.__dict__, "repetitions": 1}))
    for file in root.glob("*/metrics.json"):
        metrics = json.loads(file.read_text())
        for row in metrics["rows"]:
            if row["metric"] == "exit_cwnd_bdp":
                row |= {"value": None, "why": "the flow did not leave slow start"}
        file.write_text(json.dumps(metrics))
    figure = _figure(kind="sweep", x="path.rtt", y="exit_cwnd_bdp", flow=1)
    html = draw(figure, load_experiment(root))
    assert "the flow did not leave slow start" in html
    assert 'class="aside"' in html
    assert 'class="missing"' not in html
    for file in root.glob("*/verdict.json"):
        file.write_text(json.dumps(json.loads(file.read_text()) | {"verdict": "invalid"}))
    assert 'class="missing"' in draw(figure, load_experiment(root))


def test_drops_count_from_the_epoch(tmp_path: Path) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    root = make_experiment(tmp_path, Scenario(algorithms=("cubic",), repetitions=1, duration_s=2.0, flows=1))
    file = next(root.glob("*/tables/qdisc.parquet"))
    table = pq.read_table(file)
    at = table.schema.get_field_index("drops_packets")
    more = pa.array([value + 1000 for value in table.column("drops_packets").to_pylist()], table.schema.field(at).type)
    pq.write_table(table.set_column(at, table.schema.field(at), more), file)
    wide = _wide(_parsed(draw(_figure(kind="time", series=["drops"]), load_experiment(root))))
    labels = [each.text for each in _with(wide, "text", "note") if each.get("text-anchor") == "end"]
    assert labels[0] == "0"


def _grouped(tmp_path: Path, values: list[float | None]) -> Path:
    root = make_experiment(tmp_path, Scenario(algorithms=("cubic", "reno"), repetitions=2, flows=1, duration_s=2.0))
    return add_connections(root, values)


def test_a_distribution_reaches_the_share_that_has_a_value(tmp_path: Path) -> None:
    root = _grouped(tmp_path, [0.1, 0.2, 0.4, None])
    html = draw(_figure(kind="cdf", metric="completion_time_s"), load_experiment(root))
    wide = _wide(_parsed(html))
    assert "with at most this value; 8 connections a line, of 2 repetitions" in html
    assert "cubic: 2 of 8 connections have no completion time s" in html
    assert _titles(wide, "curve") == [
        "cubic: 6 connections, median 0.2 s",
        "reno: 6 connections, median 0.2 s",
    ]
    path = next(each for each in wide.iter("path") if each.find("title") is not None).get("d", "")
    shares = [float(value) for value in re.findall(r"V([\d.]+)", path)]
    labels = {
        each.text: float(each.get("y", "nan")) - 4
        for each in _with(wide, "text", "note")
        if each.get("text-anchor") == "end"
    }
    whole = labels["0"] - labels["100"]
    assert labels["0"] - min(shares) == pytest.approx(0.75 * whole, rel=0.01)


def test_a_table_shows_ours_and_the_papers(experiment: Path) -> None:
    figure = _figure(
        kind="table",
        rows="algorithm",
        columns=["utilisation", {"metric": "exit_cause", "flow": "flow1", "title": "cause"}],
        at={"path.rtt": "50 ms"},
        paper={"label": "Table 2", "reno": {"utilisation": "95 %", "cause": "loss"}},
    )
    html = draw(figure, load_experiment(experiment))
    rows = [["".join(cell.itertext()) for cell in row] for row in _parsed(html).iter("tr")]
    assert rows[0] == ["slow start", "utilisation%", "cause"]
    assert rows[1][:2] == ["cubic", "92 91 … 93"]
    assert rows[2][0] == "reno"
    assert rows[2][1].endswith("95")
    assert "In italics: Table 2." in html


def test_a_table_across_an_axis(experiment: Path) -> None:
    paper = {"reno": {"200 ms": "50 %"}}
    figure = _figure(kind="table", rows="algorithm", columns="path.rtt", y="utilisation", paper=paper)
    rows = [
        ["".join(cell.itertext()) for cell in row]
        for row in _parsed(draw(figure, load_experiment(experiment))).iter("tr")
    ]
    assert rows[1] == ["slow start", "20 ms%", "50 ms%", "200 ms%"]
    assert rows[3][3].endswith("50")


def test_pending_runs_are_said(tmp_path: Path) -> None:
    root = make_experiment(tmp_path, SWEEP)
    index = json.loads((root / "experiment.json").read_text())
    index["cells"].append({**index["cells"][0], "run": "cubic-20 ms-r9-00000000"})
    (root / "experiment.json").write_text(json.dumps(index))
    html = draw(_figure(kind="sweep", x="path.rtt", y="utilisation"), load_experiment(root))
    assert "1 run of this experiment has not been made" in html
