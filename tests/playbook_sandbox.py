# SPDX-License-Identifier: Apache-2.0
"""The machine's own file system with a layer of memory over it: playbooks run on it for real and leave nothing.

Mount, process and network namespaces are new. systemd does not run there, so units are written and not started.
"""

from __future__ import annotations

import json
import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from howdah.machines.provision import strategy

ROOT = Path(__file__).resolve().parents[1]
PLAYBOOKS = ROOT / "playbooks"
LINK_ADDRESS = "10.10.1.1/24"
_SCRIPT = """\
set -eu
mount -t tmpfs -o mode=755 layer "$1"
mkdir "$1/upper" "$1/work" "$1/root"
mount -t overlay -o "lowerdir=/,upperdir=$1/upper,workdir=$1/work" overlay "$1/root"
mount -t proc proc "$1/root/proc"
mount --rbind /dev "$1/root/dev"
mount --bind "$2" "$1/root/mnt"
ip link set lo up
ip address add "$3" dev lo
shift 3
exec chroot {mount}/root "$@"
"""
_LIMIT_S = 900  # of one that hangs
# Of a script whose first run is Ansible alone: again COMMAND, with Mitogen, where it is installed, in half the time.
AGAIN = """\
again() {
  ANSIBLE_STRATEGY=$AGAIN_STRATEGY ANSIBLE_STRATEGY_PLUGINS=$AGAIN_PLUGINS "$@" --extra-vars "$AGAIN_VARIABLES"
}
"""


def ansible_program(name: str) -> str:
    """A program of ansible-core, from this Python's environment or from PATH; skips the test without it."""
    beside = Path(sys.executable).parent / name
    found = str(beside) if os.access(beside, os.X_OK) else shutil.which(name)
    if found is None:
        pytest.skip(f"{name} is not installed (make setup-test)")
    return found


def again_environment() -> list[str]:
    """What ``again`` reads, as words for env."""
    chosen = strategy(Path(ansible_program("ansible-playbook")))
    # Mitogen reads the interpreter's name as a command line, and this one's may have spaces.
    variables = {"ansible_python_interpreter": shlex.quote(sys.executable)} if chosen else {}
    return [
        f"AGAIN_STRATEGY={chosen.get('ANSIBLE_STRATEGY', 'linear')}",
        f"AGAIN_PLUGINS={chosen.get('ANSIBLE_STRATEGY_PLUGINS', '')}",
        f"AGAIN_VARIABLES={json.dumps(variables)}",
    ]


@dataclass(frozen=True)
class Sandbox:
    """``out`` is /mnt inside, and outlives it."""

    mount: Path
    out: Path

    def run(self, command: Sequence[str]) -> subprocess.CompletedProcess[str]:
        isolate = ["unshare", "--mount", "--pid", "--net", "--fork", "--kill-child", "--propagation", "private"]
        if os.geteuid() != 0:
            isolate += ["--user", "--map-root-user"]
        script = _SCRIPT.replace("{mount}", str(self.mount))
        environment = {name: value for name, value in os.environ.items() if not name.startswith("ANSIBLE_")}
        environment |= {"ANSIBLE_CONFIG": str(PLAYBOOKS / "ansible.cfg"), "ANSIBLE_NOCOLOR": "1"}
        return subprocess.run(
            [*isolate, "sh", "-c", script, "sandbox", str(self.mount), str(self.out), LINK_ADDRESS, *command],
            env=environment,
            capture_output=True,
            text=True,
            check=False,
            timeout=_LIMIT_S,
        )


def sandbox_or_skip(directory: Path) -> Sandbox:
    """A sandbox in ``directory``; where the machine allows none, the test is skipped with the reason."""
    sandbox = Sandbox(directory / "mount", directory / "out")
    for path in (sandbox.mount, sandbox.out):
        path.mkdir()
    try:
        probe = sandbox.run(["true"])
    except OSError as error:
        pytest.skip(f"no sandbox: {error}")
    if probe.returncode != 0:
        pytest.skip(f"no sandbox: {probe.stderr.strip()}")
    return sandbox
