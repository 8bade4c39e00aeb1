# SPDX-License-Identifier: Apache-2.0
"""``python -m tests.faults.limited_worker MEMORY_BYTES``: gives howdah one input after the other, in one process.

A request is a line of JSON on standard input, the answer one on the first file descriptor that was its standard output:
``{"outcome": "accepted" | "refused" | "traceback", "said": …, "processor_s": …}``. The kernel ends the process when a
request uses more processor time than ``limit_s``; the place is then in what it says last on standard error.
"""

from __future__ import annotations

import contextlib
import faulthandler
import io
import json
import os
import resource
import signal
import sys
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

from howdah.errors import HowdahError
from howdah.unloaded import collect_rarely

MOST_PLANS = 8


def _limit(request: dict[str, Any]) -> None:
    """From now on so much processor time."""
    signal.setitimer(signal.ITIMER_PROF, request["limit_s"])


def _profile(request: dict[str, Any]) -> str:
    """Load a profile and make some of its plans, as ``howdah plan`` makes all of them. Each may take its time."""
    from howdah.plan.compile import compile_plan
    from howdah.profile import load

    cells = load(request["file"], request["overrides"], quick=request["quick"]).cells()
    for cell in cells[:: -(-len(cells) // MOST_PLANS)]:
        _limit(request)
        compile_plan(cell)
    return f"{len(cells)} runs"


def _suite(request: dict[str, Any]) -> str:
    from howdah.nightly.suite import read_suite

    return f"{len(read_suite(Path(request['file'])).series)} series"


def _machine_set(request: dict[str, Any]) -> str:
    from howdah.machines.inventory import MachineSetDirectory, inventory_of
    from howdah.machines.machine_set import load_machine_set

    file = Path(request["file"])
    machine_set = load_machine_set(file)
    inventory_of(machine_set, MachineSetDirectory(file.parent / "machines"), file)
    return f"{len(machine_set.hosts)} hosts"


def _command(request: dict[str, Any]) -> str:
    """A whole command. It says what it has to say and ends with a status; anything it raises is a fault."""
    from howdah.command.main import main

    said, complained = io.StringIO(), io.StringIO()
    status: int | str | None
    before = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGHUP)}
    try:
        with contextlib.redirect_stdout(said), contextlib.redirect_stderr(complained):
            try:
                status = main(request["arguments"])
            except SystemExit as leave:  # argparse
                status = leave.code if isinstance(leave.code, int) else 1
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    if status not in range(7):
        raise AssertionError(f"the command ended with {status!r}")
    text = complained.getvalue()
    if status and not text and not said.getvalue():
        raise AssertionError(f"the command ended with {status} and said nothing")
    if status in (1, 2, 3):
        raise HowdahError(text or said.getvalue(), where="command")
    return f"status {status}"


def _publish(request: dict[str, Any]) -> str:
    """The samples that ``howdah serve`` gives to Prometheus. It passes over what raises a HowdahError."""
    from howdah.publish.openmetrics import families, openmetrics
    from howdah.record.result import load_experiment

    runs = [run for run in load_experiment(Path(request["directory"])).runs if run.plan is not None]
    return f"{sum(len(piece) for piece in openmetrics(families(runs)))} characters"


def _verify(request: dict[str, Any]) -> str:
    """What ``howdah verify`` does of an experiment, without its processes."""
    from howdah.verify.experiment import runs_below, verify_experiment
    from howdah.verify.run import verify_run

    path = Path(request["directory"])
    reports = [verify_experiment(path), *(verify_run(run) for run in runs_below(path))]
    return ", ".join(report.state for report in reports)


def _ingest(request: dict[str, Any]) -> str:
    from howdah.ingest.run import ingest
    from howdah.record.directory import RunDirectory

    ingest(RunDirectory(Path(request["directory"])))
    return "tables"


def _thresholds(request: dict[str, Any]) -> str:
    from howdah.claim.score import read_thresholds

    return f"{len(read_thresholds(Path(request['file'])).scores)} scores"


def _hosts(request: dict[str, Any]) -> str:
    from howdah.cluster.connect import read_hosts

    return f"{len(read_hosts(Path(request['file'])))} hosts"


def _settings(request: dict[str, Any]) -> str:
    from howdah.cluster.connect import read_settings

    return f"{len(read_settings(Path(request['file'])))} settings"


def _stack(request: dict[str, Any]) -> str:
    from howdah.profile.stack import read_stack

    return read_stack(Path(request["file"])).name


def _baseline(request: dict[str, Any]) -> str:
    from howdah.nightly.sheet import Baseline

    file = Path(request["file"])
    return f"{Baseline(file.parent).read(file.stem)}"[:100]


def _qlog(request: dict[str, Any]) -> str:
    from howdah.ingest.qlog import read_qlog

    return f"{read_qlog(Path(request['file'])).problems}"[:1000]


def _explain(request: dict[str, Any]) -> str:
    """What ``howdah explain --json --page`` and ``howdah new --from`` make of a recording."""
    from howdah.explain.page import write_page
    from howdah.explain.read import read_files
    from howdah.explain.twin import twin_text
    from howdah.explain.words import shown_flow, text
    from howdah.foreign import escape_controls
    from howdah.profile import load

    file = Path(request["file"])
    read = read_files([file], 5)
    said = escape_controls(text(read.flows, read.problems, read.others, read.joined))
    if any(ord(each) < 32 and each != "\n" for each in said):
        raise AssertionError(f"a control character is printed: {said!r}")
    json.dumps([shown_flow(flow).plain() for flow in read.flows], allow_nan=False)
    write_page(read.flows, read.joined, read.problems, file.with_name("page.html"))
    twins = 0
    for flow in read.flows[:1]:
        with contextlib.suppress(HowdahError):
            written = file.with_name("twin.yaml")
            written.write_text(twin_text(flow, "twin"), encoding="utf-8")
            twins += 1
    if twins:
        load(written).cells()
    return f"{len(read.flows)} flows, {twins} twins"


_KINDS: dict[str, Callable[[dict[str, Any]], str]] = {
    "profile": _profile,
    "suite": _suite,
    "machines": _machine_set,
    "command": _command,
    "publish": _publish,
    "verify": _verify,
    "ingest": _ingest,
    "thresholds": _thresholds,
    "hosts": _hosts,
    "settings": _settings,
    "stack": _stack,
    "baseline": _baseline,
    "qlog": _qlog,
    "explain": _explain,
}


def _answer(request: dict[str, Any]) -> dict[str, Any]:
    try:
        return {"outcome": "accepted", "said": _KINDS[request["kind"]](request)}
    except HowdahError as error:
        return {"outcome": "refused", "said": error.what, "where": error.where}
    except Exception:  # noqa: BLE001 - that is what is looked for
        return {"outcome": "traceback", "said": traceback.format_exc()}


def main() -> int:
    collect_rarely()  # as each command does
    memory_bytes = int(sys.argv[1])
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    requests = os.fdopen(os.dup(0), encoding="utf-8")
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    faulthandler.register(signal.SIGPROF, all_threads=False, chain=True)
    resource.setrlimit(resource.RLIMIT_AS, (memory_bytes, memory_bytes))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    for line in requests:
        request = json.loads(line)
        begin = time.process_time()
        _limit(request)
        answer = _answer(request)
        signal.setitimer(signal.ITIMER_PROF, 0)
        answer["processor_s"] = round(time.process_time() - begin, 4)
        answers.write(json.dumps(answer) + "\n")
        answers.flush()
    return 0


if __name__ == "__main__":
    sys.exit(main())
