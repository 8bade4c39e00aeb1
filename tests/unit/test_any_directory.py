# SPDX-License-Identifier: Apache-2.0
"""howdah works in a directory of any name; where it cannot, it says which character stops it and why."""

from __future__ import annotations

import json
import re
import shlex
import shutil
import socket
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from howdah.build.accelerator import QEMU
from howdah.build.cache import Cache, cache_root, require_plain
from howdah.build.kernel_source import find_source
from howdah.command.main import main
from howdah.engine.vm.machine import QemuMachine, Speed, command_line
from howdah.errors import HowdahError
from howdah.machines.inventory import directory_of, inventory_of, write_inventory
from howdah.machines.life import bring_up, take_down
from howdah.machines.machine_set import load_machine_set
from howdah.record.directory import read_json
from tests.any_directory import NAMES, make_directory
from tests.claim_factory import make_runs, row, write_profile
from tests.experiment_factory import Scenario, make_experiment
from tests.prometheus_fixture import prometheus_or_skip
from tests.unit.test_machines_life import MACHINES, how, machine_set_of, programs

__all__ = ["programs"]  # a fixture
ROOT = Path(__file__).resolve().parents[2]
# What ssh's settings or Ansible's inventory cannot carry, by the name that holds it.
_NO_MACHINES = {"quotes": "'\"'", "dollar": "'${'", "brackets": "'{{'", "backslash": r"'\\'", "newline": r"'\n'"}
_CLAIM = (
    "  - {id: higher, says: so, value: {metric: utilisation, at: {algorithm: cubic}}, "
    "than: {at: {algorithm: reno}}, expect: more}\n"
)

any_directory = pytest.mark.parametrize("kind", NAMES)


