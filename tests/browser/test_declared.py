# SPDX-License-Identifier: Apache-2.0
"""Figures that a profile declares, as a reader sees them: legible, apart, within the page, in both themes, on paper."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from howdah.report.build import report
from tests.browser.conftest import Open
from tests.browser.drawn import contrast
from tests.experiment_factory import Scenario, make_experiment

PROFILE = """\
howdah: 1
name: declared
path: {rate: 5 Mbit/s, rtt: [20 ms, 50 ms, 100 ms, 200 ms]}
algorithm: [cubic-no-hystart, cubic, reno]
duration: 3 s
figures:
  - {id: sweep, title: Utilisation against RTT, kind: sweep, x: path.rtt, y: utilisation, log: x,
     paper: {label: Table 1, points: {cubic: {20 ms: 96 %, 100 ms: 71.8 %}}}}
  - {id: panels, title: Exits, kind: sweep, x: path.rtt, y: exit_cwnd_packets, flow: flow1, panels: algorithm}
  - {id: bars, title: Overshoot, kind: bars, x: path.rtt, y: retransmitted_packets, flow: flow1}
  - {id: windows, title: Windows, kind: time, series: [cwnd, ssthresh], panels: algorithm, at: {path.rtt: 100 ms}}
  - {id: curves, title: Start-up, kind: time, series: [cwnd, goodput, rtt, queue], at: {path.rtt: 100 ms}}
  - {id: table, title: Utilisation, kind: table, rows: algorithm, columns: path.rtt, y: utilisation,
     paper: {label: Table 2, cubic: {20 ms: 96 %}}}
  - {id: absent, title: Not measured, kind: sweep, x: path.rtt, y: completion_time_s}
