# SPDX-License-Identifier: Apache-2.0
"""A template is compiled once for all commands, and again where its text changes or what was kept is damaged. On a page
a number stays with its unit."""

from __future__ import annotations

from pathlib import Path

import pytest
from jinja2 import Environment

from howdah.build.cache import Cache
from howdah.report.template import KIND, templates_of, whole


@pytest.fixture
def compiled(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[str]:
    """Texts of the templates that were compiled."""
    monkeypatch.setenv("HOWDAH_CACHE", str(tmp_path / "cache"))
    (tmp_path / "page.j2").write_text("{{ word }} is said", encoding="utf-8")
    found: list[str] = []
    compile_template = Environment.compile

    def told(self: Environment, source: str, name: str | None = None, filename: str | None = None) -> object:
        found.append(source)
        return compile_template(self, source, name, filename)

    monkeypatch.setattr(Environment, "compile", told)
    return found


def _said(place: Path) -> str:
    return templates_of(place).get_template("page.j2").render(word="<it>")


def test_the_next_command_takes_what_this_one_compiled(compiled: list[str], tmp_path: Path) -> None:
    assert _said(tmp_path) == _said(tmp_path) == "&lt;it&gt; is said"
    assert len(compiled) == 1


def test_another_text_is_another_template(compiled: list[str], tmp_path: Path) -> None:
    _said(tmp_path)
    (tmp_path / "page.j2").write_text("{{ word }} was said", encoding="utf-8")
    assert _said(tmp_path) == "&lt;it&gt; was said"
    assert compiled == ["{{ word }} is said", "{{ word }} was said"]


def test_what_was_changed_in_the_cache_is_not_run(compiled: list[str], tmp_path: Path) -> None:
    _said(tmp_path)
    (entry,) = Cache().entries(KIND)
    (kept,) = (each for each in entry.iterdir() if each.name == "bytecode")
    kept.write_bytes(kept.read_bytes().replace(b"said", b"lied"))
    assert _said(tmp_path) == "&lt;it&gt; is said"
    assert len(compiled) == 2


def test_a_cache_that_cannot_be_written_costs_no_page(compiled: list[str], tmp_path: Path) -> None:
    (tmp_path / "cache").write_text("a file", encoding="utf-8")
    assert _said(tmp_path) == "&lt;it&gt; is said"
    assert len(compiled) == 1


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("held at 80 KiB for 97 % of it", "held at 80~KiB for 97~% of it"),
        ("8.1 ± 0.2 Mbit/s, n = 10", "8.1 ±~0.2~Mbit/s, n~=~10"),
        ("in 3 runs of 5 min each", "in 3 runs of 5~min each"),
        ("4 seconds, 4 sockets, 2 mine", "4 seconds, 4 sockets, 2 mine"),
        ('<a title="80 ms" href="run 8 s">8 s</a>', '<a title="80 ms" href="run 8 s">8~s</a>'),
        (
            "<td>8 s</td><script>const at = 8 s;</script><pre>for 8 s</pre>",
            "<td>8~s</td>" + "<script>const at = 8 s;</script><pre>for 8 s</pre>",
        ),
        ("<code>duration: 8 s</code> 8 s", "<code>duration: 8 s</code> 8~s"),
    ],
)
def test_a_number_stays_with_its_unit(text: str, kept: str) -> None:
    assert whole(text).replace("\u00a0", "~") == kept


def test_a_page_is_whole_whatever_prints_it(tmp_path: Path) -> None:
    (tmp_path / "page.j2").write_text('<p title="{{ rtt }}">{{ rtt }}, 4 BDP</p>', encoding="utf-8")
    page = templates_of(tmp_path).get_template("page.j2").render(rtt="80 ms")
    assert page == '<p title="80 ms">80\u00a0ms, 4\u00a0BDP</p>'
