# SPDX-License-Identifier: Apache-2.0
"""``python -m tests.docs_site DIRECTORY``: gather what the documentation's site is made of, for mkdocs.

The pages keep their places in the repository, so their links work there as here. A file that a page links to is taken
along. A link to nothing is an error, and a link to a directory, which a site cannot show, becomes its text.
"""

from __future__ import annotations

import re
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import unquote

ROOT = Path(__file__).resolve().parents[1]
PAGES = (
    "README.md",
    "CONTRIBUTING.md",
    "CHANGELOG.md",
    "SECURITY.md",
    "CODE_OF_CONDUCT.md",
    "docs/*.md",
    "docs/algorithms/*.md",
    "modules/README.md",
    "tests/decision/README.md",
)
# Loaded by every page (mkdocs.yml).
SCRIPTS = ("docs/vendor/iframe-worker-1.0.4/shim.js", "docs/vendor/iframe-worker-1.0.4/LICENSE")
_LINK = re.compile(r"(!?)\[([^\]]*)\]\(([^)\s]+)\)")
_CODE = re.compile(r"^(?:```.*?^```|~~~.*?^~~~)|`[^`\n]*`", re.MULTILINE | re.DOTALL)


class BrokenLinkError(Exception):
    """A page links to a file that does not exist, or to one outside the repository."""


def pages(root: Path = ROOT) -> list[Path]:
    """Every page of the site, in the order of ``PAGES``."""
    return [page for pattern in PAGES for page in sorted(root.glob(pattern))]


def targets(page: Path, root: Path = ROOT) -> Iterator[tuple[re.Match[str], Path]]:
    """Links of a page to files of the repository: the link as it stands, and the file or directory it names.

    Addresses of the web and places within the same page are left out, and so is code.
    """
    text = page.read_text(encoding="utf-8")
    code = [found.span() for found in _CODE.finditer(text)]
    for link in _LINK.finditer(text):
        name = unquote(link[3].partition("#")[0])
        if not name or "://" in name or any(begin <= link.start() < end for begin, end in code):
            continue
        target = (page.parent / name).resolve()
        if not target.is_relative_to(root.resolve()) or not target.exists():
            line = text.count("\n", 0, link.start()) + 1
            raise BrokenLinkError(f"{page.relative_to(root)}:{line}: the link to {name} leads nowhere")
        yield link, target


def gather(destination: Path, root: Path = ROOT) -> None:
    """Copy pages and what they link to below ``destination``, which is emptied first."""
    shutil.rmtree(destination, ignore_errors=True)
    every = pages(root)
    for script in SCRIPTS:
        _copy(root / script, destination / script)
    for page in every:
        text = page.read_text(encoding="utf-8")
        for link, target in reversed(list(targets(page, root))):
            if target.is_dir():
                text = text[: link.start()] + link[2] + text[link.end() :]
            elif target not in every:
                _copy(target, destination / target.relative_to(root.resolve()))
        place = destination / page.relative_to(root)
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text, encoding="utf-8")


def _copy(source: Path, place: Path) -> None:
    place.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(source, place)


def main(arguments: list[str]) -> int:
    try:
        gather(Path(arguments[0]))
    except BrokenLinkError as error:
        sys.stderr.write(f"{error}\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
