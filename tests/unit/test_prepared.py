# SPDX-License-Identifier: Apache-2.0
"""Runs take the kernels that their command prepared, also in processes of their own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from howdah.build.cache import Cache
from howdah.build.kernel_build import RECORD, KbuildError
from howdah.build.uml_kernel import Kernel, forget_kernels, load_kernel, prepared_kernel, remember_kernel
from howdah.engine.uml import build as build_module
from howdah.errors import HowdahError

TREE = "/home/me/linux"


@pytest.fixture(autouse=True)
def _nothing_prepared(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOWDAH_PREPARED_KERNELS", "{}")


def kernel(cache: Cache, key: str) -> Kernel:
    directory = cache.path("kernel", key)
    directory.mkdir(parents=True)
    (directory / "linux").touch()
    texts = ("release", "config_sha256", "image_sha256", "compiler", "vermagic", "interface")
    record = {**dict.fromkeys(texts, key), "name": TREE, "source": f"{TREE} {key}", "options_not_taken": []}
    (directory / RECORD).write_text(json.dumps(record))
    return load_kernel(directory)


def test_a_kernel_stays_what_it_was_until_it_is_forgotten(tmp_path: Path) -> None:
    cache = Cache(tmp_path)
    assert prepared_kernel(TREE, cache) is None
    first = kernel(cache, "first")
    remember_kernel(TREE, first)
    assert prepared_kernel(TREE, cache) == first
    assert prepared_kernel("/home/me/other", cache) is None
    assert prepared_kernel(TREE, Cache(tmp_path / "other")) is None, "it is of another cache"
    forget_kernels()
    assert prepared_kernel(TREE, cache) is None


def test_a_run_is_told_by_its_environment(tmp_path: Path) -> None:
    cache = Cache(tmp_path)
    remember_kernel(TREE, kernel(cache, "first"))
    code = (
        "import sys; from pathlib import Path; from howdah.build.cache import Cache\n"
        "from howdah.build.uml_kernel import prepared_kernel\n"
        "print(prepared_kernel(sys.argv[1], Cache(Path(sys.argv[2]))).key)"
    )
    done = subprocess.run([sys.executable, "-c", code, TREE, tmp_path], capture_output=True, text=True, check=True)
    assert done.stdout == "first\n"


def test_a_kernel_that_was_removed_since_is_told(tmp_path: Path) -> None:
    cache = Cache(tmp_path)
    remember_kernel(TREE, kernel(cache, "first"))
    os.rename(cache.path("kernel", "first"), tmp_path / "away")  # noqa: PTH104
    with pytest.raises(HowdahError, match="no longer in the cache"):
        prepared_kernel(TREE, cache)


def test_an_edit_between_two_runs_of_a_command_does_not_count(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cache = Cache(tmp_path)
    kernels = [kernel(cache, "first"), kernel(cache, "second")]
    for name in ("build_tools", "build_tree", "build_agent", "provide_modules", "image_of_tree"):
        monkeypatch.setattr(build_module, name, lambda *_, **__: None)
    monkeypatch.setattr(build_module, "build_kernel", lambda *_: kernels.pop(0))

    def built() -> str:
        return build_module.build(TREE, (), lambda *_: None, cache).kernel.key

    assert [built(), built()] == ["first", "first"]
    forget_kernels()
    assert built() == "second"


def test_a_kernel_that_does_not_compile_is_compiled_once_a_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache, compiled = Cache(tmp_path), []
    for name in ("build_tools", "build_tree", "build_agent", "provide_modules", "image_of_tree"):
        monkeypatch.setattr(build_module, name, lambda *_, **__: None)

    def refuse(named: str, *_: object) -> None:
        compiled.append(named)
        raise KbuildError("it is broken", where="tcp.c:3", hint="the log")

    monkeypatch.setattr(build_module, "build_kernel", refuse)

    def told(tree: str) -> str:
        with pytest.raises(HowdahError) as error:
            build_module.build(tree, (), lambda *_: None, cache)
        return str(error.value)

    assert told(TREE) == told(TREE) == "tcp.c:3: it is broken\n  the log"
    assert compiled == [TREE]
    told("/home/me/other")
    forget_kernels()
    told(TREE)
    assert compiled == [TREE, "/home/me/other", TREE]
