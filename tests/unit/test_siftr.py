# SPDX-License-Identifier: Apache-2.0
"""SIFTR's logs to tables, and switching SIFTR on and off.

No FreeBSD was at hand. tests/golden/raw/siftr/ was written by hand after siftr(4) of FreeBSD 14 (fields, their order
and units, first and last line) and, for version 1.3, after what its source prints; the flow is the recorded run's.
"""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

import pytest

from collectors.siftr import SiftrError
from collectors.siftr import main as siftr_main
from howdah.ingest.run import ingest
from howdah.ingest.siftr import read_log
from howdah.record import table as store
from howdah.record.directory import RunDirectory
from tests.unit.recorded_run import make_recorded_run

GOLDEN = Path(__file__).parent.parent / "golden" / "raw" / "siftr"
EPOCH_NS = 1_700_000_000_000_000_000
# The example record of siftr(4), which has one field more in FreeBSD 14 than in its first version.
MANUAL = (
    "o,0xbec491a5,1238556193.463551,172.16.7.28,22,172.16.2.5,55931,"
    "1073725440,172312,6144,66560,66608,8,1,4,1448,936,1,996,255,33304,208,66608,0,208"
)
MANUAL_HEAD = (
    "enable_time_secs=1238556193\tenable_time_usecs=462104\tsiftrver=1.2.2\thz=1000\ttcp_rtt_scale=32\t"
    "sysname=FreeBSD\tsysver=604000\tipmode=4"
)
END = (
    "disable_time_secs=1238556197\tdisable_time_usecs=933607\ttotal_tcp_pkts=1\t"
    "num_inbound_skipped_pkts_malloc=0\tflow_list="
)


def _log(path: Path, *lines: str) -> Path:
    path.write_text("".join(f"{line}\n" for line in lines), encoding="ascii")
    return path


def _with_log(parent: Path, name: str, note: dict[str, object]) -> RunDirectory:
    run = make_recorded_run(parent)
    directory = run.raw / "siftr"
    directory.mkdir()
    shutil.copy(GOLDEN / name, directory / "d.log")
    (directory / "d.json").write_text(json.dumps(note))
    return run


@pytest.mark.parametrize("line", [MANUAL, f"{MANUAL},0"])
def test_the_example_of_the_manual_is_read_as_it_explains(tmp_path: Path, line: str) -> None:
    log = read_log(_log(tmp_path / "d.log", MANUAL_HEAD, line, END))
    assert log.problems == []
    (record,) = log.records
    assert record.connection == ("172.16.7.28", 22, "172.16.2.5", 55931)
    assert record.time_ns == 1_238_556_193_463_551_000
    assert (record.incoming, record.state) == (False, 1)
    assert (record.cwnd_bytes, record.snd_wnd_bytes, record.rcv_wnd_bytes) == (172_312, 66_560, 66_608)
    assert record.ssthresh_bytes == 1_073_725_440
    assert record.srtt_us == 29_250  # 936 / (32 x 1000 Hz)
    assert record.rto_us == 255_000
    assert (record.mss_bytes, record.inflight_bytes) == (1448, 208)


def test_both_versions_tell_the_same_of_the_same_connection() -> None:
    old, new = (read_log(GOLDEN / f"freebsd-{version}.log") for version in (12, 15))
    assert old.problems == new.problems == []
    ours = [record for record in old.records if record.connection[1] == 5201]
    assert ours == new.records
    assert len(new.records) == 5


def test_a_receivers_log_becomes_rows_of_tcp_info_in_the_runs_time(tmp_path: Path) -> None:
    run = _with_log(tmp_path, "freebsd-12.log", {"epoch_realtime_ns": EPOCH_NS + 50_000_000})
    before = 15
    report = ingest(run)
    assert report.all_problems == []
    source = report.sources["tcp_info"]
    assert source.rows == before + 5
    assert {name: source.counts[name] for name in ("siftr_records", "siftr_rows", "siftr_unknown_rows")} == {
        "siftr_records": 6,
        "siftr_rows": 5,
        "siftr_unknown_rows": 1,
    }
    rows = store.read(run, "tcp_info").to_pylist()
    assert [row["time_ns"] for row in rows] == sorted(row["time_ns"] for row in rows)
    siftr = [row for row in rows if row["pacing_rate_bytes_per_second"] is None]
    assert {(row["flow"], row["end"]) for row in siftr} == {(1, "receiver")}
    assert [row["time_ns"] for row in siftr] == [100_900_000, 140_950_000, 141_000_000, 182_000_000, 182_010_000]
    assert [row["rcv_wnd_bytes"] for row in siftr] == [65_535, 66_608, 131_072, 262_144, 262_144]
    assert [row["rtt_us"] for row in siftr] == [None, None, 41_000, 41_000, 41_000]
    assert [row["state"] for row in siftr] == [3, 1, 1, 1, 1]
    assert {row["ssthresh_packets"] for row in siftr} == {None}
    assert {row["cwnd_packets"] for row in siftr} == {10}
    # A receiver's packets are no ACKs of a sender.
    assert report.sources["tcp_probe"].rows == 374


