# SPDX-License-Identifier: Apache-2.0
"""Paths and kernel names as users write them in profiles, suites and machines files."""

from __future__ import annotations

import re
from pathlib import Path

from howdah.default import DEFAULT_KERNEL, KERNEL_FORM
from howdah.errors import ProfileError, did_you_mean

PATHS_START = "paths start at the profile's directory; with --set, those that begin with ./ or ../ start here"
SET = "--set "  # prefix of the place of a value from the command line
_LONGEST_SHOWN = 60


def written_path(directory: Path, text: str, where: str | None) -> Path:
    """The path ``text``, relative to ``directory`` unless it is absolute or begins with ``~``.

    On the command line (``where`` begins with ``--set``), a path that begins with ``./`` or ``../`` is relative to the
    current directory, as in a shell.

    The path need not exist. Raises ProfileError, with ``where``, for an impossible one: a zero byte, a name that is too
    long, the home of an unknown user, a symlink loop, or a directory without permission.
    """
    shown = repr(text if len(text) <= _LONGEST_SHOWN else f"{text[: _LONGEST_SHOWN - 3]}...")
    if where is not None and where.startswith(SET) and text.startswith(("./", "../")):
        directory = Path.cwd()
    try:
        path = directory / Path(text).expanduser()
        path.stat()
    except RuntimeError:  # raised by expanduser
        raise ProfileError(f"{shown} is not a path: there is no such user", where=where) from None
    except ValueError as error:
        raise ProfileError(f"{shown} is not a path: {error}", where=where) from None
    except (FileNotFoundError, NotADirectoryError):
        return path
    except OSError as error:
        raise ProfileError(f"the path {shown} cannot be used: {error.strerror}", where=where) from None
    return path


def is_there(path: Path) -> bool:
    """Whether the file or directory exists; False for a name that the file system refuses."""
    try:
        path.stat()
    except (OSError, ValueError):
        return False
    return True


# Candidates for the nearest name: Debian's current long-term kernels, and the newest.
_USUAL = (DEFAULT_KERNEL, "debian-newest", "debian-5.10", "debian-6.1")


def check_kernel_name(name: str, where: str) -> None:
    """Raise ProfileError, with the nearest name, unless the name is a version or the path of something."""
    if re.fullmatch(KERNEL_FORM, name, re.ASCII) or "/" in name or is_there(Path(name)):
        return
    forms = "a kernel is debian-VERSION (debian-6.12), debian-newest, or a path with a / in it (./linux)"
    raise ProfileError(f"there is no kernel {name!r}", where=where, hint=did_you_mean(name, _USUAL, forms, both=True))
