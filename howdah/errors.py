# SPDX-License-Identifier: Apache-2.0
"""Errors for the person at the command line: what happened, where, and what to do about it."""

from __future__ import annotations

import difflib
import errno
import re
from collections.abc import Iterable, Sequence
from enum import IntEnum
from typing import Any, ClassVar


def nearest(name: str, known: Iterable[str], least: float = 0.5) -> str | None:
    """Return the known name closest to a mistyped one; None if none is close.

    ``least`` is the smallest similarity ratio that counts as close, as difflib computes it. A name with the same
    letters in another order comes first, before one with a letter more or less; its digits must be in the same order.
    """
    candidates = sorted(known)
    lowered = {candidate.lower(): candidate for candidate in reversed(candidates)}
    given = name.lower()
    turned = [each for each in lowered if sorted(each) == sorted(given) and _digits(each) == _digits(given)]
    found = difflib.get_close_matches(given, turned or list(lowered), n=1, cutoff=least)
    return lowered[found[0]] if found else None


def did_you_mean(name: str, known: Iterable[str], otherwise: str, *, both: bool = False) -> str:
    """Return a hint with the closest known name, followed by ``otherwise`` if ``both``; without one, ``otherwise``."""
    close = nearest(name, known)
    if close is None:
        return otherwise
    return f"did you mean {close}? {otherwise}" if both else f"did you mean {close}?"


def _digits(name: str) -> str:
    return "".join(character for character in name if character.isdigit())


class ExitCode(IntEnum):
    """The exit status of a command. Docs and help describe each one (howdah/command/parser.py)."""

    DONE = 0
    ERROR = 1
    WRONG_USE = 2
    NO_ENGINE = 3
    RUN_FAILED = 4
    INVALID = 5  # also: not checked, or nothing found
    DIFFERS = 6  # also: a claim failed
    NO_BASELINE = 7
    INTERRUPTED = 130


class HowdahError(Exception):
    """An error with a cause that the user can act on; the command line prints it without a traceback.

    ``where`` is a location such as ``profiles/quick.yaml:12`` or a file name; ``hint`` says what to do next.
    """

    exit_code: ClassVar[int] = ExitCode.ERROR

    def __init__(self, what: str, *, where: str | None = None, hint: str | None = None) -> None:
        super().__init__(what)
        self.what = what
        self.where = where
        self.hint = hint

    def __str__(self) -> str:
        text = f"{self.where}: {self.what}" if self.where else self.what
        return f"{text}\n  {self.hint}" if self.hint else text


def combined(errors: Sequence[HowdahError]) -> HowdahError:
    """Merge several errors into the first one, whose hint then lists the others. Duplicates are dropped."""
    first, *others = {str(error): error for error in errors}.values()
    if not others:
        return first
    more = [f"{error.where}: {error.what}" if error.where else error.what for error in others]
    hint = "\n  ".join(filter(None, [first.hint, "And:", *more]))
    return HowdahError(first.what, where=first.where, hint=hint)


LARGER_FILES = "The shell allows no file of that size ('ulimit -f' says which): ulimit -f unlimited, and run it again."


def explain(error: OSError) -> str:
    """Return the reason for an OSError; some libraries leave ``strerror`` empty and put everything into the text."""
    if error.args and isinstance(error.args[0], list):  # from shutil.copytree: a row per file with the whole text
        rows = error.args[0]
        _source, target, why = rows[0]
        reason = re.sub(r"^\[Errno \d+\] ", "", str(why)).partition(": ")[0]
        return f"{reason}: {target}" + (f" and {len(rows) - 1} more" if len(rows) > 1 else "")
    return error.strerror or str(error) or type(error).__name__


def file_of_error(error: OSError) -> str | None:
    """Return the file that caused an OSError. For a copy it is the source, or the target if the disk is full."""
    name = error.filename2 if error.filename2 and error.errno in (errno.ENOSPC, errno.EDQUOT) else error.filename
    return str(name) if name else None


def shorter(place: str | None) -> str:
    """Return what to do about a path with a name that is too long, or that is too long itself."""
    longest = max((place or "").split("/"), key=lambda name: len(name.encode(errors="surrogateescape")))
    size = len(longest.encode(errors="surrogateescape"))
    if size <= _NAME_BYTES:
        return f"A path has at most {_PATH_BYTES} bytes: choose a directory nearer to the root."
    shown = longest if len(longest) <= _SHOWN else f"{longest[:_SHOWN]}…"
    return f"{shown} has {size} bytes, and a name at most {_NAME_BYTES}: choose a shorter one."


_NAME_BYTES, _PATH_BYTES = 255, 4095  # NAME_MAX and PATH_MAX, limits.h
_SHOWN = 40


def remedy(error: OSError) -> str | None:
    """Return what to do about a file system error; None if its error number suggests nothing."""
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return "Make room there, or choose a place on another disk, and run the command again."
    if error.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
        return "Choose a place where you may read and write, or change its permissions."
    if error.errno == errno.ENAMETOOLONG:
        return shorter(file_of_error(error))
    if error.errno == errno.EFBIG:
        return LARGER_FILES
    if "temporary directory" in str(error):  # tempfile tries each with one byte
        return "Set TMPDIR to a directory where files may be written, and allow files of any size: ulimit -f unlimited."
    return None


class ProfileError(HowdahError):
    """The profile, or an override of it, is wrong; nothing was run."""

    exit_code = ExitCode.WRONG_USE


class UsageError(HowdahError):
    """The command line asks for something impossible, or for something that does not exist."""

    exit_code = ExitCode.WRONG_USE

    @classmethod
    def unknown(cls, what: str, asked: str, known: Iterable[str], has: str) -> UsageError:
        """Make an error whose hint is the known name closest to ``asked``, or the list of all after ``has``."""
        names = list(dict.fromkeys(known))
        close = nearest(asked, names)
        listed = f"{has} {', '.join(names[:30])}" if names else None
        return cls(what, hint=f"did you mean {close}?" if close else listed)


class ParameterError(HowdahError):
    """A module has no such parameter, or the parameter does not accept the value.

    Left alone, the kernel would ignore the parameter or fail to boot.
    """

    @classmethod
    def unknown(cls, module: str, parameter: str, known: list[str], where: str | None) -> ParameterError:
        """Make the error for a parameter that the module lacks; the kernel would ignore it silently."""
        close = difflib.get_close_matches(parameter.lower(), known, n=1, cutoff=0.5)
        has = f"its parameters are {', '.join(known)}" if known else "it has no parameters"
        hint = f"did you mean {close[0]}? {has}" if close else has
        return cls(f"the module {module} has no parameter {parameter!r}", where=where, hint=hint)


class RecordError(HowdahError, ValueError):
    """A file of a run directory is not in howdah's format: damaged, truncated, or from another version."""


class EngineUnavailableError(HowdahError):
    """The engine cannot run on this machine; the message names what is missing."""

    exit_code = ExitCode.NO_ENGINE


class RunFailedError(HowdahError):
    """A run ended without usable data (a dead guest, the wall-clock limit, a full disk); the console is kept.

    ``known`` is the account of the engine that run.json keeps nevertheless.
    """

    exit_code = ExitCode.RUN_FAILED
    known: Any = None
