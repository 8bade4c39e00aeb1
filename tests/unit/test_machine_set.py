# SPDX-License-Identifier: Apache-2.0
"""Machine set files: what is refused, and where; inventory and keys; acting on a machine set by its directory."""

from __future__ import annotations

import json
import shlex
import shutil
import stat
from pathlib import Path
from typing import Any

import pytest

from howdah.command.main import main
from howdah.errors import HowdahError, ProfileError
from howdah.machines.inventory import directory_of, inventory_of, write_inventory
from howdah.machines.machine_set import load_machine_set
from howdah.place import PLAYBOOKS

ROOT = Path(__file__).resolve().parents[2]
EXAMPLE = ROOT / "playbooks" / "machines" / "example.yaml"
GOOD = """\
name: attic
monitor: b
hosts:
  a:
    role: sender
    address: 192.0.2.1
    links: {eth1: 10.1.0.1/24}
  b:
    role: emulator
    address: b.example
    user: tester
    links: {eth1: 10.1.0.2/24, eth2: 10.2.0.2/24}
    control: eth2
"""


def _machines_file(directory: Path, text: str) -> Path:
    path = directory / "machines.yaml"
    path.write_text(text, encoding="utf-8")
    return path


def _inventory(path: Path, parent: Path) -> dict[str, Any]:
    machine_set = load_machine_set(path)
    found: dict[str, Any] = inventory_of(machine_set, directory_of(machine_set, parent), path)["all"]
    return found


def test_every_host_is_in_the_groups_of_its_role_and_of_its_system(tmp_path: Path) -> None:
    found = _inventory(EXAMPLE, tmp_path)
    members = {name: sorted(group["hosts"]) for name, group in found["children"].items()}
    assert members == {
        "senders": ["left"],
        "emulators": ["middle"],
        "receivers": ["beastie", "right"],
        "monitors": ["middle"],
        "linux": ["left", "middle", "right"],
        "freebsd": ["beastie"],
        "windows": [],
    }


def test_exporters_listen_on_loopback_unless_a_link_is_for_monitoring(tmp_path: Path) -> None:
    found = _inventory(_machines_file(tmp_path, GOOD), tmp_path)
    assert found["hosts"]["a"]["howdah_listen_address"] == "127.0.0.1"
    assert found["hosts"]["b"]["howdah_listen_address"] == "10.2.0.2"
    assert found["vars"]["howdah_scrape_targets"] == {"b": "10.2.0.2"}  # a's loopback is out of reach
    assert found["hosts"]["b"]["ansible_become"] is True
    assert "ansible_become" not in found["hosts"]["a"]


@pytest.mark.parametrize(
    ("old", "new", "line", "said"),
    [
        ("role: sender", "role: sendr", 5, "did you mean sender"),
        ("    address: 192.0.2.1\n", "", 4, "'address' is missing"),
        ("10.1.0.1/24", "10.1.0.1", 7, "the length is missing"),
        ("10.1.0.1/24", "10.1.0/24", 7, "an address with its length"),
        ("10.1.0.1/24", "10.1.0.2/24", 12, "also an address of a"),
        ("control: eth2", "control: eth3", 13, "not one of the host's links (eth1, eth2)"),
        ("monitor: b", "monitor: c", 2, "there is no host 'c'"),
        ("  a:\n", "  linux:\n", 4, "name of a group"),
        ("user: tester", "user: -oProxyCommand=x", 11, "does not have the form"),
        ("b.example", "-oProxyCommand=x", 10, "an address or a host name"),
        ("user: tester", "system: freebsd", 9, "can only be a receiver"),
        ("user: tester", "image: disk.img", 11, "installed already"),
        ("user: tester", "usr: tester", 11, "did you mean user"),
    ],
)
def test_a_wrong_machines_file_is_refused_with_its_line(
    tmp_path: Path, old: str, new: str, line: int, said: str
) -> None:
    assert old in GOOD
    path = _machines_file(tmp_path, GOOD.replace(old, new))
    with pytest.raises(ProfileError) as caught:
        load_machine_set(path)
    assert said in str(caught.value)
    assert f"machines.yaml:{line}:" in str(caught.value)


