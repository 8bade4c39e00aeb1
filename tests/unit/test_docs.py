# SPDX-License-Identifier: Apache-2.0
"""The documentation as a whole: every page is listed, every link leads somewhere, the README is short."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from ruamel.yaml import YAML

from tests.docs_site import ROOT, BrokenLinkError, gather, pages, targets

README_LINES = 130
PICTURE_BYTES = 200_000


def test_the_readme_is_short_and_its_picture_small() -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    assert len(readme.splitlines()) <= README_LINES
    (picture,) = re.findall(r"!\[[^\]]+\]\(([^)]+)\)", readme)
    assert 0 < (ROOT / picture).stat().st_size < PICTURE_BYTES


def test_the_index_has_every_page_of_docs() -> None:
    index = ROOT / "docs" / "index.md"
    listed = {target for _, target in targets(index)}
    there = {page for page in (ROOT / "docs").glob("*.md") if page != index}
    assert there <= listed


def test_the_navigation_has_every_page_once() -> None:
    nav = YAML(typ="safe", pure=True).load((ROOT / "mkdocs.yml").read_text(encoding="utf-8"))["nav"]

    def names(entry: object) -> list[str]:
        if isinstance(entry, str):
            return [entry]
        values = entry if isinstance(entry, list) else list(entry.values())  # type: ignore[attr-defined]
        return [name for value in values for name in names(value)]

    found = names(nav)
    assert sorted(found) == sorted(str(page.relative_to(ROOT)) for page in pages())


def test_every_link_to_a_file_leads_to_one() -> None:
    for page in pages():
        assert all(target.exists() for _, target in targets(page))


def test_the_site_has_pages_and_what_they_link_to(tmp_path: Path) -> None:
    gather(tmp_path / "site")
    for page in pages():
        assert (tmp_path / "site" / page.relative_to(ROOT)).is_file()
    assert (tmp_path / "site" / "docs" / "figures" / "start-up.png").is_file()
    assert (tmp_path / "site" / "howdah" / "engine" / "vm" / "instructions.c").is_file()
    assert "reports/dashboard/provisioning/](" not in (tmp_path / "site" / "docs" / "live.md").read_text()


@pytest.mark.parametrize("link", ["missing.md", "../../outside.md", "../howdah/missing.py#part"])
def test_a_link_to_nothing_is_named_with_its_line(tmp_path: Path, link: str) -> None:
    (tmp_path / "docs").mkdir()
    (tmp_path / "outside.md").touch()
    page = tmp_path / "docs" / "page.md"
    page.write_text(f"# A page\n\nSee [this]({link}), and `[not](this.md)`.\n")
    with pytest.raises(BrokenLinkError, match=re.escape(f"docs/page.md:3: the link to {link.partition('#')[0]} leads")):
        list(targets(page, tmp_path))
