# SPDX-License-Identifier: Apache-2.0
"""Backlog, drops and throughput of the queues that make the path."""

from __future__ import annotations

from collections.abc import Iterator

from collectors.batch import Batch
from collectors.polled import PolledCollector
from howdah.linux.netlink.message import NETLINK_ROUTE
from howdah.linux.netlink.qdisc import RTM_GETQDISC, header
from howdah.linux.output import KIND_QDISC
from howdah.plan.placed import Class, Replace
from howdah.plan.plan import Plan
from howdah.plan.policer import INGRESS_HANDLE

_WATCHED = ("netem", "howdah_wire", "howdah_hop")


def watched_qdiscs(plan: Plan) -> dict[str, list[tuple[str, str]]]:
    """Return ``{node: [(interface, handle)]}`` of the hops' queues, the policer, the delay lines and the queues below
    them."""
    found: dict[str, list[tuple[str, str]]] = {}
    calibration = plan.calibration
    bottleneck = (calibration.bottleneck_interface, calibration.bottleneck_handle)
    found[calibration.bottleneck_node] = [bottleneck]
    for hop in plan.path.hops:
        found.setdefault(hop.node, []).append((hop.interface, calibration.bottleneck_handle))
    if plan.path.policer is not None:  # its hook counts the packets that arrived and that it dropped
        found[calibration.bottleneck_node].append((calibration.bottleneck_interface, INGRESS_HANDLE))
    others = [queue.place for queue in plan.queues if queue.kind in _WATCHED]
    # The reverse queue, too, if its rate changes.
    others += [
        (*each.change.at, calibration.bottleneck_handle) for each in plan.timeline if isinstance(each.change, Class)
    ]
    # A sender's queue below its rate limit, which has the same counters.
    others += [(*each.change.at, "1:") for each in plan.timeline if isinstance(each.change, Replace)]
    for node, interface, handle in others:
        places = found.setdefault(node, [])
        if (interface, handle) not in places:
            places.append((interface, handle))
    return found


class QdiscCollector(PolledCollector):
    """Requests each watched qdisc from rtnetlink by interface and handle, and keeps the answers unparsed.

    Writes ``qdisc.bin`` (framed, kind 2): for each sample and node, RTM_NEWQDISC answers: struct tcmsg (interface
    index, handle, parent) with TCA_KIND, TCA_OPTIONS and TCA_STATS2 (bytes and packets dequeued, queue length, backlog,
    drops, overlimits). Becomes the table ``qdisc``; its columns are in howdah/record/schema.py.
    """

    says = "backlog and drops of every queue"
    default = "100 ms"
    file = "qdisc.bin"
    kind = KIND_QDISC

    def questions(self) -> Iterator[tuple[str, Batch]]:
        for node, places in watched_qdiscs(self.surroundings.planned).items():
            namespace = self.surroundings.namespaces[node]
            requests = [(RTM_GETQDISC, header(namespace.index(interface), handle)) for interface, handle in places]
            yield node, Batch(namespace, NETLINK_ROUTE, requests)


COLLECTOR = QdiscCollector
