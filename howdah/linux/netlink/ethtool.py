# SPDX-License-Identifier: Apache-2.0
"""Interface offloads through the SIOCETHTOOL ioctl (include/uapi/linux/ethtool.h)."""

from __future__ import annotations

import array
import errno
import fcntl
import socket
import struct

_SIOCETHTOOL = 0x8946
_IFREQ = struct.Struct("=16sQ16x")

# By feature name of ``ethtool -K``: the commands to read and to write it.
FEATURES: dict[str, tuple[int, int]] = {
    "rx-checksumming": (0x14, 0x15),
    "tx-checksumming": (0x16, 0x17),
    "scatter-gather": (0x18, 0x19),
    "tso": (0x1E, 0x1F),
    "gso": (0x23, 0x24),
    "gro": (0x2B, 0x2C),
    "lro": (0x25, 0x26),  # unlike the others, one bit of a flags word
}
_FLAG_LRO = 1 << 15
_ALIASES = {
    "rx": "rx-checksumming",
    "tx": "tx-checksumming",
    "sg": "scatter-gather",
    "tcp-segmentation-offload": "tso",
    "generic-segmentation-offload": "gso",
    "generic-receive-offload": "gro",
    "large-receive-offload": "lro",
}


def _name(feature: str) -> str:
    name = _ALIASES.get(feature, feature)
    if name not in FEATURES:
        raise ValueError(f"offload {feature!r} is not one of {', '.join(sorted(FEATURES))}")
    return name


def _value(inside: socket.socket, interface: str, command: int, value: int) -> int:
    request = array.array("I", [command, value])
    address, _length = request.buffer_info()
    fcntl.ioctl(inside, _SIOCETHTOOL, _IFREQ.pack(interface.encode(), address))
    return request[1]


def _get(inside: socket.socket, interface: str, name: str) -> bool:
    value = _value(inside, interface, FEATURES[name][0], 0)
    return bool(value & _FLAG_LRO) if name == "lro" else bool(value)


def set_offload(inside: socket.socket, interface: str, feature: str, enabled: bool) -> None:
    """Switch an offload; ``inside`` is any socket of the namespace. Raises OSError if the driver refuses."""
    name = _name(feature)
    if _get(inside, interface, name) == enabled:
        return
    value = int(enabled)
    if name == "lro":
        flags = _value(inside, interface, FEATURES[name][0], 0)
        value = flags | _FLAG_LRO if enabled else flags & ~_FLAG_LRO
    _value(inside, interface, FEATURES[name][1], value)
    if _get(inside, interface, name) != enabled:
        raise OSError(errno.EOPNOTSUPP, f"{interface} keeps {name} {'off' if enabled else 'on'}")


def offloads(inside: socket.socket, interface: str) -> dict[str, bool]:
    return {name: _get(inside, interface, name) for name in FEATURES}
