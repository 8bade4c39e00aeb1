# SPDX-License-Identifier: Apache-2.0
"""Machines are set up by a stand-in for ansible-playbook, which says what its list of attempts tells it to."""

from __future__ import annotations

from pathlib import Path

import pytest

from howdah.errors import HowdahError
from howdah.machines import provision as module
from howdah.machines.inventory import MachineSetDirectory
from howdah.machines.provision import LOG, Provisioned, provision

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
