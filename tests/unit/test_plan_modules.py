# SPDX-License-Identifier: Apache-2.0
"""What a plan asks of a guest: kernel modules and memory; and what is said of a comparison before it is run."""

from __future__ import annotations

import itertools
import json
from pathlib import Path

import pytest

from howdah.algorithm import HYSTART_PAIR
from howdah.command.main import main
from howdah.errors import ProfileError
from howdah.plan.caution import plan_cautions
from howdah.plan.memory import BASE_MEMORY_BYTES, FLOW_MEMORY_BYTES, LARGEST_TRACE_BYTES
from howdah.plan.plan import CAPTURE_BUFFER_BYTES
from howdah.profile import load
from howdah.work.compiled import compile_plans
from tests.unit.profile_factory import make_one, make_plans, write_profile

_PROFILE = """\
howdah: 1
name: modules
path: {rate: 10 Mbit/s, rtt: 20 ms, buffer: 1 bdp}
duration: 2 s
"""


def _required(tmp_path: Path, text: str, *overrides: str) -> dict[str, list[str] | None]:
    """Algorithm to required modules, for a profile beside some modules of its own."""
    for name in ("tcp_mine.c", "meter.c", "special.c"):
        (tmp_path / name).write_text("")
    (tmp_path / "modules.yaml").write_text(_PROFILE + text)
    plans = compile_plans(load(tmp_path / "modules.yaml", list(overrides)))
    return {plan.algorithm: plan.required_modules for plan in plans}


def test_built_in_algorithms_need_only_the_traffic(tmp_path: Path) -> None:
    assert _required(tmp_path, "algorithm: [cubic, reno]\n") == {
        "cubic": ["howdah_traffic"],
        "reno": ["howdah_traffic"],
    }


def test_traffic_from_user_space_needs_no_module(tmp_path: Path) -> None:
    assert _required(tmp_path, "algorithm: cubic\ntraffic: {source: python, sink: python}\n") == {"cubic": []}


def test_a_plug_in_needs_its_module(tmp_path: Path) -> None:
    found = _required(tmp_path, "algorithm: [standard, standard-cubic, cubic]\n")
    assert found["standard"] == found["standard-cubic"] == ["howdah_traffic", "ss_standard"]
    assert found["cubic"] == ["howdah_traffic"]


def test_a_configured_plug_in_needs_its_module(tmp_path: Path) -> None:
    text = "algorithms:\n  slower: {kernel: limited_reno, parameters: {max_ssthresh: 50}}\nalgorithm: slower\n"
    assert _required(tmp_path, text) == {"slower": ["howdah_traffic", "ss_limited"]}


def test_the_profiles_own_algorithm_is_needed_where_it_is_used(tmp_path: Path) -> None:
    found = _required(tmp_path, "algorithm: [cubic, mine]\nmodules: [./tcp_mine.c]\n")
    assert found == {"cubic": ["howdah_traffic"], "mine": ["howdah_traffic", "tcp_mine"]}


def test_a_module_that_is_no_algorithm_is_needed_by_every_run(tmp_path: Path) -> None:
    text = "algorithms:\n  odd: {kernel: odd, module: special}\nmodules: [./meter.c, ./special.c]\n"
    assert _required(tmp_path, f"{text}algorithm: [cubic, odd]\n") == {
        "cubic": ["howdah_traffic", "meter"],
        "odd": ["howdah_traffic", "meter", "special"],
    }


PATH = ["path.rate=100 Mbit/s", "path.buffer=1 bdp"]
INTERFACES = ("s1:s1-eth0", "left:left-eth0", "left:left-eth1", "r1:r1-eth0")


def test_each_capture_has_its_buffer(tmp_path: Path) -> None:
    """The kernel allocates it at once: four are more than all that a plain guest has to spare."""
    plans = [make_one(tmp_path, f"collect: {{pcap: [{', '.join(INTERFACES[:count])}]}}\n", PATH) for count in range(5)]
    memory = [plan.guest_memory_bytes for plan in plans]
    steps = {later - earlier for earlier, later in itertools.pairwise(memory)}
    assert len(steps) == 1
    assert min(steps) > CAPTURE_BUFFER_BYTES
    assert 4 * CAPTURE_BUFFER_BYTES >= BASE_MEMORY_BYTES


