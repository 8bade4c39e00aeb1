# SPDX-License-Identifier: Apache-2.0
"""An entry of the cache is used only as it was made: every kind of damage is named, and built again."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from howdah.build import seal
from howdah.build.cache import Cache, secret
from howdah.errors import HowdahError


def _fill(directory: Path, _log: Path) -> None:
    (directory / "root" / "bin").mkdir(parents=True)
    (directory / "root" / "empty").mkdir()
    (directory / "linux").write_bytes(b"kernel")
    (directory / "root" / "bin" / "sh").write_bytes(b"shell")
    (directory / "root" / "bin" / "link").symlink_to("sh")
    os.mkfifo(directory / "root" / "pipe")


def _build(root: Path, **options: tuple[str, ...]) -> tuple[Path, bool]:
    """The entry, and whether it was made now. A process of its own each time: what was found sound is remembered."""
    made = []

    def fill(directory: Path, log: Path) -> None:
        made.append(directory)
        _fill(directory, log)

    return Cache(root).build("kernel", "key", fill, **options), bool(made)  # type: ignore[arg-type]


def _same_size(entry: Path) -> None:
    times = (entry / "linux").stat()
    (entry / "linux").write_bytes(b"KERNEL")
    os.utime(entry / "linux", ns=(times.st_atime_ns, times.st_mtime_ns + 1))


def _replaced(entry: Path) -> None:
    times = (entry / "linux").stat()
    (entry / "other").write_bytes(b"KERNEL")
    os.utime(entry / "other", ns=(times.st_atime_ns, times.st_mtime_ns))
    (entry / "other").replace(entry / "linux")


def _other_link(entry: Path) -> None:
    (entry / "root/bin/link").unlink()
    (entry / "root/bin/link").symlink_to("/etc/passwd")


def _link_for_a_file(entry: Path) -> None:
    (entry / "linux").unlink()
    (entry / "linux").symlink_to("/bin/true")


def _pipe_for_a_file(entry: Path) -> None:
    (entry / "linux").unlink()
    os.mkfifo(entry / "linux")


_DAMAGES: dict[str, tuple[Callable[[Path], object], str]] = {
    "cut": (lambda entry: (entry / "linux").write_bytes(b"k"), "linux is not what was made"),
    "same size": (_same_size, "linux is not what was made"),
    "another file of the same size and time": (_replaced, "linux is not what was made"),
    "gone": (lambda entry: (entry / "root/bin/sh").rename(entry.with_name("gone")), "root/bin/sh is missing"),
    "one more": (lambda entry: (entry / "root/bin/new").write_bytes(b""), "root/bin/new was not there"),
    "link": (_other_link, "root/bin/link is not what was made"),
    "link for a file": (_link_for_a_file, "linux is not what was made"),
    "pipe for a file": (_pipe_for_a_file, "linux is not what was made"),
    "no seal": (lambda entry: seal.seal_of(entry).rename(entry.with_name("gone")), "older howdah"),
    "half a seal": (lambda entry: seal.seal_of(entry).write_text('{"format"'), "its seal cannot be read"),
    "most of a seal": (
        lambda entry: seal.seal_of(entry).write_bytes(seal.seal_of(entry).read_bytes()[:-2]),
        "its seal cannot be read",
    ),
    "another seal": (lambda entry: seal.seal_of(entry).write_text("{}\n{}\n"), "its seal cannot be read"),
}


@pytest.mark.parametrize("damage", _DAMAGES)
def test_what_is_damaged_is_named_and_built_again(
    tmp_path: Path, damage: str, caplog: pytest.LogCaptureFixture
) -> None:
    entry, made = _build(tmp_path)
    assert made
    assert _build(tmp_path) == (entry, False)
    break_it, said = _DAMAGES[damage]
    break_it(entry)
    assert Cache(tmp_path).find("kernel", "key") is None
    assert said in caplog.text
    assert _build(tmp_path) == (entry, True)
    assert (entry / "linux").read_bytes() == b"kernel"
    assert _build(tmp_path) == (entry, False)


def test_an_equal_copy_is_sound_and_its_contents_are_read_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    entry, _ = _build(tmp_path)
    os.utime(entry / "linux")
    read: list[str] = []
    content = seal._Found.content

    def noted(found: seal._Found) -> str:
        read.append(found.name)
        return content(found)

    monkeypatch.setattr(seal._Found, "content", noted)
    assert _build(tmp_path) == (entry, False)
    assert "linux" in read
    read.clear()
    assert _build(tmp_path) == (entry, False)
    assert read == [], "times and inodes are remembered"
    os.link(entry / "linux", tmp_path / "share")
    assert _build(tmp_path) == (entry, False)
    assert read == [], "a link to a file is no change of it"


def test_only_what_is_sealed_must_stay(tmp_path: Path) -> None:
    entry, _ = _build(tmp_path, sealed=("linux",))
    (entry / "root/bin/sh").write_bytes(b"another")
    assert _build(tmp_path, sealed=("linux",)) == (entry, False)
    (entry / "linux").write_bytes(b"other")
    assert _build(tmp_path, sealed=("linux",)) == (entry, True)


@pytest.mark.skipif(os.geteuid() != 0, reason="gives a file to another user, which needs root")
@pytest.mark.parametrize("place", ["linux", "root/bin/sh", "."])
def test_what_another_user_put_there_does_not_run(tmp_path: Path, place: str) -> None:
    entry, _ = _build(tmp_path)
    os.chown(entry / place, 65534, 65534)
    with pytest.raises(HowdahError, match="belongs to user 65534") as caught:
        Cache(tmp_path).find("kernel", "key")
    assert "HOWDAH_CACHE" in str(caught.value.hint)


def test_what_everybody_can_write_does_not_run(tmp_path: Path) -> None:
    entry, _ = _build(tmp_path)
    entry.chmod(0o777)
    with pytest.raises(HowdahError, match="written by everybody"):
        Cache(tmp_path).find("kernel", "key")


def test_a_file_with_a_name_that_is_no_text(tmp_path: Path) -> None:
    def fill(directory: Path, _log: Path) -> None:
        Path(os.fsdecode(os.fsencode(directory) + b"/\xff")).write_bytes(b"")

    Cache(tmp_path).build("tree", "key", fill)
    assert Cache(tmp_path).find("tree", "key")


def test_threads_that_find_an_entry_at_once_each_renew_its_seal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was copied, so its times are others; a worker of a cluster has many threads."""
    cache = Cache(tmp_path)
    entry = cache.build("thing", "a", lambda directory, _log: (directory / "x").touch())
    os.utime(entry / "x", ns=(1, 1))
    real, found = Path.replace, list[Path | None]()

    def replace(self: Path, target: Path) -> Path:
        if not found:
            found.append(None)
            found[0] = Cache(tmp_path).find("thing", "a")
        return real(self, target)

    monkeypatch.setattr(Path, "replace", replace)
    assert Cache(tmp_path).find("thing", "a") == entry
    assert found == [entry]
    monkeypatch.setattr(seal, "_write", lambda *_: pytest.fail("it is renewed"))
    assert Cache(tmp_path).find("thing", "a") == entry


def test_threads_that_need_the_secret_at_once_have_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """So do two containers that share a cache: in each of them this is process 1."""
    monkeypatch.setenv("HOWDAH_CACHE", str(tmp_path))
    found: list[bytes] = []

    def token_bytes(size: int) -> bytes:
        if not found:
            found.append(b"")
            found[0] = secret()
        return os.urandom(size)

    monkeypatch.setattr("howdah.build.cache.secrets.token_bytes", token_bytes)
    assert secret() == found[0]
    assert len(found[0]) == 32
    assert [each.name for each in tmp_path.iterdir()] == ["secret"]
