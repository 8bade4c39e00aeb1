# SPDX-License-Identifier: Apache-2.0
"""Checks of a simulated path: rate, delay, buffer, loss, and every packet. There is no kernel to read back from."""

from __future__ import annotations

from collections.abc import Iterable

from howdah.ingest.ns2 import read_links
from howdah.ingest.source import IngestReport
from howdah.judge.check import Tolerance, none_of
from howdah.judge.collection import raw_files, reading_gaps, readings, trace_to_the_end
from howdah.judge.during import during_checks
from howdah.judge.engine import flow_checks
from howdah.judge.loss import allowed_losses
from howdah.measure.measured import Measured
from howdah.plan.plan import Plan
from howdah.record.agent import AgentRecord
from howdah.record.directory import RunDirectory
from howdah.record.verdict import ACCOUNTING, ENGINE, Check

Links = dict[str, dict[str, int]]
_BOTTLENECKS = ("forward", "reverse")


def model_checks(
    directory: RunDirectory, data: Measured, report: IngestReport, agent: AgentRecord | None, tolerance: Tolerance
) -> list[Check]:
    """Return every check of a model's run. ``agent`` is agent.json, None if it is missing."""
    plan = data.plan
    if agent is None:
        missing = "agent.json is missing: the simulation did not finish"
        checks = [Check("agent", ENGINE, False, missing)]
    else:
        checks = [_model(plan, agent), *flow_checks(plan.flows, agent, tolerance, None)]
    checks += during_checks(data, tolerance)
    checks += _packets(directory, plan, tolerance)
    checks.append(raw_files(report))
    if plan.collect.tcp_probe and plan.collect.tcp_info_us is not None:
        checks.append(trace_to_the_end(data))
    if plan.collect.qdisc_us is not None:
        checks += readings(plan, IngestReport({"qdisc": report.sources["qdisc"]}))
        times = data.bottleneck.time_ns
        within_run = times[(times >= 0) & (times <= plan.duration_us * 1000)]
        checks.append(reading_gaps("the bottleneck's queue", plan.collect.qdisc_us, within_run.tolist()))
    return checks


def _model(plan: Plan, agent: AgentRecord) -> Check:
    """Check that the simulator that ran is the planned one. The message tells readers that it is a model."""
    wanted, found = plan.traits.label, agent.kernel_release
    message = f"the TCP of this run is a {found}: it shows what that model does, not what a kernel does"
    if found != wanted:
        message = f"the plan is for a {wanted}, and {found} ran"
    return Check("model", ENGINE, found == wanted, message, wanted, found)


def _packets(directory: RunDirectory, plan: Plan, tolerance: Tolerance) -> Iterable[Check]:
    try:
        links = read_links(directory.raw)
        return packet_checks(plan, links, tolerance)
    except (OSError, ValueError, LookupError) as error:
        return [Check("accounting", ACCOUNTING, False, f"links.tsv cannot be read ({error}): packets were not counted")]


def packet_checks(plan: Plan, links: Links, tolerance: Tolerance) -> list[Check]:
    """Check that packets sent by hosts minus packets received by hosts at the other side are the bottleneck's drops
    plus the path's random loss. Raise LookupError if a queue is missing."""
    sides = {"forward": ("sender", "receiver"), "reverse": ("receiver", "sender")}
    checks = []
    for direction, (near, far) in sides.items():
        sent = sum(links[host]["arrivals"] for host in _queues(plan, links, near, "out"))
        received = sum(links[host]["departures"] for host in _queues(plan, links, far, "in"))
        dropped = links[direction]["drops"]
        missing = sent - received - dropped
        ratio = plan.path.loss_ratio if direction == "forward" else 0.0
        passed = sent - dropped
        mean = ratio * passed
        allowed = allowed_losses(missing, passed, ratio, None, tolerance.deviations)
        message = f"{direction}: {sent} packets sent, {received} received, {dropped} dropped at the bottleneck"
        message += f", {missing} lost behind it, expected {mean:.4g} ± {allowed:.3g}" if ratio or missing else ""
        ok = abs(missing - mean) <= allowed
        checks.append(Check(f"packets {direction}", ACCOUNTING, ok, message, mean, missing, allowed, "packets"))
    own = sum(counts["drops"] for name, counts in links.items() if name not in _BOTTLENECKS)
    good, bad = "no queue but the bottleneck's dropped anything", "{count} packets were dropped in queues of hosts"
    checks.append(none_of("host queue drops", ACCOUNTING, own, "packets", good, bad))
    left = sum(counts["left"] for counts in links.values())
    good = "the network was silent when packets were counted"
    bad = "{count} packets were still queued when packets were counted"
    checks.append(none_of("silence", ACCOUNTING, left, "packets", good, bad))
    return checks


def _queues(plan: Plan, links: Links, role: str, way: str) -> list[str]:
    names = [f"{host.name},{way}" for host in plan.hosts if host.role == role]
    return [name for name in names if name in links]
