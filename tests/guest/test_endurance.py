# SPDX-License-Identifier: Apache-2.0
"""What every plug-in must endure: switches, disconnects, memory pressure, a thousand connections, unloading."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from howdah.build.modules import PROJECT_MODULES, Module, provide_modules
from howdah.engine.uml.build import Built
from tests.guest.guest_kit import build_or_skip, give_modules, make_guest
from tests.guest.guest_run import ignore
from tests.guest.remembered_guest import run_once

pytestmark = pytest.mark.guest

_HERE = Path(__file__).parent
_PLUG_INS = sorted(path.stem for path in (PROJECT_MODULES / "algorithms").glob("ss_*.c"))
# A page of slab here and there; a plug-in that leaks its smallest state (32 bytes) 2000 times is twice above it.
_NOISE_BYTES = 32_000


@pytest.fixture(scope="module")
def built() -> Built:
    return build_or_skip()


def endure(built: Built, directory: Path, modules: list[Module], names: list[str]) -> dict[str, Any]:
    """Run endure.sh; what it left, with the kernel's warnings as ``log``."""
    share = directory / "share"
    give_modules(share, modules)
    shutil.copyfile(_HERE / "endure.py", share / "endure.py")
    (share / "names").write_text(" ".join(names))
    script = (_HERE / "endure.sh").read_text()
    run_once(built, make_guest(built, directory, script, clock_limit_s=20_000, wall_clock_limit_s=600.0))
    raw = directory / "raw"
    assert (raw / "endure.json").is_file(), (raw / "errors").read_text()
    found: dict[str, Any] = json.loads((raw / "endure.json").read_text())
    found["unloaded"] = (raw / "unloaded").read_text().split() if (raw / "unloaded").exists() else []
    # Level 4 is a warning, below are errors; an unsigned module outside the kernel's tree is said to taint it.
    lines = (raw / "log").read_text().splitlines()
    found["log"] = [line for line in lines if line[:3] <= "<4>" and "taint" not in line]
    return found


def names_of(module: str) -> list[str]:
    plain = module.removeprefix("ss_")
    return [f"{plain}_reno", f"{plain}_cubic"]


@pytest.mark.parametrize("plug_in", _PLUG_INS)
def test_a_plug_in_endures(built: Built, tmp_path: Path, plug_in: str) -> None:
    modules = built.module_set.choose([plug_in])
    found = endure(built, tmp_path, modules, names_of(plug_in))
    switching = found["switching"]
    assert switching["received_bytes"] == switching["expected_bytes"]
    assert switching["switches"] >= 6, "each algorithm was taken and left at least once"
    assert found["disconnecting"]["reconnected"] == found["disconnecting"]["expected"]
    assert found["pressed"]["arrived"] == found["pressed"]["expected"]
    assert found["pressed"]["pressures"] > 0, "TCP was never short of memory"
    assert found["short"]["arrived"] == found["short"]["expected"]
    assert found["held"]["refused"] == found["held"]["loaded"] == [plug_in]
    assert found["unloaded"] == [module.name for module in reversed(modules)]
    assert found["log"] == []
    assert found["leaking"]["grown_bytes"] < _NOISE_BYTES


def test_a_plug_in_that_leaks_is_found(built: Built, tmp_path: Path) -> None:
    found_modules = provide_modules(built.kernel, [str(_HERE / "ss_leaky.c")], ignore)
    found = endure(built, tmp_path, found_modules.choose(["ss_leaky"]), names_of("ss_leaky"))
    assert found["leaking"]["grown_bytes"] > _NOISE_BYTES
