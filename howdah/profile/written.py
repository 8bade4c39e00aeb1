# SPDX-License-Identifier: Apache-2.0
"""Paths as people write them into profiles, suites and machines files."""

from __future__ import annotations

from pathlib import Path

from howdah.errors import ProfileError

PATHS_START = "paths start at the profile's directory; with --set, those that begin with ./ or ../ start here"
SET = "--set "  # begins the place of what is written on the command line
_LONGEST_SHOWN = 60


def written_path(directory: Path, text: str, where: str | None) -> Path:
    """The path ``text``, which starts at ``directory`` unless it is absolute or begins with ``~``.

    On the command line (``where`` begins with ``--set``) one that begins with ``./`` or ``../`` starts at the current
    directory, as everywhere in a shell.

    Whether something is there is the caller's question. Raises ProfileError, with ``where``, for what can be no path:
    a zero byte, a name that is too long, a home of nobody, links in a circle, a directory that may not be entered.
    """
    shown = repr(text if len(text) <= _LONGEST_SHOWN else f"{text[: _LONGEST_SHOWN - 3]}...")
    if where is not None and where.startswith(SET) and text.startswith(("./", "../")):
        directory = Path.cwd()
    try:
        path = directory / Path(text).expanduser()
        path.stat()
    except RuntimeError:  # of expanduser
        raise ProfileError(f"{shown} is not a path: there is no such user", where=where) from None
    except ValueError as error:
        raise ProfileError(f"{shown} is not a path: {error}", where=where) from None
    except (FileNotFoundError, NotADirectoryError):
        return path
    except OSError as error:
        raise ProfileError(f"the path {shown} cannot be used: {error.strerror}", where=where) from None
    return path


def is_there(path: Path) -> bool:
    """Whether there is such a file or directory; False under a name that the file system refuses."""
    try:
        path.stat()
    except (OSError, ValueError):
        return False
    return True
