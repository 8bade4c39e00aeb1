# SPDX-License-Identifier: Apache-2.0
"""Runs as flent's data files: what is in them, and that flent itself reads and plots them."""

from __future__ import annotations

import dataclasses
import gzip
import itertools
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest

from howdah.command.main import main
from howdah.errors import HowdahError
from howdah.export.flent import flent_document, flent_test, write_flent
from howdah.record.directory import write_json
from howdah.record.result import Run, load_experiment, load_run
from howdah.work.stage import refresh
from tests.experiment_factory import Scenario, make_experiment
from tests.unit.recorded_run import make_recorded_run

_PNG = b"\x89PNG\r\n\x1a\n"


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    scenario = Scenario(algorithms=("cubic",), repetitions=2, duration_s=6.0, failed=(("cubic", 1),))
    return make_experiment(tmp_path_factory.mktemp("runs"), scenario)


@pytest.fixture(scope="module")
def run(root: Path) -> Run:
    return load_experiment(root).runs[0]


# To start flent and matplotlib takes longer than a plot.
_CALLS = """\
import json, sys
from flent import run_flent
for words in json.loads(sys.argv[1]):
    sys.argv = ["flent", *words]
    run_flent()
"""


def _run_flent(*calls: list[str], home: Path) -> str:
    """Calls in one process; what they print."""
    pytest.importorskip("flent", reason="flent is not installed: pip install 'howdah[dev]'")
    environment = os.environ | {"MPLBACKEND": "Agg", "HOME": str(home), "MPLCONFIGDIR": str(home)}
    command = [sys.executable, "-c", _CALLS, json.dumps(calls)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    assert done.returncode == 0, done.stderr
    assert "ERROR" not in done.stderr
    assert "WARNING" not in done.stderr
    return done.stdout


def _present(document: dict[str, Any], name: str) -> list[float]:
    return [value for value in document["results"][name] if value is not None]


def test_a_series_adds_up_to_what_was_acknowledged(run: Run) -> None:
    document = flent_document(run)
    table = run.table("tcp_probe")
    assert table is not None
    for flow in (1, 2):
        acked = table.filter(np.asarray(table.column("flow")) == flow).column("snd_una_bytes").to_numpy()
        goodput = _present(document, f"TCP upload::{flow}")
        sent = sum(goodput) * document["metadata"]["STEP_SIZE"] * 1e6 / 8
        # The published grid of 10 ms cuts off less than one step at either end.
        assert sent == pytest.approx(acked[-1] - acked[0], rel=0.02)


def test_a_flow_has_no_value_before_it_starts_and_the_sums_count_those_present(run: Run) -> None:
    document = flent_document(run)
    at = document["x_values"].index(2.0)
    assert document["results"]["TCP upload::2"][at] is None  # it starts at 3 s
    assert document["results"]["TCP upload sum"][at] == document["results"]["TCP upload::1"][at]
    assert document["results"]["TCP upload fairness"][at] == pytest.approx(1.0)
    late = document["x_values"].index(5.0)
    both = [document["results"][f"TCP upload::{flow}"][late] for flow in (1, 2)]
    assert document["results"]["TCP upload sum"][late] == pytest.approx(sum(both))
    assert document["results"]["TCP upload avg"][late] == pytest.approx(sum(both) / 2)
    assert document["results"]["TCP upload fairness"][late] == pytest.approx(
        sum(both) ** 2 / 2 / sum(each**2 for each in both)
    )


def test_raw_values_hold_the_sockets_and_the_queue_with_their_units(run: Run) -> None:
    document = flent_document(run)
    first = [record for record in document["raw_values"]["TCP upload::1"] if "tcp_rtt" in record]
    assert first[0]["tcp_rtt"] >= 100.0  # milliseconds
    assert all(later["t"] > earlier["t"] for earlier, later in itertools.pairwise(first))
    assert run.started_s <= first[0]["t"] <= run.started_s + 6
    queue = document["raw_values"]["qdisc_stats_left"]
    table = run.table("qdisc")
    assert table is not None
    assert sum(record["dropped"] for record in queue) == table.column("drops_packets").to_numpy()[-1]
    assert sum(record["dropped"] for record in queue) > 0
    assert max(record["backlog_bytes"] for record in queue) == table.column("backlog_bytes").to_numpy().max()


def test_there_are_no_pings_because_none_were_sent(run: Run) -> None:
    document = flent_document(run)
    assert not [name for name in (*document["results"], *document["raw_values"]) if "Ping" in name]


def test_the_same_run_gives_the_same_bytes(run: Run, tmp_path: Path) -> None:
    (first,) = write_flent(run, tmp_path)
    before = first.read_bytes()
    (second,) = write_flent(run, tmp_path)
    assert before == second.read_bytes()


def test_directions_choose_the_test_of_flent(run: Run) -> None:
    assert run.plan is not None
    forward = run.plan.flows[0]
    reverse = dataclasses.replace(forward, direction="reverse")
    assert flent_test([forward])[0] == "tcp_nup"
    assert flent_test([reverse])[0] == "tcp_ndown"
    assert flent_test([forward, reverse])[0] == "rrul_be_nflows"


def test_flent_plots_it(run: Run, tmp_path: Path) -> None:
    (data,) = write_flent(run, tmp_path)
    plots = ("totals", "upload", "tcp_cwnd", "tcp_rtt", "backlog", "drops", "bar_fairness")
    _run_flent(*(["-i", str(data), "-p", plot, "-o", str(tmp_path / f"{plot}.png")] for plot in plots), home=tmp_path)
    for plot in plots:
        assert (tmp_path / f"{plot}.png").read_bytes().startswith(_PNG), plot


def test_flent_reads_the_numbers_that_were_written(run: Run, tmp_path: Path) -> None:
    (data,) = write_flent(run, tmp_path)
    document = flent_document(run)
    told = _run_flent(["-i", str(data), "-f", "stats"], home=tmp_path).split("TCP upload::2:")[1].split(":\n")[0]
    numbers = {line.split(":")[0].strip(): float(line.split()[-2]) for line in told.splitlines() if "Mbits/s" in line}
    goodput = _present(document, "TCP upload::2")
    assert numbers["Max"] == pytest.approx(max(goodput), rel=1e-4)
    assert numbers["Mean"] == pytest.approx(sum(goodput) / len(goodput), rel=1e-4)


def test_flent_plots_flows_both_ways(root: Path, tmp_path: Path) -> None:
    made = load_experiment(root).runs[0]
    assert made.plan is not None
    flows = [made.plan.flows[0], dataclasses.replace(made.plan.flows[1], direction="reverse")]
    both = dataclasses.replace(made, plan=dataclasses.replace(made.plan, flows=flows))
    document = flent_document(both)
    assert document["metadata"]["NAME"] == "rrul_be_nflows"
    late = document["x_values"].index(5.0)
    parts = [document["results"][f"TCP {way} BE::1"][late] for way in ("upload", "download")]
    assert document["results"]["TCP totals"][late] == pytest.approx(sum(parts))
    (data,), picture = write_flent(both, tmp_path), tmp_path / "totals.png"
    _run_flent(["-i", str(data), "-p", "totals_bandwidth", "-o", str(picture)], home=tmp_path)
    assert picture.read_bytes().startswith(_PNG)


def test_the_command_exports_what_it_can_and_names_what_it_cannot(
    root: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["export", str(root), "--format", "flent", "--output", str(tmp_path), "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    (file,) = said["written"]
    assert json.loads(gzip.decompress(Path(file).read_bytes()))["metadata"]["NAME"] == "tcp_nup"
    (refused,) = said["passed_over"]
    assert "-r1-" in refused["where"]


def test_a_run_whose_tables_were_not_kept_is_refused(root: Path) -> None:
    run = load_experiment(root).runs[0]
    bare = dataclasses.replace(run, provenance=run.provenance.replaced(data_removed=True))
    with pytest.raises(HowdahError, match="not kept"):
        flent_document(bare)


def test_a_run_of_datagrams_alone_has_nothing_for_flent(root: Path) -> None:
    run = load_experiment(root).runs[0]
    assert run.plan is not None
    flows = [dataclasses.replace(flow, datagram_bytes=1000) for flow in run.plan.flows]
    with pytest.raises(HowdahError, match="no TCP flow"):
        flent_document(dataclasses.replace(run, plan=dataclasses.replace(run.plan, flows=flows)))


def test_the_file_carries_what_the_kernel_acknowledged(tmp_path: Path) -> None:
    directory = make_recorded_run(tmp_path)
    started = "2025-06-01T12:00:00+00:00"
    write_json(directory.provenance, {"status": "finished", "key": "a" * 64, "stages": [], "started": started})
    assert refresh(directory, force=True)
    document = flent_document(load_run(directory.path, "recorded"))
    assert document["version"] == 4
    assert document["metadata"]["T0"] == "2025-06-01T12:00:00.000000Z"
    acked = pq.read_table(directory.table("tcp_probe")).column("snd_una_bytes").to_numpy()
    assert acked[-1] - acked[0] > 500_000
    carried = sum(_present(document, "TCP upload::1")) * document["metadata"]["STEP_SIZE"] * 1e6 / 8
    # The published grid cuts off less than a step of 10 ms at either end: 12.5 kB at 10 Mbit/s.
    assert carried == pytest.approx(acked[-1] - acked[0], abs=25_000)
