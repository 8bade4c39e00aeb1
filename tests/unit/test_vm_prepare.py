# SPDX-License-Identifier: Apache-2.0
"""What the vm engine cannot make ready is told once: with the runs it costs, or by the error that ends the command."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from howdah.build.cache import Cache
from howdah.engine.vm import needs
from howdah.engine.vm.engine import VmEngine
from howdah.errors import HowdahError
from howdah.plan.plan import Plan
from tests.unit.profile_factory import make_plans

NO_ROOM = HowdahError("the disk is full (60 MiB free)", hint="Free some space.")


@pytest.fixture
def engine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> VmEngine:
    """One that builds nothing, and has no room for what reno's runs need."""

    def build(_self: VmEngine, plan: Plan, _progress: Any) -> Any:
        if plan.algorithm == "reno":
            raise NO_ROOM
        return SimpleNamespace(module_set=SimpleNamespace(unused=lambda *_: []))

    monkeypatch.setattr(VmEngine, "_build", build)
    monkeypatch.setattr(VmEngine, "_identity", lambda *_: {})
    monkeypatch.setattr(VmEngine, "lacks", lambda _self: [])
    monkeypatch.setattr(needs, "qemu_version", lambda: "10")
    return VmEngine(Cache(tmp_path / "cache"))


def test_what_all_runs_lack_is_said_once(tmp_path: Path, engine: VmEngine) -> None:
    told: list[str] = []
    plans = make_plans(tmp_path, overrides=["algorithm=reno", "repetitions=2"])
    with pytest.raises(HowdahError) as failed:
        engine.prepare(plans, lambda what, _done, _total: told.append(what))
    assert (failed.value.what, failed.value.hint) == (NO_ROOM.what, NO_ROOM.hint)
    assert told == []


def test_what_some_runs_lack_is_told(tmp_path: Path, engine: VmEngine) -> None:
    told: list[str] = []
    plans = make_plans(tmp_path, overrides=["algorithm=[cubic, reno]", "repetitions=2"])
    assert engine.prepare(plans, lambda what, _done, _total: told.append(what))["engine"] == "vm"
    assert told == [f"not built: {NO_ROOM.what}"]
