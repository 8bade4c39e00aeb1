# SPDX-License-Identifier: Apache-2.0
"""What a plan says of kernels and of modules that are built for them. Standard library only."""

from __future__ import annotations

from howdah.codec import planned


@planned
class OwnKernel:
    """What belongs to a kernel given as a file: absolute paths, or None."""

    modules: str | None
    headers: str | None


@planned
class Part:
    """Hosts that live in a kernel of their own, of a run on several kernels in one virtual time. Every kernel has all
    routers: a packet is on those of the kernel of its sender."""

    name: str
    kernel: str
    hosts: list[str]


@planned
class ModuleBuild:
    """Beside a module's own file: directories of headers, macros, and further sources; absolute paths."""

    include: list[str]
    define: dict[str, str]
    sources: list[str]
