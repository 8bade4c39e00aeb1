# SPDX-License-Identifier: Apache-2.0
"""One entry of the table of algorithms."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Algorithm:
    """One algorithm of the table.

    ``kernel`` is the name given to TCP_CONGESTION; ``module`` the kernel module that provides it (``tcp_cubic``), None
    if it is part of TCP itself; ``parameters`` are set under /sys/module/<module>/parameters before any flow starts,
    and hold for the whole kernel; ``base`` names the congestion avoidance that follows slow start.
    """

    name: str
    kernel: str
    module: str | None
    base: str
    summary: str
    parameters: Mapping[str, str] = field(default_factory=dict)
    builtin: bool = True  # compiled into the project's kernels; false: a module the profile brings
