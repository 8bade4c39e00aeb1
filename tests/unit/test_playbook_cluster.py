# SPDX-License-Identifier: Apache-2.0
"""The playbook of a cluster: run twice on a layer over this machine; then what its units start is started.

The wheel that is installed is a small one whose program is that of this environment: the layer has no network.
"""

from __future__ import annotations

import json
import re
import sys
import zipfile
from pathlib import Path

import pytest

pytest.importorskip("distributed", reason="Dask is not installed")

from howdah.cluster.reach import make_certificates
from howdah.place import PROJECT
from tests.playbook_sandbox import AGAIN, LINK_ADDRESS, PLAYBOOKS, again_environment, ansible_program, sandbox_or_skip

_ADDRESS = LINK_ADDRESS.partition("/")[0]
_INVENTORY = """\
[scheduler]
one ansible_connection=local
[workers]
one
"""
# What systemd does with a unit: its environment, its credentials, its command.
_SCRIPT = f"""\
set -u
{AGAIN}
"""
_SCRIPT += """\
start() {
  sed -n 's/^Environment=//p' "/etc/systemd/system/$1.service" | tr ' ' '\\n' > "/mnt/$1.environment"
  CREDENTIALS_DIRECTORY=/run/$1.credentials
  mkdir -p "$CREDENTIALS_DIRECTORY" "/run/$1" /var/lib/howdah-cluster
  sed -n 's/^LoadCredential=//p' "/etc/systemd/system/$1.service" | while IFS=: read -r name file; do
    cp "$file" "$CREDENTIALS_DIRECTORY/$name"
  done
  export CREDENTIALS_DIRECTORY
  command=$(sed -n 's/^ExecStart=//p' "/etc/systemd/system/$1.service")
  eval "env --ignore-environment PATH='$PATH' $(tr '\\n' ' ' < "/mnt/$1.environment") $command" > "/mnt/$1" 2>&1 &
}
"$@" > /mnt/first 2>&1
again "$@" > /mnt/second 2>&1
ls -ln /etc/howdah/cluster > /mnt/certificates
cp /etc/systemd/system/howdah-cluster-*.service /mnt/
systemd-analyze verify --man=no /etc/systemd/system/howdah-cluster-*.service > /mnt/verify 2>&1
echo $? >> /mnt/verify
start howdah-cluster-scheduler
start howdah-cluster-worker
for again in $(seq 600); do grep -q 'at a time' /mnt/howdah-cluster-worker && break; sleep 0.1; done
again "$@" --extra-vars cluster_state=absent > /mnt/removed 2>&1
ls -d /opt/howdah-cluster /etc/howdah/cluster /etc/systemd/system/howdah-cluster-* > /mnt/left 2> /dev/null
"""


def _wheel(directory: Path) -> None:
    """howdah by name and version, with an extra ``cluster`` and the program of this environment."""
    program = f"import os, sys\ndef main():\n    os.environ['PYTHONPATH'] = {str(PROJECT)!r}\n"
    program += f"    os.execv({sys.executable!r}, [{sys.executable!r}, '-m', 'howdah.command.main', *sys.argv[1:]])\n"
    about = "howdah-0.1.0.dist-info"
    files = {
        "howdah_here.py": program,
        f"{about}/METADATA": "Metadata-Version: 2.1\nName: howdah\nVersion: 0.1.0\nProvides-Extra: cluster\n",
        f"{about}/WHEEL": "Wheel-Version: 1.0\nGenerator: tests\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        f"{about}/entry_points.txt": "[console_scripts]\nhowdah = howdah_here:main\n",
    }
    files[f"{about}/RECORD"] = "".join(f"{name},,\n" for name in (*files, f"{about}/RECORD"))
    directory.mkdir()
    with zipfile.ZipFile(directory / "howdah-0.1.0-py3-none-any.whl", "w") as archive:
        for name, text in files.items():
            archive.writestr(name, text)


def _counts(output: str) -> dict[str, int]:
    line = next(line for line in output.splitlines() if re.match(r"one\s+:", line))
    return {name: int(number) for name, number in re.findall(r"(\w+)=(\d+)", line)}


def test_machines_become_a_cluster_whose_worker_finds_its_scheduler(tmp_path: Path) -> None:
    sandbox = sandbox_or_skip(tmp_path)
    inventory, tls, wheels = tmp_path / "hosts.ini", tmp_path / "tls", tmp_path / "wheels"
    inventory.write_text(_INVENTORY)
    make_certificates(tls, 1)
    _wheel(wheels)
    values = {
        "howdah_running": False,
        "ansible_python_interpreter": sys.executable,
        "cluster_tls": str(tls),
        "cluster_wheels": str(wheels),
        "cluster_python": sys.executable,
        "cluster_address": _ADDRESS,
        "cluster_scheduler_address": _ADDRESS,
        "cluster_jobs": 3,
    }
    script = tmp_path / "twice.sh"
    script.write_text(_SCRIPT)
    playbook = [ansible_program("ansible-playbook"), "--inventory", str(inventory), "--skip-tags", "packages"]
    playbook += ["--extra-vars", json.dumps(values), str(PLAYBOOKS / "cluster.yml")]
    done = sandbox.run(["env", *again_environment(), "sh", str(script), *playbook])
    said = {name: (sandbox.out / name).read_text() for name in ("first", "second", "removed", "verify", "left")}
    assert _counts(said["first"])["failed"] == 0, said["first"] + done.stderr
    assert _counts(said["second"]) | {"changed": 0, "failed": 0} == _counts(said["second"]), said["second"]
    assert said["verify"] == "0\n"
    certificates = (sandbox.out / "certificates").read_text()
    assert set(re.findall(r"^(-\S+).* (\S+)$", certificates, re.MULTILINE)) == {
        ("-rw-------", name) for name in ("ca.pem", "cluster.pem", "cluster.key")
    }
    scheduler, worker = ((sandbox.out / f"howdah-cluster-{name}").read_text() for name in ("scheduler", "worker"))
    assert f"scheduler tls://{_ADDRESS}:8786" in scheduler
    assert re.search(rf"worker tls://{_ADDRESS}:\d+, 3 at a time", worker), worker
    assert _counts(said["removed"])["failed"] == 0, said["removed"]
    assert said["left"] == ""


def test_what_the_units_may_do() -> None:
    """Neither root nor a key that others can read; and no unit listens without TLS."""
    for template in (PLAYBOOKS / "roles" / "cluster" / "templates").iterdir():
        text = template.read_text()
        assert "User={{ cluster_user }}" in text
        assert "NoNewPrivileges=yes" in text
        assert "--tls ${CREDENTIALS_DIRECTORY}" in text
        assert "0.0.0.0" not in text
