# SPDX-License-Identifier: Apache-2.0
"""Hosts' processors, emulated by queueing disciplines for arriving packets."""

from __future__ import annotations

from howdah.errors import ProfileError
from howdah.linux.netlink.discipline.howdah_cpu import HostProcessor
from howdah.plan.network import Network
from howdah.plan.placed import Qdisc
from howdah.plan.plan import Processor
from howdah.plan.receiver import Receivers
from howdah.profile import Cell
from howdah.search import SEARCHES
from howdah.trait import Traits

PROCESSOR_MODULE = "howdah_processor"
PROCESSOR_HANDLE = "ffff:"


def find_processors(cell: Cell, network: Network, receivers: Receivers, kind: Traits) -> list[Processor]:
    """Return the processor of each host that the profile gives one. Raise ProfileError where there can be none."""
    found = []
    for role in ("sender", "receiver"):
        section = getattr(cell.scenario, role).processor
        if not section.is_there:
            continue
        where = cell.place(role, "processor")
        if not kind.own_kernel:
            raise ProfileError(
                "a host's processor is emulated by a kernel module",
                where=where,
                hint="run it with the uml engine, or leave it out",
            )
        constants = section.constants()
        for host in (name for name, its_role in network.roles.items() if its_role == role):
            behaviour = receivers.of_host.get(host)
            if behaviour and behaviour.stops_reporting:
                what = f"{host} cannot have a processor and be {behaviour.name}: both take what arrives"
                raise ProfileError(what, where=where, hint="leave one of them out")
            found.append(
                Processor(
                    host=host,
                    interface=network.access_link(host).at(host).name,
                    model=section.model,
                    packet_ns=constants["packet"].value,
                    ack_ns=constants["ack"].value,
                    searched_ns=constants["searched"].value,
                    search=constants["search"].value,
                    queue_packets=constants["queue"].value,
                    sources={name: constant.source for name, constant in constants.items()},
                )
            )
    return found


def install(processors: list[Processor]) -> list[Qdisc]:
    """Return the operations that give the hosts their processors."""
    return [Qdisc(each.host, each.interface, "ingress", PROCESSOR_HANDLE, _discipline(each)) for each in processors]


def _discipline(each: Processor) -> HostProcessor:
    search = SEARCHES.index(each.search)
    return HostProcessor(each.packet_ns, each.ack_ns, each.searched_ns, search, each.queue_packets)
