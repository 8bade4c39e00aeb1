# SPDX-License-Identifier: Apache-2.0
"""The queue of a sender's interface: its plan, what is refused, and what the judge makes of readings."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from howdah.errors import ProfileError
from howdah.judge.accounting import Snapshots
from howdah.judge.room import _settings_check, room_of
from howdah.linux.netlink.discipline.fq import Fq
from howdah.linux.netlink.message import parse_attributes, u32
from howdah.linux.netlink.qdisc import TCMSG, qdisc_request
from howdah.measure.cause import CONGESTION_SIGNAL, INITIAL_SSTHRESH, exit_cause
from howdah.measure.exit import Exit
from howdah.measure.sampled import Samples
from howdah.plan.host_queue import PlannedQueue, host_queues
from howdah.plan.text import render
from tests.unit.profile_factory import make_one, operations


def test_fq_takes_its_place_at_the_epoch_and_gives_it_back_before_the_path_is_measured(tmp_path: Path) -> None:
    plan = make_one(tmp_path, overrides=["sender.queue={kind: fq, flow_limit: 50}", "topology.pairs=2"])
    taken = [item for item in plan.timeline if item.op == "replace" and item.at_us == 0]
    back = [item for item in plan.timeline if item.op == "replace" and item.at_us > 0]
    assert plan.timeline[:2] == taken
    assert plan.timeline[-2:] == back
    assert taken[0].change.line() == (
        "tc -n s1 qdisc replace dev s1-eth0 parent 1:1 handle 20: fq limit 10000 flow_limit 50"
    )
    assert back[1].change.line() == "tc -n s2 qdisc replace dev s2-eth0 parent 1:1 handle 10: pfifo limit 10000"
    assert plan.duration_us < back[0].at_us < plan.calibration.after_us
    assert [each.queue for each in host_queues(plan)] == [Fq(10_000, 50)] * 2
    assert "fq, limit 10000, flow_limit 50 packets, while flows run" in render(plan)


def test_pfifo_fast_has_the_length_of_its_interface(tmp_path: Path) -> None:
    plan = make_one(tmp_path, overrides=["sender.queue={kind: pfifo_fast, limit: 30}", "calibrate=false"])
    assert [item.arguments()["packets"] for item in operations(plan, "txqueuelen", node="s1")] == [30]
    assert [item.at_us for item in plan.timeline if item.op == "replace"] == [0]
    assert "ip -n s1 link set dev s1-eth0 txqueuelen 30" in render(plan)


def test_the_usual_queue_is_no_exchange(tmp_path: Path) -> None:
    assert make_one(tmp_path, overrides=["sender.queue=fifo"]) == make_one(tmp_path)


def test_limits_are_what_the_kernel_says() -> None:
    request = parse_attributes(qdisc_request(3, "1:1", "20:", Fq(700, 60))[TCMSG.size :])
    assert Fq.limits(request[2]) == {"limit_packets": 700, "flow_limit_packets": 60}
    assert Fq.limits(u32(1, 5)) == {"limit_packets": 5}
    assert Fq.causes(struct.pack("=7Q", 0, 0, 0, 8, 3, 0, 0)) == {"of_one_flow": 3, "throttled": 8}


def test_a_program_may_fill_a_queue_of_another_priority(tmp_path: Path) -> None:
    """So that one is full and drops, while the others may fill."""
    own = make_one(tmp_path, overrides=["sender.queue={kind: pfifo_fast, limit: 100}"])
    client, server = (f"{{command: [/bin/{name}]}}" for name in ("true", "cat"))
    program = [f"traffic={{client: {client}, server: {server}, sends: client, ports: [8080]}}"]
    free = make_one(tmp_path, overrides=["sender.queue={kind: pfifo_fast, limit: 100}", *program])
    fair = make_one(tmp_path, overrides=["sender.queue={kind: fq, limit: 100, flow_limit: 50}", *program])
    rooms = [room_of(plan, queue) for plan in (own, free, fair) for queue in host_queues(plan)]
    assert rooms == [(100, 100), (100, 300), (50, 100)]


@pytest.mark.parametrize(
    ("overrides", "what", "hint"),
    [
        (["sender.queue=netem"], "expected fq, fifo, pfifo_fast, not 'netem'", "has no netem of your own"),
        (["sender.queue=fq_codel"], "not 'fq_codel'", "sender.queue: fq"),
        (["receiver.queue=fq"], "there is no field 'queue' in receiver", "whose interface has no rate"),
        (["sender.queue={kind: fifo, limit: 5}"], "no field 'limit'", "a field of sender.queue and path.delay"),
        (["sender.queue={limit: 5}"], "the field 'kind' is missing", "the kinds: fq, fifo, pfifo_fast"),
        (["sender.queue={kind: fq, flow_limit: 20000}"], "flow_limit: expected at most limit", ""),
        (["sender.queue={kind: pfifo_fast, limit: 0}"], "limit: input should be greater than or equal to 1", ""),
        (["sender.queue=fq", "path.sender_interface=unlimited"], "nothing waits in fq", "give path.sender_interface"),
        (["sender.queue=fq", "split=true"], "fq at a sender needs all hosts in one kernel", "engine: uml"),
        (["sender.queue=fq", "engine=machines"], "fq at a sender needs all hosts in one kernel", "engine: uml"),
        (["sender.queue=fq", "engine=ns2", "algorithm=standard"], "has no queue fq of a host", "leave it out"),
    ],
)
def test_what_is_refused(tmp_path: Path, overrides: list[str], what: str, hint: str) -> None:
    with pytest.raises(ProfileError) as caught:
        make_one(tmp_path, overrides=overrides)
    assert what in str(caught.value)
    assert hint in str(caught.value.hint)


def snapshots(root_drops: int, **own: Any) -> Snapshots:
    counted = {"interface": "s1-eth0", "packets": 9, "bytes": 9000}
    root = {**counted, "handle": "1:", "parent": "root", "kind": "htb", "drops": root_drops}
    leaf = {**counted, "handle": "20:", "parent": "1:1", "kind": "fq", "drops": 3, "of_one_flow": 3, "throttled": 1}
    leaf |= {"limit_packets": 100, "flow_limit_packets": 10} | own
    old = {**root, "packets": 0, "bytes": 0, "drops": 0}
    told: list[Any] = [{"nodes": {"s1": {"qdiscs": each}}} for each in ([old], [root, leaf])]
    return Snapshots(*told)


@pytest.mark.parametrize(
    ("root_drops", "own", "words"),
    [
        (3, {}, None),
        (4, {}, "the rate limit above it counted 4"),
        (3, {"kind": "pfifo"}, "is pfifo, the plan says fq"),
        (3, {"handle": "10:"}, "is missing, the plan says fq"),
        (3, {"limit_packets": 99}, "its limit is 99, the plan says 100"),
        (3, {"of_one_flow": 5}, "fewer packets than at the limits of flows"),
    ],
)
def test_a_queue_that_is_not_the_planned_one_is_told(root_drops: int, own: dict[str, Any], words: str | None) -> None:
    found = _settings_check("x", "the queue", PlannedQueue("s1", "s1-eth0", Fq(100, 10)), snapshots(root_drops, **own))
    assert found.ok is (words is None)
    assert words is None or words in found.message


@pytest.mark.parametrize(("state", "cause"), [(2, CONGESTION_SIGNAL), (0, INITIAL_SSTHRESH)])
def test_a_threshold_that_a_drop_at_the_host_set_is_a_signal(state: int, cause: str) -> None:
    """Before the first ACK there is no record that shows the cut, and a reading that shows what TCP is in."""
    found = Exit(1, 80_000_000, 10, 10, reduced=False, from_initial_ssthresh=True, from_own_threshold=False)
    times = np.array([10_000_000, 90_000_000])
    info = Samples(times, {"ca_state": np.array([state, 0])})
    nothing: Any = None
    assert exit_cause(nothing, found, nothing, nothing, info) == cause
