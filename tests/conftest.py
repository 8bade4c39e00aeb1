# SPDX-License-Identifier: Apache-2.0
"""Fixtures that every kind of test shares, the order of the files, and what is said at the end."""

from __future__ import annotations

import gc
import json
import os
import sys
import time
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings

from tests.compiled import import_tests
from tests.durations import ROOT, Record, longest_first, read_table, write_record

# How long an example takes says how busy the machine is.
settings.register_profile("unhurried", deadline=None)
settings.load_profile("unhurried")

_LONGEST_SHOWN = 12
_STARTED = pytest.StashKey[float]()
_PROCESSOR = "processor_s"
_processor_at = 0.0  # of this process and its children, when the last phase of a test ended
_collections_s: list[float] = []  # of each worker, in the process that hands out the tests


@pytest.fixture(autouse=True)
def no_engine_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """A command keeps the engine that it prepared for the process: a test must not get that of another one."""
    if (registry := sys.modules.get("howdah.engine.registry")) is not None:
        monkeypatch.setattr(registry, "_prepared", {})


@pytest.fixture(autouse=True, scope="session")
def json_has_its_shape() -> Iterator[None]:
    """Whatever test lets a command print JSON: the object is of the shape that it names (docs/json.schema.json)."""
    from howdah.command import answer

    with pytest.MonkeyPatch.context() as patch:
        plain = answer._write

        def checked(line: str) -> None:
            from tests.json_shape import check_shape

            check_shape(json.loads(line))
            plain(line)

        patch.setattr(answer, "_write", checked)
        yield


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--record-durations", type=Path, metavar="FILE", help="keep how long each test file took")


def pytest_configure(config: pytest.Config) -> None:
    # A worker holds the 7000 tests and all that they import for as long as it lives. To look through that for garbage
    # took a fifth of the time of a collection of tests and a fourteenth of the tests' own.
    gc.set_threshold(20_000, 20, 100)
    config.stash[_STARTED] = time.monotonic()
    # A worker of xdist has the terminal's width in $COLUMNS. What is printed must not depend on how the tests start.
    os.environ.pop("COLUMNS", None)


@pytest.hookimpl(tryfirst=True)
def pytest_collection(session: pytest.Session) -> None:
    worker: dict[str, Any] | None = getattr(session.config, "workerinput", None)
    directories = [Path(session.config.invocation_params.dir, argument) for argument in session.config.args]
    if worker is not None and all(each.is_dir() and each.is_relative_to(ROOT) for each in directories):
        import_tests(directories, int(worker["workerid"].removeprefix("gw")), worker["workercount"])


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Several workers begin with the longest files, so that none of them works on one alone at the end.

    xdist hands out whole files in this order (--dist loadfile --no-loadscope-reorder).
    """
    if not hasattr(config, "workerinput"):
        return
    files = [item.nodeid.partition("::")[0] for item in items]
    place = {file: number for number, file in enumerate(longest_first(files, read_table()))}
    items.sort(key=lambda item: place[item.nodeid.partition("::")[0]])


def _processor_s() -> float:
    """User and system time of this process and of the children it waited for."""
    return sum(os.times()[:4])


def pytest_collection_finish(session: pytest.Session) -> None:
    global _processor_at
    gc.freeze()
    _processor_at = _processor_s()
    if hasattr(session.config, "workeroutput"):
        session.config.workeroutput[_PROCESSOR] = _processor_at


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    _collections_s.append(getattr(node, "workeroutput", {}).get(_PROCESSOR, 0.0))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Every phase of a test carries the processor time since the phase before."""
    global _processor_at
    report = yield
    before, _processor_at = _processor_at, _processor_s()
    report.user_properties.append((_PROCESSOR, _processor_at - before))
    return report


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """What took longest, and skips with their reasons, where the person who reads only the end sees them."""
    files, processor = _seconds_by_file(terminalreporter)
    kept = config.getoption("record_durations")
    if kept is not None:
        workers = int(config.getoption("numprocesses", None) or 1)
        record = Record(time.monotonic() - config.stash[_STARTED], workers, files, processor, sum(_collections_s))
        write_record(record, kept)
        used = sum(processor.values()) + record.collection_s
        terminalreporter.write_sep(
            "-", f"the longest files of {record.total_s:.0f} s in all, {used:.0f} s of a processor"
        )
        for file, seconds in sorted(files.items(), key=lambda item: -item[1])[:_LONGEST_SHOWN]:
            terminalreporter.write_line(f"{seconds:7.1f} s  {processor.get(file, 0.0):7.1f} s  {file}")
    skipped = terminalreporter.stats.get("skipped", [])
    if not skipped:
        return
    reasons: dict[str, int] = {}
    for report in skipped:
        text = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
        reasons[text] = reasons.get(text, 0) + 1
    terminalreporter.write_sep("-", f"{len(skipped)} skipped")
    for reason, count in sorted(reasons.items()):
        terminalreporter.write_line(f"{count} x {reason}")


def _seconds_by_file(terminalreporter: pytest.TerminalReporter) -> tuple[dict[str, float], dict[str, float]]:
    """Set-up, test and end of every test that was reported: seconds on the wall, and of a processor."""
    found: dict[str, float] = {}
    processor: dict[str, float] = {}
    for reports in terminalreporter.stats.values():
        for report in reports:
            if isinstance(report, pytest.TestReport):
                file = report.nodeid.partition("::")[0]
                found[file] = found.get(file, 0.0) + report.duration
                used_s = dict(report.user_properties).get(_PROCESSOR, 0.0)
                processor[file] = processor.get(file, 0.0) + float(str(used_s))
    return found, processor


@pytest.fixture(scope="module")
def remembered_guests() -> Iterator[None]:
    """Guests of commands that the tests of a module call are remembered (tests/guest/remembering.py)."""
    from howdah.work import prepared
    from tests.guest.remembering import WORKER

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(prepared, "WORKER", WORKER)
        yield


@pytest.fixture
def python() -> str:
    """The interpreter of the tests' own environment."""
    return sys.executable
