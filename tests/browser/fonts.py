# SPDX-License-Identifier: Apache-2.0
"""The fonts of matplotlib under names of their own, for a browser that has those of its machine besides.

They are on every machine that has howdah. A page that asks for them by name looks the same everywhere, and nothing has
to be put into it: as data of the page they took the browser longer than drawing it.
"""

from __future__ import annotations

import os
from pathlib import Path
from xml.sax.saxutils import escape

import matplotlib

FAMILIES = {"pinned": ("DejaVuSans.ttf", "DejaVuSans-Bold.ttf"), "pinned-code": ("DejaVuSansMono.ttf",)}

# As a font of the page is drawn, whatever the machine says of its own.
_DRAWN = {
    "antialias": "<bool>true</bool>",
    "autohint": "<bool>false</bool>",
    "hinting": "<bool>false</bool>",
    "hintstyle": "<const>hintnone</const>",
    "rgba": "<const>none</const>",
}


def font_environment(place: Path) -> dict[str, str | float | bool]:
    """The environment of a program that finds the families. Their files and fontconfig's are written to ``place``."""
    fonts = place / "fonts"
    fonts.mkdir()
    rules = [f"<dir>{escape(str(fonts))}</dir>", f"<cachedir>{escape(str(place / 'cache'))}</cachedir>"]
    for family, files in FAMILIES.items():
        for file in files:
            (fonts / file).write_bytes((Path(matplotlib.get_data_path()) / "fonts" / "ttf" / file).read_bytes())
            rules.append(_match("scan", "file", str(fonts / file), {"family": f"<string>{family}</string>"}))
        rules += [_match(target, "family", family, _DRAWN) for target in ("pattern", "font")]
    machine = os.environ.get("FONTCONFIG_FILE", "/etc/fonts/fonts.conf")
    text = f'<include ignore_missing="yes">{escape(machine)}</include>' + "".join(rules)
    settings = place / "fonts.conf"
    head = '<?xml version="1.0"?><!DOCTYPE fontconfig SYSTEM "urn:fontconfig:fonts.dtd">'
    settings.write_text(f"{head}<fontconfig>{text}</fontconfig>", encoding="utf-8")
    return {**os.environ, "FONTCONFIG_FILE": str(settings)}


def _match(target: str, what: str, is_this: str, then: dict[str, str]) -> str:
    edits = "".join(
        f'<edit name="{name}" mode="assign" binding="strong">{value}</edit>' for name, value in then.items()
    )
    test = f'<test name="{what}"><string>{escape(is_this)}</string></test>'
    return f'<match target="{target}">{test}{edits}</match>'
