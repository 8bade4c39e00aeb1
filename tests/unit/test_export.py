# SPDX-License-Identifier: Apache-2.0
"""Runs as CSV, Parquet, xplot, qlog and pcapng, read by programs that are not ours where there is one."""

from __future__ import annotations

import argparse
import csv
import gzip
import json
import shutil
import struct
import subprocess
from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest

import howdah
from howdah.command import export
from howdah.command.main import main
from howdah.errors import HowdahError
from howdah.export.pcapng import write_pcapng
from howdah.export.qlog import write_qlog
from howdah.export.xplot import write_xplot
from howdah.record import raw as raw_module
from howdah.record.directory import write_json
from howdah.record.raw import compress_raw
from howdah.record.result import Run, load_experiment
from tests.experiment_factory import MSS_BYTES, Scenario, make_experiment

ISN = 0xFFFF_FF00  # sequence numbers wrap in the capture


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    scenario = Scenario(repetitions=1, duration_s=5.0, second_flow_s=1.0)
    return make_experiment(tmp_path_factory.mktemp("export"), scenario)


@pytest.fixture(scope="module")
def run(root: Path) -> Run:
    return load_experiment(root).runs[0]


def _acks(run: Run, flow: int) -> dict[str, Any]:
    table = run.table("tcp_probe")
    assert table is not None
    rows = table.filter(np.asarray(table["flow"]) == flow)
    return {name: rows[name].to_numpy() for name in ("time_ns", "snd_una_bytes", "snd_nxt_bytes")}


def test_an_export_of_nothing_leaves_nothing(root: Path, tmp_path: Path) -> None:
    """No run has a capture."""
    assert main(["export", str(root), "--format", "pcapng", "--output", str(tmp_path / "new")]) == 1
    assert not (tmp_path / "new").exists()
    (tmp_path / "there").mkdir()
    assert main(["export", str(root), "--format", "pcapng", "--output", str(tmp_path / "there")]) == 1
    assert (tmp_path / "there").is_dir()


