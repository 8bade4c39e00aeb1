# SPDX-License-Identifier: Apache-2.0
"""What the agent does around programs that needs no guest: placeholders, counters, starts, and ends."""

from __future__ import annotations

import dataclasses
import sys
from pathlib import Path
from typing import Any, Literal

import pytest

from collectors.collector import Watched
from collectors.tracepoint import event_filter
from howdah.agent.error import AgentError
from howdah.agent.traffic.program import substituted
from howdah.agent.traffic.program_process import ProgramProcess
from howdah.agent.traffic.program_socket import InterfaceTotals, bound_udp_ports, parse_interfaces
from howdah.agent.traffic.running import RUNNING
from howdah.linux.netlink.diag import Endpoint
from howdah.plan.traffic import ProgramEnd, Programs
from howdah.record.agent import ProgramRecord
from tests.unit.trace_factory import make_flow

_DEV = """\
Inter-|   Receive                         |  Transmit
 face |bytes packets errs drop fifo frame compressed multicast|bytes packets errs drop fifo colls carrier compressed
    lo: 100 2 0 0 0 0 0 0 100 2 0 0 0 0 0 0
s1-eth0: 2000 20 0 0 0 0 0 0 3000 30 0 0 0 0 0 0
"""
_UDP = """\
  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode ref pointer drops
  10: 0101010A:1389 00000000:0000 07 00000000:00000000 00:00000000 00000000     0        0 12 2 0 0
"""


class Here:
    """A host that is this machine."""

    name = "s1"

    def entered(self) -> Here:
        return self

    def __enter__(self) -> None:
        return None

    def __exit__(self, *_: object) -> None:
        return None


def process(folder: Path, monkeypatch: pytest.MonkeyPatch, command: list[str], **more: Any) -> ProgramProcess:
    monkeypatch.setattr("howdah.agent.traffic.program_process._PLACE", folder / "place")
    raw = folder / "raw"
    raw.mkdir()
    given = dataclasses.replace(ProgramEnd(command, {}, [], own=False, signal="TERM"), **more)
    found = ProgramProcess("flow 1 (flow1, program)", "client", given, raw, 1)
    found.make_directory(lambda text: substituted(text, {"directory": str(found.directory)}))
    return found


def start(made: ProgramProcess) -> None:
    made.start(Here())  # type: ignore[arg-type]


def test_placeholders_are_replaced_inside_of_an_argument_and_nothing_else_is() -> None:
    values = {"port": "80", "server_address": "10.1.1.1"}
    assert substituted("http://{server_address}:{port}/{x} {} {{port}}", values) == "http://10.1.1.1:80/{x} {} {80}"
    assert substituted("$(reboot); `{port}`", values) == "$(reboot); `80`"


def test_counters_of_interfaces_leave_the_loopback_out() -> None:
    assert parse_interfaces(_DEV) == InterfaceTotals(2000, 20, 3000, 30)
    assert parse_interfaces(_DEV).since(InterfaceTotals(500, 5, 1000, 10)) == InterfaceTotals(1500, 15, 2000, 20)


def test_ports_that_udp_sockets_are_bound_to() -> None:
    assert bound_udp_ports(_UDP) == {5001}


@pytest.mark.parametrize(("sends", "text"), [("server", "(sport==80)"), ("client", "(dport==80)")])
def test_the_trace_takes_any_port_of_the_client(sends: Literal["server", "client"], text: str) -> None:
    ends = (
        {"source_port": 80, "destination_port": 40001}
        if sends == "server"
        else {"source_port": 1, "destination_port": 80}
    )
    end = ProgramEnd(["any"], {}, [], own=False, signal="TERM")
    program = Programs(sends, "tcp", [], None, "client", None, end, end)
    flow = make_flow(**ends, program=program)
    endpoint = Endpoint("10.1.1.1", ends["source_port"], "10.2.1.1", ends["destination_port"])
    plain = Watched(make_flow(), Endpoint("10.1.1.2", 1, "10.2.1.2", 2))
    assert event_filter([plain, Watched(flow, endpoint)]) == f"(sport==1&&dport==2)||{text}"


def test_a_program_that_is_not_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(AgentError, match="its client no-such-program is not in the guest tree"):
        start(process(tmp_path, monkeypatch, ["no-such-program"]))


def test_how_a_program_ended_and_what_it_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    script = "import sys, os; sys.stderr.write('no route\\n' + os.getcwd() + '\\n'); sys.exit(3)"
    made = process(tmp_path, monkeypatch, [sys.executable, "-c", script])
    start(made)
    assert "its client" in (tmp_path / "raw" / RUNNING).read_text()
    made.reap()
    assert made.failed
    assert made.describe_end() == f"its client {sys.executable} ended with status 3: no route / {made.directory}"
    assert (tmp_path / "raw" / RUNNING).read_text() == "{}"
    assert made.record().status == 3


def test_a_program_that_was_told_to_end_did_not_fail(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = process(tmp_path, monkeypatch, ["sleep", "600"])
    start(made)
    made.kill()
    assert not made.is_running
    assert not made.failed
    assert made.record() == ProgramRecord(["sleep", "600"], -15, told_to_end=True)


def test_what_must_run_before_and_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(AgentError, match="ls ended with status"):
        process(tmp_path, monkeypatch, ["true"], before=[["ls", "no-such-file"]])
