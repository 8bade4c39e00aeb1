# SPDX-License-Identifier: Apache-2.0
"""Workers as they come: one that cannot be reached for a moment is looked at again."""

from __future__ import annotations

import platform
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("distributed", reason="Dask is not installed")

from howdah.build.cache import Cache
from howdah.cluster import crew as module
from howdah.cluster.call import UnreachableError
from howdah.cluster.crew import Crew, Load
from howdah.cluster.store import Store
from howdah.errors import HowdahError
from howdah.record.provenance import agent_sha256, analysis_sha256
from tests.cluster_processes import wait_for

WORKER = "tcp://1.2.3.4:1"


class Client:
    def scheduler_info(self) -> dict[str, Any]:
        return {"workers": {WORKER: {}}}


def _crew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, problems: list[HowdahError]
) -> tuple[Crew, list[tuple[str, Any]]]:
    """A worker of this very cache that answers with the problems first, and then as it should."""
    cache, heard = Cache(tmp_path), list[tuple[str, Any]]()
    about: dict[str, Any] = {"agent": agent_sha256(), "analysis": analysis_sha256(), "version": "0"}
    about |= {"machine": platform.machine()}
    about |= {"host": "one", "store": Store(cache).name, "slots": 2, "spool": [], "making": []}

    def answer(*_: Any, **__: Any) -> Any:
        if problems:
            raise problems.pop(0)
        return about

    monkeypatch.setattr(module, "call", answer)
    monkeypatch.setattr(module, "_LOOK_EVERY_S", 0.01)
    client: Any = Client()
    return Crew(client, Load([], cache), lambda what, member: heard.append((what, member))), heard


def test_one_that_cannot_be_reached_for_a_moment_is_looked_at_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    crew, heard = _crew(tmp_path, monkeypatch, [UnreachableError("gone"), UnreachableError("gone")])
    wait_for(lambda: bool(heard))
    crew.close()
    assert [what for what, _ in heard] == ["ready"]
    assert crew.slots == 2


def test_one_that_says_why_it_cannot_be_used_is_refused_for_good(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    crew, heard = _crew(tmp_path, monkeypatch, [HowdahError("it is another howdah")])
    wait_for(lambda: bool(heard))
    crew.close()
    assert [(what, member.refused) for what, member in heard] == [("refused", "it is another howdah")]
    assert crew.slots == 0
