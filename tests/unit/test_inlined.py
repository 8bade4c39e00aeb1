# SPDX-License-Identifier: Apache-2.0
"""What is inlined where, of objects a compiler made here; and a build of them that fails."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from howdah.build import inlined
from howdah.build.cache import Cache
from howdah.build.inlined import Inlined, SymbolTable, build_objects, read_functions
from howdah.build.kernel_source import read_tree
from howdah.build.supervise import CommandFailedError
from howdah.errors import HowdahError

SOURCE = """\
volatile int seen;
static inline __attribute__((always_inline)) void tcp_clean_rtx_queue(int packets)
{
	while (packets--)
		seen += packets;
}
void tcp_ack(int packets)
{
	tcp_clean_rtx_queue(packets);
}
int main(void)
{
	tcp_ack(3);
	return seen;
}
"""


def compiled(place: Path, source: str) -> tuple[SymbolTable, Path]:
    """The functions of a program, and a directory with its one object, with debugging information."""
    compiler = shutil.which("gcc")
    assert compiler is not None, "kernels are built with it"
    (place / "tcp_input.c").write_text(source)
    objects = place / "objects"
    objects.mkdir()
    command = [compiler, "-O1", "-fno-pie", "-no-pie", str(place / "tcp_input.c")]
    subprocess.run([*command, "-o", str(place / "image")], check=True)
    subprocess.run([*command, "-g", "-c", "-o", str(objects / "tcp_input.o")], check=True)
    return SymbolTable(read_functions(place / "image")), objects


def test_a_kernel_need_not_have_every_object(tmp_path: Path) -> None:
    image, objects = compiled(tmp_path, SOURCE)
    (ack,) = [function for function in image.functions if function.name == "tcp_ack"]
    chains = Inlined(image, objects).chains(range(ack.address, ack.address + ack.size))
    assert set(chains.values()) == {(), ("tcp_clean_rtx_queue",)}


def test_code_that_is_not_the_images(tmp_path: Path) -> None:
    image, objects = compiled(tmp_path, SOURCE)
    other = tmp_path / "other"
    other.mkdir()
    _, different = compiled(other, SOURCE.replace("seen += packets;", "seen += packets * seen / 7;"))
    Inlined(image, objects)
    with pytest.raises(HowdahError, match=r"tcp_input\.o compiled with -g is not the code of the image"):
        Inlined(image, different)


def test_a_build_that_fails_is_tried_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tree, build = tmp_path / "tree", tmp_path / "build"
    tree.mkdir()
    build.mkdir()
    tries: list[str] = []

    def fail(command: list[str], _log: Path, **_: Any) -> None:
        tries.append(command[0])
        raise CommandFailedError(command, 2, ["no rule to make target", "Stop."])

    monkeypatch.setattr(inlined, "_failed", {})
    source = SimpleNamespace(content=read_tree(tree), archive=None, name="one")
    monkeypatch.setattr(inlined, "provide_source", lambda *_: source)
    monkeypatch.setattr(inlined, "kernel_key", lambda _: "key of the kernel")
    monkeypatch.setattr(inlined, "build_tools", lambda _: SimpleNamespace(launch="launch"))
    monkeypatch.setattr(inlined, "_SPACE_BYTES", 0)
    monkeypatch.setattr(inlined, "run_logged", fail)
    kernel: Any = SimpleNamespace(key="key of the kernel", name="one", build_dir=build)
    for _ in range(2):
        with pytest.raises(HowdahError, match="does not compile with -g: no rule to make target / Stop"):
            build_objects(kernel, lambda *_: None, Cache(tmp_path / "cache"))
    assert tries == ["make"]
