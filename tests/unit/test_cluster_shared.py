# SPDX-License-Identifier: Apache-2.0
"""A store that workers and client share: what is in it is whole, is that of its key, and has one result."""

from __future__ import annotations

import os
import secrets
import shutil
from collections.abc import Callable
from pathlib import Path
from threading import Thread

import pytest

pytest.importorskip("distributed", reason="Dask is not installed")

from howdah.build.cache import Cache
from howdah.cluster import worker
from howdah.cluster.message import Delivery, MadeRun
from howdah.cluster.place import Place, read_place
from howdah.cluster.store import SharedStore, Store
from howdah.errors import HowdahError
from tests.cluster_processes import wait_for

KEY = "ab" * 32


def _of_files(place: Path) -> str:
    return f"file://{place / 'with a space, ü'}"


def _of_memory(_place: Path) -> str:
    return f"memory://{secrets.token_hex(4)}/runs"


@pytest.fixture(params=[_of_files, _of_memory], ids=["file", "memory"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> SharedStore:
    make: Callable[[Path], str] = request.param
    return SharedStore(make(tmp_path))


def _made(number: int = 1) -> MadeRun:
    return MadeRun(
        key=KEY,
        name="cubic-r0",
        verdict="pass",
        failed=False,
        analysis=None,
        keep_data=True,
        results_sha256="r",
        sha256=f"{number:064x}",
        pack_bytes=1,
        wall_s=1.0,
        host="x",
    )


def test_what_was_put_is_found_and_read(store: SharedStore, tmp_path: Path) -> None:
    assert store.keys() == set()
    assert store.find(KEY) == []
    pack = tmp_path / "pack"
    for number in (1, 2):
        pack.write_bytes(b"%d" % number)
        store.put(_made(number), pack)
        store.put(_made(number), pack)  # by whoever made the same
    assert store.keys() == {KEY}
    found = store.find(KEY)
    assert found == [_made(1), _made(2)]
    assert [store.read(each) for each in found] == [b"1", b"2"]
    assert store.find("cd" * 32) == []


def test_what_is_not_whole_is_no_run(tmp_path: Path) -> None:
    store = SharedStore(f"file://{tmp_path}")
    pack = tmp_path / "pack"
    pack.write_bytes(b"1")
    store.put(_made(), pack)
    record = tmp_path / KEY / f"{1:064x}.json"
    text = record.read_text()
    for wrong in (text[:20], "[]", text.replace(KEY, "cd" * 32), text.replace("0" * 63, "../" * 21)):
        record.write_text(wrong)
        assert store.find(KEY) == [], wrong
    record.write_text(text)
    assert store.find(KEY) == [_made()]
    record.rename(record.with_suffix(".json.writing-1"))
    assert store.find(KEY) == []
    (tmp_path / KEY / f"{1:064x}.howdah.tar.zst").unlink()
    with pytest.raises(HowdahError, match="cannot be taken from the store"):
        store.read(_made())


def test_a_worker_that_cannot_put_it_there_says_why_and_keeps_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOWDAH_CACHE", str(tmp_path / "cache"))
    pack = tmp_path / "pack"
    pack.write_bytes(b"run")
    own = Store()
    own.put(_made(), pack)
    (tmp_path / "occupied").write_text("no directory")
    found = worker._share(Delivery(_made(), "", "x"), own, f"file://{tmp_path}/occupied")
    assert "cannot be put into the store" in str(found.not_stored)
    assert not found.stored
    found = worker._share(Delivery(_made(), "", "x"), own, f"file://{tmp_path}/shared")
    assert found.stored
    assert found.not_stored is None
    assert SharedStore(f"file://{tmp_path}/shared").read(_made()) == b"run"
    assert own.pack_of(KEY).exists(), "until the client has it"


def test_one_thread_makes_a_run_also_where_it_is_dropped_meanwhile(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another command may have fetched it while this one waited for it."""
    monkeypatch.setenv("HOWDAH_CACHE", str(tmp_path / "cache"))
    inside: list[int] = []

    def make() -> None:
        with worker._turn(KEY):
            inside.append(len(inside))

    with worker._turn(KEY):
        waiting = Thread(target=make)
        waiting.start()
        wait_for(lambda: worker._turns[KEY].users == 2)
        worker.drop_runs([KEY])
        late = Thread(target=make)
        late.start()
        wait_for(lambda: worker._turns[KEY].users == 3)
        assert inside == []
    for each in (waiting, late):
        each.join()
    assert inside == [0, 1]
    assert worker._turns == {}


def test_two_workers_of_one_cache_put_the_same_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store, other = Store(Cache(tmp_path / "cache")), Store(Cache(tmp_path / "cache"))
    packs = [tmp_path / "one", tmp_path / "two"]
    for pack in packs:
        pack.write_bytes(pack.name.encode())
    final = store.pack_of(KEY).parent
    real = shutil.rmtree

    def remove(place: Path, *, ignore_errors: bool = False) -> None:
        """The other one puts its own just after this one has found the place free."""
        real(place, ignore_errors=ignore_errors)
        if place == final and len(packs) == 2:
            monkeypatch.setattr(os, "getpid", lambda: 2)
            other.put(_made(2), packs.pop())

    final.mkdir(parents=True)
    monkeypatch.setattr(shutil, "rmtree", remove)
    store.put(_made(1), packs[0])
    assert packs == [tmp_path / "one"]
    assert store.find(KEY) == _made(1)
    assert store.pack_of(KEY).read_bytes() == b"one"
    assert sorted(each.name for each in final.parent.iterdir()) == [".made", KEY]


def test_a_store_that_is_none_is_told() -> None:
    with pytest.raises(HowdahError, match="this store cannot be used"):
        SharedStore("nothing://x")
    assert read_place(None, "local", None, "file:///x") == Place(kind="local", store="file:///x")
    with pytest.raises(HowdahError, match="--store is for runs of a cluster"):
        read_place(None, None, None, "file:///x")
