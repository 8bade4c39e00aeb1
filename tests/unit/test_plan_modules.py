# SPDX-License-Identifier: Apache-2.0
"""Which kernel modules a plan asks for: those of its algorithms and its traffic, and the profile's own."""

from __future__ import annotations

from pathlib import Path

from howdah.profile import load
from howdah.work.compiled import compile_plans

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
