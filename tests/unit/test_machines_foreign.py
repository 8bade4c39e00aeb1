# SPDX-License-Identifier: Apache-2.0
"""A directory of a machine set is acted on: its processes are ended, its hosts reached, its key allowed on hosts."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from howdah.command.main import main
from howdah.errors import HowdahError
from howdah.machines.inventory import directory_of, write_inventory
from howdah.machines.machine_set import load_machine_set
from howdah.place import PLAYBOOKS

FILE = PLAYBOOKS / "machines" / "virtual.yaml"


def _made(parent: Path) -> Path:
    machine_set = load_machine_set(FILE)
    directory = directory_of(machine_set, parent)
    write_inventory(machine_set, directory, FILE)
    return directory.path


def _evil_state(directory: Path) -> None:
    """A port that Ansible would take for an expression, and a network namespace that would be deleted."""
    machine = {
        "process": {"pid": 1, "start_ticks": 1, "mark": "x"},
        "port": "{{ lookup('pipe', 'touch /tmp/x') }}",
        "accelerator": "tcg",
        "why_no_kvm": None,
        "kernel": "k",
        "release": None,
        "source": "s",
        "macs": {},
    }
    state = {"format": 1, "machines": {"sender": machine}, "times_s": {}, "namespace": "somebody's"}
    (directory / "state.json").write_text(json.dumps(state))


def test_a_directory_of_ones_own_is_taken_again(tmp_path: Path) -> None:
    assert _made(tmp_path) == _made(tmp_path)


@pytest.mark.parametrize("how", ["no mark", "an old mark", "another user's", "of another directory"])
def test_a_directory_that_somebody_gave_is_refused(how: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    there = _made(tmp_path / "there")
    (tmp_path / "here").mkdir()
    here = Path(shutil.copytree(there, tmp_path / "here" / there.name))
    _evil_state(here)
    if how == "no mark":
        (here / ".howdah-machines").unlink()
    elif how == "an old mark":
        (here / ".howdah-machines").write_text("made by howdah machines\n")
    elif how == "another user's":
        monkeypatch.setenv("HOWDAH_CACHE", str(tmp_path / "another"))
    before = sorted((each.name, each.read_bytes()) for each in here.iterdir())
    with pytest.raises(HowdahError, match="not one that you made here") as caught:
        directory_of(load_machine_set(FILE), tmp_path / "here")
    assert "--machine-sets" in str(caught.value.hint)
    for action in ("inventory", "status", "down", "remove", "provision"):
        assert main(["machines", action, str(FILE), "--machine-sets", str(tmp_path / "here")]) == 1, action
    assert sorted((each.name, each.read_bytes()) for each in here.iterdir()) == before
