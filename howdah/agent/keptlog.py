# SPDX-License-Identifier: Apache-2.0
"""raw/kernel.log: the kernel's messages since boot, or since the run's beginning if the kernel ran before."""

from __future__ import annotations

from howdah.agent.kernellog import KernelLog
from howdah.linux.kernelmessage import KernelMessage, is_alarm
from howdah.linux.output import Output
from howdah.record.agent import KernelLogRecord

KERNEL_LOG = "kernel.log"
_MOST_BYTES = 1 << 20
_MOST_ALARM_BYTES = 1 << 20  # for alarms beyond _MOST_BYTES
_ALARM_LINES = 60  # an alarm with the lines below it: registers and call trace


class KeptLog:
    """Writes kernel messages to the file. Beyond 1 MiB it keeps only alarms and counts the rest, because a module may
    log each packet.

    The file grows during the run, so that it survives a kernel that dies.
    """

    def __init__(self, output: Output, *, whole: bool) -> None:
        self._log = KernelLog(whole=whole)
        self._file = output.binary(KERNEL_LOG)
        self._records = self._left_out = self._bytes = self._alarm_bytes = 0
        self._alarm_lines_left = 0  # lines that still belong to the last alarm
        before = self._log.messages()
        self._write(before)
        self._first = before[-1].number + 1 if before else 0

    def keep(self) -> None:
        """Write the messages since the last call. Takes no virtual time: it waits for nothing and reads no clock."""
        self._write(self._log.messages())

    def end(self) -> KernelLogRecord:
        """Write the last messages, close the log, and return its record for agent.json."""
        self.keep()
        self._log.close()
        self._file.close()
        return KernelLogRecord(self._records, self._first, self._log.lost, self._left_out, self._log.why)

    def _write(self, messages: list[KernelMessage]) -> None:
        lines = bytearray()
        for message in messages:
            line = message.line().encode()
            if not self._fits(message, len(line)):
                self._left_out += 1
                continue
            lines += line
            self._records += 1
        if lines:
            self._file.write(lines)

    def _fits(self, message: KernelMessage, size: int) -> bool:
        self._alarm_lines_left = _ALARM_LINES if is_alarm(message.text) else max(self._alarm_lines_left - 1, 0)
        if self._bytes + size <= _MOST_BYTES:
            self._bytes += size
            return True
        if self._alarm_lines_left and self._alarm_bytes + size <= _MOST_ALARM_BYTES:
            self._alarm_bytes += size
            return True
        return False
