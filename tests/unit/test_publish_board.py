# SPDX-License-Identifier: Apache-2.0
"""Grafana's dashboards against its schema, their queries against a real Prometheus, and the rules against promtool."""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.cog.plugins import register_default_plugins
from grafana_foundation_sdk.models.dashboard import Dashboard
from ruamel.yaml import YAML

from howdah.generated import compact_json
from howdah.nightly.output import families
from howdah.publish import scrape as finished
from howdah.publish.blocks import SAMPLES
from howdah.publish.board import GRAFANA_FILE, boards, grafana
from howdah.publish.metric import RESULTS_JOB
from howdah.publish.openmetrics import openmetrics
from howdah.publish.scrape import RULES, Finished
from howdah.publish.server import Client
from howdah.record.result import load_experiment
from tests.boards import answer, queries, served
from tests.experiment_factory import Scenario, make_experiment
from tests.nightly_factory import changed, night, sheet, usual
from tests.prometheus_fixture import prometheus_or_skip

ROOT = Path(__file__).resolve().parents[2]
FOLDER = RULES.parent
NAME = "test-made-debian-6.12"


@pytest.fixture(scope="module", autouse=True)
def _plugins() -> None:
    register_default_plugins()


def _lost(ours: Any, theirs: Any, place: str = "") -> list[str]:
    """What of ours is not in what Grafana's own classes make of it: fields that they do not know, or change."""
    if isinstance(ours, dict) and isinstance(theirs, dict):
        missing = [f"{place}.{name}" for name in ours if name not in theirs]
        both = [name for name in ours if name in theirs]
        return missing + [each for name in both for each in _lost(ours[name], theirs[name], f"{place}.{name}")]
    if isinstance(ours, list) and isinstance(theirs, list) and len(ours) == len(theirs):
        pairs = enumerate(zip(ours, theirs, strict=True))
        return [each for index, (a, b) in pairs for each in _lost(a, b, f"{place}[{index}]")]
    return [] if ours == theirs else [f"{place}: {ours!r} became {theirs!r}"]


def _read_by_grafana(board: dict[str, Any]) -> Any:
    return json.loads(JSONEncoder().encode(Dashboard.from_json(board)))


@pytest.mark.parametrize("file", sorted(FOLDER.glob("howdah-*.json")), ids=lambda file: file.stem)
def test_grafanas_schema_knows_every_field_of_a_dashboard(file: Path) -> None:
    board = json.loads(file.read_text(encoding="utf-8"))
    assert _lost(board, _read_by_grafana(board)) == []
    assert board["uid"] == file.stem
    wrong = {**board, "panels": [{**board["panels"][0], "fieldConfigs": {}}], "colour": "blue"}
    assert sorted(_lost(wrong, _read_by_grafana(wrong))) == [".colour", ".panels[0].fieldConfigs"]


ALL = [*((board.file, board.grafana()) for board in boards()), (GRAFANA_FILE, grafana())]


@pytest.mark.parametrize(("file", "made"), ALL, ids=[file.stem for file, _ in ALL])
def test_a_file_is_the_one_that_its_board_makes(file: Path, made: dict[str, Any]) -> None:
    assert file.read_text(encoding="utf-8") == compact_json(made), "run python -m howdah.publish.board"


@pytest.mark.parametrize("made", [made for _, made in ALL], ids=[file.stem for file, _ in ALL])
def test_panels_do_not_overlap(made: dict[str, Any]) -> None:
    taken: set[tuple[int, int]] = set()
    for panel in made["panels"]:
        place = panel["gridPos"]
        cells = {(place["x"] + x, place["y"] + y) for x in range(place["w"]) for y in range(place["h"])}
        assert not cells & taken
        assert max(x for x, _y in cells) < 24
        taken |= cells
    assert len({panel["id"] for panel in made["panels"]}) == len(made["panels"])


def _make_night(runs: Path, directory: Path) -> None:
    def tonight(slug: str, number: int) -> Any:
        return changed(slug, number, retransmitted_packets__1=40.0 + number)

    made = night(directory, sheet(NAME, usual), sheet(NAME, tonight))
    made.ended = datetime.now(UTC).isoformat()
    place = runs / "test.nights" / "20250601T000000.000"
    place.mkdir(parents=True)
    (place / SAMPLES).write_text("".join(openmetrics(families(made))), encoding="utf-8")


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    """Over an experiment with a run that is invalid and one that failed, made now, and over a night."""
    parent = tmp_path_factory.mktemp("boards")
    started = datetime.fromtimestamp(time.time() - 60, UTC).isoformat()
    scenario = Scenario(
        *("synthetic", "Two runs that count, and two that do not"),
        duration_s=3.0,
        second_flow_s=1.0,
        invalid=(("reno", 1),),
        failed=(("cubic", 1),),
        started=started,
    )
    make_experiment(parent / "runs", scenario)
    _make_night(parent / "runs", parent)
    with served(parent / "runs", parent / "data", prometheus_or_skip()) as found:
        yield found


