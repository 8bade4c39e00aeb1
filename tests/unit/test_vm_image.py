# SPDX-License-Identifier: Apache-2.0
"""What a kernel image is told to be, packages and modules in it, and archives for its first file system."""

from __future__ import annotations

import gzip
import io
import lzma
import shutil
import stat
import struct
import subprocess
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

from howdah.build.cache import Cache
from howdah.build.cpio import Writer
from howdah.build.kernel_image import Contents, read_image, unpack_kernel
from howdah.build.kernel_package import ImagePackage
from howdah.build.own_kernel import provide_own, provide_own_headers
from howdah.errors import HowdahError

RELEASE = "6.12.3-mine"


def elf(machine: int = 62, note: int | None = 18, text: bytes = b"Linux version 6.12.3-mine (me) ") -> bytes:
    """An ELF file with one note segment of the owner Xen, and a text."""
    notes = struct.pack("<III4sQ", 4, 8, note, b"Xen\0", 0x1000) if note is not None else b""
    head = b"\x7fELF" + bytes([2, 1, 1]) + bytes(9)
    head += struct.pack("<HHIQQQIHHHHHH", 2, machine, 1, 0, 64, 0, 0, 64, 56, 1, 0, 0, 0)
    segment = struct.pack("<IIQQQQQQ", 4, 4, 64 + 56, 0, 0, len(notes), len(notes), 4)
    return head + segment + notes + text


def bz_image(kernel: bytes, compress: Callable[[bytes], bytes] = gzip.compress, flags: int = 1) -> bytes:
    """A boot sector, one sector of set-up, and the compressed kernel with its size behind it."""
    payload = compress(kernel) + struct.pack("<I", len(kernel))
    head = bytearray(1024)
    head[0x1F1] = 1
    head[0x202:0x206] = b"HdrS"
    said = f"{RELEASE} (me) #1".encode() + b"\0"
    head[0x300 : 0x300 + len(said)] = said
    struct.pack_into("<H", head, 0x20E, 0x100)
    struct.pack_into("<H", head, 0x236, flags)
    struct.pack_into("<II", head, 0x248, 0, len(payload))
    return bytes(head) + payload


def zstd(data: bytes) -> bytes:
    return bytes(pa.compress(data, codec="zstd", asbytes=True))


@pytest.mark.parametrize("compress", [gzip.compress, lzma.compress, zstd])
def test_the_kernel_in_an_image_is_unpacked(tmp_path: Path, compress: Callable[[bytes], bytes]) -> None:
    (tmp_path / "image").write_bytes(bz_image(elf(), compress))
    assert read_image(tmp_path / "image") == Contents(RELEASE, "bzImage")
    assert unpack_kernel(tmp_path / "image", tmp_path / "vmlinux")
    assert (tmp_path / "vmlinux").read_bytes() == elf()
    assert read_image(tmp_path / "vmlinux") == Contents(RELEASE, "vmlinux")


@pytest.mark.parametrize(
    "kernel", [bz_image(elf(note=None)), bz_image(elf(), lambda data: b"LZ4!" + data), bz_image(elf())[:-20]]
)
def test_an_image_without_a_kernel_qemu_starts_uncompressed_starts_as_it_is(tmp_path: Path, kernel: bytes) -> None:
    (tmp_path / "image").write_bytes(kernel)
    assert not unpack_kernel(tmp_path / "image", tmp_path / "vmlinux")
    assert not (tmp_path / "vmlinux").exists()


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "something else (0 bytes beginning with nothing)"),
        (b"#!/bin/sh\n", "something else"),
        (elf()[:90], "an ELF file, and no Linux kernel"),
        (elf(text=b"")[:70] + b"Linux version 6.12.3-mine (me) ", "no PVH entry"),
        (elf(text=b"no kernel at all"), "an ELF file, and no Linux kernel"),
        (elf(machine=183), "another processor (ARM, 64 bits)"),
        (elf(machine=999), "another processor (ELF number 999)"),
        (elf(note=None), "no PVH entry"),
        (b"MZ" + bytes(0x36) + b"ARM\x64", "another processor (ARM, 64 bits)"),
        (bz_image(elf(), flags=0), "a kernel for 32 bits"),
    ],
)
def test_what_is_no_kernel_is_told_for_what_it_is(tmp_path: Path, content: bytes, words: str) -> None:
    (tmp_path / "file").write_bytes(content)
    with pytest.raises(HowdahError) as error:
        read_image(tmp_path / "file")
    assert words in error.value.what
    assert error.value.where == str(tmp_path / "file")


def modules_of(root: Path, builtin: str = "", left_out: str = "") -> Path:
    place = root / "lib/modules" / RELEASE
    names = {"virtio_pci", "virtio_blk", "veth", "sch_netem", "sch_htb", "tcp_diag"} - {left_out}
    (place / "kernel").mkdir(parents=True)
    for name in names:
        (place / "kernel" / f"{name}.ko.xz").touch()
    (place / "modules.builtin").write_text(builtin)
    return place


