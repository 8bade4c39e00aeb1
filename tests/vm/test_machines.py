# SPDX-License-Identifier: Apache-2.0
"""Three virtual machines of Debian's own kernels: booted, reached, joined by wires, set up twice, taken down."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from howdah.build.cache import Cache
from howdah.build.tools import build_tools
from howdah.command import machines as machines_command
from howdah.command.main import main
from howdah.machines.fleet import Fleet, Machine
from howdah.machines.inventory import directory_of, write_inventory
from howdah.machines.life import Progress, StartOptions
from howdah.machines.machine_set import load_machine_set
from howdah.machines.provision import provision
from howdah.machines.state import read_state
from howdah.record.directory import read_json
from tests.playbook_sandbox import ansible_program
from tests.vm.conftest import machines_up

pytestmark = [pytest.mark.vm, pytest.mark.timeout(1800)]

ROOT = Path(__file__).resolve().parents[2]
_SCRAPED_S = 60.0
_BETWEEN_S = 5.0  # each look logs in, which an emulated processor takes long for
_MOST_TRIES = 3


def _bound(cache: Cache, progress: Progress, *, bound: bool, boot_limit_s: float) -> StartOptions:
    """As 'howdah machines run' starts them."""
    assert not bound
    return StartOptions(cache, progress, bound=True, boot_limit_s=boot_limit_s)


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The shipped machine set under another name, up.

    Machines of 'up' stay without the command. These end with the tests, also when somebody kills those.
    """
    ansible_program("ansible-playbook")
    text = (ROOT / "playbooks/machines/virtual.yaml").read_text().replace("name: virtual\n", "name: tested\n")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(machines_command, "StartOptions", _bound)
        with machines_up(tmp_path_factory.mktemp("sets"), text) as file:
            patch.undo()
            yield file


@pytest.fixture(scope="module")
def fleet(file: Path) -> Fleet:
    return Fleet.load(file, file.parent)


def test_machines_run_debians_kernel_and_systemd(fleet: Fleet) -> None:
    for machine in fleet.machines.values():
        assert machine.kernel_release.startswith("6.12.")
        assert machine.kernel_release.endswith("-amd64")
        assert machine.check(["cat", "/proc/1/comm"]).strip() == "systemd"
        assert machine.check(["systemctl", "list-units", "--failed", "--no-legend"]).strip() == ""
        assert "MP-BIOS bug" not in machine.check(["dmesg"]), "no kernel doubts its timer"


def test_wires_join_the_interfaces_that_the_machines_file_names(fleet: Fleet) -> None:
    """What is sent on one end arrives at the other, and nothing of it anywhere else."""
    ends = {wire: [m for m in fleet.machines.values() if wire in m.interfaces] for wire in fleet.machine_set.wires}
    for number, (wire, (one, other)) in enumerate(ends.items()):
        for machine, host in ((one, 1), (other, 2)):
            assert machine.check(["cat", f"/sys/class/net/{wire}/address"]).strip() == machine.interfaces[wire].mac
            machine.check(["ip", "address", "add", f"10.77.{number}.{host}/24", "dev", wire])
            machine.check(["ip", "link", "set", wire, "up"])
        one.check(["ping", "-c", "3", "-i", "0.2", "-w", "20", f"10.77.{number}.2"])
        for machine in (one, other):
            machine.check(["ip", "address", "flush", "dev", wire])
            machine.check(["ip", "link", "set", wire, "down"])


def test_there_is_no_way_out(fleet: Fleet) -> None:
    for machine in fleet.machines.values():
        assert machine.check(["ip", "route", "show", "default"]).strip() == ""


def test_the_playbooks_set_them_up_and_a_second_run_changes_nothing(file: Path, fleet: Fleet) -> None:
    machine_set = load_machine_set(file)
    directory = directory_of(machine_set, file.parent)
    launcher = build_tools(Cache()).launch
    write_inventory(machine_set, directory, file, fleet.state)
    first = provision(directory, launcher, lambda *_: None)
    assert set(first.changed) == set(fleet.machines)
    # The sender's tasks are those that the other two have in common.
    again = ("emulator", "receiver")
    second = provision(directory, launcher, lambda *_: None, "--limit", ",".join(again))
    assert second.tasks == []
    assert second.changed == dict.fromkeys(again, 0)


def test_modules_of_the_image_are_there_and_load(fleet: Fleet) -> None:
    sender = next(machine for machine in fleet.machines.values() if machine.role == "sender")
    assert sender.modules_left_out == {}
    loaded = sender.check(["lsmod"])
    assert "howdah_slow_start" in loaded
    assert "howdah_traffic" in loaded
    sender.check(["modprobe", "ss_hystartpp"])


