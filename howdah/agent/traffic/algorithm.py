# SPDX-License-Identifier: Apache-2.0
"""The congestion control of sockets that programs open: the default of a host's namespace."""

from __future__ import annotations

from pathlib import Path

from howdah.agent.error import AgentError
from howdah.linux.namespace import Namespace

_ALLOWED = Path("/proc/sys/net/ipv4/tcp_allowed_congestion_control")
_AVAILABLE = Path("/proc/sys/net/ipv4/tcp_available_congestion_control")
_DEFAULT = "/proc/sys/net/ipv4/tcp_congestion_control"


def choose_algorithm(label: str, namespace: Namespace, name: str) -> None:
    """Make ``name`` the namespace's default, which new sockets take. Raises AgentError if the kernel refuses it.

    Only the first namespace may have any default; in others the name must be in tcp_allowed_congestion_control.
    """
    try:
        allowed = _ALLOWED.read_text().split()
        if name not in allowed:
            _ALLOWED.write_text(" ".join([*allowed, name]))
        namespace.write_file(_DEFAULT, name)
    except OSError as error:
        available = _AVAILABLE.read_text().strip()
        what = f"congestion control {name}: {error.strerror}; the kernel offers {available}"
        raise AgentError(label, what) from error
