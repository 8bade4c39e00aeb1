# SPDX-License-Identifier: Apache-2.0
"""Lies of the path and of the kernel: a guest carries out something else than the plan says."""

from __future__ import annotations

import dataclasses
import threading
from pathlib import Path

from howdah.plan.plan import Plan
from howdah.record.directory import RunDirectory
from tests.guest import guest_run
from tests.liars.bench import Bench
from tests.liars.breaking import Break, options, values, with_operations
from tests.liars.liar import About, Catch, RunLiar, check
from tests.liars.path_breaks import (
    another_flow,
    hystart_off,
    late_changes,
    lost_one_by_one,
    netem_on_the_sender,
    other_algorithm,
    other_times,
    queue,
    rate,
    second_rate_limit,
    segmentation_on,
    shorter_tick,
    small_trace_buffer,
    sysctl,
    without_changes,
)

FORWARD, REVERSE = {"node": "right"}, {"node": "left"}  # the routers whose delay lines hold what goes that way


def path_liar(
    name: str,
    lie: str,
    caught: Catch,
    broken: Break,
    *,
    about: About = "path",
    honest: str = "plain",
    appears: bool = True,
) -> RunLiar:
    def make(bench: Bench, path: Path) -> tuple[RunDirectory, Plan]:
        plan = bench.plan(honest)
        return bench.carry_out(plan, broken(plan), path, recalled=True), plan

    return RunLiar(name, about, lie, caught, honest, make, appears)


def _runaway(bench: Bench, path: Path) -> tuple[RunDirectory, Plan]:
    """A collector waits for a file that the host is slow to make; meanwhile the guest's clock runs away."""
    plan = bench.plan("plain")

    def answer_late() -> None:
        while not (path / "raw" / "asked").exists() and not done.wait(0.01):
            pass
        done.wait(0.1)  # some twenty seconds of the clock that runs away; at 120 the guest is ended
        (path / "share" / "go").touch()

    done = threading.Event()
    host = threading.Thread(target=answer_late)
    host.start()
    try:
        with guest_run.agent_in(WAITING):
            return bench.carry_out(plan, plan, path), plan
    finally:
        done.set()
        host.join()


WAITING = """
import os, runpy, sys, time
sys.path.insert(0, "/howdah/in")
from collectors.interval.qdisc import QdiscCollector

sample = QdiscCollector.sample

def wait(self, now_ns):
    self.samples = getattr(self, "samples", 0) + 1
    if self.samples == 50:
        open("/howdah/out/asked", "w").close()
        while not os.path.exists("/howdah/in/go"):
            time.sleep(1)
    sample(self, now_ns)

QdiscCollector.sample = wait
runpy.run_module("howdah.agent", run_name="__main__", alter_sys=True)
"""

