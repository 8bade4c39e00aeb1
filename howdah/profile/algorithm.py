# SPDX-License-Identifier: Apache-2.0
"""Congestion-control algorithms by the names profiles use, and what the kernel calls them.

A name here is a *configuration*: ``cubic-no-hystart`` is the kernel's ``cubic`` with a module parameter, because what
is compared is how a flow starts, not which file the code is in.
"""

from __future__ import annotations

import difflib
import itertools
import re
from collections.abc import Iterable
from pathlib import Path

from howdah.profile.algorithm_entry import Algorithm
from howdah.profile.plug_in import PLUG_IN_PREFIX, PLUG_INS, PlugIn

LONGEST_KERNEL_NAME = 15  # TCP_CA_NAME_MAX - 1, include/net/tcp.h
PROFILE_NAME = re.compile(r"[a-z0-9]+(?:[-_][a-z0-9]+)*", re.ASCII)
KERNEL_NAME = re.compile(rf"[A-Za-z0-9_-]{{1,{LONGEST_KERNEL_NAME}}}", re.ASCII)


_KNOWN = [
    Algorithm(
        "cubic",
        "cubic",
        "tcp_cubic",
        "cubic",
        "CUBIC with HyStart, the Linux default (RFC 9438)",
        {"hystart": "1"},  # said, as a machine may have been left with another value
    ),
    Algorithm(
        "cubic-no-hystart",
        "cubic",
        "tcp_cubic",
        "cubic",
        "CUBIC with standard slow start (tcp_cubic.hystart=0)",
        {"hystart": "0"},
    ),
    Algorithm("reno", "reno", None, "reno", "NewReno with standard slow start (RFC 5681)"),
    Algorithm("bbr", "bbr", "tcp_bbr", "bbr", "BBR version 1: Startup and Drain in place of slow start"),
    Algorithm("vegas", "vegas", "tcp_vegas", "vegas", "TCP Vegas as in Linux: delay-based exit, checked once per RTT"),
    Algorithm(
        "westwood", "westwood", "tcp_westwood", "westwood", "TCP Westwood+: standard slow start, rate-based halving"
    ),
]

ALGORITHMS: dict[str, Algorithm] = {
    algorithm.name: algorithm for algorithm in itertools.chain(_KNOWN, *(plug_in.algorithms() for plug_in in PLUG_INS))
}


def module_name(source: Path) -> str:
    """The module a source or object file makes: ``./tcp_mine.c`` → ``tcp_mine``."""
    return source.name.removesuffix(".c").removesuffix(".ko")


def from_modules(modules: Iterable[Path]) -> dict[str, Algorithm]:
    """Algorithms that modules bring without being declared: ``tcp_mine.c`` provides ``mine``, and a slow-start plug-in
    ``ss_mine.c`` provides ``mine`` over reno and ``mine-cubic``.

    The kernel itself asks for ``tcp_<name>`` when an unknown algorithm is requested, so the convention is its own.
    """
    found: dict[str, Algorithm] = {}
    for source in modules:
        module = module_name(source)
        if module.startswith(PLUG_IN_PREFIX):
            short = module.removeprefix(PLUG_IN_PREFIX)
            plug_in = PlugIn(short.replace("_", "-"), short, f"from {source.name}")
            found |= {algorithm.name: algorithm for algorithm in plug_in.algorithms()}
            continue
        kernel = module.removeprefix("tcp_")
        if module == kernel or not KERNEL_NAME.fullmatch(kernel):
            continue
        summary = f"from {source.name}"
        for name in {kernel, kernel.replace("_", "-").lower()}:
            found[name] = Algorithm(name, kernel, module, kernel, summary, builtin=False)
    return found


def nearest(name: str, known: Iterable[str]) -> str | None:
    """The known name closest to a mistyped one, or None if nothing is close."""
    candidates = sorted(known)
    lowered = {candidate.lower(): candidate for candidate in reversed(candidates)}
    found = difflib.get_close_matches(name.lower(), list(lowered), n=1, cutoff=0.5)
    return lowered[found[0]] if found else None
