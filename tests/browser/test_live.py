# SPDX-License-Identifier: Apache-2.0
"""The live page as a reader has it: served by the real Prometheus, drawing a run that grows, asking no one else."""

from __future__ import annotations

import fcntl
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from howdah.assets import data
from howdah.publish.scrape import scrape
from howdah.publish.server import Server, running
from howdah.record.directory import write_json
from tests.browser.kinds import Pages
from tests.prometheus_fixture import prometheus_or_skip
from tests.unit.recorded_run import record_experiment
from tests.unit.underway_run import Underway, make_underway, make_virtual

pytestmark = pytest.mark.browser

_SLOW_MS = 40_000


@dataclass
class Live:
    """A server that may be ended, the page, and everything the page said or asked elsewhere."""

    server: Server
    page: Page
    complaints: list[str] = field(default_factory=list)
    elsewhere: list[str] = field(default_factory=list)


@contextmanager
def watched(browser: Browser, parent: Path) -> Iterator[Live]:
    """The page of what is underway in ``runs`` of a directory, as one opens it."""
    (parent / "data").mkdir()
    with (
        scrape(parent / "runs", parent, (), lambda _line: None) as scraping,
        running(prometheus_or_skip(), parent / "data", live=scraping) as server,
    ):
        context = browser.new_context(viewport={"width": 1200, "height": 900}, color_scheme="light")
        page = context.new_page()
        found, own = Live(server, page), (server.url, "data:")
        page.on("console", lambda said: found.complaints.append(said.text) if said.type == "error" else None)
        page.on("pageerror", lambda error: found.complaints.append(str(error)))
        page.on("request", lambda asked: None if asked.url.startswith(own) else found.elsewhere.append(asked.url))
        try:
            page.goto(f"{server.url}/user/live.html")
            page.wait_for_selector("html[data-ready=true]")
            yield found
        finally:
            context.close()
    assert found.elsewhere == []


@pytest.fixture
def virtual(browser: Browser, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Live, Underway]]:
    """The same with a run of the default engine, of which nothing is there yet."""
    parent = tmp_path_factory.mktemp("virtual")
    underway = make_virtual(parent / "runs")
    with watched(browser, parent) as found:
        yield found, underway


