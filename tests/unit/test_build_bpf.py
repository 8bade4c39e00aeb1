# SPDX-License-Identifier: Apache-2.0
"""Congestion controls in BPF: compiled for the types of a kernel, once; a mistake is told at its line."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest

from howdah.build.bpf import build_bpf
from howdah.build.cache import Cache, file_sha256
from howdah.build.module_build import ModuleFailure, Target
from howdah.errors import HowdahError

SOURCE = """\
#include "vmlinux.h"
#define SEC(name) __attribute__((section(name), used))
char _license[] SEC("license") = "GPL";
SEC("struct_ops/ssthresh")
unsigned int ssthresh(struct sock *sk) { return sk->window; }
"""


def silent(_what: str, _done: int, _total: int) -> None:
    """No progress is shown."""


def kernel_of(image: Path) -> Target:
    made = SimpleNamespace(image=image, image_sha256=file_sha256(image), release="6.12.1")
    return cast(Target, made)


@pytest.fixture(scope="module")
def image(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An ELF file with types, as a kernel's has them."""
    place = tmp_path_factory.mktemp("a kernel")
    (place / "kernel.c").write_text("struct sock { int window; }; struct sock sk;\n")
    subprocess.run(["clang", "-target", "bpf", "-g", "-O2", "-c", "kernel.c", "-o", "vmlinux"], cwd=place, check=True)
    return place / "vmlinux"


def test_a_file_is_compiled_once_for_each_kernel(image: Path, tmp_path: Path) -> None:
    source, cache = tmp_path / "tcp-mine.bpf.c", Cache(tmp_path / "cache")
    source.write_text(SOURCE)
    built = build_bpf(kernel_of(image), source, silent, cache)
    assert isinstance(built, Path)
    assert built.name == "tcp_mine.bpf.o"
    assert str(tmp_path).encode() not in built.read_bytes()
    moved = shutil.copyfile(image, tmp_path / "moved")
    assert build_bpf(kernel_of(moved), source, silent, cache) == built, "the kernel is known by its content"
    source.write_text(SOURCE.replace("return ", "return 1 + "))
    assert build_bpf(kernel_of(image), source, silent, cache) != built


def test_a_mistake_is_told_at_its_line(image: Path, tmp_path: Path) -> None:
    source, cache = tmp_path / "tcp_mine.bpf.c", Cache(tmp_path / "cache")
    source.write_text(SOURCE.replace("->window", "->windows"))
    for _ in range(2):  # the second time from the cache
        failure = build_bpf(kernel_of(image), source, silent, cache)
        assert isinstance(failure, ModuleFailure)
        error = failure.error(source)
        assert error.where == f"{source}:5"
        assert "no member named 'windows'" in error.what


def test_a_kernel_without_types_is_refused(tmp_path: Path) -> None:
    image, source = tmp_path / "vmlinux", tmp_path / "tcp_mine.bpf.c"
    shutil.copyfile("/bin/true", image)
    source.write_text(SOURCE)
    with pytest.raises(HowdahError, match="does not describe its types") as refused:
        build_bpf(kernel_of(image), source, silent, Cache(tmp_path / "cache"))
    assert "CONFIG_DEBUG_INFO_BTF" in str(refused.value.hint)


def test_a_missing_tool_is_named(image: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = tmp_path / "tcp_mine.bpf.c"
    source.write_text(SOURCE)
    monkeypatch.setattr(shutil, "which", lambda _name, **_where: None)
    with pytest.raises(HowdahError, match="the program clang is not installed") as refused:
        build_bpf(kernel_of(image), source, silent, Cache(tmp_path / "cache"))
    assert "apt install bpftool clang libbpf-dev" in str(refused.value.hint)
