# SPDX-License-Identifier: Apache-2.0
"""One program of a flow: its directory, its start and its end."""

from __future__ import annotations

import signal
import subprocess
from collections.abc import Callable
from pathlib import Path

from howdah.agent.error import AgentError
from howdah.agent.traffic.running import note_running
from howdah.linux.namespace import Namespace
from howdah.plan.traffic import ProgramEnd
from howdah.record.agent import ProgramRecord

_SHARED = Path("/howdah/in/program")  # files of the profile, by flow and end
_PLACE = Path("/tmp/howdah-program")
_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
_TAIL_LINES, _TAIL_CHARACTERS = 3, 300
_ENDS_WITHIN_S = 1.0  # guest time allowed after the signal


class ProgramProcess:
    """A program of a flow; ``specification`` is ``client`` or ``server`` of the plan's ``program``. Its output is kept
    in raw/program/."""

    def __init__(self, label: str, end: str, specification: ProgramEnd, raw: Path, flow: int) -> None:
        self._label = label
        self.end = end
        self._specification = specification
        self._raw = raw
        self.output = raw / f"{flow}-{end}"
        self.directory = _PLACE / f"{flow}-{end}"
        self._shared = _SHARED / f"{flow}-{end}"
        self._command: list[str] = []
        self._environment: dict[str, str] = {}
        self.process: subprocess.Popen[bytes] | None = None
        self._end_requested = False

    @property
    def name(self) -> str:
        """The program's name in the profile."""
        return self._specification.command[0]

    @property
    def is_running(self) -> bool:
        return self.process is not None and self.process.poll() is None

    @property
    def failed(self) -> bool:
        """Whether it ended with a status other than 0 before it was asked to end."""
        return self.process is not None and self.process.poll() not in (None, 0) and not self._end_requested

    def make_directory(self, substitute: Callable[[str], str]) -> None:
        """Copy its files, and run the commands that must precede it. Raises AgentError."""
        self.directory.mkdir(parents=True)
        self.output.mkdir(exist_ok=True)
        if self._shared.is_dir():
            import shutil  # also loads archive modules

            shutil.copytree(self._shared, self.directory, dirs_exist_ok=True)
        self._command = [substitute(text) for text in self._specification.command]
        if self._specification.own:
            program = self.directory / Path(self._command[0]).name
            program.chmod(0o755)
            self._command[0] = str(program)
        given = {name: substitute(text) for name, text in self._specification.environment.items()}
        self._environment = {"PATH": _PATH, "HOME": str(self.directory), "LANG": "C.UTF-8", **given}
        for command in self._specification.before:
            self._run([substitute(text) for text in command])

    def _run(self, command: list[str]) -> None:
        try:
            done = subprocess.run(
                command, cwd=self.directory, env=self._environment, capture_output=True, stdin=subprocess.DEVNULL
            )
        except OSError as error:
            raise AgentError(self._label, f"{command[0]}: {error.strerror}") from error
        if done.returncode:
            said = done.stderr.decode(errors="replace").strip()[-_TAIL_CHARACTERS:]
            raise AgentError(self._label, f"{command[0]} ended with status {done.returncode}: {said}")

    def start(self, namespace: Namespace) -> None:
        """Start it in its host. Raises AgentError if it cannot be started."""
        with (
            (self.output / "stdout.txt").open("wb") as output,
            (self.output / "stderr.txt").open("wb") as errors,
            namespace.entered(),
        ):
            try:
                self.process = subprocess.Popen(
                    self._command,
                    cwd=self.directory,
                    env=self._environment,
                    stdin=subprocess.DEVNULL,
                    stdout=output,
                    stderr=errors,
                )
            except FileNotFoundError as error:
                what = "is not in the guest tree" if not self._specification.own else "names an interpreter that is not"
                raise AgentError(self._label, f"its {self.end} {self.name} {what}") from error
            except OSError as error:
                raise AgentError(self._label, f"its {self.end} {self.name} cannot be run: {error.strerror}") from error
        note_running(
            self._raw,
            self.process.pid,
            f"{self._label}: its {self.end} on {namespace.name}, {' '.join(self._command)}",
        )

    def reap(self) -> None:
        if self.process is not None:
            self.process.wait()
            note_running(self._raw, self.process.pid, None)

    def request_end(self) -> None:
        if self.is_running and self.process is not None:
            self._end_requested = True
            self.process.send_signal(getattr(signal, f"SIG{self._specification.signal}"))

    def kill(self) -> None:
        """End it at the end of the run: ask it to end, and kill it if it does not."""
        if not self.is_running or self.process is None:
            return
        self.request_end()
        try:
            self.process.wait(_ENDS_WITHIN_S)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        note_running(self._raw, self.process.pid, None)

    def describe_end(self) -> str:
        """Describe how it ended, with the last lines that it wrote."""
        if self.process is None:
            return f"its {self.end} {self.name} was not started"
        status = self.process.poll()
        if status is None:
            return f"its {self.end} {self.name} runs{self.last_output()}"
        how = f"was ended by {signal.Signals(-status).name}" if status < 0 else f"ended with status {status}"
        return f"its {self.end} {self.name} {how}{self.last_output()}"

    def last_output(self) -> str:
        """``: `` and the last lines of its standard error, or else of its output."""
        for name in ("stderr.txt", "stdout.txt"):
            try:
                text = (self.output / name).read_text(encoding="utf-8", errors="replace")
            except OSError:
                continue
            lines = [line.strip() for line in text.splitlines() if line.strip()][-_TAIL_LINES:]
            if lines:
                return f": {' / '.join(lines)[-_TAIL_CHARACTERS:]}"
        return ": it said nothing"

    def record(self) -> ProgramRecord:
        """The program's record for agent.json."""
        status = None if self.process is None else self.process.poll()
        return ProgramRecord(self._command, status, self._end_requested)
