# SPDX-License-Identifier: Apache-2.0
"""Files from ``reports/`` that pages embed: templates, style sheets, scripts, colours, queries."""

from __future__ import annotations

import base64
import hashlib
from dataclasses import dataclass
from functools import cache
from typing import Any

from ruamel.yaml import YAML

from howdah.place import REPORTS

UPLOT_VERSION = "1.6.32"
_VENDOR = REPORTS / "vendor" / f"uplot-{UPLOT_VERSION}"
# Scripts in the order in which they build on each other. The theme is in the head, before anything is painted.
_THEME = "theme.js"
_SCRIPTS = (
    "codec.js",
    "format.js",
    "state.js",
    "lines.js",
    "marks.js",
    "spots.js",
    "stripes.js",
    "bands.js",
    "legend.js",
    "touch.js",
    "figure.js",
    "recorder.js",
    "export.js",
    "controls.js",
    "strips.js",
    "many.js",
    "scroll.js",
    "main.js",
)
_STYLES = ("tokens.css", "page.css", "table.css", "claim.css", "figure.css", "chart.css", "many.css", "print.css")


@dataclass(frozen=True)
class Script:
    """An inline script. ``policy`` is the hash that admits it under the page's content security policy."""

    text: str

    @property
    def policy(self) -> str:
        return "sha256-" + base64.b64encode(hashlib.sha256(self.text.encode()).digest()).decode()


@cache
def scripts() -> tuple[Script, ...]:
    """Return the scripts in the order of loading: the theme, uPlot, then the report's own."""
    files = [REPORTS / "js" / _THEME, _VENDOR / "uPlot.iife.min.js", *(REPORTS / "js" / name for name in _SCRIPTS)]
    texts = [file.read_text(encoding="utf-8") for file in files]
    for file, text in zip(files, texts, strict=True):
        if "</script" in text.lower():
            raise ValueError(f"{file} holds the text </script and would end its own element")
    return tuple(Script(text) for text in texts)


@cache
def style() -> str:
    """Return all style sheets as one text."""
    files = [_VENDOR / "uPlot.min.css", *(REPORTS / "css" / name for name in _STYLES)]
    return "\n".join(file.read_text(encoding="utf-8") for file in files)


@cache
def data(name: str) -> Any:
    """Return a YAML file of ``reports/`` as plain Python values."""
    return YAML(typ="safe").load(REPORTS / name)
