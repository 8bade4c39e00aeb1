# SPDX-License-Identifier: Apache-2.0
"""A Dask preload that ends processes started over SSH when their connection ends.

Without it, killing a command would leave scheduler and workers on every host: a process without a terminal gets no
SIGHUP when its connection ends.
"""

from __future__ import annotations

import os
import sys
import threading
from typing import Any

NAME = "howdah.cluster.held"


def dask_setup(_service: Any) -> None:
    """Start the watch. Dask calls this in a scheduler, nanny or worker."""
    threading.Thread(target=_exit_with_connection, name="howdah held", daemon=True).start()


def _exit_with_connection() -> None:
    while sys.stdin.buffer.read(4096):
        pass
    os._exit(1)  # workers end with their nanny, and guests with their worker
