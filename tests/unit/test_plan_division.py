# SPDX-License-Identifier: Apache-2.0
"""Which hosts live in a kernel of their own, what is refused, and what each kernel is given to do."""

from __future__ import annotations

import json
import struct
from pathlib import Path
from typing import Any

import pytest

from howdah.engine.uml import part as uml_part
from howdah.engine.uml.part import lookaheads_us, window_us
from howdah.engine.uml.wire import header, memory_bytes, ring_bytes
from howdah.errors import ProfileError
from howdah.plan.line import delay_lines
from howdah.plan.plan import Plan
from howdah.profile.load import load
from howdah.work.compiled import compile_plans

PROFILE = """\
howdah: 1
name: divided
path: {{rate: 20 Mbit/s, rtt: 60 ms, buffer: 1 bdp{path}}}
duration: 2 s
{rest}
"""


def _plans(tmp_path: Path, rest: str, path: str = "") -> list[Plan]:
    file = tmp_path / "divided.yaml"
    file.write_text(PROFILE.format(path=path, rest=rest), encoding="utf-8")
    return list(compile_plans(load(file)))


def _plan(tmp_path: Path, rest: str, path: str = "") -> Plan:
    (plan,) = _plans(tmp_path, rest, path)
    return plan


def cut(plan: Plan) -> dict[str, dict[str, Any]]:
    """The parts as the agents read them."""
    return {name: json.loads(part.to_json()) for name, part in uml_part.cut(plan).items()}


def _qdiscs(part: dict[str, Any]) -> dict[tuple[str, str], tuple[str, dict[str, Any]]]:
    return {
        (item["arguments"]["node"] + ":" + item["arguments"]["interface"], item["arguments"]["handle"]): (
            item["arguments"]["kind"],
            item["arguments"]["options"],
        )
        for item in part["operations"]
        if item["op"] == "qdisc"
    }


def test_a_kernel_of_the_receivers_is_a_part_of_its_own(tmp_path: Path) -> None:
    plan = _plan(tmp_path, "receiver: {kernel: debian-5.10}")
    assert plan.kernel == "debian-6.12"
    assert [(part.name, part.kernel, part.hosts) for part in plan.parts] == [
        ("senders", "debian-6.12", ["s1"]),
        ("receivers", "debian-5.10", ["r1"]),
    ]
    assert plan.kernels == ["debian-6.12", "debian-5.10"]
    assert Plan.from_json(plan.to_json()) == plan


def test_a_kernel_of_the_senders_is_that_of_the_routers(tmp_path: Path) -> None:
    plan = _plan(tmp_path, "sender: {kernel: debian-6.1}")
    assert (plan.kernel, [part.kernel for part in plan.parts]) == ("debian-6.1", ["debian-6.1", "debian-6.12"])


def test_equal_kernels_are_one(tmp_path: Path) -> None:
    plain = _plan(tmp_path, "")
    assert "parts" not in plain.to_json()
    assert _plan(tmp_path, "receiver: {kernel: debian-6.12}") == plain
    both = _plan(tmp_path, "receiver: {kernel: debian-6.1}\nsender: {kernel: debian-6.1}")
    assert (both.kernel, both.parts) == ("debian-6.1", [])


def test_split_makes_two_of_one(tmp_path: Path) -> None:
    plan = _plan(tmp_path, "split: true")
    assert [part.kernel for part in plan.parts] == ["debian-6.12", "debian-6.12"]


def test_kernels_can_be_swept_and_the_behaviour_stays_a_name(tmp_path: Path) -> None:
    plans = _plans(tmp_path, "receiver: {kernel: [debian-5.10, debian-6.1], behaviour: no-sack}")
    assert [plan.parts[1].kernel for plan in plans] == ["debian-5.10", "debian-6.1"]
    assert {plan.receiver for plan in plans} == {"no-sack"}
    assert [plan.receiver for plan in _plans(tmp_path, "receiver: [linux, no-sack]")] == ["linux", "no-sack"]


def test_flows_may_have_receivers_of_other_kernels(tmp_path: Path) -> None:
    plan = _plan(tmp_path, "flows: [{}, {receiver_kernel: debian-5.10}, {receiver_kernel: debian-6.1}]")
    assert [(part.name, part.kernel, part.hosts) for part in plan.parts] == [
        ("senders", "debian-6.12", ["s1", "s2", "s3"]),
        ("receivers-1", "debian-6.12", ["r1"]),
        ("receivers-2", "debian-5.10", ["r2"]),
        ("receivers-3", "debian-6.1", ["r3"]),
    ]
    parts = cut(plan)
    assert [[flow["receiver"] for flow in part["flows"]] for part in parts.values()] == [
        ["r1", "r2", "r3"],
        ["r1"],
        ["r2"],
        ["r3"],
    ]


