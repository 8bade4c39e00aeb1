# SPDX-License-Identifier: Apache-2.0
"""Workers as they come: looked at again where they cannot be reached, and given what they lack."""

from __future__ import annotations

import platform
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

pytest.importorskip("distributed", reason="Dask is not installed")

from howdah.build.cache import Cache
from howdah.build.packed_piece import Piece
from howdah.cluster import worker
from howdah.cluster import workers as module
from howdah.cluster.call import WorkerUnreachableError
from howdah.cluster.store import Store
from howdah.cluster.workers import Load, Workers
from howdah.engine.engine_bundle import EngineBundle
from howdah.errors import HowdahError
from howdah.record.provenance import agent_sha256, analysis_sha256
from tests.cluster_processes import wait_for

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
    return Workers(client, Load([], cache), lambda what, member: heard.append((what, member))), heard


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


@pytest.mark.parametrize("gives", [True, False])
def test_a_worker_gets_what_it_lacks_from_its_neighbour(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, gives: bool
) -> None:
    """And from here where the neighbour does not give it."""
    agent = tmp_path / "cache" / "agent" / "a"
    agent.mkdir(parents=True)
    (agent / "run.py").write_text("pass\n")
    addresses, asked, heard = [WORKER], list[tuple[str, str]](), list[tuple[str, Any]]()
    own: dict[str, Any] = {"agent": agent_sha256(), "analysis": analysis_sha256(), "machine": platform.machine()}
    own |= {"version": "0", "host": "", "slots": 1, "unfetched": [], "making": []}

    def answer(_client: Any, address: str, function: Any, *arguments: Any, **_: Any) -> Any:
        asked.append((address, function.__name__))
        if function is worker.hello:
            return {**own, "store": f"of {address}"}
        if function is worker.lacks:
            return [each["sha256"] for each in arguments[0]]
        if function is worker.fetch:
            assert arguments[1] == WORKER
            if not gives:
                raise HowdahError("it has not")
        return {}

    monkeypatch.setattr(module, "call", answer)
    monkeypatch.setattr(module, "_LOOK_EVERY_S", 0.01)
    client: Any = SimpleNamespace(scheduler_info=lambda: {"workers": dict.fromkeys(addresses)})
    load = Load([EngineBundle("uml", {"agent/a": Piece("agent/a", agent)}, {})], Cache(tmp_path / "cache"))
    workers = Workers(client, load, lambda what, member: heard.append((what, member)))
    wait_for(lambda: len(heard) == 1)
    addresses.append(OTHER)
    wait_for(lambda: len(heard) == 2)
    workers.close()
    sent = [(address, name) for address, name in asked if name in ("fetch", "take_chunk")]
    assert sent[:2] == [(WORKER, "take_chunk"), (OTHER, "fetch")]
    assert sent[2:] == ([] if gives else [(OTHER, "take_chunk")])
    assert [member.address for _, member in heard] == [WORKER, OTHER]
