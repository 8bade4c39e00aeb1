# SPDX-License-Identifier: Apache-2.0
"""The measure ``net_rx_softirqs``: how often the kernel took packets from a queue during the run."""

from __future__ import annotations

import pyarrow.compute as pc

from howdah.hooks import MeasureEntry
from howdah.measure.measured import Measured
from howdah.metric import Metric
from howdah.record import table as store
from howdah.record.directory import RunDirectory


def net_rx(directory: RunDirectory, data: Measured) -> dict[int | None, float | int | str]:
    """Of the run as a whole: the last count of NET_RX less the first."""
    if "softirq" not in data.plan.collect.intervals_us:
        return {None: "collect.softirq is off"}
    table = store.read(directory, "softirq")
    counts = table.filter(pc.equal(table["kind"].cast("string"), "NET_RX"))["count"]
    return {None: counts[-1].as_py() - counts[0].as_py()} if len(counts) else {None: "the kernel counts no NET_RX"}


NET_RX = MeasureEntry(
    Metric(
        "net_rx_softirqs",
        header="NET_RX",
        label="receive interrupts",
        signed=False,
        meaning="software interrupts that took packets from a queue, in the whole kernel",
    ),
    net_rx,
)
