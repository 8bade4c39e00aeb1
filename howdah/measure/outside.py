# SPDX-License-Identifier: Apache-2.0
"""Retransmissions as counted by other programs: the text of ss, the JSON of iperf3.

Both read the same kernel, but not through howdah's parsers. A file that is missing, or lacks the flow, is not compared;
the counts are never measures of their own.
"""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np

from howdah.measure.row import Sheet
from howdah.measure.sampled import Samples
from howdah.plan.plan import Flow
from howdah.record.directory import RunDirectory
from howdah.record.raw import raw_exists, raw_value, read_raw_bytes, read_raw_text

_HOST = re.compile(r"^# (?P<node>\S+) (?P<time_ns>\d+)$")
_RETRANSMITTED = re.compile(r"\bretrans:\d+/(\d+)")


def compare(sheet: Sheet, directory: RunDirectory, flow: Flow, info: Samples, epoch_ns: int) -> None:
    """Add a cross-check of a flow's retransmissions with ss and one with iperf3, if their files exist."""
    if not info.has("total_retrans_packets"):
        return
    total = info["total_retrans_packets"]
    said = ss_retransmitted(directory.raw / "ss-end.txt", flow)
    if said is not None:
        time_ns, packets = said
        # The counter only grows, so ss must see a value between those of the readings before and after it.
        after = int(np.searchsorted(info.time_ns, time_ns - epoch_ns, side="left"))
        least = int(total[max(after - 1, 0)])
        most = int(total[after]) if after < total.size else None
        _add(sheet, flow, "ss", least, packets, packets >= least and (most is None or packets <= most))
    counted = iperf3_retransmitted(directory.raw / "iperf3" / f"{flow.id}-client.json")
    if counted is not None:
        last = int(total[-1])
        # iperf3 reads when its time is over, which is not the time of the last reading here.
        _add(sheet, flow, "iperf3", last, counted, abs(counted - last) <= max(2, last // 50))


def _add(sheet: Sheet, flow: Flow, program: str, ours: int, theirs: int, agree: bool) -> None:
    message = f"{program} and tcp_info count the retransmitted packets differently"
    sheet.cross_check(flow.id, "retransmitted_packets", {"tcp_info": ours, program: theirs}, agree, message)


def ss_retransmitted(file: Path, flow: Flow) -> tuple[int, int] | None:
    """Return time (CLOCK_MONOTONIC, ns) and retransmitted packets of the flow's sender in output of ``ss -tinmO``."""
    if not raw_exists(file):
        return None
    ends = (f"{flow.source_address}:{flow.source_port}", f"{flow.destination_address}:{flow.destination_port}")
    time_ns, node = 0, ""
    for line in read_raw_text(file, errors="replace").splitlines():
        head = _HOST.match(line)
        if head:
            node, time_ns = head["node"], int(head["time_ns"])
        elif node == flow.sender and tuple(line.split()[3:5]) == ends:
            found = _RETRANSMITTED.search(line)  # ss omits a zero
            return time_ns, int(found.group(1)) if found else 0
    return None


def iperf3_retransmitted(file: Path) -> int | None:
    """Return ``end.sum_sent.retransmits`` of the client's JSON."""
    try:
        value = raw_value(read_raw_bytes(file))["end"]["sum_sent"]["retransmits"]
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return int(value)
