# SPDX-License-Identifier: Apache-2.0
"""Which measures the runs of a plan will not have, and what they would take: known before anything runs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from howdah.metric import known_metrics
from howdah.plan.plan import BACKGROUND, Flow, Plan
from howdah.profile.claim import ClaimSection

_OF_FLOWS = {"exit_rows", "recovery", "course"}  # modules that look at no connection of a group
_GROUP = "group"


def needed(metric: str, plan: Plan) -> str | None:
    """What the plan lacks for a metric of the table, in words; None where nothing is known to be missing."""
    known = known_metrics().get(metric)
    if known is None:
        return None
    modules = {name.rpartition(".")[2] for name in known.modules}
    measured = [flow for flow in plan.flows if flow.role != BACKGROUND]
    if modules == {_GROUP} and not _groups(measured):
        return "a group of connections (groups:)"
    if modules <= _OF_FLOWS and modules and all(flow.group is not None for flow in measured):
        return "a flow (flows:): connections of groups are not measured so finely"
    if metric in ("completion_time_s", "transfer_time_s") and all(flow.size_bytes is None for flow in measured):
        return "a flow with a size"
    if metric == "jain_index" and len(measured) < 2:
        return "two measured flows"
    if modules == {"receiver"} and measured and not _captured(plan, measured):
        host = measured[0].receiver
        return f"a capture at the receiver (collect: {{pcap: ['{host}:{host}-eth0']}})"
    if modules == {"cpu"} and not plan.collect.cpu:
        return "the processor's time (collect: {cpu: true})"
    return None


def unmeasured_claims(claims: Iterable[ClaimSection], plans: Sequence[Plan]) -> list[str]:
    """A sentence for each claim of a metric that no run of these plans will have."""
    found = []
    for claim in claims:
        reasons = [needed(claim.value.metric, plan) for plan in plans] if claim.value is not None else []
        if claim.value is not None and reasons and all(reasons):
            what = f"no run measures {claim.value.metric}, which takes {reasons[0]}"
            found.append(f"The claim {claim.id} cannot be judged: {what}.")
    return found


def _groups(measured: list[Flow]) -> bool:
    return any(flow.group is not None for flow in measured)


def _captured(plan: Plan, measured: list[Flow]) -> bool:
    places = {place.partition(":")[0] for place in plan.collect.pcap}
    return any(flow.receiver in places for flow in measured)