@pytest.mark.parametrize(
    ("rest", "path", "said"),
    [
        ("split: true", ", schedule: [{at: 1 s, rtt: 10 ms}]", "is 5 ms at its shortest"),
        ("split: true\ntraffic: {source: iperf3, sink: iperf3}", "", "the ends of iperf3 must be in one kernel"),
    ],
)
def test_what_cannot_be_cut_apart_is_refused(tmp_path: Path, rest: str, path: str, said: str) -> None:
    with pytest.raises(ProfileError, match=said):
        _plans(tmp_path, rest, path)


def test_each_delay_line_is_a_wire_in_both_kernels(tmp_path: Path) -> None:
    plan = _plan(tmp_path, "split: true")
    places = {line.host: (f"{line.node}:{line.interface}", line.handle) for line in delay_lines(plan)}
    for number, (name, part) in enumerate(cut(plan).items()):
        queues = _qdiscs(part)
        assert part["part"] == {"name": name, "number": number, "hosts": plan.parts[number].hosts}
        for host, to in (("s1", 0), ("r1", 1)):
            kind, options = queues[places[host]]
            wire = [item.name for item in plan.hosts].index(host)
            assert (kind, options) == ("howdah_wire", {"wire": wire, "to": to, "delay_ns": 30_000_000})
        assert part["module_parameters"]["howdah_wire"] == {"part": str(number)}


def test_what_a_line_does_beside_delaying_is_done_where_frames_leave(tmp_path: Path) -> None:
    plan = _plan(tmp_path, "split: true", ", loss: 1 %, schedule: [{at: 1 s, rtt: 100 ms}]")
    parts = cut(plan)
    (line,) = [line for line in delay_lines(plan) if line.host == "r1"]
    place = f"{line.node}:{line.interface}"
    leaving, arriving = _qdiscs(parts["senders"]), _qdiscs(parts["receivers"])
    kind, options = leaving[place, line.handle]
    assert (kind, options["delay_us"], options["loss_ratio"]) == ("netem", 0, 0.01)
    assert leaving[place, "20:"][0] == arriving[place, line.handle][0] == "howdah_wire"
    assert (place, "20:") not in arriving

    def changes(part: str) -> list[int]:
        return [
            event["arguments"]["options"]["delay_us"]
            for event in parts[part]["timeline"]
            if event["op"] == "qdisc"
            and event["arguments"]["interface"] == line.interface
            and event["arguments"]["node"] == line.node
        ]

    assert changes("senders") == [20_000, 0]
    assert changes("receivers") == []


def test_a_receivers_kernel_needs_no_algorithm(tmp_path: Path) -> None:
    parts = cut(_plan(tmp_path, "split: true\nalgorithm: hystart-plus-plus"))
    assert parts["receivers"]["required_modules"] == ["howdah_traffic", "howdah_wire"]
    assert not parts["receivers"]["collect"]["tcp_probe"]
    assert parts["senders"]["collect"]["tcp_probe"]


def test_the_window_is_whole_ticks_and_the_memory_holds_what_is_on_its_way(tmp_path: Path) -> None:
    plan = _plan(tmp_path, "split: true", ", reverse_rate: 10 Mbit/s")
    assert lookaheads_us(plan) == [[0, 30_000], [30_000, 0]]
    assert window_us(plan) == 10_000
    far = _plan(tmp_path, "split: true\nflows: [{rtt: 600 ms}]")
    assert lookaheads_us(far) == [[0, 50_000], [50_000, 0]]
    assert window_us(far) == 20_000
    assert ring_bytes(far) >= 20_000_000 / 8 * 0.14
    assert ring_bytes(far) % 4096 == 0
    assert memory_bytes(far) == 4096 * 3 + 4 * (4096 + ring_bytes(far))
    fields = struct.unpack_from("=IIIIQQ64Q", header(far))
    assert fields[2] == 2
    assert fields[5] == 20_000_000
    assert (fields[6], fields[7], fields[6 + 8]) == (0, 50_000_000, 50_000_000)
