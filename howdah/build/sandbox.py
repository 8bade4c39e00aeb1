# SPDX-License-Identifier: Apache-2.0
"""What builds a stranger's kernel, module or stack: a process that reaches the machine's tools and the build alone.

A makefile is a program. One that this machine's user brought runs as whatever else they start. One that a plan from
elsewhere names (howdah/work/trust.py) runs within the launcher's bounds (confine.h). It writes to the build and to a
HOME and TMPDIR of its own. It reads the system's programs and what it is given. It has no network, no privilege, and
of the user's environment PATH alone.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from howdah.errors import HowdahError

_INHERITED = ("PATH",)
_strangers = False  # of this process: what a plan names is built in its threads, too


@contextmanager
def building_for_a_stranger(*, is_stranger: bool) -> Iterator[None]:
    """What is built meanwhile was named by somebody else."""
    global _strangers
    before, _strangers = _strangers, is_stranger
    try:
        yield
    finally:
        _strangers = before


def mark() -> list[str]:
    """Part of a key where what fails is kept as well: a sandbox may be why."""
    return ["sandbox"] if _strangers else []


@dataclass(frozen=True)
class Sandbox:
    """``home`` is a directory that the launcher makes and removes, ``write`` is where the build is and ``read`` what it
    is made of."""

    launcher: Path
    home: Path
    write: tuple[Path, ...]
    read: tuple[Path, ...] = ()

    def command(self, words: Sequence[str]) -> list[str]:
        """The same command within its bounds."""
        program = words[0] if "/" in words[0] else shutil.which(words[0]) or words[0]
        places = [f"read{number}={place}" for number, place in enumerate(self.read)]
        places += [f"write{number}+={place}" for number, place in enumerate(self.write)]
        return [str(self.launcher), "build", str(os.getpid()), str(self.home), *places, "--", program, *words[1:]]

    def environment(self, given: Mapping[str, str]) -> dict[str, str]:
        """Of the command; HOME and a directory in TMPDIR are the launcher's to name."""
        inherited = {name: os.environ[name] for name in _INHERITED if name in os.environ}
        return {**inherited, "LC_ALL": "C.UTF-8", **given, "TMPDIR": str(self.home.parent)}

    def require_file(self, source: Path) -> None:
        """Raises HowdahError for a link, which would bring a file of the user's into the build."""
        if source.is_symlink():
            raise HowdahError(
                f"a stranger's sources hold a link to {source.readlink()}",
                where=str(source),
                hint="It is not followed.",
            )

    def check(self) -> None:
        """Raises HowdahError where the build left a link out of its places, or something that is not a file or a
        directory. Call it before anything of the build is read."""
        for place in self.write:
            for path in _entries(place):
                if path.is_symlink():
                    if not self._holds(Path(os.path.realpath(path))):
                        raise HowdahError(
                            f"the build leaves a link to {path.readlink()}, which is not its own",
                            where=str(path),
                            hint="It is not used. A stranger's build may reach its own files alone.",
                        )
                elif not path.is_file() and not path.is_dir():
                    raise HowdahError("the build leaves what is not a file or a directory", where=str(path))

    def _holds(self, path: Path) -> bool:
        return any(path.is_relative_to(os.path.realpath(place)) for place in (*self.write, *self.read))


def sandbox_of(entry: Path, launcher: Path, write: Sequence[Path], read: Sequence[Path] = ()) -> Sandbox | None:
    """The one in which an ``entry`` of the cache that is not whole yet is built; None where it is the user's own.

    Its HOME is next to the entry and is swept up with it. A build that could write there could have a link waiting
    for the next one.
    """
    if not _strangers:
        return None
    entry.parent.mkdir(parents=True, exist_ok=True)
    return Sandbox(launcher, entry.with_name(f"{entry.name}.home"), tuple(write), tuple(read))


def _entries(place: Path) -> Iterator[Path]:
    for here, directories, names in os.walk(place):
        for name in (*names, *directories):
            yield Path(here) / name
