# SPDX-License-Identifier: Apache-2.0
"""What is remembered of pages: that nothing was wrong, for as long as nothing that decides it is another."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from axe_playwright_python import base as axe

from tests.browser import looked
from tests.browser.conftest import MISSING, browser_program
from tests.browser.looked import once

PAGE = [b"<p>a page</p>"]


@pytest.fixture(autouse=True)
def nothing_remembered(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    if browser_program() is None:
        pytest.skip(MISSING)
    monkeypatch.setenv("HOWDAH_CACHE", str(tmp_path_factory.mktemp("cache")))
    looked._machine.cache_clear()
    yield
    looked._machine.cache_clear()


def program(path: Path, says: str) -> Path:
    path.write_text(f"#!/bin/sh\necho '{says}'\n", encoding="utf-8")
    path.chmod(0o755)
    return path


def test_a_page_without_faults_is_looked_at_once() -> None:
    assert once("axe", PAGE, lambda: None)
    assert not once("axe", PAGE, lambda: pytest.fail("looked again"))
    assert once("layout", PAGE, lambda: None)


def test_a_page_with_a_fault_is_looked_at_again() -> None:
    def faulty() -> None:
        raise AssertionError("image-alt (critical)")

    for _ in range(2):
        with pytest.raises(AssertionError, match="image-alt"):
            once("axe", PAGE, faulty)
    assert once("axe", PAGE, lambda: None)


@pytest.mark.parametrize("what", ["page", "board", "test", "axe", "browser", "driver", "fonts", "drawing of fonts"])
def test_what_decides_it_is_looked_at(what: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert once("axe", PAGE, lambda: None)
    contents = PAGE
    if what == "page":
        contents = [b"<p>another page</p>"]
    elif what == "board":
        contents = [*PAGE, b"{}"]
    elif what == "test":
        here = tmp_path / "browser"
        shutil.copytree(looked.HERE, here, ignore=shutil.ignore_patterns("__pycache__", "pictures"))
        (here / "test_every_kind.py").write_text("MORE = 1\n", encoding="utf-8")
        monkeypatch.setattr(looked, "HERE", here)
    elif what == "axe":
        monkeypatch.setattr(axe, "AXE_SCRIPT", f"{axe.AXE_SCRIPT}\n")
    elif what == "browser":
        other = program(tmp_path / "chromium", "Chromium 1.2.3")
        monkeypatch.setattr(looked, "browser_program", lambda: str(other))
    elif what == "driver":
        monkeypatch.setattr(looked, "version", lambda name: f"another {name}")
    else:
        name = "fc-list" if what == "fonts" else "fc-match"
        program(tmp_path / name, "/usr/share/fonts/another.ttf 1")
        monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    looked._machine.cache_clear()
    assert once("axe", contents, lambda: None), f"with another {what} a page is another"
    assert not once("axe", contents, lambda: pytest.fail("looked again"))


def test_a_machine_that_does_not_tell_its_fonts_remembers_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shutil.which", lambda name: None if name.startswith("fc-") else "/bin/true")
    for _ in range(2):
        assert once("axe", PAGE, lambda: None)