"""
FIGURES = ["sweep", "panels", "bars", "windows", "curves", "table", "absent"]


@pytest.fixture(scope="module")
def declared_page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    scenario = Scenario(
        name="declared",
        algorithms=("cubic-no-hystart", "cubic", "reno"),
        repetitions=3,
        duration_s=3.0,
        second_flow_s=1.0,
        rate_bits_per_second=5_000_000,
        axes=tuple({"path.rtt": rtt} for rtt in ("20 ms", "50 ms", "100 ms", "200 ms")),
        invalid=(("reno", 1),),
    )
    root = make_experiment(tmp_path_factory.mktemp("runs"), scenario)
    (root / "profile.yaml").write_text(PROFILE)
    for file in root.glob("*-r2-*/run.json"):
        file.write_text(json.dumps({**json.loads(file.read_text()), "data_removed": True}))
    return report(root, prometheus="off")


def test_every_figure_is_there_in_the_order_of_the_profile(visit: Open, declared_page: Path) -> None:
    page = visit(declared_page).page
    assert page.evaluate("[...document.querySelectorAll('figure.declared')].map((e) => e.dataset.figure)") == FIGURES
    assert "Nothing to draw: no run has the measure completion_time_s" in page.inner_text("[data-figure=absent]")
    assert "keep: first" in page.inner_text("#figures")
    sizes = page.evaluate("[...document.querySelectorAll('figure.declared')].map((e) => e.outerHTML.length)")
    assert max(sizes) < 200_000


@pytest.mark.parametrize("width", [360, 820, 1440])
def test_no_texts_lie_on_each_other_and_none_sticks_out(visit: Open, declared_page: Path, width: int) -> None:
    page = visit(declared_page, width=width).page
    found = page.evaluate(
        """[...document.querySelectorAll('figure.declared svg.chart')].filter((e) => e.clientWidth).flatMap((svg) => {
          const frame = svg.getBoundingClientRect();
          const boxes = [...svg.querySelectorAll('text')].map((e) => [e.textContent, e.getBoundingClientRect()]);
          const wrong = [];
          boxes.forEach(([text, a], i) => {
            const beside = a.left < frame.left - 1 || a.right > frame.right + 1;
            if (beside || a.bottom > frame.bottom + 1 || a.top < frame.top - 1) wrong.push('out: ' + text);
            boxes.slice(i + 1).forEach(([other, b]) => {
              const across = Math.min(a.right, b.right) - Math.max(a.left, b.left);
              const down = Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top);
              if (across > 1 && down > 3) wrong.push(`${text} on ${other}`);
            });
          });
          return wrong.map((each) => svg.closest('figure').dataset.figure + ': ' + each);
        })"""
    )
    # Limits of the path may come close to each other: their labels say the same as the lines.
    assert [each for each in found if "BDP" not in each] == []
    assert page.evaluate("document.documentElement.scrollWidth") == width


@pytest.mark.parametrize("width", [360, 1440])
def test_letters_are_large_enough_to_read(visit: Open, declared_page: Path, width: int) -> None:
    page = visit(declared_page, width=width).page
    heights = page.evaluate(
        """[...document.querySelectorAll('figure.declared svg.chart')].filter((e) => e.clientWidth)
        .flatMap((svg) => [...svg.querySelectorAll('text')].map((e) => e.getBoundingClientRect().height))"""
    )
    assert len(heights) > 50
    assert min(heights) >= 9


def test_one_size_of_each_drawing_is_shown(visit: Open, declared_page: Path) -> None:
    for width, wide in ((390, False), (1440, True)):
        page = visit(declared_page, width=width).page
        assert page.locator("[data-figure=sweep] svg.wide").is_visible() is wide
        assert page.locator("[data-figure=sweep] svg.narrow").is_visible() is not wide


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_lines_stand_out_from_the_page(visit: Open, declared_page: Path, theme: str) -> None:
    page = visit(declared_page, theme=theme).page
    surface = page.evaluate("getComputedStyle(document.body).backgroundColor")
    colours = page.evaluate(
        """[...document.querySelectorAll('figure.declared .wide .line .curve, figure.declared .wide .line .bar')]
        .map((e) => { const s = getComputedStyle(e); return s.fill === 'none' ? s.stroke : s.fill; })"""
    )
    assert len(set(colours)) == 3, "one colour an algorithm"
    for colour in colours:
        assert contrast(colour, surface) >= 3, colour
    hollow = page.evaluate("getComputedStyle(document.querySelector('[data-figure=sweep] .wide .hollow')).fill")
    assert contrast(hollow, surface) == pytest.approx(1), "printed numbers are hollow"


def test_those_who_cannot_see_them_are_told_the_numbers(visit: Open, declared_page: Path) -> None:
    page = visit(declared_page).page
    assert page.locator("[data-figure=sweep] svg.wide").get_attribute("aria-label") == "Utilisation against RTT"
    words = page.locator("[data-figure=sweep] svg.wide > desc").text_content() or ""
    assert "cubic: 20\u00a0ms 92" in words
    assert page.locator("[data-figure=sweep] .absences summary").inner_text() == "4 missing"


def test_they_need_no_script(declared_page: Path) -> None:
    text = declared_page.read_text()
    section = text[text.index('<section id="declared"') : text.index('<section id="figures"')]
    assert "<script" not in section
    assert "onclick" not in section
    assert section.count("<svg") > 10


def test_on_paper_they_are_whole(visit: Open, declared_page: Path) -> None:
    page = visit(declared_page).page
    page.emulate_media(media="print")
    assert page.locator("[data-figure=sweep] svg.wide").is_visible()
    assert page.evaluate("getComputedStyle(document.querySelector('.declared')).breakInside") == "avoid"


def test_dashes_are_drawn_as_the_legend_shows_them(visit: Open, declared_page: Path) -> None:
    page = visit(declared_page).page
    found = page.evaluate(
        """[...document.querySelectorAll("figure.declared [stroke-dasharray]")].map((each) => [
             Boolean(each.closest(".chart-legend")), each.getAttribute("stroke-dasharray"),
             getComputedStyle(each).strokeDasharray.replaceAll("px", "").replaceAll(",", "")])"""
    )
    assert {in_legend for in_legend, _, _ in found} == {True, False}
    assert [(asked, drawn) for _, asked, drawn in found if asked != drawn] == []
