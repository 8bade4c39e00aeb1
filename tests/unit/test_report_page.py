# SPDX-License-Identifier: Apache-2.0
"""The page: what it says, what it must not load, and that no name can break out of it."""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser
from pathlib import Path

import pytest

from howdah.assets import UPLOT_VERSION, scripts
from howdah.errors import HowdahError
from howdah.publish.prometheus import PrometheusUnavailableError
from howdah.report.build import report
from tests.experiment_factory import Scenario, make_experiment, rewrite_plan
from tests.prometheus_fixture import prometheus_or_skip

HOSTILE = "<img src=x onerror=alert(1)></script><script>alert(1)</script>\"'&{{7*7}}"


class Page(HTMLParser):
    """Tags with their attributes, and the text outside scripts and styles."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.words: list[str] = []
        self._inside: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag in ("script", "style"):
            self._inside.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if self._inside and tag == self._inside[-1]:
            self._inside.pop()

    def handle_data(self, data: str) -> None:
        if not self._inside:
            self.words.append(data)

    @property
    def text(self) -> str:
        return re.sub(r"\s+", " ", " ".join(self.words))


def made(tmp_path: Path, scenario: Scenario, prometheus: str = "off") -> tuple[str, Path]:
    directory = make_experiment(tmp_path, scenario)
    path = report(directory, prometheus=prometheus)
    assert path == directory / "report.html"
    return path.read_text(encoding="utf-8"), directory


def small(**changes: object) -> Scenario:
    scenario = Scenario(duration_s=3.0, second_flow_s=1.0)
    for name, value in changes.items():
        setattr(scenario, name, value)
    return scenario


def embedded(text: str) -> dict[str, object]:
    found = re.search(r'<script type="application/json" id="data">(.*?)</script>', text, re.S)
    assert found
    value: dict[str, object] = json.loads(found.group(1))
    return value


def test_the_page_loads_nothing(tmp_path: Path) -> None:
    text, _ = made(tmp_path, small())
    page = Page(text)
    for tag, attributes in page.tags:
        assert tag not in ("link", "iframe", "img", "object", "embed", "base"), tag
        assert "src" not in attributes
        assert not (attributes.get("href") or "#").startswith(("http", "//", "data"))
    policy = next(a["content"] for _, a in page.tags if a.get("http-equiv") == "Content-Security-Policy")
    assert policy is not None
    assert policy.startswith("default-src 'none'")
    for script in scripts():
        assert script.policy in policy
    assert "unsafe-inline" not in policy.split("script-src")[1].split(";")[0]


def test_every_script_of_the_page_is_admitted_by_its_hash(tmp_path: Path) -> None:
    text, _ = made(tmp_path, small())
    inline = re.findall(r"<script>(.*?)</script>", text, re.S)
    assert inline == [script.text for script in scripts()]
    assert f"uPlot {UPLOT_VERSION}" in text


def test_hostile_names_stay_text(tmp_path: Path) -> None:
    text, directory = made(tmp_path, small(description=HOSTILE))
    run = next(directory.glob("cubic-r0-*"))
    for path in directory.glob("*/plan.json"):
        rewrite_plan(path.parent, algorithm=HOSTILE, axes={"x": HOSTILE})
    verdict = json.loads((run / "verdict.json").read_text())
    verdict["checks"][0] |= {"name": HOSTILE, "message": HOSTILE, "ok": False}
    (run / "verdict.json").write_text(json.dumps(verdict))
    metrics = json.loads((run / "metrics.json").read_text())
    for row in metrics["rows"]:
        row["value"] = HOSTILE if row["metric"] == "exit_cause" else row["value"]
    (run / "metrics.json").write_text(json.dumps(metrics))
    text = report(directory, prometheus="off").read_text(encoding="utf-8")
    page = Page(text)
    assert not [tag for tag, _ in page.tags if tag == "img"]
    assert len([tag for tag, _ in page.tags if tag == "script"]) == len(scripts()) + 1
    assert not [name for _, attributes in page.tags for name in attributes if name.startswith("on")]
    assert "{{7*7}}" in page.text
    assert "alert(1)" in json.dumps(embedded(text))


def test_hostile_names_survive_the_way_through_prometheus(tmp_path: Path) -> None:
    prometheus_or_skip()
    directory = make_experiment(tmp_path, small(algorithms=("reno",), repetitions=1))
    rewrite_plan(next(directory.glob("reno-r0-*")), algorithm=HOSTILE + '\\"\n}', axes={"x": HOSTILE})
    data = embedded(report(directory, prometheus="auto").read_text(encoding="utf-8"))
    runs = data["runs"]
    assert isinstance(runs, list)
    assert set(runs[0]["curves"]["cwnd"]) == {"1", "2"}


def test_invalid_and_failed_runs_are_named_with_their_reason(tmp_path: Path) -> None:
    text, _ = made(tmp_path, small(invalid=(("reno", 1),), failed=(("cubic", 0),)))
    page = Page(text)
    assert "Left out of the results" in page.text
    assert re.search(r"invalid reno-r1-\w+ : bottleneck rate", page.text)
    assert re.search(r"failed cubic-r0-\w+ : the guest died", page.text)
    assert "1 of 2 left out" in page.text
    assert re.search(r"✕ broken bottleneck rate .* \? not made peak backlog .* ✓ holds trace records lost", page.text)
    assert "n=1" in page.text


def test_sources_that_disagree_are_named_with_their_values(tmp_path: Path) -> None:
    directory = make_experiment(tmp_path, small(algorithms=("reno",), repetitions=1))
    (file,) = directory.glob("*/metrics.json")
    sources = {"tcp_probe": 239_926.272, "tcp_info": 335_582}
    check = {"flow": 1, "metric": "min_rtt_us", "sources": sources, "agree": False, "message": "they are far apart"}
    file.write_text(json.dumps({**json.loads(file.read_text()), "cross_checks": [check]}), encoding="utf-8")
    text = report(directory, prometheus="off").read_text(encoding="utf-8")
    assert "Two sources disagree on min_rtt_us of flow 1 (tcp_probe: 239" in text
    assert "they are far apart" in text
    assert "0 of 1 measures that have two sources agree." in text


def test_without_prometheus_the_footer_says_so(tmp_path: Path) -> None:
    text, _ = made(tmp_path, small())
    assert "Prometheus was switched off" in Page(text).text


def test_a_missing_program_is_said_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def unavailable() -> None:
        raise PrometheusUnavailableError("no network", hint="plug it in")

    monkeypatch.setattr("howdah.report.build.find", unavailable)
    text, _ = made(tmp_path, small(), prometheus="auto")
    assert "Without Prometheus (no network): curves and summary were computed from the Parquet" in Page(text).text


def test_a_report_fetches_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A first run on a machine with apt took a third of its time to fetch a server that the page can do without."""
    programs, asked = tmp_path / "bin", tmp_path / "asked"
    programs.mkdir()
    for name in ("apt-get", "dpkg-deb"):
        (programs / name).write_text(f"#!/bin/sh\necho $0 >> {asked}\nexit 1\n")
        (programs / name).chmod(0o755)
    monkeypatch.setenv("PATH", str(programs))
    monkeypatch.setenv("HOWDAH_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("HOWDAH_PROMETHEUS", raising=False)
    text, _ = made(tmp_path, small(), prometheus="auto")
    assert not asked.exists()
    assert "Without Prometheus (not on this machine)" in Page(text).text


@pytest.mark.parametrize(
    ("table", "figure", "words"),
    [
        ("qdisc", "queue", "no qdisc records of the bottleneck"),
        ("tcp_probe", "exit-cwnd", "no tcp_probe records"),
    ],
)
def test_a_missing_table_is_told_where_its_figure_would_be(tmp_path: Path, table: str, figure: str, words: str) -> None:
    text, _ = made(tmp_path, small(without_tables=(table,), algorithms=("reno",), repetitions=1))
    runs = embedded(text)["runs"]
    assert isinstance(runs, list)
    assert any(words in message for message in runs[0]["missing"][figure])


def test_a_flow_without_an_exit_says_why(tmp_path: Path) -> None:
    _, directory = made(tmp_path, small(algorithms=("reno",), repetitions=1))
    file = next(directory.glob("reno-r0-*")) / "metrics.json"
    metrics = json.loads(file.read_text())
    for row in metrics["rows"]:
        if row["flow"] == 1 and row["metric"].startswith("exit_"):
            row |= {"value": None, "why": "the flow did not leave slow start"}
    file.write_text(json.dumps(metrics))
    text = report(directory, prometheus="off").read_text(encoding="utf-8")
    assert 'title="the flow did not leave slow start"' in text
    runs = embedded(text)["runs"]
    assert isinstance(runs, list)
    assert runs[0]["flows"][0]["exit"] is None
    begin, end = runs[0]["flows"][0]["span"]
    assert begin == 0 < end, "what the page shows of it first"
    assert "flow1 did not leave slow start" in runs[0]["stayed"]
    assert not runs[0]["missing"], "a result is nothing that is missing"


def _with_exits(directory: Path, why: str) -> None:
    for file in directory.glob("*/metrics.json"):
        metrics = json.loads(file.read_text())
        for row in metrics["rows"]:
            if row["metric"].startswith("exit_"):
                row |= {"value": None, "why": why}
        file.write_text(json.dumps(metrics))


def test_runs_that_stayed_in_slow_start_have_no_red_box(tmp_path: Path) -> None:
    _, directory = made(tmp_path, small(algorithms=("reno",), repetitions=1))
    _with_exits(directory, "the flow did not leave slow start")
    text = report(directory, prometheus="off").read_text(encoding="utf-8")
    assert 'class="missing" role="status"' not in text
    said = [each for each in re.findall(r'<p class="aside" role="status">(.*?)</p>', text) if "slow start" in each]
    assert any("flow1 did not leave slow start" in each for each in said), "where its exit would be"
    rewritten = next(directory.glob("reno-*/verdict.json"))
    rewritten.write_text(json.dumps(json.loads(rewritten.read_text()) | {"verdict": "invalid"}))
    text = report(directory, prometheus="off").read_text(encoding="utf-8")
    assert text.count('class="missing" role="status">No run reports') == 1, "no run counts: that is a fault"


def test_an_experiment_in_which_nothing_ran_still_makes_a_page(tmp_path: Path) -> None:
    text, directory = made(tmp_path, small(algorithms=("reno",), repetitions=1, failed=(("reno", 0),)))
    assert "No measures" in Page(text).text
    next(directory.glob("reno-r0-*/plan.json")).unlink()
    text = report(directory, prometheus="off").read_text(encoding="utf-8")
    assert "there is nothing to draw" in Page(text).text


def test_the_headline_tells_what_all_runs_have(tmp_path: Path) -> None:
    """A case may have its own duration, flows and engine; the run that checks the generator is no point of a sweep."""
    axes = ({"case": "near"}, {"case": "far"}, {"case": "near", "traffic": "iperf3"})
    directory = make_experiment(tmp_path, small(algorithms=("reno",), repetitions=1, axes=axes))
    text = Page(report(directory, prometheus="off").read_text(encoding="utf-8")).text
    assert "reno, 2 sweep points, one repetition each; 2 flows for 3 s; engine synthetic, kernel" in text
    for run in directory.glob("reno-far-*"):
        rewrite_plan(run, duration_us=8_000_000, engine="vm")
    text = Page(report(directory, prometheus="off").read_text(encoding="utf-8")).text
    assert "reno, 2 sweep points, one repetition each; 2 flows for 3 s to 8 s; engine synthetic, vm, kernel" in text


def test_a_single_run_can_be_reported(tmp_path: Path) -> None:
    _, directory = made(tmp_path, small())
    run = next(directory.glob("reno-r0-*"))
    text = report(run, prometheus="off").read_text(encoding="utf-8")
    assert "reno" in Page(text).text
    assert (run / "report.html").exists()


def test_a_directory_that_is_no_experiment_is_refused(tmp_path: Path) -> None:
    with pytest.raises(HowdahError, match="neither an experiment nor a run"):
        report(tmp_path)


def test_a_damaged_table_is_named(tmp_path: Path) -> None:
    _, directory = made(tmp_path, small(algorithms=("reno",), repetitions=1))
    file = next(directory.glob("reno-r0-*")) / "tables" / "tcp_probe.parquet"
    file.write_bytes(file.read_bytes()[:500])
    with pytest.raises(HowdahError, match=r"tcp_probe\.parquet"):
        report(directory, prometheus="off")


def test_a_long_experiment_stays_small(tmp_path: Path) -> None:
    scenario = small(
        duration_s=60.0, algorithms=("cubic", "reno", "bbr"), repetitions=2, rate_bits_per_second=100_000_000
    )
    text, _ = made(tmp_path, scenario)
    assert len(text) < 1_500_000
