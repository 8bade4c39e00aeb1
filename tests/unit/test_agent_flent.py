# SPDX-License-Identifier: Apache-2.0
"""Flows that flent runs: commands, what is read from iperf's reports, and profiles that ask for what it cannot do."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from howdah.agent.traffic.flent import filter_script, flent_command, received_bytes, server_command
from howdah.build.guest_tree import package_names, packages_of_plan, tree_key
from howdah.errors import HowdahError
from howdah.plan.compile import compile_plan
from howdah.profile import load
from tests.unit.trace_factory import make_flow

FLOW = make_flow(
    id=3,
    name="first",
    source_address="10.1.1.1",
    source_port=40003,
    destination_address="10.2.1.1",
    destination_port=5004,
    kernel_algorithm="bbr",
    start_us=2_000_000,
    stop_us=9_900_000,
)
# iperf 2.2.1 --enhanced --reportstyle C
CLIENT = """\
time,srcaddress,srcport,dstaddr,dstport,transferid,istart,iend,bytes,speed,writecnt
+0000:20231114221326.506258,10.1.1.1,40003,10.2.1.1,5004,1,0.0,0.2,393216,15728640,3
+0000:20231114221336.606258,10.1.1.1,40003,10.2.1.1,5004,1,0.0,10.1,23960919,18971454,184
"""
PROFILE = """\
howdah: 1
name: by-flent
path: {rate: 20 Mbit/s, rtt: 40 ms, buffer: 1 bdp}
traffic: {source: flent, sink: flent}
algorithm: cubic
duration: 4 s
"""


def profile(tmp_path: Path, text: str) -> Path:
    file = tmp_path / "by-flent.yaml"
    file.write_text(text, encoding="utf-8")
    return file


def test_flent_is_told_time_ports_and_algorithm_of_the_flow() -> None:
    command = flent_command(FLOW, Path("/out"))
    assert command[:2] == ["flent", "tcp_nup"]
    assert command[command.index("--length") + 1] == "7"
    assert command[command.index("--delay") + 1] == "0"
    assert "howdah_peer=10.2.1.1 --port 5004 -Z bbr" in command
    assert "howdah_local=10.1.1.1:40003" in command
    server = server_command(FLOW)
    assert server[server.index("--bind") + 1] == "10.2.1.1"
    assert server[server.index("--port") + 1] == "5004"


def test_the_csv_of_todays_iperf_becomes_what_flent_reads(tmp_path: Path) -> None:
    iperf, script = tmp_path / "iperf", tmp_path / "script"
    iperf.write_text(f"#!/bin/sh\ncat <<'END'\n{CLIENT}END\n", encoding="utf-8")
    iperf.chmod(0o755)
    script.write_text(filter_script(str(iperf)), encoding="utf-8")
    lines = subprocess.run(["sh", str(script)], capture_output=True, text=True, check=True).stdout.splitlines()
    assert lines[1].split(",")[:9] == [
        *("+0000:20231114221326.506", "10.1.1.1", "40003", "10.2.1.1", "5004", "1", "0.0-0.2", "393216", "15728640")
    ]
    assert lines[2].split(",")[8] == "18971454"  # flent takes the ninth field for bits per second


def test_received_bytes_are_read_from_the_servers_line() -> None:
    assert received_bytes(CLIENT) == 23_960_919
    assert received_bytes("time,srcaddress,bytes\n+0000:19700101000000.000000,,0\n") == 0
    assert received_bytes("") == 0


def test_only_runs_by_flent_have_the_tree_with_flent(tmp_path: Path) -> None:
    text = PROFILE
    by_flent = compile_plan(load(profile(tmp_path, text)).cells()[0])
    usual = compile_plan(
        load(profile(tmp_path, text.replace("traffic: {source: flent, sink: flent}\n", ""))).cells()[0]
    )
    assert {flow.traffic for flow in by_flent.flows} == {"flent"}
    assert packages_of_plan(by_flent) == ("flent", "iperf")
    assert packages_of_plan(usual) == ()
    assert tree_key() == tree_key(()) != tree_key(packages_of_plan(by_flent))
    assert set(package_names(("flent",))) == {*package_names(), "flent"}


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (("sink: flent", "sink: kernel"), "must both be flent"),
        (("duration: 4 s", "duration: 4 s\nflows: [{start: 0 s, size: 1 MB}]"), "runs for a time"),
        (("duration: 4 s", "duration: 4 s\nflows: [{start: 0 s, opener: receiver}]"), "the sender that connects"),
        (("howdah: 1", "howdah: 1\nengine: host"), "real time"),
    ],
)
def test_what_flent_cannot_do_is_said_with_its_place(tmp_path: Path, change: tuple[str, str], said: str) -> None:
    file = profile(tmp_path, PROFILE.replace(*change))
    with pytest.raises(HowdahError, match=said) as caught:
        compile_plan(load(file).cells()[0])
    assert caught.value.where is not None
    assert "by-flent.yaml:" in caught.value.where