@pytest.mark.parametrize(("panel", "query"), queries(), ids=[name for name, _query in queries()])
def test_every_query_of_a_dashboard_is_answered(client: Client, panel: str, query: str) -> None:
    assert answer(client, query), f"{panel}: {query}"


def test_a_plain_query_finds_what_is_finished_now(client: Client) -> None:
    """As somebody types it into Prometheus' page."""
    found = answer(client, "howdah_run_info")
    assert sorted(each.labels["verdict"] for each in found) == ["failed", "invalid", "pass", "pass"]
    assert {each.labels["job"] for each in found} == {RESULTS_JOB}
    windows = answer(client, 'howdah_exit_cwnd_bdp_ratio{algorithm="cubic"}')
    assert {(each.labels["flow"], each.labels["number"]) for each in windows} == {("flow1", "1"), ("flow2", "2")}
    assert answer(client, "howdah_nightly_regressed == 1")
    ended = answer(client, "howdah_run_end_timestamp_seconds")
    assert all(abs(each.value - time.time()) < 600 for each in ended)


def test_the_rules_are_loaded_and_leave_out_what_does_not_count(client: Client) -> None:
    (count,) = answer(client, 'count(howdah_retransmitted_packets{algorithm="reno", number="1"})')
    assert count.value == 2
    medians = answer(client, "howdah:exit_cwnd_bdp_ratio:median")
    windows = answer(client, 'howdah_exit_cwnd_bdp_ratio{algorithm="reno", repetition="0", number="1"}')
    of_reno = [each.value for each in medians if each.labels["algorithm"] == "reno" and each.labels["flow"] == "flow1"]
    assert of_reno == [each.value for each in windows], "the median of reno is of its one valid run"
    alerts = answer(client, 'ALERTS{alertname="HowdahNightlyCellFails"}')
    assert {each.labels["cell"] for each in alerts} == {"cubic"}


@pytest.mark.parametrize("words", [("check", "rules", str(RULES)), ("test", "rules", "tests/rules.yaml")])
def test_promtool_passes_the_rules(words: tuple[str, ...]) -> None:
    promtool = str(prometheus_or_skip().promtool)
    done = subprocess.run([promtool, *words], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_every_rule_is_tested() -> None:
    yaml = YAML(typ="safe")
    rules = [rule for group in yaml.load(RULES)["groups"] for rule in group["rules"]]
    tests = yaml.load(ROOT / "tests" / "rules.yaml")["tests"]
    asked = {each["expr"] for test in tests for each in test.get("promql_expr_test", [])}
    alerted = {each["alertname"] for test in tests for each in test.get("alert_rule_test", []) if each["exp_alerts"]}
    assert {rule["record"] for rule in rules if "record" in rule} <= asked
    assert {rule["alert"] for rule in rules if "alert" in rule} == alerted


def test_there_is_room_for_the_newest_summaries_and_for_what_every_run_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    scenario = Scenario(duration_s=1.0, flows=1, algorithms=("reno",), repetitions=3)
    runs = load_experiment(make_experiment(tmp_path, scenario)).runs
    shown = Finished()
    shown.set(runs, tmp_path)
    counts = {metric.name: len(samples) for metric, samples in shown.families().items()}
    assert (counts["howdah_run_info"], counts["howdah_retransmitted_packets"]) == (3, 3)
    stamp = shown.stamp
    shown.set(runs, tmp_path)
    assert shown.stamp is stamp, "nothing has changed"
    of_one = sum(counts.values()) // 3
    monkeypatch.setattr(finished, "MOST_SERIES", of_one + of_one // 2)
    shown = Finished()
    shown.set(runs, tmp_path)
    found = {metric.name: samples for metric, samples in shown.families().items()}
    assert len(found["howdah_run_info"]) == len(found["howdah_run_end_timestamp_seconds"]) == 3
    assert [each.labels["repetition"] for each in found["howdah_retransmitted_packets"]] == ["2"], "the newest"
