# SPDX-License-Identifier: Apache-2.0
"""Runs commands and copies files on one of several machines, over SSH with the machine set's own key and known hosts.

Also waits for started machines to answer, with a limit, and explains each kind of failure.
"""

from __future__ import annotations

import os
import shlex
import shutil
import socket
import subprocess
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from howdah.distribution import installing
from howdah.errors import HowdahError, RunFailedError
from howdah.machines.state import StartedProcess
from howdah.record.kernel_log import console_tail

_CONNECT_S = 30
_FAILED = 255  # ssh's own failure; other statuses are the program's
_REFUSED = ("Permission denied (", "Too many authentication failures")
_OTHER_KEY = ("Host key verification failed", "REMOTE HOST IDENTIFICATION HAS CHANGED")


class UnreachableError(HowdahError):
    """SSH cannot connect. ``final``: waiting would not help (the key is refused, or another host answers)."""

    def __init__(self, what: str, *, final: bool, where: str, hint: str | None = None) -> None:
        super().__init__(what, where=where, hint=hint)
        self.final = final


@dataclass(frozen=True)
class SshRoute:
    """The SSH route to a machine. ``directory`` is the machine set's, with the sockets of the master connections."""

    name: str
    address: str
    port: int
    user: str
    directory: Path
    accept_new: bool  # whether to accept the key of an unknown host on first use

    def options(self) -> list[str]:
        """Return options for ssh and scp; run these in ``directory``: a socket's address has at most 107 characters."""
        checking = "accept-new" if self.accept_new else "yes"
        settings = {
            "IdentityFile": "id_ed25519",
            "IdentitiesOnly": "yes",
            "UserKnownHostsFile": "known_hosts",
            "GlobalKnownHostsFile": "/dev/null",
            "StrictHostKeyChecking": checking,
            "HostKeyAlias": self.name,
            "BatchMode": "yes",
            "ConnectTimeout": str(_CONNECT_S),
            "ServerAliveInterval": "10",
            "ServerAliveCountMax": "6",
            "ControlMaster": "auto",
            "ControlPath": f"ssh-{self.name}",
            "ControlPersist": "600",
            "LogLevel": "ERROR",
        }
        return ["-F", "/dev/null", *(word for name, value in settings.items() for word in ("-o", f"{name}={value}"))]

    def command(self, argv: Sequence[str], *, tty: bool = False) -> list[str]:
        """Return ssh's command line for a program on that machine, with its arguments quoted."""
        where = ["-p", str(self.port), "-l", self.user, self.address]
        return [_program("ssh"), *self.options(), *(["-t"] if tty else []), *where, "--", shlex.join(argv)]

    def run(
        self, argv: Sequence[str], *, timeout_s: float, data: bytes | None = None
    ) -> subprocess.CompletedProcess[bytes]:
        """Run a program to its end, whatever its status. Raises UnreachableError, or HowdahError at the timeout."""
        try:
            done = subprocess.run(
                self.command(argv),
                cwd=self.directory,
                input=data,
                stdin=subprocess.DEVNULL if data is None else None,
                capture_output=True,
                timeout=timeout_s,
                check=False,
                start_new_session=True,  # Ctrl-C reaches only this process
            )
        except subprocess.TimeoutExpired:
            raise HowdahError(f"{shlex.join(argv)} did not finish within {timeout_s:g} s", where=self.name) from None
        if done.returncode == _FAILED:
            self.explain(done.stderr.decode(errors="replace"))
        return done

    def spawn(self, argv: Sequence[str]) -> subprocess.Popen[bytes]:
        """Start a program with three pipes. Without the connection it gets SIGHUP if it has a terminal, else EOF."""
        return subprocess.Popen(
            self.command(argv),
            cwd=self.directory,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )

    def put(self, source: Path, target: str, *, timeout_s: float = 300) -> None:
        """Copy a file, or the content of a directory, to the absolute path ``target``, whose directories are made."""
        if source.is_dir():
            packed = subprocess.run(["tar", "-C", str(source), "-c", "-f", "-", "."], capture_output=True, check=True)
            content, receive = packed.stdout, 'mkdir -p "$1" && tar -C "$1" --no-same-owner -x -f -'
        else:
            content, receive = source.read_bytes(), 'mkdir -p "$(dirname "$1")" && cat > "$1"'
        done = self.run(["sh", "-c", receive, "put", target], timeout_s=timeout_s, data=content)
        if done.returncode:
            said = done.stderr.decode(errors="replace").strip()
            raise HowdahError(f"{source} cannot be copied to {target}: {said}", where=self.name)

    def get(self, source: str, target: Path, *, timeout_s: float = 300) -> None:
        """Copy the content of a directory of that machine into the local directory ``target``, which is made."""
        target.mkdir(parents=True, exist_ok=True)
        done = self.run(["tar", "-C", source, "-c", "-z", "-f", "-", "."], timeout_s=timeout_s)
        if done.returncode:
            said = done.stderr.decode(errors="replace").strip()
            raise HowdahError(f"{source} cannot be copied from the machine: {said}", where=self.name)
        unpacked = subprocess.run(
            ["tar", "-C", str(target), "--no-same-owner", "-x", "-z", "-f", "-"],
            input=done.stdout,
            capture_output=True,
            check=False,
        )
        if unpacked.returncode:
            raise HowdahError(
                f"what came of {source} cannot be unpacked: {unpacked.stderr.decode()}", where=str(target)
            )

    def close(self) -> None:
        """End the master connection, if it is open."""
        command = [_program("ssh"), *self.options(), "-O", "exit", "-p", str(self.port), self.address]
        subprocess.run(command, cwd=self.directory, stdin=subprocess.DEVNULL, capture_output=True, check=False)

    def explain(self, said: str) -> None:
        """Raise UnreachableError for the output of an ssh that could not connect."""
        where = f"{self.name} ({self.address}, port {self.port})"
        last = (said.strip().splitlines() or ["ssh said nothing"])[-1]
        if any(text in said for text in _REFUSED):
            raise UnreachableError(
                f"the machine answers and refuses the machine set's key: {last}",
                final=True,
                where=where,
                hint=f"{self.directory / 'id_ed25519.pub'} must be in ~/.ssh/authorized_keys of {self.user} there.",
            )
        if any(text in said for text in _OTHER_KEY):
            raise UnreachableError(
                f"the machine that answers is not the one this machine set knows: {last}",
                final=True,
                where=where,
                hint=f"If it was installed again, remove its line from {self.directory / 'known_hosts'}.",
            )
        raise UnreachableError(f"SSH cannot connect: {last}", final=False, where=where)


