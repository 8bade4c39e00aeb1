# SPDX-License-Identifier: Apache-2.0
"""struct tcp_info of every flow, at both ends."""

from __future__ import annotations

from collections.abc import Iterator

from collectors.batch import Batch
from collectors.polled import PolledCollector
from howdah.agent.netlink.diag import SOCK_DIAG_BY_FAMILY, Endpoint, diag_request
from howdah.agent.netlink.message import NETLINK_SOCK_DIAG
from howdah.agent.output import KIND_INET_DIAG


class TcpInfoCollector(PolledCollector):
    """Asks inet_diag for each connection by its addresses and ports, and keeps the answers unparsed.

    Writes ``tcp_info.bin`` (framed, kind 1): per reading and host, the SOCK_DIAG_BY_FAMILY answers of its ends of
    the flows. Each is a struct inet_diag_msg (ports, addresses, cookie, state) with the attribute INET_DIAG_INFO,
    the kernel's struct tcp_info. Becomes the table ``tcp_info``; its columns are in howdah/tables/schema.py.
    """

    file = "tcp_info.bin"
    kind = KIND_INET_DIAG

    def questions(self) -> Iterator[tuple[str, Batch]]:
        ends: dict[str, list[Endpoint]] = {}
        for connection in self.surroundings.connections:
            for host, endpoint in connection.ends:
                ends.setdefault(host, []).append(endpoint)
        for host, endpoints in ends.items():
            requests = [(SOCK_DIAG_BY_FAMILY, diag_request(endpoint)) for endpoint in endpoints]
            yield host, Batch(self.surroundings.namespaces[host], NETLINK_SOCK_DIAG, requests)