def test_a_senders_incoming_packets_become_rows_of_tcp_probe(tmp_path: Path) -> None:
    run = make_recorded_run(tmp_path)
    directory = run.raw / "siftr"
    directory.mkdir()
    ends = "10.0.1.1,40000,10.0.2.1,5201"
    record = "{},0x00000000,1700000000.{:06d},{},28960,43440,0,66560,66608,8,9,4,1448,1280,1,1606,240,1,1,1,0,{},0,0,0"
    lines = [record.format("i", 200_000, ends, 1449), record.format("o", 200_100, ends, 2896)]
    _log(directory / "s.log", MANUAL_HEAD, *lines, END)
    (directory / "s.json").write_text(json.dumps({"epoch_realtime_ns": EPOCH_NS}))
    report = ingest(run)
    assert report.all_problems == []
    assert report.sources["tcp_probe"].rows == 374 + 1
    (row,) = [row for row in store.read(run, "tcp_probe").to_pylist() if row["snd_una_bytes"] is None]
    assert (row["flow"], row["time_ns"], row["cwnd_packets"], row["ssthresh_packets"]) == (1, 200_000_000, 30, 20)
    assert (row["srtt_us"], row["snd_wnd_bytes"]) == (40_000, 66_560)
    rows = store.read(run, "tcp_info").to_pylist()
    unacked = [row["unacked_packets"] for row in rows if row["pacing_rate_bytes_per_second"] is None]
    assert unacked == [2, 2]  # 1449 bytes are two packets


def test_without_the_hosts_clock_at_time_zero_a_log_is_left_out(tmp_path: Path) -> None:
    run = _with_log(tmp_path, "freebsd-12.log", {"node": "d"})
    report = ingest(run)
    assert report.sources["tcp_info"].rows == 15
    assert any("what the host's clock showed at time zero" in problem for problem in report.all_problems)


@pytest.mark.parametrize(
    ("line", "said"),
    [
        (MANUAL[:80], "a record of"),
        (f"{MANUAL},0,0,0,0", "a record of 29 fields"),
        (MANUAL.replace("o,", "x,", 1), "a direction 'x'"),
        (MANUAL.replace("172.16.7.28", "172.16.7.280"), "172.16.7.280"),
        (MANUAL.replace(".463551", ".46"), "a time"),
        (MANUAL.replace(",4,1448", ",11,1448"), "a TCP state 11"),
        (MANUAL.replace("172312", "?"), "invalid literal"),
        ("", "a record of 1 fields"),
    ],
)
def test_a_line_that_cannot_be_read_is_told_with_its_number(tmp_path: Path, line: str, said: str) -> None:
    log = read_log(_log(tmp_path / "d.log", MANUAL_HEAD, line, MANUAL, END))
    assert len(log.records) == 1
    assert log.counts["wrong_lines"] == 1
    (problem,) = log.problems
    assert problem.startswith("d.log:2: ")
    assert said in problem


def test_lost_records_a_cut_file_and_a_missing_one_are_problems(tmp_path: Path) -> None:
    lost = read_log(_log(tmp_path / "lost.log", MANUAL_HEAD, MANUAL, END.replace("malloc=0", "malloc=7")))
    assert (lost.counts["lost_records"], lost.problems) == (7, ["SIFTR lost 7 of 1 records"])
    cut = read_log(_log(tmp_path / "cut.log", MANUAL_HEAD, MANUAL))
    assert any("has no last line" in problem for problem in cut.problems)
    outside = read_log(_log(tmp_path / "outside.log", MANUAL))
    assert any("outside of an enabled time" in problem for problem in outside.problems)
    assert any("cannot be read" in problem for problem in read_log(tmp_path / "none.log").problems)


class _Tree:
    """Stands for sysctl(8): values that were set, and names that are not there."""

    def __init__(self, missing: str = "") -> None:
        self.values = {"net.inet.siftr.enabled": "0", "net.inet.siftr.logfile": "/var/log/siftr.log"}
        self.missing = missing
        self.calls: list[str] = []

    def __call__(self, argument: str) -> str:
        self.calls.append(argument)
        name, _, value = argument.partition("=")
        if self.missing and re.search(self.missing, name):
            raise SiftrError(f"unknown oid '{name}'")
        if value:
            self.values[name] = value
        return self.values.get(name, "")


def test_siftr_is_switched_on_last_and_noted_with_the_epoch(tmp_path: Path) -> None:
    tree = _Tree()
    arguments = ["--directory", str(tmp_path), "--node", "r1"]
    assert siftr_main(["start", *arguments, "--port", "5201"], tree) == 0
    assert tree.calls[-1] == "net.inet.siftr.enabled=1"
    assert tree.values["net.inet.siftr.logfile"] == str(tmp_path / "r1.log")
    assert tree.values["net.inet.siftr.port_filter"] == "5201"
    assert siftr_main(["stop", *arguments, "--epoch-realtime-ns", "17"], tree) == 0
    note = json.loads((tmp_path / "r1.json").read_text())
    assert (note["node"], note["port"], note["epoch_realtime_ns"]) == ("r1", 5201, 17)
    assert note["stop_realtime_ns"] >= note["start_realtime_ns"]
    assert tree.values["net.inet.siftr.enabled"] == "0"


def test_siftr_without_a_filter_of_ports_records_all(tmp_path: Path) -> None:
    tree = _Tree(missing="port_filter")
    assert siftr_main(["start", "--directory", str(tmp_path), "--node", "r1", "--port", "5201"], tree) == 0
    assert json.loads((tmp_path / "r1.json").read_text())["port"] is None


@pytest.mark.parametrize(
    ("case", "said"), [("missing", "kldload siftr"), ("on", "is on already"), ("log", "would add")]
)
def test_siftr_is_refused_with_what_to_do(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], case: str, said: str
) -> None:
    tree = _Tree(missing="siftr" if case == "missing" else "")
    if case == "on":
        tree.values["net.inet.siftr.enabled"] = "1"
    if case == "log":
        (tmp_path / "r1.log").touch()
    assert siftr_main(["start", "--directory", str(tmp_path), "--node", "r1"], tree) == 1
    assert said in capsys.readouterr().err
    assert "net.inet.siftr.enabled=1" not in tree.calls
