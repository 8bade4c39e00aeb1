# SPDX-License-Identifier: Apache-2.0
"""The agent in a guest: traffic of every kind, calibration of a known path, and errors that stop the run."""

from __future__ import annotations

import copy
import dataclasses
import json
from pathlib import Path
from typing import Any

import pytest

from howdah.codec import encoded
from howdah.engine.uml.build import Built
from tests.guest.agent_kit import quick_plan, report, run_agent
from tests.guest.guest_kit import build_or_skip

pytestmark = pytest.mark.guest


@pytest.fixture(scope="module")
def built() -> Built:
    return build_or_skip()


@pytest.fixture(scope="module")
def finished(built: Built, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A whole run of the quick profile."""
    directory = tmp_path_factory.mktemp("quick")
    ending = run_agent(built, directory, quick_plan("cubic"))
    assert ending.exit_status == 0, report(directory)["error"]
    return directory


def test_flows_start_at_the_planned_instant_and_end_whole(finished: Path) -> None:
    found = report(finished)
    (flow,) = found["flows"]
    assert found["status"] == "ok"
    assert flow["start_ns"] == 0
    assert 40_000_000 <= flow["connected_ns"] < 40_100_000
    assert flow["complete"]
    assert flow["bytes_sent"] == flow["bytes_received"] > 5_000_000
    assert flow["sender_cookie"] != flow["receiver_cookie"]


@pytest.mark.parametrize("when", ["before", "after"])
def test_calibration_measures_the_path_that_was_built(finished: Path, when: str) -> None:
    found = json.loads((finished / "raw" / f"calibration-{when}.json").read_text())
    (target,) = found["targets"]
    for direction in ("forward", "reverse"):
        assert target[f"{direction}_delay_ns"] == pytest.approx([20_000_000] * 3, abs=1000)
    assert found["rate_bits_per_second"] == pytest.approx(20e6, rel=1e-4)
    # The buffer holds 66 frames; what was left of the one on its way out is not known.
    assert found["buffer_bytes"] == pytest.approx(66 * 1514, abs=1514 / 2 + 3)
    assert found["buffer_dropped_packets"] > 0
    assert found["loss"]["sent"] == found["loss"]["received"] > 50
    assert found["silent"]


def test_everything_promised_is_in_raw(finished: Path) -> None:
    names = {path.name for path in (finished / "raw").iterdir()}
    assert names >= {
        "agent.json",
        "accounting.json",
        "counters.jsonl",
        "header_event",
        "header_page",
        "interface.bin",
        "progress.json",
        "qdisc.bin",
        "ss-begin.txt",
        "ss-end.txt",
        "tcp_info.bin",
        "tcp_probe.bin",
        "tcp_probe.format",
        "trace.json",
    }
    assert json.loads((finished / "raw" / "progress.json").read_text())["phase"] == "done"
    trace = json.loads((finished / "raw" / "trace.json").read_text())
    assert trace["entries"] > 2000
    assert trace["unread"] == trace["overrun"] == trace["dropped_events"] == 0


def test_ss_sees_the_connection_the_agent_made(finished: Path) -> None:
    text = (finished / "raw" / "ss-end.txt").read_text()
    (flow,) = quick_plan("cubic").flows
    assert f"{flow.source_address}:{flow.source_port}" in text
    assert " cubic " in text


@pytest.mark.parametrize(("source", "sink"), [("python", "python"), ("python", "kernel"), ("kernel", "python")])
def test_source_and_sink_are_chosen_apart(built: Built, tmp_path: Path, source: str, sink: str) -> None:
    plan = quick_plan("cubic")
    flows = [dataclasses.replace(flow, traffic=source, sink=sink) for flow in plan.flows]
    run_agent(built, tmp_path / "run", dataclasses.replace(plan, flows=flows))
    (flow,) = report(tmp_path / "run")["flows"]
    assert flow["error"] is None
    assert flow["complete"]
    assert flow["bytes_received"] > 5_000_000


def test_iperf3_keeps_its_json_and_its_data_connection_is_known(built: Built, tmp_path: Path) -> None:
    plan = quick_plan("cubic")
    flows = [dataclasses.replace(flow, traffic="iperf3", sink="iperf3") for flow in plan.flows]
    run_agent(built, tmp_path / "run", dataclasses.replace(plan, flows=flows))
    (flow,) = report(tmp_path / "run")["flows"]
    assert flow["error"] is None
    assert flow["sender_cookie"] and flow["receiver_cookie"]
    client = json.loads((tmp_path / "run" / "raw" / "iperf3" / "1-client.json").read_text())
    assert client["end"]["sum_sent"]["bytes"] == flow["bytes_sent"] > 5_000_000
    assert json.loads((tmp_path / "run" / "raw" / "iperf3" / "1-server.json").read_text())["end"]


def failing(change: Any) -> dict[str, Any]:
    plan: dict[str, Any] = copy.deepcopy(encoded(quick_plan("cubic")))
    change(plan)
    return plan


def _wrong_parent(plan: dict[str, Any]) -> None:
    operation = next(item for item in plan["operations"] if item["arguments"].get("kind") == "bfifo")
    operation["arguments"]["parent"] = "7:7"


def _no_such_algorithm(plan: dict[str, Any]) -> None:
    plan["flows"][0]["kernel_algorithm"] = "nosuch"


def _no_such_sysctl(plan: dict[str, Any]) -> None:
    plan["operations"].append({"op": "sysctl", "arguments": {"node": "s1", "name": "net.ipv4.nosuch", "value": "1"}})


@pytest.mark.parametrize(
    ("change", "operation", "message"),
    [
        (_wrong_parent, "qdisc node=left", "Failed to find specified qdisc"),
        (_no_such_algorithm, "flow 1", "nosuch: No such file or directory; the kernel offers"),
        (_no_such_sysctl, "sysctl node=s1", "No such file or directory"),
    ],
)
def test_a_step_that_fails_stops_the_run_and_is_named(
    built: Built, tmp_path: Path, change: Any, operation: str, message: str
) -> None:
    ending = run_agent(built, tmp_path / "run", failing(change))
    found = report(tmp_path / "run")
    assert ending.exit_status == 1
    assert found["status"] == "error"
    assert operation in found["error"]["operation"]
    assert message in found["error"]["message"]
    assert [phase["phase"] for phase in found["phases"]] == ["setup"]