def test_short_connections_do_not_add_up(tmp_path: Path) -> None:
    """Ten times as many, one after the other at the same pace, need no more, but for trace and agent."""

    def memory_bytes(connections: int) -> int:
        group = f"groups: [{{name: short, connections: {connections}, interval: 5 ms, size: 20 kB, pairs: 4}}]\n"
        asked = [*PATH, f"duration={connections * 5 // 1000 + 10} s"]
        return make_one(tmp_path, group, asked).guest_memory_bytes

    of_agent = (20_000 - 2000) * FLOW_MEMORY_BYTES
    assert memory_bytes(20_000) - memory_bytes(2000) <= LARGEST_TRACE_BYTES + of_agent
    assert memory_bytes(20_000) < 1 << 30


GROUP = "groups: [{name: web, connections: 3, request: 300 B, size: 100 kB}]\n"
BOTH = "algorithm: [cubic, cubic-no-hystart]\n"
PAIR = f"{HYSTART_PAIR}\n"


def test_an_algorithm_that_background_flows_take_too_is_told_with_their_number(tmp_path: Path) -> None:
    (sentence,) = plan_cautions(make_plans(tmp_path, f"{GROUP}background: [{{}}, {{}}, {{}}]\n{BOTH}"))
    assert "3 background flows" in sentence
    assert HYSTART_PAIR in sentence, "two settings of one module cannot hold the third"


def test_background_that_names_its_own_is_held_and_nothing_is_told(tmp_path: Path) -> None:
    plans = make_plans(tmp_path, f"{GROUP}background: [{{algorithm: cubic}}]\n{PAIR}")
    assert plan_cautions(plans) == []
    assert {flow.algorithm for plan in plans for flow in plan.flows if flow.role == "background"} == {"cubic"}
    assert plan_cautions(make_plans(tmp_path, f"{GROUP}background: [{{}}]\nalgorithm: reno\n")) == [], "no comparison"


def test_who_holds_cubic_beside_both_of_its_settings_is_told_of_the_pair(tmp_path: Path) -> None:
    with pytest.raises(ProfileError) as refused:
        make_plans(tmp_path, f"{GROUP}background: [{{algorithm: cubic}}]\n{BOTH}")
    assert HYSTART_PAIR in str(refused.value.hint)


@pytest.mark.parametrize(
    ("algorithm", "told"), [("jump-start", True), ("large-initial-window", True), ("cubic", False)]
)
def test_an_initial_window_that_nothing_obeys_is_told(tmp_path: Path, algorithm: str, told: bool) -> None:
    swept = GROUP.replace("size:", "initial_window: [4, 10], size:")
    sentences = plan_cautions(make_plans(tmp_path, f"{swept}algorithm: {algorithm}\n"))
    assert [algorithm in sentence and "initial_window" in sentence for sentence in sentences] == [True] * told


@pytest.mark.parametrize(
    ("rate", "burst", "told"),
    [
        ("1 Gbit/s", "3 kB", "The policer drops nothing"),
        ("20 Mbit/s", "200 kB", "hardly to be seen"),
        ("20 Mbit/s", "30 kB", None),
        ("5 Mbit/s", "200 kB", None),
    ],
)
def test_a_policer_without_effect_is_told_once(tmp_path: Path, rate: str, burst: str, told: str | None) -> None:
    """The path has 20 Mbit/s and a buffer of one BDP, 100 kB."""
    policer = f"path.policer={{rate: {rate}, burst: {burst}}}"
    sentences = plan_cautions(make_plans(tmp_path, PAIR, [policer, "repetitions=2"]))
    assert [told is not None and told in sentence for sentence in sentences] == [True] * (told is not None)


def test_plan_says_it_in_both_of_its_forms(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    profile = write_profile(tmp_path, f"{GROUP}background: [{{}}]\n{BOTH}")
    assert main(["plan", str(profile)]) == 0
    assert "1 background flow too" in capsys.readouterr().out
    assert main(["plan", str(profile), "--json"]) == 0
    (sentence,) = json.loads(capsys.readouterr().out)["cautions"]
    assert "1 background flow too" in sentence
    assert main(["plan", str(write_profile(tmp_path, "")), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["cautions"] == []
