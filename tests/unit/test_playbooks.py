# SPDX-License-Identifier: Apache-2.0
"""The playbooks: run twice on a layer over this machine, what they leave, and what can be said of the rest of them.

ansible-lint is `make lint-playbooks`. Packages (tag ``packages``) are not installed here.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

from howdah.machines.inventory import directory_of, write_inventory
from howdah.machines.machine_set import load_machine_set
from tests.playbook_sandbox import AGAIN, PLAYBOOKS, again_environment, ansible_program, sandbox_or_skip, sooner
from tests.prometheus_fixture import prometheus_or_skip

ROLES = sorted(path.name for path in (PLAYBOOKS / "roles").iterdir())
MACHINES = """\
name: here
monitor: watch
hosts:
  watch: {role: receiver, address: 127.0.0.1, links: {lo: 10.10.1.1/24}}
  middle: {role: emulator, address: 127.0.0.1, links: {lo: 10.10.1.2/24}}
  beastie: {role: receiver, address: 127.0.0.1, system: freebsd, links: {vtnet1: 10.10.1.3/24}}
  pane: {role: receiver, address: 127.0.0.1, system: windows, links: {Ethernet 2: 10.10.1.4/24}}
"""
# What stands for commands of FreeBSD in check mode: nothing is loaded, and everything is set to something else.
_FREEBSD = {"kldstat": "exit 1", "kldload": "exit 1", "sysctl": "echo 1"}
# Programs of packages that are not installed here are stood for, since systemd looks whether they are there.
_TWICE = f"""\
set -u
{AGAIN}
"$@" > /mnt/first 2>&1
again "$@" > /mnt/second 2>&1
"""
_TWICE += """\
for name in prometheus prometheus-node-exporter netserver; do
  [ -x /usr/bin/$name ] || ln -s /bin/true /usr/bin/$name
