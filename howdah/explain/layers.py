# SPDX-License-Identifier: Apache-2.0
"""Find the TCP header of packets: link layers, tags, labels and tunnels, for many packets in one step.

Link types are those of tcpdump.org/linktypes.html. A tunnel's inner packet counts, because it belongs to the flow.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from howdah.explain.records import PacketBatch
from howdah.frame import ETHERNET_BYTES
from howdah.ingest.source import Integers

Octets = npt.NDArray[np.uint8]
_MOST_STEPS = 24  # headers before a TCP segment
_IPV4, _IPV6, _MPLS, _MPLS_MANY, _PPPOE, _BRIDGED, _ERSPAN = 0x0800, 0x86DD, 0x8847, 0x8848, 0x8864, 0x6558, 0x88BE
_TAGS = (0x8100, 0x88A8, 0x9100)  # EtherTypes of VLAN tags
_TCP, _IPIP, _UDP, _6IN4, _GRE = 6, 4, 17, 41, 47
_HOP_BY_HOP, _ROUTING, _FRAGMENT, _AUTHENTICATION, _DESTINATION = 0, 43, 44, 51, 60
_MORE, _OFFSET = 0x2000, 0x1FFF  # more fragments, and the fragment offset, in IPv4's header
_VXLAN_PORTS, _GENEVE_PORT = (4789, 8472), 6081
# Where a packet of a link type begins: its state, and the bytes before that.
_NULL, _LINK_ETHERNET, _PPP, _RAW_OLD, _LOOP, _SLL, _RAW, _RAW4, _RAW6, _SLL2 = (
    0, 1, 9, 12, 108, 113, 101, 228, 229, 276)  # fmt: skip
_PPI, _PKTAP = 192, 258
_AT_TYPE, _AT_IP, _AT_LABEL, _AT_PROTOCOL, _AT_ETHERNET, _AT_PPP, _AT_PPI, _AT_PKTAP = range(8)
_BEGINS = {
    _NULL: (_AT_IP, 4),
    _LOOP: (_AT_IP, 4),
    _LINK_ETHERNET: (_AT_ETHERNET, 0),
    _PPP: (_AT_PPP, 2),
    _RAW_OLD: (_AT_IP, 0),
    14: (_AT_IP, 0),
    _RAW: (_AT_IP, 0),
    _RAW4: (_AT_IP, 0),
    _RAW6: (_AT_IP, 0),
    _SLL: (_AT_TYPE, 14),
    _SLL2: (_AT_TYPE, 0),
    _PPI: (_AT_PPI, 0),
    _PKTAP: (_AT_PKTAP, 0),
}
_LINK_BYTES = {_NULL: 4, _LOOP: 4, _LINK_ETHERNET: ETHERNET_BYTES, _PPP: 4, _SLL: 16, _SLL2: 20}


def is_known_link(link: int) -> bool:
    return link in _BEGINS


@dataclass(frozen=True)
class FoundTcp:
    """The TCP segments of a batch: their ``row`` in the batch, where the IP header and the TCP header begin, and where
    the captured data end.

    ``link_bytes`` is the size of the outermost link layer, ``more_bytes`` what further IPv4 fragments carry of the
    packet.
    """

    row: Integers
    ip: Integers
    tcp: Integers
    end: Integers
    link_bytes: Integers
    more_bytes: Integers


@dataclass
class _Walk:
    octets: Octets
    cursor: Integers
    end: Integers
    state: npt.NDArray[np.int8]
    protocol: Integers
    ip: Integers
    link_bytes: Integers
    fragments: list[tuple[Integers, Integers]] = field(default_factory=list)  # rows, and where IP begins in each

    def with_bytes(self, rows: Integers, count: int) -> Integers:
        """Return the rows with this many bytes left; the walk ends for the others."""
        short = self.cursor[rows] + count > self.end[rows]
        self.state[rows[short]] = -1
        return rows[~short]

    def octet(self, rows: Integers, at: int) -> Integers:
        return self.octets[self.cursor[rows] + at].astype(np.int64)

    def pair(self, rows: Integers, at: int) -> Integers:
        return self.octet(rows, at) << 8 | self.octet(rows, at + 1)

    def little(self, rows: Integers, at: int, size: int) -> Integers:
        found = np.zeros(rows.size, np.int64)
        for number in range(size):
            found |= self.octet(rows, at + number) << 8 * number
        return found

    def advance(self, rows: Integers, state: int, count: Integers | int) -> None:
        self.state[rows] = state
        self.cursor[rows] += count


def find_tcp(batch: PacketBatch) -> FoundTcp:
    """Find the TCP segments of a batch. The first fragment of a datagram has the header; the others add to its
    bytes."""
    count = batch.places.size
    walk = _Walk(
        batch.data,
        batch.places.copy(),
        batch.places + batch.lengths,
        np.full(count, -1, np.int8),
        np.zeros(count, np.int64),
        np.zeros(count, np.int64),
        np.zeros(count, np.int64),
    )
    for tap, link in enumerate(batch.links):
        rows = np.flatnonzero(batch.tap == tap)
        walk.link_bytes[rows] = _LINK_BYTES.get(link, 0)
        if link in _BEGINS:
            state, before = _BEGINS[link]
            walk.advance(rows, state, before)
            if link == _SLL2:
                walk.protocol[rows] = 1
    done: list[Integers] = []
    steps: dict[int, Callable[[_Walk, Integers], None]] = {
        _AT_ETHERNET: lambda walk, rows: walk.advance(walk.with_bytes(rows, ETHERNET_BYTES), _AT_TYPE, 12),
        _AT_TYPE: _type,
        _AT_LABEL: _label,
        _AT_IP: _ip,
        _AT_PPP: _ppp,
        _AT_PPI: _ppi,
        _AT_PKTAP: _pktap,
    }
    for _ in range(_MOST_STEPS):
        going = np.flatnonzero(walk.state >= 0)
        if not going.size:
            break
        states = walk.state[going]
        for state in np.unique(states).tolist():
            rows = going[states == state]
            if state == _AT_PROTOCOL:
                done.append(_protocol(walk, rows))
            else:
                steps[state](walk, rows)
    row = np.sort(np.concatenate([np.zeros(0, np.int64), *done]))
    return FoundTcp(row, walk.ip[row], walk.cursor[row], walk.end[row], walk.link_bytes[row], _more(walk)[row])


def _more(walk: _Walk) -> Integers:
    """For each packet, the bytes that other fragments of its datagram carry, as far as they are in the batch."""
    firsts: dict[bytes, tuple[int, int]] = {}
    ends: dict[bytes, int] = {}
    for rows, begins in walk.fragments:
        for row, ip in zip(rows.tolist(), begins.tolist(), strict=True):
            head = walk.octets[ip : ip + 20].tobytes()
            size = int.from_bytes(head[2:4]) - (head[0] & 15) * 4
            offset = (int.from_bytes(head[6:8]) & _OFFSET) * 8
            datagram = head[4:6] + head[9:10] + head[12:20]
            if not offset:
                firsts[datagram] = row, size
            ends[datagram] = max(ends.get(datagram, 0), offset + size)
    more = np.zeros(walk.cursor.size, np.int64)
    for datagram, (row, size) in firsts.items():
        more[row] = ends[datagram] - size
    return more


def _type(walk: _Walk, rows: Integers) -> None:
    """Read an EtherType. In SLL2 it is followed by 18 bytes of that header."""
    rows = walk.with_bytes(rows, 2)
    kind = walk.pair(rows, 0)
    after = np.where(walk.protocol[rows] == 1, 20, 2)
    walk.protocol[rows] = 0
    walk.state[rows] = -1
    ip = (kind == _IPV4) | (kind == _IPV6)
    walk.advance(rows[ip], _AT_IP, after[ip])
    tagged = np.isin(kind, _TAGS)
    walk.advance(rows[tagged], _AT_TYPE, after[tagged] + 2)
    labelled = (kind == _MPLS) | (kind == _MPLS_MANY)
    walk.advance(rows[labelled], _AT_LABEL, after[labelled])
    over_ppp = kind == _PPPOE
    walk.advance(rows[over_ppp], _AT_PPP, after[over_ppp] + 6)


def _ppp(walk: _Walk, rows: Integers) -> None:
    rows = walk.with_bytes(rows, 2)
    ip = np.isin(walk.pair(rows, 0), (0x0021, 0x0057))
    walk.state[rows] = -1
    walk.advance(rows[ip], _AT_IP, 2)


def _ppi(walk: _Walk, rows: Integers) -> None:
    """Skip the per-packet information of Wi-Fi captures: it has its length and the following link type."""
    rows = walk.with_bytes(rows, 8)
    _continue_at_link(walk, rows, walk.little(rows, 2, 2), walk.little(rows, 4, 4))


def _pktap(walk: _Walk, rows: Integers) -> None:
    """Skip the header of macOS' pktap interface: it has its length and the following link type."""
    rows = walk.with_bytes(rows, 12)
    _continue_at_link(walk, rows, walk.little(rows, 0, 4), walk.little(rows, 8, 4))