@any_directory
def test_a_profile_is_planned_reported_compared_and_judged_there(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    place = make_directory(tmp_path, kind)
    monkeypatch.chdir(place)
    profile = write_profile(place, _CLAIM)
    make_runs(place, profile, lambda plan: [row("utilisation", 0.8 if plan.algorithm == "cubic" else 0.4, "ratio")])
    make_experiment(place / "runs", Scenario(duration_s=4.0, repetitions=1))
    assert main(["plan", "made.yaml"]) == 0
    assert main(["plan", str(place / "made.yaml"), "--json"]) == 0
    assert main(["report", "synthetic", "--without-prometheus"]) == 0
    assert main(["compare", "synthetic", "--without-prometheus", "--output", "two.html"]) == 0
    capsys.readouterr()
    monkeypatch.chdir(tmp_path)
    assert main(["claims", "made", f"--runs={NAMES[kind]}/runs", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["claims"][0]["verdict"] == "pass"
    assert (place / "runs/synthetic/report.html").stat().st_size > 100_000
    assert (place / "two.html").stat().st_size > 100_000


@pytest.mark.parametrize("kind", ["space", "quotes", "hash", "newline", "long"])
def test_prometheus_draws_a_report_there(kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    prometheus_or_skip()
    place = make_directory(tmp_path, kind)
    monkeypatch.chdir(place)
    scenario = Scenario(algorithms=("cubic",), duration_s=2.0, repetitions=1, flows=1)
    made = make_experiment(place / "runs", scenario)
    assert main(["report", "synthetic"]) == 0
    assert any((made / "prometheus").glob("*/*/meta.json"))


@any_directory
def test_a_machine_set_lives_there_or_says_what_stops_it(kind: str, tmp_path: Path, programs: Path) -> None:
    del programs
    place = make_directory(tmp_path, kind)
    if kind in _NO_MACHINES:
        with (
            pytest.raises(HowdahError, match=re.escape(f"holds {_NO_MACHINES[kind]}, which")),
            machine_set_of(place, MACHINES),
        ):
            pass
        return
    with machine_set_of(place, MACHINES) as (found, directory, file):
        state = bring_up(found, directory, file, how(tmp_path))
        assert set(state.alive()) == {"a", "b"}
        assert sorted(take_down(directory, lambda *_: None, stop_s=0.1)) == ["a", "b"]


@pytest.mark.parametrize("kind", sorted({*NAMES} - {*_NO_MACHINES}))
def test_ssh_finds_the_machine_sets_files_by_what_the_inventory_says(kind: str, tmp_path: Path) -> None:
    """With the words that Ansible makes of the inventory; ssh tells which files it has found before it logs in."""
    for program in ("ssh", "ssh-keygen"):
        if shutil.which(program) is None:
            pytest.skip(f"{program} is not installed (openssh-client)")
    place = make_directory(tmp_path, kind)
    file = place / "machines.yaml"
    file.write_text(MACHINES, encoding="utf-8")
    machine_set = load_machine_set(file)
    directory = directory_of(machine_set, place)
    write_inventory(machine_set, directory, file)
    directory.known_hosts.write_text("a ssh-ed25519 wrong\n")
    host = inventory_of(machine_set, directory, file)["all"]["hosts"]["a"]
    key = f'IdentityFile="{host["ansible_ssh_private_key_file"]}"'
    words = ["-o", key, *shlex.split(host["ansible_ssh_common_args"])]
    with socket.create_server(("127.0.0.1", 0)) as server:
        threading.Thread(target=_greet, args=(server,), daemon=True).start()
        port = str(server.getsockname()[1])
        command = ["ssh", "-vvv", "-F", "/dev/null", *words, "-o", "BatchMode=yes", "-p", port, "127.0.0.1", "true"]
        said = subprocess.run(command, capture_output=True, timeout=30, check=False).stderr.decode()
    assert "type 3" in next(line for line in said.splitlines() if "identity file" in line), said  # an Ed25519 key
    assert f"{directory.known_hosts.name}:1: parse error" in said, said


def _greet(server: socket.socket) -> None:
    connection, _ = server.accept()
    with connection:
        connection.sendall(b"SSH-2.0-stand-in\r\n")
        connection.recv(1 << 16)


@any_directory
def test_qemu_takes_the_files_of_a_run_there(kind: str, tmp_path: Path) -> None:
    """The very arguments of a machine, but for the one kernel: QEMU opens what they name and is told to end."""
    if shutil.which(QEMU) is None:
        pytest.skip(f"{QEMU} is not on this machine (apt install qemu-system-x86)")
    place = make_directory(tmp_path, kind)
    initrd, delivered, signs = (place / name for name in ("initrd", "delivered", "signs"))
    delivered.write_bytes(bytes(1 << 20))
    initrd.touch()
    machine = QemuMachine(
        kernel=tmp_path / "vmlinuz",
        first=(),
        command=("true",),
        memory_bytes=64 << 20,
        delivery_bytes=1 << 20,
        raw=place,
        console=place / "console.log",
        speed=Speed(None),
        accelerator="tcg",
        wall_clock_limit_s=60,
        clock_limit_s=60,
        launcher=tmp_path,
    )
    words = command_line(machine, initrd, delivered, signs)
    command = [*words[: words.index("-kernel")], "-S", "-monitor", "stdio"]
    done = subprocess.run(command, input="info block\nquit\n", capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    assert str(delivered) in done.stdout
    assert (place / "console.log").exists()
    assert signs.exists()


@pytest.mark.parametrize("kind", sorted({*NAMES} - {"unicode", "long"}))
def test_a_cache_is_refused_where_the_kernels_build_cannot_work_and_a_tree_is_not(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = make_directory(tmp_path, kind)
    monkeypatch.setenv("HOWDAH_CACHE", str(place))
    with pytest.raises(HowdahError, match=r"the cache has .* in its path") as refused:
        Cache()
    assert "HOWDAH_CACHE" in str(refused.value)
    tree = place / "linux"
    for name in ("Makefile", "Kconfig", "arch/um/Makefile", "net/ipv4/tcp.c"):
        (tree / name).parent.mkdir(parents=True, exist_ok=True)
        (tree / name).touch()
    assert find_source(str(tree), Cache(tmp_path / "cache")).tree == tree, "it is mirrored into the cache"


@pytest.mark.parametrize("kind", ["space", "colon"])
def test_make_of_the_modules_says_why_it_needs_another_place(kind: str, tmp_path: Path) -> None:
    place = make_directory(tmp_path, kind)
    shutil.copy(ROOT / "modules/Makefile", place)
    said = subprocess.run(["make", "-C", str(place)], capture_output=True, text=True, check=False)
    assert said.returncode != 0
    assert "no directory with a space or a colon in its path" in said.stderr
    elsewhere = subprocess.run(
        ["make", "-C", str(place), f"OUT={tmp_path}"], capture_output=True, text=True, check=False
    )
    assert "no directory with a space" not in elsewhere.stderr


def test_what_stops_the_kernels_build_is_named() -> None:
    with pytest.raises(HowdahError) as refused:
        require_plain(Path("/home/J. Smith/x,y"), "the cache", "Choose another.")
    assert str(refused.value) == (
        "/home/J. Smith/x,y: the cache has a space ',' in its path, and the kernel's own build does not work in such "
        "a directory\n  Choose another."
    )


def test_a_cache_may_have_letters_of_any_language(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOWDAH_CACHE", str(tmp_path / "größe/試験"))
    assert cache_root() == tmp_path / "größe/試験"


def test_a_cache_is_named_as_programs_in_it_find_themselves(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOWDAH_CACHE", f"{tmp_path}/runs/../cache")
    (tmp_path / "runs").mkdir()
    assert str(cache_root()) == f"{tmp_path.resolve()}/cache"


def test_a_name_that_is_not_utf_8_is_no_reason_to_fail(tmp_path: Path) -> None:
    place = Path(f"{tmp_path}/latin-\udcff")
    make_experiment(tmp_path / "made", Scenario(algorithms=("cubic",), duration_s=2.0, repetitions=1, flows=1))
    shutil.copytree(tmp_path / "made", place)
    made = place / "synthetic"
    command = [sys.executable, "-m", "howdah.command.main", "report", str(made), "--without-prometheus"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr
    assert read_json(made / "experiment.json")["name"] == "synthetic"
    missing = subprocess.run([*command[:3], "plan", f"{place}/none.yaml"], cwd=ROOT, capture_output=True, check=False)
    assert missing.returncode in (1, 2)
    assert b"there is no such profile" in missing.stderr
    assert b"Traceback" not in missing.stderr
