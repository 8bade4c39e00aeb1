# SPDX-License-Identifier: Apache-2.0
"""A module that a profile names is what its flows use, also under the name of a built-in one; anything else is told."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from howdah.engine.uml.engine import UmlEngine
from howdah.errors import HowdahError, ProfileError, RunFailedError
from howdah.record.directory import RunDirectory
from howdah.record.verdict import Verdict
from tests.built_modules import build_modules
from tests.guest.guest_kit import build_or_skip, run_script
from tests.guest.guest_run import failures, howdah, ignore, plan_of, run

pytestmark = pytest.mark.guest

# Its window stays as it is: nothing in the kernel does that.
MODULE = """\
#include <linux/module.h>
#include <net/tcp.h>
static u32 keep(struct sock *sk) { return tcp_sk(sk)->snd_cwnd; }
static void stand(struct sock *sk, u32 ack, u32 acked) {}
static struct tcp_congestion_ops ops = {
	.ssthresh = keep, .cong_avoid = stand, .undo_cwnd = keep, .name = "NAME",
	.owner = THIS_MODULE,
};
static int __init start(void) { return tcp_register_congestion_control(&ops); }
static void __exit stop(void) { tcp_unregister_congestion_control(&ops); }
module_init(start);
module_exit(stop);
MODULE_LICENSE("GPL");
"""
PROFILE = """\
howdah: 1
name: own
path: {rate: 10 Mbit/s, rtt: 40 ms, buffer: 1 bdp}
duration: 2 s
"""


def _write(directory: Path, text: str, **sources: str) -> Path:
    """A profile beside its modules: the name of each file without .c, and the algorithm that it registers."""
    for name, registers in sources.items():
        (directory / f"{name}.c").write_text(MODULE.replace("NAME", registers))
    listed = ", ".join(f"{name}.c" for name in sources)
    profile = directory / "own.yaml"
    profile.write_text(f"{PROFILE}modules: [{listed}]\n{text}")
    return profile


def _run(engine: UmlEngine, profile: Path, place: Path) -> tuple[RunDirectory, Verdict]:
    plan = plan_of(profile=profile)
    engine.prepare([plan], ignore)
    return run(engine, plan, place)


def _largest_window(directory: RunDirectory) -> int:
    rows = pq.read_table(directory.table("tcp_probe"), columns=["cwnd_packets"])
    return int(max(rows["cwnd_packets"].to_pylist()))


@pytest.mark.parametrize("algorithm", ["cubic", "reno", "bbr", "htcp"])
def test_a_file_with_a_built_ins_name_is_what_is_measured(engine: UmlEngine, tmp_path: Path, algorithm: str) -> None:
    profile = _write(tmp_path, f"algorithm: {algorithm}\n", **{f"tcp_{algorithm}": algorithm})
    directory, verdict = _run(engine, profile, tmp_path / "run")
    assert failures(verdict) == {}
    assert _largest_window(directory) == 10
    (check,) = (check for check in verdict.checks if check.name == f"module of {algorithm}")
    assert check.ok
    record = json.loads((directory.raw / "agent.json").read_text())["modules"][f"tcp_{algorithm}"]
    assert record["algorithms"] == [algorithm]
    assert record["loaded_as"] == f"howdah_own_tcp_{algorithm}"
    assert record["srcversion"]
    assert record["uses_before"] < record["uses_most"]


@pytest.mark.parametrize("traffic", ["iperf3", "python"])
def test_programs_use_it_too(engine: UmlEngine, tmp_path: Path, traffic: str) -> None:
    text = f"algorithm: cubic\ntraffic: {{source: {traffic}, sink: {traffic}}}\n"
    directory, verdict = _run(engine, _write(tmp_path, text, tcp_cubic="cubic"), tmp_path / "run")
    assert failures(verdict) == {}
    assert _largest_window(directory) == 10


def test_a_short_connection_is_seen_to_use_it(engine: UmlEngine, tmp_path: Path) -> None:
    text = "algorithm: cubic\ngroups:\n  - {name: few, connections: 2, interval: 700 ms, start: 30 ms, size: 1 kB}\n"
    directory, verdict = _run(engine, _write(tmp_path, text, tcp_cubic="cubic"), tmp_path / "run")
    assert failures(verdict) == {}
    assert directory.raw.is_dir()


def test_ones_own_search_takes_the_place_of_howdahs(engine: UmlEngine, tmp_path: Path) -> None:
    plug_in = """\
