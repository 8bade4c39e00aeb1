# SPDX-License-Identifier: Apache-2.0
"""Lab files: what is refused, and where; the inventory and the keys that come of one."""

from __future__ import annotations

import json
import shutil
import stat
from pathlib import Path
from typing import Any

import pytest

from howdah.command.main import main
from howdah.errors import HowdahError, ProfileError
from howdah.lab.inventory import directory_of, inventory_of
from howdah.lab.lab import load_lab

ROOT = Path(__file__).resolve().parents[2]
EXAMPLE = ROOT / "playbooks" / "labs" / "example.yaml"
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
    user: lab
    links: {eth1: 10.1.0.2/24, eth2: 10.2.0.2/24}
    control: eth2
"""


def _lab_file(directory: Path, text: str) -> Path:
    path = directory / "lab.yaml"
    path.write_text(text, encoding="utf-8")
    return path


def _inventory(path: Path, parent: Path) -> dict[str, Any]:
    lab = load_lab(path)
    found: dict[str, Any] = inventory_of(lab, directory_of(lab, parent), path)["all"]
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
    found = _inventory(_lab_file(tmp_path, GOOD), tmp_path)
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
        ("control: eth2", "control: eth3", 13, "none of the host's links (eth1, eth2)"),
        ("monitor: b", "monitor: c", 2, "there is no host 'c'"),
        ("  a:\n", "  linux:\n", 4, "name of a group"),
        ("user: lab", "user: -oProxyCommand=x", 11, "does not have the form"),
        ("b.example", "-oProxyCommand=x", 10, "an address or a host name"),
        ("user: lab", "system: freebsd", 9, "can only be a receiver"),
        ("user: lab", "image: disk.img", 11, "installed already"),
        ("user: lab", "usr: lab", 11, "did you mean user"),
    ],
)
def test_a_wrong_lab_file_is_refused_with_its_line(tmp_path: Path, old: str, new: str, line: int, said: str) -> None:
    assert old in GOOD
    path = _lab_file(tmp_path, GOOD.replace(old, new))
    with pytest.raises(ProfileError) as caught:
        load_lab(path)
    assert said in str(caught.value)
    assert f"lab.yaml:{line}:" in str(caught.value)


def test_an_image_that_is_not_there_is_refused_and_one_that_is_reaches_the_inventory(tmp_path: Path) -> None:
    text = GOOD.replace("role: emulator", "role: receiver\n    system: windows\n    image: disk.img").replace(
        "monitor: b\n", ""
    )
    path = _lab_file(tmp_path, text)
    with pytest.raises(ProfileError, match=r"there is no file disk\.img"):
        load_lab(path)
    (tmp_path / "disk.img").write_bytes(b"")
    host = _inventory(path, tmp_path)["hosts"]["b"]
    assert host["howdah_image"] == str(tmp_path / "disk.img")
    assert (host["ansible_connection"], host["ansible_shell_type"]) == ("ssh", "powershell")
    assert "ansible_become" not in host


def test_a_lab_gets_a_key_of_its_own_once_and_loses_it_with_the_lab(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    if shutil.which("ssh-keygen") is None:
        pytest.skip("ssh-keygen is not installed")
    path, labs = _lab_file(tmp_path, GOOD), tmp_path / "labs"
    arguments = [str(path), "--labs", str(labs), "--json"]
    assert main(["lab", "inventory", *arguments]) == 0
    first = json.loads(capsys.readouterr().out)
    key = labs / "attic" / "id_ed25519"
    assert first["new_key"] is True
    assert stat.S_IMODE(key.stat().st_mode) == 0o600
    assert stat.S_IMODE(key.parent.stat().st_mode) == 0o700
    before, public = (labs / "attic" / "inventory.json").stat().st_mtime_ns, Path(first["public_key"]).read_text()
    assert public.startswith("ssh-ed25519 ")
    assert main(["lab", "inventory", *arguments]) == 0
    assert json.loads(capsys.readouterr().out)["new_key"] is False
    assert Path(first["public_key"]).read_text() == public
    assert (labs / "attic" / "inventory.json").stat().st_mtime_ns == before
    assert main(["lab", "remove", *arguments]) == 0
    assert not (labs / "attic").exists()
    assert main(["lab", "remove", *arguments]) == 1


def test_a_directory_of_someone_else_is_neither_written_nor_removed(tmp_path: Path) -> None:
    path, labs = _lab_file(tmp_path, GOOD), tmp_path / "labs"
    (labs / "attic").mkdir(parents=True)
    (labs / "attic" / "thesis.tex").touch()
    assert main(["lab", "inventory", str(path), "--labs", str(labs)]) == 1
    assert main(["lab", "remove", str(path), "--labs", str(labs)]) == 1
    assert [entry.name for entry in (labs / "attic").iterdir()] == ["thesis.tex"]


def test_a_directory_that_ssh_would_read_as_two_words_is_refused(tmp_path: Path) -> None:
    with pytest.raises(HowdahError, match="must not hold spaces"):
        directory_of(load_lab(EXAMPLE), tmp_path / "my labs")


def test_labs_lie_where_git_does_not_look() -> None:
    assert "/var/" in (ROOT / ".gitignore").read_text(encoding="utf-8").splitlines()
