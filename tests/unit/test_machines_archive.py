# SPDX-License-Identifier: Apache-2.0
"""What hosts of a machine set get: the same bytes every time, and a receiver for hosts without an agent."""

from __future__ import annotations

import ast
import gzip
import io
import json
import os
import signal
import socket
import subprocess
import sys
import tarfile
import threading
import time
import urllib.request
import zipfile
from pathlib import Path

import numpy as np
import pytest

from howdah.ingest.framed import parse, read_frames
from howdah.ingest.interface import locate as locate_interface
from howdah.ingest.tcp_info import locate as locate_tcp_info
from howdah.machines.archive import modules, programs
from howdah.machines.receiver import StreamReceiver, main
from howdah.place import PROJECT

# -S leaves out site-packages, -P the working directory: nothing but the archive and the standard library is found.
_BARE = (sys.executable, "-S", "-P", "-B")
_OPENMETRICS = "application/openmetrics-text; version=1.0.0"


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("host") / "howdah.zip"
    path.write_bytes(programs())
    return path


def _started(archive: Path, *arguments: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [*_BARE, "-m", *arguments],
        cwd=archive.parent,
        env={"PATH": os.environ["PATH"], "PYTHONPATH": str(archive)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=_hear_interrupts,
    )


def _hear_interrupts() -> None:
    """A test run that a shell has put behind it ignores SIGINT, and so would the program."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def test_archives_are_the_same_bytes_every_time() -> None:
    assert programs() == programs()
    assert modules() == modules()


def test_the_archive_has_the_modules_that_kbuild_names() -> None:
    with tarfile.open(fileobj=io.BytesIO(modules())) as tar:
        names = tar.getnames()
    assert {
        f"algorithms/{path.name}"
        for path in (PROJECT / "modules" / "algorithms").glob("ss_*.c")
        if ".mod." not in path.name
    } <= set(names)
    assert {"Kbuild", "Makefile", "slow_start/core.h", "traffic/traffic_sink.c", "receiver/qdisc.c"} <= set(names)
    assert not [name for name in names if not name.endswith((".c", ".h")) and name not in ("Kbuild", "Makefile")]


def test_nothing_but_what_hosts_run_is_in_the_archive() -> None:
    with zipfile.ZipFile(io.BytesIO(programs())) as found:
        packages = {name.split("/")[1] for name in found.namelist() if name.startswith("howdah/")}
    assert packages == {
        "__init__.py",
        "agent",
        "codec.py",
        "frame.py",
        "linux",
        "plan",
        "publish",
        "record",
        "traffic.py",
        "trait.py",
    }


def test_the_exporter_runs_from_the_archive(archive: Path) -> None:
    process = _started(archive, "howdah.publish.exporter", "--port", "0")
    assert process.stdout is not None
    line = process.stdout.readline()
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=60)
    assert line.startswith("metrics: http://127.0.0.1:"), errors
    assert process.returncode == 0


def test_from_the_archive_it_answers_in_both_formats(archive: Path) -> None:
    with _started(archive, "howdah.publish.exporter", "--port", "0") as process:
        assert process.stdout is not None
        url = process.stdout.readline().removeprefix("metrics: ").strip()
        try:
            pages = [_page(url, accept) for accept in ("text/plain", _OPENMETRICS)]
        finally:
            process.kill()
    assert all("howdah_cpu_seconds_total{" in page for page in pages)
    assert [page.endswith("# EOF\n") for page in pages] == [False, True]


def _page(url: str, accept: str) -> str:
    request = urllib.request.Request(url, headers={"Accept": accept, "Accept-Encoding": "gzip"})
    with urllib.request.urlopen(request, timeout=60) as answer:
        return gzip.decompress(answer.read()).decode()


@pytest.mark.parametrize("name", ["interface", "tcp-info", "qdisc", "counters"])
def test_a_collector_records_until_it_is_stopped(archive: Path, tmp_path: Path, name: str) -> None:
    process = _started(archive, "collectors.record", name, "--interval-ms", "20", "--directory", str(tmp_path))
    while process.poll() is None and not list(tmp_path.glob("*/recording.json")):
        time.sleep(0.01)
    process.send_signal(signal.SIGTERM)
    out, errors = process.communicate(timeout=60)
    assert process.returncode == 0, errors
    directory = Path(json.loads(out)["recording"])
    about = json.loads((directory / "recording.json").read_text())
    assert about["collector"] == name
    assert about["end_monotonic_ns"] >= about["start_monotonic_ns"]
    if name == "interface":
        records = parse(read_frames(directory / "interface.bin"), locate_interface, ("tx_bytes",))
        assert records.time_ns.size > 0
        assert (np.diff(records.time_ns) >= 0).all()
    elif name == "tcp-info":
        frames = read_frames(directory / "tcp_info.bin")
        assert frames.damage == []
        parse(frames, locate_tcp_info, ("cwnd_packets",))
    elif name == "counters":
        sources = {json.loads(line)["source"] for line in (directory / "counters.jsonl").read_text().splitlines()}
        assert {"snmp", "netstat", "softnet"} <= sources


def test_a_second_recording_in_one_second_has_a_name_of_its_own(tmp_path: Path) -> None:
    from collectors.record import new_directory

    names = [new_directory(tmp_path, "qdisc", 0.0).name for _ in range(2)]
    assert names == ["qdisc-19700101T000000Z", "qdisc-19700101T000000Z-1"]


ROOT = Path(__file__).resolve().parents[2]
ALONE = (ROOT / "howdah" / "machines" / "receiver.py", ROOT / "collectors" / "siftr.py")


def test_every_connection_is_read_to_its_end_and_told_of(tmp_path: Path) -> None:
    log = tmp_path / "log.jsonl"
    receiver = StreamReceiver("127.0.0.1", 0, str(log))
    thread = threading.Thread(target=receiver.serve, args=(2,))
    thread.start()
    sizes = {}
    for size in (3_000_000, 0):
        with socket.create_connection(("127.0.0.1", receiver.port)) as end:
            sizes[end.getsockname()[1]] = size
            end.sendall(bytes(size))
    thread.join(60)
    receiver.close()
    records = [json.loads(line) for line in log.read_text().splitlines()]
    assert {record["peer_port"]: record["bytes_received"] for record in records} == sizes
    full = max(records, key=lambda record: record["bytes_received"])
    assert full["accepted_realtime_ns"] <= full["first_byte_realtime_ns"] <= full["end_realtime_ns"]
    empty = min(records, key=lambda record: record["bytes_received"])
    assert (empty["first_byte_realtime_ns"], empty["error"]) == (None, None)


def test_a_fixed_buffer_is_that_of_its_connections(tmp_path: Path) -> None:
    log = tmp_path / "log.jsonl"
    receiver = StreamReceiver("127.0.0.1", 0, str(log), buffer_bytes=65_536)
    thread = threading.Thread(target=receiver.serve, args=(1,))
    thread.start()
    with socket.create_connection(("127.0.0.1", receiver.port)) as end:
        end.sendall(b"x")
    thread.join(60)
    receiver.close()
    assert json.loads(log.read_text())["buffer_bytes"] == 131_072  # Linux doubles what it is asked for


@pytest.mark.parametrize("address", ["0.0.0.0", "::", "somewhere"])
def test_it_listens_on_one_address_only(address: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--address", address, "--connections", "0"]) == 1
    assert address in capsys.readouterr().err


@pytest.mark.parametrize("path", ALONE, ids=lambda path: path.stem)
def test_what_is_copied_alone_needs_the_standard_library_alone(path: Path) -> None:
    tree = ast.parse(path.read_text(encoding="utf-8"), feature_version=(3, 8))
    imported = {
        name.split(".")[0]
        for node in ast.walk(tree)
        for name in (
            [alias.name for alias in node.names]
            if isinstance(node, ast.Import)
            else [node.module or ""]
            if isinstance(node, ast.ImportFrom)
            else []
        )
    }
    assert imported <= set(sys.stdlib_module_names)
    done = subprocess.run([sys.executable, "-S", "-I", path, "--help"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
