# SPDX-License-Identifier: Apache-2.0
"""One page of every kind that howdah makes, with everything that may be on it, for what holds of all of them."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass, replace
from pathlib import Path
from random import Random

from playwright.sync_api import Browser, Page, Route
from pytest import MonkeyPatch

from howdah.atlas import site
from howdah.atlas.catalogue import read_catalogue
from howdah.atlas.chapter import published_of, read_chapters
from howdah.atlas.finding import tell
from howdah.atlas.published import kernel_of, rows_of
from howdah.atlas.site import write_site
from howdah.atlas.view import views
from howdah.atlas.work import Record, Sitting
from howdah.codec import encoded
from howdah.counterexample.goal import CandidateScore
from howdah.counterexample.page import write_page as write_search_page
from howdah.counterexample.session import SearchResult
from howdah.counterexample.shrink import Simplified
from howdah.counterexample.space import read_space
from howdah.counterexample.trial import Tried
from howdah.explain.course import section_points
from howdah.explain.overlay import compared, write_overlay
from howdah.explain.page import write_page as write_explained
from howdah.explain.read import read_files
from howdah.nightly.page import write_page
from howdah.nightly.sheet import Value
from howdah.place import PROFILES
from howdah.profile import load
from howdah.publish.board import write_page as write_live_page
from howdah.publish.live_state import LiveState, Transfers
from howdah.publish.underway import Watch
from howdah.record.run import Software
from howdah.report import results as many
from howdah.report.build import report
from howdah.report.compare import compare
from howdah.report.plot import draw
from tests.atlas_factory import make_judged_atlas
from tests.experiment_factory import Scenario, make_experiment
from tests.nightly_factory import changed, night, sheet, usual
from tests.sought import PROFILE
from tests.unit.recorded_run import record_experiment
from tests.unit.test_explain_overlay import LOSSY, as_measured, recorded
from tests.unit.underway_run import make_virtual

KINDS = (
    "report",
    "comparison",
    "many runs",
    "atlas index",
    "atlas entry",
    "atlas findings",
    "published index",
    "published entry",
    "night",
    "live",
    "search",
    "explained",
    "twin",
)
# Those that do not name the directory that they were made in: the same bytes in every session.
SAME_EVERYWHERE = ("report", "comparison", "many runs", "atlas index", "published index", "published entry", "live")
_ORIGIN = "http://live.test"
_LIVE_BEGIN_S = 1_700_000_000  # what Prometheus knows begins here
_LIVE_S = 60
PAPER_PX = 1031  # A4 landscape less 12 mm at both sides, at 96 to the inch


@dataclass(frozen=True)
class Pages:
    """The files, and what the server of the live page answers."""

    files: dict[str, Path]
    board: str

    def contents(self, kind: str) -> list[bytes]:
        """Everything that a browser is given of a page."""
        return [self.files[kind].read_bytes(), *([self.board.encode()] if kind == "live" else [])]

    def open(self, browser: Browser, kind: str, width: int, *, dark: bool = False) -> Page:
        context = browser.new_context(
            viewport={"width": width, "height": 900},
            color_scheme="dark" if dark else "light",
            reduced_motion="reduce",
            timezone_id="UTC",
            locale="en-GB",
        )
        page = context.new_page()
        page.set_default_timeout(60_000)
        if kind == "live":
            page.clock.set_fixed_time(_LIVE_BEGIN_S + _LIVE_S)
            page.route(f"{_ORIGIN}/**", lambda route: self._answer(route))
            page.goto(f"{_ORIGIN}/user/live.html")
            page.wait_for_selector("article.run canvas")
        else:
            page.goto(self.files[kind].as_uri())
        page.wait_for_selector("html[data-ready=true]")
        page.evaluate("document.querySelectorAll('details').forEach((each) => { each.open = true; })")
        page.evaluate("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")
        return page

    def _answer(self, route: Route) -> None:
        """What Prometheus would: the page, the board beside it, and series for every query."""
        path = route.request.url.removeprefix(_ORIGIN)
        if path.startswith("/user/live.html"):
            route.fulfill(body=self.files["live"].read_text(encoding="utf-8"), content_type="text/html")
        elif path.startswith("/user/runs.json"):
            route.fulfill(body=self.board, content_type="application/json")
        elif "howdah_live_simulated_seconds" in route.request.url:  # its curves are of the clock of this machine
            route.fulfill(body='{"status": "success", "data": {"result": []}}', content_type="application/json")
        else:
            labels = {"experiment": "live", "run": "recorded", "algorithm": "cubic", "repetition": "0"}
            labels |= {"flow": "bulk", "node": "left", "interface": "bottleneck"}
            values = [[_LIVE_BEGIN_S + second, str(math.sin(second / 8) + 2)] for second in range(_LIVE_S)]
            answer = {"status": "success", "data": {"result": [{"metric": labels, "values": values}]}}
            route.fulfill(body=json.dumps(answer), content_type="application/json")


def make_pages(root: Path) -> Pages:
    scenario = Scenario(
        name="a-rather-long-name-of-an-experiment-400mbit-240ms",
        description="Everything that a report may show, and a description that is long enough to be broken into lines",
        algorithms=("cubic-no-hystart", "cubic", "reno"),
        invalid=(("reno", 1),),
        axes=({"path.rate": 20_000_000}, {"path.rate": 30_000_000}),
        second_flow_s=2.0,
        duration_s=4.0,
        told=True,
    )
    made = make_experiment(root / "runs", scenario)
    other = make_experiment(root / "runs", Scenario(name="another", algorithms=("cubic",), duration_s=4.0))
    files = {
        "report": report(made, prometheus="off"),
        "comparison": compare([made, other], root / "compare.html", "off", None).page,
    }
    with MonkeyPatch.context() as patched:
        patched.setattr(many, "MOST_RUNS", 3)
        files["many runs"] = compare([made, other], root / "many.html", "off", None).page
    with MonkeyPatch.context() as patched:
        # Pages of the atlas name the revision that wrote them. They would be others after each commit.
        patched.setattr(site, "software", lambda: Software(revision="0123456789ab" * 3, modified=True))
        files |= _atlas(root)
    files["night"] = _night(root / "night")
    files["live"], board = _live(root / "live")
    files["search"] = _search(root / "search")
    files |= _recorded(root / "recorded")
    return Pages(files, board)


def _atlas(root: Path) -> dict[str, Path]:
    atlas = make_judged_atlas(root / "atlas")
    atlas.write_findings()
    catalogue, place = atlas.read(), atlas.runs / "atlas"
    rows = atlas.published_rows()
    rows["made/more"].verdict = "fail"  # a sentence that has fallen
    findings = tell(catalogue.findings, rows, "6.12")
    record = Record([Sitting(started="2026-11-22T00:00:00+00:00", quick=False, made=18, wall_s=200.0)])
    shown = views(catalogue, atlas.chapters(), place, draw, quick=False)
    published = write_published(root / "published")
    return {
        "atlas index": write_site(place, catalogue, shown, record, [], quick=False, findings=findings),
        "atlas findings": place / "findings.html",
        "atlas entry": place / "astart-tab1.html",
        "published index": published,
        "published entry": max(with_figures(published.parent), key=_drawings_and_tables),
    }


def write_published(place: Path) -> Path:
    """The index of the atlas as it is shown without a run: published results, with their figures and findings."""
    catalogue = read_catalogue()
    chapters = read_chapters(PROFILES / "atlas", place.parent / "no-runs", quick=False)
    shown = views(catalogue, chapters, place, draw, quick=False)
    results = published_of(chapters)
    findings = tell(catalogue.findings, rows_of(results), kernel_of(results))
    return write_site(place, catalogue, shown, Record(), [], quick=False, findings=findings)


def with_figures(place: Path) -> list[Path]:
    """Pages of entries that have figures."""
    return [page for page in sorted(place.glob("*.html")) if "<figure" in page.read_text(encoding="utf-8")]


def _drawings_and_tables(page: Path) -> tuple[int, int]:
    """Which page has the most that can be cut off: drawings first, since a figure may have none."""
    text = page.read_text(encoding="utf-8")
    return text.count("<svg"), text.count("<table")


def _night(root: Path) -> Path:
    root.mkdir()

    def worse(slug: str, number: int) -> dict[str, Value]:
        return changed(slug, number, retransmitted_packets__1=40.0 + number, utilisation=0.7, exit_cause__1="loss")

    made = night(root, sheet("test-made-debian-6.12", usual), sheet("test-made-debian-6.12", worse))
    made.problems.append("test-made-debian-6.12/cubic-r3: the process ended")
    made.settle()
    place = made.runs / "test.nights" / "20261122T020000"
    place.mkdir(parents=True)
    return write_page(made, place / "index.html")


def _live(root: Path) -> tuple[Path, str]:
    """A run in progress, and one that has ended with its exits."""
    underway = make_virtual(root / "runs")
    underway.write(1)
    watch = Watch(root / "runs")
    board = LiveState(root / "runs", root / "cache", watch)
    record_experiment(root / "runs" / "recorded")
    watch.families()
    state = board.state()
    assert state.underway
    assert state.finished
    state.finished[0].transfers.extend([Transfers("bulk", 1.0, 1.5138, None), Transfers("web", 0.975, 1.1115, 1.1209)])
    return write_live_page(root), json.dumps(encoded(state))


def _search(root: Path) -> Path:
    """Candidates of which some show it, with a counterexample and its neighbours."""
    root.mkdir()
    file = root / "sought.yaml"
    file.write_text(PROFILE.replace("BOUND", "0.5"), encoding="utf-8")
    section = load(file).search
    assert section is not None
    space = read_space(file, [], section)
    tried, chance = [], Random(1)
    for number in range(30):
        score = CandidateScore(number / 30, number % 5 == 0, f"exit at {number / 30:.3g} BDP")
        tried.append(Tried(space.draw(chance), score, f"candidate-{number}", 1))
    found = SearchResult(tried, space.size, Simplified(tried[0].candidate), tried[0])
    found.neighbours = [("path.rtt 40 ms", tried[1]), ("path.buffer 1 bdp", tried[2])]
    found.importances = {"path.rtt": 0.6, "path.rate": 0.3, "path.buffer": 0.1}
    said = ["The claim fails on 6 of 30 candidates.", "The simplest has a round-trip time of 200 ms."]
    return write_search_page(found, space, "start-up ends above half of the BDP", said, root)


def _recorded(root: Path) -> dict[str, Path]:
    """A recording with losses as it is explained, and a twin laid over it that left earlier."""
    root.mkdir()
    section = recorded(LOSSY, root)
    assert section.course is not None
    read = read_files([root / "recording"], 1)
    course = section_points(section.course)
    twin = replace(course, in_flight_packets=course.in_flight_packets * 0.8, rtt_s=course.rtt_s * 1.02)
    overlays = [compared("cubic-r0", section, as_measured(section) | {"exit_cause": "delay"}, twin)]
    return {
        "explained": write_explained(read.flows, read.joined, read.problems, root / "explained.html"),
        "twin": write_overlay("twin", overlays, root / "twin.html"),
    }
