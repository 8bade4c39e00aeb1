# SPDX-License-Identifier: Apache-2.0
"""What the kernel logs from a moment on, by /dev/kmsg."""

from __future__ import annotations

import os

_DEVICE = "/dev/kmsg"
_RECORD_BYTES = 8192  # the longest the kernel hands over (PRINTK_MESSAGE_MAX and its prefix)


class KernelLog:
    """Messages logged since it was made; none where the log cannot be read."""

    def __init__(self) -> None:
        self._descriptor: int | None = None
        try:
            self._descriptor = os.open(_DEVICE, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
            os.lseek(self._descriptor, 0, os.SEEK_END)
        except OSError:
            self.close()

    def since(self) -> list[str]:
        """The messages that came since the last call, oldest first, without time and level."""
        found: list[str] = []
        while self._descriptor is not None:
            try:
                record = os.read(self._descriptor, _RECORD_BYTES)
            except BrokenPipeError:  # records were overwritten before they were read
                continue
            except OSError:
                break
            if not record:
                break
            # "level,number,time,flags;message", then lines of a dictionary
            message = record.decode("utf-8", "replace").partition(";")[2].partition("\n")[0]
            found.append(message)
        return found

    def close(self) -> None:
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None
