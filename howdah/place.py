# SPDX-License-Identifier: Apache-2.0
"""Paths of the project's own files and of its cache. Every other module gets them here.

In a checkout, ``collectors/``, ``profiles/`` and the other folders are beside ``howdah/``. A wheel has them in
``howdah/_shipped/``, because other projects own what is beside ``howdah/`` in site-packages. pyproject.toml lists them
in ``[tool.hatch.build.targets.wheel]``.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from howdah.errors import HowdahError

# How howdah starts its own processes, before ``-m MODULE``: files in the user's directory are not importable.
OWN_PYTHON = (sys.executable, "-P")
PACKAGE = Path(__file__).resolve().parent
_SHIPPED = PACKAGE / "_shipped"
# The checkout this code runs from; None if it was installed from a wheel.
CHECKOUT = None if _SHIPPED.is_dir() else PACKAGE.parent
# The directory that holds the folders below.
PROJECT = CHECKOUT or _SHIPPED
PROFILES = PROJECT / "profiles"
TOPOLOGIES = PROJECT / "topologies"
COLLECTORS = PROJECT / "collectors"
MODULES = PROJECT / "modules"
REPORTS = PROJECT / "reports"
STACKS = PROJECT / "stacks"
PLAYBOOKS = PROJECT / "playbooks"
DOCS = PROJECT / "docs"

# Plans and records of a run, with the standard library alone: copied to guests and to hosts of several machines.
PLAN_FILES = (
    *("howdah/codec.py", "howdah/frame.py", "howdah/traffic.py", "howdah/trait.py", "howdah/plan/__init__.py"),
    *(
        f"howdah/plan/{name}.py"
        for name in (
            *("event", "jitter", "kept", "kernel", "operation", "path", "placed", "plan", "policer", "shares"),
            *("step", "traffic"),
        )
    ),
    *(f"howdah/record/{name}.py" for name in ("__init__", "account", "agent", "calibration", "wire")),
)


def root_of(name: str) -> Path:
    """Return the directory to which ``name``, a path in the repository such as ``howdah/agent/run.py``, is relative."""
    return PACKAGE.parent if Path(name).parts[0] == PACKAGE.name else PROJECT


def file_of(name: str) -> Path:
    """Return the file or directory with this path in the repository."""
    return root_of(name) / name


def name_of(file: Path) -> Path:
    """Return the path in the repository of one of the project's files: the reverse of ``file_of``."""
    return file.relative_to(PROJECT if file.is_relative_to(PROJECT) else PACKAGE.parent)


def recorded_name(file: Path) -> str:
    """Return a file's name for records: of the project's by its path in the repository, of others as given."""
    return str(name_of(file)) if file.is_absolute() and file.is_relative_to(PROJECT) else str(file)


def cache_directory() -> Path:
    """Return ``$HOWDAH_CACHE``, ``$XDG_CACHE_HOME/howdah`` or ``~/.cache/howdah``; the directory need not exist."""
    named = os.environ.get("HOWDAH_CACHE")
    base = os.environ.get("XDG_CACHE_HOME")
    root = Path(named) if named else (Path(base) if base else _home("HOWDAH_CACHE") / ".cache") / "howdah"
    return root.resolve() if ".." in root.parts else root.absolute()  # programs that run there print it without ".."


def state_directory() -> Path:
    """Return ``$XDG_STATE_HOME/howdah`` or ``~/.local/state/howdah``, which holds this user's lasting decisions."""
    base = os.environ.get("XDG_STATE_HOME")
    return ((Path(base) if base else _home("XDG_STATE_HOME") / ".local" / "state") / "howdah").absolute()


def _home(variable: str) -> Path:
    """Return the home directory. Raises HowdahError for a user without one, as containers may have."""
    try:
        return Path.home()
    except RuntimeError as error:
        hint = f"Set HOME, or {variable}, to a directory you can write to."
        raise HowdahError(f"the user {os.getuid()} has no home directory", hint=hint) from error
