# SPDX-License-Identifier: Apache-2.0
"""warp.c: a main loop that moves an idle machine's clock finds its instructions counted."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from howdah.build.cache import Cache
from howdah.build.tools import library, variable
from howdah.engine.vm.machine import WARP
from howdah.errors import HowdahError

STAND_IN = Path(__file__).with_name("warp_stand_in.c")
LIMIT_S = 60


@pytest.fixture(scope="module")
def machine(tmp_path_factory: pytest.TempPathFactory) -> Path:
    program = tmp_path_factory.mktemp("machine") / "machine"
    subprocess.run(["gcc", "-O1", "-Wall", "-Werror", "-pthread", "-o", str(program), str(STAND_IN)], check=True)
    return program


def seen(*command: str) -> tuple[int, int]:
    """How often the machine was idle with instructions that were not counted, and with none."""
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=LIMIT_S)
    early, right = map(int, done.stdout.split())
    return early, right


def test_without_it_the_clock_is_moved_too_early(machine: Path) -> None:
    early, right = seen(str(machine))
    assert early > 0
    assert right == 200


@pytest.mark.parametrize("processors", [[], ["taskset", "--cpu-list", "{one}"]], ids=["any", "one"])
def test_with_it_never(machine: Path, tmp_path: Path, processors: list[str]) -> None:
    one = str(min(os.sched_getaffinity(0)))
    pinned = [word.format(one=one) for word in processors]
    assert seen(*pinned, "env", variable(library(WARP, Cache(tmp_path))), str(machine)) == (0, 200)


def test_a_source_that_does_not_compile_is_told(tmp_path: Path) -> None:
    source = tmp_path / "wrong.c"
    source.write_text("int ppoll(\n")
    with pytest.raises(HowdahError, match="does not compile") as raised:
        library(source, Cache(tmp_path / "cache"))
    assert raised.value.where == str(source)


def test_a_changed_source_is_another_library(tmp_path: Path) -> None:
    source, cache = tmp_path / "one.c", Cache(tmp_path / "cache")
    source.write_text("int one;\n")
    first = library(source, cache)
    assert library(source, cache) == first
    source.write_text("int two;\n")
    assert library(source, cache) != first
