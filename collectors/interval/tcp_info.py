# SPDX-License-Identifier: Apache-2.0
"""struct tcp_info of every flow, at both ends."""

from __future__ import annotations

from collections.abc import Iterator

from collectors.batch import Batch
from collectors.collector import Surroundings
from collectors.polled import PolledCollector
from howdah.linux.netlink.diag import (
    INET_DIAG_INFO,
    INET_DIAG_VEGASINFO,
    SOCK_DIAG_BY_FAMILY,
    Endpoint,
    diag_request,
)
from howdah.linux.netlink.message import NETLINK_SOCK_DIAG
from howdah.linux.output import KIND_INET_DIAG

# The congestion control's own structure, if it has one, adds some 20 bytes to an answer.
_EXTENSIONS = 1 << (INET_DIAG_INFO - 1) | 1 << (INET_DIAG_VEGASINFO - 1)


class TcpInfoCollector(PolledCollector):
    """Requests each connection from inet_diag by its addresses and ports, and keeps the answers unparsed.

    Writes ``tcp_info.bin`` (framed, kind 1): for each sample and host, the SOCK_DIAG_BY_FAMILY answers for its ends of
    the flows. Each is a struct inet_diag_msg (ports, addresses, cookie, state) with the attribute INET_DIAG_INFO, the
    kernel's struct tcp_info, and the congestion control's own report (``get_info``): INET_DIAG_BBRINFO,
    INET_DIAG_VEGASINFO or another. Becomes the table ``tcp_info``; its columns are in howdah/record/schema.py.
    """

    says = "struct tcp_info of both ends"
    default = "100 ms"
    file = "tcp_info.bin"
    kind = KIND_INET_DIAG

    def __init__(self, surroundings: Surroundings, interval_us: int | None) -> None:
        super().__init__(surroundings, interval_us)
        self._hosts: dict[str, Batch] = {}
        self._asked: dict[str, list[Endpoint]] = {}
        connections = surroundings.connections
        # Groups' connections open in the order of their starts; few of thousands exist at one time.
        self._there = [each for each in connections if not each.generated]
        self._later = sorted(
            (each for each in connections if each.generated), key=lambda each: each.flow.start_us, reverse=True
        )

    @classmethod
    def works_in(cls, surroundings: Surroundings) -> bool:
        return bool(surroundings.connections)

    def questions(self) -> Iterator[tuple[str, Batch]]:
        hosts = dict.fromkeys(host for each in self.surroundings.connections for host, _ in each.ends)
        self._asked = {host: [] for host in hosts} | self._wanted()
        for host, endpoints in self._asked.items():
            self._hosts[host] = Batch(self.surroundings.namespaces[host], NETLINK_SOCK_DIAG, _requests(endpoints))
            yield host, self._hosts[host]

    def sample(self, now_ns: int) -> None:
        wanted = self._wanted()
        for host, asked in self._asked.items():
            endpoints = wanted.get(host, [])
            if endpoints != asked:
                self._hosts[host].change(_requests(endpoints))
                self._asked[host] = endpoints
        super().sample(now_ns)

    def _wanted(self) -> dict[str, list[Endpoint]]:
        """Return the ends of the connections that exist now, by host, in the order of the plan."""
        while self._later and (self._later[-1].is_active() or self._later[-1].is_over()):
            self._there.append(self._later.pop())
        self._there = sorted((each for each in self._there if not each.is_over()), key=lambda each: each.flow.id)
        ends: dict[str, list[Endpoint]] = {}
        for connection in self._there:
            for host, endpoint in connection.ends if connection.is_active() else ():
                ends.setdefault(host, []).append(endpoint)
        return ends


def _requests(endpoints: list[Endpoint]) -> list[tuple[int, bytes]]:
    return [(SOCK_DIAG_BY_FAMILY, diag_request(endpoint, _EXTENSIONS)) for endpoint in endpoints]


COLLECTOR = TcpInfoCollector