def _continue_at_link(walk: _Walk, rows: Integers, length: Integers, link: Integers) -> None:
    walk.state[rows] = -1
    sound = (length >= 8) & (length <= walk.end[rows] - walk.cursor[rows])
    for each in (_NULL, _LINK_ETHERNET, _RAW_OLD, _LOOP, _RAW):
        state, before = _BEGINS[each]
        here = sound & (link == each)
        walk.link_bytes[rows[here]] = length[here] + _LINK_BYTES.get(each, 0)
        walk.advance(rows[here], state, length[here] + before)


def _label(walk: _Walk, rows: Integers) -> None:
    rows = walk.with_bytes(rows, 5)
    last = (walk.octet(rows, 2) & 1) == 1
    nibble = walk.octet(rows, 4) >> 4
    walk.advance(rows, _AT_LABEL, 4)
    walk.state[rows[last]] = -1
    walk.state[rows[last & ((nibble == 4) | (nibble == 6))]] = _AT_IP
    walk.advance(rows[last & (nibble == 0)], _AT_ETHERNET, 4)  # a pseudowire's control word


def _ip(walk: _Walk, rows: Integers) -> None:
    rows = walk.with_bytes(rows, 20)
    version = walk.octet(rows, 0) >> 4
    walk.state[rows] = -1
    four = rows[version == 4]
    header = (walk.octet(four, 0) & 15) * 4
    part = walk.pair(four, 6) & (_MORE | _OFFSET)
    if part.any():
        walk.fragments.append((four[part > 0], walk.cursor[four[part > 0]]))
    good = (header >= 20) & ((part & _OFFSET) == 0)
    four, header = four[good], header[good]
    walk.ip[four] = walk.cursor[four]
    walk.protocol[four] = walk.octet(four, 9)
    walk.advance(four, _AT_PROTOCOL, header)
    six = walk.with_bytes(rows[version == 6], 40)
    walk.ip[six] = walk.cursor[six]
    walk.protocol[six] = walk.octet(six, 6)
    walk.advance(six, _AT_PROTOCOL, 40)