def test_what_is_no_machines_file_is_called_so(tmp_path: Path) -> None:
    with pytest.raises(ProfileError, match="a machines file is a mapping of fields, not a single value"):
        load_machine_set(_machines_file(tmp_path, "root:x:0\n"))
    with pytest.raises(ProfileError, match=r"the machines file is empty$"):
        load_machine_set(_machines_file(tmp_path, ""))


def test_an_image_that_is_not_there_is_refused_and_one_that_is_reaches_the_inventory(tmp_path: Path) -> None:
    text = GOOD.replace("role: emulator", "role: receiver\n    system: windows\n    image: disk.img").replace(
        "monitor: b\n", ""
    )
    path = _machines_file(tmp_path, text)
    with pytest.raises(ProfileError, match=r"there is no file disk\.img"):
        load_machine_set(path)
    (tmp_path / "disk.img").write_bytes(b"")
    host = _inventory(path, tmp_path)["hosts"]["b"]
    assert host["howdah_image"] == str(tmp_path / "disk.img")
    assert (host["ansible_connection"], host["ansible_shell_type"]) == ("ssh", "powershell")
    assert "ansible_become" not in host


def test_a_machine_set_gets_a_key_of_its_own_once_and_loses_it_with_the_machine_set(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    if shutil.which("ssh-keygen") is None:
        pytest.skip("ssh-keygen is not installed")
    path, machine_sets = _machines_file(tmp_path, GOOD), tmp_path / "sets"
    arguments = [str(path), "--machine-sets", str(machine_sets), "--json"]
    assert main(["machines", "inventory", *arguments]) == 0
    first = json.loads(capsys.readouterr().out)
    key = machine_sets / "attic" / "id_ed25519"
    assert first["new_key"] is True
    assert stat.S_IMODE(key.stat().st_mode) == 0o600
    assert stat.S_IMODE(key.parent.stat().st_mode) == 0o700
    before, public = (
        (machine_sets / "attic" / "inventory.json").stat().st_mtime_ns,
        Path(first["public_key"]).read_text(),
    )
    assert public.startswith("ssh-ed25519 ")
    assert main(["machines", "inventory", *arguments]) == 0
    assert json.loads(capsys.readouterr().out)["new_key"] is False
    assert Path(first["public_key"]).read_text() == public
    assert (machine_sets / "attic" / "inventory.json").stat().st_mtime_ns == before
    assert main(["machines", "remove", *arguments]) == 0
    assert not (machine_sets / "attic").exists()
    assert main(["machines", "remove", *arguments]) == 1


def test_a_directory_of_someone_else_is_neither_written_nor_removed(tmp_path: Path) -> None:
    path, machine_sets = _machines_file(tmp_path, GOOD), tmp_path / "sets"
    (machine_sets / "attic").mkdir(parents=True)
    (machine_sets / "attic" / "thesis.tex").touch()
    assert main(["machines", "inventory", str(path), "--machine-sets", str(machine_sets)]) == 1
    assert main(["machines", "remove", str(path), "--machine-sets", str(machine_sets)]) == 1
    assert [entry.name for entry in (machine_sets / "attic").iterdir()] == ["thesis.tex"]


def test_a_directory_that_ssh_would_read_as_two_words_is_quoted(tmp_path: Path) -> None:
    """Once for Ansible, which splits the words, and once for ssh, which takes several files."""
    machine_set = load_machine_set(EXAMPLE)
    directory = directory_of(machine_set, tmp_path / "my 100% machine sets")
    host = next(iter(inventory_of(machine_set, directory, EXAMPLE)["all"]["hosts"].values()))
    doubled = str(directory.path).replace("%", "%%")
    assert f'UserKnownHostsFile="{doubled}/known_hosts"' in shlex.split(host["ansible_ssh_common_args"])
    assert host["ansible_ssh_private_key_file"] == f"{doubled}/id_ed25519"


def test_machine_sets_lie_where_git_does_not_look() -> None:
    assert "/var/" in (ROOT / ".gitignore").read_text(encoding="utf-8").splitlines()


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
