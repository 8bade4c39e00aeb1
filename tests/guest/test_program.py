# SPDX-License-Identifier: Apache-2.0
"""Programs as traffic in a guest: a sender of one's own beside nginx' and curl's kind, and a QUIC stack."""

from __future__ import annotations

from pathlib import Path

import pytest

from howdah.engine.uml import staged
from howdah.engine.uml.engine import UmlEngine
from howdah.errors import RunFailedError
from howdah.ingest.run import read_report
from howdah.record import table as store
from howdah.record.directory import RunDirectory, read_json
from howdah.record.verdict import Verdict
from tests.guest.guest_run import failures, ignore, plan_of, run

pytestmark = pytest.mark.guest

SIZE = 300_000
SEND = """\
import socket, sys
with socket.create_connection((sys.argv[1], int(sys.argv[2]))) as connection:
    connection.sendall(bytes(int(sys.argv[3])))
    connection.recv(1)
"""
RECEIVE = """\
#!/usr/bin/python3
import os, socket, sys
with socket.create_server((sys.argv[1], int(sys.argv[2]))) as listener:
    connection, _ = listener.accept()
    count = 0
    while count < int(sys.argv[3]):
        count += len(connection.recv(65536))
    connection.sendall(b"!")
sys.stdout.write(f"{count} {os.environ['WHO']}\\n")
"""
PROFILE = """\
howdah: 1
name: programs
path: {rate: 10 Mbit/s, rtt: 40 ms, buffer: 1 bdp}
algorithm: reno
duration: 2 s
flows:
  - size: 300 kB
    traffic:
      client: {command: [python3, "{directory}/send.py", "{server_address}", "{port}", "{bytes}"], files: [send.py]}
      server: {command: [./receive.py, "{server_address}", "{port}", "{bytes}"], environment: {WHO: "{algorithm}"}}
  - stop: 1500 ms
    port: 8080
    traffic:
      sends: server
      client: {command: [curl, --silent, --output, /dev/null, "http://{server_address}:{port}/zeros"]}
      server:
        command: [sh, -c, "truncate -s 9M zeros; exec python3 -m http.server -b $0 $1", "{server_address}", "{port}"]
"""


THROW = """\
import socket, sys, time
with socket.socket(type=socket.SOCK_DGRAM) as thrower:
    while True:
        thrower.sendto(bytes(1000), (sys.argv[1], int(sys.argv[2])))
        time.sleep(0.002)
"""
CATCH = """\
import signal, socket, sys
count = 0
def tell(*_):
    sys.stdout.write(f"{count}\\n")
    sys.exit()
signal.signal(signal.SIGTERM, tell)
with socket.socket(type=socket.SOCK_DGRAM) as catcher:
    catcher.bind((sys.argv[1], int(sys.argv[2])))
    while True:
        count += len(catcher.recv(65536))
"""
DATAGRAMS = """\
howdah: 1
name: datagrams
path: {rate: 10 Mbit/s, rtt: 40 ms, buffer: 1 bdp}
algorithm: reno
duration: 1 s
flows:
  - traffic:
      protocol: udp
      wire_bytes: 200 kB
      client: {command: [python3, ./throw.py, "{server_address}", "{port}"], files: [throw.py]}
      server: {command: [python3, ./catch.py, "{server_address}", "{port}"], files: [catch.py]}
"""


def _profile(folder: Path, text: str = PROFILE) -> Path:
    (folder / "send.py").write_text(SEND)
    (folder / "receive.py").write_text(RECEIVE)
    file = folder / "programs.yaml"
    file.write_text(text)
    return file


@pytest.fixture(scope="module")
def programs(engine: UmlEngine, tmp_path_factory: pytest.TempPathFactory) -> tuple[RunDirectory, Verdict]:
    folder = tmp_path_factory.mktemp("programs")
    return run(engine, plan_of(profile=_profile(folder)), folder / "run")


def test_flows_of_programs_are_measured_as_any_other(programs: tuple[RunDirectory, Verdict]) -> None:
    directory, verdict = programs
    assert failures(verdict) == {}
    pushed, pulled = store.read(directory, "flow").to_pylist()
    assert (pushed["complete"], pushed["bytes_received_bytes"]) == (True, SIZE)
    assert pulled["bytes_received_bytes"] > SIZE
    probe = store.read(directory, "tcp_probe").to_pylist()
    for flow in (pushed, pulled):
        acknowledged = max(row["snd_una_bytes"] for row in probe if row["flow"] == flow["flow"])
        assert acknowledged == pytest.approx(flow["bytes_received_bytes"], abs=3000)
        info = [row for row in store.read(directory, "tcp_info").to_pylist() if row["flow"] == flow["flow"]]
        assert {row["end"] for row in info} == {"sender", "receiver"}


def test_what_programs_said_is_kept_and_the_algorithm_was_the_plans(
    programs: tuple[RunDirectory, Verdict],
) -> None:
    directory, _verdict = programs
    assert (directory.raw / "program" / "1-server" / "stdout.txt").read_text() == f"{SIZE} reno\n"
    assert "GET /zeros" in (directory.raw / "program" / "2-server" / "stderr.txt").read_text()
    pushed, pulled = read_json(directory.raw / "agent.json")["flows"]
    assert (pushed["kernel_algorithm"], pulled["kernel_algorithm"]) == ("reno", "reno")
    assert pulled["programs"]["client"]["told_to_end"], "its time was over"
    assert pulled["source_port"] == 8080