def test_the_page_shows_what_is_made_and_what_is_to_come(virtual: tuple[Live, Underway]) -> None:
    live, underway = virtual
    experiment = underway.directory.parent
    cells = [{"run": f"cubic-r{number}-00000000", "algorithm": "cubic", "axes": {}} for number in range(4)]
    write_json(experiment / "experiment.json", {"cells": cells})
    run = experiment / "cubic-r0-00000000"
    run.mkdir()
    write_json(run / "verdict.json", {"verdict": "pass"})
    write_json(run / "run.json", {"status": "finished", "wall_s": 600.0})
    with (experiment / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        row = live.page.locator("#queue tr", has_text=experiment.name)
        expect(row).to_contain_text("about 30 min", timeout=_SLOW_MS)
        assert row.locator("th, td").all_inner_texts()[1:] == ["1 pass", "0", "3", "about 30 min"]
        expect(live.page.locator("#next")).to_contain_text("cubic-r1-00000000, cubic-r2-00000000, cubic-r3-00000000")
    expect(live.page.locator("#queue-box")).to_be_hidden(timeout=_SLOW_MS)
    assert live.complaints == []


def test_a_run_in_virtual_time_fills_the_page_as_its_trace_grows(virtual: tuple[Live, Underway]) -> None:
    live, underway = virtual
    page = live.page
    card = page.locator("article.run")
    expect(card.locator("h3")).to_have_text("live/recorded", timeout=_SLOW_MS)
    expect(card.locator("li[aria-current=step]")).to_have_text("flows")
    expect(card.locator(".facts")).not_to_contain_text("ACKs")
    expect(page.locator("#exits-box")).to_be_hidden()
    underway.write(0.1)
    expect(card.locator(".facts")).to_contain_text("ACKs in a simulated second", timeout=_SLOW_MS)
    underway.write(1)
    expect(page.locator("#exits tr")).to_have_count(1, timeout=_SLOW_MS)
    expect(page.locator("#exits")).to_contain_text("in progress")
    expect(card.get_by_role("img", name="Congestion window so far")).to_be_visible()
    # What only a clock of this machine can tell is not waited for.
    expect(page.locator("#panel-queue")).to_be_hidden()
    assert "nothing yet" not in page.locator("main").inner_text()
    write_json(underway.directory / "raw" / "progress.json", {"phase": "done", "time_us": 4, "of_us": 4})
    expect(card.locator("li[aria-current=step]")).to_have_text("ingest", timeout=_SLOW_MS)
    record_experiment(underway.directory.parents[1] / "recorded")
    underway.directory.rename(underway.directory.parents[2] / "away")
    expect(page.locator("#exits")).to_contain_text("ack-train", timeout=_SLOW_MS)
    expect(card).to_have_count(0)
    assert live.complaints == []


@pytest.fixture
def live(browser: Browser, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Live]:
    parent, ended = tmp_path_factory.mktemp("live"), threading.Event()
    underway = make_underway(parent / "runs")

    def grow() -> None:
        step = 0
        while not ended.wait(0.5):
            step += 1
            if step <= 24:
                underway.write(step / 24)
            else:
                underway.repeat(16)

    growing = threading.Thread(target=grow)
    growing.start()
    try:
        with watched(browser, parent) as found:
            yield found
    finally:
        ended.set()
        growing.join()


def test_panels_fill_as_the_run_goes_on(live: Live) -> None:
    page = live.page
    expect(page.locator("#panel-cwnd canvas")).to_be_visible(timeout=_SLOW_MS)
    expect(page.locator("#panel-goodput canvas")).to_be_visible(timeout=_SLOW_MS)
    expect(page.locator("#panel-queue canvas")).to_be_visible(timeout=_SLOW_MS)
    expect(page.locator("#panel-cwnd .u-legend")).to_contain_text("bulk")
    expect(page.locator("#status")).to_have_text("recorded: flows")
    # Something is drawn: pixels of the first colour, not an empty frame.
    page.get_by_label("Last").select_option(label="minute")
    first = data("palette.yaml")["others"][0]["light"]
    page.wait_for_function(
        """(colour) => {
          const canvas = document.querySelector("#panel-cwnd canvas");
          const pixels = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height).data;
          let count = 0;
          for (let at = 0; at < pixels.length; at += 4) {
            if (pixels[at + 3] > 200 && colour.every((each, i) => Math.abs(pixels[at + i] - each) < 30)) count++;
          }
          return count > 40;
        }""",
        arg=list(bytes.fromhex(first.removeprefix("#"))),
        timeout=_SLOW_MS,
    )
    assert live.complaints == []


def test_a_run_can_be_chosen_and_the_page_paused(live: Live) -> None:
    page = live.page
    choice = page.get_by_role("combobox", name="Run")
    expect(choice.locator("option")).to_have_count(2, timeout=_SLOW_MS)
    choice.select_option(label="live/recorded")
    expect(page.locator("#panel-cwnd canvas")).to_be_visible(timeout=_SLOW_MS)
    page.get_by_role("button", name="Pause").click()
    page.wait_for_timeout(1500)  # a look that had begun is over
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.wait_for_timeout(2500)
    assert asked == []
    page.get_by_role("button", name="Go on").click()
    with page.expect_request("**/query_range*"):
        pass
    assert live.complaints == []


def test_it_says_when_the_server_is_gone(live: Live) -> None:
    live.server.stop()
    expect(live.page.locator("#status")).to_contain_text("The server does not answer", timeout=_SLOW_MS)


def test_nothing_lies_beyond_the_edge_of_a_narrow_screen(live: Live) -> None:
    page = live.page
    page.set_viewport_size({"width": 360, "height": 740})
    expect(page.locator("#panel-cwnd canvas")).to_be_visible(timeout=_SLOW_MS)
    page.wait_for_timeout(1200)
    assert page.evaluate("document.documentElement.scrollWidth") <= 360
    page.get_by_role("button", name="Theme").click()
    assert page.evaluate("document.documentElement.dataset.theme") == "dark"
    assert live.complaints == []


def test_a_run_of_groups_has_no_chart_of_nothing(browser: Browser, pages: Pages) -> None:
    board = json.loads(pages.board)
    run = board["underway"][0]
    flow = run["flows"][0]
    run["groups"] = [{**flow, "name": "web", "begun": 12, "connections": 100}]
    del run["groups"][0]["cwnd"]
    run["flows"] = []
    page = Pages(pages.files, json.dumps(board)).open(browser, "live", 1200)
    expect(page.locator("article.run .facts")).to_contain_text("web: 12 of 100 connections have begun")
    expect(page.get_by_role("img", name="Congestion window so far")).to_be_hidden()
    expect(page.get_by_role("img", name="ACK rate")).to_be_visible()
    page.context.close()


def test_how_long_transfers_took_stands_there_when_the_run_has_ended(browser: Browser, pages: Pages) -> None:
    page = pages.open(browser, "live", 1200)
    rows = [row.locator("td").all_inner_texts()[:4] for row in page.locator("#transfers tr").all()]
    assert rows == [["bulk", "1.514", "—", "100"], ["web", "1.112", "1.121", "97.5"]]
    page.context.close()


def test_a_curve_of_a_part_of_the_run_fills_its_axis(browser: Browser, pages: Pages) -> None:
    """A sized flow is over long before its run: its curve is not a line at the edge."""
    board = json.loads(pages.board)
    (run,) = board["underway"]
    flow = run["flows"][0]
    flow["cwnd"] = flow["cwnd"][: len(flow["cwnd"]) // 2]
    run["duration_s"] = 16 * len(flow["cwnd"]) * flow["step_s"]
    flow["exit"] = None
    page = Pages(pages.files, json.dumps(board)).open(browser, "live", 1200)
    drawn = (
        page.get_by_role("img", name="Congestion window so far")
        .locator("canvas")
        .evaluate(
            """(canvas, colour) => {
          const { width, height } = canvas;
          const pixels = canvas.getContext("2d").getImageData(0, 0, width, height).data;
          const own = (at) => pixels[at + 3] > 200 && colour.every((each, i) => Math.abs(pixels[at + i] - each) < 30);
          const columns = Array.from({ length: width }, (_none, x) => x);
          const rows = Array.from({ length: height }, (_none, y) => y * width);
          return Math.max(...columns.filter((x) => rows.some((row) => own(4 * (row + x))))) / width;
        }""",
            list(bytes.fromhex(data("palette.yaml")["others"][0]["light"].removeprefix("#"))),
        )
    )
    assert drawn > 0.5
    page.context.close()


def test_no_label_of_an_axis_is_cut_at_the_edge_of_its_canvas(browser: Browser, pages: Pages) -> None:
    page = pages.open(browser, "live", 1440)
    page.evaluate(
        """() => {
          window.labels = [];
          const write = CanvasRenderingContext2D.prototype.fillText;
          CanvasRenderingContext2D.prototype.fillText = function (text, x, y) {
            const { actualBoundingBoxLeft: left, actualBoundingBoxRight: right } = this.measureText(text);
            window.labels.push([text, x - left, x + right, this.canvas.width]);
            return write.call(this, text, x, y);
          };
        }"""
    )
    for width in (1300, 390):
        page.set_viewport_size({"width": width, "height": 900})
        page.wait_for_function("window.labels.some(([text]) => text === '22:14:00')")
        drawn = page.evaluate("window.labels.splice(0)")
        assert [text for text, left, right, wide in drawn if left < 0 or right > wide] == []
    page.context.close()
