# SPDX-License-Identifier: Apache-2.0
"""What a kernel says: kept within bounds, and read for alarms, modules and calls."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from howdah.agent import keptlog
from howdah.agent.keptlog import KeptLog
from howdah.agent.kernellog import KernelLog
from howdah.codec import encoded
from howdah.engine.crash import crash, kernel_alarm
from howdah.ingest.run import ingest_kernel_log
from howdah.ingest.source import Context, IngestReport
from howdah.judge.engine import kernel_log_checks
from howdah.linux.kernelmessage import KernelMessage, is_alarm, parse
from howdah.linux.output import Output
from howdah.place import REPORTS
from howdah.record.agent import KernelLogRecord
from howdah.record.directory import RunDirectory
from howdah.record.kernel_log import alarms
from howdah.record.result import Run
from howdah.record.run import RunRecord
from howdah.report.section import kernel_messages
from howdah.report.template import templates_of
from tests.unit.profile_factory import make_one
from tests.unit.told_by_agent import told

# As a user-mode kernel without frame pointers writes it: each call is a guess.
TRACE = """\
------------[ cut here ]------------
WARNING: CPU: 0 PID: 0 at /cache/module/.partial-5f98-30463/tcp_mine.c:15 mine_ca+0x77/0x80 [howdah_own_tcp_mine]
Modules linked in: howdah_own_tcp_mine(O) howdah_traffic(O)
Call Trace:
 [<6030fe16>] ? dump_stack_print_info+0xc6/0xf0
 [<60333e3a>] ? __warn.cold+0x4e/0x68
 [<60333ec2>] ? warn_slowpath_fmt+0x6e/0x79
 [<71823077>] ? mine_ca+0x77/0x80 [howdah_own_tcp_mine]
 [<602a6860>] ? tcp_ack+0xda0/0x1560
---[ end trace 0000000000000000 ]---
 [<602a8e12>] ? not_of_it+0x2d2/0x730
"""
OF_X86 = """\
BUG: kernel NULL pointer dereference, address: 0000000000000000
RIP: 0010:mine_ca+0x1f/0x40 [tcp_mine]
 ? page_fault_oops+0x15d/0x2d0
 tcp_ack+0x5a6/0x1510
 tcp_rcv_established+0x1a1/0x7b0
