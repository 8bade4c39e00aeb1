# SPDX-License-Identifier: Apache-2.0
"""Work and queue of the hosts' processors, for plans that emulate processors."""

from __future__ import annotations

from collections.abc import Iterator

from collectors.batch import Batch
from collectors.polled import PolledCollector
from howdah.linux.netlink.message import NETLINK_ROUTE
from howdah.linux.netlink.qdisc import RTM_GETQDISC, header
from howdah.linux.output import KIND_PROCESSOR
from howdah.plan.plan import Plan


class ProcessorCollector(PolledCollector):
    """Requests the qdisc that is a host's processor from rtnetlink, and keeps the answers unparsed.

    Writes ``processor.bin`` (framed, kind 4): for each sample and host, an RTM_NEWQDISC answer whose TCA_STATS_APP is
    struct processor_stats of modules/processor/processor.h, all of one instant. Becomes the table ``processor``; its
    columns are in howdah/ingest/processor.py.
    """

    says = "work and queue of the hosts' processors, where the profile gives them one"
    default = "100 ms"
    file = "processor.bin"
    kind = KIND_PROCESSOR

    @classmethod
    def planned_for(cls, plan: Plan) -> bool:
        return bool(plan.processors)

    def questions(self) -> Iterator[tuple[str, Batch]]:
        places = {queue.at: queue.handle for queue in self.surroundings.planned.queues}
        for each in self.surroundings.planned.processors:
            namespace = self.surroundings.namespaces.get(each.host)
            if namespace is not None:  # it may be in another kernel
                handle = places[each.host, each.interface]
                request = (RTM_GETQDISC, header(namespace.index(each.interface), handle))
                yield each.host, Batch(namespace, NETLINK_ROUTE, [request])


COLLECTOR = ProcessorCollector
