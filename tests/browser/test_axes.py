# SPDX-License-Identifier: Apache-2.0
"""Any axis laid over itself, the start-up as the first view, exits by any axis, and lines that coincide."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from howdah.plan.plan import Plan
from howdah.record import table as store
from howdah.record.directory import RunDirectory
from howdah.record.schema import TABLES
from howdah.record.table import axes_of
from howdah.report.build import report
from howdah.report.compare import compare
from tests.browser.conftest import Open
from tests.browser.test_report import figure, labels, scale
from tests.experiment_factory import Scenario, make_experiment

pytestmark = pytest.mark.browser
SWEPT = tuple({"path.rate": rate, "receiver": name} for rate in (10**7, 2 * 10**7) for name in ("linux", "freebsd"))


@pytest.fixture(scope="module")
def swept_page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two algorithms over two rates and two receivers, one flow, one repetition."""
    scenario = Scenario(name="swept", algorithms=("cubic", "reno"), repetitions=1, flows=1, duration_s=4.0, axes=SWEPT)
    return report(make_experiment(tmp_path_factory.mktemp("swept"), scenario), prometheus="off")


def press(page: Page, axis: str, text: str) -> None:
    page.click(f"[data-axis='{axis}'] button:has-text('{text}')")


def test_the_start_up_of_flows_without_an_exit_is_the_flow(visit: Open, swept_page: Path) -> None:
    """A transfer that ends while it grows, or one of a group: its curve is not a sixth of the axis."""
    page = visit(swept_page).page
    page.evaluate(
        """howdah.state.runs().forEach((run) => run.flows.forEach((flow) => {
          flow.exit = null;
          flow.span = [0.25, 0.9];
        }))"""
    )
    page.keyboard.press("0")
    page.keyboard.press("s")
    begin, end = scale(page, "cwnd")
    assert begin == pytest.approx(0.25)
    assert 0.9 < end < 1.5, "four round trips behind its last ACK"


def looks(page: Page, name: str) -> list[tuple[str, str]]:
    found = page.evaluate(f"{figure(name)}.lines.map((line) => [line.colour, line.dash.join(' ')])")
    return [(str(colour), str(dash)) for colour, dash in found]


def test_the_start_up_is_the_first_view_and_the_whole_run_one_key_away(visit: Open, swept_page: Path) -> None:
    page = visit(swept_page).page
    exits = page.evaluate("howdah.state.runs().map((run) => run.flows[0].exit.time)")
    begin, end = scale(page, "cwnd")
    assert begin == 0
    assert max(exits) < end < 3
    assert page.get_attribute("[data-frame=start]", "aria-pressed") == "true"
    page.keyboard.press("0")
    assert scale(page, "goodput")[1] == pytest.approx(4.0, abs=0.1)
    assert page.get_attribute("[data-frame=whole]", "aria-pressed") == "true"
    page.keyboard.press("s")
    assert scale(page, "queue") == pytest.approx((begin, end))
    page.click("[data-frame=whole]")
    assert scale(page, "rtt")[1] == pytest.approx(4.0, abs=0.1)
    page.click("[aria-label='zoom in']")
    expect(page.locator("[data-frame][aria-pressed=true]")).to_have_count(0)


def test_any_axis_is_laid_over_itself(visit: Open, swept_page: Path) -> None:
    page = visit(swept_page).page
    assert labels(page, "goodput") == ["cubic", "reno"]
    press(page, "path.rate", "compare")
    assert labels(page, "goodput") == ["cubic · 10000000", "reno · 10000000", "cubic · 20000000", "reno · 20000000"]
    assert len(set(looks(page, "goodput"))) == 4
    limits = page.evaluate(f"{figure('goodput')}.marksNow().limits.map((each) => each.label)")
    assert sorted(limits) == ["capacity, 10 Mbit/s", "capacity, 20 Mbit/s"]
    press(page, "algorithm", "one at a time")
    press(page, "algorithm", "reno")
    assert labels(page, "goodput") == ["10000000", "20000000"]
    press(page, "path.rate", "one at a time")
    press(page, "receiver", "compare")
    assert labels(page, "rtt") == ["linux", "freebsd"]
    assert len(set(looks(page, "rtt"))) == 2
    press(page, "path.rate", "20000000")
    assert page.evaluate("howdah.state.runs().every((run) => run.name.startsWith('reno-20000000'))")


