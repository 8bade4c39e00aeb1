# SPDX-License-Identifier: Apache-2.0
"""Netlink messages and attributes (RFC 3549, include/uapi/linux/netlink.h): building, parsing, and requests."""

from __future__ import annotations

import os
import socket
import struct
from collections.abc import Iterator
from dataclasses import dataclass

NLM_F_REQUEST = 0x1
NLM_F_ACK = 0x4
NLM_F_ECHO = 0x8
NLM_F_DUMP = 0x300
NLM_F_REPLACE = 0x100
NLM_F_EXCL = 0x200
NLM_F_CREATE = 0x400

NLMSG_ERROR = 2
NLMSG_DONE = 3

_NLM_F_CAPPED = 0x100
_NLM_F_ACK_TLVS = 0x200
_NLMSGERR_ATTR_MSG = 1

SOL_NETLINK = 270
NETLINK_CAP_ACK = 10
NETLINK_EXT_ACK = 11
NETLINK_ROUTE = 0
NETLINK_SOCK_DIAG = 4

HEADER = struct.Struct("=IHHII")
_ATTRIBUTE = struct.Struct("=HH")
TYPE_MASK = 0x3FFF  # without NLA_F_NESTED and NLA_F_NET_BYTEORDER
_RECEIVE_BYTES = 1 << 18


class NetlinkError(OSError):
    """The kernel refused a request; ``detail`` is its extended acknowledgement, often the only helpful part."""

    def __init__(self, number: int, detail: str | None = None) -> None:
        text = os.strerror(number)
        super().__init__(number, f"{text} ({detail})" if detail else text)
        self.detail = detail


@dataclass(frozen=True)
class Message:
    """A received message. ``raw`` is the whole message with its header and without padding."""

    kind: int
    flags: int
    sequence: int
    payload: bytes
    raw: bytes


def align(length: int) -> int:
    return (length + 3) & ~3


def attribute(kind: int, payload: bytes) -> bytes:
    length = _ATTRIBUTE.size + len(payload)
    return _ATTRIBUTE.pack(length, kind) + payload + bytes(align(length) - length)


def nested(kind: int, *attributes: bytes) -> bytes:
    return attribute(kind, b"".join(attributes))


def text(kind: int, value: str) -> bytes:
    return attribute(kind, value.encode() + b"\0")


def u32(kind: int, value: int) -> bytes:
    return attribute(kind, struct.pack("=I", value))


def u64(kind: int, value: int) -> bytes:
    return attribute(kind, struct.pack("=Q", value))


def s64(kind: int, value: int) -> bytes:
    return attribute(kind, struct.pack("=q", value))


def parse_attributes(data: bytes | memoryview) -> dict[int, bytes]:
    """Return each attribute's payload by its type, without flag bits; of a repeated type the last one counts."""
    found: dict[int, bytes] = {}
    offset = 0
    while offset + _ATTRIBUTE.size <= len(data):
        length, kind = _ATTRIBUTE.unpack_from(data, offset)
        if length < _ATTRIBUTE.size or offset + length > len(data):
            raise ValueError(f"netlink attribute of {length} bytes at offset {offset} of {len(data)}")
        found[kind & TYPE_MASK] = bytes(data[offset + _ATTRIBUTE.size : offset + length])
        offset += align(length)
    return found


def build(kind: int, flags: int, sequence: int, payload: bytes) -> bytes:
    length = HEADER.size + len(payload)
    return HEADER.pack(length, kind, flags, sequence, 0) + payload + bytes(align(length) - length)


def split(data: bytes) -> Iterator[Message]:
    """Yield the messages of one datagram, in order."""
    offset = 0
    while offset + HEADER.size <= len(data):
        length, kind, flags, sequence, _port = HEADER.unpack_from(data, offset)
        if length < HEADER.size or offset + length > len(data):
            raise ValueError(f"netlink message of {length} bytes at offset {offset} of {len(data)}")
        raw = data[offset : offset + length]
        yield Message(kind, flags, sequence, raw[HEADER.size :], raw)
        offset += align(length)


def parse_error(message: Message) -> NetlinkError | None:
    """Return the error in an NLMSG_ERROR (or a failed NLMSG_DONE), or None for a plain acknowledgement."""
    (code,) = struct.unpack_from("=i", message.payload)
    if code == 0:
        return None
    detail = None
    if message.flags & _NLM_F_ACK_TLVS:
        start = 4
        if message.kind == NLMSG_ERROR:
            (request_length,) = struct.unpack_from("=I", message.payload, 4)
            start = 4 + (HEADER.size if message.flags & _NLM_F_CAPPED else align(request_length))
        found = parse_attributes(message.payload[start:]).get(_NLMSGERR_ATTR_MSG)
        detail = found.rstrip(b"\0").decode(errors="replace") if found else None
    return NetlinkError(-code, detail)


class NetlinkSocket:
    """Requests and answers over one netlink socket, which stays in the namespace where it was opened."""

    def __init__(self, protocol: int = NETLINK_ROUTE) -> None:
        self.socket = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW | socket.SOCK_CLOEXEC, protocol)
        self.socket.bind((0, 0))
        self._sequence = 0
        for option in (NETLINK_EXT_ACK, NETLINK_CAP_ACK):
            self.socket.setsockopt(SOL_NETLINK, option, 1)

    def close(self) -> None:
        self.socket.close()

    def request(self, kind: int, payload: bytes, flags: int = 0) -> list[Message]:
        """Send one request and return the kernel's answers before its acknowledgement.

        Raises NetlinkError if the kernel refuses.
        """
        self._sequence += 1
        wanted = self._sequence
        self.socket.send(build(kind, flags | NLM_F_REQUEST | NLM_F_ACK, wanted, payload))
        return self._answers(wanted, done=NLMSG_ERROR)

    def dump(self, kind: int, payload: bytes) -> list[Message]:
        """Return all objects of a kind."""
        self._sequence += 1
        wanted = self._sequence
        self.socket.send(build(kind, NLM_F_REQUEST | NLM_F_DUMP, wanted, payload))
        return self._answers(wanted, done=NLMSG_DONE)

    def _answers(self, wanted: int, done: int) -> list[Message]:
        answers: list[Message] = []
        while True:
            for message in split(self.socket.recv(_RECEIVE_BYTES)):
                if message.sequence != wanted:
                    continue
                if message.kind in (NLMSG_ERROR, NLMSG_DONE):
                    error = parse_error(message)
                    if error is not None:
                        raise error
                    if message.kind == done:
                        return answers
                else:
                    answers.append(message)
