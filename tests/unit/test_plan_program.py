# SPDX-License-Identifier: Apache-2.0
"""Who sends: programs, QUIC stacks and ``cross_check:`` in the plan, and what is refused where written."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from howdah.build.guest_tree import packages_of_plan
from howdah.engine.share import stage_programs
from howdah.errors import ProfileError, RunFailedError
from howdah.plan.plan import Plan
from howdah.profile import load
from howdah.record.directory import RunDirectory
from howdah.work.compiled import compile_plans
from tests.unit.profile_factory import make_one

PAIR = "client: {command: [curl, '{server_address}:{port}']}, server: {command: [nginx]}"


def test_a_flow_of_two_programs(tmp_path: Path) -> None:
    flow = make_one(tmp_path, f"flows: [{{port: 8080, traffic: {{sends: server, {PAIR}}}}}]\n").flows[0]
    assert (flow.traffic, flow.sink, flow.opener) == ("program", "program", "receiver")
    assert (flow.source_port, flow.destination_port) == (8080, 40001), "the server's port is the sender's"
    assert flow.is_tcp
    assert flow.quic is None
    assert flow.program is not None
    assert flow.program.client.command == ["curl", "{server_address}:{port}"]
    assert (flow.program.sends, flow.program.stopped_by) == ("server", "client")


def test_one_flow_of_programs_leaves_the_others_as_they_are(tmp_path: Path) -> None:
    plan = make_one(tmp_path, f"flows: [{{}}, {{traffic: {{{PAIR}}}}}]\n")
    assert [flow.traffic for flow in plan.flows] == ["kernel", "program"]
    alone = make_one(tmp_path, "flows: [{}, {}]\n")
    assert plan.to_json().count('"program":') == 1
    assert '"program"' not in alone.to_json()
    assert plan.flows[0] == alone.flows[0]


def test_a_plan_with_programs_is_read_as_it_was_written(tmp_path: Path) -> None:
    plan = make_one(tmp_path, f"traffic: {{{PAIR}, wire_bytes: 1 MB}}\n")
    assert Plan.from_json(plan.to_json()).flows == plan.flows
    assert plan.flows[0].program is not None
    assert plan.flows[0].program.wire_bytes == 1_000_000


def test_files_beside_the_profile_are_part_of_the_plan_and_copied(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text("print()\n")
    (tmp_path / "data").write_text("x")
    server = "server: {command: [./mine.py], files: [data]}"
    plan = make_one(tmp_path, f"traffic: {{client: {{command: [curl]}}, {server}}}\n")
    assert plan.flows[0].program is not None
    files = plan.flows[0].program.server.files
    assert [file.name for file in files] == ["mine.py", "data"]
    assert files[0].sha256 == hashlib.sha256(b"print()\n").hexdigest()
    directory = RunDirectory(tmp_path / "run")
    directory.share.mkdir(parents=True)
    stage_programs(directory, plan)
    assert (directory.share / "program" / "1-server" / "data").read_text() == "x"
    (tmp_path / "mine.py").write_text("print(1)\n")
    stage_programs(directory, plan)  # the run has it already
    staged = directory.share / "program" / "1-server" / "mine.py"
    staged.unlink()
    with pytest.raises(RunFailedError, match="has changed since the run was planned"):
        stage_programs(directory, plan)
    assert not staged.exists(), "not a byte of another content is written"
    staged.write_text("print(1)\n")
    with pytest.raises(RunFailedError, match="has changed since the run was planned"):
        stage_programs(directory, plan)  # of a run that was ended while it was written, say
    (tmp_path / "mine.py").write_text("print()\n")
    stage_programs(directory, plan)
    assert staged.read_text() == "print()\n", "a file of that name is not the file"


def test_a_quic_stack_has_its_packages_and_its_sender_is_captured(tmp_path: Path) -> None:
    plan = make_one(tmp_path, "traffic: {quic: ngtcp2}\nalgorithm: hystart-plus-plus-cubic\n")
    flow = plan.flows[0]
    assert (flow.quic, flow.is_tcp, flow.kernel_algorithm) == ("ngtcp2", False, "cubic")
    assert packages_of_plan(plan) == ("ngtcp2-client", "ngtcp2-server", "openssl")
    assert plan.collect.pcap == ["s1:s1-eth0"]
    assert flow.program is not None
    # Twice what 20 Mbit/s carry in 4 s.
    assert "--max-dyn-length=20000000" in flow.program.server.command
    without = make_one(tmp_path, "")
    assert packages_of_plan(without) == ()
    assert without.collect.pcap == []


def test_quic_off_is_the_plan_without_it(tmp_path: Path) -> None:
    assert make_one(tmp_path, "traffic: {quic: off}\n").to_json() == make_one(tmp_path, "").to_json()


@pytest.mark.parametrize(
    ("extra", "what", "line"),
    [
        ("traffic:\n  client: {command: [curl]}\n", "server is missing", 8),
        (f"traffic:\n  {{{PAIR}, quic: ngtcp2}}\n", "quic brings its own client and server", 8),
        (f"traffic:\n  {{{PAIR}, source: python}}\n", "source cannot be combined with client and server", 8),
        ("traffic:\n  sends: server\n", "sends needs client and server", 8),
        ("traffic:\n  quic: picoquic\n", "ngtcp2", 8),
        ("traffic:\n  server: {command: [nginx]}\n  client: {command: [./gone]}\n", "there is no file", 9),
        (
            f"topology: {{pairs: 1}}\nflows:\n  - traffic: {{{PAIR}, ports: [5002]}}\n  - {{}}\n",
            "would both use port 5002 of r1",
            9,
        ),
        (
            f"topology: {{pairs: 1}}\nflows:\n  - {{port: 80, traffic: {{{PAIR}}}}}\n  - {{port: 80}}\n",
            "would both use port 80 of r1",
            10,
        ),
    ],
)
def test_what_is_refused(tmp_path: Path, extra: str, what: str, line: int) -> None:
    with pytest.raises(ProfileError) as caught:
        make_one(tmp_path, extra)
    assert what in str(caught.value)
    assert str(caught.value.where).endswith(f"small.yaml:{line}"), str(caught.value)


def test_a_guest_has_memory_for_the_log_that_a_stack_holds(tmp_path: Path) -> None:
    """aioquic writes its qlog at the end: 5 s at 50 Mbit/s filled a guest of 272 MiB."""
    held, written = (
        make_one(tmp_path, f"traffic: {{quic: {stack}}}\n", ["path.rate=50 Mbit/s", "duration=5 s"])
        for stack in ("aioquic", "ngtcp2")
    )
    packets = 50_000_000 * 5 // (8 * held.path.frame_bytes)
    assert held.guest_memory_bytes - written.guest_memory_bytes == pytest.approx(4096 * packets, abs=16 << 20)


TEXT = """\
howdah: 1
name: checked
path: {rate: 20 Mbit/s, rtt: 40 ms, buffer: 1 bdp}
algorithm: [reno, cubic]
duration: 2 s
repetitions: 2
cross_check: {traffic: iperf3, algorithm: ALGORITHM}
"""


def _write(folder: Path, algorithm: str) -> Path:
    file = folder / "checked.yaml"
    file.write_text(TEXT.replace("ALGORITHM", algorithm))
    return file


def test_one_more_run_with_the_same_path(tmp_path: Path) -> None:
    plans = compile_plans(load(_write(tmp_path, "cubic")))
    assert [plan.run for plan in plans] == ["reno-r0", "reno-r1", "cubic-r0", "cubic-r1", "cubic-iperf3-r0"]
    checked, check = plans[2], plans[4]
    assert {flow.traffic for flow in check.flows} == {flow.sink for flow in check.flows} == {"iperf3"}
    assert check.path == checked.path
    assert check.operations == checked.operations
    assert check.axes == {**checked.axes, "traffic": "iperf3"}


def test_an_algorithm_that_no_run_has(tmp_path: Path) -> None:
    with pytest.raises(ProfileError, match="cross_check names bbr") as caught:
        load(_write(tmp_path, "bbr"))
    assert caught.value.where is not None
    assert caught.value.where.endswith("checked.yaml:7")


@pytest.mark.parametrize(
    ("asked", "engine", "ends"),
    [
        ("{}", "uml", ("kernel", "kernel")),
        ("{}", "host", ("iperf3", "iperf3")),
        ("{source: python}", "uml", ("python", "kernel")),
        ("{source: python}", "host", ("python", "python")),
        ("{sink: iperf3}", "uml", ("iperf3", "iperf3")),
    ],
)
def test_traffic_that_is_not_named_suits_the_engine(
    tmp_path: Path, asked: str, engine: str, ends: tuple[str, str]
) -> None:
    file = tmp_path / "ends.yaml"
    file.write_text(TEXT.replace("cross_check: {traffic: iperf3, algorithm: ALGORITHM}", f"traffic: {asked}"))
    flow = compile_plans(load(file), engine=engine)[0].flows[0]
    assert (flow.traffic, flow.sink) == ends
