# SPDX-License-Identifier: Apache-2.0
"""Captures of howdah's own runs over drawn paths: what ``howdah explain`` says against what the run knows.

Five runs by default; HOWDAH_RECOVERY_RUNS=300 makes as many. ``python -m tests.explain`` makes their table.
"""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from howdah.command.main import main
from howdah.explain.twin import twin_text
from tests.explain.damage import HARMLESS
from tests.explain.drawn import profile
from tests.explain.recovery import RIGHT, WRONG, Truth, explained, outcomes, recorded

pytestmark = pytest.mark.guest
# One of each: HyStart, a loss, a receive window, BBR, HyStart just before a loss. Further ones follow in order.
_FIRST = (10, 11, 12, 7, 1070)
_RUNS = int(os.environ.get("HOWDAH_RECOVERY_RUNS") or len(_FIRST))
SEEDS = [*_FIRST, *(seed for seed in range(_RUNS + len(_FIRST)) if seed not in _FIRST)][:_RUNS]


@pytest.fixture(scope="module")
def known(tmp_path_factory: pytest.TempPathFactory) -> list[Truth]:
    place = tmp_path_factory.mktemp("drawn")
    for seed in SEEDS:
        file = place / f"drawn-{seed}.yaml"
        file.write_text(profile(seed), encoding="utf-8")
        assert main(["run", str(file), "--runs", str(place / "runs"), "--no-report"]) == 0
    return list(recorded(place / "runs"))


def test_nothing_is_wrong_and_most_is_right_at_every_tap(known: list[Truth], tmp_path: Path) -> None:
    found = [
        (each.seed, tap, question, worth)
        for each in known
        for tap, capture in each.taps.items()
        for question, worth in outcomes(each, explained(capture, "none", tmp_path), "none").items()
    ]
    assert len({tap for _, tap, _, _ in found}) == 3
    assert [each for each in found if each[3] == WRONG and each[2] in ("cause", "exit")] == []
    wrong = [each for each in found if each[3] == WRONG]
    assert len(wrong) <= len(found) * 0.01, wrong
    for question in ("base RTT", "cause", "exit"):
        worth = [each[3] for each in found if each[2] == question]
        assert worth.count(RIGHT) >= 0.95 * len(worth), question


def test_a_damage_makes_nothing_wrong(known: list[Truth], tmp_path: Path) -> None:
    for number, damage in enumerate(HARMLESS):
        each = known[number % len(known)]
        found = outcomes(each, explained(each.taps["sender"], damage, tmp_path), damage)
        assert WRONG not in found.values(), (each.seed, damage, found)


def test_a_twin_leaves_its_start_up_where_the_recorded_flow_did(known: list[Truth], tmp_path: Path) -> None:
    """The run that has an exit by its own detector; a twin knows nothing but the capture."""
    each = next(each for each in known if each.seed == _FIRST[0])
    flow = explained(each.taps["sender"], "none", tmp_path)
    file = tmp_path / "drawn-0.yaml"
    file.write_text(twin_text(flow, "drawn-0"), encoding="utf-8")
    assert main(["run", str(file), "--runs", str(tmp_path / "runs"), "--no-report"]) == 0
    (twin,) = recorded(tmp_path / "runs")
    assert twin.metrics["exit_cause"] == each.metrics["exit_cause"]
    assert abs(twin.metrics["exit_round"] - each.metrics["exit_round"]) <= 1
    assert twin.plan["path"]["rtt_us"] == pytest.approx(each.plan["path"]["rtt_us"], rel=0.01)


def test_a_twin_lies_over_the_recording_and_a_wrong_one_does_not(
    known: list[Truth], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The flow that left by a loss; then the same with half of the round trip, which is not its twin."""
    each = next(each for each in known if each.seed == _FIRST[1])
    file = tmp_path / "twin.yaml"
    file.write_text(twin_text(explained(each.taps["sender"], "none", tmp_path), "twin"), encoding="utf-8")
    over = []
    for more in ([], ["--set", f"path.rtt={each.plan['path']['rtt_us'] // 2} us"]):
        capsys.readouterr()
        assert main(["run", str(file), "--runs", str(tmp_path / f"runs{len(more)}"), "--json", *more]) == 0
        over.append(json.loads(capsys.readouterr().out)["twin"])
    (right,), (wrong,) = (each["runs"] for each in over)
    assert right["not_explained"] == [] and right["distance"] < 0.1
    assert any(said.startswith("round trip: ") for said in wrong["not_explained"])
    assert wrong["distances"]["round trip"] > 0.1
    page = Path(over[0]["page"]).read_text()
    assert page.count('class="recorded"') == page.count('class="reproduced"') > 0