done
cd /etc/systemd/system
cp -r . /mnt/units
cp -r /etc/grafana /etc/howdah/dashboards /mnt/
cp /etc/howdah/rules.yaml /etc/howdah/prometheus.yml /etc/sysctl.d/90-howdah.conf /usr/src/howdah-*/dkms.conf /mnt/
systemd-analyze verify --man=no howdah-*.service > /mnt/verify 2>&1
echo $? >> /mnt/verify
export $(sed -n 's/^Environment=//p' howdah-exporter.service)
$(sed -n 's/^ExecStart=//p' howdah-exporter.service) > /mnt/exporter 2>&1 &
for again in $(seq 200); do grep -q metrics /mnt/exporter && break; sleep 0.1; done
unset PYTHONPATH
python3 - > /mnt/scrape <<'SCRAPE'
import urllib.request
opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
print(opener.open("http://127.0.0.1:9750/metrics").read().decode())
SCRAPE
"""


def _yaml(path: Path) -> Any:
    return YAML(typ="safe", pure=True).load(path.read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def inventory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("machines")
    file = directory / "machines.yaml"
    file.write_text(MACHINES, encoding="utf-8")
    machine_set = load_machine_set(file)
    made = directory_of(machine_set, directory)
    write_inventory(machine_set, made, file)
    return made.inventory


def _playbook(inventory: Path, name: str, *arguments: str, **variables: object) -> list[str]:
    given = {"howdah_running": False, "ansible_connection": "local", "ansible_python_interpreter": sys.executable}
    command = [ansible_program("ansible-playbook"), "--inventory", str(inventory), "--extra-vars"]
    return [*command, json.dumps(given | variables), *arguments, str(PLAYBOOKS / name)]


def _counts(output: str, host: str) -> dict[str, int]:
    """The numbers of the recap: ok, changed, failed …"""
    line = next(line for line in output.splitlines() if re.match(rf"{host}\s+:", line))
    return {name: int(number) for name, number in re.findall(r"(\w+)=(\d+)", line)}


def test_a_second_run_changes_nothing_and_units_are_sound(inventory: Path, tmp_path: Path) -> None:
    promtool = prometheus_or_skip().promtool
    site = _playbook(
        *(inventory, "site.yml", "--limit", "watch", "--skip-tags", "packages"),
        prometheus_promtool=str(promtool),
        howdah_grafana=True,
    )
    program = tmp_path / "twice.sh"
    program.write_text(_TWICE, encoding="utf-8")
    sandbox = sandbox_or_skip(tmp_path)
    done = sandbox.run(["env", *again_environment(), "sh", str(program), *site])
    first, second = ((sandbox.out / name).read_text() for name in ("first", "second"))
    assert _counts(first, "watch")["failed"] == 0, first
    assert _counts(first, "watch")["changed"] >= 10
    assert _counts(second, "watch") | {"changed": 0, "failed": 0} == _counts(second, "watch"), second
    assert (sandbox.out / "verify").read_text() == "0\n"
    assert done.returncode == 0, done.stderr
    assert "howdah_cpu_seconds_total{" in (sandbox.out / "scrape").read_text()
    _check_listening(sandbox.out / "units")
    _check_configuration(sandbox.out)
    _check_grafana(sandbox.out)


def _check_listening(units: Path) -> None:
    """Every address in a unit is loopback or a link between machines; what listens everywhere is masked."""
    ours = {path.name: path.read_text() for path in units.glob("howdah-*.service")}
    assert {"howdah-exporter.service", "howdah-node-exporter.service", "howdah-prometheus.service"} <= set(ours)
    for text in ours.values():
        assert set(re.findall(r"\d+\.\d+\.\d+\.\d+", text)) <= {"127.0.0.1", "10.10.1.0"}
        assert "DynamicUser=yes" in text
    for name in (
        "prometheus.service",
        "prometheus-node-exporter.service",
        "netperf.service",
        "irtt.service",
        "iperf3.service",
    ):
        assert (units / name).readlink() == Path("/dev/null")


def _check_grafana(out: Path) -> None:
    """It listens on loopback, and is provisioned with what reports/ has."""
    drop_in = (out / "units" / "grafana-server.service.d" / "howdah.conf").read_text()
    assert "GF_SERVER_HTTP_ADDR=127.0.0.1 GF_SERVER_HTTP_PORT=3000" in drop_in
    reports = PLAYBOOKS.parent / "reports" / "dashboard"
    assert (out / "rules.yaml").read_bytes() == (reports / "rules.yaml").read_bytes()
    shipped = {file.name: file.read_bytes() for file in reports.glob("howdah-*.json")}
    assert {file.name: file.read_bytes() for file in (out / "dashboards").iterdir()} == shipped
    provisioning = out / "grafana" / "provisioning"
    (provider,) = _yaml(provisioning / "dashboards" / "howdah.yaml")["providers"]
    assert provider["options"]["path"] == "/etc/howdah/dashboards"
    (source,) = _yaml(provisioning / "datasources" / "howdah.yaml")["datasources"]
    assert source["url"] == "http://127.0.0.1:9090"


def _check_configuration(out: Path) -> None:
    targets = {job["job_name"]: job["static_configs"] for job in _yaml(out / "prometheus.yml")["scrape_configs"]}
    assert targets == {
        "howdah": [{"targets": ["127.0.0.1:9750"], "labels": {"host": "watch"}}],
        "node": [{"targets": ["127.0.0.1:9100"], "labels": {"host": "watch"}}],
    }
    settings = (out / "90-howdah.conf").read_text()
    assert "net.ipv4.tcp_no_metrics_save = 1" in settings
    assert "forwarding" not in settings  # only an emulator forwards
    modules = _dkms_modules(out / "dkms.conf")
    sources = {path.stem for path in (PLAYBOOKS.parent / "modules" / "algorithms").glob("ss_*.c")}
    sources = {name for name in sources if not name.endswith(".mod")}
    own = {f"howdah_{name}" for name in ("traffic", "slow_start", "receiver", "processor", "hop", "link")}
    assert set(modules) == sources | own
    assert {where for name, where in modules.items() if name in sources} == {"algorithms"}
    left_out = out / "left-out"
    left_out.write_text("ss_pair\talgorithms/ss_pair.c:3: unknown type name\n")
    text = (out / "dkms.conf").read_text()
    listed = re.search(r"/usr/src/howdah-[^/]+/left-out/[$]kernelver", text)
    assert listed is not None
    (out / "dkms-without.conf").write_text(text.replace(listed[0], str(left_out)))
    assert set(_dkms_modules(out / "dkms-without.conf")) == set(modules) - {"ss_pair"}


def _dkms_modules(configuration: Path) -> dict[str, str]:
    """Name to directory of what DKMS is told to build: the file is a script of bash's, and DKMS reads it as that."""
    script = (
        'kernelver=6.12; . "$1"; '
        'for number in "${!BUILT_MODULE_NAME[@]}"; do echo "$number ${BUILT_MODULE_NAME[$number]}" '
        '"${BUILT_MODULE_LOCATION[$number]-.} ${DEST_MODULE_LOCATION[$number]}"; done'
    )
    done = subprocess.run(
        ["bash", "-c", script, "bash", str(configuration)], capture_output=True, text=True, check=True
    )
    rows = [line.split() for line in done.stdout.splitlines()]
    assert [int(row[0]) for row in rows] == list(range(len(rows)))
    assert {row[3] for row in rows} == {"/updates/dkms"}
    return {row[1]: row[2] for row in rows}


