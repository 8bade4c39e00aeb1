# SPDX-License-Identifier: Apache-2.0
"""Every plug-in over both bases, with connections that are not simply opened and used: no warning, no lost byte."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from howdah.engine.uml.guest import boot
from tests.guest.guest_kit import build_or_skip, give_modules, make_guest
from tests.guest.guest_run import ignore
from tests.guest.kernel_matrix import complaints

pytestmark = [pytest.mark.guest, pytest.mark.timeout(900)]

SCRIPT = """\
dmesg --clear
while read -r name; do insmod /howdah/in/modules/$name.ko; done </howdah/in/order
ip link set lo mtu 1500 up
tc qdisc add dev lo root netem delay 10ms loss 1% seed 1 limit 10000
# Fast open without a cookie, for both ends, on every listener.
sysctl -q -w net.ipv4.tcp_fastopen=519 net.ipv4.tcp_no_metrics_save=1
python3 -S /howdah/in/unusual_connections.py >/howdah/out/connections
sleep 10
tac /howdah/in/order | while read -r name; do rmmod $name || echo "$name" >>/howdah/out/stayed; done
dmesg --raw >/howdah/out/log
"""


@pytest.fixture(scope="module")
def out(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What one guest left behind that tried everything."""
    built = build_or_skip()
    guest = make_guest(built, tmp_path_factory.mktemp("guest"), SCRIPT, clock_limit_s=100_000, wall_clock_limit_s=600.0)
    shutil.copy(Path(__file__).with_name("unusual_connections.py"), guest.share)
    give_modules(guest.share, built.module_set.choose(None))
    ending = boot(guest, ignore)
    assert ending.exit_status == 0, guest.console.read_text()
    return guest.raw


@pytest.fixture(scope="module")
def connections(out: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (out / "connections").read_text().splitlines()]


def test_every_byte_arrives(connections: list[dict[str, Any]]) -> None:
    assert [row for row in connections if "error" in row] == []
    assert {"standard_reno", "careful_cubic"} <= {row["algorithm"] for row in connections}


def test_the_kernel_has_nothing_to_complain_of(out: Path) -> None:
    assert complaints((out / "log").read_text(errors="replace")) == []
    assert not (out / "stayed").exists()


@pytest.mark.parametrize("algorithm", ["liw_reno", "liw_cubic"])
@pytest.mark.parametrize("kind", ["fast_open", "fast_open_accepted", "again"])
def test_a_plug_in_sets_the_first_window(connections: list[dict[str, Any]], kind: str, algorithm: str) -> None:
    """65535 bytes are 45 segments of 1448; the kernel's own window is 10."""
    windows = {row["kind"]: row.get("window", 0) for row in connections if row["algorithm"] == algorithm}
    assert windows["plain"] == 45
    assert windows[kind] >= 45
