# SPDX-License-Identifier: Apache-2.0
"""Mitogen's strategy carries out plays with the installed ansible-core, and is left out where it might not."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from howdah.machines import provision as chosen
from howdah.machines.provision import strategy
from tests.playbook_sandbox import ansible_program

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
