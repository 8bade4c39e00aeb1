# SPDX-License-Identifier: Apache-2.0
"""The cache: entries are whole or absent, one builder at a time, errors a person can act on."""

from __future__ import annotations

import errno
import os
import shutil
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from howdah.build.cache import Cache, cache_root, content_key
from howdah.errors import HowdahError


def _write(text: str) -> Callable[[Path, Path], None]:
    def builder(directory: Path, log: Path) -> None:
        (directory / "file").write_text(text)
        log.write_text("built\n")

    return builder


def test_root_follows_the_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HOWDAH_CACHE", str(tmp_path / "named"))
    assert cache_root() == tmp_path / "named"
    monkeypatch.delenv("HOWDAH_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    assert cache_root() == tmp_path / "xdg" / "howdah"


def test_key_keeps_ingredients_apart() -> None:
    assert content_key("ab", "c") != content_key("a", "bc")
    assert content_key("a") == content_key(b"a")


def test_an_entry_is_built_once(tmp_path: Path) -> None:
    cache = Cache(tmp_path / "cache")
    first = cache.build("kernel", "k", _write("one"))
    second = cache.build("kernel", "k", _write("two"))
    assert first == second
    assert (second / "file").read_text() == "one"
    assert cache.entries("kernel") == [first]
    assert cache.log("kernel", "k").read_text() == "built\n"


def test_a_failed_build_leaves_no_entry_and_keeps_its_log(tmp_path: Path) -> None:
    cache = Cache(tmp_path)

    def fail(directory: Path, log: Path) -> None:
        (directory / "half").write_text("")
        log.write_text("what went wrong\n")
        raise HowdahError("no")

    with pytest.raises(HowdahError):
        cache.build("kernel", "k", fail)
    assert cache.find("kernel", "k") is None
    assert cache.entries("kernel") == []
    assert cache.log("kernel", "k").read_text() == "what went wrong\n"
    assert [path.name for path in (tmp_path / "kernel").iterdir()] == [".lock-k"]


def test_what_a_killed_builder_left_is_no_entry_and_is_removed(tmp_path: Path) -> None:
    cache = Cache(tmp_path)
    left = tmp_path / "kernel" / ".partial-k-999999"
    left.mkdir(parents=True)
    (left / "file").write_text("half")
    assert cache.find("kernel", "k") is None
    entry = cache.build("kernel", "k", _write("whole"))
    assert (entry / "file").read_text() == "whole"
    assert not left.exists()


def test_the_second_of_two_builders_waits_and_uses_the_first_ones_work(tmp_path: Path) -> None:
    cache = Cache(tmp_path)
    inside, proceed, waited = threading.Event(), threading.Event(), threading.Event()
    built: list[str] = []

    def slow(directory: Path, _log: Path) -> None:
        built.append("slow")
        (directory / "file").write_text("slow")
        inside.set()
        assert proceed.wait(30)

    def other(_directory: Path, _log: Path) -> None:
        built.append("other")

    first = threading.Thread(target=cache.build, args=("kernel", "k", slow))
    first.start()
    assert inside.wait(30)
    second = threading.Thread(target=cache.build, args=("kernel", "k", other), kwargs={"waiting": waited.set})
    second.start()
    assert waited.wait(30)
    proceed.set()
    first.join(30)
    second.join(30)
    assert built == ["slow"]


def test_a_full_disk_is_named_before_anything_starts(tmp_path: Path) -> None:
    cache = Cache(tmp_path)
    needs = shutil.disk_usage(tmp_path).total * 2
    with pytest.raises(HowdahError, match="disk is full") as caught:
        cache.build("kernel", "k", _write("never"), needs_bytes=needs)
    assert "HOWDAH_CACHE" in str(caught.value)
    assert cache.find("kernel", "k") is None


def test_a_disk_that_fills_while_building_is_named(tmp_path: Path) -> None:
    def fill(directory: Path, _log: Path) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(directory / "big"))

    with pytest.raises(HowdahError, match="disk is full") as caught:
        Cache(tmp_path).build("tree", "k", fill)
    assert str(caught.value).startswith(str(tmp_path))
    assert Cache(tmp_path).entries("tree") == []


def test_a_place_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("")
    with pytest.raises(HowdahError, match="building the kernel k"):
        Cache(blocked / "cache").build("kernel", "k", _write("never"))
    if os.geteuid() != 0:
        closed = tmp_path / "closed"
        closed.mkdir(mode=0o500)
        with pytest.raises(HowdahError, match="no permission"):
            Cache(closed).build("kernel", "k", _write("never"))


def test_an_interrupted_builder_that_can_go_on_finds_what_it_made(tmp_path: Path) -> None:
    cache = Cache(tmp_path)
    seen: list[list[str]] = []

    def fill(directory: Path, _log: Path) -> None:
        seen.append(sorted(path.name for path in directory.iterdir()))
        if not seen[-1]:
            (directory / "object.o").write_text("compiled")
            raise KeyboardInterrupt
        (directory / "linux").write_text("linked")

    with pytest.raises(KeyboardInterrupt):
        cache.build("kernel", "key", fill, goes_on=True)
    assert cache.find("kernel", "key") is None
    cache.build("tool", "other", lambda directory, _log: (directory / "file").touch())  # sweeps what was killed
    entry = cache.build("kernel", "key", fill, goes_on=True)
    assert seen == [[], ["object.o"]]
    assert sorted(path.name for path in entry.iterdir()) == ["linux", "object.o"]


def test_what_was_begun_goes_with_an_error_and_when_a_person_cleans(tmp_path: Path) -> None:
    cache = Cache(tmp_path)

    def fail(directory: Path, _log: Path) -> None:
        (directory / "object.o").touch()
        raise HowdahError("it does not compile")

    def interrupt(_directory: Path, _log: Path) -> None:
        raise KeyboardInterrupt

    with pytest.raises(HowdahError):
        cache.build("kernel", "key", fail, goes_on=True)
    assert not list(tmp_path.glob("kernel/.begun-*"))
    with pytest.raises(KeyboardInterrupt):
        cache.build("kernel", "key", interrupt, goes_on=True)
    (left,) = tmp_path.glob("kernel/.begun-*")
    assert cache.sweep(begun=True) == [], "a person may go on with it"
    os.utime(left, (0, 0))
    assert cache.sweep() == []
    assert cache.sweep(begun=True) == [left]
    assert not left.exists()
