# SPDX-License-Identifier: Apache-2.0
"""Binds a process's life to its parent's, and names it."""

from __future__ import annotations

import ctypes
import os
import signal

_PR_SET_PDEATHSIG = 1
_PR_SET_NAME = 15


def die_with_parent(parent: int) -> None:
    """Ask the kernel to kill this process when its parent dies, and leave if that happened already (prctl(2))."""
    ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(1)


def be_called(name: str) -> None:
    """Set the name that ``top`` shows, because a forked process keeps its parent's command line (prctl(2))."""
    ctypes.CDLL(None).prctl(_PR_SET_NAME, name.encode())
