# SPDX-License-Identifier: Apache-2.0
"""The dashboard's queries, put to a real Prometheus that scrapes a growing run and a real node_exporter."""

from __future__ import annotations

import json
import re
import subprocess
import threading
import time
import urllib.request
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from ruamel.yaml import YAML

from howdah.errors import HowdahError
from howdah.publish.blocks import build_experiment, link_blocks
from howdah.publish.board import GRAFANA_FILE, WINDOW, DashboardPanel, grafana, panels
from howdah.publish.endpoint import endpoint
from howdah.publish.exporter import Exporter, LiveMachine
from howdah.publish.metric import LIVE_JOB, Families, MetricSamples, PublishedMetric
from howdah.publish.openmetrics import end_ms
from howdah.publish.prometheus import PrometheusUnavailableError
from howdah.publish.scrape import configuration, scrape
from howdah.publish.scrape import fetch as fetch_node_exporter
from howdah.publish.server import Client, Server, Value, matchers, running
from howdah.publish.sweep import SweepNumbers
from howdah.record.result import load_experiment
from tests.boards import queries
from tests.experiment_factory import Scenario, make_experiment
from tests.prometheus_fixture import prometheus_or_skip
from tests.unit.underway_run import Underway, make_underway

_STEPS = 24
_LIMIT_S = 60.0
EXTRA: Families = {
    PublishedMetric("extra_things", "gauge", "Things that another exporter has."): [
        MetricSamples({"colour": "blue"}, [0], [7.0])
    ]
}


@dataclass
class Seen:
    """A live server, what was said when it started, and what it answered while the run was made."""

    server: Server
    client: Client
    record_ms: int
    said: list[str]
    answers: dict[str, list[Value]]  # by query: the first that is positive, or the last one


def _grow(underway: Underway, ended: threading.Event) -> None:
    """In steps; then the last readings again and again, as of connections that stand still."""
    step = 0
    while not ended.wait(0.5):
        step += 1
        if step <= _STEPS:
            underway.write(step / _STEPS)
        else:
            underway.repeat(16)


_NAMES = [panel.id for panel in panels()]


def _of_the_page(panel: DashboardPanel) -> str:
    return panel.promql(matchers({"job": LIVE_JOB, "experiment": "live", "point": ""}), WINDOW)


def _of_grafana(number: int) -> str:
    """With what Grafana puts in for its variables when all is chosen."""
    return re.sub(r"\$\w+", ".*", str(grafana()["panels"][number]["targets"][0]["expr"]))


def _first_answers(client: Client) -> dict[str, list[Value]]:
    """Every query is asked until its answer is positive: drops are over soon after they happened."""
    found: dict[str, list[Value]] = {}
    waiting = [*(_of_the_page(panel) for panel in panels()), *(_of_grafana(number) for number in range(len(_NAMES)))]
    limit = time.monotonic() + _LIMIT_S
    while waiting and time.monotonic() < limit:
        for query in waiting:
            found[query] = client.instant(query, _now_ms())
        waiting = [query for query in waiting if not _positive(found[query])]
        time.sleep(0.2)
    return found


@pytest.fixture(scope="module")
def seen(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Seen]:
    prometheus = prometheus_or_skip()
    try:
        fetch_node_exporter()
    except PrometheusUnavailableError as error:
        pytest.skip(f"no node_exporter: {error.what}")
    parent = tmp_path_factory.mktemp("live")
    record = load_experiment(make_experiment(parent / "record", Scenario(duration_s=2.0, second_flow_s=1.0)))
    data, runs, said = parent / "data", parent / "runs", list[str]()
    data.mkdir()
    link_blocks(build_experiment(record, prometheus), data)
    underway, ended = make_underway(runs), threading.Event()
    SweepNumbers(workers={"ready": 3}, left_s=60.0).write(runs)
    growing = threading.Thread(target=_grow, args=(underway, ended))
    with (
        endpoint(lambda: EXTRA) as other,
        Exporter("127.0.0.1", 0, LiveMachine("here")) as exporter,
        scrape(runs, parent, (other.address, exporter.address), said.append) as live,
        running(prometheus, data, live=live) as server,
    ):
        growing.start()
        exporting = threading.Thread(target=exporter.serve_forever, daemon=True)
        exporting.start()
        try:
            client = Client(server.url)
            yield Seen(server, client, end_ms(record.runs[0]), said, _first_answers(client))
        finally:
            ended.set()
            growing.join()
            exporter.shutdown()


def _now_ms() -> int:
    return int(time.time() * 1000)


def _answers(seen: Seen, query: str, good: Callable[[list[Value]], bool] = bool) -> list[Value]:
    """What a query answers as soon as that is good; the last answer at the limit."""
    limit = time.monotonic() + _LIMIT_S
    while True:
        found = seen.client.instant(query, _now_ms())
        if good(found) or time.monotonic() > limit:
            return found
        time.sleep(0.3)


def _positive(found: list[Value]) -> bool:
    return bool(found) and all(each.value > 0 for each in found)


@pytest.mark.parametrize("name", _NAMES)
def test_every_query_of_the_page_is_answered_while_the_run_is_made(seen: Seen, name: str) -> None:
    panel = next(panel for panel in panels() if panel.id == name)
    found = seen.answers[_of_the_page(panel)]
    assert _positive(found), f"{panel.query}: {found}"
    assert len(found) == 1  # one flow, one bottleneck, one run
    wanted = re.findall(r"\{\{(\w+)\}\}", panel.legend)
    assert all(found[0].labels.get(label) for label in wanted)
    if panel.unit == "%":
        assert found[0].value <= 100.001


