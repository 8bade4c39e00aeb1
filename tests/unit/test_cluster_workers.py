# SPDX-License-Identifier: Apache-2.0
"""Workers as they come: looked at again where they cannot be reached, and given what they lack."""

from __future__ import annotations

import platform
import tarfile
from collections import defaultdict
from pathlib import Path
from threading import Event, Lock
from types import SimpleNamespace
from typing import Any

import pytest

pytest.importorskip("distributed", reason="Dask is not installed")

from howdah.build import supply
from howdah.build.bundle_file import read_bundle
from howdah.build.cache import Cache
from howdah.build.packed_piece import PackedPiece, Piece
from howdah.build.supply import take
from howdah.cluster import worker
from howdah.cluster import workers as module
from howdah.cluster.incoming import Incoming
from howdah.cluster.message import WantedBundle, WorkerUnreachableError
from howdah.cluster.store import Store
from howdah.cluster.workers import Load, Workers
from howdah.engine.engine_bundle import EngineBundle
from howdah.errors import HowdahError
from howdah.record.provenance import agent_sha256, analysis_sha256
from tests.cluster_processes import wait_for
from tests.unit.bundle_factory import ready_piece, write_bundle

WORKER, OTHER = "tcp://1.2.3.4:1", "tcp://5.6.7.8:1"


class Client:
    def scheduler_info(self) -> dict[str, Any]:
        return {"workers": {WORKER: {}}}


def _workers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, problems: list[HowdahError]
) -> tuple[Workers, list[tuple[str, Any]]]:
    """A worker of this very cache that answers with the problems first, and then as it should."""
    cache, heard = Cache(tmp_path), list[tuple[str, Any]]()
    about: dict[str, Any] = {"agent": agent_sha256(), "analysis": analysis_sha256(), "version": "0"}
    about |= {"machine": platform.machine()}
    about |= {"host": "one", "store": Store(cache).name, "slots": 2, "unfetched": [], "making": []}

    def answer(*_: Any, **__: Any) -> Any:
        if problems:
            raise problems.pop(0)
        return about

    monkeypatch.setattr(module, "call", answer)
    monkeypatch.setattr(module, "_LOOK_EVERY_S", 0.01)
    client: Any = Client()
    return Workers(client, Load([], cache), lambda what, member: heard.append((what, member)), defaultdict(Lock)), heard


def test_one_that_cannot_be_reached_for_a_moment_is_looked_at_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    workers, heard = _workers(tmp_path, monkeypatch, [WorkerUnreachableError("gone"), WorkerUnreachableError("gone")])
    wait_for(lambda: bool(heard))
    workers.close()
    assert [what for what, _ in heard] == ["ready"]
    assert workers.slots == 2


