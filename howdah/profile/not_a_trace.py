# SPDX-License-Identifier: Apache-2.0
"""What a file is that was given as a trace of a path and is none: by its first bytes, or as JSON by its members."""

from __future__ import annotations

import json

IPERF3 = "a result of iperf3 (JSON)"
_BEGINNINGS = (
    (b"\xd4\xc3\xb2\xa1", "a capture of packets (pcap)"),
    (b"\xa1\xb2\xc3\xd4", "a capture of packets (pcap)"),
    (b"\x4d\x3c\xb2\xa1", "a capture of packets (pcap)"),
    (b"\xa1\xb2\x3c\x4d", "a capture of packets (pcap)"),
    (b"\x0a\x0d\x0d\x0a", "a capture of packets (pcapng)"),
    (b"\x1f\x8b", "packed by gzip"),
    (b"BZh", "packed by bzip2"),
    (b"\xfd7zXZ", "packed by xz"),
    (b"\x28\xb5\x2f\xfd", "packed by zstd"),
    (b"PK\x03\x04", "a zip archive"),
    (b"PAR1", "a Parquet table"),
    (b"SQLite format 3", "an SQLite database"),
    (b"<", "XML or HTML"),
    (b"%PDF", "a PDF"),
)


def what_it_is(content: bytes) -> str | None:
    """In words; None if it may be a trace."""
    start = content[:4096].removeprefix(b"\xef\xbb\xbf").lstrip()
    # pcapng begins with an end of a line, which a text may begin with, too.
    found = next((words for mark, words in _BEGINNINGS if content.startswith(mark) or start.startswith(mark)), None)
    return found or (_json(content) if start[:1] in (b"{", b"[") else None)


def _json(content: bytes) -> str:
    try:
        read = json.loads(content)
    except (ValueError, RecursionError):
        return "JSON, or something like it"
    members = set(read) if isinstance(read, dict) else set()
    if {"start", "intervals", "end"} <= members:
        return IPERF3
    if {"version", "metadata", "results", "x_values"} <= members:
        return "a result of flent (JSON)"
    return "a qlog (JSON)" if "qlog_version" in members else "JSON"
