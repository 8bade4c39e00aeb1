# SPDX-License-Identifier: Apache-2.0
"""What one part of a plan says of another: a stranger's plan that names what it does not have is refused in words."""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from howdah.errors import RecordError
from howdah.plan.plan import of_today
from howdah.record.reading import read_plan_file
from tests.unit.profile_factory import make_one

MINE = Path(__file__).resolve().parents[2] / "docs" / "examples" / "tcp_mine.c"
_Place = tuple[str | int, ...]
_PATHS = [
    "path.hops=[{rate: 1 Gbit/s, queue: codel}]",
    "path.reverse_rate=10 Mbit/s",
    "path.schedule=[{at: 1 s, rate: 10 Mbit/s}]",
    "receiver.processor={packet: 1 us, searched: 1 ns, search: each-block, queue: 30}",
    "collect.pcap=['left:left-eth0']",
]
REFERENCES = re.compile(
    r"(operations|timeline)\.#\.arguments\.(node|a_node|b_node|interface|parent|flow)|timeline\.#\.arguments\.(handle|classid)"
    r"|hosts\.#\.name|flows\.#\.(sender|receiver|traffic|sink|source_address|destination_address)"
    r"|path\.(queue|reverse_queue|hops\.#\.(node|interface|queue))|collect\.pcap\.#|processors\.#\.(host|interface)"
    r"|calibration\.(bottleneck_(node|interface|handle)|targets\.#\.(sender|receiver))"
)


def _leaves(value: object, place: _Place = ()) -> Iterator[tuple[_Place, object]]:
    pairs = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else None
    if pairs is None:
        yield place, value
    for name, each in pairs or ():
        yield from _leaves(each, (*place, name))


def test_every_reference_of_a_plan_is_looked_up_before_it_is_used(tmp_path: Path) -> None:
    plan: Any = of_today(json.loads(make_one(tmp_path, "", _PATHS).to_json()))
    file = tmp_path / "plan.json"
    met = set()
    for place, value in _leaves(plan):
        name = re.sub(r"\.\d+(?=\.|$)", ".#", ".".join(map(str, place)))
        if not REFERENCES.fullmatch(name) or value in (None, "lo", "root", "ingress"):
            continue
        changed = copy.deepcopy(plan)
        part = changed
        for step in place[:-1]:
            part = part[step]
        part[place[-1]] = 77 if isinstance(value, int) else "nobody:nobody"
        file.write_text(json.dumps(changed))
        with pytest.raises(RecordError, match=r"plan\.json: the plan cannot be read: ") as caught:
            read_plan_file(file)
        assert re.search("nobody|77|does not have", caught.value.what), name
        met.add(name)
    assert len(met) == 29, sorted(met)


def test_the_place_of_a_reference_is_named(tmp_path: Path) -> None:
    plan = json.loads(make_one(tmp_path).to_json())
    number, link = next((number, each) for number, each in enumerate(plan["operations"]) if each["op"] == "link")
    link["arguments"]["a_node"] = "nobody"
    (tmp_path / "plan.json").write_text(json.dumps(plan))
    what = re.escape(f"operation {number} (link) names the host 'nobody', which the plan does not have")
    with pytest.raises(RecordError, match=what):
        read_plan_file(tmp_path / "plan.json")


def test_a_plan_with_a_module_of_its_own_is_read(tmp_path: Path) -> None:
    plan = make_one(tmp_path, "", [f"modules=[{MINE}]", "algorithm=mine"])
    assert plan.own_algorithms, "by the module's name, where modules has its path"
    (tmp_path / "plan.json").write_text(plan.to_json())
    assert read_plan_file(tmp_path / "plan.json") == plan


@pytest.mark.parametrize(
    ("part", "name", "wrong", "what"),
    [
        ("path", "mss_bytes", 0, "mss_bytes is 0"),
        ("path", "frame_bytes", -1, "frame_bytes is -1"),
        ("flow", "rtt_us", 0, "rtt_us of flow 1 is 0"),
        ("path", "loss_ratio", -1.0, "path.loss_ratio is -1.0, and not from 0 to 1"),
    ],
)
def test_a_number_that_nothing_can_be_divided_by_is_named(
    part: str, name: str, wrong: float, what: str, tmp_path: Path
) -> None:
    plan: Any = of_today(json.loads(make_one(tmp_path).to_json()))
    (plan["path"] if part == "path" else plan["flows"][0])[name] = wrong
    (tmp_path / "plan.json").write_text(json.dumps(plan))
    with pytest.raises(RecordError, match=re.escape(what)):
        read_plan_file(tmp_path / "plan.json")
