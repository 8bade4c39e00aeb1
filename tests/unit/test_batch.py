# SPDX-License-Identifier: Apache-2.0
"""Workers: outcomes, errors, interruption, resumption. A stand-in worker takes the place of the real one."""

from __future__ import annotations

import dataclasses
import json
import os
import shutil
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path
from types import SimpleNamespace

import pytest

from howdah.record.directory import PARTIAL
from howdah.record.provenance import analysis_sha256
from howdah.work.batch import Job, Outcome, Rest, Work
from howdah.work.cost import expected_core_s
from howdah.work.experiment import ExperimentDirectory, PlannedRun
from tests.unit.made_jobs import run_jobs
from tests.unit.plan_factory import make_plan, on_engine
from tests.unit.stand_in import stand_in

WHOLE = """
    import json, sys, pathlib
    directory = pathlib.Path(sys.argv[1])
    record = json.loads((directory / "run.json").read_text())
    print(json.dumps({"phase": "flows", "done_us": 1, "of_us": 2}), flush=True)
    (directory / "verdict.json").write_text(json.dumps({"verdict": "pass"}))
    ended = {"status": "finished", "analysis_sha256": "ANALYSIS"}
    (directory / "run.json").write_text(json.dumps({**record, **ended}))
    print(json.dumps({"verdict": "pass"}))
""".replace("ANALYSIS", analysis_sha256())


def _worker(folder: Path, body: str) -> tuple[str, ...]:
    return stand_in(folder / "worker.py", body)


def _cells(count: int) -> list[PlannedRun]:
    return [
        PlannedRun(make_plan(run=f"cubic-r{number}", repetition=number), f"{number:064x}") for number in range(count)
    ]


@pytest.fixture
def experiment(tmp_path: Path) -> ExperimentDirectory:
    experiment = ExperimentDirectory(tmp_path / "runs with a space" / "exp")
    experiment.create()
    return experiment


def _jobs(experiment: ExperimentDirectory, cells: list[PlannedRun]) -> list[Job]:
    return [Job(experiment, cell) for cell in cells]


def _ignore(_active: list[Work], _outcomes: list[Outcome], _rest: Rest) -> None:
    return None


def test_every_cell_gets_a_whole_directory(experiment: ExperimentDirectory, tmp_path: Path) -> None:
    cells = _cells(3)
    cells = [PlannedRun(cell.plan, f"{number}" * 64) for number, cell in enumerate(cells)]
    outcomes = run_jobs(_jobs(experiment, cells), 2, False, _ignore, _worker(tmp_path, WHOLE))
    assert [outcome.verdict for outcome in outcomes] == ["pass"] * 3
    assert sorted(entry.name for entry in experiment.path.iterdir()) == [cell.directory_name for cell in cells]


def test_a_finished_run_is_not_made_again(experiment: ExperimentDirectory, tmp_path: Path) -> None:
    cells = [PlannedRun(make_plan(), "a" * 64)]
    run_jobs(_jobs(experiment, cells), 1, False, _ignore, _worker(tmp_path, WHOLE))
    failing = _worker(tmp_path, "import sys; sys.exit(3)")
    outcomes = run_jobs(_jobs(experiment, cells), 1, False, _ignore, failing)
    assert outcomes[0].reused
    assert outcomes[0].verdict == "pass"
    assert run_jobs(_jobs(experiment, cells), 1, True, _ignore, failing)[0].error is not None


@pytest.mark.parametrize(("engine", "reused"), [("uml", True), ("vm", True), ("machines", False), ("host", False)])
def test_an_invalid_run_in_real_time_is_made_again(
    experiment: ExperimentDirectory, tmp_path: Path, engine: str, reused: bool
) -> None:
    """The machine may have its processors free this time; in virtual time it would come out the same."""
    cells = [PlannedRun(on_engine(make_plan(), engine), "a" * 64)]
    invalid = WHOLE.replace('"verdict": "pass"', '"verdict": "invalid"')
    run_jobs(_jobs(experiment, cells), 1, False, _ignore, _worker(tmp_path, invalid))
    (outcome,) = run_jobs(_jobs(experiment, cells), 1, False, _ignore, _worker(tmp_path, WHOLE))
    assert outcome.reused == reused
    assert outcome.verdict == ("invalid" if reused else "pass")


