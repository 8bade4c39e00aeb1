# SPDX-License-Identifier: Apache-2.0
"""A reader's way through a report, in a real browser without network."""

from __future__ import annotations

import io
import json
import re
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest
from PIL import Image
from playwright.sync_api import Page, expect

from howdah.report.build import report
from howdah.report.codec import encode, encode_integers
from tests.browser.conftest import Open
from tests.experiment_factory import Scenario, make_experiment, rewrite_plan

pytestmark = pytest.mark.browser
SVG = "{http://www.w3.org/2000/svg}"
FIGURES = ["cwnd", "rtt", "goodput", "queue", "sequence", "exit-cwnd", "exit-rtt"]


def figure(name: str) -> str:
    """A figure's object in the page, as a JavaScript expression."""
    return f"howdah.figures.find((f) => f.description.id === '{name}')"


def labels(page: Page, name: str) -> list[str]:
    found: list[str] = page.evaluate(f"{figure(name)}.lines.map((line) => line.label)")
    return found


def scale(page: Page, name: str) -> tuple[float, float]:
    """The range of times in view, once what was asked of the figure is done."""
    found = page.evaluate(
        f"new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => {{"
        f"const x = {figure(name)}.plot.scales.x; done([x.min, x.max]); }})))"
    )
    return float(found[0]), float(found[1])


def inked(page: Page, name: str) -> int:
    """Pixels of a figure's canvas that have the colour of its first line."""
    count: int = page.evaluate(
        """(name) => {
        const figure = howdah.figures.find((f) => f.description.id === name);
        const colour = figure.lines[0].colour;
        const wanted = [1, 3, 5].map((at) => parseInt(colour.slice(at, at + 2), 16));
        const { width, height } = figure.plot.ctx.canvas;
        const copy = new OffscreenCanvas(width, height).getContext("2d", { willReadFrequently: true });
        copy.drawImage(figure.plot.ctx.canvas, 0, 0);
        const data = copy.getImageData(0, 0, width, height).data;
        let count = 0;
        for (let at = 0; at < data.length; at += 4)
          if (wanted.every((value, i) => Math.abs(data[at + i] - value) < 24) && data[at + 3] > 200) count++;
        return count;
        }""",
        name,
    )
    return count


def saved(page: Page, name: str, kind: str) -> bytes:
    with page.expect_download() as download:
        page.click(f"#figure-{name} .save-{kind}")
    assert download.value.suggested_filename == f"browser-test-{name}.{kind}"
    return Path(download.value.path()).read_bytes()


def decoded_png(data: bytes) -> tuple[int, int, set[tuple[int, ...]]]:
    """Width, height and the colours of an 8-bit RGB or RGBA image."""
    with Image.open(io.BytesIO(data), formats=["PNG"]) as image:
        assert image.mode in ("RGB", "RGBA")
        found = image.getcolors(image.width * image.height)
        assert found is not None
        return image.width, image.height, {tuple(colour[:3]) for _, colour in found if isinstance(colour, tuple)}


def test_every_figure_is_drawn(visit: Open, report_page: Path) -> None:
    page = visit(report_page).page
    assert page.evaluate("howdah.figures.map((f) => f.description.id)") == FIGURES
    for name in FIGURES:
        assert inked(page, name) > 100, name
    assert labels(page, "goodput") == ["cubic-no-hystart", "cubic", "reno"]
    assert len(labels(page, "cwnd")) == 6


