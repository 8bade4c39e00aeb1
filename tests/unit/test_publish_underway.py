# SPDX-License-Identifier: Apache-2.0
"""What is seen of a run while it is made, from a recording that grows as collectors would write it."""

from __future__ import annotations

import dataclasses
import re
import subprocess
from pathlib import Path

import pytest

from howdah.ingest.run import ingest
from howdah.publish.metric import SERIES
from howdah.publish.underway import LIVE, LiveRun, Watch
from howdah.record import table as store
from howdah.record.directory import RunDirectory
from tests.prometheus_fixture import exposition, prometheus_or_skip
from tests.unit.underway_run import Underway, make_underway, make_virtual, underway_plan


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


def values(live: LiveRun) -> dict[tuple[str, str], float]:
    """By metric and what tells its series apart: flow, interface, or role."""
    found = {}
    for metric, samples in live.families().items():
        for each in samples:
            place = " ".join(
                each.labels[name] for name in ("flow", "node", "interface", "handle") if name in each.labels
            )
            found[metric.name, place or each.labels.get("role", "")] = each.values[-1]
    return found


def last(underway: Underway, table: str, **where: str) -> dict[str, float]:
    """The last row of what the ingest makes of the same files."""
    rows = store.read(RunDirectory(underway.directory), table).to_pylist()
    found: dict[str, float] = [row for row in rows if all(row[name] == value for name, value in where.items())][-1]
    return found


@pytest.fixture
def underway(tmp_path: Path) -> Underway:
    return make_underway(tmp_path)


def test_what_is_seen_is_the_last_reading_that_the_tables_will_have(underway: Underway) -> None:
    underway.write(1)
    seen = values(LiveRun(underway.directory))
    ingest(RunDirectory(underway.directory))
    sender = last(underway, "tcp_info", end="sender")
    assert seen["howdah_flow_cwnd_packets", "bulk"] == sender["cwnd_packets"]
    assert seen["howdah_flow_ssthresh_packets", "bulk"] == sender["ssthresh_packets"]
    assert seen["howdah_flow_srtt_seconds", "bulk"] == pytest.approx(sender["rtt_us"] / 1e6)
    assert seen["howdah_flow_acked_bytes_total", "bulk"] == sender["bytes_acked_bytes"] > 0
    assert seen["howdah_flow_retransmitted_packets_total", "bulk"] == sender["total_retrans_packets"] > 0
    assert seen["howdah_live_unacked_packets", ""] == sender["unacked_packets"]
    assert seen["howdah_live_connections", "sender"] == seen["howdah_live_connections", "receiver"] == 1
    receiver = last(underway, "tcp_info", end="receiver")
    assert seen["howdah_flow_received_bytes_total", "bulk"] == receiver["bytes_received_bytes"] > 0
    arrived = receiver["data_segs_in_packets"] * 1448
    assert seen["howdah_flow_delivered_bytes_total", "bulk"] == arrived >= receiver["bytes_received_bytes"]
    queue = last(underway, "qdisc", node="r", handle="10:")
    assert seen["howdah_queue_backlog_bytes", "r r1 10:"] == queue["backlog_bytes"]
    assert seen["howdah_queue_dropped_packets_total", "r r1 10:"] == queue["drops_packets"] > 0
    interface = last(underway, "interface", node="r", interface="r1")
    assert seen["howdah_interface_transmitted_bytes_total", "r r1"] == interface["tx_bytes"] > 0


def test_files_are_read_on_and_a_torn_frame_waits(underway: Underway) -> None:
    live, seen = LiveRun(underway.directory), []
    for share in (0.0, 0.4, 0.6, 0.8, 1.0):
        underway.write(share, torn_bytes=0 if share == 1 else 30)
        seen.append(values(live).get(("howdah_flow_acked_bytes_total", "bulk"), 0.0))
    assert seen[0] == 0
    assert seen == sorted(seen)
    assert len(set(seen)) == len(seen)
    assert seen[-1] == values(LiveRun(underway.directory))["howdah_flow_acked_bytes_total", "bulk"]


def test_what_is_no_longer_read_is_not_shown(underway: Underway) -> None:
    clock = Clock()
    live = LiveRun(underway.directory, clock)
    underway.write(1)
    assert ("howdah_flow_cwnd_packets", "bulk") in values(live)
    clock.now += 6
    seen = values(live)
    assert ("howdah_flow_cwnd_packets", "bulk") not in seen
    assert seen["howdah_live_connections", "sender"] == 0
    assert seen["howdah_live_progress_ratio", ""] == 0.75


