# SPDX-License-Identifier: Apache-2.0
"""Congestion-control algorithms by the names that profiles use, and the kernel's names for them.

A name here is a *configuration*: ``cubic-no-hystart`` is the kernel's ``cubic`` with a module parameter. Comparisons
are of how a flow starts, whichever file implements it.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path


@dataclass(frozen=True)
class Algorithm:
    """One algorithm of the table.

    ``kernel``: the name passed to TCP_CONGESTION.
    ``module``: the kernel module that provides it (``tcp_cubic``); None if it is part of TCP itself.
    ``parameters``: set under /sys/module/<module>/parameters before any flow starts; they hold for the whole kernel.
    ``base``: the congestion avoidance that follows slow start.
    ``like``: the kernel's own algorithm with the same start-up as a profile's module, if the profile declares one.
    ``detector``: the mechanism meant to end the start-up before a loss does; ``ends_by``: the exit causes it produces.
    Both are empty if only a loss, a limit or a window ends the start-up.
    ``own_window``: the algorithm begins with its own window, whatever the flow's initial window is.
    """

    name: str
    kernel: str
    module: str | None
    base: str
    summary: str
    parameters: Mapping[str, str] = field(default_factory=dict)
    builtin: bool = True  # compiled into the project's kernels; false: a module the profile brings
    like: str | None = None
    detector: str = ""
    ends_by: tuple[str, ...] = ()
    own_window: bool = False


HYSTART, HYSTART_ENDS_BY = "HyStart", ("ack-train", "delay")
# Two modules, unlike cubic and cubic-no-hystart: they can share a run with each other and with cubic.
HYSTART_PAIR = "algorithm: [hystart-linux-cubic, standard-cubic]"

PLUG_IN_PREFIX = "ss_"  # prefix of a plug-in's module
BASES = {"reno": "", "cubic": "-cubic"}  # suffix of a plug-in's name in a profile


@dataclass(frozen=True)
class PlugIn:
    """A configuration of a slow-start plug-in. ``short`` is the name in its ``struct slow_start_ops``; its module is
    ``ss_SHORT``."""

    name: str
    short: str
    summary: str
    parameters: Mapping[str, str] = field(default_factory=dict)
    detector: str = ""
    ends_by: tuple[str, ...] = ()
    own_window: bool = False

    def algorithms(self) -> Iterator[Algorithm]:
        """Yield the plug-in over each base: ``limited`` over reno, ``limited-cubic`` over cubic."""
        for base, suffix in BASES.items():
            kernel = f"{self.short}_{base}"
            summary = f"{self.summary}; then {base}"
            name = self.name + suffix
            module = f"{PLUG_IN_PREFIX}{self.short}"
            yield Algorithm(
                name,
                kernel,
                module,
                base,
                summary,
                self.parameters,
                builtin=False,
                detector=self.detector,
                ends_by=self.ends_by,
                own_window=self.own_window,
            )


PLUG_INS = [
    PlugIn("standard", "standard", "standard slow start (RFC 5681)"),
    PlugIn("large-initial-window", "liw", "initial window of 64 KB, then slow start", own_window=True),
    PlugIn(
        "large-initial-window-ca",
        "liw",
        "initial window of 64 KB, no slow start",
        {"slow_start": "0"},
        own_window=True,
    ),
    PlugIn("cached", "cached", "fast start: the window that the last connection to the host learnt"),
    PlugIn("cached-ssthresh", "cached", "slow start to the ssthresh that the last connection learnt", {"window": "0"}),
    PlugIn("congestion-manager", "cached", "a share of the windows of running connections", {"share": "1"}),
    PlugIn("smooth", "smooth", "smooth start: slower growth near a known ssthresh"),
    PlugIn("limited", "limited", "limited slow start (RFC 3742)"),
    PlugIn("gradual", "gradual", "growth slows as the queue grows"),
    PlugIn(
        "hystart-paper",
        "hystartp",
        "HyStart as in the paper's Algorithm 1",
        detector=HYSTART,
        ends_by=HYSTART_ENDS_BY,
    ),
    PlugIn("hystart-linux", "hystartl", "HyStart as in Linux' tcp_cubic", detector=HYSTART, ends_by=HYSTART_ENDS_BY),
    PlugIn("hystart-plus-plus", "hystartpp", "HyStart++ (RFC 9406)", detector="HyStart++", ends_by=("css-rounds",)),
    PlugIn("search", "search", "SEARCH, its latest behaviour (4)", detector="SEARCH", ends_by=("delivery-rate",)),
    PlugIn("search-3", "search", "SEARCH 3", {"version": "3"}, "SEARCH", ("delivery-rate",)),
    PlugIn("search-2", "search", "SEARCH 2", {"version": "2"}, "SEARCH", ("delivery-rate",)),
    PlugIn("vegas-start", "vstart", "Vegas slow start: grows every other round"),
    PlugIn("packet-pair", "pair", "Hoe's ssthresh from closely spaced ACKs"),
    PlugIn("swift-start", "pair", "Swift-Start's volley of four segments", {"volley": "4"}),
    PlugIn("adaptive-start", "astart", "Adaptive Start: ssthresh follows TCPW's eligible rate"),
    PlugIn("inflight-limit", "inflight", "FreeBSD's inflight limiting"),
    PlugIn("jump-start", "jump", "Jump Start: everything at once, paced over one RTT", own_window=True),
    PlugIn("quick-start", "quick", "Quick-Start (RFC 4782): a granted rate, paced"),
    PlugIn(
        "quick-start-app",
        "quick",
        "a window that the application sets, sent at once; no slow start follows",
        {"paced": "0", "slow_start_on": "0"},
    ),
    PlugIn("careful-resume", "careful", "Careful Resume: a jump to half of a remembered window"),
    PlugIn("rapid-start", "rapid", "Rapid Start: times three each round, a recovery that follows deliveries"),
]


LONGEST_KERNEL_NAME = 15  # TCP_CA_NAME_MAX - 1, include/net/tcp.h
MODULE_PREFIX = "tcp_"  # prefix of the module that the kernel loads for an algorithm's name
KERNEL_NAME = re.compile(rf"[A-Za-z0-9_-]{{1,{LONGEST_KERNEL_NAME}}}", re.ASCII)


_KNOWN = [
    Algorithm(
        "cubic",
        "cubic",
        "tcp_cubic",
        "cubic",
        "CUBIC with HyStart, the Linux default (RFC 9438)",
        {"hystart": "1"},  # explicit, because a machine may have been left with another value
        detector=HYSTART,
        ends_by=HYSTART_ENDS_BY,
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
    Algorithm(
        "bbr", "bbr", "tcp_bbr", "bbr", "BBR as the run's kernel has it: Startup and Drain in place of slow start"
    ),
    Algorithm("vegas", "vegas", "tcp_vegas", "vegas", "TCP Vegas as in Linux: delay-based exit, checked once per RTT"),
    Algorithm(
        "westwood", "westwood", "tcp_westwood", "westwood", "TCP Westwood+: standard slow start, rate-based halving"
    ),
    *(
        Algorithm(name, name, f"tcp_{name}", name, summary)
        for name, summary in {
            "bic": "BIC: standard slow start",
            "cdg": "CAIA Delay-Gradient: HyStart's detectors, and a back-off by chance while the delay grows",
            "dctcp": "Data Center TCP (RFC 8257), at both ends: standard slow start, which the first ECN mark ends",
            "highspeed": "HighSpeed TCP (RFC 3649): standard slow start",
            "htcp": "H-TCP: standard slow start",
            "hybla": "TCP Hybla: 2^(RTT/25 ms) − 1 packets more for each ACK",
            "illinois": "TCP Illinois: standard slow start",
            "lp": "TCP-LP: standard slow start; halved by delay where TCP timestamps show it",
            "nv": "TCP-NV: standard slow start until the window is more than the measured rate needs",
            "scalable": "Scalable TCP: standard slow start",
            "veno": "TCP Veno: standard slow start",
            "yeah": "YeAH-TCP: standard slow start",
        }.items()
    ),
]

# Kernel names of the kernel's own algorithms that leave slow start by a finite ssthresh; BBR has its own start-up.
EXIT_SETS_SSTHRESH = frozenset(algorithm.kernel for algorithm in _KNOWN) - {"bbr"}

ALGORITHMS: dict[str, Algorithm] = {
    algorithm.name: algorithm for algorithm in itertools.chain(_KNOWN, *(plug_in.algorithms() for plug_in in PLUG_INS))
}


def module_name(source: Path) -> str:
    """Return the kernel's name of the module built from a source or object file: ``./tcp_mine.c`` → ``tcp_mine``."""
    return _stem(source).replace("-", "_")


