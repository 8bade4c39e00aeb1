# SPDX-License-Identifier: Apache-2.0
"""Machines are set up by a stand-in for ansible-playbook, and plays are carried out by Mitogen's strategy."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from howdah.errors import HowdahError
from howdah.machines import provision as chosen
from howdah.machines import provision as module
from howdah.machines.inventory import MachineSetDirectory
from howdah.machines.provision import LOG, Provisioned, provision, strategy
from tests.playbook_sandbox import ansible_program

CLOSED = "kex_exchange_identification: Connection closed by remote host"
LOST = f"""\
TASK [Gathering Facts] *********
fatal: [sender]: UNREACHABLE! => {{"changed": false, "msg": "{CLOSED}", "unreachable": true}}
changed: [receiver]
sender : ok=0 changed=0 unreachable=1 failed=0 skipped=0
receiver : ok=5 changed=3 unreachable=0 failed=0 skipped=0
"""
FAILED = """\
TASK [Install packages] *********
fatal: [sender]: FAILED! => {"changed": false, "msg": "no such package"}
sender : ok=1 changed=0 unreachable=0 failed=1 skipped=0
"""
DONE = """\
TASK [Install packages] *********
changed: [sender]
sender : ok=9 changed=4 unreachable=0 failed=0 skipped=0
receiver : ok=9 changed=0 unreachable=0 failed=0 skipped=0
"""
# Each attempt prints the next file and ends with its status.
STAND_IN = """\
#!/bin/sh
set -eu
here=${0%/*}
number=$(($(cat "$here/count") + 1))
echo "$number" >"$here/count"
cat "$here/$number"
exit "$(cat "$here/$number.status")"
"""


def _set_up(place: Path, monkeypatch: pytest.MonkeyPatch, *attempts: str) -> tuple[Provisioned, list[str]]:
    place.mkdir()
    (place / "count").write_text("0")
    for number, said in enumerate(attempts, 1):
        (place / str(number)).write_text(said)
        (place / f"{number}.status").write_text("0" if said == DONE else "4")
    program = place / "ansible-playbook"
    program.write_text(STAND_IN)
    program.chmod(0o755)
    monkeypatch.setattr(module, "ansible_playbook", lambda: program)
    told: list[str] = []
    return provision(MachineSetDirectory(place), None, lambda what, *_: told.append(what)), told


def test_a_lost_connection_sets_the_machines_up_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found, told = _set_up(tmp_path / "set", monkeypatch, LOST, LOST, DONE)
    assert found.changed == {"sender": 4, "receiver": 6}
    assert found.tasks == ["receiver: Gathering Facts", "receiver: Gathering Facts", "sender: Install packages"]
    assert told.count(f"set up again: sender, Gathering Facts: {CLOSED}") == 2
    assert (tmp_path / "set" / LOG).read_text().count("UNREACHABLE") == 2


@pytest.mark.parametrize(
    ("attempts", "made", "said"),
    [
        ([LOST, LOST, LOST, DONE], 3, CLOSED),
        ([FAILED, DONE], 1, "no such package"),  # it would fail again
        ([LOST + FAILED, DONE], 1, CLOSED),
    ],
)
def test_what_fails_otherwise_or_thrice_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, attempts: list[str], made: int, said: str
) -> None:
    with pytest.raises(HowdahError, match="the machines cannot be set up: sender") as error:
        _set_up(tmp_path / "set", monkeypatch, *attempts)
    assert said in str(error.value)
    assert (tmp_path / "set" / "count").read_text().strip() == str(made)


_PLAY = """\
- hosts: all
  gather_facts: false
  tasks:
    - ansible.builtin.copy: {dest: "{{ place }}/first", content: "one", mode: "0644"}
    - ansible.builtin.command: cat "{{ place }}/first"
      register: said
    - ansible.builtin.copy: {dest: "{{ place }}/second", content: "{{ said.stdout }} and two", mode: "0644"}
"""


def _beside() -> Path:
    return Path(sys.executable).parent / "ansible-playbook"


def test_a_play_runs_in_one_python_process(tmp_path: Path) -> None:
    program = Path(ansible_program("ansible-playbook"))
    variables = strategy(program)
    assert variables["ANSIBLE_STRATEGY"] == "mitogen_linear", "the extra 'machines' brings Mitogen"
    play = tmp_path / "play.yml"
    play.write_text(_PLAY)
    inventory = tmp_path / "inventory.json"
    # Mitogen reads the interpreter's name as a command line, and this one's may have spaces.
    interpreter = shlex.quote(sys.executable)
    host = {"ansible_connection": "local", "ansible_python_interpreter": interpreter, "place": str(tmp_path)}
    inventory.write_text(json.dumps({"all": {"hosts": {"here": host}}}))
    environment = {name: value for name, value in os.environ.items() if not name.startswith("ANSIBLE_")} | variables
    done = subprocess.run(
        [str(program), "-vvv", "-i", str(inventory), str(play)],
        env=environment | {"HOME": str(tmp_path), "ANSIBLE_NOCOLOR": "1"},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert (tmp_path / "second").read_text() == "one and two"
    assert "AnsiballZ" not in done.stdout, "what Ansible alone copies to a machine for each task"


def test_left_out_for_another_environment_and_an_untried_release(monkeypatch: pytest.MonkeyPatch) -> None:
    ansible_program("ansible-playbook")
    assert strategy(Path("/usr/bin/ansible-playbook")) == {}
    monkeypatch.setattr(chosen, "version", lambda _name: "3.0.1")
    assert strategy(_beside()) == {}
    monkeypatch.setattr(chosen, "version", lambda _name: "2.19.0rc1")
    assert strategy(_beside())