def test_the_monitor_scrapes_every_machine(fleet: Fleet) -> None:
    assert fleet.machine_set.monitor is not None
    monitor = fleet.machines[fleet.machine_set.monitor]
    end = time.monotonic() + _SCRAPED_S * fleet.dilation
    wanted = {(job, name) for job in ("howdah", "node") for name in fleet.machines}
    up: set[tuple[str, str]] = set()
    while up != wanted and time.monotonic() < end:
        time.sleep(_BETWEEN_S)
        answer = json.loads(monitor.check(["curl", "-s", "http://127.0.0.1:9090/api/v1/query?query=up"]))
        rows = answer["data"]["result"]
        up = {(row["metric"]["job"], row["metric"]["host"]) for row in rows if row["value"][1] == "1"}
    assert up == wanted


def test_their_clocks_are_slower_than_ours(fleet: Fleet) -> None:
    """Which is why an emulated processor keeps up; none of them is off by more than its kernel's calibration."""
    dilation = fleet.dilation
    assert dilation >= 8 or all(machine.accelerator == "kvm" for machine in fleet.machines.values())
    before = {name: _uptime_s(machine) for name, machine in fleet.machines.items()}
    time.sleep(8)
    for name, machine in fleet.machines.items():
        first, first_begin, first_end = before[name]
        second, second_begin, second_end = _uptime_s(machine)
        passed = second - first
        assert (second_begin - first_end) / dilation - 0.02 <= passed <= (second_end - first_begin) / dilation + 0.02


def _uptime_s(machine: Machine) -> tuple[float, float, float]:
    """What the machine says, and when by our clock it was asked and had answered."""
    begin = time.monotonic()
    return float(machine.check(["cut", "-d", " ", "-f1", "/proc/uptime"])), begin, time.monotonic()


def test_a_run_across_them_is_valid(file: Path, fleet: Fleet, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Stock kernels, their own clocks, wires between processes, exporters scraped: the path is what the plan says.

    So is the kernel: someone has left the sender without HyStart, and finds it so again.
    """
    sender = fleet.machines["sender"]
    hystart = "/sys/module/tcp_cubic/parameters/hystart"
    backlog = sender.check(["sysctl", "-n", "net.core.netdev_max_backlog"])
    sender.check(["sh", "-c", f"echo 0 > {hystart}"])
    monkeypatch.setenv("HOWDAH_MACHINE_SETS", str(file.parent))
    command = [
        "run",
        "machines-5mbit",
        "--engine",
        "machines",
        "--machines",
        str(file),
        "--runs",
        str(tmp_path / "runs"),
    ]
    code, run = _undisturbed([*command, "--set", "algorithm=cubic", "--set", "duration=5 s"], tmp_path / "runs")
    assert code == 0
    assert read_json(run.with_name("verdict.json"))["verdict"] == "pass"
    engine = read_json(run)["engine"]
    assert engine["dilation"] == fleet.dilation
    assert set(engine["machines"]) == {"sender", "emulator", "receiver"}
    assert read_json(run)["modules"]["tcp_cubic"]["parameters"]["hystart"] == "1"
    assert sender.check(["cat", hystart]).strip() == "0"
    assert sender.check(["sysctl", "-n", "net.core.netdev_max_backlog"]) == backlog
    rows = read_json(run.with_name("metrics.json"))["rows"]
    values = {row["metric"]: row["value"] for row in rows if row["flow"] in (1, None)}
    assert values["utilisation"] > 0.9
    assert values["exit_cwnd_packets"] > 41, "a BDP"


def _undisturbed(command: list[str], runs: Path) -> tuple[int, Path]:
    """The code and the run.json of a command that is given again, as its user would, while the machines were short of
    processor time.

    Their clocks are real. Where other work takes their processors away for a tenth of a second, a run must be invalid,
    and the same command makes it again. One that is invalid for another reason alone stays so.
    """
    for _ in range(_MOST_TRIES):
        code = main(command)
        (run,) = (runs / "machines-5mbit").glob("*/run.json")
        checks = read_json(run.with_name("verdict.json"))["checks"]
        failed = {check["name"] for check in checks if check["ok"] is False}
        if not any(name.startswith(("processor of ", "stolen time of ")) for name in failed):
            break
    return code, run


def test_what_listens_is_ssh_and_what_the_machines_file_names(fleet: Fleet) -> None:
    for name, machine in fleet.machines.items():
        own = fleet.machine_set.hosts[name].listen_address
        lines = machine.check(["ss", "--listening", "--tcp", "--udp", "--numeric", "--no-header"]).splitlines()
        places = {line.split()[4] for line in lines}
        assert {place for place in places if not place.startswith(("127.0.0.1:", f"{own}:"))} <= {
            "0.0.0.0:22",
            "[::]:22",
        }


def test_down_leaves_no_machine_and_keeps_the_consoles(file: Path, fleet: Fleet) -> None:
    """The last of this file: the others need the machines."""
    assert fleet.state is not None
    assert main(["machines", "down", str(file), "--machine-sets", str(file.parent)]) == 0
    assert fleet.state.alive() == []
    assert read_state(fleet.directory.state) is None
    for name in fleet.machines:
        console = (fleet.directory.path / f"machines/{name}/console.log").read_text(errors="replace")
        assert "systemd" in console
        assert "reboot: Power down" in console  # by its own system, not by force
