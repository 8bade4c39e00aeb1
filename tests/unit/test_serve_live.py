# SPDX-License-Identifier: Apache-2.0
"""``howdah serve --live`` through the end of a run: scraped while it is made, at full rate when it has ended.

Prometheus looks for new blocks once a minute, and so this test waits, doing nothing, for up to two.
"""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

from howdah.command.main import main
from howdah.publish.server import Client, Value, free_port
from howdah.record.directory import RunDirectory, read_json, write_json
from howdah.work.stage import refresh
from tests.prometheus_fixture import prometheus_or_skip
from tests.unit.underway_run import Underway, make_underway

_LIMIT_S = 240.0
_WINDOW = "howdah_flow_cwnd_packets"


def _until(client: Client, query: str, good: Callable[[list[Value]], bool]) -> list[Value]:
    limit = time.monotonic() + _LIMIT_S
    while True:
        found = client.instant(query, int(time.time() * 1000))
        if good(found) or time.monotonic() > limit:
            return found
        time.sleep(0.5)


def _end(underway: Underway, agent: str, started: str) -> None:
    """What the maker of a run does when it has ended."""
    raw = underway.directory / "raw"
    raw.joinpath("agent.json").write_text(agent, encoding="utf-8")
    raw.joinpath("trace.json").write_bytes(underway.last["trace.json"])
    finished = {"status": "finished", "key": "a" * 64, "stages": [], "started": started}
    write_json(underway.directory / "run.json", finished)
    refresh(RunDirectory(underway.directory), force=True)
    underway.directory.rename(underway.directory.parent / "recorded")
    cell = {"run": "recorded", "axes": {}, "algorithm": "cubic", "repetition": 0}
    write_json(underway.directory.parent / "experiment.json", {"format": 1, "name": "live", "cells": [cell]})


def test_a_run_is_scraped_and_then_filled_in(tmp_path: Path) -> None:
    prometheus_or_skip()
    started = datetime.now(UTC).isoformat()
    underway = make_underway(tmp_path / "runs")
    agent = json.dumps({"format": 1, "status": "ok", "epoch_monotonic_ns": 50_000_000, "flows": []})
    port = str(free_port())
    command = [sys.executable, "-m", "howdah.command.main", "serve", "--live", "--port", port]
    served = subprocess.Popen([*command, "--runs", str(tmp_path / "runs")], stdout=subprocess.PIPE, text=True)
    try:
        assert served.stdout is not None
        assert f"http://127.0.0.1:{port}/user/live.html" in served.stdout.readline(), "before runs are read"
        assert "0 runs" in served.stdout.readline()
        client = Client(f"http://127.0.0.1:{port}")
        underway.write(1)
        (seen,) = _until(client, _WINDOW, bool)
        assert seen.labels["job"] == "howdah-live"
        _end(underway, agent, started)
        counted = f"count_over_time({_WINDOW}[1h])"
        found = _until(client, counted, lambda found: len(found) > 1)
        record = [each for each in found if "job" not in each.labels]
        assert len(record) == 1
        # 0.5 s of the flow, every 10 ms; a scrape a second saw it once or a few times.
        assert record[0].value > 40
        assert read_json(tmp_path / "runs" / "live" / "recorded" / "run.json")["status"] == "finished"
        assert client.instant("howdah_live_run_info", int(time.time() * 1000)) == []
    finally:
        served.send_signal(signal.SIGTERM)
        assert served.wait(30) == 0


def test_targets_without_live_are_refused(tmp_path: Path) -> None:
    assert main(["serve", "--target", "127.0.0.1:1", "--runs", str(tmp_path)]) == 2
