# SPDX-License-Identifier: Apache-2.0
"""What is remembered of lives: that they broke no rule, for as long as nothing that decides them is another."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from howdah.build.cache import Cache
from tests.decision.build import CORE
from tests.decision.lived import once
from tests.decision.runner import source_of


@pytest.fixture(autouse=True)
def nothing_remembered(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """Compiled objects are those of all tests."""
    objects = Cache().root / "decision"
    objects.mkdir(parents=True, exist_ok=True)
    root = tmp_path_factory.mktemp("cache")
    (root / "decision").symlink_to(objects)
    monkeypatch.setenv("HOWDAH_CACHE", str(root))


def test_lives_that_broke_nothing_are_lived_once() -> None:
    source = source_of("limited")
    assert once(source, "lives", lambda: None)
    assert not once(source, "lives", lambda: pytest.fail("lived again"))
    assert once(source, "other lives", lambda: None)


def test_lives_that_broke_a_rule_are_lived_again() -> None:
    def broken() -> None:
        raise AssertionError("BROKEN: cwnd is not at least 1")

    for _ in range(2):
        with pytest.raises(AssertionError, match="cwnd is not at least 1"):
            once(source_of("limited"), "lives", broken)
    assert once(source_of("limited"), "lives", lambda: None)


@pytest.mark.parametrize("what", ["plug-in", "core", "test"])
def test_what_decides_them_is_looked_at(what: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = source_of("limited")
    assert once(source, "lives", lambda: None)
    if what == "plug-in":
        source = tmp_path / source.name
        source.write_text(source_of("limited").read_text(encoding="utf-8") + "/* another one */\n", encoding="utf-8")
    elif what == "core":
        changed = tmp_path / CORE[0].name
        changed.write_text(CORE[0].read_text(encoding="utf-8") + "/* another one */\n", encoding="utf-8")
        monkeypatch.setattr("tests.decision.build.CORE", [changed, *CORE[1:]])
    else:
        here = tmp_path / "decision"
        shutil.copytree(Path(__file__).parent, here, ignore=shutil.ignore_patterns("__pycache__"))
        (here / "test_properties.py").write_text("MORE = 1\n", encoding="utf-8")
        monkeypatch.setattr("tests.decision.lived.HERE", here)
    assert once(source, "lives", lambda: None), f"another {what} lives other lives"
    assert not once(source, "lives", lambda: pytest.fail("lived again"))
