# SPDX-License-Identifier: Apache-2.0
"""The kernel's log, read from /dev/kmsg."""

from __future__ import annotations

import os

from howdah.linux.kernelmessage import KernelMessage, parse

_DEVICE = "/dev/kmsg"
_RECORD_BYTES = 8192  # the longest record (PRINTK_MESSAGE_MAX and its prefix)


class KernelLog:
    """Reads messages logged after its creation, or with ``whole`` all that the kernel still has.

    If the log cannot be read, there are no messages and ``why`` says so. ``lost`` counts messages that were overwritten
    before they were read.
    """

    def __init__(self, *, whole: bool = False) -> None:
        self._descriptor: int | None = None
        self._next: int | None = None
        self.why: str | None = None
        self.lost = 0
        try:
            self._descriptor = os.open(_DEVICE, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
            if not whole:
                os.lseek(self._descriptor, 0, os.SEEK_END)
        except OSError as error:
            self.why = f"{_DEVICE}: {error.strerror}"
            self.close()

    def messages(self) -> list[KernelMessage]:
        """Return the messages since the last call, oldest first."""
        found: list[KernelMessage] = []
        while self._descriptor is not None:
            try:
                record = os.read(self._descriptor, _RECORD_BYTES)
            except BrokenPipeError:  # records were overwritten before they were read
                continue
            except OSError:
                break
            if not record:
                break
            message = parse(record.decode("utf-8", "replace"))
            if message is None:
                continue
            if self._next is not None:
                self.lost += message.number - self._next
            self._next = message.number + 1
            found.append(message)
        return found

    def texts(self) -> list[str]:
        """Return the texts of the messages since the last call, without time and level."""
        return [message.text for message in self.messages()]

    def close(self) -> None:
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None
