# SPDX-License-Identifier: Apache-2.0
"""Packed pieces that are sent to a worker: one that is sent twice at once is whole, however the transfers meet."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from itertools import combinations
from pathlib import Path
from threading import Event, Thread
from types import SimpleNamespace
from typing import IO, Any

import pytest

pytest.importorskip("distributed", reason="Dask is not installed")

from howdah.build.cache import Cache
from howdah.build.packed_piece import PackedPiece, Piece, pack_piece, unpack_piece
from howdah.cluster import incoming as module
from howdah.cluster import store as store_module
from howdah.cluster.incoming import Incoming
from howdah.cluster.store import Store
from howdah.errors import HowdahError

_CHUNKS = 3
_CONTENT = bytes(range(256)) * 64


class Sender:
    """Sends one piece, a chunk a step, as the client does."""

    def __init__(self, incoming: Incoming, store: Store, piece: PackedPiece, content: bytes, name: str) -> None:
        self._to, self._store, self._piece, self._content, self._name = incoming, store, piece, content, name
        self._chunk_bytes = -(-piece.size // _CHUNKS)
        self.offset = 0

    @property
    def done(self) -> bool:
        return self.offset >= self._piece.size

    def step(self) -> None:
        if not self.done:
            chunk = self._content[self.offset : self.offset + self._chunk_bytes]
            self.offset = self._to.take(self._store, self._piece, self._name, self.offset, chunk)

    def send(self) -> None:
        while not self.done:
            self.step()


@pytest.fixture
def packed(tmp_path: Path) -> tuple[PackedPiece, bytes]:
    directory = tmp_path / "made"
    directory.mkdir()
    (directory / "program").write_bytes(_CONTENT)
    piece, file = pack_piece(Piece("agent/abc", directory), Cache(tmp_path / "client"))
    return piece, file.read_bytes()


def _assert_whole(store: Store, piece: PackedPiece) -> None:
    assert (store.place(piece) / "program").read_bytes() == _CONTENT
    assert _left(store) == [], "nothing but the entry"


def _left(store: Store) -> list[str]:
    """Parts of a transfer in a cache."""
    root = store.cache.root
    keys = [each.name for each in store.cache.entries("sent")]
    kept = {root / "sent" / f"{mark}{key}" for key in keys for mark in ("", ".seal-", ".lock-")}
    files = [each for each in root.rglob("*") if each.is_file()]
    return [str(each) for each in files if kept.isdisjoint((each, *each.parents))]


def _open_files(store: Store) -> int:
    """Files without a name that this process has in a cache."""
    found = (str(each.readlink()) for each in Path("/proc/self/fd").iterdir() if each.is_symlink())
    return sum(each.startswith(f"{store.cache.root}/") and each.endswith(" (deleted)") for each in found)


def test_two_transfers_of_one_piece_interleave_in_any_order(packed: tuple[PackedPiece, bytes], tmp_path: Path) -> None:
    orders = list(combinations(range(2 * _CHUNKS), _CHUNKS))
    for number, own in enumerate(orders):
        incoming, store = Incoming(), Store(Cache(tmp_path / f"worker{number}"))
        first, second = (Sender(incoming, store, *packed, name) for name in ("one", "two"))
        for step in range(2 * _CHUNKS):
            (first if step in own else second).step()
        assert first.done, own
        assert second.done, own
        _assert_whole(store, packed[0])
        assert _open_files(store) == 0, own
    assert len(orders) == 20


def test_one_begins_while_another_is_unpacked(
    packed: tuple[PackedPiece, bytes], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A worker may unpack for longer than the client waits for its answer."""
    begun, go_on = Event(), Event()

    def unpack(file: Any, *arguments: Any) -> None:
        begun.set()
        assert go_on.wait(60)
        unpack_piece(file, *arguments)

    monkeypatch.setattr(store_module, "unpack_piece", unpack)
    incoming, store = Incoming(), Store(Cache(tmp_path / "worker"))
    first, second = (Sender(incoming, store, *packed, name) for name in ("one", "two"))
    thread = Thread(target=first.send)
    thread.start()
    assert begun.wait(60)
    second.step()
    assert not second.done
    go_on.set()
    thread.join()
    assert first.done
    second.send()
    _assert_whole(store, packed[0])


def test_a_transfer_that_is_wrong_is_gone_and_another_one_goes_on(
    packed: tuple[PackedPiece, bytes], tmp_path: Path
) -> None:
    incoming, store = Incoming(), Store(Cache(tmp_path / "worker"))
    piece, content = packed
    right, wrong = Sender(incoming, store, piece, content, "one"), Sender(incoming, store, piece, content[::-1], "two")
    right.step()
    with pytest.raises(HowdahError, match="has the hash"):
        wrong.send()
    assert store.lacks([piece]) == [piece]
    right.send()
    _assert_whole(store, piece)
    assert _open_files(store) == 0


def test_a_chunk_of_a_transfer_that_is_not_known_begins_it_again(
    packed: tuple[PackedPiece, bytes], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The worker was started again, or its client was stopped for long."""
    now = 1000.0
    monkeypatch.setattr(module, "time", SimpleNamespace(monotonic=lambda: now))
    incoming, store = Incoming(), Store(Cache(tmp_path / "worker"))
    cut, other = Sender(incoming, store, *packed, "one"), Sender(incoming, store, packed[0], packed[1], "two")
    cut.step()
    assert _open_files(store) == 1
    now += module._SILENT_S + 1
    other.step()
    assert _open_files(store) == 1, "what was cut off is gone"
    cut.step()
    assert cut.offset == 0
    cut.send()
    assert other.offset < packed[0].size
    other.step()
    assert other.done, "it is told that the piece is here"
    _assert_whole(store, packed[0])
    assert _open_files(store) == 0


@pytest.fixture
def other_process() -> Iterator[Any]:
    """Starts what is to be done in a child, which says when it is at a point and waits there."""
    children: list[int] = []

    def start(work: Any) -> tuple[int, IO[bytes], IO[bytes]]:
        said, told = os.pipe(), os.pipe()
        child = os.fork()
        if not child:
            status = 1
            try:
                work(lambda: (os.write(said[1], b"."), os.read(told[0], 1)))
                status = 0
            finally:
                os._exit(status)
        children.append(child)
        os.close(said[1])
        os.close(told[0])
        return child, os.fdopen(said[0], "rb", 0), os.fdopen(told[1], "wb", 0)

    yield start
    for child in children:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)


@pytest.mark.parametrize("killed", [False, True])
def test_two_processes_that_share_a_cache_each_have_their_own(
    packed: tuple[PackedPiece, bytes], tmp_path: Path, other_process: Any, *, killed: bool
) -> None:
    store = Store(Cache(tmp_path / "worker"))

    def send(pause: Any) -> None:
        sender = Sender(Incoming(), store, *packed, "one")
        sender.step()
        pause()
        sender.send()
        _assert_whole(store, packed[0])

    child, said, told = other_process(send)
    with said, told:
        assert said.read(1) == b"."
        assert _left(store) == []
        own = Sender(Incoming(), store, *packed, "one")
        own.step()
        if killed:
            os.kill(child, signal.SIGKILL)
        else:
            told.write(b".")
        ended = os.waitid(os.P_PID, child, os.WEXITED | os.WNOWAIT)
    assert ended is not None
    assert ended.si_status == (signal.SIGKILL if killed else 0)
    own.send()
    _assert_whole(store, packed[0])