def test_a_changed_plan_leaves_the_old_run_alone(experiment: ExperimentDirectory, tmp_path: Path) -> None:
    worker = _worker(tmp_path, WHOLE)
    for key in ("a" * 64, "b" * 64):
        run_jobs(_jobs(experiment, [PlannedRun(make_plan(), key)]), 1, False, _ignore, worker)
    assert sorted(entry.name for entry in experiment.path.iterdir()) == ["cubic-r0-aaaaaaaa", "cubic-r0-bbbbbbbb"]


def test_an_error_stops_the_rest_and_keeps_what_finished(experiment: ExperimentDirectory, tmp_path: Path) -> None:
    body = WHOLE + "\n    if False: pass\n"
    body = textwrap.dedent(body).replace(
        "import json, sys, pathlib",
        "import json, sys, pathlib\nif 'r1' in sys.argv[1]:\n"
        "    print(json.dumps({'error': 'no space left', 'where': '/full', 'hint': None})); raise Ended",
        1,
    )
    cells = [PlannedRun(make_plan(run=f"cubic-r{number}"), f"{number}" * 64) for number in range(4)]
    outcomes = run_jobs(_jobs(experiment, cells), 1, False, _ignore, _worker(tmp_path, body))
    assert [outcome.verdict for outcome in outcomes] == ["pass", None]
    assert str(outcomes[1].error) == "/full: no space left"
    assert [entry.name for entry in experiment.path.iterdir()] == ["cubic-r0-00000000"]


def test_a_worker_that_dies_without_a_word_is_an_error_with_its_last_lines(
    experiment: ExperimentDirectory, tmp_path: Path
) -> None:
    worker = _worker(tmp_path, "raise SystemError('out of luck')")
    outcome = run_jobs(_jobs(experiment, [PlannedRun(make_plan(), "a" * 64)]), 1, False, _ignore, worker)[0]
    assert outcome.error is not None
    assert "out of luck" in str(outcome.error)
    assert list(experiment.path.iterdir()) == []


def test_interruption_ends_workers_and_removes_their_directories(
    experiment: ExperimentDirectory, tmp_path: Path
) -> None:
    pids = tmp_path / "pids"
    worker = _worker(tmp_path, f"import os, time\nopen({str(pids)!r}, 'a').write(f'{{os.getpid()}} ')\ntime.sleep(60)")

    def interrupt(active: list[Work], _outcomes: list[Outcome], _rest: Rest) -> None:
        if len(active) == 2 and pids.exists() and len(pids.read_text().split()) == 2:
            raise KeyboardInterrupt

    cells = [PlannedRun(make_plan(run=f"cubic-r{number}"), f"{number}" * 64) for number in range(3)]
    with pytest.raises(KeyboardInterrupt):
        run_jobs(_jobs(experiment, cells), 2, False, interrupt, worker)
    assert list(experiment.path.iterdir()) == []
    for pid in pids.read_text().split():
        assert not Path(f"/proc/{pid}").exists()