def test_a_reader_clicks_through_algorithms_flows_and_repetitions(visit: Open, report_page: Path) -> None:
    page = visit(report_page).page
    page.click("[data-variant=cubic]")
    assert labels(page, "goodput") == ["cubic-no-hystart", "reno"]
    page.click("button:has-text('one at a time')")
    assert labels(page, "goodput") == ["flow1", "flow2"]
    for name in ("cubic", "reno", "cubic-no-hystart"):
        page.click(f"[data-variant={name}]")
        assert page.get_attribute(f"[data-variant={name}]", "aria-pressed") == "true"
        assert page.evaluate("howdah.state.runs().map((run) => howdah.state.data.variants[run.variant].label)") == [
            name
        ]
        assert labels(page, "cwnd") == ["flow1 cwnd", "flow1 ssthresh", "flow2 cwnd", "flow2 ssthresh"]
        assert inked(page, "cwnd") > 100
    page.click("[data-flow='1']")
    assert labels(page, "rtt") == ["flow2"]
    page.click("[data-flow='2']")
    assert labels(page, "rtt") == ["flow2"], "the last flow cannot be taken away"
    page.select_option("#repetition", "all")
    assert labels(page, "rtt") == ["flow2 r0", "flow2 r1"]
    page.click("[data-variant=reno]")
    assert "is invalid: it enters no summary" in page.inner_text("#figure-cwnd")


def test_focus_stays_where_the_reader_was(visit: Open, report_page: Path) -> None:
    page = visit(report_page).page
    page.focus("[data-variant=reno]")
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.dataset.variant") == "reno"


def test_the_exit_is_marked_with_its_cause(visit: Open, report_page: Path) -> None:
    page = visit(report_page).page
    scale(page, "cwnd")
    marks = page.evaluate(f"{figure('cwnd')}.marksNow().exits.map((each) => each.label)")
    assert sorted(re.sub(r"[\d\u202f]+$", "N", mark) for mark in marks) == [
        "cubic-no-hystart: exit: loss, N",
        "cubic: exit: ACK train, N",
        "reno: exit: loss, N",
    ]
    limits = page.evaluate(f"{figure('cwnd')}.marksNow().limits.map((each) => each.label)")
    assert limits == ["BDP", "BDP + buffer"]


def test_dragging_zooms_all_figures_of_time_and_double_click_resets(visit: Open, report_page: Path) -> None:
    page = visit(report_page).page
    page.click("#reset")
    whole = scale(page, "cwnd")
    for name in ("rtt", "goodput", "queue"):
        assert scale(page, name) == whole, "figures of one axis are aligned before any zoom"
    before = scale(page, "exit-cwnd")
    over = page.locator("#figure-cwnd .u-over")
    over.scroll_into_view_if_needed()
    box = over.bounding_box()
    assert box is not None
    page.mouse.move(box["x"] + 0.25 * box["width"], box["y"] + 50)
    page.mouse.down()
    page.mouse.move(box["x"] + 0.5 * box["width"], box["y"] + 60, steps=5)
    page.mouse.up()
    zoomed = scale(page, "cwnd")
    span = whole[1] - whole[0]
    assert zoomed[0] == pytest.approx(whole[0] + 0.25 * span, abs=0.02 * span)
    assert zoomed[1] == pytest.approx(whole[0] + 0.5 * span, abs=0.02 * span)
    for name in ("rtt", "goodput", "queue"):
        assert scale(page, name) == pytest.approx(zoomed)
    assert scale(page, "exit-cwnd") == before
    page.mouse.dblclick(box["x"] + 0.3 * box["width"], box["y"] + 50)
    assert scale(page, "cwnd") == pytest.approx(whole)
    page.click("[aria-label='zoom in']")
    assert scale(page, "queue")[1] - scale(page, "queue")[0] == pytest.approx(span / 2, rel=0.01)
    page.click("#reset")
    assert scale(page, "queue") == pytest.approx(whole)


def test_a_figure_is_used_from_the_keyboard(visit: Open, report_page: Path) -> None:
    page = visit(report_page).page
    page.focus("#figure-rtt .canvas")
    page.keyboard.press("0")
    whole = scale(page, "rtt")
    page.keyboard.press("End")
    page.keyboard.press("ArrowLeft")
    spoken = page.inner_text("#spoken")
    assert re.fullmatch(r"\d+\.\d+ s: cubic-no-hystart [\d.]+ ms, cubic [\d.]+ ms, reno [\d.]+ ms", spoken), spoken
    page.keyboard.press("+")
    zoomed = scale(page, "rtt")
    assert zoomed[1] - zoomed[0] == pytest.approx((whole[1] - whole[0]) / 2, rel=0.01)
    page.keyboard.press("Shift+ArrowLeft")
    assert scale(page, "rtt")[0] < zoomed[0]
    page.keyboard.press("0")
    assert scale(page, "rtt") == pytest.approx(whole)


