# SPDX-License-Identifier: Apache-2.0
"""Kernels in a plan, and modules that are built for them. Standard library only."""

from __future__ import annotations

from howdah.codec import planned


@planned
class OwnKernel:
    """Modules and headers of a kernel that is given as a file: absolute paths, or None."""

    modules: str | None
    headers: str | None


@planned
class Part:
    """The hosts of one kernel, in a run with several kernels in one virtual time. Every kernel has all routers: a
    packet passes those in the kernel of its sender."""

    name: str
    kernel: str
    hosts: list[str]


@planned
class ModuleBuild:
    """Further inputs of a module's build: header directories, macros and additional sources; absolute paths."""

    include: list[str]
    define: dict[str, str]
    sources: list[str]