def quiet(_what: str, _done: int, _total: int) -> None: ...


def package(tmp_path: Path, root: Path, architecture: str = "amd64") -> Path:
    if shutil.which("dpkg-deb") is None:
        pytest.skip("dpkg-deb is not on this machine")
    (root / "DEBIAN").mkdir(parents=True, exist_ok=True)
    (root / "DEBIAN/control").write_text(
        f"Package: linux-image-mine\nVersion: 6.12.3-1\nArchitecture: {architecture}\nMaintainer: me <me@localhost>\n"
        "Description: mine\n"
    )
    file = tmp_path / "mine.deb"
    subprocess.run(["dpkg-deb", "--root-owner-group", "-b", str(root), str(file)], check=True, capture_output=True)
    return file


def test_a_package_of_ones_own(tmp_path: Path) -> None:
    root = tmp_path / "root"
    modules_of(root)
    (root / "boot").mkdir()
    (root / f"boot/vmlinuz-{RELEASE}").write_bytes(bz_image(elf()))
    found = provide_own(package(tmp_path, root), None, quiet, Cache(tmp_path / "cache"))
    assert (found.release, found.package, found.version) == (RELEASE, "linux-image-mine", "6.12.3-1")
    assert (found.modules / "kernel/veth.ko.xz").exists()


def test_packages_that_are_none_or_the_wrong_ones_are_told(tmp_path: Path) -> None:
    cache = Cache(tmp_path / "cache")
    root = tmp_path / "root"
    modules_of(root)
    with pytest.raises(HowdahError, match="holds 0 kernels"):
        provide_own(package(tmp_path, root), None, quiet, cache)
    with pytest.raises(HowdahError, match="another processor: arm64"):
        provide_own(package(tmp_path, root, "arm64"), None, quiet, cache)
    (root / "boot").mkdir()
    (root / f"boot/vmlinuz-{RELEASE}").write_bytes(b"nothing")
    with pytest.raises(HowdahError, match="not a Linux kernel"):
        provide_own(package(tmp_path, root), None, quiet, cache)
    (tmp_path / "cut.deb").write_bytes(b"!<arch>\ndebian-binary")
    with pytest.raises(HowdahError, match="cannot be read"):
        provide_own(tmp_path / "cut.deb", None, quiet, cache)


def test_a_bare_image_needs_its_modules(tmp_path: Path) -> None:
    cache, image = Cache(tmp_path / "cache"), tmp_path / "vmlinuz"
    image.write_bytes(bz_image(elf()))
    place = modules_of(tmp_path)
    with pytest.raises(HowdahError, match="without its modules") as error:
        provide_own(image, None, quiet, cache)
    assert "machine.modules" in str(error.value.hint)
    with pytest.raises(HowdahError, match=r"no modules of Linux 6\.12\.3-mine"):
        provide_own(image, tmp_path / "cache", quiet, cache)
    for given in (place, tmp_path / "lib/modules", tmp_path):
        assert provide_own(image, given, quiet, cache).modules == place


def test_what_a_machine_needs_of_a_kernel_is_missed_by_its_name(tmp_path: Path) -> None:
    cache, image = Cache(tmp_path / "cache"), tmp_path / "vmlinuz"
    image.write_bytes(bz_image(elf()))
    modules_of(tmp_path / "without", left_out="sch_netem")
    with pytest.raises(HowdahError, match="CONFIG_NET_SCH_NETEM"):
        provide_own(image, tmp_path / "without", quiet, cache)
    modules_of(tmp_path / "within", builtin="kernel/net/sched/sch_netem.ko\n", left_out="sch_netem")
    assert provide_own(image, tmp_path / "within", quiet, cache).release == RELEASE


def test_headers_must_be_of_that_kernel(tmp_path: Path) -> None:
    cache = Cache(tmp_path / "cache")
    image = ImagePackage(RELEASE, tmp_path, tmp_path, tmp_path, "p", "v", "s")
    tree = tmp_path / "headers"
    with pytest.raises(HowdahError, match=r"utsrelease\.h"):
        provide_own_headers(tree, image, quiet, cache)
    (tree / "include/generated").mkdir(parents=True)
    said = tree / "include/generated/utsrelease.h"
    said.write_text('#define UTS_RELEASE "6.1.0-other"\n')
    with pytest.raises(HowdahError, match=r"headers of 6\.1\.0-other"):
        provide_own_headers(tree, image, quiet, cache)
    said.write_text(f'#define UTS_RELEASE "{RELEASE}"\n')
    assert provide_own_headers(tree, image, quiet, cache) == tree


def test_a_directory_and_a_file_that_is_not_there_are_no_kernels(tmp_path: Path) -> None:
    for name, words in ((".", "a directory"), ("none", "not there")):
        with pytest.raises(HowdahError, match=words):
            provide_own(tmp_path / name, None, quiet, Cache(tmp_path / "cache"))


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