def test_the_cursor_shows_values_and_the_legend_hides_lines(visit: Open, report_page: Path) -> None:
    page = visit(report_page).page
    over = page.locator("#figure-goodput .u-over")
    over.scroll_into_view_if_needed()
    box = over.bounding_box()
    assert box is not None
    page.mouse.move(box["x"] + 0.6 * box["width"], box["y"] + 20)
    values = page.locator("#figure-goodput .legend output").all_inner_texts()
    assert len(values) == 3
    assert all(re.fullmatch(r"[\d.]+", value) for value in values)
    assert page.inner_text("#figure-goodput .legend .at").startswith("at ")
    assert page.inner_text("#figure-queue .legend .at").startswith("at "), "the figures share the cursor"
    shown = inked(page, "goodput")
    first = page.locator("#figure-goodput .legend button").first
    first.click()
    assert first.get_attribute("aria-pressed") == "false"
    scale(page, "goodput")
    assert inked(page, "goodput") < shown / 4


def test_svg_is_written_from_the_view(visit: Open, report_page: Path) -> None:
    page = visit(report_page).page
    page.click("[data-variant=cubic]")
    scale(page, "cwnd")
    document = ElementTree.fromstring(saved(page, "cwnd", "svg"))
    texts = ["".join(each.itertext()) for each in document.iter(f"{SVG}text")]
    assert "browser-test – Congestion window, packets" in texts
    assert {"BDP", "BDP + buffer", "seconds from the start of the experiment"} <= set(texts)
    assert any(re.match(r"reno: exit: loss, \d+", text) for text in texts)
    assert not any("cubic:" in text for text in texts)
    lines = [path for path in document.iter(f"{SVG}path") if path.find(f"{SVG}title") is not None]
    titles = [path.findtext(f"{SVG}title") for path in lines]
    assert titles == ["cubic-no-hystart cwnd", "cubic-no-hystart ssthresh", "reno cwnd", "reno ssthresh"]
    width = float(document.attrib["width"])
    zoomed_points = [float(x) for x in re.findall(r"[ML]([\d.-]+) ", lines[0].attrib["d"])]
    assert len(zoomed_points) > 20
    assert max(zoomed_points) > 0.8 * width
    page.click("#reset")
    scale(page, "cwnd")
    again = ElementTree.fromstring(saved(page, "cwnd", "svg"))
    whole = next(p for p in again.iter(f"{SVG}path") if p.findtext(f"{SVG}title") == "cubic-no-hystart cwnd")
    assert whole.attrib["d"] != lines[0].attrib["d"]


@pytest.mark.parametrize(("theme", "surface"), [("light", (255, 255, 255)), ("dark", (0x15, 0x18, 0x1C))])
def test_png_shows_the_lines_on_the_surface_of_the_theme(
    visit: Open, report_page: Path, theme: str, surface: tuple[int, int, int]
) -> None:
    page = visit(report_page, theme=theme).page
    width, height, colours = decoded_png(saved(page, "queue", "png"))
    assert width == 2 * page.evaluate(f"{figure('queue')}.plot.width")
    assert height > 400
    assert surface in colours
    for line in page.evaluate(f"{figure('queue')}.lines.map((line) => line.colour)"):
        assert (int(line[1:3], 16), int(line[3:5], 16), int(line[5:7], 16)) in colours


def test_the_theme_follows_the_system_and_the_button(visit: Open, report_page: Path) -> None:
    page = visit(report_page, theme="dark").page
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(21, 24, 28)"
    page.click("#theme")
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    assert inked(page, "cwnd") > 100


