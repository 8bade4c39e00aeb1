# SPDX-License-Identifier: Apache-2.0
"""Archives for the kernel's first file system, read back by the format's own description."""

from __future__ import annotations

import io
import stat
from pathlib import Path

import pytest

from howdah.build.cpio import Writer

_FIELDS = (
    "ino",
    "mode",
    "uid",
    "gid",
    "nlink",
    "mtime",
    "size",
    "major",
    "minor",
    "rmajor",
    "rminor",
    "namesize",
    "check",
)


def members(content: bytes) -> list[tuple[str, dict[str, int], bytes]]:
    """Name, header and content of every member; stops at the trailer."""
    found: list[tuple[str, dict[str, int], bytes]] = []
    place = 0
    while True:
        assert content[place : place + 6] == b"070701"
        numbers = [int(content[place + 6 + 8 * i : place + 14 + 8 * i], 16) for i in range(len(_FIELDS))]
        header = dict(zip(_FIELDS, numbers, strict=True))
        start = place + 110
        name = content[start : start + header["namesize"] - 1].decode()
        start += header["namesize"]
        start += -start % 4
        if name == "TRAILER!!!":
            assert len(content) % 512 == 0
            return found
        found.append((name, header, content[start : start + header["size"]]))
        place = start + header["size"]
        place += -place % 4


def archive(root: Path, below: str = "") -> bytes:
    file = io.BytesIO()
    writer = Writer(file)
    writer.tree(root, below)
    writer.close()
    return file.getvalue()


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "b").mkdir()
    (tmp_path / "b" / "program").write_bytes(b"\x7fELF!")
    (tmp_path / "b" / "program").chmod(0o755)
    (tmp_path / "a").write_text("seven b")
    (tmp_path / "link").symlink_to("b/program")
    return tmp_path


def test_a_tree_comes_back_as_it_was(root: Path) -> None:
    found = {name: (header, content) for name, header, content in members(archive(root))}
    assert list(found) == ["a", "b", "link", "b/program"]
    assert found["b/program"][1] == b"\x7fELF!"
    assert stat.S_IMODE(found["b/program"][0]["mode"]) == 0o755
    assert stat.S_ISDIR(found["b"][0]["mode"])
    assert stat.S_ISLNK(found["link"][0]["mode"])
    assert found["link"][1] == b"b/program"


def test_it_belongs_to_root_and_has_no_time(root: Path) -> None:
    for _, header, _ in members(archive(root)):
        assert (header["uid"], header["gid"], header["mtime"]) == (0, 0, 0)


def test_equal_contents_give_equal_bytes(root: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    other = tmp_path_factory.mktemp("other")
    (other / "link").symlink_to("b/program")
    (other / "a").write_text("seven b")
    (other / "b").mkdir()
    (other / "b" / "program").write_bytes(b"\x7fELF!")
    (other / "b" / "program").chmod(0o755)
    assert archive(root) == archive(other)


def test_a_tree_can_be_put_below_a_directory(root: Path) -> None:
    file = io.BytesIO()
    writer = Writer(file)
    writer.parents(["usr/lib/x"])
    writer.tree(root, "usr/lib")
    writer.close()
    assert [name for name, _, _ in members(file.getvalue())] == [
        "usr",
        "usr/lib",
        "usr/lib/a",
        "usr/lib/b",
        "usr/lib/link",
        "usr/lib/b/program",
    ]


def test_what_the_format_cannot_hold_is_refused(tmp_path: Path) -> None:
    with (tmp_path / "huge").open("wb") as file:
        file.truncate((1 << 32) + 1)
    with pytest.raises(ValueError, match="at most 4 GiB"):
        Writer(io.BytesIO()).file("huge", tmp_path / "huge")
