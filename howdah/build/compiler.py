# SPDX-License-Identifier: Apache-2.0
"""What gcc complains of, and the line of your own that is to blame for it.

gcc reports an error in a macro or an inlined function of the kernel where that is written. Further lines say who used
it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass

_PLACE = r"(?P<file>[^\s:]+):(?P<line>\d+)(?::\d+)?"
_ERROR = re.compile(rf"^{_PLACE}: (?:fatal )?error: (?P<text>.*)")
_USED = re.compile(rf"^{_PLACE}: note: in expansion of macro\b")
_NEXT = re.compile(r"^(?:[^\s:]+:\d+(?::\d+)?: (?:warning|(?:fatal )?error): |In file included|In function|make\S*: )")
_INLINED = re.compile(rf"^\s+inlined from .* at {_PLACE}[,:]?$")
_INCLUDED = re.compile(rf"^(?:In file included|\s+)\s*from {_PLACE}[,:]$")
_OF_FUNCTION = re.compile(r"^(?:In function|\S+: In function) ")
_ATTRIBUTE = re.compile(r"^call to \S+ declared with attribute error: ")  # how BUILD_BUG_ON() fails
_QUOTED_LINES = 6
_NOTE_LINES = 3


@dataclass(frozen=True)
class CompilerError:
    """``file`` and ``line`` are to blame; ``said`` is what the compiler wrote of it."""

    file: str
    line: int
    text: str
    said: str


def first_error(lines: list[str], is_own: Callable[[str], bool], *, blame_include: bool = True) -> CompilerError | None:
    """The first error of a compiler's output, None if it names no error.

    ``is_own`` tells files that a person can be asked to mend. An error elsewhere is placed at the outermost of them
    that used the macro, else at the innermost that called the function, else (``blame_include``) at the one that
    included the header, else where the compiler says.
    """
    for number, line in enumerate(lines):
        error = _ERROR.match(line)
        if error is None:
            continue
        found = [(number, error)]
        if not is_own(error["file"]):
            used = [one for one in _users(lines, number) if is_own(one[1]["file"])]
            called = [one for one in _callers(lines, number) if is_own(one[1]["file"])]
            included = [one for one in _includers(lines, number) if blame_include and is_own(one[1]["file"])]
            found = used[-1:] or called[:1] or included[:1] or found
        ((at, place),) = found
        said = lines[number : number + _QUOTED_LINES]
        if at >= number + _QUOTED_LINES:
            said = [*lines[number : number + _NOTE_LINES], *lines[at : at + _NOTE_LINES]]
        elif at < number:
            said = [lines[at], *said]
        return CompilerError(place["file"], int(place["line"]), _ATTRIBUTE.sub("", error["text"]), "\n    ".join(said))
    return None


_Found = Iterable[tuple[int, "re.Match[str]"]]


def _users(lines: list[str], error: int) -> _Found:
    """Macros that contain the error, the innermost first."""
    for number in range(error + 1, len(lines)):
        if _NEXT.match(lines[number]):
            return
        if match := _USED.match(lines[number]):
            yield number, match


def _callers(lines: list[str], error: int) -> _Found:
    """Functions that the one with the error was inlined into, the innermost first."""
    first = error
    while first and _INLINED.match(lines[first - 1]):
        first -= 1
    return _matching(lines, range(first, error), _INLINED)


def _includers(lines: list[str], error: int) -> _Found:
    """Who included the file with the error, the innermost first."""
    last = error
    while last and (_INLINED.match(lines[last - 1]) or _OF_FUNCTION.match(lines[last - 1])):
        last -= 1
    first = last
    while first and _INCLUDED.match(lines[first - 1]):
        first -= 1
    return _matching(lines, range(first, last), _INCLUDED)


def _matching(lines: list[str], numbers: range, pattern: re.Pattern[str]) -> _Found:
    return [(number, match) for number in numbers if (match := pattern.match(lines[number]))]
