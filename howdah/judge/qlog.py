# SPDX-License-Identifier: Apache-2.0
"""Whether the log of a QUIC stack is whole: what it says that it sent is what a capture at its interface saw."""

from __future__ import annotations

from typing import Any

from howdah.ingest.source import IngestReport
from howdah.plan.plan import Flow, Plan
from howdah.record.verdict import COLLECTION, Check

SOURCE = "qlog"


def qlog_checks(plan: Plan, report: IngestReport) -> list[Check]:
    """One for each flow that a QUIC stack made."""
    flows = [flow for flow in plan.flows if flow.quic is not None]
    if not flows:
        return []
    source = report.sources.get(SOURCE)
    accounts = {int(item["flow"]): item for item in (source.counts.get("flows", []) if source else [])}
    return [_bytes(flow, accounts.get(flow.id)) for flow in flows]


def _bytes(flow: Flow, account: dict[str, Any] | None) -> Check:
    """UDP payload to the byte: coalesced packets share a datagram, so that only bytes can be compared."""
    name = f"qlog flow {flow.id}"
    if account is None:
        return Check(name, COLLECTION, False, f"{flow.title} has no qlog that could be read", unit="bytes")
    captured, logged = account["captured_bytes"], account["bytes"]
    if captured is None:
        return Check(name, COLLECTION, False, f"{flow.title} was not captured at its sender's interface", unit="bytes")
    message = (
        f"the qlog of {flow.title} has {account['packets']} packets of {logged} bytes, the capture at its sender "
        f"{account['captured_datagrams']} datagrams of {captured} bytes"
    )
    padding = account["padding_bytes"]
    ok = 0 <= captured - logged <= padding
    if not ok:
        missing = "lacks" if captured > logged else "has more by"
        message += f": the log {missing} {abs(captured - logged)} bytes"
    elif padding:
        message += f"; up to {padding} bytes of padding are not in it"
    return Check(name, COLLECTION, ok, message, captured, logged, padding, "bytes")