@pytest.mark.parametrize("number", range(len(_NAMES)), ids=_NAMES)
def test_every_query_of_grafanas_dashboard_is_answered(seen: Seen, number: int) -> None:
    query = _of_grafana(number)
    found = seen.answers[query]
    assert _positive(found), f"{query}: {found}"
    if "experiment" in query:
        other = query.replace('experiment=~".*"', 'experiment=~"another"')
        assert seen.client.instant(other, _now_ms()) == []


def test_scraped_values_are_those_of_the_files(seen: Seen) -> None:
    run = matchers({"job": LIVE_JOB, "experiment": "live"})
    window = _answers(seen, f"howdah_flow_cwnd_packets{{{run}}}", lambda found: bool(found) and found[0].value == 35)
    assert [each.value for each in window] == [35]  # the last of the recording
    acked = _answers(
        seen, f"howdah_flow_acked_bytes_total{{{run}}}", lambda found: bool(found) and found[0].value > 7e5
    )
    assert [each.value for each in acked] == [715313]


def test_what_is_scraped_and_what_is_back_filled_are_told_apart(seen: Seen) -> None:
    names = ("live", "synthetic")
    query = 'count by (experiment) (last_over_time(howdah_flow_cwnd_packets{job="%s"}[20y]))'
    at = _now_ms()
    scraped, record = (
        {each.labels["experiment"] for each in seen.client.instant(query % job, at)} for job in ("howdah-live", "")
    )
    assert scraped == {names[0]}
    assert record == {names[1]}
    assert seen.record_ms < at


def test_other_exporters_are_scraped_too(seen: Seen) -> None:
    (found,) = _answers(seen, 'extra_things{job="howdah-exporter"}')
    assert (found.value, found.labels["colour"]) == (7, "blue")
    of_ours = 'sum(rate(howdah_cpu_seconds_total{job="howdah-exporter", node="here"}[5s]))'
    (spent,) = _answers(seen, of_ours, _positive)
    assert spent.value > 0
    queues = _answers(seen, 'howdah_queue_sent_bytes_total{job="howdah-exporter", node="here"}')
    assert all(each.labels["interface"] for each in queues)


def test_the_sweep_of_a_cluster_is_scraped(seen: Seen) -> None:
    (ready,) = _answers(seen, 'howdah_sweep_workers{job="howdah-live", state="ready"}')
    assert ready.value == 3


@pytest.mark.parametrize(("panel", "query"), queries(of_sweep=True), ids=[name for name, _ in queries(of_sweep=True)])
def test_every_query_of_the_dashboard_of_a_sweep_is_answered(seen: Seen, panel: str, query: str) -> None:
    assert _answers(seen, query), f"{panel}: {query}"
    assert seen.client.instant(query.replace('process=~".*"', 'process=~"another"'), _now_ms()) == []


def test_every_target_is_up_and_all_are_on_loopback(seen: Seen) -> None:
    found = _answers(seen, "up", lambda found: len(found) == 4 and _positive(found))
    assert sorted(each.labels["job"] for each in found) == ["howdah-exporter", "howdah-exporter", "howdah-live", "node"]
    assert {each.value for each in found} == {1}
    assert all(each.labels["instance"].startswith("127.0.0.1:") for each in found)
    assert seen.said == []


def test_the_server_shows_the_page(seen: Seen) -> None:
    with urllib.request.urlopen(f"{seen.server.url}/user/live.html") as answer:
        text = answer.read().decode()
    (settings,) = re.findall(r'id="settings">(.*?)</script>', text)
    assert [panel["id"] for panel in json.loads(settings)["panels"]] == _NAMES
    assert "http://" not in text.replace("http://www.w3.org", "")


def test_the_files_that_provision_grafana_name_what_is_there() -> None:
    folder = GRAFANA_FILE.parent / "provisioning"
    (provider,) = YAML(typ="safe").load(folder / "dashboards" / "howdah.yaml")["providers"]
    (source,) = YAML(typ="safe").load(folder / "datasources" / "howdah.yaml")["datasources"]
    assert provider["options"]["path"] in Path("docs/live.md").read_text(encoding="utf-8")
    assert source["url"] == "http://127.0.0.1:9090"  # the default of howdah serve


def test_a_target_that_is_none_is_refused(tmp_path: Path) -> None:
    with (
        pytest.raises(HowdahError, match="is not an address"),
        scrape(tmp_path, tmp_path, ("http://elsewhere",), print),
    ):
        pass


def test_without_a_node_exporter_the_rest_is_scraped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOWDAH_CACHE", str(tmp_path / "empty"))
    monkeypatch.setenv("PATH", "")
    said: list[str] = []
    with scrape(tmp_path, tmp_path, (), said.append) as live:
        jobs = [job["job_name"] for job in json.loads(live.configuration)["scrape_configs"]]
    assert jobs == ["howdah-live"]
    assert len(said) == 1
    assert "node_exporter" in said[0]


def test_the_configuration_is_one_that_promtool_accepts(tmp_path: Path) -> None:
    file = tmp_path / "prometheus.yml"
    file.write_text(configuration({"howdah-live": ["127.0.0.1:1"], "node": ["127.0.0.1:2"]}), encoding="utf-8")
    done = subprocess.run(
        [prometheus_or_skip().promtool, "check", "config", str(file)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