#include "slow_start.h"
static u32 grow(struct sock *sk, u32 acked) { return 0; }
static const struct slow_start_ops my_ops = { .name = "search", .owner = THIS_MODULE, .grow = grow };
module_slow_start(my_ops);
MODULE_LICENSE("GPL");
"""
    profile = _write(tmp_path, "algorithm: search\n", ss_search="")
    (tmp_path / "ss_search.c").write_text(plug_in)
    directory, verdict = _run(engine, profile, tmp_path / "run")
    assert failures(verdict) == {}
    assert _largest_window(directory) == 10
    record = json.loads((directory.raw / "agent.json").read_text())["modules"]["ss_search"]
    assert record["algorithms"] == ["search_reno", "search_cubic"]


@pytest.mark.parametrize(
    ("text", "sources", "words"),
    [
        ("algorithm: odd\n", {"tcp_odd": "even"}, "there is no algorithm 'odd'"),
        ("algorithm: mine\n", {"tcp_mine": "cubic"}, "there is no algorithm 'mine'"),
        ("algorithm: reno\n", {"meter": "meter"}, "never used"),
        ("algorithm: cubic\n", {"tcp_cubic": "cubic", "second": "cubic"}, "both bring an algorithm called cubic"),
    ],
)
def test_a_module_that_registers_something_else_is_refused(
    tmp_path: Path, text: str, sources: dict[str, str], words: str
) -> None:
    with pytest.raises(ProfileError, match=words):
        plan_of(profile=_write(tmp_path, text, **sources))


@pytest.mark.parametrize(
    ("text", "sources", "words"),
    [
        ("algorithm: odd\n", {"tcp_odd": "even"}, "it registers even, not odd"),
        ("algorithm: reno\n", {"meter": "meter"}, "never used: it registers meter"),
        ("algorithm: cubic\n", {"meter": "cubic"}, "it registers cubic, which this run takes from elsewhere"),
    ],
)
def test_a_module_that_hides_what_it_registers_ends_the_run(
    engine: UmlEngine, tmp_path: Path, text: str, sources: dict[str, str], words: str
) -> None:
    """Its source shows no struct tcp_congestion_ops."""
    profile = _write(tmp_path, text, **sources)
    for name in sources:
        source = tmp_path / f"{name}.c"
        hidden = source.read_text().replace("struct tcp_congestion_ops ops", "OPS ops")
        source.write_text(
            hidden.replace("static u32 keep", "#define OPS struct tcp_congestion_ops\nstatic u32 keep", 1)
        )
    with pytest.raises(RunFailedError, match=words):
        _run(engine, profile, tmp_path / "run")


def test_a_module_that_is_nobodys_is_told(engine: UmlEngine, tmp_path: Path) -> None:
    profile = _write(tmp_path, "algorithm: mine\n", tcp_mine="mine")
    source = tmp_path / "tcp_mine.c"
    source.write_text(source.read_text().replace("\t.owner = THIS_MODULE,\n", ""))
    with pytest.raises(RunFailedError, match=r"nobody owns the algorithm mine.*\.owner = THIS_MODULE"):
        _run(engine, profile, tmp_path / "run")


def test_ready_modules_with_names_that_are_taken_are_refused(engine: UmlEngine, tmp_path: Path) -> None:
    built = build_or_skip()
    (tmp_path / "sources").mkdir()
    for name in ("tcp_cubic", "tcp_mine"):
        (tmp_path / f"sources/{name}.c").write_text(MODULE.replace("NAME", "cubic"))
    (tmp_path / "sources/Kbuild").write_text("obj-m := tcp_cubic.o tcp_mine.o\n")
    found = build_modules(built.kernel, [str(tmp_path / "sources")], ignore)
    for module in found:
        if module.name in ("tcp_cubic", "tcp_mine"):
            shutil.copyfile(module.file, tmp_path / f"{module.name}.ko")
    profile = tmp_path / "own.yaml"
    profile.write_text(f"{PROFILE}modules: [tcp_cubic.ko]\nalgorithm: cubic\n")
    with pytest.raises(HowdahError, match=r"has a module tcp_cubic built in.*\n.*--kernel TREE"):
        _run(engine, profile, tmp_path / "one")
    profile.write_text(f"{PROFILE}modules: [tcp_mine.ko]\nalgorithm: cubic\n")
    with pytest.raises(RunFailedError, match=r"File exists.*cubic already registered.*replace the one"):
        _run(engine, profile, tmp_path / "two")
    # The kernel does not go by the file's name, and neither does howdah.
    shutil.copyfile(tmp_path / "tcp_mine.ko", tmp_path / "tcp_vegas.ko")
    profile.write_text(f"{PROFILE}modules: [tcp_vegas.ko]\nalgorithm: cubic\n")
    with pytest.raises(RunFailedError, match="File exists"):
        _run(engine, profile, tmp_path / "three")


def test_the_built_in_one_comes_back_when_the_module_goes(engine: UmlEngine, tmp_path: Path) -> None:
    assert engine.lacks() == []
    built = build_or_skip()
    (tmp_path / "tcp_cubic.c").write_text(MODULE.replace("NAME", "cubic"))
    (module,) = (
        one for one in build_modules(built.kernel, [str(tmp_path / "tcp_cubic.c")], ignore) if one.name == "tcp_cubic"
    )
    (tmp_path / "share").mkdir()
    shutil.copyfile(module.file, tmp_path / "share/m.ko")
    use = (
        "import socket,sys,pathlib; s=socket.socket(); s.setsockopt(6,13,b'cubic'); "
        "n=pathlib.Path('/sys/module/howdah_own_tcp_cubic/refcnt'); "
        "print('USERS', n.read_text().strip() if n.exists() else 'gone')"
    )
    step = f'python3 -c "{use}"; grep -o cubic /proc/sys/net/ipv4/tcp_available_congestion_control\n'
    script = f"set -e\n{step}insmod /howdah/in/m.ko\n{step}rmmod howdah_own_tcp_cubic\n{step}echo END\n"
    ending, said = run_script(built, tmp_path, script)
    assert ending.exit_status == 0, said
    assert [line.split()[1] for line in said.splitlines() if line.startswith("USERS")] == ["gone", "1", "gone"]
    assert said.splitlines().count("cubic") == 3
    assert "BUG" not in said
    assert "WARNING" not in said


def test_run_json_says_whose_algorithm_it_was(engine: UmlEngine, tmp_path: Path) -> None:
    assert engine.lacks() == []
    profile = _write(tmp_path, "algorithm: [cubic, reno]\n", tcp_cubic="cubic")
    answer = howdah("run", profile, "--no-report", "--runs", tmp_path / "runs")
    assert answer.returncode == 0, answer.stdout + answer.stderr
    records = {
        path.parent.name.split("-")[0]: json.loads(path.read_text())
        for path in (tmp_path / "runs/own").glob("*-r0-*/run.json")
    }
    module = records["cubic"]["modules"]["tcp_cubic"]
    assert module["source"] == str(tmp_path / "tcp_cubic.c")
    assert module["algorithms"] == ["cubic"]
    assert module["srcversion"]
    assert module["uses_most"] > module["uses_before"]
    assert records["cubic"]["algorithms"]["cubic"]["module"] == "howdah_own_tcp_cubic"
    assert "tcp_cubic" not in records["reno"]["modules"]


def test_a_file_with_a_built_ins_name_that_does_not_compile_is_an_error(engine: UmlEngine, tmp_path: Path) -> None:
    """The stock cubic was measured instead, and passed."""
    assert engine.lacks() == []
    profile = _write(tmp_path, "algorithm: [cubic]\n", tcp_cubic="cubic")
    source = tmp_path / "tcp_cubic.c"
    source.write_text(source.read_text().replace("return tcp_sk(sk)->snd_cwnd", "return nothing"))
    answer = howdah("run", profile, "--no-report", "--runs", tmp_path / "runs")
    assert answer.returncode == 1, answer.stdout + answer.stderr
    assert f"{source}:3" in answer.stderr
    assert "nothing" in answer.stderr
    assert not list((tmp_path / "runs").glob("own/*-r0-*"))