def _protocol(walk: _Walk, rows: Integers) -> Integers:
    """Step over headers other than TCP; return the rows that have reached a TCP header."""
    kind = walk.protocol[rows]
    walk.state[rows] = -1
    tcp = rows[kind == _TCP]
    inner = rows[(kind == _IPIP) | (kind == _6IN4)]
    walk.state[inner] = _AT_IP
    for number, step in ((_GRE, _gre), (_UDP, _udp)):
        step(walk, walk.with_bytes(rows[kind == number], 8))
    options = walk.with_bytes(rows[np.isin(kind, (_HOP_BY_HOP, _ROUTING, _DESTINATION))], 8)
    _extension(walk, options, (walk.octet(options, 1) + 1) * 8)
    guarded = walk.with_bytes(rows[kind == _AUTHENTICATION], 8)
    _extension(walk, guarded, (walk.octet(guarded, 1) + 2) * 4)
    part = walk.with_bytes(rows[kind == _FRAGMENT], 8)
    first = part[(walk.pair(part, 2) & 0xFFF8) == 0]
    _extension(walk, first, np.full(first.size, 8))
    return np.asarray(tcp[walk.cursor[tcp] + 20 <= walk.end[tcp]])


def _extension(walk: _Walk, rows: Integers, count: Integers) -> None:
    walk.protocol[rows] = walk.octet(rows, 0)
    walk.advance(rows, _AT_PROTOCOL, count)


def _gre(walk: _Walk, rows: Integers) -> None:
    flags, kind = walk.pair(rows, 0), walk.pair(rows, 2)
    header = 4 + 4 * (flags >> 15 & 1) + 4 * (flags >> 13 & 1) + 4 * (flags >> 12 & 1)
    ip = (kind == _IPV4) | (kind == _IPV6)
    walk.advance(rows[ip], _AT_IP, header[ip])
    bridged = kind == _BRIDGED
    walk.advance(rows[bridged], _AT_ETHERNET, header[bridged])
    mirrored = kind == _ERSPAN
    walk.advance(rows[mirrored], _AT_ETHERNET, header[mirrored] + 8)
    labelled = (kind == _MPLS) | (kind == _MPLS_MANY)
    walk.advance(rows[labelled], _AT_LABEL, header[labelled])


def _udp(walk: _Walk, rows: Integers) -> None:
    port = walk.pair(rows, 2)
    walk.advance(rows[np.isin(port, _VXLAN_PORTS)], _AT_ETHERNET, 16)
    geneve = walk.with_bytes(rows[port == _GENEVE_PORT], 16)
    bridged = geneve[walk.pair(geneve, 10) == _BRIDGED]
    walk.advance(bridged, _AT_ETHERNET, 16 + 4 * (walk.octet(bridged, 8) & 63))
