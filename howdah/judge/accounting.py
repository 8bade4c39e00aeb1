# SPDX-License-Identifier: Apache-2.0
"""Account for every packet: packets sent minus packets received must equal the drops that queues and interfaces
counted."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from howdah.judge.check import Tolerance, none_of
from howdah.judge.loss import allowed_losses
from howdah.linux.netlink.discipline.clsact import Clsact
from howdah.linux.netlink.discipline.howdah_hop import MiddleHop
from howdah.linux.netlink.discipline.netem import Netem
from howdah.plan.host_queue import host_queues
from howdah.plan.plan import Plan
from howdah.plan.route import LinkHop, way
from howdah.record.account import CounterState, Queue
from howdah.record.raw import read_raw_json
from howdah.record.verdict import ACCOUNTING, Check

INGRESS = "ingress"  # parent of a queue for arriving packets

# Counters that are compared from the flows' beginning on; others, such as CHOKe's causes, from the queue's.
_GROWING = ("packets", "bytes", "drops", "marked", "step_marks")

# Counters of a host that must not move, each with the name of its check and the meaning of a growth.
FORBIDDEN_COUNTERS = {
    "TcpExtTCPMemoryPressures": ("memory pressure", "TCP ran short of memory ({count} times): tcp_mem is too small"),
    "TcpExtPruneCalled": (
        "receive queue pruned",
        "a receiver threw queued data away ({count} times): too little memory",
    ),
    "TcpExtTCPRcvQDrop": ("receive queue drops", "a receiver's queue dropped {count} packets the path had delivered"),
    "TcpExtTCPBacklogDrop": ("socket backlog drops", "a busy socket's backlog dropped {count} packets"),
}


@dataclass(frozen=True)
class Snapshots:
    """accounting.json: the counters before the flows and after the network fell silent.

    Methods raise KeyError for a missing counter.
    """

    before: CounterState
    after: CounterState

    def interface(self, node: str, interface: str, counter: str) -> int:
        def value(state: CounterState) -> int:
            return int(state["nodes"][node]["interfaces"][interface][counter])

        return value(self.after) - value(self.before)

    def qdiscs(self, node: str, interface: str) -> list[Queue]:
        """Return each queue of an interface, with its kind, its handle and what it counted between the snapshots."""
        old = {item["handle"]: item for item in self._queues(self.before, node, interface)}
        found = []
        for item in self._queues(self.after, node, interface):
            earlier = old.get(item["handle"], {})
            counters = {name: int(item[name]) - int(earlier.get(name, 0)) for name in _GROWING if name in item}
            found.append({**item, **counters})
        return found

    @staticmethod
    def _queues(state: CounterState, node: str, interface: str) -> list[Queue]:
        return [item for item in state["nodes"][node]["qdiscs"] if item["interface"] == interface]

    def queue_drops(self, node: str, interface: str) -> int:
        """Return the packets that the egress queues of an interface dropped. A class-based parent counts its children's
        drops again, so the larger of both sums is taken."""
        queues = [item for item in self.qdiscs(node, interface) if item["parent"] != INGRESS]
        root = sum(item["drops"] for item in queues if item["parent"] == "root")
        below = sum(item["drops"] for item in queues if item["parent"] != "root")
        return int(max(root, below))

    def hop_counts(self, node: str, interface: str, *names: str) -> int:
        """Return the sum of some counters of the middlebox on an interface; 0 without one."""
        hops = [item for item in self.qdiscs(node, interface) if item["kind"] == MiddleHop.kind]
        return sum(int(item[name]) for item in hops for name in names)

    def policed(self, node: str, interface: str) -> int:
        """Return the packets that an egress filter dropped before the queues."""
        return sum(item["drops"] for item in self.qdiscs(node, interface) if item["kind"] == Clsact.kind)

    def counter(self, name: str) -> dict[str, int]:
        """Return the growth of a MIB counter on every node that has it."""
        old, new = (state.get("netstat", {}) for state in (self.before, self.after))
        return {
            node: int(values[name]) - int(old.get(node, {}).get(name, 0))
            for node, values in new.items()
            if name in values
        }

    @property
    def softnet_dropped(self) -> int:
        return int(self.after["softnet"]["dropped"]) - int(self.before["softnet"]["dropped"])


def read_snapshots(raw: Path) -> Snapshots | None:
    """Read accounting.json. Return None if it is missing or incomplete."""
    try:
        found = read_raw_json(raw / "accounting.json")
        return Snapshots(found["before"], found["after"])
    except (OSError, ValueError, KeyError, TypeError):
        return None


def accounting_checks(plan: Plan, state: Snapshots | None, tolerance: Tolerance) -> list[Check]:
    """Return all accounting checks. ``state`` is None if accounting.json is missing."""
    if state is None:
        return [Check("accounting", ACCOUNTING, False, "accounting.json is missing: packets were not counted")]
    made: list[Callable[[], list[Check]]] = [
        lambda: [balance(plan, state, "forward"), balance(plan, state, "reverse")],
        lambda: [_softnet(state)],
        lambda: netem_drops(plan, state, tolerance),
        lambda: [_sender_queues(plan, state)],
        lambda: _counters(state),
        lambda: [_silence(state)],
        lambda: _causes(state),
        lambda: policed(plan, state),
    ]
    checks = []
    for make in made:
        try:
            checks += make()
        except KeyError as error:
            message = f"accounting.json lacks {error.args[0]!r}: packets cannot be accounted for"
            checks.append(Check("accounting", ACCOUNTING, False, message))
    return checks


def _routes(plan: Plan, direction: str) -> list[list[LinkHop]]:
    pairs = dict.fromkeys(flow.ends for flow in plan.flows)
    return [way(plan, *(pair if direction == "forward" else pair[::-1])) for pair in pairs]


def balance(plan: Plan, state: Snapshots, direction: str) -> Check:
    """Compare packets that left their hosts in one direction with those that reached the hosts at the other end.

    The drop counters of queues and interfaces on the path must explain the whole difference. Every host sends and
    receives in one direction only, and interfaces carry nothing else.
    """
    name = f"packets {direction}"
    routes = _routes(plan, direction)
    if not all(routes):
        return Check(name, ACCOUNTING, False, "the plan's network does not connect the hosts of a flow")
    first = {(hops[0].node, hops[0].interface) for hops in routes}
    last = {(hops[-1].to_node, hops[-1].to_interface) for hops in routes}
    hops_used = dict.fromkeys(hop for hops in routes for hop in hops)
    sent = sum(state.interface(*end, "tx_packets") for end in first)
    received = sum(state.interface(*end, "rx_packets") for end in last)
    drops = [place for hop in hops_used for place in _drops(state, hop, (hop.node, hop.interface) in first)]
    places = {place: count for place, count in drops if count}
    known = sum(places.values())
    duplicated = sum(state.hop_counts(hop.node, hop.interface, "duplicated") for hop in hops_used)
    back = {hop for hops in _routes(plan, "reverse" if direction == "forward" else "forward") for hop in hops}
    answers = sum(state.hop_counts(hop.node, hop.interface, "answered") for hop in back)
    missing = sent + duplicated + answers - received - known
    drops_text = ", ".join(f"{count} at {place}" for place, count in places.items()) or "none at any known place"
    message = f"{direction}: {sent} packets sent, {received} received, {drops_text}"
    if duplicated or answers:
        message += f", {duplicated} received twice, {answers} answers of a hop"
    if missing > 0:
        message += f"; the path drops {missing} packets that no queue admits to"
    elif missing < 0:
        message += f"; {-missing} packets more than were sent: something duplicates, splits or answers"
    return Check(name, ACCOUNTING, missing == 0, message, 0, missing, 0, "packets")


def _drops(state: Snapshots, hop: LinkHop, first: bool) -> list[tuple[str, int]]:
    """Return each place where one hop can drop packets, and how many it dropped.

    A host's own queue and transmit drops precede its count of packets sent.
    """
    near, far = (hop.node, hop.interface), (hop.to_node, hop.to_interface)
    refused = state.interface(*far, "rx_dropped") + state.interface(*far, "rx_errors")
    places = [(":".join(far), refused)]
    if not first:
        places.append((f"the policer of {':'.join(near)}", state.policed(*near)))
        places.append((f"the queue of {':'.join(near)}", state.queue_drops(*near)))
        places.append((":".join(near), state.interface(*near, "tx_dropped") + state.interface(*near, "tx_errors")))
    return places


def policed(plan: Plan, state: Snapshots) -> list[Check]:
    """Check that packets offered to the policer minus its drops reached the queue behind it, by the counters of filter
    and rate limit."""
    if plan.path.policer is None:
        return []
    place = plan.calibration.bottleneck[:2]
    queues = state.qdiscs(*place)
    offered = sum(item["packets"] for item in queues if item["kind"] == Clsact.kind)
    dropped = state.policed(*place)
    arrived = sum(item["packets"] + item["drops"] for item in queues if item["parent"] == "root")
    missing = offered - dropped - arrived
    message = f"the policer dropped {dropped} of {offered} packets, and {arrived} came to the queue behind it"
    message += f"; {abs(missing)} packets {'are missing' if missing > 0 else 'passed it by'}" if missing else ""
    return [Check("policer", ACCOUNTING, not missing, message, offered - dropped, arrived, 0, "packets")]


def _softnet(state: Snapshots) -> Check:
    return none_of(
        "softnet drops",
        ACCOUNTING,
        state.softnet_dropped,
        "packets",
        "the receive backlog of the kernel dropped nothing",
        "the kernel's receive backlog dropped {count} packets that no qdisc counts: netdev_max_backlog is too small",
    )


def netem_drops(plan: Plan, state: Snapshots, tolerance: Tolerance) -> list[Check]:
    """Check that a delay line drops what random loss explains. More drops mean that its limit is too small."""
    checks = []
    forward = {(hop.node, hop.interface) for hops in _routes(plan, "forward") for hop in hops}
    for node, interface, handle in (queue.place for queue in plan.queues if queue.kind == Netem.kind):
        loss = plan.path.losses(ahead=(node, interface) in forward)
        if loss.steps or (plan.path.delay_limit_packets is not None and (node, interface) in forward):
            continue  # checked by schedule or limit in howdah/judge/loss.py and room.py
        for item in state.qdiscs(node, interface):
            if item["handle"] != handle:
                continue
            # A delay line also counts the drops and the duplicates of the hop below it.
            drops = item["drops"] - state.hop_counts(node, interface, "drops")
            offered = item["packets"] + item["drops"] - state.hop_counts(node, interface, "duplicated")
            mean = loss.ratio * offered
            allowed = allowed_losses(drops, offered, loss.ratio, loss.burst_packets, tolerance.deviations)
            ok = abs(drops - mean) <= allowed
            message = f"the delay line at {node}:{interface} dropped {drops} of {offered} packets"
            if not ok:
                message += f", expected {mean:.4g} ± {allowed:.3g}"
                message += ": its limit is too small" if drops > mean else ""
            label = f"netem drops {node}:{interface}"
            checks.append(Check(label, ACCOUNTING, ok, message, mean, drops, allowed, "packets"))
    return checks


def _sender_queues(plan: Plan, state: Snapshots) -> Check:
    """Check that hosts' own queues dropped nothing: that is congestion the path did not cause. Sender queues in the
    plan have checks of their own (howdah/judge/room.py)."""
    apart = {(each.node, each.interface) for each in host_queues(plan)}
    dropped = {
        f"{hops[0].node}:{hops[0].interface}": state.queue_drops(hops[0].node, hops[0].interface)
        for direction in ("forward", "reverse")
        for hops in _routes(plan, direction)
        if hops and (hops[0].node, hops[0].interface) not in apart
    }
    places = ", ".join(place for place, count in dropped.items() if count)
    return none_of(
        "host queue drops",
        ACCOUNTING,
        sum(dropped.values()),
        "packets",
        "no host dropped packets in its own queue",
        "{count} packets were dropped in the hosts' own queues (" + places + ")",
    )


def _counters(state: Snapshots) -> list[Check]:
    checks = []
    for counter, (name, bad) in FORBIDDEN_COUNTERS.items():
        growth = state.counter(counter)
        total = sum(growth.values()) if growth else None
        where = ", ".join(node for node, count in growth.items() if count)
        checks.append(none_of(name, ACCOUNTING, total, "events", f"{counter} did not move", f"{bad} (at {where})"))
    return checks


def _causes(state: Snapshots) -> list[Check]:
    """Check that the causes explain all drops of a CHOKe queue. A match drops two packets: the arriving one and one in
    the queue."""
    checks = []
    for node, values in state.after["nodes"].items():
        for item in values["qdiscs"]:
            if "matched" not in item:
                continue
            explained = item["early"] + item["pdrop"] + item["other"] + 2 * item["matched"]
            message = (
                f"CHOKe at {node}:{item['interface']} dropped {item['drops']} packets: {item['early']} early, "
                f"{item['pdrop']} when it was full, {item['matched']} with one of their flow that was queued"
            )
            missing = item["drops"] - explained
            if missing:
                message += f"; {abs(missing)} packets {'have no cause' if missing > 0 else 'more than it dropped'}"
            label = f"drop causes {node}:{item['interface']}"
            checks.append(Check(label, ACCOUNTING, not missing, message, item["drops"], explained, 0, "packets"))
    return checks


def _silence(state: Snapshots) -> Check:
    """Check that all queues were empty at the second snapshot; otherwise the balance proves nothing."""
    left = {
        f"{node}:{item['interface']}": int(item["backlog_packets"])
        for node, values in state.after["nodes"].items()
        for item in values["qdiscs"]
        if item["backlog_packets"]
    }
    places = ", ".join(left)
    return none_of(
        "silence",
        ACCOUNTING,
        sum(left.values()),
        "packets",
        "the network was silent when packets were counted",
        "{count} packets were still queued when packets were counted (" + places + ")",
    )
