# SPDX-License-Identifier: Apache-2.0
"""Templates of pages, as all pages load them."""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import jinja2
from jinja2 import BytecodeCache, Environment, FileSystemLoader, StrictUndefined
from jinja2.bccache import Bucket
from markupsafe import Markup

from howdah import __version__
from howdah.assets import Script
from howdah.build.cache import Cache, content_key
from howdah.errors import HowdahError
from howdah.place import REPORTS

KIND = "template"
_BEFORE_UNIT = re.compile(r"(?<=\d) (?=(?:%|[kMG]?bit/s|(?:[kMG]|[KMG]i)?B|[mµu]?s|BDP|bdp|packets|times)(?![\w/]))")
_FILE = "bytecode"
_BIND = 'howdah.theme.bind(); document.documentElement.dataset.ready = "true";'


def templates_of(directory: Path) -> Environment:
    """The templates in a directory: what they print is escaped, and a name that is not known is an error. The filter
    ``whole`` keeps numbers and their units on one line."""
    found = Environment(
        loader=FileSystemLoader(directory),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        bytecode_cache=_Compiled(),
    )
    found.filters["whole"] = whole
    return found


def whole(text: str) -> str:
    """With spaces that do not break between numbers and units."""
    return _BEFORE_UNIT.sub("\u00a0", text)


def framed(styles: Sequence[Path]) -> dict[str, Any]:
    """What a page that stands alone has around its content: version, styles, and two scripts with the policy that lets
    these alone run. ``theme`` runs before anything is shown; ``bind`` is for the end, and has boxes that scroll."""
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
    """Compiled templates as entries of the cache: to compile those of a report is a twelfth of a command that has
    nothing to run. Where the cache cannot be used, they are compiled."""

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
    """Of the place and text of a template, and of what compiles it."""
    return content_key(bucket.key, bucket.checksum, jinja2.__version__, sys.version)
