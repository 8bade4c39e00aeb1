# SPDX-License-Identifier: Apache-2.0
"""A headless Chromium that may not speak to anyone."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from playwright.sync_api import (
    Browser,
    BrowserContext,
    ConsoleMessage,
    Error,
    Page,
    Playwright,
    Request,
    Route,
    sync_playwright,
)

from howdah.report.build import report
from tests.browser.fonts import font_environment
from tests.browser.kinds import Pages, make_pages
from tests.experiment_factory import Scenario, make_experiment

ARGUMENTS = [
    "--headless",
    "--no-sandbox",
    "--font-render-hinting=none",  # as in the browser with windows; it makes no difference there
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--renderer-process-limit=1",  # pages of one context share a process
]


@dataclass
class Visit:
    """A page that was opened, with everything it should not have done."""

    page: Page
    requests: list[str] = field(default_factory=list)
    complaints: list[str] = field(default_factory=list)


Open = Callable[..., Visit]

# The shell draws as the browser does and has no windows to keep: it needs less of a processor.
_PROGRAMS = ("chromium-headless-shell", "chromium")
MISSING = f"{_PROGRAMS[0]} is not on this machine; run apt-get install {_PROGRAMS[0]}"


def browser_program() -> str | None:
    """This machine's Chromium. None where there is none."""
    return next((found for name in _PROGRAMS if (found := shutil.which(name))), None)


def launched(playwright: Playwright, place: Path | None = None) -> Browser | None:
    """This machine's Chromium, with the fonts of pictures where a place is given for them. None without a Chromium."""
    program = browser_program()
    if program is None:
        return None
    environment = None if place is None else font_environment(place)
    return playwright.chromium.launch(executable_path=program, args=ARGUMENTS, headless=True, env=environment)


@pytest.fixture(scope="session")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    with sync_playwright() as playwright:
        started = launched(playwright, tmp_path_factory.mktemp("browser"))
        if started is None:
            pytest.skip(MISSING)
        yield started
        started.close()


@pytest.fixture(scope="session")
def report_page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A report with three algorithms, two flows, two repetitions and one invalid run."""
    scenario = Scenario(
        name="browser-test",
        algorithms=("cubic-no-hystart", "cubic", "reno"),
        invalid=(("reno", 1),),
        second_flow_s=2.0,
        duration_s=6.0,
    )
    return report(make_experiment(tmp_path_factory.mktemp("runs"), scenario), prometheus="off")


@pytest.fixture(scope="session")
def pages(tmp_path_factory: pytest.TempPathFactory) -> Pages:
    """A page of every kind."""
    return make_pages(tmp_path_factory.mktemp("pages"))


@pytest.fixture(scope="session")
def window(browser: Browser, tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrowserContext]:
    """Its pages share a process: to start one for each took a fifth of the time of opening it.

    A page that nobody looks at keeps the process alive.
    """
    context = browser.new_context(accept_downloads=True)
    kept = tmp_path_factory.mktemp("window") / "kept.html"
    kept.write_text("<!doctype html>", encoding="utf-8")
    context.new_page().goto(kept.as_uri())
    yield context
    context.close()


@pytest.fixture
def visit(window: BrowserContext) -> Iterator[Open]:
    """Opens a file, blocks every request but the file itself, and fails the test when the page tried or complained."""
    visits: list[Visit] = []

    def open_file(path: Path, width: int = 1440, height: int = 900, theme: str = "light", site: bool = False) -> Visit:
        page = window.new_page()
        page.set_viewport_size({"width": width, "height": height})
        page.emulate_media(color_scheme="dark" if theme == "dark" else "light")
        page.set_default_timeout(20_000)
        found = Visit(page)
        visits.append(found)

        def only_the_file(route: Route, request: Request) -> None:
            # Of a site, other pages beside it are its own.
            if request.url == path.as_uri() or (site and request.url.startswith(f"{path.parent.as_uri()}/")):
                route.continue_()
            else:
                found.requests.append(request.url)
                route.abort()

        def told(message: ConsoleMessage) -> None:
            if message.type in ("error", "warning"):
                found.complaints.append(message.text)

        def thrown(error: Error) -> None:
            found.complaints.append(str(error))

        page.route("http://**", only_the_file)
        page.route("https://**", only_the_file)
        page.route("file://**", only_the_file)
        page.on("console", told)
        page.on("pageerror", thrown)
        page.goto(path.as_uri())
        page.wait_for_selector("html[data-ready=true]")
        return found

    yield open_file
    for each in visits:
        each.page.close()
    for each in visits:
        assert each.requests == []
        assert each.complaints == []
