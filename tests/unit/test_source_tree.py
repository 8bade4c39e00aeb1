# SPDX-License-Identifier: Apache-2.0
"""What of a kernel tree counts as its content."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from howdah.build.kernel_source import LEFT_PACKED, read_tree
from howdah.errors import HowdahError
from tests.unit.kernel_tree import write_tree


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    return write_tree(tmp_path / "linux")


def test_content_is_names_bytes_and_who_may_execute(tree: Path, tmp_path: Path) -> None:
    first = read_tree(tree)
    assert read_tree(write_tree(tmp_path / "other" / "clone")).files.keys() == first.files.keys()
    os.utime(tree / "Kconfig", ns=(0, 0))
    (tree / "Kconfig").chmod(0o600)
    assert read_tree(tree).sha256 == first.sha256
    (tree / "Kconfig").chmod(0o700)
    program = read_tree(tree)
    assert program.sha256 != first.sha256
    assert program.files["Kconfig"].startswith("x:")
    (tree / "Kconfig").rename(tree / "Kconfig.new")
    assert read_tree(tree).sha256 not in (first.sha256, program.sha256)


def test_what_no_build_reads_does_not_count(tree: Path) -> None:
    first = read_tree(tree).sha256
    for name in (".git/index", "drivers/gpu/drm/more.c", "net/ipv4/.tcp.c.swp", "net/ipv4/tcp.c~", "net/ipv4/#tcp.c#"):
        (tree / name).parent.mkdir(parents=True, exist_ok=True)
        (tree / name).touch()
    (tree / "net/ipv4/.#tcp.c").symlink_to("person@machine.1234")
    (tree / "empty").mkdir()
    assert read_tree(tree).sha256 == first
    (tree / "drivers/gpu/drm/Kconfig").touch()
    assert read_tree(tree).sha256 != first, "the tree's own Kconfig includes it"


def test_links_within_stay_and_those_that_lead_out_are_content(tree: Path, tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine/tcp_mine.c").write_text("one")
    (tree / "scripts").mkdir()
    (tree / "scripts/within").symlink_to("../net/ipv4")
    (tree / "scripts/absent").symlink_to("../arch/arm/boot")
    (tree / "net/ipv4/tcp_mine.c").symlink_to(tmp_path / "mine/tcp_mine.c")
    (tree / "net/mine").symlink_to("../../mine")
    (tree / "net/nowhere").symlink_to("/nowhere/at/all")
    (tree / "net/back").symlink_to(tree / "net/ipv4/tcp.c")
    files = read_tree(tree).files
    assert files["scripts/within"] == "l:../net/ipv4"
    assert files["scripts/absent"] == "l:../arch/arm/boot"
    assert files["net/ipv4/tcp_mine.c"] == files["net/mine/tcp_mine.c"]
    assert files["net/back"] == files["net/ipv4/tcp.c"]
    assert "net/nowhere" not in files
    (tmp_path / "mine/tcp_mine.c").write_text("two")
    assert read_tree(tree).files["net/ipv4/tcp_mine.c"] != files["net/ipv4/tcp_mine.c"]


def test_a_link_to_what_it_lies_in_is_refused(tree: Path) -> None:
    (tree / "net/loop").symlink_to(tree)
    with pytest.raises(HowdahError, match="cannot be read") as caught:
        read_tree(tree)
    assert str(caught.value.where).endswith("net/loop")


def test_every_pattern_goes_by_directory_and_suffix() -> None:
    lines = [line for line in LEFT_PACKED.read_text().splitlines() if not line.startswith("#")]
    for line in lines:
        assert line.startswith("*/"), line
        assert line.rpartition("/")[2].split(".")[0] == "*", f"{line}: is_left_packed() asks once for a suffix"
