# SPDX-License-Identifier: Apache-2.0
"""Packed pieces while a worker receives them into its cache.

Each transfer has its own unnamed file, so two transfers of one piece never meet, neither in one process nor in two that
share a cache. If a process is killed, the kernel removes its files.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from io import BufferedRandom

from howdah.build.packed_piece import PackedPiece
from howdah.cluster.store import Store

_SILENT_S = 600.0  # a sender silent for this long is lost


@dataclass
class _Transfer:
    """A transfer. ``heard`` is the time of its last chunk on the monotonic clock."""

    sha256: str
    file: BufferedRandom
    heard: float = 0.0


class Incoming:
    """The transfers that one process receives. Chunks of different transfers may arrive at once, from any thread."""

    def __init__(self) -> None:
        self._transfers: dict[str, _Transfer] = {}  # transfers that wait for their next chunk
        self._lock = threading.Lock()

    def take(self, store: Store, packed_piece: PackedPiece, transfer: str, offset: int, chunk: bytes) -> int:
        """Take a chunk of a transfer. After the last one, check, unpack and keep the piece.

        Return the offset at which the sender continues: 0 for an unknown transfer, the size if the piece is here, no
        matter who sent it. On HowdahError and OSError nothing is left of the transfer.
        """
        silent_since = time.monotonic() - _SILENT_S
        self._drop(lambda each: each.heard < silent_since)
        if not store.has(packed_piece.sha256):
            with self._lock:
                found = self._transfers.pop(transfer, None)
            if found is None:
                if offset:
                    return 0
                found = _Transfer(packed_piece.sha256, store.incoming())
            try:
                reached = self._write(store, packed_piece, found, offset, chunk)
            except BaseException:
                found.file.close()
                raise
            if reached < packed_piece.size:
                with self._lock:
                    self._transfers[transfer] = found
                return reached
            found.file.close()
        self._drop(lambda each: each.sha256 == packed_piece.sha256)
        return packed_piece.size

    def _write(self, store: Store, packed_piece: PackedPiece, found: _Transfer, offset: int, chunk: bytes) -> int:
        """Write a chunk unless the file already has it, and return the offset that the file has reached."""
        if found.file.tell() == offset:
            found.file.write(chunk)
        reached = found.file.tell()
        if reached >= packed_piece.size:
            store.take(packed_piece, found.file)
        found.heard = time.monotonic()
        return reached

    def _drop(self, is_done: Callable[[_Transfer], bool]) -> None:
        with self._lock:
            for transfer, each in list(self._transfers.items()):
                if is_done(each):
                    each.file.close()
                    del self._transfers[transfer]
