# SPDX-License-Identifier: Apache-2.0
"""Text files of the kernel below /proc and /sys: reading, writing, and parsing of counters into ``{name: integer}``."""

from __future__ import annotations

import os

_READ_BYTES = 1 << 16

# Columns of /proc/net/softnet_stat whose meaning has not changed since Linux 4.7.
_SOFTNET_COLUMNS = ("processed", "dropped", "time_squeeze")


def sysctl_path(name: str) -> str:
    return "/proc/sys/" + name.replace(".", "/")


def read_raw(descriptor: int) -> bytes:
    """Return the present content of an open /proc file. The descriptor keeps showing the namespace in which it was
    opened."""
    parts = []
    offset = 0
    while part := os.pread(descriptor, _READ_BYTES, offset):
        parts.append(part)
        offset += len(part)
    return b"".join(parts)


def read_file(path: str) -> str:
    """Return the content of a small file. Raises OSError like ``open``.

    ``open()`` makes twice as many system calls, half of them to learn the kind of file. Each system call costs a
    user-mode kernel two process switches.
    """
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        return read_raw(descriptor).decode()
    finally:
        os.close(descriptor)


def write_file(path: str, text: str, *, new: bool = False) -> None:
    """Write a setting, or a ``new`` file, with four system calls instead of thirteen. Raises OSError like ``open``."""
    flags = os.O_WRONLY | os.O_TRUNC | os.O_CLOEXEC | (os.O_CREAT if new else 0)
    descriptor = os.open(path, flags, 0o666)
    try:
        left = text.encode()
        while left:
            left = left[os.write(descriptor, left) :]
    finally:
        os.close(descriptor)


def read_again(descriptor: int) -> str:
    return read_raw(descriptor).decode("ascii", "replace")


def parse_snmp(text: str) -> dict[str, int]:
    """Parse /proc/net/snmp or /proc/net/netstat; names are nstat's, group and counter
    (``TcpExtTCPHystartTrainDetect``)."""
    values: dict[str, int] = {}
    lines = text.splitlines()
    for names, numbers in zip(lines[0::2], lines[1::2], strict=True):
        group, _, columns = names.partition(":")
        _, _, row = numbers.partition(":")
        for name, number in zip(columns.split(), row.split(), strict=True):
            values[group + name] = int(number)
    return values


def parse_softnet(text: str) -> dict[str, int]:
    """Sum the counters of the receive path's softirq over all processors (net/core/net-procfs.c)."""
    totals = dict.fromkeys(_SOFTNET_COLUMNS, 0)
    for line in text.splitlines():
        for name, field in zip(_SOFTNET_COLUMNS, line.split(), strict=False):
            totals[name] += int(field, 16)
    return totals


def parse_sockstat(text: str) -> dict[str, int]:
    """Parse /proc/net/sockstat: ``TCP: inuse 3 mem 5`` becomes ``TCP_inuse`` and ``TCP_mem`` (pages, kernel-wide)."""
    values = {}
    for line in text.splitlines():
        group, _, rest = line.partition(":")
        fields = rest.split()
        for name, number in zip(fields[0::2], fields[1::2], strict=True):
            values[f"{group}_{name}"] = int(number)
    return values


def parse_meminfo(text: str) -> dict[str, int]:
    """Parse /proc/meminfo: ``MemAvailable: 5 kB`` becomes ``MemAvailable_bytes``; counts keep their names."""
    values = {}
    for line in text.splitlines():
        name, _, rest = line.partition(":")
        fields = rest.split()
        if len(fields) == 2 and fields[1] == "kB":
            values[f"{name}_bytes"] = int(fields[0]) * 1024
        else:
            values[name] = int(fields[0])
    return values
