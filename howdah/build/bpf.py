# SPDX-License-Identifier: Apache-2.0
"""Congestion controls in BPF (struct_ops): compiles a ``.bpf.c`` file against the types of the run's kernel."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from dataclasses import asdict
from pathlib import Path

from howdah.agent.bpf import SUFFIX as OBJECT_SUFFIX
from howdah.algorithm import module_name
from howdah.build.cache import Cache, Progress, content_key
from howdah.build.compiler import first_error
from howdah.build.module_build import ModuleFailure, Target
from howdah.build.supervise import CommandFailedError, run_logged, sandbox_key, sandbox_of
from howdah.build.tools import build_tools
from howdah.distribution import installing
from howdah.errors import HowdahError

TYPES = "vmlinux.h"
_LAYOUT = "1"  # part of every key: raise it when the files of an entry change
_FAILURE = "failure.json"
_QUOTED_LINES = 6
_SYSTEM = ("/usr/sbin", "/sbin")  # Debian's directories for bpftool, which PATH may lack
_HEADER = Path("/usr/include/bpf/bpf_helpers.h")


def build_bpf(kernel: Target, source: Path, progress: Progress, cache: Cache) -> Path | ModuleFailure:
    """Return the object file of ``source``, or why it does not compile. The kernel's image has its types.

    ``vmlinux.h`` is generated from these types. The file may include it, headers beside it, and those of libbpf. Raises
    HowdahError if a tool is missing or the kernel has no types (CONFIG_DEBUG_INFO_BTF).
    """
    compiler, version = _compiler()
    types = _types(kernel, progress, cache)
    headers = sorted(source.parent.glob("*.h"))
    name = module_name(source)
    parts: list[str | bytes] = [_LAYOUT, version, types.parent.name, *sandbox_key()]
    for file in (source, *headers):
        parts += [file.name, file.read_bytes()]

    def compile_it(directory: Path, log: Path) -> None:
        progress(f"BPF {source.name}", 0, 1)
        for file in (source, *headers):
            shutil.copyfile(file, directory / file.name)
        target = directory / f"{name}{OBJECT_SUFFIX}"
        command = [compiler, "-target", "bpf", "-g", "-O2", "-Wall", "-D__TARGET_ARCH_x86"]
        # Keep local paths out of the object file, so that its hash is the same everywhere.
        command += ["-ffile-compilation-dir=.", f"-ffile-prefix-map={types.parent}/=", f"-I{types.parent}"]
        command += ["-c", source.name, "-o", target.name]
        lines: list[str] = []
        try:
            sandbox = sandbox_of(directory, build_tools(cache).launch, [directory], [types.parent])
            run_logged(command, log, sandbox=sandbox, cwd=directory, on_line=lines.append)
        except CommandFailedError:
            failure = _failure(name, lines, kernel.release, directory)
            (directory / _FAILURE).write_text(json.dumps(asdict(failure), indent=1) + "\n")
        for file in (source, *headers):
            (directory / file.name).unlink()
        progress(f"BPF {source.name}", 1, 1)

    entry = cache.build("bpf", content_key(*parts), compile_it)
    if (entry / _FAILURE).is_file():
        return ModuleFailure(**json.loads((entry / _FAILURE).read_text()))
    return entry / f"{name}{OBJECT_SUFFIX}"


def _failure(name: str, lines: list[str], release: str, directory: Path) -> ModuleFailure:
    error = first_error(lines, lambda file: (directory / file).is_file())
    if error is None:
        said = "\n    ".join(lines[-_QUOTED_LINES:])
        return ModuleFailure(name, f"{name} does not compile as BPF for kernel {release}", None, None, said)
    what = f"{name} does not compile as BPF for kernel {release}: {error.text}"
    return ModuleFailure(name, what, error.file, error.line, f"The compiler said:\n    {error.said}")


def _types(kernel: Target, progress: Progress, cache: Cache) -> Path:
    """Return the kernel's types as a C header, generated once per kernel."""
    program = _tool("bpftool")

    def dump(directory: Path, log: Path) -> None:
        progress(f"types of {kernel.release}", 0, 1)
        command = [program, "btf", "dump", "file", str(kernel.image), "format", "c"]
        answer = subprocess.run(command, capture_output=True, check=False)
        log.write_bytes(answer.stderr)
        if answer.returncode or not answer.stdout:
            said = answer.stderr.decode(errors="replace").strip()
            raise HowdahError(
                f"the kernel {kernel.release} does not describe its types, which BPF needs: {said}",
                where=str(kernel.image),
                hint="It must be built with CONFIG_DEBUG_INFO_BTF, as Debian's are.",
            )
        (directory / TYPES).write_bytes(answer.stdout)
        progress(f"types of {kernel.release}", 1, 1)

    key = content_key(_LAYOUT, kernel.image_sha256)
    return cache.build("bpf-types", key, dump) / TYPES


def _compiler() -> tuple[str, str]:
    """Return clang and the first line of its version. Raises HowdahError if it or libbpf's headers are missing."""
    program = _tool("clang")
    if not _HEADER.is_file():
        raise HowdahError(f"there is no {_HEADER}", hint=_hint())
    answer = subprocess.run([program, "--version"], capture_output=True, text=True, check=True)
    return program, answer.stdout.splitlines()[0]


def _tool(name: str) -> str:
    found = shutil.which(name, path=os.pathsep.join([os.environ.get("PATH", os.defpath), *_SYSTEM]))
    if found is None:
        raise HowdahError(f"the program {name} is not installed", hint=_hint())
    return found


def _hint() -> str:
    return f"Congestion controls in BPF need: {installing('bpftool', 'clang', 'libbpf-dev')}"
