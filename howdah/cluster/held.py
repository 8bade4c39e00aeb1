# SPDX-License-Identifier: Apache-2.0
"""A preload of Dask's processes that were started over SSH: they end with the connection that started them.

Without it a command that is killed leaves scheduler and workers on every host: a process without a terminal hears
nothing of the end of its connection.
"""

from __future__ import annotations

import os
import sys
import threading
from typing import Any

NAME = "howdah.cluster.held"


def dask_setup(_service: Any) -> None:
    """Called by Dask in a scheduler, a nanny or a worker."""
    threading.Thread(target=_until_let_go, name="howdah held", daemon=True).start()


def _until_let_go() -> None:
    while sys.stdin.buffer.read(4096):
        pass
    os._exit(1)  # workers end with their nanny, and guests with their worker