def is_bpf(source: Path) -> bool:
    """Return whether a source is a BPF congestion control (``tcp_mine.bpf.c``) instead of a kernel module."""
    return source.name.endswith(".bpf.c")


def _stem(source: Path) -> str:
    return source.name.removesuffix(".c").removesuffix(".ko").removesuffix(".bpf")


@dataclass(frozen=True)
class ProfileModule:
    """A module that a profile brings. ``name`` is the kernel's spelling, ``file`` the user's. ``registers`` lists the
    kernel names of its congestion controls; None if its sources do not reveal them."""

    name: str
    file: str
    registers: tuple[str, ...] | None = None

    def may_bring(self, kernel: str) -> bool:
        return self.registers is None or kernel in self.registers


def algorithms_with(modules: Sequence[ProfileModule], declared: Collection[str] = ()) -> dict[str, Algorithm]:
    """Return all algorithms by name: the known ones and those of ``modules``. A profile's module has precedence.

    A module provides the names that it registers, and replaces every known algorithm whose module has the same name:
    with a ``tcp_cubic.c``, both ``cubic`` and ``cubic-no-hystart`` use that file. A module in ``declared`` provides its
    algorithms under the names that the profile gives instead of their kernel names, unless it is called ``tcp_<name>``
    like the kernel's own.
    """
    own = {module.name: module for module in modules}
    replaced = {
        name: replace(entry, builtin=False)
        for name, entry in ALGORITHMS.items()
        if entry.builtin and entry.module in own and own[entry.module].may_bring(entry.kernel)
    }
    found = {name: entry for name, entry in from_modules(modules).items() if not _is_renamed(entry, declared)}
    return {**ALGORITHMS, **replaced, **found}


