# SPDX-License-Identifier: Apache-2.0
"""A batch of netlink requests, prepared once and sent in one datagram at every sample."""

from __future__ import annotations

from howdah.linux.namespace import Namespace
from howdah.linux.netlink.message import HEADER, NLM_F_ECHO, NLM_F_REQUEST, NLMSG_ERROR, NetlinkSocket, build

_ANSWER_BYTES = 1 << 16
_MOST_AT_ONCE = 32


class Batch:
    """Netlink requests for one object each. The kernel answers each with exactly one datagram: two system calls for one
    object, half the cost of a dump, which ends with a message of its own."""

    def __init__(self, namespace: Namespace, protocol: int, requests: list[tuple[int, bytes]]) -> None:
        with namespace.entered():
            self._socket = NetlinkSocket(protocol).socket
        self.change(requests)

    def change(self, requests: list[tuple[int, bytes]]) -> None:
        """Replace the requests. They are sent in parts, because all answers to a part wait in the socket's buffer
        together."""
        self._questions = []
        for begin in range(0, len(requests), _MOST_AT_ONCE):
            part = requests[begin : begin + _MOST_AT_ONCE]
            question = b"".join(
                build(kind, NLM_F_REQUEST | NLM_F_ECHO, number, body) for number, (kind, body) in enumerate(part)
            )
            self._questions.append((question, len(part)))

    def ask(self) -> list[bytes]:
        """Return the answers as received, without those for objects that do not exist (a socket not yet open or
        closed)."""
        answers = []
        for question, count in self._questions:
            self._socket.send(question)
            answers += [self._socket.recv(_ANSWER_BYTES) for _ in range(count)]
        return [answer for answer in answers if HEADER.unpack_from(answer)[1] != NLMSG_ERROR]

    def close(self) -> None:
        self._socket.close()
