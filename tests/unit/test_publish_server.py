# SPDX-License-Identifier: Apache-2.0
"""A real Prometheus: blocks, queries, ports, and that it never outlives its parent."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from howdah.errors import HowdahError
from howdah.publish.blocks import blocks_in, build_experiment, build_night, link_blocks
from howdah.publish.openmetrics import end_ms, run_labels, start_ms
from howdah.publish.prometheus import Prometheus, PrometheusUnavailableError
from howdah.publish.serve import Importer, serve
from howdah.publish.server import Client, matchers, require_port, running, start
from howdah.record.result import Experiment, load_experiment
from howdah.record.sample import sample_run
from tests.experiment_factory import Scenario, make_experiment
from tests.prometheus_fixture import prometheus_or_skip


@pytest.fixture(scope="module")
def prometheus() -> Prometheus:
    return prometheus_or_skip()


@pytest.fixture
def experiment(tmp_path: Path) -> Experiment:
    return load_experiment(make_experiment(tmp_path / "runs", Scenario(duration_s=3.0, second_flow_s=1.0)))


def alive(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return False
    return state != "Z"


def test_a_server_answers_with_the_samples_of_the_tables(
    experiment: Experiment, prometheus: Prometheus, tmp_path: Path
) -> None:
    data = tmp_path / "data"
    data.mkdir()
    link_blocks(build_experiment(experiment, prometheus), data)
    with running(prometheus, data) as server:
        client = Client(server.url)
        for run in experiment.runs:
            wanted = {each.label("flow"): each for each in sample_run(run) if each.metric == "howdah_flow_cwnd_packets"}
            query = f"howdah_flow_cwnd_packets{{{matchers(run_labels(run))}}}"
            answers = client.range(query, start_ms(run), end_ms(run), 10)
            assert {answer.labels["flow"] for answer in answers} == {"flow1", "flow2"}
            for answer in answers:
                expected = wanted[answer.labels["number"]]
                count = len(expected.time_ms)
                assert (answer.time_ms[:count] - start_ms(run)).tolist() == expected.time_ms.tolist()
                np.testing.assert_array_equal(answer.value[:count], expected.value)
                assert len(answer.time_ms) - count <= 50  # the look-back: half a second past the last sample
        with pytest.raises(HowdahError, match="refused the query"):
            client.instant("rate(", 0)
        pid = server.process.pid
    assert not alive(pid)


def test_the_examples_of_the_documentation_have_answers(
    experiment: Experiment, prometheus: Prometheus, tmp_path: Path
) -> None:
    data = tmp_path / "data"
    data.mkdir()
    link_blocks(build_experiment(experiment, prometheus), data)
    text = (Path(__file__).resolve().parents[2] / "docs" / "prometheus.md").read_text(encoding="utf-8")
    (block,) = re.findall(r"```\n(.*?)```", text.partition("## Examples")[2].partition("\n## ")[0], re.S)
    examples = re.split(r"^#.*\n", block, flags=re.MULTILINE)[1:]
    assert len(examples) == 4
    last = max(end_ms(run) for run in experiment.runs)
    with running(prometheus, data) as server:
        for example in examples:
            assert Client(server.url).instant(example, last), example


def test_blocks_are_built_once_and_again_when_the_run_changes(experiment: Experiment, prometheus: Prometheus) -> None:
    first = build_experiment(experiment, prometheus)
    assert build_experiment(experiment, prometheus) == first
    metrics = experiment.runs[0].directory.metrics
    metrics.write_text(metrics.read_text().replace("0.97", "0.96"))
    second = build_experiment(load_experiment(experiment.path), prometheus)
    assert len(second) == len(first)
    assert len(set(first) & set(second)) == len(first) - 1
    assert not [entry for entry in (experiment.path / "prometheus").iterdir() if entry.name.startswith(".partial")]
    assert len(list((experiment.path / "prometheus").iterdir())) == len(experiment.runs)


@pytest.mark.parametrize("name", ["tombstones", "index", "chunks/000001"])
def test_blocks_that_are_no_files_are_built_again(experiment: Experiment, prometheus: Prometheus, name: str) -> None:
    """Prometheus would wait for ever for who writes to a pipe, and show the file that a link points to."""
    place = build_experiment(experiment, prometheus)[0].parent
    os.mkfifo(_removed(blocks_in(place)[0] / name))
    build_experiment(experiment, prometheus)
    (again,) = blocks_in(place)
    assert (again / name).is_file()
    _removed(again / name).symlink_to("/etc/passwd")
    build_experiment(experiment, prometheus)
    (again,) = blocks_in(place)
    assert not (again / name).is_symlink()


def _removed(file: Path) -> Path:
    file.unlink()
    return file


def test_a_night_whose_samples_are_a_pipe_is_refused(prometheus: Prometheus, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "series.om")
    with pytest.raises(HowdahError, match="this is a pipe, not a file"):
        build_night(tmp_path, prometheus)


def test_what_a_server_does_to_its_blocks_does_not_reach_the_originals(
    experiment: Experiment, prometheus: Prometheus, tmp_path: Path
) -> None:
    blocks = build_experiment(experiment, prometheus)
    data = tmp_path / "data"
    data.mkdir()
    link_blocks(blocks, data)
    for entry in (data / blocks[0].name).rglob("*"):
        if entry.is_file():
            entry.unlink()
    assert (blocks[0] / "meta.json").stat().st_size > 0
    assert list((blocks[0] / "chunks").iterdir())


def test_a_refusal_of_promtool_is_told_and_leaves_nothing(
    experiment: Experiment, prometheus: Prometheus, tmp_path: Path
) -> None:
    broken = tmp_path / "promtool"
    broken.write_text("#!/bin/sh\necho 'no space left on device' >&2\nexit 1\n")
    broken.chmod(0o755)
    with pytest.raises(HowdahError, match="no space left on device"):
        build_experiment(experiment, Prometheus(prometheus.server, broken))
    assert list((experiment.path / "prometheus").iterdir()) == []


def test_a_server_dies_with_a_killed_parent(prometheus: Prometheus, tmp_path: Path) -> None:
    program = (
        "import sys, time\n"
        "from pathlib import Path\n"
        "from howdah.publish.prometheus import Prometheus\n"
        "from howdah.publish.server import start\n"
        "server = start(Prometheus(Path(sys.argv[1]), Path(sys.argv[1])), Path(sys.argv[2]))\n"
        "print(server.process.pid, flush=True)\n"
        "time.sleep(600)\n"
    )
    arguments = [sys.executable, "-c", program, str(prometheus.server), str(tmp_path)]
    with subprocess.Popen(arguments, stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        pid = int(parent.stdout.readline())
        assert alive(pid)
        os.kill(parent.pid, signal.SIGKILL)
        parent.wait()
    for _ in range(200):
        if not alive(pid):
            break
        time.sleep(0.05)
    assert not alive(pid)


def test_a_port_in_use_is_named_with_what_to_do(prometheus: Prometheus, tmp_path: Path) -> None:
    with socket.socket() as holder:
        holder.bind(("127.0.0.1", 0))
        holder.listen()
        port = holder.getsockname()[1]
        with pytest.raises(PrometheusUnavailableError, match=rf"port {port} .*in use[\s\S]*--port"):
            running(prometheus, tmp_path, port).__enter__()
        with pytest.raises(PrometheusUnavailableError, match="--port"):
            serve(tmp_path, port)


def test_a_port_that_does_not_exist_is_refused() -> None:
    with pytest.raises(PrometheusUnavailableError, match="no port 70000"):
        require_port(70000)


def test_a_server_that_ends_at_once_is_quoted(prometheus: Prometheus, tmp_path: Path) -> None:
    (tmp_path / "wal").write_text("not a directory")
    with pytest.raises(PrometheusUnavailableError, match=r"ended at once.*wal"):
        start(prometheus, tmp_path)


def test_serve_finds_new_experiments_and_passes_over_broken_ones(prometheus: Prometheus, tmp_path: Path) -> None:
    runs, data = tmp_path / "runs", tmp_path / "data"
    data.mkdir()
    scenario = Scenario(name="one", duration_s=1.0, flows=1, algorithms=("reno",), repetitions=1)
    make_experiment(runs, scenario)
    (runs / "latest").symlink_to("one")
    importer = Importer(runs, data, prometheus)
    assert importer.look() == (1, 1)
    scenario.name = "two"
    second = make_experiment(runs, scenario)
    assert importer.look() == (2, 2)
    assert len([entry for entry in data.iterdir() if (entry / "meta.json").exists()]) == 2
    (second / "experiment.json").write_text("{")
    assert importer.look() == (1, 1)


def test_a_polite_end_leaves_no_server_and_no_directory(prometheus: Prometheus, tmp_path: Path) -> None:
    make_experiment(tmp_path / "runs", Scenario(duration_s=1.0, flows=1, algorithms=("reno",), repetitions=1))
    scratch = tmp_path / "tmp"
    nobody = 2**22 + 1  # more processes than there can be
    (scratch / f"howdah-prometheus-0123456789abcdef-{nobody}").mkdir(parents=True)
    program = (
        "import sys\n"
        "from pathlib import Path\n"
        "from howdah.publish.serve import serve\n"
        "from howdah.publish.server import free_port\n"
        "serve(Path(sys.argv[1]), free_port())\n"
    )
    environment = os.environ | {"TMPDIR": str(scratch), "HOWDAH_PROMETHEUS": str(prometheus.server.parent)}
    arguments = [sys.executable, "-c", program, str(tmp_path / "runs")]
    with subprocess.Popen(arguments, stdout=subprocess.PIPE, text=True, env=environment) as command:
        assert command.stdout is not None
        assert "Prometheus over 1 run of 1 experiment:" in command.stdout.readline()
        assert len(list(scratch.iterdir())) == 1, "the stale directory went, the new one is there"
        children = Path(f"/proc/{command.pid}/task/{command.pid}/children").read_text().split()
        command.stdout.readline()
        command.terminate()
        assert command.stdout.read() == "stopped\n"
        assert command.wait() == 0
    assert len(children) == 1
    assert not alive(int(children[0]))
    assert list(scratch.iterdir()) == []


def test_serve_without_runs_says_how_to_make_some(tmp_path: Path, prometheus: Prometheus) -> None:
    assert prometheus.server.exists()
    with pytest.raises(HowdahError, match="howdah run"):
        serve(tmp_path / "absent", port=0)
    with pytest.raises(HowdahError, match="no runs to serve"):
        serve(tmp_path, port=0)


def test_blocks_that_came_with_the_runs_are_not_opened(
    experiment: Experiment, prometheus: Prometheus, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Their names carry a code of the user's secret: what another user's howdah named is made again."""
    with monkeypatch.context() as patch:
        patch.setenv("HOWDAH_CACHE", str(tmp_path / "another"))
        foreign = build_experiment(experiment, prometheus)
    own = build_experiment(experiment, prometheus)
    assert own
    assert not {block.parent.name for block in own} & {block.parent.name for block in foreign}
    assert own == build_experiment(experiment, prometheus), "one's own are taken again"