def test_flows_of_several_algorithms_have_looks_of_their_own(visit: Open, report_page: Path) -> None:
    page = visit(report_page).page
    page.click("[data-flow='2']")
    found = looks(page, "rtt")
    assert len(found) == 6
    assert len(set(found)) == 6


def test_the_rows_of_the_strips_are_the_readers_choice(visit: Open, swept_page: Path) -> None:
    page = visit(swept_page).page
    expect(page.locator("#exits figure.strip:visible")).to_have_count(4)
    page.click("#exits button:has-text('receiver')")
    assert page.locator("#exits h3:visible").first.inner_text() == "cubic, bottleneck rate 10000000"
    page.click("#exits button:has-text('all in one')")
    expect(page.locator("#exits figure.strip:visible")).to_have_count(1)
    expect(page.locator("#exits .wide:visible text.name")).to_have_count(8)


def test_a_comparison_lays_kernels_over_each_other(visit: Open, tmp_path: Path) -> None:
    paths = [
        make_experiment(
            tmp_path, Scenario(name=f"on-{kernel}", kernel=kernel, repetitions=1, flows=1, duration_s=length)
        )
        for kernel, length in (("6.12", 3.0), ("7.0", 2.0))
    ]
    page = visit(compare(paths, tmp_path / "compare.html", "off").page).page
    assert labels(page, "rtt") == ["cubic · 6.12", "reno · 6.12", "cubic · 7.0", "reno · 7.0"]
    assert len({colour for colour, _ in looks(page, "rtt")}) == 4
    runs = page.evaluate(f"{figure('rtt')}.lines.map((line) => line.y.length)")
    assert runs[0] > runs[2], "runs of one name are not taken for each other"
    press(page, "algorithm", "one at a time")
    assert labels(page, "rtt") == ["6.12", "7.0"]


def test_lines_that_coincide_show_through(visit: Open, swept_page: Path) -> None:
    """Before the first exit both algorithms grow alike: the earlier line is striped over the later one until then."""
    page = visit(swept_page).page
    scale(page, "cwnd")
    stripes = page.evaluate(f"{figure('cwnd')}.stripesNow()")
    first = page.evaluate(f"{figure('cwnd')}.marksNow().exits.sort((a, b) => a.x - b.x)[0].x")
    colours = page.evaluate(f"{figure('cwnd')}.lines.map((line) => line.colour)")
    assert stripes
    early = [stripe for stripe in stripes if stripe["points"][0]["x"] < first]
    assert {stripe["colour"] for stripe in early} == {colours[0]}
    assert all(stripe["points"][-1]["x"] < first + 25 for stripe in early)
    saved = page.evaluate(f"howdah.save.document({figure('cwnd')})")
    assert len(re.findall('stroke-dasharray="7 [0-9]+"', saved)) == len(stripes)
    page.click("#figure-cwnd .legend button >> nth=0")
    hidden = page.evaluate(f"{figure('cwnd')}.stripesNow().map((each) => each.points[0].x)")
    assert not [x for x in hidden if x < first]


def _rewrite(run: RunDirectory, name: str, rows: list[dict[str, Any]]) -> None:
    plan = Plan.from_json(run.plan.read_text())
    columns = {field.name: [row.get(field.name) for row in rows] for field in TABLES[name]}
    store.write(run, name, store.table_of(name, columns), axes_of(plan, None))


