# SPDX-License-Identifier: Apache-2.0
"""Messages of the kernel's log: their forms in /dev/kmsg and raw/kernel.log, and which of them are alarms."""

from __future__ import annotations

from howdah.codec import planned

_PRIORITY_LEVELS = 8  # the rest of the number is the facility (syslog(2))
# Beginnings of alarms from lib/bug.c, kernel/panic.c, the schedulers, lockdep and the memory allocator. Not a regular
# expression: compiling one at a guest's start takes longer than searching all its messages for these.
_ALARMS = (
    "WARNING: ",
    "BUG: ",
    "kernel BUG at ",
    "Oops",
    "Kernel panic",
    "Internal error",
    "general protection fault",
    "divide error",
    "Kernel mode fault",
    "Kernel mode signal",
    "UBSAN: ",
    "KASAN: ",
    "KCSAN: ",
    "KFENCE: ",
    "KMSAN: ",
    "INFO: rcu_",
    "rcu: INFO: ",
    "soft lockup",
    "hard LOCKUP",
    "list_add corruption",
    "list_del corruption",
    "page allocation failure",
    "Out of memory: ",
    "possible recursive locking",
    "possible circular locking",
    "inconsistent lock state",
    "suspicious RCU usage",
    "unregister_netdevice: waiting for",
    "kernel stack overflow",
    "Bad page state",
    "stack-protector: ",
)
_HUNG = ("INFO: task ", " blocked for more than")


@planned
class KernelMessage:
    """A message: ``number`` counts messages since boot, ``time_us`` is the kernel's clock, and level 0 is the most
    severe."""

    level: int
    number: int
    time_us: int
    text: str

    def line(self) -> str:
        """The message as a line of raw/kernel.log."""
        return f"{self.level},{self.number},{self.time_us};{self.text}\n"


def parse(record: str) -> KernelMessage | None:
    """Parse a record of /dev/kmsg or a line of raw/kernel.log: ``level,number,time,…;message``; None for other text.

    Further lines of a /dev/kmsg record are a dictionary for programs and are ignored.
    """
    head, separator, rest = record.partition(";")
    fields = head.split(",")
    try:
        priority, number, time_us = map(int, fields[:3])
    except ValueError:
        return None
    if not separator:
        return None
    return KernelMessage(priority % _PRIORITY_LEVELS, number, time_us, rest.partition("\n")[0])


def is_alarm(text: str) -> bool:
    """Whether the message reports a fault in the kernel, such as a WARNING, BUG or Oops."""
    return any(each in text for each in _ALARMS) or all(each in text for each in _HUNG)
