# SPDX-License-Identifier: Apache-2.0
"""Building the core, one plug-in and the pretended kernel around them into a program of user space, with sanitizers."""

from __future__ import annotations

import shutil
import subprocess
from functools import lru_cache
from pathlib import Path

from howdah.build.cache import Cache, content_key

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
MODULES = ROOT / "modules"
ALGORITHMS = MODULES / "algorithms"
CORE = sorted((MODULES / "slow_start").glob("*.c"))
COMPANION = ALGORITHMS / "ss_standard.c"  # in every program: what others are compared with and switched to
KERNEL = [HERE / f"{name}.c" for name in ("kernel", "parameter", "record", "hook", "sender", "sender_ack")]
RUNNER = [HERE / f"{name}.c" for name in ("path", "runner")]
FUZZER = [HERE / "fuzz.c"]
FLAGS = [
    "-std=gnu11",
    "-g",
    "-O1",
    "-fno-omit-frame-pointer",
    "-Wall",
    "-Wextra",
    "-Werror",
    "-Wno-unused-parameter",
    "-Wno-sign-compare",
    "-Wno-missing-field-initializers",
    "-DHAVE_TCP_SND_CWND",
    "-DHAVE_CONG_CONTROL_FLAG",
    *(f"-I{path.relative_to(ROOT)}" for path in (HERE / "shim", HERE, MODULES / "include", MODULES / "slow_start")),
]
FAST = ["-O3"]  # of the pretended kernel, in which a long life spends most of its time
SANITIZERS = ["-fsanitize=address,undefined", "-fno-sanitize-recover=all"]


def plug_ins() -> list[str]:
    """Names of every plug-in there is: ``ss_limited.c`` is ``limited``."""
    return sorted(path.stem.removeprefix("ss_") for path in ALGORITHMS.glob("ss_*.c"))


def compiler_for_fuzzing() -> str | None:
    """A clang that links libFuzzer, or None. Its runtime is a package of its own."""
    found = [*sorted(Path("/usr/bin").glob("clang-[0-9]*"), key=_version, reverse=True)]
    for clang in [shutil.which("clang"), *map(str, found)]:
        if clang and _links(clang, "-fsanitize=fuzzer,address,undefined"):
            return clang
    return None


def _version(path: Path) -> int:
    digits = path.name.removeprefix("clang-")
    return int(digits) if digits.isdigit() else 0


@lru_cache
def _links(compiler: str, *flags: str) -> bool:
    source = "int LLVMFuzzerTestOneInput(const unsigned char *d, unsigned long n) { return d[0] + n > 300; }"
    command = [compiler, "-x", "c", "-", *flags, "-o", "/dev/null"]
    return subprocess.run(command, input=source, text=True, capture_output=True, check=False).returncode == 0


def _objects(compiler: str, flags: list[str], sources: list[Path]) -> Path:
    """A directory with an object of each source; compiled once for what the sources and headers are now.

    Paths below the root are relative, and so are those in reports: another clone of the same files finds the objects.
    """
    headers = [
        *sorted(HERE.rglob("*.h")),
        *sorted(path for part in ("include", "slow_start", "algorithms") for path in (MODULES / part).glob("*.h")),
    ]
    version = subprocess.run([compiler, "--version"], capture_output=True, text=True, check=True).stdout
    ingredients = [path.read_bytes() for path in [*sources, *headers]]
    names = [str(path.relative_to(ROOT)) if path.is_relative_to(ROOT) else str(path) for path in sources]
    key = content_key(version, " ".join(flags), *names, *ingredients)

    def compile_all(directory: Path, log: Path) -> None:
        for source, path in zip(sources, names, strict=True):
            name = f'-DKBUILD_MODNAME="{source.stem}"' if source.stem.startswith("ss_") else "-DSHIM_CORE"
            place = f"-ffile-prefix-map={ROOT}=."
            command = [compiler, *flags, place, name, "-c", path, "-o", str(directory / f"{source.stem}.o")]
            _run(command, log)

    return Cache().build("decision", key, compile_all)


def _run(command: list[str], log: Path) -> None:
    answer = subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT)
    if answer.returncode:
        log.write_text(answer.stderr)
        raise AssertionError(f"{' '.join(command)}\n{answer.stderr[:4000]}")


def objects_of(plug_in: Path, fuzzer: str | None = None) -> list[Path]:
    """The directories with the objects of a plug-in's program; their names are the keys of what is in them."""
    compiler = fuzzer or "gcc"
    flags = [*FLAGS, *SANITIZERS]
    # What is to be explored is the modules, not the pretended kernel.
    coverage = ["-fsanitize=fuzzer-no-link"] if fuzzer else []
    groups = [CORE, [plug_in], *([[COMPANION]] if plug_in.name != COMPANION.name else [])]
    around = [*KERNEL, *(FUZZER if fuzzer else RUNNER)]
    modules = [_objects(compiler, [*flags, *coverage], group) for group in groups]
    return [*modules, _objects(compiler, [*flags, *FAST], around)]


def program(plug_in: Path, directory: Path, *, fuzzer: str | None = None) -> Path:
    """Link the program of a plug-in's source into a directory: a runner, or a fuzz target (``fuzzer`` is a clang)."""
    objects = [path for place in objects_of(plug_in, fuzzer) for path in sorted(place.glob("*.o"))]
    result = directory / f"{'fuzz' if fuzzer else 'run'}-{plug_in.stem}"
    link = [*SANITIZERS, *(["-fsanitize=fuzzer"] if fuzzer else [])]
    _run([fuzzer or "gcc", *link, *map(str, objects), "-o", str(result)], directory / f"{result.name}.log")
    return result
