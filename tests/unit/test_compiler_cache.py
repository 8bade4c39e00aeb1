# SPDX-License-Identifier: Apache-2.0
"""What one kernel has compiled is found by the next one, whatever its entry of the cache is called."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from howdah.build.cache import Cache
from howdah.build.kernel_make import CompilerCache, compiler_cache


def _compile(cache: Cache, entry: Path, text: str, *, plain: bool = False) -> bytes:
    """The object that the entry's compiler makes of a file with this text, as Kbuild calls it; or gcc alone."""
    source, build = entry / "source", entry / "build"
    source.mkdir(parents=True)
    build.mkdir()
    (source / "file.h").write_text(text)
    (source / "file.c").write_text('#include "file.h"\nconst char *where(void) { return __FILE__; }\n')
    found = compiler_cache(cache, source)
    (command,) = found.arguments
    compiler = ["gcc"] if plain else command.removeprefix("CC=").split()
    options = [f"-I{source}", f"-fmacro-prefix-map={source}/=", "-Wp,-MMD,.file.o.d", "-c", "-o", "file.o"]
    subprocess.run(
        [*compiler, *options, f"{source}/file.c"],
        cwd=build,
        env={"PATH": os.environ["PATH"], **found.environment},
        check=True,
    )
    return (build / "file.o").read_bytes()


def _hits(cache: Cache, entry: Path) -> int:
    environment = {"PATH": os.environ["PATH"], **compiler_cache(cache, entry).environment}
    answer = subprocess.run(["ccache", "--print-stats"], env=environment, capture_output=True, text=True, check=True)
    counts = dict(line.split("\t", 1) for line in answer.stdout.splitlines())
    return int(counts["direct_cache_hit"]) + int(counts["preprocessed_cache_hit"])


@pytest.mark.skipif(shutil.which("ccache") is None, reason="ccache is not installed")
def test_an_object_is_found_in_another_entry_and_only_for_the_same_source(tmp_path: Path) -> None:
    cache = Cache(tmp_path)
    first = _compile(cache, tmp_path / "kernel" / ".partial-a-1", "const int value = 1;\n")
    assert _compile(cache, tmp_path / "plain", "const int value = 1;\n", plain=True) == first
    assert _hits(cache, tmp_path) == 0
    assert _compile(cache, tmp_path / "kernel" / ".partial-b-2", "const int value = 1;\n") == first
    assert _hits(cache, tmp_path) == 1
    _compile(cache, tmp_path / "kernel" / ".partial-c-3", "const int value = 2;\n")
    assert _hits(cache, tmp_path) == 1


def test_a_persons_own_settings_of_ccache_are_not_used(tmp_path: Path) -> None:
    found = compiler_cache(Cache(tmp_path), tmp_path / "source")
    if found.arguments:
        assert found.environment["CCACHE_CONFIGPATH"] == os.devnull
        assert Path(found.environment["CCACHE_DIR"]).is_relative_to(tmp_path)


def test_without_ccache_the_compiler_is_called_as_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert compiler_cache(Cache(tmp_path), tmp_path / "source") == CompilerCache()