def test_an_emulator_forwards_between_its_links_and_a_missing_address_is_told(inventory: Path, tmp_path: Path) -> None:
    sandbox = sandbox_or_skip(tmp_path)
    only = ("--limit", "middle", "--tags")
    script = '"$@" > /mnt/sysctls 2>&1; cp /etc/sysctl.d/90-howdah.conf /mnt/'
    sandbox.run(["sh", "-c", script, "sh", *sooner(_playbook(inventory, "site.yml", *only, "sysctls"))])
    assert _counts((sandbox.out / "sysctls").read_text(), "middle")["failed"] == 0
    assert "net/ipv4/conf/lo/forwarding = 1" in (sandbox.out / "90-howdah.conf").read_text()
    done = sandbox.run(sooner(_playbook(inventory, "site.yml", *only, "links")))
    assert done.returncode != 0
    assert "middle has no 10.10.1.2/24 on lo" in re.sub(r"\s+", " ", done.stdout + done.stderr)


_REMOVED = """\
set -u
mkdir -p "$HOME/.ssh" /etc/howdah /opt/howdah
{ echo "ssh-ed25519 AAAAother someone"; cat "$KEY"; } > "$HOME/.ssh/authorized_keys"
touch /etc/howdah/prometheus.yml /etc/sysctl.d/90-howdah.conf /etc/systemd/system/howdah-exporter.service
ln -sf /dev/null /etc/systemd/system/prometheus.service
"$@" > /mnt/removed 2>&1
cp "$HOME/.ssh/authorized_keys" /mnt/
ls -d /etc/howdah /opt/howdah /etc/sysctl.d/90-howdah.conf /etc/systemd/system/howdah-* > /mnt/left 2> /dev/null
readlink /etc/systemd/system/prometheus.service > /mnt/mask
"""


def test_what_was_put_there_is_removed_with_the_machine_sets_key_and_no_other(inventory: Path, tmp_path: Path) -> None:
    sandbox = sandbox_or_skip(tmp_path)
    home, key = tmp_path / "home", inventory.parent / "id_ed25519.pub"
    home.mkdir()
    command = sooner(_playbook(inventory, "remove.yml", "--limit", "watch"))
    sandbox.run(["env", f"HOME={home}", f"KEY={key}", "sh", "-c", _REMOVED, "sh", *command])
    output = (sandbox.out / "removed").read_text()
    assert _counts(output, "watch")["failed"] == 0, output
    assert (sandbox.out / "authorized_keys").read_text() == "ssh-ed25519 AAAAother someone\n"
    assert (sandbox.out / "left").read_text() == ""
    # The package stays, so its unit must go on being masked.
    assert (sandbox.out / "mask").read_text() == "/dev/null\n"


