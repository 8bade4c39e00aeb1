# SPDX-License-Identifier: Apache-2.0
"""What ns-2 left becomes tables, measures and checks; from a recording, without the simulator."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from howdah.engine.ns2.engine import write_outcome
from howdah.errors import RunFailedError
from howdah.ingest.ns2 import read_acks, read_links
from howdah.ingest.run import ingest, read_report
from howdah.judge.check import VIRTUAL
from howdah.judge.model import Links, packet_checks
from howdah.judge.run import judge
from howdah.measure.run import measure
from howdah.record import table as store
from howdah.record.directory import RunDirectory, read_json
from tests.unit.simulated_run import make_simulated_run, simulated_plan

PACKETS = 41  # 58 kB in segments of 1448 bytes


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> RunDirectory:
    directory = make_simulated_run(tmp_path_factory.mktemp("simulated") / "run")
    ingest(directory)
    measure(directory, simulated_plan())
    judge(directory, simulated_plan())
    return directory


def rows_of(run: RunDirectory, table: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = store.read(run, table).to_pylist()
    return found


def test_a_record_is_the_state_before_its_ack(run: RunDirectory) -> None:
    """The first ACK of data finds three packets out, and the window that it will raise to 4."""
    first, second = rows_of(run, "tcp_probe")[:2]
    assert (first["snd_una_bytes"], first["snd_nxt_bytes"], first["cwnd_packets"]) == (0, 3 * 1448, 3)
    assert (second["snd_una_bytes"], second["snd_nxt_bytes"], second["cwnd_packets"]) == (1448, 5 * 1448, 4)
    assert first["ssthresh_packets"] is None, "it is the advertised window: infinite"
    assert (first["snd_wnd_bytes"], first["srtt_us"]) == (10_000 * 1448, 60_000)  # ns-2 counts 10 ms ticks


def test_every_ack_of_data_has_a_row_and_the_syns_has_none(run: RunDirectory) -> None:
    links = read_links(run.raw)
    assert len(rows_of(run, "tcp_probe")) == links["s1,in"]["departures"] - 1


def test_losses_show_in_window_and_threshold(run: RunDirectory) -> None:
    rows = rows_of(run, "tcp_probe")
    finite = next(row for row in rows if row["ssthresh_packets"] is not None)
    assert finite["ssthresh_packets"] < max(row["cwnd_packets"] for row in rows)
    info = rows_of(run, "tcp_info")
    assert info[-1]["total_retrans_packets"] == read_acks(run.raw, simulated_plan())[1].rows[-1][-1] > 0
    assert info[-1]["bytes_acked_bytes"] == PACKETS * 1448


def test_the_queue_has_the_names_of_the_plan(run: RunDirectory) -> None:
    plan, rows = simulated_plan(), rows_of(run, "qdisc")
    assert {row["node"] for row in rows} == {plan.calibration.bottleneck_node}
    assert rows[-1]["drops_packets"] == read_links(run.raw)["forward"]["drops"] > 0
    assert 0 < max(row["backlog_bytes"] for row in rows) <= plan.path.buffer_bytes
    assert rows[-1]["time_ns"] >= plan.duration_us * 1000


def test_measures_and_verdict_follow(run: RunDirectory) -> None:
    found = {row["metric"]: row for row in read_json(run.metrics)["rows"] if row["flow"] == 1}
    assert found["exit_cause"]["value"] == "rto", "its last packets were lost, and nothing behind them to tell"
    assert found["completion_time_s"]["kernel"] == "model (ns-2 2.35)"
    outcome = json.loads((run.raw / "agent.json").read_text())["flows"][0]
    assert found["completion_time_s"]["value"] == outcome["end_ns"] / 1e9
    assert outcome["segments_sent"] == PACKETS + outcome["segments_retransmitted"]
    verdict = read_json(run.verdict)
    assert verdict["verdict"] == "pass"
    assert [check["name"] for check in verdict["checks"] if check["ok"] is None] == []


def test_the_outcome_is_made_of_the_traces(tmp_path: Path) -> None:
    directory = make_simulated_run(tmp_path / "run")
    recorded = (directory.raw / "agent.json").read_text()
    (directory.raw / "agent.json").unlink()
    write_outcome(directory, simulated_plan())
    assert (directory.raw / "agent.json").read_text() == recorded


@pytest.mark.parametrize("name", ["acks.tr", "flows.tsv"])
def test_a_trace_that_is_missing_or_cut_ends_the_run_in_words(tmp_path: Path, name: str) -> None:
    directory = make_simulated_run(tmp_path / "run")
    whole = (directory.raw / name).read_text()
    (directory.raw / name).write_text(whole[: len(whole) // 2 - 3])
    with pytest.raises(RunFailedError, match="traces cannot be read"):
        write_outcome(directory, simulated_plan())
    (directory.raw / name).unlink()
    with pytest.raises(RunFailedError, match="traces cannot be read"):
        write_outcome(directory, simulated_plan())


def test_a_damaged_trace_makes_the_run_invalid(tmp_path: Path) -> None:
    directory = make_simulated_run(tmp_path / "run")
    (directory.raw / "acks.tr").write_text("f t0 a_o124 ncwnd_\n")
    ingest(directory)
    problems = read_report(directory).all_problems
    assert problems
    assert all("ns-2's trace cannot be read" in problem for problem in problems)
    checks = {check.name: check.ok for check in judge(directory, simulated_plan()).checks}
    assert checks["raw files"] is False


@pytest.mark.parametrize(
    ("name", "change", "words"),
    [
        ("packets forward", lambda links: links["r1,in"].update(departures=40), "4 lost behind it"),
        ("packets reverse", lambda links: links["s1,in"].update(departures=43), "1 lost behind it"),
        (
            "host queue drops",
            lambda links: links["s1,out"].update(drops=2),
            "2 packets were dropped in queues of hosts",
        ),
        ("silence", lambda links: links["forward"].update(left=1), "1 packets were still queued"),
    ],
)
def test_a_packet_that_is_missing_is_named(
    run: RunDirectory, name: str, change: Callable[[Links], object], words: str
) -> None:
    links = copy.deepcopy(read_links(run.raw))
    assert all(check.ok for check in packet_checks(simulated_plan(), links, VIRTUAL))
    change(links)
    (wrong,) = [check for check in packet_checks(simulated_plan(), links, VIRTUAL) if not check.ok]
    assert wrong.name == name
    assert words in wrong.message


@pytest.mark.parametrize(("lost", "ok"), [(0, False), (5, False), (100, True), (200, False)])
def test_random_loss_is_judged_by_its_ratio(lost: int, ok: bool) -> None:
    """10 000 packets at 1 %: 100 ± 40."""
    plan = simulated_plan("path.loss=1 %")
    queue = {"arrivals": 10_000, "departures": 10_000, "drops": 0, "left": 0}
    links = {name: dict(queue) for name in ("forward", "reverse", "s1,in", "s1,out", "r1,in", "r1,out")}
    links["r1,in"]["departures"] -= lost
    checks = {check.name: check.ok for check in packet_checks(plan, links, VIRTUAL)}
    assert checks["packets forward"] is ok
    assert checks["packets reverse"] is True