def _is_renamed(entry: Algorithm, declared: Collection[str]) -> bool:
    return entry.module in declared and entry.module != f"{MODULE_PREFIX}{entry.kernel}".replace("-", "_")


def from_modules(modules: Iterable[ProfileModule]) -> dict[str, Algorithm]:
    """Return the algorithms that modules provide without a declaration, by name.

    Each is listed under the kernel name that it registers and under that name in the spelling of profiles. If the
    sources do not reveal any name, ``tcp_mine.c`` provides ``mine``, because the kernel requests ``tcp_<name>`` for an
    unknown algorithm. A slow-start plug-in ``ss_mine.c`` provides ``mine`` over reno and ``mine-cubic``.
    """
    found: dict[str, Algorithm] = {}
    for module in modules:
        summary = f"from {module.file}"
        if module.name.startswith(PLUG_IN_PREFIX) and module.registers is None:
            short = module.name.removeprefix(PLUG_IN_PREFIX)
            plug_in = PlugIn(short.replace("_", "-"), short, summary)
            found |= {algorithm.name: algorithm for algorithm in plug_in.algorithms()}
            continue
        for kernel in module.registers or _by_convention(module):
            for name in {kernel, kernel.replace("_", "-").lower()} if KERNEL_NAME.fullmatch(kernel) else ():
                found[name] = Algorithm(name, kernel, module.name, kernel, summary, builtin=False)
    return found


def _by_convention(module: ProfileModule) -> list[str]:
    spelt = _stem(Path(module.file)) if "/" not in module.file else module.name
    return [spelt[len(MODULE_PREFIX) :]] if module.name.startswith(MODULE_PREFIX) else []
