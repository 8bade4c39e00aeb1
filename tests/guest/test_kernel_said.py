# SPDX-License-Identifier: Apache-2.0
"""What the guest's kernel says of a module that breaks: the run is invalid or failed, with module, reason and calls."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from howdah.engine.uml import guest, staged
from howdah.engine.uml.engine import UmlEngine
from howdah.errors import RunFailedError
from howdah.ingest.run import read_report
from howdah.record.directory import RunDirectory
from howdah.record.verdict import Verdict
from tests.guest.guest_run import failures, ignore, plan_of, run

pytestmark = pytest.mark.guest

# Reno, and at 40 packets what is put in its place.
MODULE = """\
#include <linux/module.h>
#include <linux/delay.h>
#include <linux/slab.h>
#include <net/tcp.h>
static volatile int zero;
static void grow(struct sock *sk, u32 ack, u32 acked)
{
	if (tcp_snd_cwnd(tcp_sk(sk)) >= 40 + zero) {
		BREAK;
	}
	tcp_reno_cong_avoid(sk, ack, acked);
}
static struct tcp_congestion_ops ops = {
	.name = "mine", .owner = THIS_MODULE, .cong_avoid = grow,
	.ssthresh = tcp_reno_ssthresh, .undo_cwnd = tcp_reno_undo_cwnd,
};
static int __init start(void) { return tcp_register_congestion_control(&ops); }
static void __exit stop(void) { tcp_unregister_congestion_control(&ops); }
module_init(start);
module_exit(stop);
MODULE_LICENSE("GPL");
"""
PROFILE = """\
howdah: 1
name: said
path: {rate: 10 Mbit/s, rtt: 40 ms, buffer: 1 bdp}
modules: [mine.c]
algorithm: mine
calibrate: false
duration: 2 s
"""


CALLED = "in the module mine; called, the last first: "


def _run(engine: UmlEngine, place: Path, broken: str, more: str = "") -> tuple[RunDirectory, Verdict]:
    place.mkdir(exist_ok=True)
    (place / "mine.c").write_text(MODULE.replace("BREAK", broken))
    (place / "said.yaml").write_text(PROFILE + more)
    plan = plan_of(profile=place / "said.yaml")
    engine.prepare([plan], ignore)
    return run(engine, plan, place / "run")


def test_a_warning_makes_a_run_invalid_and_is_quoted(engine: UmlEngine, tmp_path: Path) -> None:
    directory, verdict = _run(engine, tmp_path, "WARN_ON_ONCE(1)")
    (check,) = (check for check in verdict.checks if check.name == "kernel log")
    assert check.ok is False
    assert "WARNING: CPU: 0" in check.message
    assert "mine.c:9 grow+" in check.message, "the line of the module's own source"
    assert "[mine]" in check.message
    assert "grow [mine], tcp_ack" in check.message, "the first calls"
    assert "------------[ cut here ]------------" in (directory.raw / "kernel.log").read_text()


def test_what_a_module_prints_is_kept_and_moves_no_packet(engine: UmlEngine, tmp_path: Path) -> None:
    quiet, _ = _run(engine, tmp_path / "quiet", "(void)0")
    loud, verdict = _run(engine, tmp_path / "loud", 'printk("cwnd %u <b>\\n", tcp_snd_cwnd(tcp_sk(sk)))')
    assert ("engine", "kernel log") not in failures(verdict)
    said = read_report(loud).sources["kernel_log"].counts
    lines = [line for line in (loud.raw / "kernel.log").read_text().splitlines() if ";cwnd " in line]
    rows = pq.read_table(loud.table("tcp_probe"))
    # One for each ACK that grew the window, of those that the trace has with 40 packets and more.
    assert 500 < len(lines) <= sum(cwnd >= 40 for cwnd in rows["cwnd_packets"].to_pylist())
    assert said["said_total"] >= len(lines)
    assert lines[0].partition(";")[2] in [each["text"] for each in said["said"]]
    assert len(said["said"]) == 40
    assert rows.equals(pq.read_table(quiet.table("tcp_probe"))), "each ACK, to the nanosecond"


@pytest.mark.parametrize(
    ("broken", "words"),
    [
        ("zero = 100 / zero", f"a division by zero (Kernel mode signal 8), {CALLED}grow [mine], tcp_ack"),
        (
            "__builtin_trap()",
            f"an instruction that the processor does not have (Kernel mode signal 4), {CALLED}grow",
        ),
        ("zero = *(u32 *)(long)zero", f"a bad address (Segfault with no mm), {CALLED}grow [mine], tcp_ack"),
        ("BUG()", "a BUG() or BUG_ON() (BUG!), in the module mine"),
        ('panic("cwnd is %u", 40 + zero)', "panicked: cwnd is 40, in the module mine; called, the last first: "),
    ],
)
def test_a_crash_is_told_in_words_with_the_module(engine: UmlEngine, tmp_path: Path, broken: str, words: str) -> None:
    with pytest.raises(RunFailedError) as failed:
        _run(engine, tmp_path, broken)
    assert words in failed.value.what
    assert "uml_finishsetup" not in str(failed.value), "the useless end of the trace"
    assert "tcp_ack" in failed.value.what
    assert "Linux version" in (tmp_path / "run/raw/kernel.log").read_text(), "what it said before"


@pytest.mark.parametrize("traffic", ["python", "iperf3"])
def test_a_crash_is_told_whoever_makes_the_traffic(engine: UmlEngine, tmp_path: Path, traffic: str) -> None:
    with pytest.raises(RunFailedError) as failed:
        _run(engine, tmp_path, "zero = 100 / zero", f"traffic: {{source: {traffic}, sink: {traffic}}}\n")
    assert f"a division by zero (Kernel mode signal 8), {CALLED}grow [mine], tcp_ack" in failed.value.what


def test_a_module_that_sleeps_is_ended_soon(engine: UmlEngine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(guest, "_ILL_AFTER_S", 1.5)
    with pytest.raises(RunFailedError, match=r"BUG: scheduling while atomic.*module mine was in use"):
        _run(engine, tmp_path, "msleep(5)")


def test_a_module_that_computes_for_ever_is_ended_with_its_name(
    engine: UmlEngine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(staged, "STANDS_STILL_AFTER_S", 1.5)
    with pytest.raises(
        RunFailedError, match=r"simulated time stands still .* while the module mine uses the processor"
    ):
        _run(engine, tmp_path, "while (!zero) cpu_relax()")


def test_a_leak_that_fills_the_memory_is_told(engine: UmlEngine, tmp_path: Path) -> None:
    try:
        _directory, verdict = _run(engine, tmp_path, "(void)!kmalloc(1 << 20, GFP_ATOMIC)")
    except RunFailedError as failed:
        assert "memory" in failed.what or "page allocation failure" in failed.what
    else:
        assert "page allocation failure" in failures(verdict)[("engine", "kernel log")]


def test_the_agents_account_is_that_of_the_file(engine: UmlEngine, tmp_path: Path) -> None:
    directory, _ = _run(engine, tmp_path, "(void)0")
    account = json.loads((directory.raw / "agent.json").read_text())["kernel_log"]
    lines = (directory.raw / "kernel.log").read_text().splitlines()
    assert account["records"] == len(lines)
    assert account["lost"] == account["left_out"] == 0
    assert any("Linux version" in line for line in lines[:3])
