# SPDX-License-Identifier: Apache-2.0
"""One question of many parts to the kernel: a datagram of netlink requests, prepared once and sent at every reading."""

from __future__ import annotations

from howdah.linux.namespace import Namespace
from howdah.linux.netlink.message import HEADER, NLM_F_ECHO, NLM_F_REQUEST, NLMSG_ERROR, NetlinkSocket, build

_ANSWER_BYTES = 1 << 16
_MOST_AT_ONCE = 32


class Batch:
    """Each request asks for one object, so each is answered by exactly one datagram: two system calls for one object,
    and half of what a dump costs, which ends with a message of its own."""

    def __init__(self, namespace: Namespace, protocol: int, requests: list[tuple[int, bytes]]) -> None:
        with namespace.entered():
            self._socket = NetlinkSocket(protocol).socket
        self.change(requests)

    def change(self, requests: list[tuple[int, bytes]]) -> None:
        """Ask this from now on, a part at a time: all answers wait in the socket's buffer together."""
        self._questions = []
        for begin in range(0, len(requests), _MOST_AT_ONCE):
            part = requests[begin : begin + _MOST_AT_ONCE]
            question = b"".join(
                build(kind, NLM_F_REQUEST | NLM_F_ECHO, number, body) for number, (kind, body) in enumerate(part)
            )
            self._questions.append((question, len(part)))

    def ask(self) -> list[bytes]:
        """The answers as received; an object that does not exist (a socket not yet or no longer there) has none."""
        answers = []
        for question, count in self._questions:
            self._socket.send(question)
            answers += [self._socket.recv(_ANSWER_BYTES) for _ in range(count)]
        return [answer for answer in answers if HEADER.unpack_from(answer)[1] != NLMSG_ERROR]

    def close(self) -> None:
        self._socket.close()
