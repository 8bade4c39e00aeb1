# SPDX-License-Identifier: Apache-2.0
"""How to install packages with this machine's package manager, and extras of howdah into the Python that runs it."""

from __future__ import annotations

import re
import shlex
import sys
from collections.abc import Sequence
from functools import cache
from importlib.util import find_spec
from pathlib import Path

OS_RELEASE = Path("/etc/os-release")
NAMES = Path(__file__).with_name("package-names.txt")
# By ID or one of ID_LIKE (os-release(5)): the column in the table and the install command.
_MANAGERS = {
    "debian": ("debian", "apt install"),
    "fedora": ("fedora", "dnf install"),
    "rhel": ("fedora", "dnf install"),
    "arch": ("arch", "pacman -S"),
    "alpine": ("alpine", "apk add"),
}
_NONE = "-"


@cache
def names() -> dict[str, dict[str, str]]:
    """Return each package's names by distribution, keyed by Debian's name; unavailable ones are left out."""
    lines = [line.split() for line in NAMES.read_text(encoding="utf-8").splitlines() if line and line[0] != "#"]
    columns, rows = lines[0], lines[1:]
    return {row[0]: {at: name for at, name in zip(columns, row, strict=True) if name != _NONE} for row in rows}


def manager(text: str | None = None) -> tuple[str, str] | None:
    """Return this machine's column in the table and its install command; None for an unknown distribution.

    ``text`` replaces the content of /etc/os-release.
    """
    if text is None:
        try:
            text = OS_RELEASE.read_text(encoding="utf-8")
        except OSError:
            return None
    fields = dict(re.findall(r'^(ID|ID_LIKE)="?([^"\n]*)"?$', text, re.MULTILINE))
    known = [*fields.get("ID", "").split(), *fields.get("ID_LIKE", "").split()]
    return next((_MANAGERS[name] for name in known if name in _MANAGERS), None)


def install_command(packages: Sequence[str], text: str | None = None) -> str | None:
    """Return the command that installs packages, given by Debian's names; None if one of them is not available here."""
    found = manager(text)
    if found is None:
        return None
    column, command = found
    wanted = [names().get(package, {"debian": package}).get(column) for package in packages]
    return None if None in wanted else f"{command} {' '.join(dict.fromkeys(map(str, wanted)))}"


def installing(*packages: str) -> str:
    """Return an instruction for installing packages, given by Debian's names, on this machine."""
    return install_command(packages) or f"Install what Debian calls {', '.join(packages)}."


def install_extra(name: str) -> str:
    """Return the command that installs an extra into this environment, which may not be the shell's.

    Without pip in it, the environment is assumed to be managed by uv.
    """
    if find_spec("pip") is None:
        return f"uv tool install 'howdah[guest,{name}]'"
    return f"{shlex.quote(sys.executable)} -m pip install 'howdah[{name}]'"
