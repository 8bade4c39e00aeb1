# SPDX-License-Identifier: Apache-2.0
"""Whether what a congestion control keeps in a socket fits there: ICSK_CA_PRIV_SIZE bytes, and TCP's own state behind.

Kernel code checks that with BUILD_BUG_ON(), where its author thinks of it. Here each source is compiled once more, to
nothing: as Kbuild did it, but with an inet_csk_ca() of which the compiler knows how long the area is (private.h).
"""

from __future__ import annotations

import re
import shlex
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from howdah.build.sandbox import Sandbox

_HEADER = Path(__file__).with_name("private.h")
_COMMAND = re.compile(r"^(?:saved)?cmd_\S+ := (?P<compiler>.*?) -c -o (?P<object>\S+) (?P<source>\S+\.c)(?:\s|$)")
_DEPENDENCIES = re.compile(r"-Wp,-MM?D,\S+")
_WARNING = re.compile(
    r"^(?P<file>[^\s:]+):(?P<line>\d+):\d+: warning: array subscript .(?P<struct>[^\[]+)\[\d+\]. is partly outside "
    r"array bounds of .unsigned char\[(?P<bytes>\d+)\]"
)


@dataclass(frozen=True)
class Oversized:
    """``object`` is the object file's path; ``file`` and ``line`` are where it is used."""

    object: str
    file: str
    line: int
    what: str


def private_header() -> bytes:
    return _HEADER.read_bytes()


def oversized(build: Path, directory: Path, sandbox: Sandbox | None = None) -> Iterator[Oversized]:
    """The first use of a struct that does not fit, of each source below ``directory`` that Kbuild has compiled.

    ``build`` is where the kernel's make ran the compiler. What it ran is written in ``directory``, where a makefile may
    write as well: of a stranger's modules it runs in their ``sandbox``.
    """
    for record in sorted(directory.rglob(".*.o.cmd")):
        found = _COMMAND.match(record.read_text(encoding="utf-8", errors="replace").partition("\n")[0])
        if found is None:
            continue
        compiler = _DEPENDENCIES.sub("", found["compiler"])
        header = shlex.quote(str(_HEADER))
        command = f"{compiler} -include {header} -Warray-bounds -S -o /dev/null {shlex.quote(found['source'])}"
        words = ["/bin/sh", "-c", command]
        answer = subprocess.run(
            sandbox.command(words) if sandbox else words,
            cwd=build,
            env=sandbox.environment({}) if sandbox else None,
            capture_output=True,
            text=True,
            errors="replace",
            check=False,
        )
        if sandbox:
            sandbox.check()
        for line in answer.stderr.splitlines():
            if (warned := _WARNING.match(line)) is not None:
                what = (
                    f"{warned['struct']} is longer than the {warned['bytes']} bytes that a socket has for it "
                    "(ICSK_CA_PRIV_SIZE), and would overwrite TCP's own state"
                )
                yield Oversized(found["object"], warned["file"], int(warned["line"]), what)
                break