Kernel panic - not syncing: Fatal exception in interrupt
"""


def _numbered(text: str) -> list[tuple[int, str]]:
    return [(7, line) for line in text.splitlines()]


def test_a_record_of_the_kernel_is_read() -> None:
    assert parse("30,17,2500001,-;veth: a;b\n SUBSYSTEM=net") == KernelMessage(6, 17, 2500001, "veth: a;b")
    assert parse("4,3,0;text\n") == KernelMessage(4, 3, 0, "text")
    assert KernelMessage(4, 3, 0, "text").line() == "4,3,0;text\n"
    assert parse(" SUBSYSTEM=net") is None
    assert parse("a,b,c;text") is None


@pytest.mark.parametrize(
    "text",
    [
        "WARNING: CPU: 0 PID: 0 at a.c:1 f+0x1/0x2",
        "BUG: scheduling while atomic: swapper/0/0x00000100",
        "kernel BUG at net/ipv4/tcp.c:1!",
        "Oops: 0002 [#1] SMP",
        "INFO: task iperf3:12 blocked for more than 120 seconds.",
        "WARNING: possible circular locking dependency detected",
        "rcu: INFO: rcu_sched self-detected stall on CPU",
        "watchdog: BUG: soft lockup - CPU#0 stuck for 22s!",
    ],
)
def test_what_says_that_a_kernel_is_ill_is_an_alarm(text: str) -> None:
    assert is_alarm(text)


@pytest.mark.parametrize(
    "text", ["tcp_mine: loading out-of-tree module taints kernel.", "debugging: cwnd 10", "warned"]
)
def test_other_words_are_none(text: str) -> None:
    assert not is_alarm(text)


def test_an_alarm_names_module_and_calls() -> None:
    (found,) = alarms(_numbered(TRACE))
    assert found.text == "WARNING: CPU: 0 PID: 0 at tcp_mine.c:15 mine_ca+0x77/0x80 [tcp_mine]"
    assert found.module == "tcp_mine"
    assert found.frames == ("mine_ca [tcp_mine]", "tcp_ack")
    assert list(alarms([])) == []
    assert list(alarms([(0, "quiet")])) == []


def test_a_kernel_that_is_sure_of_some_calls_tells_no_guesses() -> None:
    first, _panic = alarms(_numbered(OF_X86))
    assert first.frames == ("mine_ca [tcp_mine]", "tcp_ack", "tcp_rcv_established")


def test_what_returns_to_a_functions_first_byte_was_called_by_another() -> None:
    (found,) = alarms(_numbered("Kernel panic - not syncing: mine\n [<7>] ? mine_exit+0x0/0xc66 [tcp_mine]\n"))
    assert (found.module, found.frames) == ("tcp_mine", ("? [tcp_mine]",))


@pytest.mark.parametrize(
    ("console", "words"),
    [
        (
            "[ 6.6] Kernel panic - not syncing: Kernel mode signal 8\n",
            "a division by zero (Kernel mode signal 8); the ",
        ),
        (
            "[ 6.6] Kernel panic - not syncing: Segfault with no mm\n",
            "a bad address (Segfault with no mm); the profile",
        ),
        ("[ 6.6] Kernel panic - not syncing: my own\n [<7>] ? a_ca+0x1/0x9 [tcp_a]\n", "my own, in the module tcp_a;"),
    ],
)
def test_a_panic_is_told_in_words(tmp_path: Path, console: str, words: str) -> None:
    file = tmp_path / "console.log"
    file.write_text(console)
    said = crash(file, ("tcp_mine",))
    assert said is not None
    assert words in said


def test_a_console_without_a_panic_tells_none(tmp_path: Path) -> None:
    file = tmp_path / "console.log"
    assert crash(file, ()) is None
    file.write_text("[ 1.0] reboot: Power down\n")
    assert crash(file, ()) is None
    assert kernel_alarm(file, ()) is None
    file.write_text("[ 1.0] BUG: scheduling while atomic: swapper/0\n" + "[ 1.0] bad: scheduling!\n" * 100_000)
    said = str(kernel_alarm(file, ("m",)))
    assert "sleeping where TCP must not sleep (BUG: scheduling while atomic: swapper/0)" in said
    assert said.endswith("; the profile's module m was in use")


def test_the_calls_are_the_first_ones(tmp_path: Path) -> None:
    file = tmp_path / "console.log"
    file.write_text("[ 6.6] Kernel panic - not syncing: x\n" + "".join(f" [<6>] ? f{n}+0x1/0x9\n" for n in range(40)))
    assert str(crash(file, ())).endswith("called, the last first: f0, f1, f2, f3, f4, f5")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        # A user-mode kernel gives up where it has no registers, and the module behind it goes on.
        (
            "Kernel panic - not syncing: Kernel mode signal 8\nReceived SIGSEGV in SIGSEGV handler, aborting!\n"
            "RIP: grow+0x24/0x40 [howdah_own_mine]\nCall Trace:\n [<6>] ? tcp_ack+0xda0/0x1560\n",
            "a division by zero (Kernel mode signal 8), in the module mine; called, the last first: grow [mine], "
            "tcp_ack",
        ),
        # An instruction may be the first of what the compiler moved elsewhere; what returns to a first byte may not.
        (
            "Kernel panic - not syncing: Kernel mode signal 4\nRIP: grow.cold+0x0/0x2 [howdah_own_mine]\n"
            " [<6>] ? tcp_ack+0x0/0x1560\n",
            "an instruction that the processor does not have (Kernel mode signal 4), in the module mine; called, "
            "the last first: grow.cold [mine], ?",
        ),
        # Of a bad address it tells the calls first.
        (
            "Kernel panic - not syncing: Segfault with no mm\nCall Trace:\n [<6>] ? tcp_ack+0xda0/0x1560\n"
            " [<6>] ? tcp_rcv_established+0x1/0x2\nRIP: grow+0x1a/0x30 [howdah_own_mine]\n",
            "a bad address (Segfault with no mm), in the module mine; called, the last first: grow [mine], tcp_ack, "
            "tcp_rcv_established",
        ),
    ],
)
def test_the_instruction_is_the_innermost_call(tmp_path: Path, text: str, said: str) -> None:
    file = tmp_path / "console.log"
    file.write_text(text)
    assert str(crash(file, ("mine",))) == said


class _Said(KernelLog):
    """A kernel that says what it is given."""

    given: list[KernelMessage] = []  # noqa: RUF012

    def __init__(self, *, whole: bool = False) -> None:
        self.why, self.lost, self.whole = None, 0, whole

    def messages(self) -> list[KernelMessage]:
        now, _Said.given = _Said.given, []
        return now

    def close(self) -> None:
        pass


def _messages(first: int, *texts: str) -> list[KernelMessage]:
    return [KernelMessage(6, first + number, 5, text) for number, text in enumerate(texts)]


def _kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *runs: str) -> KernelLogRecord:
    monkeypatch.setattr(keptlog, "KernelLog", _Said)
    _Said.given = _messages(0, "Linux version")
    log = KeptLog(Output(tmp_path), whole=True)
    _Said.given = _messages(1, *runs)
    return log.end()


def test_a_log_is_kept_with_what_was_said_before_the_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    account = _kept(tmp_path, monkeypatch, "mine: hello")
    assert account == KernelLogRecord(2, 1, 0, 0, None)
    assert (tmp_path / "kernel.log").read_text() == "6,0,5;Linux version\n6,1,5;mine: hello\n"


def test_a_module_that_shouts_fills_no_disk_and_hides_no_alarm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shouts = [f"shout: {'x' * 100}"] * 50_000
    account = _kept(tmp_path, monkeypatch, *shouts, *TRACE.splitlines(), *shouts)
    text = (tmp_path / "kernel.log").read_text()
    assert len(text) < 2.2 * 2**20
    assert "WARNING: CPU: 0" in text
    assert "mine_ca+0x77/0x80 [howdah_own_tcp_mine]" in text
    assert account.records == len(text.splitlines())
    assert account.records + (account.left_out or 0) == 100_001 + len(TRACE.splitlines())


def test_the_page_has_what_a_module_prints(tmp_path: Path) -> None:
    plan = make_one(tmp_path, "")
    directory = RunDirectory(tmp_path / "run")
    directory.raw.mkdir(parents=True)
    directory.tables.mkdir()
    said = [f"6,{number},2500000;mine: <b> {number}" for number in range(1, 61)]
    lines = ["6,0,0;boot", "4,61,2500000;tcp_mine: loading out-of-tree module taints kernel.", *said]
    (directory.raw / "kernel.log").write_text("\n".join(lines) + "\n")
    agent = {"kernel_log": {"records": 62, "first": 1, "lost": 0, "left_out": 0, "why": None}}
    found = ingest_kernel_log(Context(directory, plan, told(**agent), 0))
    assert found is not None
    (directory.tables / "ingest.json").write_text(json.dumps(encoded(IngestReport({"kernel_log": found}))))
    run = Run(directory, "x", "mine", 0, {}, "finished", plan, [], [], None, RunRecord(status="finished"))
    (shown,) = kernel_messages([(run, "mine")])
    assert shown.lines[0] == ("2.50", "mine: <b> 1")
    assert (len(shown.lines), shown.left_out) == (40, 20)
    page = templates_of(REPORTS / "templates").get_template("kernel-messages.html.j2").render(kernel_messages=[shown])
    assert "mine: &lt;b&gt; 1<" in page
    assert "and 20 more" in page


def _judged(tmp_path: Path, text: str) -> tuple[bool | None, str]:
    plan = make_one(tmp_path, "")
    directory = RunDirectory(tmp_path / "run")
    directory.raw.mkdir(parents=True)
    (directory.raw / "kernel.log").write_text(text)
    kept = {"records": len(text.splitlines()), "first": 1, "lost": 0, "left_out": 0, "why": None}
    agent: dict[str, Any] = {"kernel_log": kept, "modules": {}}
    found = ingest_kernel_log(Context(directory, plan, told(**agent), 0))
    assert found is not None
    (check,) = kernel_log_checks(IngestReport({"kernel_log": found}), told(**agent))
    return check.ok, check.message


def test_a_run_whose_kernel_warned_is_invalid(tmp_path: Path) -> None:
    lines = "".join(f"4,{number},7;{line}\n" for number, line in enumerate(TRACE.splitlines(), start=1))
    ok, message = _judged(tmp_path, "6,0,0;boot\n" + lines)
    assert ok is False
    assert "tcp_mine.c:15 mine_ca+0x77/0x80 [tcp_mine]; called, the last first: mine_ca [tcp_mine], tcp_ack" in message


def test_what_it_said_before_the_run_is_not_of_the_run(tmp_path: Path) -> None:
    assert _judged(tmp_path, "4,0,0;WARNING: of the boot\n6,1,5;mine: hello\n")[0] is True