@pytest.mark.parametrize("width", [390, 1440])
def test_nothing_sticks_out_at_the_side(visit: Open, report_page: Path, width: int) -> None:
    page = visit(report_page, width=width).page
    assert page.evaluate("document.documentElement.scrollWidth") == width
    wider = page.evaluate(
        """[...document.querySelectorAll('main *, header *, footer *')]
        .filter((e) => !e.closest('.scroll') && e.getBoundingClientRect().right > innerWidth + 1
                       && getComputedStyle(e).clipPath === 'none')
        .map((e) => e.tagName + '.' + (e.className.baseVal ?? e.className))"""
    )
    assert wider == []


def test_a_phone_has_the_upright_drawing_and_buttons_a_thumb_hits(visit: Open, report_page: Path) -> None:
    page = visit(report_page, width=390, height=844).page
    assert page.locator(".dumbbell .narrow").is_visible()
    assert not page.locator(".dumbbell .wide").is_visible()
    heights = page.evaluate("[...document.querySelectorAll('.controls button')].map((e) => e.offsetHeight)")
    assert min(heights) >= 34


def test_everything_that_acts_has_a_name(visit: Open, report_page: Path) -> None:
    page = visit(report_page).page
    nameless = page.evaluate(
        """[...document.querySelectorAll('button, select, a, [role=img], [role=application], [tabindex]')]
        .filter((e) => !(e.getAttribute('aria-label') || e.textContent.trim())).map((e) => e.outerHTML.slice(0, 80))"""
    )
    assert nameless == []
    assert page.evaluate("document.querySelectorAll('h1').length") == 1


def test_missing_data_is_said_where_the_figure_would_be(visit: Open, tmp_path: Path) -> None:
    scenario = Scenario(
        algorithms=("reno",), repetitions=1, duration_s=2.0, flows=1, without_tables=("tcp_probe", "qdisc")
    )
    page = visit(report(make_experiment(tmp_path, scenario), prometheus="off")).page
    assert "Nothing to draw: reno-r0-00000000: no qdisc records of the bottleneck" in page.inner_text("#figure-queue")
    assert "no tcp_probe records" in page.inner_text("#figure-exit-cwnd")
    assert not page.locator("#figure-queue .canvas").is_visible()
    assert page.is_disabled("#figure-queue .save-png")
    assert inked(page, "cwnd") > 50, "tcp_info still gives windows"


def test_a_flow_that_stayed_in_slow_start_is_said_where_its_exit_would_be_and_not_in_red(
    visit: Open, tmp_path: Path
) -> None:
    directory = make_experiment(tmp_path, Scenario(algorithms=("reno",), repetitions=1, duration_s=2.0, flows=1))
    file = next(directory.glob("reno-*/metrics.json"))
    metrics = json.loads(file.read_text())
    for row in metrics["rows"]:
        if row["metric"].startswith("exit_"):
            row |= {"value": None, "why": "the flow did not leave slow start"}
    file.write_text(json.dumps(metrics))
    page = visit(report(directory, prometheus="off")).page
    assert "flow1 did not leave slow start" in page.inner_text("#figure-exit-cwnd")
    expect(page.locator("main .missing")).to_have_count(0)
    assert not page.locator("#figure-exit-cwnd .canvas").is_visible()


def test_names_that_are_markup_are_shown_as_text(visit: Open, tmp_path: Path) -> None:
    nasty = "<img src=x onerror=alert(1)>\"'</script>"
    directory = make_experiment(tmp_path, Scenario(algorithms=("reno",), repetitions=1, duration_s=2.0, flows=1))
    rewrite_plan(next(directory.glob("reno-*")), algorithm=nasty, axes={nasty: nasty})
    page = visit(report(directory, prometheus="off")).page
    assert nasty in page.inner_text("#controls")
    expect(page.locator("img")).to_have_count(0)
    document = page.evaluate(f"howdah.save.document({figure('cwnd')})")
    assert ElementTree.fromstring(document).tag == f"{SVG}svg"