PATHS = [
    path_liar(
        "rate-one-percent-low",
        "The bottleneck sends 1 % slower than the plan says.",
        check("before", "rate", "too low"),
        rate(0.99),
    ),
    path_liar(
        "rate-one-percent-high",
        "The bottleneck sends 1 % faster than the plan says.",
        check("after", "rate", "too high"),
        rate(1.01),
    ),
    path_liar(
        "rate-while-flows-run",
        "The bottleneck sends half as fast as the plan says.",
        check("during", "dequeue rate", "too low"),
        rate(0.5),
    ),
    path_liar(
        "bucket-of-twenty-frames",
        "The rate limit lets twenty frames pass at once.",
        check("before", "rate", "too high"),
        options("class", {"burst_bytes": 30_280, "cburst_bytes": 30_280}, node="left", interface="left-eth0"),
    ),
    path_liar(
        "forward-delay-too-long",
        "The forward delay is 100 microseconds too long.",
        check("before", "forward delay s1-r1", "too long"),
        options("qdisc", {"delay_us": 10_100}, kind="netem", **FORWARD),
    ),
    path_liar(
        "reverse-delay-too-long",
        "The delay of the acknowledgements is 100 microseconds too long.",
        check("after", "reverse delay s1-r1", "too long"),
        options("qdisc", {"delay_us": 10_100}, kind="netem", **REVERSE),
    ),
    path_liar(
        "round-trip-too-short",
        "Both delays are a quarter too short, so that the flow's RTT is below the path's.",
        check("during", "minimum RTT flow 1", "shorter than the path's"),
        options("qdisc", {"delay_us": 7_500}, kind="netem"),
    ),
    path_liar(
        "round-trip-too-long",
        "Both delays are a half too long, so that the flow never sees the path's RTT.",
        check("during", "minimum RTT flow 1", "something delays it"),
        options("qdisc", {"delay_us": 15_000}, kind="netem"),
    ),
    path_liar(
        "jitter-nobody-asked-for",
        "The delay line varies its delay by 2 ms.",
        check("before", "forward delay s1-r1", "too short"),
        options("qdisc", {"jitter_us": 2000, "seed": 7}, kind="netem", **FORWARD),
    ),
    path_liar(
        "packets-overtake",
        "The delay line lets 2 % of the packets overtake.",
        check("before", "forward delay s1-r1", "too short"),
        options("qdisc", {"reorder_ratio": 0.02, "reorder_gap": 5, "seed": 7}, kind="netem", **FORWARD),
    ),
    path_liar(
        "loss-nobody-asked-for",
        "The delay line loses 1 % of the packets at random.",
        check("accounting", "netem drops right:right-eth1", "its limit is too small"),
        options("qdisc", {"loss_ratio": 0.01, "seed": 1}, kind="netem", **FORWARD),
    ),
    path_liar(
        "loss-as-the-probes-see-it",
        "The delay line loses 20 % of the packets at random.",
        check("before", "loss", "probes were lost"),
        options("qdisc", {"loss_ratio": 0.2, "seed": 1}, kind="netem", **FORWARD),
    ),
    path_liar(
        "loss-that-does-not-happen",
        "The plan asks for 2 % of loss, and the path loses nothing.",
        check("accounting", "netem drops right:right-eth1", "dropped 0 of"),
        options("qdisc", {"loss_ratio": 0.0}, kind="netem", **FORWARD),
        honest="lossy",
    ),
    path_liar(
        "loss-one-by-one",
        "The plan asks for loss in bursts of five packets, and the path loses as many one by one.",
        check("during", "loss bursts right:right-eth1", "its bursts are shorter than the plan's"),
        lost_one_by_one,
        honest="bursty",
    ),
    path_liar(
        "netem-limit-too-small",
        "The delay line has room for five packets; what does not fit is lost without any loss in the plan.",
        check("accounting", "netem drops right:right-eth1", "its limit is too small"),
        options("qdisc", {"limit_packets": 5}, kind="netem", **FORWARD),
    ),
    path_liar(
        "netem-on-the-sender",
        "A delay line sits on the sender, where it entangles with TCP small queues.",
        check("engine", "netem placement", "netem sits on a host (s1:s1-eth0)"),
        netem_on_the_sender,
    ),
    path_liar(
        "backlog-drops-without-a-counter",
        "The receive backlog of the kernel holds one packet; what it drops appears in no queue's counter.",
        check("accounting", "softnet drops", "netdev_max_backlog is too small"),
        sysctl("net.core.netdev_max_backlog", "1"),
        honest="unlimited",
    ),
    path_liar(
        "another-flow-on-the-path",
        "A second connection that the plan does not know shares the path.",
        check("collection", "unknown sockets", "traffic nobody planned"),
        another_flow,
    ),
    path_liar(
        "rate-change-too-late",
        "The rate of a changing path falls 50 ms later than its schedule says.",
        check("during", "rate schedule", "does not follow"),
        late_changes,
        honest="rate-schedule",
    ),
    path_liar(
        "loss-change-that-does-not-happen",
        "The loss of a changing path stays what it was.",
        check("during", "loss schedule right:right-eth1", "does not follow"),
        without_changes,
        honest="loss-schedule",
    ),
    path_liar(
        "no-tick",
        "The delay lines release each packet when it is due, and not at ticks.",
        check("during", "tick s1", "less than 5000 us after another"),
        without_changes,
        honest="tick",
    ),
    path_liar(
        "shorter-tick",
        "The delay lines release packets every 4 ms, and the plan says 5 ms.",
        check("during", "tick s1", "less than 5000 us after another"),
        shorter_tick,
        honest="tick",
    ),
    path_liar(
        "bottleneck-queue-of-another-kind",
        "The bottleneck's queue is CoDel instead of a FIFO of the same size.",
        check("engine", "queues", "is codel, the plan says bfifo"),
        queue("codel", limit_packets=33, target_us=5000, interval_us=100_000, ecn=False),
    ),
    path_liar(
        "queue-that-nobody-planned",
        "The receiver's interface has a rate limit that the plan does not know: acknowledgements are spaced.",
        check("engine", "queues", "the plan does not know"),
        second_rate_limit,
    ),
    path_liar(
        "sender-interface-too-fast",
        "The sender's interface sends at twice the rate of the plan.",
        check("engine", "queues", "the plan says 1000000000"),
        options("class", {"rate_bits_per_second": 2_000_000_000}, node="s1"),
    ),
    path_liar(
        "super-packets",
        "Segmentation is left to the interfaces: packets of 64 kB cross the path as one.",
        check("engine", "interfaces", "tso of left:left-eth0 is on, the plan says off"),
        segmentation_on,
    ),
    path_liar(
        "super-packets-of-the-sender",
        "The sender alone leaves segmentation to its interface; the path splits what it sends.",
        check("accounting", "packets forward", "something duplicates, splits or answers"),
        lambda plan: dataclasses.replace(
            plan,
            operations=[
                item
                for item in plan.operations
                if item.op not in ("offload", "gso") or item.arguments()["node"] != "s1"
            ],
        ),
    ),
    path_liar(
        "receiver-coalesces",
        "The receiver's interface joins packets (GRO), so that fewer acknowledgements come back.",
        check("engine", "interfaces", "gro of r1:r1-eth0 is on"),
        values("offload", {"enabled": True}, node="r1", feature="gro"),
    ),
    path_liar(
        "larger-frames",
        "All interfaces carry frames of 9000 bytes.",
        check("engine", "interfaces", "mtu_bytes of left:left-eth0 is 9000"),
        values("mtu", {"mtu_bytes": 9000}),
    ),
    path_liar(
        "receive-window-by-mistake",
        "The receiver's largest buffer is 32 kB, and the plan says 256 MB.",
        check("during", "receive window flow 1", "the receiver's buffers are too small"),
        sysctl("net.ipv4.tcp_rmem", "4096 16384 32768", "r1"),
    ),
    path_liar(
        "send-buffer-by-mistake",
        "The sender's largest buffer is 16 kB, and the plan says 256 MB.",
        check("during", "send buffer flow 1", "the sender's buffers are too small"),
        sysctl("net.ipv4.tcp_wmem", "4096 16384 16384", "s1"),
    ),
    path_liar(
        "memory-pressure",
        "The kernel's memory for TCP is small enough to come under pressure.",
        check("accounting", "memory pressure", "tcp_mem is too small"),
        sysctl("net.ipv4.tcp_mem", "16 32 100000"),
        about="run",
        honest="fast",
    ),
    path_liar(
        "cached-tcp-metrics",
        "Hosts remember RTT and ssthresh of a finished connection for the next one to the same peer.",
        check("engine", "sysctls", "tcp_no_metrics_save is 0 at r1, the plan says 1"),
        values("sysctl", {"value": "0"}, name="net.ipv4.tcp_no_metrics_save"),
        about="run",
    ),
    path_liar(
        "setting-that-nobody-planned",
        "The sender has no selective acknowledgements, and the plan says nothing of it.",
        check("engine", "sysctls", "net.ipv4.tcp_sack is 1 at left and r1 and right, 0 at s1"),
        lambda plan: with_operations(plan, ("sysctl", {"node": "s1", "name": "net.ipv4.tcp_sack", "value": "0"})),
        about="run",
    ),
    path_liar(
        "larger-first-window",
        "The sender's route sets an initial window of 30 packets.",
        check("engine", "routes", "initial_window_packets 30, the plan says no window of its own"),
        values("route", {"initial_window_packets": 30}, node="s1"),
        about="run",
    ),
    path_liar(
        "another-algorithm",
        "The connection runs Reno, and its results bear the name CUBIC.",
        check("engine", "flow 1", "used the congestion control reno instead of cubic"),
        other_algorithm,
        about="module",
    ),
    path_liar(
        "another-parameter",
        "CUBIC runs without HyStart, and the plan says with.",
        check("engine", "module parameters", "tcp_cubic.hystart is 0, the plan says 1"),
        hystart_off,
        about="module",
    ),
    path_liar(
        "flow-starts-late",
        "The flow starts 30 ms later than the plan says.",
        check("engine", "flow 1", "started at 30000 us instead of 0 us"),
        other_times(start_us=30_000),
        about="run",
    ),
    path_liar(
        "flow-ends-early",
        "The flow stops sending after two thirds of its time.",
        check("engine", "flow 1", "the plan lets it send until 1500000"),
        other_times(stop_us=1_000_000),
        about="run",
    ),
    path_liar(
        "trace-records-lost",
        "The trace buffer is too small and is read too late: the kernel drops per-ACK records.",
        check("collection", "lost trace records", "per-ACK records were lost"),
        small_trace_buffer,
        about="capture",
        honest="fast",
    ),
    RunLiar(
        "clock-runs-away",
        "clock",
        "A collector waits for the host, and the guest's clock runs away meanwhile.",
        check("engine", "clock flows", "the guest's clock ran away"),
        "plain",
        _runaway,
    ),
    RunLiar(
        "reading-is-missing",
        "clock",
        "The clock jumps between two readings of the bottleneck's queue.",
        check("collection", "the bottleneck's queue readings", "the guest's clock jumped"),
        "plain",
        _runaway,
    ),
]
