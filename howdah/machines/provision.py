# SPDX-License-Identifier: Apache-2.0
"""Runs playbooks/site.yml on several machines over SSH, and reports what it changed and where it failed."""

from __future__ import annotations

import importlib.util
import os
import re
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from howdah.build.supervise import CommandFailedError, run_logged
from howdah.errors import HowdahError
from howdah.machines.image import ansible_playbook
from howdah.machines.inventory import MachineSetDirectory
from howdah.place import PLAYBOOKS

_STRATEGY = "mitogen_linear"
# Ansible guarantees nothing to third-party strategies, so they are not used with untested releases.
_NEWEST_TRIED = (2, 19)


def strategy(program: Path) -> dict[str, str]:
    """Return variables that make this ansible-playbook use Mitogen's strategy: one Python process on each machine.

    Ansible alone starts Python on the machine for every task, which takes an emulated processor seconds.

    Empty if Mitogen is not installed, if ansible-playbook belongs to another Python environment, or if ansible-core is
    newer than the tested releases. A user's own ``ANSIBLE_STRATEGY`` has precedence.
    """
    if program.parent != Path(sys.executable).parent or not _is_tested_release():
        return {}
    found = importlib.util.find_spec("ansible_mitogen")
    if found is None or not found.submodule_search_locations:
        return {}
    plug_ins = Path(next(iter(found.submodule_search_locations))) / "plugins" / "strategy"
    return {"ANSIBLE_STRATEGY": _STRATEGY, "ANSIBLE_STRATEGY_PLUGINS": str(plug_ins)}


def _is_tested_release() -> bool:
    try:
        release = version("ansible-core")
    except PackageNotFoundError:
        return False
    found = re.match(r"(\d+)\.(\d+)", release)
    return found is not None and (int(found[1]), int(found[2])) <= _NEWEST_TRIED


LOG = "provision.log"
_RECAP = re.compile(
    r"^(?P<host>\S+)\s*: ok=(?P<ok>\d+)\s+changed=(?P<changed>\d+)\s+unreachable=(?P<away>\d+)\s+failed=(?P<failed>\d+)"
)
_TASK = re.compile(r"^(?:TASK|RUNNING HANDLER) \[(?P<what>.*?)\] \*")
_PROBLEM = re.compile(r"^(?:fatal: \[(?P<host>[^\]]+)\]: )(?P<kind>\w+)! => (?P<what>.*)$")
_CHANGED = re.compile(r"^changed: \[(?P<host>[^\]]+)\]")
_MESSAGE = re.compile(r'"msg": "(?P<text>(?:[^"\\]|\\.)*)"')
_FORKS = 16
_AWAY = "UNREACHABLE"
_ATTEMPTS = 3

Progress = Callable[[str, int, int], None]


@dataclass(frozen=True)
class Provisioned:
    """The result. ``changed`` counts tasks by host; ``tasks`` names those that changed something, as ``HOST: TASK``."""

    changed: dict[str, int]
    tasks: list[str]
    took_s: float


class _Listener:
    """Follows the output of ansible-playbook."""

    def __init__(self, progress: Progress) -> None:
        self.changed: dict[str, int] = {}
        self.tasks: list[str] = []
        self.problems: list[str] = []
        self.kinds: set[str] = set()
        self._task = ""
        self._number = 0
        self._progress = progress

    def __call__(self, line: str) -> None:
        if match := _TASK.match(line):
            self._task = match["what"]
            self._number += 1
            self._progress(f"set up: {self._task}", self._number, 0)
        elif match := _CHANGED.match(line):
            self.tasks.append(f"{match['host']}: {self._task}")
        elif match := _PROBLEM.match(line):
            self.kinds.add(match["kind"])
            said = _MESSAGE.search(match["what"])
            text = said["text"].replace("\\n", " ") if said else match["what"]
            self.problems.append(f"{match['host']}, {self._task or 'gathering facts'}: {text[:300]}")
        elif match := _RECAP.match(line):
            self.changed[match["host"]] = self.changed.get(match["host"], 0) + int(match["changed"])

    def lost_alone(self) -> bool:
        """Return whether only connections failed, so that another attempt may succeed."""
        return self.kinds == {_AWAY}

    def again(self) -> None:
        """Reset for another attempt."""
        self.problems, self.kinds, self._task, self._number = [], set(), "", 0


def provision(
    directory: MachineSetDirectory, launcher: Path | None, progress: Progress, *arguments: str
) -> Provisioned:
    """Run the playbook; its output goes to provision.log in the directory, the previous log to .before.

    A machine on a busy processor may lose a connection: then the playbook runs again, at most twice. ``arguments`` are
    passed to ansible-playbook. Raises HowdahError that names host, task and reason.
    """
    log = directory.path / LOG
    if log.exists():
        log.replace(log.with_name(f"{LOG}.before"))
    listener = _Listener(progress)
    environment = {name: value for name, value in os.environ.items() if name.startswith("ANSIBLE_")} | {
        "ANSIBLE_CONFIG": str(PLAYBOOKS / "ansible.cfg"),
        "ANSIBLE_NOCOLOR": "1",
        "ANSIBLE_FORCE_COLOR": "0",
        "ANSIBLE_FORKS": str(_FORKS),
        "ANSIBLE_HOST_KEY_CHECKING": "True",
        # Compression, Ansible's default, costs an emulated processor time and is useless within one machine.
        "ANSIBLE_SSH_ARGS": "-o ControlMaster=auto -o ControlPersist=120s -o ServerAliveInterval=10",
        "ANSIBLE_TIMEOUT": "60",
    }
    program = ansible_playbook()
    environment = strategy(program) | environment
    command = [str(program), "-i", str(directory.inventory), *arguments, str(PLAYBOOKS / "site.yml")]
    started = time.monotonic()
    for attempt in range(_ATTEMPTS):
        try:
            run_logged(command, log, launcher=launcher, on_line=listener, environment=environment)
            break
        except CommandFailedError as error:
            if listener.lost_alone() and attempt + 1 < _ATTEMPTS:
                progress(f"set up again: {listener.problems[0]}", 0, 0)
                listener.again()
                continue
            said = listener.problems or error.tail[-3:]
            raise HowdahError(
                f"the machines cannot be set up: {said[0]}",
                where=str(log),
                hint="\n  ".join([*(f"also {one}" for one in said[1:4]), "The log has Ansible's full output."]),
            ) from error
    return Provisioned(listener.changed, listener.tasks, round(time.monotonic() - started, 1))