def test_the_bottleneck_is_told_from_other_queues(underway: Underway) -> None:
    underway.write(1)
    roles = {
        (each.labels["node"], each.labels["handle"]): each.labels["role"]
        for metric, samples in LiveRun(underway.directory).families().items()
        for each in samples
        if metric.name == "howdah_queue_backlog_bytes"
    }
    assert roles["r", "10:"] == "bottleneck"
    assert list(roles.values()).count("bottleneck") == 1
    assert roles["d", "8001:"] == "receiver"


def test_a_port_that_the_kernel_chose_does_not_hide_a_flow(tmp_path: Path) -> None:
    plan = underway_plan()
    other = dataclasses.replace(plan, flows=[dataclasses.replace(plan.flows[0], source_port=1)])
    underway = make_underway(tmp_path, other)
    underway.write(1)
    assert values(LiveRun(underway.directory))["howdah_flow_acked_bytes_total", "bulk"] > 0


def test_connections_of_a_group_are_seen_together_alone(tmp_path: Path) -> None:
    plan = underway_plan()
    underway = make_underway(
        tmp_path, dataclasses.replace(plan, flows=[dataclasses.replace(plan.flows[0], group="web")])
    )
    underway.write(1)
    seen = values(LiveRun(underway.directory))
    assert not [name for name, _place in seen if name.startswith("howdah_flow_")]
    assert seen["howdah_live_connections", "sender"] == 1
    assert seen["howdah_live_mean_srtt_seconds", ""] > 0.04


def test_a_run_in_virtual_time_shows_its_trace_and_no_counters(tmp_path: Path) -> None:
    underway = make_virtual(tmp_path)
    underway.write(1)
    live = LiveRun(underway.directory)
    seen = values(live)
    names = {name for name, _place in seen}
    assert seen["howdah_live_progress_ratio", ""] == 0.75
    assert seen["howdah_live_simulated_seconds", ""] == pytest.approx(3e-6)
    assert seen["howdah_flow_cwnd_packets", "bulk"] > 10
    assert seen["howdah_live_acks_per_second", ""] > 100
    # What grows by the run's clock has no rate by that of the scrape.
    assert not [name for name in names if name.endswith("_total") or name.startswith("howdah_queue_")]


def test_runs_are_found_while_their_maker_lives_and_not_after(tmp_path: Path) -> None:
    ended = subprocess.Popen(["true"])
    ended.wait()
    make_underway(tmp_path, maker=ended.pid)
    assert Watch(tmp_path).families() == {}
    watch = Watch(tmp_path / "other")
    made = make_underway(tmp_path / "other")
    assert {metric.name for metric in watch.families()} >= {"howdah_live_run_info"}
    made.directory.rename(made.directory.parent / "recorded")
    assert watch.families() == {}


def test_promtool_has_nothing_to_say_against_it(underway: Underway) -> None:
    prometheus = prometheus_or_skip()
    virtual = make_virtual(underway.directory.parents[1] / "virtual")
    for each in (underway, virtual):
        each.write(1)
    found = LiveRun(underway.directory).families()
    for metric, samples in LiveRun(virtual.directory).families().items():
        found.setdefault(metric, []).extend(samples)
    text = "".join(exposition(found))
    done = subprocess.run(
        [prometheus.promtool, "check", "metrics"], input=text, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_the_documentation_has_every_metric_of_a_run_underway(underway: Underway) -> None:
    underway.write(1)
    text = Path("docs/live.md").read_text(encoding="utf-8")
    told = set(re.findall(r"^\| `(howdah_live_[a-z_]+)` \|", text, re.MULTILINE))
    assert told == {metric.name for metric in LIVE}
    virtual = make_virtual(underway.directory.parents[1] / "virtual")
    virtual.write(1)
    seen = {*LiveRun(underway.directory).families(), *LiveRun(virtual.directory).families()}
    assert {metric for metric in LIVE if metric not in seen} == set()
    shown = {metric.name for metric in seen if metric not in LIVE}
    published = {metric.name for metric in SERIES}
    assert {name for name in shown if not name.startswith("howdah_path_")} <= published
