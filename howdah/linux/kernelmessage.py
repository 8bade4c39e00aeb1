# SPDX-License-Identifier: Apache-2.0
"""Messages of the kernel's log: their form in /dev/kmsg and in raw/kernel.log, and those that say that it is ill."""

from __future__ import annotations

from howdah.codec import planned

_PRIORITY_LEVELS = 8  # the rest of the number is the facility (syslog(2))
# What lib/bug.c, kernel/panic.c, the schedulers' and lockdep's reports, and the memory allocator begin with. No regular
# expression: a guest compiles it whenever it starts, which takes longer than to look for these in all that it says.
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
    """``number`` counts the kernel's messages from its boot, ``time_us`` is its own clock; 0 is the worst level."""

    level: int
    number: int
    time_us: int
    text: str

    def line(self) -> str:
        """As it stands in raw/kernel.log."""
        return f"{self.level},{self.number},{self.time_us};{self.text}\n"


def parse(record: str) -> KernelMessage | None:
    """A record of /dev/kmsg or a line of raw/kernel.log: ``level,number,time,…;message``; None if it is neither.

    Lines below a record of /dev/kmsg are a dictionary for programs.
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
    """Whether a message says that something in the kernel is wrong: WARNING, BUG, Oops and their like."""
    return any(each in text for each in _ALARMS) or all(each in text for each in _HUNG)
