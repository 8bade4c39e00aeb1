# SPDX-License-Identifier: Apache-2.0
"""Lists the runs of a long sweep that ended, one a line, so that resuming does not open finished runs.

A line counts while the inodes, sizes and times of its run's four files are unchanged and the sweep has the same plans.
Each line carries an HMAC with a key in the user's cache, because a directory of runs may come from elsewhere. A run
whose line does not count is read from its own files, so a lost ledger loses nothing.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import os
import time
from array import array
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import IO, Any

from howdah.build.secret import secret
from howdah.record.directory import RunDirectory, write_whole

NAME = ".ledger"
_FILES = ("run.json", "plan.json", "metrics.json", "verdict.json")
_NONE = -1
_TICK_S = 0.05  # a file may change without its time changing for as long, on any file system of Linux


def stamp(directory: str) -> list[int] | None:
    """A value that changes with any of a run's files. Zeros stand for a missing file; None if run.json is missing."""
    found: list[int] = []
    for name in _FILES:
        try:
            status = os.stat(f"{directory}/{name}")  # noqa: PTH116 - of 400 000 files
        except OSError:
            if not found:
                return None
            found += (0, 0, 0, 0)
        else:
            found += (status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns)
    return found


def is_settled(found: list[int]) -> bool:
    """Whether a file written from now on gets a later time, so that equal times mean an equal file."""
    return time.time_ns() - max(found[3::4]) > _TICK_S * 1e9


Read = Callable[[], dict[str, Any] | None]  # the row of a run, from its files; None where they are no whole run's


class Ledger:
    """Of one experiment, which the caller holds. ``recipe`` stands for all that the keys of its runs depend on."""

    def __init__(self, experiment: Path, recipe: str, runs: int) -> None:
        self.experiment, self.recipe, self.runs = experiment, recipe, runs
        self.file = experiment / NAME
        self._secret = secret()
        self._offsets = array("q", [_NONE]) * runs
        self._opened: IO[bytes] | None = None
        self._unsettled: deque[tuple[int, RunDirectory, Read]] = deque()

    def read(self) -> None:
        """Read the lines that still hold, and open the file to append."""
        base, header, last = str(self.experiment), self._header(), b""
        with suppress(FileNotFoundError), self.file.open("rb") as opened:
            if opened.readline() == header:
                offset, last = len(header), header
                for last in opened:
                    number, row = self._row(last)
                    if row is not None and row["stamp"] == stamp(f"{base}/{row['run']}"):
                        self._offsets[number] = offset
                    offset += len(last)
        if last.endswith(b"\n"):  # not one that a command was killed at
            self._opened = self.file.open("ab")
        else:
            self._begin()

    def _begin(self) -> None:
        """Replace the file by one with only the lines that hold."""
        kept = [line for _, line in self._lines()]
        write_whole(self.file, self._header() + b"".join(kept))
        offset = len(self._header())
        for line in kept:
            self._offsets[int(line.split(b" ", 1)[0])] = offset
            offset += len(line)
        self._opened = self.file.open("ab")

    def _header(self) -> bytes:
        return json.dumps({"format": 1, "recipe": self.recipe, "runs": self.runs}).encode() + b"\n"

    def _row(self, line: bytes) -> tuple[int, dict[str, Any] | None]:
        number, _, rest = line.partition(b" ")
        mark, _, text = rest.partition(b" ")
        if not text.endswith(b"\n") or not number.isdigit() or int(number) >= self.runs:
            return _NONE, None
        wanted = hmac.new(self._secret, number + text, hashlib.sha256).hexdigest()[:32]
        if not hmac.compare_digest(mark, wanted.encode()):
            return int(number), None
        row: dict[str, Any] = json.loads(text)
        return int(number), row

    def add(self, number: int, run: RunDirectory, read: Read) -> None:
        """Write a line for a run that ended, once its files are older than what their times can tell."""
        self._unsettled.append((number, run, read))
        self._settle()

    def _settle(self) -> None:
        assert self._opened is not None
        while self._unsettled:
            number, run, read = self._unsettled[0]
            found = stamp(str(run.path))
            if found is not None and not is_settled(found):
                return
            self._unsettled.popleft()
            row = read() if found is not None else None  # after its stamp was taken
            if row is None:
                continue
            row = {"run": run.path.name, **row, "stamp": found}
            text = json.dumps(row, separators=(",", ":")).encode() + b"\n"
            mark = hmac.new(self._secret, b"%d" % number + text, hashlib.sha256).hexdigest()[:32]
            self._offsets[number] = self._opened.tell()
            self._opened.write(b"%d %s %s" % (number, mark.encode(), text))

    def rows(self) -> Iterator[tuple[int, dict[str, Any]]]:
        """The rows that hold, in the order in which they were written."""
        for _, line in self._lines():
            number, row = self._row(line)
            if row is not None:
                yield number, row

    def _lines(self) -> Iterator[tuple[int, bytes]]:
        self.flush()
        with suppress(FileNotFoundError), self.file.open("rb") as opened:
            offset = len(opened.readline())
            for line in opened:
                number = line.partition(b" ")[0]
                if number.isdigit() and int(number) < self.runs and self._offsets[int(number)] == offset:
                    yield offset, line
                offset += len(line)

    def flush(self) -> None:
        """Write what was added to disk, so that it survives a killed command."""
        if self._opened is not None:
            self._opened.flush()

    def close(self) -> None:
        if self._opened is None:
            return
        if self._unsettled:
            time.sleep(2 * _TICK_S)
            self._settle()
            self._unsettled.clear()  # of a file system whose clock is another: looked at anew the next time
        self._opened.close()
        self._opened = None
