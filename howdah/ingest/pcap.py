# SPDX-License-Identifier: Apache-2.0
"""Captures, raw/pcap/NODE-INTERFACE.pcap with pcap.json: how many packets there are, and how many there should be.

Packets are counted here, so that the judge can say whether a capture is whole; the table ``segment`` has what those at
the ends of flows show (``howdah/ingest/segment.py``).
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from howdah.ingest.capture import read_packets
from howdah.ingest.source import SourceReport
from howdah.plan.plan import Plan
from howdah.record.raw import raw_value, read_raw_bytes

ACCOUNT = "pcap.json"
NAME = "pcap"


def count_packets(path: Path) -> tuple[int, str | None]:
    """Whole packets of a capture, and what is wrong with the file, None if nothing."""
    packets = read_packets(path)
    return len(packets), packets.problem


def ingest_captures(raw: Path, machines: list[str], plan: Plan) -> SourceReport:
    """``counts.captures``: for each place of the plan what tcpdump said of itself, and ``in_file``, the packets there.

    ``machines`` have their files in directories of their own; empty where there is one.
    """
    report = SourceReport()
    accounts: dict[str, tuple[Path, dict[str, Any]]] = {}
    for place in [raw / name for name in machines] or [raw]:
        try:
            value = raw_value(read_raw_bytes(place / ACCOUNT))
            accounts |= {f"{item['node']}:{item['interface']}": (place, item) for item in value["captures"]}
        except FileNotFoundError:
            continue  # a machine on which nothing was to be captured; what is missing is told below
        except (OSError, ValueError, KeyError, TypeError) as error:
            report.problems.append(f"{ACCOUNT} cannot be read: {type(error).__name__}: {error}")
    captures = []
    for name in plan.collect.pcap:
        if name not in accounts:
            report.problems.append(f"there is no account of the capture at {name}")
            continue
        place, account = accounts[name]
        packets, problem = count_packets(place / "pcap" / f"{name.replace(':', '-')}.pcap")
        report.problems += [problem] if problem else []
        report.rows += packets
        captures.append({**account, "place": name, "in_file": packets})
    report.counts["captures"] = captures
    return report