def test_points_and_sack_ranges_of_one_time_are_each_drawn(visit: Open, tmp_path: Path) -> None:
    """Three segments sent again within a millisecond are three points, two SACK blocks of one ACK two bars."""
    root = make_experiment(tmp_path, Scenario(name="sacked", algorithms=("cubic",), repetitions=1, flows=1))
    run = RunDirectory(next(path.parent for path in root.glob("*/plan.json")))
    at = {"flow": 1, "end": "sender", "time_ns": 10**9}
    data = {**at, "sent_by": "sender", "payload_bytes": 1448, "sack_blocks": 0, "flags": 16}
    segments = [{**data, "sequence_bytes": number * 1448} for number in (0, 1, 2, 3, 0, 1, 2)]
    _rewrite(run, "segment", [each | {"sack_permitted": False, "time_stamps": False} for each in segments])
    edges = [(4 * 1448, 6 * 1448), (8 * 1448, 9 * 1448)]
    blocks = [
        {**at, "sent_by": "receiver", "left_edge_bytes": left, "right_edge_bytes": right} for left, right in edges
    ]
    _rewrite(run, "sack_block", blocks)
    page = visit(report(root, prometheus="off")).page
    page.keyboard.press("0")
    parts = page.evaluate(
        f"{figure('sequence')}.lines.filter((line) => line.points || line.low).map((line) => line.part)"
    )
    spots = dict(zip(parts, page.evaluate(f"{figure('sequence')}.spotsNow()"), strict=True))
    assert len({(each["x"], each["y"]) for each in spots["retransmitted"]["points"]}) == 3
    bars = sorted(spots["SACKed"]["bars"], key=lambda bar: -float(bar["y"]))
    assert [bar["low"] > bar["y"] for bar in bars] == [True, True]
    place = f"{figure('sequence')}.position(1, {4 * 1448 / 1e6}).y"
    assert bars[0]["low"] == pytest.approx(max(page.evaluate(place), bars[0]["y"] + 1), abs=0.2)
    saved = page.evaluate(f"howdah.save.document({figure('sequence')})")
    assert len(re.findall("a3 3 0 1 1 -6 0", saved)) >= 3
    page.click("#figure-sequence .legend button:has-text('SACKed')")
    assert not [each for each in page.evaluate(f"{figure('sequence')}.spotsNow()") if each["bars"]]


def test_the_whole_run_ends_behind_its_last_flow(visit: Open, tmp_path: Path) -> None:
    """The axis ends where flows do, and a note says when the plan does."""
    root = make_experiment(
        tmp_path, Scenario(name="short", algorithms=("cubic",), repetitions=1, flows=1, duration_s=8.0)
    )
    run = RunDirectory(next(path.parent for path in root.glob("*/plan.json")))
    row = store.read(run, "flow").to_pylist()[0] | {"complete": True, "end_ns": 2 * 10**9}
    _rewrite(run, "flow", [row])
    page = visit(report(root, prometheus="off")).page
    page.keyboard.press("0")
    for name in ("cwnd", "goodput", "queue"):
        assert scale(page, name)[1] == pytest.approx(2.4), name
    expect(page.locator("#figure-cwnd .note:has-text('the plan does (at 8 s)')")).to_have_count(1)
    expect(page.locator(".note:has-text('the plan does')")).to_have_count(1)


def test_the_sequence_of_one_run_has_its_parts_and_of_several_the_main_ones(visit: Open, swept_page: Path) -> None:
    page = visit(swept_page).page
    over = page.evaluate(f"{figure('sequence')}.lines.map((line) => line.part)")
    assert set(over) <= {"sent", "acknowledged", "retransmitted"}
    assert over.count("sent") == 2
    press(page, "algorithm", "one at a time")
    parts = page.evaluate(f"{figure('sequence')}.lines.map((line) => line.part)")
    assert {"sent", "acknowledged", "congestion window"} <= set(parts)
    assert len(set(looks(page, "sequence"))) == len(parts), "each part has a look of its own"
    page.click("[aria-label='zoom in']")
    assert scale(page, "sequence") == pytest.approx(scale(page, "cwnd"))