def test_freebsd_in_check_mode_changes_what_differs_and_nothing_for_real(inventory: Path, tmp_path: Path) -> None:
    sandbox = sandbox_or_skip(tmp_path)
    programs = tmp_path / "freebsd"
    programs.mkdir()
    for name, text in _FREEBSD.items():
        (programs / name).write_text(f"#!/bin/sh\n{text}\n")
        (programs / name).chmod(0o755)
    command = sooner(_playbook(inventory, "site.yml", "--limit", "beastie", "--check", "--diff"))
    done = sandbox.run(["env", f"PATH={programs}:{os.environ['PATH']}", *command])
    counts = _counts(done.stdout, "beastie")
    assert counts["failed"] == 0, done.stdout
    assert counts["changed"] == 5, done.stdout
    assert "+net.inet.tcp.hostcache.enable=0" in done.stdout
    assert "--address 10.10.1.3" in done.stdout


def test_an_image_of_the_user_is_the_base_of_an_overlay_and_is_not_touched(inventory: Path, tmp_path: Path) -> None:
    ansible = _playbook(inventory, "image.yml", "--limit", "beastie")
    image = tmp_path / "freebsd.qcow2"
    try:
        subprocess.run(["qemu-img", "create", "-q", "-f", "qcow2", image, "1M"], check=True)
    except FileNotFoundError:
        pytest.skip("qemu-img is not installed")
    before = image.read_bytes()
    extra = json.dumps({"howdah_image": str(image), "image_directory": str(tmp_path / "machine")})
    for changed in (True, False):
        done = subprocess.run([*ansible, "--extra-vars", extra], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
        assert (_counts(done.stdout, "beastie")["changed"] > 0) == changed
    info = subprocess.run(
        ["qemu-img", "info", "--output=json", tmp_path / "machine" / "disk.qcow2"], capture_output=True, check=True
    )
    assert json.loads(info.stdout)["backing-filename"] == str(image)
    assert image.read_bytes() == before
    start = tmp_path / "machine" / "start.sh"
    assert "hostfwd=tcp:127.0.0.1:22-:22" in start.read_text()
    subprocess.run(["sh", "-n", start], check=True)


def test_playbooks_parse_with_the_inventory(inventory: Path) -> None:
    names = sorted(file.name for file in PLAYBOOKS.glob("*.yml") if file.name != "requirements.yml")
    assert set(names) >= {"site.yml", "remove.yml", "image.yml", "cluster.yml"}
    command = [*_playbook(inventory, names[0], "--syntax-check"), *(str(PLAYBOOKS / name) for name in names[1:])]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=PLAYBOOKS)
    assert done.returncode == 0, done.stderr
    for name in names:
        assert f"playbook: {PLAYBOOKS / name}\n" in done.stdout


def test_families_of_distributions_define_the_same_variables() -> None:
    pairs = [role for role in ROLES if (PLAYBOOKS / "roles" / role / "vars").is_dir()]
    assert {"kernel", "modules", "traffic", "node_exporter", "prometheus", "flent"} <= set(pairs)
    for role in pairs:
        debian, red_hat = (_yaml(PLAYBOOKS / "roles" / role / "vars" / f"{name}.yml") for name in ("Debian", "RedHat"))
        assert {name for name in debian if not name.startswith("kernel_debian_")} == set(red_hat), role


def test_no_key_and_no_secret_is_among_the_playbooks() -> None:
    for path in PLAYBOOKS.rglob("*"):
        if path.is_file():
            text = path.read_text(encoding="utf-8")
            assert "PRIVATE KEY" not in text
            assert not re.search(r"(?i)\b(password|passphrase|token)\s*[:=]", text), path
