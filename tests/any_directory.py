# SPDX-License-Identifier: Apache-2.0
"""Names of directories that break what is quoted in the wrong place, for tests of what must work in any of them."""

from __future__ import annotations

from pathlib import Path

_LONG = "long-" + 35 * "name-"

# Each name is for one kind of mistake, so that a failed test says which one.
NAMES = {
    "space": " a  b ",
    "unicode": "größe-Ω-試験",
    "comma": "a,b,,c=d",
    "quotes": 'it\'s "so" `id`',
    "dollar": "$HOME ${PATH} $(id)",
    "hash": "#1 % 100%41 ?x=1&y",
    "brackets": "[red]x[/] {{y}} {% z %} <b> *",
    "shell": "a;b|c>d&e!",
    "colon": "a:b::c",
    "backslash": "a\\b\\n",
    "dash": "-rf --help",
    "newline": "a\nb",
    "long": f"{_LONG}/{_LONG}",
}


# For what takes too long to be tried with each of them.
EVERYTHING = "".join(name for kind, name in NAMES.items() if kind != "long")


def make_directory(parent: Path, kind: str) -> Path:
    """A new directory below ``parent`` that has such a name, or with ``everything`` all of them but the long one."""
    place = parent / (EVERYTHING if kind == "everything" else NAMES[kind])
    place.mkdir(parents=True)
    return place
