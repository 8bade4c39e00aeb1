# SPDX-License-Identifier: Apache-2.0
"""Runs as OpenMetrics text: syntax, time, labels."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from howdah.publish.metric import MetricSamples
from howdah.publish.openmetrics import families, openmetrics, run_labels, start_ms
from howdah.record.result import Experiment, load_experiment
from tests.experiment_factory import Scenario, make_experiment
from tests.prometheus_fixture import exposition, prometheus_or_skip

_SAMPLE = re.compile(r"^(?P<name>[a-z0-9_]+)\{(?P<labels>.*)\} (?P<value>\S+) (?P<time>\d+\.\d{3})$")


@pytest.fixture(scope="module")
def experiment(tmp_path_factory: pytest.TempPathFactory) -> Experiment:
    scenario = Scenario(duration_s=3.0, second_flow_s=1.0, invalid=(("reno", 1),), failed=(("cubic", 1),))
    return load_experiment(make_experiment(tmp_path_factory.mktemp("runs"), scenario))


def test_every_line_is_a_comment_or_a_sample_and_the_end_is_marked(experiment: Experiment) -> None:
    lines = "".join(openmetrics(families(experiment.runs))).splitlines()
    assert lines[-1] == "# EOF"
    for line in lines[:-1]:
        assert line.startswith(("# HELP ", "# TYPE ", "# UNIT ")) or _SAMPLE.match(line), line


def test_times_are_host_start_plus_virtual_offset(experiment: Experiment) -> None:
    run = experiment.runs[0]
    assert run.plan is not None
    found = {metric.name: samples for metric, samples in families([run]).items()}
    cwnd = next(s for s in found["howdah_flow_cwnd_packets"] if s.labels["flow"] == "flow2")
    assert cwnd.labels["number"] == "2"
    start = start_ms(run)
    assert start == 1_748_779_200_000
    assert cwnd.time_ms[0] >= start + 1000 + run.plan.path.rtt_us / 1000
    assert cwnd.time_ms[-1] <= start + 3000
    assert {b - a for a, b in zip(cwnd.time_ms, cwnd.time_ms[1:], strict=False)} == {10}


def test_label_sets_are_unique_and_hold_no_addresses_or_ports(experiment: Experiment) -> None:
    for metric, samples in families(experiment.runs).items():
        sets = [tuple(sorted(each.labels.items())) for each in samples]
        assert len(sets) == len(set(sets)), metric.name
        for each in samples:
            assert not {"address", "port", "saddr", "daddr", "sport", "dport"} & set(each.labels)
            assert not any(value.startswith("10.") for value in each.labels.values())
            assert len(each.labels) <= 13


def test_the_name_of_a_run_is_a_label_of_summaries_only(experiment: Experiment) -> None:
    for metric, samples in families(experiment.runs).items():
        single = all(len(each.time_ms) == 1 for each in samples)
        assert all(("run" in each.labels) == single for each in samples), metric.name


def test_a_failed_run_is_published_with_its_status_and_nothing_else(experiment: Experiment) -> None:
    failed = next(run for run in experiment.runs if run.status == "failed")
    found = families([failed])
    (info,) = (samples for metric, samples in found.items() if metric.name == "howdah_run_info")
    assert info[0].labels["verdict"] == "failed"
    assert not any(metric.name.startswith("howdah_flow_") for metric in found)


def test_hostile_label_values_are_escaped() -> None:
    metric = next(iter(families([]) or {}), None)
    assert metric is None
    from howdah.publish.metric import INFO

    nasty = 'a"b\\c\nd} 1 2\n# EOF'
    text = "".join(openmetrics({INFO[0]: [MetricSamples({"run": nasty}, [0], [1.0])]}))
    assert 'run="a\\"b\\\\c\\nd} 1 2\\n# EOF"' in text
    assert text.count("\n# EOF") == 1


def test_sweep_points_tell_runs_apart(tmp_path: Path) -> None:
    axes = ({"path.rate": 10_000_000}, {"path.rate": 20_000_000})
    scenario = Scenario(algorithms=("reno",), repetitions=1, duration_s=1.0, flows=1, axes=axes)
    runs = load_experiment(make_experiment(tmp_path, scenario)).runs
    assert [run_labels(run)["point"] for run in runs] == ["path.rate=10000000", "path.rate=20000000"]


def test_promtool_finds_nothing_wrong_with_the_names(experiment: Experiment) -> None:
    prometheus = prometheus_or_skip()
    text = "".join(exposition(families(experiment.runs)))
    done = subprocess.run(
        [str(prometheus.promtool), "check", "metrics"], input=text, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout + done.stderr) == (0, "")