@pytest.mark.parametrize(
    ("server", "what"),
    [
        ("[no-such-program]", "its server no-such-program is not in the guest tree"),
        ("[ls, /no-such-file]", "its server ls ended with status 2: ls: cannot access '/no-such-file'"),
        ('[sleep, "100"]', "its server sleep does not listen at tcp port 5001 after 1 s: it said nothing"),
    ],
)
def test_a_server_that_cannot_serve_is_told_where_the_profile_has_it(
    engine: UmlEngine, tmp_path: Path, server: str, what: str
) -> None:
    text = PROFILE[: PROFILE.index("  - stop:")].replace(
        PROFILE[PROFILE.index("[./rec") : PROFILE.index(", env")], server
    )
    plan = plan_of(profile=_profile(tmp_path, text))
    with pytest.raises(RunFailedError) as caught:
        run(engine, plan, tmp_path / "run")
    assert what in str(caught.value)
    assert str(caught.value.where).endswith("programs.yaml:8")


def test_datagrams_of_programs_end_at_their_bytes_on_the_wire(engine: UmlEngine, tmp_path: Path) -> None:
    """A datagram of 1000 bytes is a frame of 1042; the client is told to end once its host has sent 200 kB of them.
    That is looked for every 10 ms, which are five datagrams."""
    (tmp_path / "throw.py").write_text(THROW)
    (tmp_path / "catch.py").write_text(CATCH)
    file = tmp_path / "datagrams.yaml"
    file.write_text(DATAGRAMS)
    directory, verdict = run(engine, plan_of("calibrate=false", profile=file), tmp_path / "run")
    assert verdict.verdict == "pass", failures(verdict)
    (flow,) = store.read(directory, "flow").to_pylist()
    frames = -(-200_000 // 1042)
    assert flow["complete"]
    assert frames <= flow["bytes_sent_bytes"] // 1000 <= frames + 6
    assert flow["bytes_received_bytes"] == flow["bytes_sent_bytes"], "nothing is lost at 4 of 10 Mbit/s"
    assert 0.35e9 < flow["end_ns"] < 0.6e9
    assert (directory.raw / "program" / "1-server" / "stdout.txt").read_text() == f"{flow['bytes_received_bytes']}\n"
    (record,) = read_json(directory.raw / "agent.json")["flows"]
    assert record["programs"]["client"]["told_to_end"]


IPERF3 = """\
howdah: 1
name: polls
path: {rate: 1 Mbit/s, rtt: 20 ms}
flows:
  - traffic:
      client: {command: [iperf3, -c, "{server_address}", -p, "{port}", -n, 20K, -i, "0"]}
      server: {command: [iperf3, -s, "-1", -p, "{port}"]}
duration: 2 s
"""


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (
            PROFILE[: PROFILE.index("  - stop:")].replace('"{directory}/send.py"', '-c, "while True: pass"'),
            "python3 -c while True: pass",
        ),
        (IPERF3, "'iperf3 -c 10.2.1.1"),
    ],
    ids=["python", "iperf3"],
)
def test_a_program_that_polls_without_waiting_is_told_with_its_name_and_host(
    engine: UmlEngine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, words: str
) -> None:
    """After a limit of processor time, not at the run's wall-clock limit."""
    monkeypatch.setattr(staged, "STANDS_STILL_AFTER_S", 1.5)
    monkeypatch.setattr(staged, "_PROGRAM_PACKET_S", 0)
    plan = plan_of("calibrate=false", profile=_profile(tmp_path, text))
    with pytest.raises(RunFailedError) as caught:
        run(engine, plan, tmp_path / "run")
    said = str(caught.value)
    assert "simulated time stands still" in said
    assert "while a program of flow1" in said
    assert words in said
    assert "on s1" in said


def test_a_quic_stack_fills_the_tables_and_its_log_is_what_was_captured(engine: UmlEngine, tmp_path: Path) -> None:
    overrides = ("traffic.quic=ngtcp2", "path.rate=10 Mbit/s", "path.rtt=40 ms", "path.buffer=10 packets")
    plan = plan_of(*overrides, "duration=1 s", "algorithm=cubic")
    engine.prepare([plan], ignore)
    directory, verdict = run(engine, plan, tmp_path / "run")
    assert failures(verdict) == {}
    (check,) = [each for each in verdict.checks if each.name == "qlog flow 1"]
    assert check.expected == check.measured
    assert int(check.measured or 0) > 200_000
    (exit_,) = store.read(directory, "slow_start").to_pylist()
    assert exit_["reason"] == "loss"
    rows = store.read(directory, "tcp_probe").to_pylist()
    assert rows[0]["cwnd_packets"] == 8, "12 000 bytes are 8 packets of 1444, or 10 of the 1200 that it begins with"
    assert max(row["snd_una_bytes"] for row in rows) > 200_000
    assert read_report(directory).sources["qlog"].rows == len(rows)