def _program(name: str) -> str:
    found = shutil.which(name, path=os.environ.get("PATH"))
    if found is None:
        raise HowdahError(f"the program {name} is missing", hint=installing("openssh-client"))
    return found


_POLL_S = 0.5
_BANNER_S = 2.0
_LOGIN_S = 90.0
_TAIL_LINES = 8
_PANIC = "Kernel panic"

Progress = Callable[[str, int, int], None]


@dataclass(frozen=True)
class Booting:
    """A machine that was started. ``console`` is the file of its output, ``said`` that of QEMU's."""

    name: str
    process: StartedProcess
    route: SshRoute
    console: Path
    said: Path


def await_ssh(machines: list[Booting], limit_s: float, progress: Progress) -> dict[str, float]:
    """Wait until every machine accepts SSH; return the seconds that each took from now.

    Raises RunFailedError if one ends or does not answer within ``limit_s``; UnreachableError at once if one refuses the
    machine set's key.
    """
    started = time.monotonic()
    ready: dict[str, float] = {}
    while len(ready) < len(machines):
        for machine in machines:
            if machine.name in ready:
                continue
            if not machine.process.is_alive():
                raise ended_error(machine)
            if _answers(machine.route) and _lets_in(machine.route):
                ready[machine.name] = round(time.monotonic() - started, 1)
        progress(f"boot: {', '.join(ready) or 'none'} of {len(machines)} ready", len(ready), len(machines))
        if len(ready) < len(machines):
            if time.monotonic() - started > limit_s:
                late = next(machine for machine in machines if machine.name not in ready)
                raise _timeout_error(late, limit_s)
            time.sleep(_POLL_S)
    return ready


def _answers(route: SshRoute) -> bool:
    """Return whether an SSH server sends its banner. An open connection proves nothing: QEMU itself accepts it."""
    try:
        with socket.create_connection((route.address, route.port), timeout=_BANNER_S) as connection:
            return connection.recv(4) == b"SSH-"
    except OSError:
        return False


def _lets_in(route: SshRoute) -> bool:
    try:
        return route.run(["true"], timeout_s=_LOGIN_S).returncode == 0
    except UnreachableError as error:
        if error.final:
            raise
        return False


def ended_error(machine: Booting) -> RunFailedError:
    """Return the error for a machine whose process has ended, with its last output and QEMU's."""
    return RunFailedError(
        f"the virtual machine {machine.name} ended{_last_words(machine.said)}",
        where=str(machine.console),
        hint=_console_hint(machine.console),
    )


def _timeout_error(machine: Booting, limit_s: float) -> HowdahError:
    return RunFailedError(
        f"the virtual machine {machine.name} runs, and does not answer by SSH after {limit_s:g} s",
        where=str(machine.console),
        hint=_console_hint(machine.console) + "\n  --boot-limit N waits N seconds.",
    )


def _last_words(said: Path) -> str:
    lines = said.read_text(errors="replace").strip().splitlines() if said.exists() else []
    return f": {' / '.join(lines[-3:])}" if lines else ""


def _console_hint(console: Path) -> str:
    lines = console_tail(console, 200)
    # The cause of a panic is before it; the registers after it are left out.
    panic = next((number for number, line in enumerate(lines) if _PANIC in line), len(lines))
    lines = lines[: panic + 1][-_TAIL_LINES:]
    if not lines:
        return "Nothing was written to its console: it has not come to start a kernel that does."
    shown = "\n    ".join(lines)
    return f"Last lines of its console:\n    {shown}"