@pytest.mark.parametrize("form", ["csv", "parquet"])
def test_tables_of_all_runs_in_files(root: Path, tmp_path: Path, form: str) -> None:
    assert main(["export", str(root), "--format", form, "--output", str(tmp_path)]) == 0
    e = howdah.load(root)
    names = {file.stem for file in tmp_path.iterdir()}
    assert {"runs", "metrics", "exits", "checks", "tcp_probe", "qdisc"} <= names
    for name in ("metrics", "exits", "tcp_probe"):
        wanted = (e.table(name) if name == "tcp_probe" else getattr(e, name)).to_arrow()
        if form == "parquet":
            assert pq.read_table(tmp_path / f"{name}.parquet").equals(wanted)
            continue
        with (tmp_path / f"{name}.csv").open(newline="", encoding="utf-8") as file:
            rows = list(csv.DictReader(file))
        assert list(rows[0]) == wanted.column_names
        assert len(rows) == wanted.num_rows
        for row, source in list(zip(rows, wanted.to_pylist(), strict=True))[:: max(len(rows) // 50, 1)]:
            assert row["algorithm"] == source["algorithm"]
            number = "value" if name == "metrics" else "exit_time_s" if name == "exits" else "snd_una_bytes"
            assert (float(row[number]) if row[number] else None) == source[number]


def test_without_an_output_files_go_beside_and_not_into_runs(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    before = sorted(root.rglob("*"))
    assert main(["export", str(root), "--format", "qlog"]) == 0
    assert sorted(root.rglob("*")) == before
    assert len(list((tmp_path / "synthetic-qlog").iterdir())) == 4


def test_a_time_sequence_graph_has_what_was_sent_acknowledged_and_allowed(run: Run, tmp_path: Path) -> None:
    files = write_xplot(run, tmp_path)
    assert len(files) == 2
    lines = files[0].read_text().splitlines()
    assert lines[0] == "timeval double"
    assert lines[1] == "title"
    assert "flow flow1: cubic, s1 to r1; 20 Mbit/s, RTT 100 ms" in lines[2]
    assert lines[-1] == "go"
    colours: dict[str, list[list[float]]] = {}
    colour = ""
    for line in lines[7:-1]:
        word, *rest = line.split()
        if word in ("white", "green", "yellow", "red"):
            colour = word
        elif word == "line":
            colours.setdefault(colour, []).append([float(value) for value in rest])
    acks = _acks(run, 1)
    sent = sum(to - begin for _, begin, _, to in colours["white"])
    assert sent == acks["snd_nxt_bytes"].max()
    assert colours["green"][0][:2] == [pytest.approx(acks["time_ns"][0] / 1e9, abs=1e-6), acks["snd_una_bytes"][0]]
    assert colours["green"][-1][3] == acks["snd_una_bytes"][-1]
    for one, other in zip(colours["green"], colours["green"][1:], strict=False):
        assert one[2:] == other[:2], "the line has no gap"
    assert max(to for *_, to in colours["yellow"]) == acks["snd_una_bytes"].max() + (1 << 26)
    exit_s = next(float(row.value or 0) for row in run.metrics if row.metric == "exit_time_s" and row.flow == 1)
    diamond = lines[lines.index("red") + 1].split()
    assert diamond[0] == "diamond"
    assert float(diamond[1]) == pytest.approx(exit_s, abs=1e-5)
    assert "leaves slow start" in lines[-2]


def test_qlog_is_a_sequence_of_json_texts_of_the_main_schema(run: Run, tmp_path: Path) -> None:
    files = write_qlog(run, tmp_path)
    content = files[0].read_text()
    assert content.startswith("\x1e")
    assert content.endswith("\n")
    head, *events = [json.loads(text) for text in content.split("\x1e")[1:]]
    assert (head["qlog_version"], head["qlog_format"]) == ("0.3", "JSON-SEQ")
    assert head["trace"]["vantage_point"]["type"] == "server"
    assert head["trace"]["common_fields"]["time_format"] == "relative"
    assert all(set(event) == {"time", "name", "data"} for event in events)
    times = [event["time"] for event in events]
    assert times == sorted(times)
    states = [event for event in events if event["name"] == "recovery:congestion_state_updated"]
    measured = {row.metric: row.value for row in run.metrics if row.flow == 1}
    assert [state["data"].get("new") for state in states] == ["slow_start", "congestion_avoidance"]
    assert states[1]["data"]["trigger"] == measured["exit_cause"]
    assert states[1]["time"] == pytest.approx(float(measured["exit_time_s"] or 0) * 1e3)
    metrics = [event for event in events if event["name"] == "recovery:metrics_updated"]
    known = {"congestion_window", "ssthresh", "smoothed_rtt", "bytes_in_flight"}
    state: dict[str, float] = {}
    windows = []
    for event in metrics:
        assert event["data"]
        assert set(event["data"]) <= known
        assert all(state.get(name) != value for name, value in event["data"].items()), "only what has changed"
        state |= event["data"]
        windows.append(state["congestion_window"])
    table = run.table("tcp_probe")
    assert table is not None
    assert max(windows) == max(table.filter(np.asarray(table["flow"]) == 1)["cwnd_packets"].to_pylist()) * MSS_BYTES


def _frame(source: str, sport: int, destination: str, dport: int, sequence: int, flags: int, payload: int) -> bytes:
    """Ethernet, IPv4 and TCP headers with so many bytes of payload, which are not there."""
    addresses = b"".join(bytes(int(part) for part in address.split(".")) for address in (source, destination))
    ip = struct.pack("!BBHHHBBH", 0x45, 0, 40 + payload, 0, 0, 64, 6, 0) + addresses
    tcp = struct.pack("!HHIIBBHHH", sport, dport, sequence & 0xFFFFFFFF, 1, 0x50, flags, 1000, 0, 0)
    return b"\2" * 12 + b"\x08\x00" + ip + tcp


def _capture(file: Path, packets: list[tuple[int, bytes, int]]) -> None:
    parts = [struct.pack("<IHHiIII", 0xA1B23C4D, 2, 4, 0, 0, 128, 1)]
    for time_ns, frame, payload in packets:
        size = struct.pack("<IIII", time_ns // 10**9, time_ns % 10**9, len(frame), len(frame) + payload)
        parts.append(size + frame)
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(b"".join(parts))


@pytest.fixture
def captured(tmp_path: Path) -> Run:
    """A run with two captures of flow 1, whose second copy of a packet comes 50 ms later."""
    root = make_experiment(tmp_path, Scenario(algorithms=("cubic",), repetitions=1, duration_s=5.0, second_flow_s=1.0))
    path = next(root.glob("cubic-*"))
    plan = json.loads((path / "plan.json").read_text())
    plan["collect"]["pcap"] = ["s1:s1-eth0", "r1:r1-eth0"]
    write_json(path / "plan.json", plan)
    (path / "raw").mkdir()
    write_json(path / "raw" / "agent.json", {"flows": [{"id": 1, "source_port": 5001}]})
    run = load_experiment(root).runs[0]
    assert run.plan is not None
    flow = run.plan.flows[0]
    acks = _acks(run, 1)
    exit_ns = next(float(row.value or 0) for row in run.metrics if row.metric == "exit_time_s" and row.flow == 1) * 1e9
    sent = int(acks["snd_nxt_bytes"][np.searchsorted(acks["time_ns"], exit_ns, side="right") - 1])
    there = (flow.source_address, flow.source_port, flow.destination_address, flow.destination_port)
    back = (*there[2:], *there[:2])
    packets = [
        (10**18, _frame(*there, ISN, 2, 0), 0),
        (10**18 + 1000, _frame(*back, 77, 0x12, 0), 0),
        (10**18 + 2000, _frame(*there, ISN + 1, 0x10, 1448), 1448),
        (10**18 + 3000, _frame(*there, ISN + 1 + sent - 1448, 0x10, 1448), 1448),
        (10**18 + 4000, _frame(*there, ISN + 1 + sent, 0x10, 1448), 1448),
        (10**18 + 5000, _frame(*there, ISN + 1 + sent + 1448, 0x10, 1448), 1448),
        (10**18 + 6000, b"\2" * 12 + b"\x08\x06" + b"\0" * 28, 0),
    ]
    _capture(run.directory.raw / "pcap" / "s1-s1-eth0.pcap", packets)
    late = [(time_ns + 50_000_000, frame, payload) for time_ns, frame, payload in packets]
    _capture(run.directory.raw / "pcap" / "r1-r1-eth0.pcap", late)
    return run


def _program(name: str) -> str:
    found = shutil.which(name)
    if found is None:
        pytest.skip(f"{name} is not installed: setup/packages-test.txt lists tshark")
    return found


@pytest.mark.parametrize("compressed", [False, True])
def test_wireshark_reads_the_captures_and_their_comments(
    captured: Run, tmp_path: Path, compressed: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if compressed:
        monkeypatch.setattr(raw_module, "LEAST_BYTES", 0)
        monkeypatch.setattr(raw_module, "_WORTH", 1000)
        compress_raw(captured.directory.raw)
    (file,) = write_pcapng(captured, tmp_path)
    fields = ("frame.interface_name", "frame.time_epoch", "frame.cap_len", "frame.len", "frame.comment", "tcp.seq_raw")
    command = [_program("tshark"), "-r", str(file), "-o", "tcp.desegment_tcp_streams:false", "-T", "fields"]
    command += [word for name in fields for word in ("-e", name)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    rows = [line.split("\t") for line in done.stdout.splitlines()]
    assert len(rows) == 14
    assert [row[0] for row in rows] == ["s1:s1-eth0"] * 7 + ["r1:r1-eth0"] * 7
    assert float(rows[0][1]) == 1e9
    assert (rows[2][2], rows[2][3]) == ("54", "1502")
    for first in (0, 7):
        comments = [row[4] for row in rows[first : first + 7]]
        assert comments[0].startswith("flow flow1: cubic, s1 to r1; 20 Mbit/s, RTT 100 ms, buffer 250000 bytes")
        assert "flow flow1 leaves slow start after" in comments[4], "the first new segment after the exit"
        assert [bool(comment) for comment in comments] == [True, False, False, False, True, False, False]
    about = subprocess.run([_program("capinfos"), "-M", str(file)], capture_output=True, text=True, check=True).stdout
    assert "howdah synthetic/cubic-r0" in about
    assert "s1:s1-eth0" in about


def test_a_run_without_captures_says_how_to_get_them(run: Run, tmp_path: Path) -> None:
    with pytest.raises(HowdahError) as caught:
        write_pcapng(run, tmp_path)
    assert "captured no packets" in str(caught.value)
    assert "collect.pcap=[s1:s1-eth0]" in str(caught.value)
    assert not list(tmp_path.iterdir())


def test_what_cannot_be_exported_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    scenario = Scenario(algorithms=("cubic",), repetitions=2, duration_s=2.0, second_flow_s=1.0, failed=(("cubic", 1),))
    root = make_experiment(tmp_path, scenario)
    assert main(["export", str(root), "--format", "xplot", "--output", str(tmp_path / "out")]) == 0
    assert "skipped" in capsys.readouterr().err
    for file in root.glob("*/tables/tcp_probe.parquet"):
        file.unlink()
    assert main(["export", str(root), "--format", "qlog", "--output", str(tmp_path / "out")]) == 1
    assert "recorded no ACKs" in capsys.readouterr().err


# One clock


def _formats() -> set[str]:
    """Those that the command knows."""
    parser = argparse.ArgumentParser()
    export.arguments(parser)
    options = parser._option_string_actions["--format"].choices
    assert options is not None
    return set(options)


def test_every_export_has_the_same_zero(captured: Run, tmp_path: Path) -> None:
    """The exit of flow 1 has one date, whoever reads it. The capture's clock is another one, and runs 1 ms/s fast."""
    row = next(row for row in captured.metrics if row.metric == "exit_time_s" and row.flow == 1)
    assert captured.plan is not None
    exit_s = float(row.value or 0) + captured.plan.flows[0].start_us / 1e6
    epoch_ns, booted_ns = 4 * 10**9, 1_700_000_000 * 10**9
    clocks = [{"monotonic_ns": at, "realtime_ns": booted_ns + at + at // 1000} for at in (0, 100 * 10**9)]
    raw = captured.directory.raw
    write_json(raw / "pcap.json", {"clocks": clocks, "captures": []})
    write_json(raw / "agent.json", {"epoch_monotonic_ns": epoch_ns, "flows": [{"id": 1, "source_port": 5001}]})
    at = epoch_ns + round(exit_s * 1e9)
    for name in ("s1-s1-eth0", "r1-r1-eth0"):
        _capture(raw / "pcap" / f"{name}.pcap", [(booted_ns + at + at // 1000, b"\2" * 60, 0)])
    root = captured.directory.path.parent

    def flent(place: Path) -> float:
        (file,) = place.iterdir()
        value = json.loads(gzip.decompress(file.read_bytes()))
        began = datetime.fromisoformat(value["metadata"]["T0"]).timestamp()
        first = value["raw_values"]["TCP upload::1"]
        inside = [each["t"] - began for each in first if "tcp_cwnd" in each]
        acks = _acks(captured, 1)["time_ns"] / 1e9
        assert inside[0] == pytest.approx(acks[0], abs=0.011), "the first sample of a series each 10 ms"
        assert inside[-1] == pytest.approx(acks[-1], abs=0.011)
        assert value["x_values"][0] == value["metadata"]["STEP_SIZE"]
        return began + exit_s

    def table(rows: list[dict[str, Any]]) -> float:
        times = [int(row["time_ns"]) / 1e9 for row in rows if row["flow_name"] == "flow1"]
        return captured.started_s + min(times, key=lambda value: abs(value - exit_s))

    def csv_(place: Path) -> float:
        with (place / "tcp_probe.csv").open(newline="", encoding="utf-8") as file:
            return table(list(csv.DictReader(file)))

    def parquet(place: Path) -> float:
        return table(pq.read_table(place / "tcp_probe.parquet").to_pylist())

    def xplot(place: Path) -> float:
        lines = sorted(place.iterdir())[0].read_text().splitlines()
        return captured.started_s + float(next(line.split()[1] for line in lines if line.startswith("diamond")))

    def qlog(place: Path) -> float:
        texts = [json.loads(text) for text in sorted(place.iterdir())[0].read_text().split("\x1e")[1:]]
        event = next(each for each in texts[1:] if each["data"].get("new") == "congestion_avoidance")
        return float(texts[0]["trace"]["common_fields"]["reference_time"] + event["time"]) / 1e3

    def pcapng(place: Path) -> float:
        (file,) = place.iterdir()
        command = [_program("tshark"), "-r", str(file), "-T", "fields", "-e", "frame.time_epoch"]
        times = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()
        assert times[0] == times[1]
        return float(times[0])

    readers = {"flent": flent, "csv": csv_, "parquet": parquet, "xplot": xplot, "qlog": qlog, "pcapng": pcapng}
    assert set(readers) == _formats(), "a format has its clock here"
    for name, read in readers.items():
        assert main(["export", str(root), "--format", name, "--output", str(tmp_path / name)]) == 0
        assert read(tmp_path / name) == pytest.approx(captured.started_s + exit_s, abs=2e-5), name
