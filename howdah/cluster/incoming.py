# SPDX-License-Identifier: Apache-2.0
"""Packed pieces on their way into the cache of a worker.

Each transfer has a file of its own that has no name. Two transfers of one piece never meet, neither in one process nor
in two that share a cache. The kernel removes what a killed process had of one.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from io import BufferedRandom

from howdah.build.packed_piece import PackedPiece
from howdah.cluster.store import Store

_SILENT_S = 600.0  # a sender that says nothing for so long is gone


@dataclass
class _Transfer:
    """``heard`` is when its last chunk was here, on the monotonic clock."""

    sha256: str
    file: BufferedRandom
    heard: float = 0.0


class Incoming:
    """What one process receives. Chunks of different transfers may come at once, from any thread."""

    def __init__(self) -> None:
        self._transfers: dict[str, _Transfer] = {}  # those that wait for their next chunk
        self._lock = threading.Lock()

    def take(self, store: Store, packed_piece: PackedPiece, transfer: str, offset: int, chunk: bytes) -> int:
        """Take a chunk of a transfer; the last one has the piece checked, unpacked and kept.

        Returns the offset at which the sender goes on: 0 where this transfer is not known (any more), the size where
        the piece is here, whoever sent it. Raises HowdahError and OSError; nothing is left of the transfer then.
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
        """The offset that the file has reached. A chunk that was here already is not written again."""
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
