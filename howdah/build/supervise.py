# SPDX-License-Identifier: Apache-2.0
"""Commands that build something: their output logged and read line by line, and no process left when we are killed."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections import deque
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path

from howdah.build.sandbox import Sandbox
from howdah.errors import HowdahError

_TAIL_LINES = 12


class CommandFailedError(HowdahError):
    """A command ended with a status other than 0. ``tail`` holds its last lines.

    Who knows what the command was for says so instead; else a person reads this.
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
    """Run a command with standard output and error appended to ``log``; ``on_line`` sees each line.

    ``inherit`` names the variables of the environment that the command sees beside ``environment`` (None: all), and
    ``keep_open`` the file descriptors that it inherits.

    With ``launcher`` (the built ``launch`` program) everything the command started ends when this process ends,
    however it ends. With ``sandbox`` it runs in there, and ``inherit`` says nothing.

    Raises CommandFailedError, or HowdahError when the program does not exist or the sandbox was misused.
    """
    supervised = [*command]
    if sandbox:
        supervised = sandbox.command(command)
    elif launcher:
        program = command[0] if "/" in command[0] else shutil.which(command[0]) or command[0]
        supervised = [str(launcher), "watch", str(os.getpid()), "-", "--", program, *command[1:]]
    if sandbox:
        variables = sandbox.environment(environment or {})
        cwd = cwd or next(iter(sandbox.write), None)
    else:
        inherited = {name: value for name, value in os.environ.items() if inherit is None or name in inherit}
        variables = {**inherited, "LC_ALL": "C.UTF-8", **(environment or {})}
    tail: deque[str] = deque(maxlen=_TAIL_LINES)
    with log.open("a", encoding="utf-8", buffering=1) as file:
        file.write(f"$ {' '.join(command)}{' (in a sandbox: no network, an empty HOME)' if sandbox else ''}\n")
        file.flush()
        try:
            process = subprocess.Popen(
                supervised,
                cwd=cwd,
                env=variables,
                pass_fds=tuple(keep_open),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                errors="replace",
                start_new_session=True,  # Ctrl-C reaches us, and we end the command in order
            )
        except FileNotFoundError as error:
            raise HowdahError(
                f"the program {error.filename} is not installed", hint="'howdah doctor' names what to install."
            ) from error
        assert process.stdout is not None
        with process.stdout:
            try:
                for line in process.stdout:
                    file.write(line)
                    tail.append(line.rstrip("\n"))
                    if on_line:
                        on_line(line.rstrip("\n"))
                status = process.wait()
            except BaseException:
                process.terminate()
                process.wait()
                raise
    if sandbox:
        sandbox.check()
    if status:
        raise CommandFailedError(command, status, list(tail), log)