def test_one_that_says_why_it_cannot_be_used_is_refused_for_good(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    workers, heard = _workers(tmp_path, monkeypatch, [HowdahError("it is another howdah")])
    wait_for(lambda: bool(heard))
    workers.close()
    assert [(what, member.refused) for what, member in heard] == [("refused", "it is another howdah")]
    assert workers.slots == 0


def test_a_worker_takes_from_its_own_bundle_what_that_has(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One of two workers has the bundle, by digest; the other is sent all. The agent is in no bundle."""
    agent = tmp_path / "cache" / "agent" / "a"
    agent.mkdir(parents=True)
    (agent / "run.py").write_text("pass\n")
    monkeypatch.delenv("HOWDAH_BUNDLE", raising=False)
    monkeypatch.setattr(supply, "installed", lambda: None)
    bundle, cache = tmp_path / "guest.bundle", Cache(tmp_path / "cache")
    write_bundle(bundle, [ready_piece(tmp_path / "made")])
    (module_entry,) = take(read_bundle(bundle), cache)
    stores = {WORKER: Store(Cache(tmp_path / "one")), OTHER: Store(Cache(tmp_path / "two"))}
    take(read_bundle(bundle), stores[OTHER].cache)
    addresses, sent, heard = [WORKER, OTHER], list[tuple[str, str]](), list[tuple[str, Any]]()
    own: dict[str, Any] = {"agent": agent_sha256(), "analysis": analysis_sha256(), "machine": platform.machine()}
    own |= {"version": "0", "host": "", "slots": 1, "unfetched": [], "making": []}

    def answer(_client: Any, address: str, function: Any, *arguments: Any, **_: Any) -> Any:
        store = stores[address]
        if function is worker.hello:
            return {**own, "store": store.name}
        if function is worker.lacks:
            return [each.sha256 for each in store.lacks(arguments[0])]
        if function is worker.take_chunk:
            sent.append((address, arguments[0].name))
            return Incoming().take(store, *arguments)
        if function is worker.take_bundle:
            store.keep_bundle(arguments[0])
        return {}

    monkeypatch.setattr(module, "call", answer)
    monkeypatch.setattr(module, "_LOOK_EVERY_S", 0.01)
    client: Any = SimpleNamespace(scheduler_info=lambda: {"workers": dict.fromkeys(addresses)})
    pieces = [Piece("agent/a", agent), Piece(f"module/{module_entry.name}", module_entry)]
    load = Load([EngineBundle("uml", {piece.name: piece for piece in pieces}, {})], cache)
    workers = Workers(client, load, lambda what, member: heard.append((what, member)), defaultdict(Lock))
    wait_for(lambda: len(heard) == 2)
    workers.close()
    assert [what for what, _ in heard] == ["ready", "ready"], heard
    assert sorted(sent) == sorted([(WORKER, "agent/a"), (WORKER, f"module/{module_entry.name}"), (OTHER, "agent/a")])
    identity = module.identity(load.bundles[0])
    for store in stores.values():
        assert store.bundle(identity) is not None
    assert workers.sent_bytes > 0


def test_what_one_batch_still_sends_the_next_one_waits_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A search has short batches, and a worker may come in the middle of one."""
    agent = tmp_path / "cache" / "agent" / "a"
    agent.mkdir(parents=True)
    (agent / "run.py").write_text("pass\n")
    monkeypatch.setenv("HOWDAH_BUNDLE", "none")
    cache, store, incoming = Cache(tmp_path / "cache"), Store(Cache(tmp_path / "one")), Incoming()
    own: dict[str, Any] = {"agent": agent_sha256(), "analysis": analysis_sha256(), "machine": platform.machine()}
    own |= {"version": "0", "host": "", "slots": 1, "unfetched": [], "making": []}
    sending, asked, go_on, sent = Event(), list[Any](), Event(), list[str]()

    def answer(_client: Any, _address: str, function: Any, *arguments: Any, **_: Any) -> Any:
        asked.append(function)
        if function is worker.hello:
            return {**own, "store": store.name}
        if function is worker.lacks:
            return [each.sha256 for each in store.lacks(arguments[0])]
        if function is worker.take_chunk:
            sending.set()
            assert go_on.wait(60)
            sent.append(arguments[0].name)
            return incoming.take(store, *arguments)
        if function is worker.take_bundle:
            store.keep_bundle(arguments[0])
        return {}

    monkeypatch.setattr(module, "call", answer)
    monkeypatch.setattr(module, "_LOOK_EVERY_S", 0.01)
    client: Any = Client()
    load = Load([EngineBundle("uml", {"agent/a": Piece("agent/a", agent)}, {})], cache)
    locks: dict[str, Lock] = defaultdict(Lock)
    heard: dict[str, list[str]] = {"first": [], "second": []}
    first = Workers(client, load, lambda what, _: heard["first"].append(what), locks)
    assert sending.wait(60)
    first.close()
    second = Workers(client, load, lambda what, _: heard["second"].append(what), locks)
    wait_for(lambda: asked.count(worker.hello) == 2)
    go_on.set()
    wait_for(lambda: bool(heard["second"]))
    second.close()
    assert heard == {"first": [], "second": ["ready"]}
    assert sent == ["agent/a"]


def test_a_bundle_of_a_worker_that_was_changed_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its digest is the one asked for, its bytes are others."""
    monkeypatch.delenv("HOWDAH_BUNDLE", raising=False)
    place = tmp_path / "bundle"
    piece = ready_piece(tmp_path / "made")
    write_bundle(place, [piece])
    unpacked = tmp_path / "unpacked"
    with tarfile.open(place) as archive:
        archive.extractall(unpacked, filter="data")
    (file,) = (unpacked / "pieces").iterdir()
    (other,) = [ready_piece(tmp_path / "other", content="other")]
    file.write_bytes(other[1].read_bytes())
    monkeypatch.setenv("HOWDAH_BUNDLE", str(unpacked))
    store = Store(Cache(tmp_path / "worker"))
    wanted = PackedPiece("module/abc", piece[0].sha256, piece[0].size)
    assert store.lacks([wanted]) == []
    with pytest.raises(HowdahError, match="has the hash"):
        store.keep_bundle(WantedBundle("0123456789", "uml", {}, {}, packed_pieces=(wanted,)))
    assert store.bundle("0123456789") is None


def test_what_a_cluster_left_in_a_cache_is_no_bundle_of_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HOWDAH_BUNDLE", raising=False)
    monkeypatch.setattr(supply, "installed", lambda: None)
    cache = Cache(tmp_path)
    Store(cache).keep_bundle(WantedBundle("0123456789", "uml", {}, {}))
    assert supply.bundles(cache) == []