def test_interruption_while_a_run_is_being_begun(
    experiment: ExperimentDirectory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its directory is there, its worker is not yet one of those in progress."""

    def interrupted(*_: object, **__: object) -> None:
        assert list(experiment.path.glob(f"{PARTIAL}*"))
        raise KeyboardInterrupt

    worker = _worker(tmp_path, WHOLE)
    monkeypatch.setattr(subprocess, "Popen", interrupted)
    with pytest.raises(KeyboardInterrupt):
        run_jobs(_jobs(experiment, [PlannedRun(make_plan(), "a" * 64)]), 1, False, _ignore, worker)
    assert list(experiment.path.iterdir()) == []


def test_a_killed_command_takes_its_workers_along(tmp_path: Path) -> None:
    """The worker asks to die with its parent; the next command removes the partial directory."""
    runs = tmp_path / "runs"
    pidfile = tmp_path / "pid"
    worker = textwrap.dedent(
        f"""
        import os, sys, time
        from howdah.work.forked import die_with_parent
        die_with_parent(int(sys.argv[2]))
        open({str(pidfile)!r} + ".new", "w").write(str(os.getpid()))
        os.rename({str(pidfile)!r} + ".new", {str(pidfile)!r})
        time.sleep(60)
        """
    )
    command = stand_in(tmp_path / "worker.py", worker)
    parent = textwrap.dedent(
        f"""
        import sys
        from pathlib import Path
        from howdah.work.batch import Job
        from howdah.work.experiment import ExperimentDirectory, PlannedRun
        from tests.unit.made_jobs import run_jobs
        from tests.unit.plan_factory import make_plan
        experiment = ExperimentDirectory(Path({str(runs)!r}))
        experiment.create()
        with experiment.locked():
            run_jobs([Job(experiment, PlannedRun(make_plan(), "a" * 64))], 1, False, lambda *_: None,
                      {command!r})
        """
    )
    process = subprocess.Popen([sys.executable, "-c", parent], cwd=Path(__file__).parents[2])
    deadline = time.monotonic() + 30
    while not pidfile.exists():
        assert time.monotonic() < deadline
        time.sleep(0.02)
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    worker_pid = int(pidfile.read_text())
    while Path(f"/proc/{worker_pid}").exists():
        assert time.monotonic() < deadline, "the worker outlived its parent"
        time.sleep(0.02)
    experiment = ExperimentDirectory(runs)
    with experiment.locked():
        assert [name[: len(PARTIAL)] for name in experiment.sweep_partial()] == [PARTIAL]
    assert [entry.name for entry in runs.iterdir()] == [".lock"]


def test_index_tells_what_is_there(experiment: ExperimentDirectory, tmp_path: Path) -> None:
    cells = [PlannedRun(make_plan(run=f"cubic-r{number}"), f"{number}" * 64) for number in range(2)]
    run_jobs(_jobs(experiment, cells[:1]), 1, False, _ignore, _worker(tmp_path, WHOLE))
    experiment.write_index("text", "a.yaml", "words", experiment.indexed(cells))
    index = json.loads(experiment.index.read_text())
    assert [(cell["status"], cell["verdict"]) for cell in index["cells"]] == [("finished", "pass"), ("pending", None)]


def test_two_commands_in_one_experiment(experiment: ExperimentDirectory) -> None:
    other = (
        "import sys; from pathlib import Path; from howdah.work.experiment import ExperimentDirectory; "
        "experiment = ExperimentDirectory(Path(sys.argv[1]))\n"
        "with experiment.locked(): pass"
    )
    with experiment.locked():
        answer = subprocess.run(
            [sys.executable, "-c", other, str(experiment.path)], capture_output=True, text=True, check=False
        )
    assert answer.returncode != 0
    assert f"process {os.getpid()}" in answer.stderr


def _sized(number: int, seconds: float) -> PlannedRun:
    """A run whose one flow lasts so long."""
    plan = make_plan(run=f"cubic-r{number}", repetition=number)
    flow = dataclasses.replace(plan.flows[0], start_us=0, stop_us=int(seconds * 1e6), size_bytes=None)
    plan = dataclasses.replace(plan, flows=[flow], duration_us=int(seconds * 1e6))
    return PlannedRun(plan, f"{number:064x}")


def test_the_longest_runs_come_first_and_outcomes_in_their_own_order(
    experiment: ExperimentDirectory, tmp_path: Path
) -> None:
    begun: list[str] = []
    waiting: dict[int, float] = {}

    def listen(active: list[Work], _outcomes: list[Outcome], rest: Rest) -> None:
        begun.extend(work.cell.plan.run for work in active if work.cell.plan.run not in begun)
        waiting[len(begun)] = rest.waiting_core_s

    slow = _worker(tmp_path, "import time\ntime.sleep(0.7)\n" + textwrap.dedent(WHOLE))
    cells = [_sized(number, seconds) for number, seconds in enumerate((1.0, 300.0, 20.0, 300.0))]
    outcomes = run_jobs(_jobs(experiment, cells), 1, False, listen, slow)
    assert begun == ["cubic-r1", "cubic-r3", "cubic-r2", "cubic-r0"]
    costs = [expected_core_s(cells[number].plan) for number in (1, 3, 2, 0)]
    assert waiting == {number: pytest.approx(sum(costs[number:])) for number in (1, 2, 3, 4)}
    assert [outcome.cell.plan.run for outcome in outcomes] == [f"cubic-r{number}" for number in range(4)]


def test_runs_of_several_experiments_go_to_their_own_directories(tmp_path: Path) -> None:
    experiments = [ExperimentDirectory(tmp_path / name) for name in ("one", "two")]
    for each in experiments:
        each.create()
    cell = PlannedRun(make_plan(), "a" * 64)  # the same run in both: each has its own
    rests: list[Rest] = []
    outcomes = run_jobs(
        [Job(each, cell) for each in experiments],
        2,
        False,
        lambda _active, _outcomes, rest: rests.append(rest),
        _worker(tmp_path, WHOLE),
    )
    assert [outcome.job.name for outcome in outcomes] == ["one/cubic-r0-aaaaaaaa", "two/cubic-r0-aaaaaaaa"]
    assert all((each.path / "cubic-r0-aaaaaaaa" / "verdict.json").exists() for each in experiments)
    assert (rests[-1].total, rests[-1].waiting_core_s, rests[-1].experiments) == (2, 0.0, 2)


def test_experiments_are_finished_one_after_the_other_the_cheapest_first(tmp_path: Path) -> None:
    dear, cheap = (ExperimentDirectory(tmp_path / name) for name in ("a dear one", "cheap"))
    for each in (dear, cheap):
        each.create()
    begun: list[str] = []

    def listen(active: list[Work], _outcomes: list[Outcome], _rest: Rest) -> None:
        begun.extend(work.job.name for work in active if work.job.name not in begun)

    slow = _worker(tmp_path, "import time\ntime.sleep(0.7)\n" + textwrap.dedent(WHOLE))
    jobs = [*_jobs(dear, [_sized(1, 20.0), _sized(2, 300.0)]), *_jobs(cheap, [_sized(3, 10.0), _sized(4, 100.0)])]
    run_jobs(jobs, 1, False, listen, slow)
    order = [name.split("-0000")[0] for name in begun]
    assert order == ["cheap/cubic-r4", "cheap/cubic-r3", "a dear one/cubic-r2", "a dear one/cubic-r1"]


_ONE_FAILS = textwrap.dedent(WHOLE).replace(
    "import json, sys, pathlib",
    "import json, sys, pathlib\nif 'r1' in sys.argv[1]:\n"
    "    print(json.dumps({'error': 'it broke', 'where': '/x', 'hint': None})); raise Ended",
    1,
)


def test_an_atlas_goes_on_after_an_error(experiment: ExperimentDirectory, tmp_path: Path) -> None:
    cells = [PlannedRun(make_plan(run=f"cubic-r{number}"), f"{number}" * 64) for number in range(4)]
    outcomes = run_jobs(_jobs(experiment, cells), 1, False, _ignore, _worker(tmp_path, _ONE_FAILS), keep_going=True)
    assert [outcome.verdict for outcome in outcomes] == ["pass", None, "pass", "pass"]
    assert not list(experiment.path.glob(f"{PARTIAL}*"))


def test_but_not_on_a_full_disk(
    experiment: ExperimentDirectory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda _path: SimpleNamespace(free=1_000_000))
    cells = [PlannedRun(make_plan(run=f"cubic-r{number}"), f"{number}" * 64) for number in range(4)]
    outcomes = run_jobs(_jobs(experiment, cells), 1, False, _ignore, _worker(tmp_path, _ONE_FAILS), keep_going=True)
    assert [outcome.verdict for outcome in outcomes] == ["pass", None]


def test_a_disk_that_fills_half_way_leaves_the_finished_runs(tmp_path: Path) -> None:
    """Each run takes 100 kB of a file system of 400 kB; the plan of one of them no longer fits."""
    disk = tmp_path / "disk"
    disk.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=400k", "none", disk], check=False).returncode != 0:
        pytest.skip("a file system of its own cannot be mounted here")
    try:
        experiment = ExperimentDirectory(disk / "exp")
        experiment.create()
        body = textwrap.dedent(WHOLE).replace(
            "print(", "(directory / 'raw' / 'x').write_bytes(bytes(100_000))\nprint(", 1
        )
        cells = [PlannedRun(make_plan(run=f"cubic-r{number}"), f"{number}" * 64) for number in range(6)]
        outcomes = run_jobs(_jobs(experiment, cells), 1, False, _ignore, _worker(tmp_path, body))
        finished = [outcome for outcome in outcomes if outcome.verdict == "pass"]
        failed = [outcome for outcome in outcomes if outcome.error is not None]
        assert 1 <= len(finished) < 6
        assert len(failed) == 1, "no further run is begun"
        assert "MB are free there. Make room" in str(failed[0].error)
        assert not list(experiment.path.glob(f"{PARTIAL}*"))
        for outcome in finished:
            assert (experiment.path / outcome.cell.directory_name / "verdict.json").exists()
        shutil.rmtree(experiment.path / finished[0].cell.directory_name)
        again = run_jobs(_jobs(experiment, cells), 1, False, _ignore, _worker(tmp_path, body))
        assert sum(outcome.reused for outcome in again) == len(finished) - 1
    finally:
        subprocess.run(["umount", disk], check=True)
