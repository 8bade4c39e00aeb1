# SPDX-License-Identifier: Apache-2.0
"""The agent's only clock, CLOCK_MONOTONIC: also that of tcp_probe (trace_clock ``mono``) and of the traffic module.

In a virtual-time kernel each reading from process context advances time by 256 ns, so callers read it once per wake-up.
"""

from __future__ import annotations

import time

from howdah.linux import syscall

MS = 1_000_000
SECOND = 1_000_000_000

_CLOCK_MONOTONIC_COARSE = 6

# The period of the kernel's timer interrupt (1 / CONFIG_HZ), which advances the coarse clock.
TICK_NS = round(time.clock_getres(_CLOCK_MONOTONIC_COARSE) * SECOND)

now_ns = time.monotonic_ns


class Alarm:
    """A timer whose descriptor becomes readable at an absolute instant."""

    def __init__(self) -> None:
        self.descriptor = syscall.timerfd_create(time.CLOCK_MONOTONIC)

    def set(self, at_ns: int) -> None:
        """Set the alarm; an instant in the past makes it readable at once."""
        syscall.timerfd_set(self.descriptor, max(at_ns, 1))

    def clear(self) -> None:
        syscall.timerfd_set(self.descriptor, 0)
