# SPDX-License-Identifier: Apache-2.0
"""flent itself in the guest: its data file beside what the kernel's records say of the same connection."""

from __future__ import annotations

import gzip
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from howdah.command.main import main
from howdah.export.flent import flent_document, write_flent
from howdah.record import table as store
from howdah.record.directory import RunDirectory, read_json
from howdah.record.result import load_run

pytestmark = [pytest.mark.guest, pytest.mark.usefixtures("remembered_guests")]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> RunDirectory:
    runs = tmp_path_factory.mktemp("runs")
    options = ["--set", "algorithm=cubic", "--jobs", "1", "--runs", str(runs)]
    assert main(["run", "flent-tcp", *options]) == 0
    (directory,) = (runs / "flent-tcp").glob("cubic-r0-*")
    return RunDirectory(directory)


def _written(run: RunDirectory) -> Path:
    (file,) = (run.raw / "flent" / "1").glob("*.flent.gz")
    return file


def _document(file: Path) -> dict[str, Any]:
    document: dict[str, Any] = json.loads(gzip.decompress(file.read_bytes()))
    return document


def _values(document: dict[str, Any], name: str) -> list[float]:
    return [record["val"] for record in document["raw_values"][name] if "val" in record]


def test_the_run_counts_and_its_flow_is_whole(run: RunDirectory) -> None:
    assert read_json(run.verdict)["verdict"] == "pass"
    (flow,) = store.read(run, "flow").to_pylist()
    assert flow["complete"]
    assert flow["kernel_algorithm"] == "cubic"
    acked = store.read(run, "tcp_probe").column("snd_una_bytes").to_pylist()[-1]
    # What iperf's server counted is what the kernel saw acknowledged, up to the last window.
    assert flow["bytes_received_bytes"] == pytest.approx(acked, abs=300_000)
    assert flow["bytes_received_bytes"] > 20_000_000


def test_what_flent_measured_agrees_with_the_records_of_the_kernel(run: RunDirectory) -> None:
    own = _document(_written(run))
    exported = flent_document(load_run(run.path, "flent-tcp"))
    assert own["metadata"]["NAME"] == exported["metadata"]["NAME"] == "tcp_nup"
    mean, seen = (sum(values) / len(values) for values in (_values(each, "TCP upload::1") for each in (own, exported)))
    # iperf counts what it gave to its socket, which is up to a send buffer ahead.
    assert mean == pytest.approx(seen, rel=0.06)
    assert own["metadata"]["SERIES_META"]["TCP upload::1"]["MEAN_VALUE"] == pytest.approx(seen, rel=0.06)


def test_flents_pings_saw_the_path_and_its_queue(run: RunDirectory) -> None:
    pings = _values(_document(_written(run)), "Ping (ms) ICMP")
    assert len(pings) >= 40
    assert min(pings) >= 40.0
    # A full buffer of 100 kB at 20 Mbit/s is another 40 ms.
    assert 55 < max(pings) < 82


def test_flent_plots_its_own_file_and_the_exported_one(run: RunDirectory, tmp_path: Path) -> None:
    program = Path(sys.executable).parent / "flent"
    if not program.exists():
        pytest.skip("flent is not installed: pip install 'howdah[dev]'")
    environment = os.environ | {"MPLBACKEND": "Agg", "HOME": str(tmp_path), "MPLCONFIGDIR": str(tmp_path)}
    for number, file in enumerate((_written(run), *write_flent(load_run(run.path, "flent-tcp"), tmp_path))):
        picture = tmp_path / f"{number}.png"
        command = [str(program), "-i", str(file), "-p", "totals", "-o", str(picture)]
        done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
        assert done.returncode == 0, done.stderr
        assert picture.read_bytes().startswith(b"\x89PNG")
