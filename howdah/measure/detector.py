# SPDX-License-Identifier: Apache-2.0
"""Whether the mechanism that is there to end a start-up before a loss does ever did so, over all measured flows."""

from __future__ import annotations

from howdah.algorithm import ALGORITHMS, HYSTART
from howdah.measure.measured import Measured
from howdah.measure.row import Sheet
from howdah.plan.plan import BACKGROUND, Flow

_HYSTART_COUNTERS = ("TcpExtTCPHystartTrainDetect", "TcpExtTCPHystartDelayDetect")
_UNCOUNTED = "the kernel of the senders has no counters of HyStart"
_KERNELS_OWN = "tcp_cubic"


def detector_rows(sheet: Sheet, data: Measured) -> None:
    """``detector_exits`` of the run: how many start-ups the detectors of its algorithms ended.

    Of the kernel's CUBIC it is what its counters (TCPHystartTrainDetect, TCPHystartDelayDetect) grew by, on every host
    that has a measured flow; of a plug-in the number of measured flows of which it reported one of the reasons by
    which it ends a start-up. Connections of groups count like flows. No row where no algorithm has a detector.
    """
    flows = [flow for flow in data.plan.flows if flow.role != BACKGROUND and flow.is_tcp and not flow.stacks]
    with_one = [flow for flow in flows if (known := ALGORITHMS.get(flow.algorithm)) is not None and known.detector]
    if not with_one:
        return
    counted = [flow for flow in with_one if _is_counted(flow)]
    total = sum(_told(data, flow) for flow in with_one if not _is_counted(flow))
    for host in dict.fromkeys(flow.sender for flow in counted):
        grown = [data.counters.total(host, name) for name in _HYSTART_COUNTERS]
        if all(each is None for each in grown):
            sheet.add(None, "detector_exits", None, _UNCOUNTED)
            return
        total += sum(each or 0 for each in grown)
    sheet.add(None, "detector_exits", total)


def _is_counted(flow: Flow) -> bool:
    known = ALGORITHMS[flow.algorithm]
    return known.module == _KERNELS_OWN and known.detector == HYSTART


def _told(data: Measured, flow: Flow) -> bool:
    ends_by = ALGORITHMS[flow.algorithm].ends_by
    return any(event.reason in ends_by for event in data.events.get(flow.id, []))
