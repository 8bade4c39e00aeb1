# SPDX-License-Identifier: Apache-2.0
"""A stranger's module against a real kernel: its makefile reaches nothing of the user; an honest one is the same."""

from __future__ import annotations

from pathlib import Path

import pytest

from howdah.build import modules
from howdah.build.cache import Cache
from howdah.build.modules import ModuleSet, provide_modules
from howdah.build.supervise import building_for_a_stranger
from howdah.engine.uml.build import Built
from howdah.errors import HowdahError
from tests.guest.guest_kit import build_or_skip
from tests.guest.guest_run import ignore
from tests.guest.test_module_sources import SOURCE

pytestmark = pytest.mark.guest
_HOSTILE = """\
$(shell echo x >{home}/x; echo x >$(HOME)/y; cat {home}/secret.txt >$(M)/secret.h; cp {home}/secret.txt $(M)/other.ko)
obj-m := tcp_mine.o
"""


@pytest.fixture(scope="module")
def built() -> Built:
    return build_or_skip()


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "none").mkdir()
    monkeypatch.setattr(modules, "PROJECT_MODULES", tmp_path / "none")
    directory = tmp_path / "home"
    directory.mkdir()
    (directory / "secret.txt").write_text("the secret\n")
    monkeypatch.setenv("HOME", str(directory))
    return directory


def _provide(built: Built, tmp_path: Path, kbuild: str, *, of_a_stranger: bool) -> ModuleSet:
    place = tmp_path / "module"
    place.mkdir(exist_ok=True)
    (place / "Kbuild").write_text(kbuild)
    (place / "tcp_mine.c").write_text(
        SOURCE.replace("NAME", "mine").replace("INCLUDES", "").replace("BODY", "").replace("OPS", "")
    )
    with building_for_a_stranger(is_stranger=of_a_stranger):
        return provide_modules(built.kernel, [str(place)], ignore, Cache(tmp_path / "cache"))


def test_a_hostile_makefile_reaches_nothing_of_the_user(built: Built, tmp_path: Path, home: Path) -> None:
    found = _provide(built, tmp_path, _HOSTILE.format(home=home), of_a_stranger=True)
    assert found.failed == {} and set(found.built) == {"tcp_mine"}
    assert [each.name for each in home.iterdir()] == ["secret.txt"]
    (entry,) = {each.file.parent for each in found.built.values()}
    assert not any(b"the secret" in each.read_bytes() for each in entry.iterdir())


def test_a_link_in_the_place_of_a_module_is_not_read(built: Built, tmp_path: Path, home: Path) -> None:
    kbuild = f"$(shell ln -s {home}/secret.txt $(M)/other.ko)\nobj-m := tcp_mine.o\n"
    found = _provide(built, tmp_path, kbuild, of_a_stranger=True)
    assert isinstance(found.failed["module"], HowdahError)
    assert "the build leaves a link to" in found.failed["module"].what


def test_an_honest_module_is_the_same_to_the_byte(built: Built, tmp_path: Path, home: Path) -> None:
    assert home.is_dir()
    found = [_provide(built, tmp_path, "obj-m := tcp_mine.o\n", of_a_stranger=each) for each in (False, True)]
    assert [each.failed for each in found] == [{}, {}]
    files = [each.built["tcp_mine"].file for each in found]
    assert files[0] != files[1], "each is built, and what a sandbox makes fail does not fail without one"
    assert files[0].read_bytes() == files[1].read_bytes()
