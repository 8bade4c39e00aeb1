# SPDX-License-Identifier: Apache-2.0
"""The small C programs around a guest, compiled once into the cache.

``launch`` starts a program so that nothing of it survives, ``shim.so`` is loaded into the user-mode kernel's process,
``init`` is the guest's first process, ``populate.so`` is loaded into the guest's Python. Their sources say more.
"""

from __future__ import annotations

import shutil
import subprocess
from dataclasses import dataclass
from functools import cache as remembered
from pathlib import Path

from howdah.build.cache import Cache, content_key, file_sha256
from howdah.build.supervise import CommandFailedError, run_logged
from howdah.build.supply import entry_from_bundle
from howdah.distribution import installing
from howdah.errors import HowdahError

_SOURCES = Path(__file__).parent
FIRST = _SOURCES / "first.h"  # the duties of every guest's first process
_CONFINE = (_SOURCES / "confine.h", _SOURCES / "refuse.h")  # the launcher's confinement of guests
_PROGRAMS = {
    "launch": ("launch.c", ("-static",)),  # static: it starts programs that bring their own C library
    "shim.so": ("shim.c", ("-shared", "-fPIC")),
    "populate.so": ("populate.c", ("-shared", "-fPIC")),
    "init": ("init.c", ("-static",)),  # static: the guest's C library may be older or newer than the machine's
}

MOUNT_POINT = "mount"
_NAMED = "content"  # name of the file with the key


@dataclass(frozen=True)
class Tools:
    """Paths of the compiled programs; ``key`` identifies their content.

    ``directory`` holds them and is also the initial root file system for a guest's first process.
    """

    directory: Path
    launch: Path
    shim: Path
    key: str

    @property
    def populate(self) -> Path:
        return self.directory / "populate.so"


@remembered
def compiler_version() -> str:
    """Return the first line of ``gcc --version``."""
    return _version_of("gcc", "the C compiler gcc is not installed", installing("gcc", "libc6-dev"))


@remembered
def linker_version() -> str:
    """Return the first line of ``ld --version``."""
    return _version_of("ld", "the linker ld is not installed", installing("binutils"))


def _version_of(program: str, missing: str, hint: str) -> str:
    try:
        answer = subprocess.run([program, "--version"], capture_output=True, check=True)
    except (OSError, subprocess.CalledProcessError) as error:
        raise HowdahError(missing, hint=hint) from error
    said = answer.stdout.decode(errors="replace")
    if not said.strip():
        raise HowdahError(f"{shutil.which(program)} says no version", hint=f"Is it {program}? {hint}")
    return said.splitlines()[0]


def toolchain() -> str:
    """Return versions, files, sizes and times of compiler, assembler, linker and C library, to detect changes."""
    found = [compiler_version(), linker_version()]
    for kind, name in (("prog", "gcc"), ("prog", "cc1"), ("prog", "as"), ("prog", "ld"), ("file", "libc.so")):
        asked = ["gcc", f"-print-{kind}-name={name}"]
        answer = subprocess.run(asked, capture_output=True, text=True, check=True).stdout.strip()
        place = shutil.which(answer) or answer
        status = Path(place).stat() if Path(place).exists() else None
        found.append(f"{place} {status.st_size} {status.st_mtime_ns}" if status else place)
    return "\n".join(found)


def tools_recipe() -> str:
    """Return a key of the sources and compiler options, but not of the compiler."""
    parts: list[str | bytes] = [FIRST.read_bytes(), *(each.read_bytes() for each in _CONFINE)]
    for program, (source, options) in _PROGRAMS.items():
        parts += [program, *options, (_SOURCES / source).read_bytes()]
    return content_key(*parts)


def build_tools(cache: Cache) -> Tools:
    """Return the tools from a bundle or the cache, or compile them (a second)."""
    recipe = tools_recipe()
    given = entry_from_bundle("tool", recipe, cache)
    if given is not None:
        return load_tools(given)

    def compile_all(directory: Path, log: Path) -> None:
        (directory / MOUNT_POINT).mkdir()
        for program, (source, options) in _PROGRAMS.items():
            compile_c(_SOURCES / source, directory / program, log, *options)
        (directory / _NAMED).write_text(content_key(*(file_sha256(directory / program) for program in _PROGRAMS)))

    return load_tools(cache.build("tool", content_key(recipe, compiler_version()), compile_all))


def compile_c(source: Path, target: Path, log: Path, *options: str) -> None:
    """Compile a C program or library. Raises HowdahError if it does not compile."""
    command = ["gcc", "-O2", "-Wall", *options, "-o", str(target), str(source)]
    try:
        # In the unfinished entry, temporary files of a killed gcc are removed with it.
        run_logged(command, log, environment={"TMPDIR": str(target.parent)})
    except CommandFailedError as error:
        raise HowdahError(
            "does not compile: " + " / ".join(error.tail[-3:]),
            where=str(source),
            hint=f"The full output is in {log}. A missing header or library: {installing('gcc', 'libc6-dev')}",
        ) from error


def load_tools(entry: Path) -> Tools:
    """Return the tools in an entry of the cache."""
    key = (entry / _NAMED).read_text()
    return Tools(directory=entry, launch=entry / "launch", shim=entry / "shim.so", key=key)


_HEADER = Path(__file__).with_name("preload.h")


def library(source: Path, cache: Cache) -> Path:
    """Compile a C file to a shared library. Raises HowdahError if it does not compile."""
    name = f"{source.stem}.so"

    def compile_it(directory: Path, log: Path) -> None:
        compile_c(source, directory / name, log, "-shared", "-fPIC", f"-I{_HEADER.parent}")

    key = content_key(compiler_version(), name, _HEADER.read_bytes(), source.read_bytes())
    return cache.build("preload", key, compile_it) / name


def variable(file: Path) -> str:
    """Return the assignment for env(1) that preloads the library."""
    return f"LD_PRELOAD={file}"
