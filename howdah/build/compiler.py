# SPDX-License-Identifier: Apache-2.0
"""Interprets gcc's errors: finds the line of the user's own code to blame.

If the kernel has changed since a congestion control was written, it says for which kernel that was.

gcc reports an error in a macro or an inlined function of the kernel at its definition; further lines say who used it.
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
_ATTRIBUTE = re.compile(r"^call to \S+ declared with attribute error: ")  # message of a failed BUILD_BUG_ON()
_QUOTED_LINES = 6
_NOTE_LINES = 3


@dataclass(frozen=True)
class CompilerError:
    """An error: ``file`` and ``line`` to blame; ``said`` is the compiler's output about it."""

    file: str
    line: int
    text: str
    said: str


def first_error(lines: list[str], is_own: Callable[[str], bool], *, blame_include: bool = True) -> CompilerError | None:
    """Return the first error in a compiler's output; None without an error.

    ``is_own`` identifies files that the user can fix. An error elsewhere is attributed to the outermost of them that
    used the macro, otherwise to the innermost that called the function, otherwise (``blame_include``) to the one that
    included the header, otherwise to the compiler's location.
    """
    for number, line in enumerate(lines):
        error = _ERROR.match(line)
        if error is None:
            continue
        found = [(number, error)]
        if not is_own(error["file"]):
            used = [one for one in _macro_uses(lines, number) if is_own(one[1]["file"])]
            called = [one for one in _inlined_into(lines, number) if is_own(one[1]["file"])]
            included = [one for one in _inclusions(lines, number) if blame_include and is_own(one[1]["file"])]
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


def _macro_uses(lines: list[str], error: int) -> _Found:
    for number in range(error + 1, len(lines)):
        if _NEXT.match(lines[number]):
            return
        if match := _USED.match(lines[number]):
            yield number, match


def _inlined_into(lines: list[str], error: int) -> _Found:
    """Return the functions into which the one with the error was inlined, innermost first."""
    first = error
    while first and _INLINED.match(lines[first - 1]):
        first -= 1
    return _matching(lines, range(first, error), _INLINED)


def _inclusions(lines: list[str], error: int) -> _Found:
    """Return the inclusions of the file with the error, innermost first."""
    last = error
    while last and (_INLINED.match(lines[last - 1]) or _OF_FUNCTION.match(lines[last - 1])):
        last -= 1
    first = last
    while first and _INCLUDED.match(lines[first - 1]):
        first -= 1
    return _matching(lines, range(first, last), _INCLUDED)


def _matching(lines: list[str], numbers: range, pattern: re.Pattern[str]) -> _Found:
    return [(number, match) for number in numbers if (match := pattern.match(lines[number]))]


@dataclass(frozen=True)
class Change:
    """A change of the kernel's interface. ``said`` is a regular expression for the compiler's message. ``kernel`` still
    has what the code requires; None: no release has it."""

    said: str
    what: str
    kernel: str | None


_QUOTE = "[‘'`\"’]"
_GOOGLE = (
    "It is a field of Google's BBR trees (v2alpha, v3), whose modules need the kernel of that tree: --kernel TREE."
)
_CHANGES = (
    Change(
        r"\(\*\)\(struct sock \*, u32,\s+int,\s+const struct rate_sample \*\)",
        "cong_control takes (struct sock *sk, u32 ack, int flag, const struct rate_sample *rs) since Linux 6.10, "
        "and (sk, rs) before.",
        "debian-6.1",
    ),
    Change(
        r"\(\*\)\(struct sock \*, const struct rate_sample \*\)",
        "cong_control takes (struct sock *sk, const struct rate_sample *rs) before Linux 6.10, "
        "and (sk, ack, flag, rs) since.",
        "debian-6.12",
    ),
    Change(
        rf"has no member named {_QUOTE}tso_segs_goal{_QUOTE}",
        "tso_segs_goal is min_tso_segs since Linux 4.17: u32 (*min_tso_segs)(struct sock *sk).",
        None,
    ),
    Change(
        rf"tcp_congestion_ops{_QUOTE} has no member named {_QUOTE}tso_segs{_QUOTE}",
        f"Linux has min_tso_segs(sk) in its place. {_GOOGLE}",
        None,
    ),
    Change(
        rf"has no member named {_QUOTE}(?:skb_marked_lost|fast_ack_mode|tx_in_flight|is_ece|is_acking_tlp_retrans_seq"
        rf"|lost_ce|tlp_orig_data_app_limited){_QUOTE}",
        _GOOGLE,
        None,
    ),
    Change(
        rf"implicit declaration of function {_QUOTE}prandom_u32(?:_max)?{_QUOTE}",
        "prandom_u32() is get_random_u32() since Linux 6.1, prandom_u32_max() get_random_u32_below() since 6.2.",
        "debian-5.10",
    ),
    Change(
        rf"implicit declaration of function {_QUOTE}(?:setup_timer|init_timer){_QUOTE}",
        "Timers are set up by timer_setup() since Linux 4.15.",
        None,
    ),
    Change(
        rf"implicit declaration of function {_QUOTE}del_timer(?:_sync)?{_QUOTE}",
        "del_timer() is timer_delete() since Linux 6.15.",
        "debian-6.12",
    ),
    Change(
        r"SSE register (?:return|argument) with SSE disabled|with x87 disabled|80387",
        "Kernel code has no floating point (float, double): compute with integers, as with fractions of 1024.",
        None,
    ),
    Change(
        rf"{_QUOTE}tcp_time_stamp{_QUOTE} undeclared",
        "tcp_time_stamp is tcp_jiffies32 since Linux 4.13.",
        None,
    ),
)


def known_change(said: str) -> str | None:
    """Return what has changed in the kernel, and what to do, for a compiler error; None if it is unknown."""
    for change in _CHANGES:
        if re.search(change.said, said):
            remedy = f" Change the module, or run it on an older kernel: --kernel {change.kernel}."
            if change.kernel == "debian-6.12":
                remedy = f" Change the module, or run it on another kernel: --kernel {change.kernel}."
            return change.what + (remedy if change.kernel else "")
    return None
