# SPDX-License-Identifier: Apache-2.0
"""How templates of pages are read. Each page compiles its own once a process, which takes up to a tenth of a page."""

from __future__ import annotations

from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined


def templates_of(directory: Path) -> Environment:
    """The templates in a directory: what they print is escaped, and a name that is not known is an error."""
    return Environment(
        loader=FileSystemLoader(directory),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
