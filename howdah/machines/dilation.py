# SPDX-License-Identifier: Apache-2.0
"""Time dilation: the clocks of emulated machines run slower than ours, so that their processors keep up.

An emulated processor is some fifty times slower than the machine's. In real time that makes timers late, and the
network in it with them. Where all machines share a clock that runs at a fraction of this machine's, each has that many
times the processor for a second of its own. dilate.c does it, loaded into each QEMU.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from howdah.build.cache import Cache
from howdah.build.tools import library, variable

AUTO = "auto"
MOST = 1000
# At 4 most runs beside other work were valid, not all (docs/engines.md).
_EMULATED = 8
WHY_EMULATED = "its clock is dilated, which takes an emulated processor"
# Before it knows its clocks, a kernel looks whether timer interrupts come while the time stamp counter counts so many
# cycles (timer_irq_works()). That counter is not dilated: too few come meanwhile, and from some factor on it panics.
KERNEL_ARGUMENTS = ("no_timer_check",)
_SOURCE = Path(__file__).with_name("dilate.c")


def chosen(wanted: int | str, accelerators: Iterable[str], processors: int, cores: int) -> int:
    """How many of our seconds one of the machines lasts: as asked for; ``auto`` is 1 where KVM runs all of them.

    Else it is 8 for up to three emulated processors on two cores, and in proportion for more of them.

    >>> chosen("auto", ["kvm", "tcg"], 3, 2), chosen("auto", ["kvm"], 1, 2), chosen("auto", ["tcg"], 4, 2)
    (8, 1, 11)
    """
    if isinstance(wanted, int):
        return wanted
    if all(name == "kvm" for name in accelerators):
        return 1
    return max(_EMULATED, -(-_EMULATED * 2 * processors // (3 * cores)))


def environment(dilation: int, cache: Cache) -> list[str]:
    """What env(1) is to set for QEMU; nothing for a clock like ours. Raises HowdahError where it does not compile."""
    return [variable(library(_SOURCE, cache)), f"HOWDAH_DILATION={dilation}"] if dilation != 1 else []
