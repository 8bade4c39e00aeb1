# SPDX-License-Identifier: Apache-2.0
"""Bytes, packets and drops of every interface of the emulated network."""

from __future__ import annotations

from collections.abc import Iterator

from collectors.batch import Batch
from collectors.polled import PolledCollector
from howdah.linux.netlink.link import RTM_GETLINK, interface_header, links
from howdah.linux.netlink.message import NETLINK_ROUTE
from howdah.linux.output import KIND_LINK


class InterfaceCollector(PolledCollector):
    """Requests each interface but ``lo`` from rtnetlink, and keeps the answers unparsed.

    Writes ``interface.bin`` (framed, kind 3): for each sample and node, RTM_NEWLINK answers: struct ifinfomsg (index)
    with IFLA_IFNAME and IFLA_STATS64 (struct rtnl_link_stats64). Becomes the table ``interface``; its columns are in
    howdah/ingest/interface.py.
    """

    says = "bytes of every interface"
    default = "100 ms"
    file = "interface.bin"
    kind = KIND_LINK

    def questions(self) -> Iterator[tuple[str, Batch]]:
        for node, namespace in self.surroundings.namespaces.items():
            indices = [link.index for link in links(namespace.netlink) if link.name != "lo"]
            requests = [(RTM_GETLINK, interface_header(index)) for index in indices]
            yield node, Batch(namespace, NETLINK_ROUTE, requests)


COLLECTOR = InterfaceCollector
