# SPDX-License-Identifier: Apache-2.0
"""Runs build commands: logs their output, reads it line by line, and leaves no process behind if howdah is killed.

A makefile is a program. One that this machine's user brought runs like anything else the user starts. One that a plan
from elsewhere names (howdah/work/trust.py) runs confined by the launcher (confine.h). It writes only to the build and
to a HOME and TMPDIR of its own, and reads only the system's programs and its inputs. It has no network, no privilege,
and only PATH of the user's environment.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections import deque
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from howdah.errors import HowdahError

_INHERITED = ("PATH",)
_strangers = False  # of the whole process: a plan's parts are also built in its threads


@contextmanager
def building_for_a_stranger(*, is_stranger: bool) -> Iterator[None]:
    """Mark what is built during the context as named by somebody else."""
    global _strangers
    before, _strangers = _strangers, is_stranger
    try:
        yield
    finally:
        _strangers = before


def sandbox_key() -> list[str]:
    """Return a part of the key for entries that also record failures: a sandbox may cause them."""
    return ["sandbox"] if _strangers else []


@dataclass(frozen=True)
class Sandbox:
    """The confinement of a build. ``home`` is a directory that the launcher makes and removes; ``write`` is where the
    build is, and ``read`` its inputs."""

    launcher: Path
    home: Path
    write: tuple[Path, ...]
    read: tuple[Path, ...] = ()

    def command(self, words: Sequence[str]) -> list[str]:
        """Return the command wrapped in the sandbox."""
        program = words[0] if "/" in words[0] else shutil.which(words[0]) or words[0]
        places = [f"read{number}={place}" for number, place in enumerate(self.read)]
        places += [f"write{number}+={place}" for number, place in enumerate(self.write)]
        return [str(self.launcher), "build", str(os.getpid()), str(self.home), *places, "--", program, *words[1:]]

    def environment(self, given: Mapping[str, str]) -> dict[str, str]:
        """Return the command's environment; the launcher sets HOME and a directory in TMPDIR."""
        inherited = {name: os.environ[name] for name in _INHERITED if name in os.environ}
        return {**inherited, "LC_ALL": "C.UTF-8", **given, "TMPDIR": str(self.home.parent)}

    def require_file(self, source: Path) -> None:
        """Raise HowdahError for a link, which would bring a file of the user's into the build."""
        if source.is_symlink():
            raise HowdahError(
                f"a stranger's sources hold a link to {source.readlink()}",
                where=str(source),
                hint="It is not followed.",
            )

    def check(self) -> None:
        """Raise HowdahError for a link out of the build's directories or a special file. Call it before reading any."""
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
    """Return the sandbox for building an incomplete cache ``entry``; None for the user's own builds.

    Its HOME is beside the entry and is swept up with it. Inside the entry, a build could leave a link there for the
    next one.
    """
    if not _strangers:
        return None
    entry.parent.mkdir(parents=True, exist_ok=True)
    return Sandbox(launcher, entry.with_name(f"{entry.name}.home"), tuple(write), tuple(read))


def _entries(place: Path) -> Iterator[Path]:
    for here, directories, names in os.walk(place):
        for name in (*names, *directories):
            yield Path(here) / name


_TAIL_LINES = 12


class CommandFailedError(HowdahError):
    """A command ended with a status other than 0. ``tail`` holds its last lines.

    Callers that know the command's purpose replace this error; otherwise the user reads it.
    """

    def __init__(self, command: Sequence[str], status: int, tail: list[str], log: Path | None = None) -> None:
        said = "Its last lines:\n    " + "\n    ".join(tail)
        super().__init__(
            f"{command[0]} ended with status {status}",
            where=str(log) if log else None,
            hint=said if tail else "It said nothing: somebody may have killed it.",
        )
        self.command = command
        self.status = status
        self.tail = tail


def run_logged(
    command: Sequence[str],
    log: Path,
    *,
    launcher: Path | None = None,
    sandbox: Sandbox | None = None,
    cwd: Path | None = None,
    environment: Mapping[str, str] | None = None,
    inherit: Collection[str] | None = None,
    keep_open: Collection[int] = (),
    on_line: Callable[[str], None] | None = None,
) -> None:
    """Run a command with standard output and error appended to ``log``; ``on_line`` gets each line.

    ``inherit`` names the environment variables that the command sees beside ``environment`` (None: all), and
    ``keep_open`` the file descriptors that it inherits.

    With ``launcher`` (the built ``launch`` program) everything that the command started ends when this process ends,
    however it ends. With ``sandbox`` the command is confined, and ``inherit`` is ignored.

    Raises CommandFailedError, or HowdahError if the program does not exist or the build violated the sandbox's rules.
    """
    words = _supervised(command, launcher, sandbox)
    variables = _environment(environment or {}, inherit, sandbox)
    if sandbox and cwd is None:
        cwd = next(iter(sandbox.write), None)
    tail: deque[str] = deque(maxlen=_TAIL_LINES)
    with log.open("a", encoding="utf-8", buffering=1) as file:
        file.write(f"$ {' '.join(command)}{' (in a sandbox: no network, an empty HOME)' if sandbox else ''}\n")
        file.flush()
        with _running(words, cwd, variables, keep_open) as process:
            assert process.stdout is not None
            for line in process.stdout:
                file.write(line)
                tail.append(line.rstrip("\n"))
                if on_line:
                    on_line(tail[-1])
    if sandbox:
        sandbox.check()
    if process.returncode:
        raise CommandFailedError(command, process.returncode, list(tail), log)


def _supervised(command: Sequence[str], launcher: Path | None, sandbox: Sandbox | None) -> list[str]:
    if sandbox:
        return sandbox.command(command)
    if launcher is None:
        return [*command]
    program = command[0] if "/" in command[0] else shutil.which(command[0]) or command[0]
    return [str(launcher), "watch", str(os.getpid()), "-", "--", program, *command[1:]]


def _environment(given: Mapping[str, str], inherit: Collection[str] | None, sandbox: Sandbox | None) -> dict[str, str]:
    if sandbox:
        return sandbox.environment(given)
    inherited = {name: value for name, value in os.environ.items() if inherit is None or name in inherit}
    return {**inherited, "LC_ALL": "C.UTF-8", **given}


@contextmanager
def _running(
    words: Sequence[str], cwd: Path | None, environment: Mapping[str, str], keep_open: Collection[int]
) -> Iterator[subprocess.Popen[str]]:
    """Start a command, and wait for it at the end of the context; an exception in the context ends it."""
    try:
        process = subprocess.Popen(
            words,
            cwd=cwd,
            env=environment,
            pass_fds=tuple(keep_open),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            start_new_session=True,  # Ctrl-C reaches only this process, which ends the command in order
        )
    except FileNotFoundError as error:
        raise HowdahError(
            f"the program {error.filename} is not installed", hint="'howdah doctor' names what to install."
        ) from error
    assert process.stdout is not None
    with process.stdout:
        try:
            yield process
            process.wait()
        except BaseException:
            process.terminate()
            process.wait()
            raise
