# SPDX-License-Identifier: Apache-2.0
"""The slow-start plug-ins of ``modules/algorithms``: one module, two congestion controls, one for each base."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from howdah.profile.algorithm_entry import Algorithm

PLUG_IN_PREFIX = "ss_"  # of a module's name
BASES = {"reno": "", "cubic": "-cubic"}  # what follows a plug-in's name in a profile


@dataclass(frozen=True)
class PlugIn:
    """A configuration of a plug-in: ``short`` names its ``struct slow_start_ops``, its module is ``ss_SHORT``."""

    name: str
    short: str
    summary: str
    parameters: Mapping[str, str] = field(default_factory=dict)

    def algorithms(self) -> Iterator[Algorithm]:
        """``limited`` is over reno, ``limited-cubic`` over cubic."""
        for base, suffix in BASES.items():
            kernel = f"{self.short}_{base}"
            summary = f"{self.summary}; then {base}"
            name = self.name + suffix
            yield Algorithm(
                name, kernel, f"{PLUG_IN_PREFIX}{self.short}", base, summary, self.parameters, builtin=False
            )


PLUG_INS = [
    PlugIn("standard", "standard", "standard slow start (RFC 5681)"),
    PlugIn("large-initial-window", "liw", "initial window of 64 KB, then slow start"),
    PlugIn("large-initial-window-ca", "liw", "initial window of 64 KB, no slow start", {"slow_start": "0"}),
    PlugIn("cached", "cached", "fast start: the window that the last connection to the host learnt"),
    PlugIn("cached-ssthresh", "cached", "slow start to the ssthresh that the last connection learnt", {"window": "0"}),
    PlugIn("congestion-manager", "cached", "a share of the windows of running connections", {"share": "1"}),
    PlugIn("smooth", "smooth", "smooth start: slower growth near a known ssthresh"),
    PlugIn("limited", "limited", "limited slow start (RFC 3742)"),
    PlugIn("gradual", "gradual", "growth slows as the queue grows"),
    PlugIn("hystart-paper", "hystartp", "HyStart as in the paper's Algorithm 1"),
    PlugIn("hystart-linux", "hystartl", "HyStart as in Linux' tcp_cubic"),
    PlugIn("hystart-plus-plus", "hystartpp", "HyStart++ (RFC 9406)"),
    PlugIn("search", "search", "SEARCH, its latest behaviour (4)"),
    PlugIn("search-3", "search", "SEARCH 3", {"version": "3"}),
    PlugIn("search-2", "search", "SEARCH 2", {"version": "2"}),
    PlugIn("vegas-start", "vstart", "Vegas slow start: grows every other round"),
    PlugIn("packet-pair", "pair", "Hoe's ssthresh from closely spaced ACKs"),
    PlugIn("swift-start", "pair", "Swift-Start's volley of four segments", {"volley": "4"}),
    PlugIn("adaptive-start", "astart", "Adaptive Start: ssthresh follows TCPW's eligible rate"),
    PlugIn("inflight-limit", "inflight", "FreeBSD's inflight limiting"),
    PlugIn("jump-start", "jump", "Jump Start: everything at once, paced over one RTT"),
    PlugIn("quick-start", "quick", "Quick-Start (RFC 4782): a granted rate, paced"),
    PlugIn("quick-start-app", "quick", "Quick-Start's window without pacing", {"paced": "0"}),
    PlugIn("careful-resume", "careful", "Careful Resume: a jump to half of a remembered window"),
    PlugIn("rapid-start", "rapid", "Rapid Start: times three each round, a recovery that follows deliveries"),
]
