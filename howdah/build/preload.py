# SPDX-License-Identifier: Apache-2.0
"""Small libraries of our own that are loaded into QEMU (LD_PRELOAD), compiled once."""

from __future__ import annotations

from pathlib import Path

from howdah.build.cache import Cache, content_key
from howdah.build.supervise import CommandFailedError, run_logged
from howdah.build.tools import compiler_version
from howdah.distribution import installing
from howdah.errors import HowdahError

_HEADER = Path(__file__).with_name("preload.h")


def library(source: Path, cache: Cache) -> Path:
    """The shared library a C file makes. Raises HowdahError where it does not compile."""
    name = f"{source.stem}.so"

    def compile_it(directory: Path, log: Path) -> None:
        try:
            options = ["-O2", "-Wall", "-shared", "-fPIC", f"-I{_HEADER.parent}"]
            run_logged(
                ["gcc", *options, "-o", str(directory / name), str(source)], log, environment={"TMPDIR": str(directory)}
            )
        except CommandFailedError as error:
            raise HowdahError(
                "does not compile: " + " / ".join(error.tail[-3:]),
                where=str(source),
                hint=f"The full output is in {log}. A missing header: {installing('gcc', 'libc6-dev')}",
            ) from error

    key = content_key(compiler_version(), name, _HEADER.read_bytes(), source.read_bytes())
    return cache.build("preload", key, compile_it) / name


def variable(file: Path) -> str:
    """What env(1) is to set."""
    return f"LD_PRELOAD={file}"
