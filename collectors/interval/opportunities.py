# SPDX-License-Identifier: Apache-2.0
"""Opportunities of links that follow a trace, and what they carried."""

from __future__ import annotations

from collections.abc import Iterator

from collectors.batch import Batch
from collectors.polled import PolledCollector
from howdah.linux.netlink.message import NETLINK_ROUTE
from howdah.linux.netlink.qdisc import RTM_GETQDISC, header
from howdah.linux.output import KIND_OPPORTUNITIES
from howdah.plan.plan import Plan

_LINK = "howdah_link"


class OpportunitiesCollector(PolledCollector):
    """Requests the qdisc that is a link from rtnetlink, and keeps the answers unparsed.

    Writes ``opportunities.bin`` (framed, kind 5): for each sample and node, an RTM_NEWQDISC answer whose TCA_STATS_APP
    is struct link_stats of modules/link/link.h, all of one instant. Becomes the table ``opportunities``; its columns
    are in howdah/ingest/opportunities.py.
    """

    says = "opportunities of links that follow a trace, where the path has one"
    default = "100 ms"
    file = "opportunities.bin"
    kind = KIND_OPPORTUNITIES

    @classmethod
    def planned_for(cls, plan: Plan) -> bool:
        return plan.path.link is not None or plan.path.reverse_link is not None

    def questions(self) -> Iterator[tuple[str, Batch]]:
        for queue in self.surroundings.planned.queues:
            namespace = self.surroundings.namespaces.get(queue.node)
            if queue.kind == _LINK and namespace is not None:  # it may be in another kernel
                request = (RTM_GETQDISC, header(namespace.index(queue.interface), queue.handle))
                yield queue.node, Batch(namespace, NETLINK_ROUTE, [request])


COLLECTOR = OpportunitiesCollector
