# SPDX-License-Identifier: Apache-2.0
"""A guest's files are remembered by all that it is made of; no guest is booted here."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from howdah.build.cache import Cache
from howdah.build.guest_tree import GuestTree
from howdah.build.tools import Tools
from howdah.build.uml_kernel import Kernel
from howdah.engine.ending import Ending
from howdah.engine.uml.build import Built
from howdah.engine.uml.guest import Guest
from tests.guest import remembered_guest as module
from tests.guest.guest_kit import make_guest
from tests.guest.remembered_guest import key_of, run_once
from tests.guest.remembered_run import KIND


def _filled(kind: type[Any], **values: object) -> Any:
    """An object of a dataclass of which only these values matter."""
    return kind(**{field.name: values.get(field.name) for field in dataclasses.fields(kind) if field.init})


@pytest.fixture
def built() -> Built:
    kernel = _filled(Kernel, image_sha256="0123", image=Path("/linux"))
    return _filled(Built, kernel=kernel, tree=_filled(GuestTree, sha256="45"), tools=_filled(Tools, key="67"))  # type: ignore[no-any-return]


@pytest.fixture(autouse=True)
def booted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Statuses with which guests are going to end, the last first; one is taken by each guest that is booted."""
    statuses: list[int] = []

    def boot(guest: Guest, _progress: Callable[[str, int, int], None]) -> Ending:
        (guest.raw / "said").write_text((guest.share / "script.sh").read_text())
        return Ending(statuses.pop(), None, 0.0, 0)

    monkeypatch.setenv("HOWDAH_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(module, "boot", boot)
    return statuses


def test_an_equal_guest_is_not_booted_again(built: Built, tmp_path: Path, booted: list[int]) -> None:
    booted[:] = [0]
    for name in ("first", "second"):
        guest = make_guest(built, tmp_path / name, "echo ready")
        assert run_once(built, guest) == 0
        assert [path.name for path in guest.raw.iterdir()] == ["said"]
        assert (guest.raw / "said").read_text() == "echo ready"
        assert {path.name for path in guest.raw.parent.iterdir()} == {"raw", "share"}
    assert booted == []


def test_one_that_failed_is_booted_again(built: Built, tmp_path: Path, booted: list[int]) -> None:
    booted[:] = [0, 1]
    statuses = [run_once(built, make_guest(built, tmp_path / str(number), "false")) for number in range(3)]
    assert statuses == [1, 0, 0]
    assert len(Cache().entries(KIND)) == 1


def test_all_that_it_is_made_of_is_in_its_key(built: Built, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    guest = make_guest(built, tmp_path / "guest", "echo ready")
    keys = {"as it is": key_of(built, guest)}
    assert key_of(built, make_guest(built, tmp_path / "elsewhere", "echo ready")) == keys["as it is"]
    for name in ("command", "memory_bytes", "seed", "kernel_arguments", "clock_limit_s", "profiled", "pollers"):
        keys[name] = key_of(built, dataclasses.replace(guest, **{name: "another"}))  # type: ignore[arg-type]
    for name, other in (("kernel", {"image_sha256": "x"}), ("tree", {"sha256": "x"}), ("tools", {"key": "x"})):
        part = dataclasses.replace(getattr(built, name), **other)
        keys[name] = key_of(dataclasses.replace(built, **{name: part}), guest)
    with monkeypatch.context() as patch:
        patch.setattr(module, "launcher_sha256", lambda *_: "another")
        keys["launcher"] = key_of(built, guest)
    (guest.share / "modules").mkdir()
    (guest.share / "modules" / "ss_one.ko").write_bytes(b"one")
    keys["module"] = key_of(built, guest)
    (guest.share / "modules" / "ss_one.ko").rename(guest.share / "modules" / "ss_two.ko")
    keys["its name"] = key_of(built, guest)
    assert len(set(keys.values())) == len(keys) == 14
