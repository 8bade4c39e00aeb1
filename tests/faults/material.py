# SPDX-License-Identifier: Apache-2.0
"""What wrong inputs are made of: numbers, units, names, paths and pieces of text that programs stumble over."""

from __future__ import annotations

import re

NUMBERS = (
    *("0", "-1", "1", "-0", "00", "0x10", "0o17", "1e3", "1e-300", "1e300", "1e999", ".5", "5.", "+7", "1_000"),
    *("nan", ".nan", ".NaN", "inf", ".inf", "-.inf", "9" * 19, "9" * 40, "9" * 63, "9" * 70, "9" * 5000, "2147483648"),
    *("4294967296", "9223372036854775807", "9223372036854775808", "18446744073709551616", "1e18", "0.1", "1/3", "٣"),
)
UNITS = (
    *("bit/s", "kbit/s", "Mbit/s", "Gbit/s", "Tbit/s", "Mbps", "MBps", "ns", "us", "µs", "ms", "s", "min", "h", "day"),
    *("B", "kB", "MB", "GB", "KiB", "GiB", "bdp", "packets", "rtt", "%", "", "furlong"),
)
TEXTS = (
    *("", " ", "\t", "\n", "~", "null", "true", "off", "no", "yes", "<<", "=", "-", "?", ":", "#", "*a", "&a b", "!!x"),
    *(
        "'",
        '"',
        "''",
        '"\\x00"',
        "\x00",
        "\x07",
        "\x1b[31m",
        "\ufeff",
        "\u2028",
        "\ud7ff",
        "é",
        "日本",
        "🐘",
        "%s",
        "{0}",
    ),
    *("[", "]", "{", "}", "[]", "{}", "[[]]", "[1, [2, 3]]", "{a: {b: c}}", "a" * 300, "a" * 20_000, "a b c", "A.B.C"),
    *(
        "cubic",
        "reno",
        "bbr",
        "fifo",
        "unlimited",
        "kernel",
        "auto",
        "latest",
        "linux",
        "uml",
        "flow1",
        "dumbbell",
        "Own",
        "Other",
        "NOTHING",
        "Topo",
    ),
)
PATHS = (
    *(".", "..", "/", "~", "~nobody-of-that-name/x", "/dev/null", "/dev/zero", "/dev/full", "/dev/stdin", "/dev/tty"),
    *(
        "/proc/self/mem",
        "/proc/self/environ",
        "/proc/self/fd/0",
        "/etc/passwd",
        "/no/such/file.c",
        "quick.yaml",
        "own_topology.py",
        "walk.csv",
        "walk.up",
    ),
    *(
        "../quick.yaml",
        "../../profiles",
        "x" * 300 + ".c",
        "x/" * 3000,
        "a\x00b.c",
        "*.yaml",
        "fifo",
        "fifo.csv",
        "loop",
    ),
    *("loop.c", "fifo.c", "/dev/zero/x", "/root/.ssh/id.c", "paths/geo", "paths/lte", "-rf", "--help", "$HOME", "`id`"),
)
# Right in many fields, and much.
LARGE = (
    *("86400 s", "1440 min", "1 ms", "1 us", "10 ms", "1 Tbit/s", "1 kbit/s", "400 Gbit/s", "10000 GB", "1 B", "1 bdp"),
    *("100000000 bdp", "65535 packets", "1000 rtt", "0.001 rtt", "50 %", "0.0001 %", "10 %", "off", "unlimited"),
    *(1, 2, 32, 200, 500, 1000, 5000, 10_000, 65_535, 1_000_000, 2**31, 2**32 - 1, 0.5, 1.0001, 100.0),
)
DIMENSIONS = (
    ("ns", "us", "ms", "s", "min"),
    ("bit/s", "kbit/s", "Mbit/s", "Gbit/s", "Tbit/s"),
    ("B", "kB", "MB", "GB", "KiB", "bdp", "packets"),
    ("%",),
    ("rtt",),
)
AMOUNTS = (
    "0.001",
    "0.1",
    "0.5",
    "1",
    "1.5",
    "2",
    "3",
    "10",
    "50",
    "60",
    "100",
    "999",
    "1000",
    "1440",
    "86400",
    "1000000",
)
QUANTITY = re.compile(r"\s*([\d.]+)\s*([A-Za-z%/]+)\s*")
TEXT_PIECES = (
    *("\t", "  ", "\n", "\r", "\r\n", "\x00", "\ufeff", "\x85", "---\n", "...\n", "%YAML 9.9\n---\n", "- ", "? ", ": "),
    *("&a ", "*a", "!!python/object:os.system ", "!!float ", "! ", "!<x> ", "<<: *a", "'", '"', "|", ">", "|+9\n", "#"),
    *("{", "}", "[", "]", ",", "[[[[", "}}}}", "@", "`", "%", "\\", "a: " * 40, "- " * 200, "[" * 3000, "{a: " * 3000),
)
LINE = re.compile(r"[^\n]*\n?")
