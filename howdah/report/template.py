# SPDX-License-Identifier: Apache-2.0
"""Loading of page templates, and JSON data for a page's scripts."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import jinja2
from jinja2 import BytecodeCache, Environment, FileSystemLoader, StrictUndefined, Template
from jinja2.bccache import Bucket
from markupsafe import Markup

from howdah import __version__
from howdah.assets import Script
from howdah.build.cache import Cache, content_key
from howdah.errors import HowdahError
from howdah.place import REPORTS

KIND = "template"
_UNIT = (
    r"%|[kMG]?bit/s|(?:[kMGT]|[KMGT]i)?B(?:/s)?|bytes?(?:/s)?|[nmµu]?s|min|h|px|BDP|bdp|MSS|RTTs?"
    r"|(?:packet|frame|segment|round|time)s?"
)
# "80 ms", "± 3", "n = 10"
_WITHIN_NUMBER = re.compile(rf"(?<=\d) (?=(?:{_UNIT})(?![\w/]))|(?<=±) (?=\d)|(?<=\bn) (?== \d)|(?<=\bn =) (?=\d)")
# What is not text that a page lays out in lines, or is text that a reader copies to a terminal; or else text.
_PART = re.compile(r"<(script|style|pre|code|textarea)\b.*?</\1>|<[^>]*>|(?P<text>[^<]+)", re.DOTALL)
_FILE = "bytecode"
_BIND = 'howdah.theme.bind(); document.documentElement.dataset.ready = "true";'


def templates_of(directory: Path) -> Environment:
    """A Jinja environment for the templates in a directory. Output is escaped, an unknown name is an error, and a
    number stays on one line with its unit."""
    found = Environment(
        loader=FileSystemLoader(directory),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        bytecode_cache=_Compiled(),
    )
    found.template_class = _Page
    return found


class _Page(Template):
    def render(self, *args: Any, **names: Any) -> str:
        return whole(super().render(*args, **names))


def whole(page: str) -> str:
    """Put non-breaking spaces between numbers and their units in a page's text. Leave attributes, scripts and code
    unchanged."""
    return _PART.sub(lambda part: _WITHIN_NUMBER.sub("\u00a0", part[0]) if part["text"] else part[0], page)


def framed(styles: Sequence[Path]) -> dict[str, Any]:
    """The frame of a standalone page: version, styles, two scripts, and the policy that permits only these scripts.
    ``theme`` runs before anything is shown; ``bind`` belongs at the end and sets up scrolling boxes."""
    theme, scroll = ((REPORTS / "js" / name).read_text(encoding="utf-8") for name in ("theme.js", "scroll.js"))
    scripts = [Script(theme), Script(f"{scroll}\n{_BIND}")]
    return {
        "version": __version__,
        "style": Markup("\n".join(file.read_text(encoding="utf-8") for file in styles)),
        "theme": Markup(scripts[0].text),
        "bind": Markup(scripts[1].text),
        "policy": " ".join(f"'{each.policy}'" for each in scripts),
    }


class _Compiled(BytecodeCache):
    """Compiled templates in the cache: compiling those of a report takes a twelfth of the time of a command that runs
    nothing. If the cache cannot be used, templates are compiled each time."""

    def load_bytecode(self, bucket: Bucket) -> None:
        with suppress(HowdahError, OSError):
            entry = Cache().find(KIND, _key(bucket))
            if entry is not None:
                bucket.bytecode_from_string((entry / _FILE).read_bytes())

    def dump_bytecode(self, bucket: Bucket) -> None:
        with suppress(HowdahError, OSError):
            Cache().build(KIND, _key(bucket), lambda entry, _log: _write(bucket, entry / _FILE))


def _write(bucket: Bucket, file: Path) -> None:
    file.write_bytes(bucket.bytecode_to_string())


def _key(bucket: Bucket) -> str:
    """The cache key: location and text of a template, and the versions of Jinja and Python."""
    return content_key(bucket.key, bucket.checksum, jinja2.__version__, sys.version)


def script_json(value: Any) -> Markup:
    """JSON that is safe inside a script element: nothing in it can end the element or start a comment.

    Dataclasses become objects with all their fields.
    """
    text = json.dumps(value, separators=(",", ":"), ensure_ascii=False, allow_nan=False, default=vars)
    for character in ("<", ">", "&", "\u2028", "\u2029"):
        text = text.replace(character, f"\\u{ord(character):04x}")
    return Markup(text)