def test_columns_are_read_as_they_were_written(visit: Open, report_page: Path) -> None:
    import numpy as np

    page = visit(report_page).page
    integers = np.array([0, 1, -1, 2**31, -(2**40), 2**50, 7], dtype=np.int64)
    assert page.evaluate("(c) => howdah.codec.column(c)", encode_integers(integers)) == integers.tolist()
    values = np.array([np.nan, 1.5, -2.25, np.nan, 0.0])
    assert page.evaluate("(c) => howdah.codec.column(c)", encode(values, 0.25)) == [None, 1.5, -2.25, None, 0.0]


def test_numbers_are_written_as_in_the_tables(visit: Open, report_page: Path) -> None:
    from howdah.number import significant

    page = visit(report_page).page
    for value in (0, 9430, 15893, 3.21456, 0.00012345, -2.5, 1234567.8, 0.99996):
        assert page.evaluate("(v) => howdah.format.significant(v)", value) == significant(value)


def test_the_repetitions_of_a_line_are_shaded_behind_it(visit: Open, report_page: Path) -> None:
    page = visit(report_page).page
    notes = page.locator("#figure-cwnd p.note", has_text="Shaded")
    assert notes.inner_text() == "Shaded: 2 repetitions, from the least to the largest."
    # Of reno one repetition is invalid, and those of cubic without HyStart are equal.
    bands = page.evaluate(f"{figure('cwnd')}.bandsNow()")
    colours = page.evaluate(f"{figure('cwnd')}.lines.filter((line) => line.part === 'cwnd').map((line) => line.colour)")
    assert [band["colour"] for band in bands] == colours[1:2]
    line = page.evaluate(
        f"((line) => [line.x, line.y])({figure('cwnd')}.lines.find((each) => each.run.name.startsWith('cubic-r0')))"
    )
    step = max(value or 0 for value in bands[0]["high"]) / 1000  # of the coded values
    for at, value in zip(*line, strict=True):
        cell = next(number for number, edge in enumerate(bands[0]["x"][1:]) if at <= edge)
        assert bands[0]["low"][cell] - step <= value <= bands[0]["high"][cell] + step
    outlines = page.evaluate(f"{figure('cwnd')}.outlinesNow()")
    saved = page.evaluate(f"howdah.save.document({figure('cwnd')})")
    assert outlines
    assert all(f'd="{outline["path"]}"' in saved for outline in outlines)
    page.select_option("#repetition", "all")
    assert page.evaluate(f"{figure('cwnd')}.bandsNow()") == []
    expect(notes).to_have_count(0)


def test_words_of_a_figure_saved_on_a_phone_are_broken_into_lines(visit: Open, tmp_path: Path) -> None:
    """Of the experiment and of a line: longer than the screen is wide, and all of them are there."""
    name, flow = "a-rather-long-name-of-an-experiment-400mbit-240ms", "a flow whose name tells a lot of what it carries"
    names = (flow, "another")
    scenario = Scenario(name=name, algorithms=("cubic", "reno"), repetitions=1, duration_s=4.0, flow_names=names)
    page = visit(report(make_experiment(tmp_path, scenario), prometheus="off"), width=390).page
    page.click("#controls button:has-text('another')")
    document = page.evaluate(f"howdah.save.document({figure('cwnd')})")
    texts = [each.text or "" for each in ElementTree.fromstring(document).iter(f"{SVG}text")]
    assert f"{name} – Congestion window, packets" in "".join(texts)
    assert f"cubic {flow} cwnd" in "".join(texts)
    beyond = page.evaluate(
        """(document_) => {
          const box = document.createElement("div");
          box.innerHTML = document_;
          document.body.append(box);
          const svg = box.querySelector("svg");
          const { left, right, bottom } = svg.getBoundingClientRect();
          const found = [...svg.querySelectorAll("text")].filter((each) => {
            const at = each.getBoundingClientRect();
            return at.left < left || at.right > right || at.bottom > bottom;
          });
          box.remove();
          return found.map((each) => each.textContent);
        }""",
        document,
    )
    assert beyond == []
