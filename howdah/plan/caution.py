# SPDX-License-Identifier: Apache-2.0
"""Warnings, before anything runs, about what a comparison changes besides its subject, as far as its plans show it."""

from __future__ import annotations

from collections.abc import Sequence

from howdah.algorithm import ALGORITHMS, HYSTART_PAIR
from howdah.number import counted, listed
from howdah.plan.plan import BACKGROUND, Flow, Plan

ALGORITHM = "algorithm"
_WINDOW = "initial_window"


def plan_cautions(plans: Sequence[Plan]) -> list[str]:
    """Return warnings about the plans of an experiment's runs; none if the comparison changes one thing only."""
    return [*_changes_others(plans), *_ignored_window(plans), *_idle_policer(plans)]


def _idle_policer(plans: Sequence[Plan]) -> list[str]:
    """Warn about a policer that drops nothing, or nothing that the queue behind it would not drop anyway."""
    found = []
    for plan in plans:
        path, policer = plan.path, plan.path.policer
        if policer is None:
            continue
        senders = len({host.name for host in plan.hosts if host.role == "sender"})
        most = (path.sender_interface_bits_per_second or 0) * senders
        if most and policer.rate_bits_per_second >= most:
            found.append("The policer drops nothing: the senders' interfaces together are no faster than it.")
        elif policer.rate_bits_per_second >= path.rate_bits_per_second and policer.burst_bytes >= path.buffer_bytes:
            what = "The policer is hardly to be seen: it lets pass what the bottleneck carries, and its bucket holds"
            found.append(f"{what} what fills the queue behind it, which drops first (lower its rate, or its burst).")
    return list(dict.fromkeys(found))


def _changes_others(plans: Sequence[Plan]) -> list[str]:
    """Warn if a sweep of the algorithm also changes background flows, because they name no algorithm of their own."""
    swept = [plan for plan in plans if ALGORITHM in plan.axes]
    names = list(dict.fromkeys(plan.algorithm for plan in swept))
    if len(names) < 2:
        return []
    followers = [_followers(plan) for plan in swept]
    if not all(followers):
        return []
    count = max(map(len, followers))
    one = count == 1
    what = f"The sweep's algorithm changes {counted(count, 'background flow')} too"
    hint = "name an algorithm in background: to hold " + ("it" if one else "them")
    known = [ALGORITHMS[name] for name in names if name in ALGORITHMS]
    if len({entry.module for entry in known if entry.module}) < len([entry for entry in known if entry.module]):
        hint += f", and where that is cubic, compare {HYSTART_PAIR}"
    return [f"{what}: what the sides differ by may be the competition's ({hint})."]


def _followers(plan: Plan) -> list[Flow]:
    return [flow for flow in plan.flows if flow.role == BACKGROUND and _follows(flow, plan)]


def _follows(flow: Flow, plan: Plan) -> bool:
    return flow.is_tcp and flow.algorithm == plan.algorithm


def _ignored_window(plans: Sequence[Plan]) -> list[str]:
    """Warn if the initial window is swept over algorithms that set their own."""
    swept = {name for plan in plans for name in plan.axes if name.rpartition(".")[2] == _WINDOW}
    if not swept:
        return []
    measured = [flow.algorithm for plan in plans for flow in plan.flows if flow.role != BACKGROUND]
    own = [name for name in dict.fromkeys(measured) if (known := ALGORITHMS.get(name)) and known.own_window]
    if not own:
        return []
    verb = "has its own first window" if len(own) == 1 else "have their own first windows"
    return [f"The sweep of {listed(sorted(swept))} changes nothing with {listed(own)}, which {verb}."]
