# SPDX-License-Identifier: Apache-2.0
"""What installed packages add: how it is found, and what is said of a package that does not work.

tests/guest/test_extension.py has a whole package, installed from its wheel.
"""

from __future__ import annotations

import dataclasses
import importlib
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from howdah import extension, registered
from howdah.command.main import main
from howdah.engine import registry
from howdah.errors import HowdahError
from howdah.extension import Extension, extensions
from howdah.hooks import GROUPS
from howdah.ingest.run import ingest
from howdah.judge.run import judge
from howdah.measure.run import measure
from howdah.metric import known_metrics
from howdah.place import DOCS, OWN_PYTHON
from howdah.record import provenance
from howdah.record.directory import RunDirectory, read_json
from howdah.trait import _TRAITS, engines
from howdah.verify.run import verify_run
from tests.unit.recorded_run import make_recorded_experiment, make_recorded_run, recorded_compiler, recorded_plan

Install = Callable[..., None]
_MODULE = """
from howdah.engine.host import HostEngine
from howdah.hooks import CommandEntry, EngineEntry, MeasureEntry
from howdah.record.verdict import Check
from howdah.metric import Metric
from howdah.trait import Traits

def compute(directory, data):
    return {each.flow.id: float(len(each)) for each in data.traces} | {None: "of flows alone"}

def broken(*arguments):
    raise ZeroDivisionError("by nothing")

def check(directory, data):
    return [Check("lucky", "engine", False, "it is not")]

def write(run, directory):
    file = directory / f"{run.directory.name}.txt"
    file.write_text(str(run.metrics.num_rows) if hasattr(run.metrics, "num_rows") else "text")
    return [file]

ACKS = MeasureEntry(Metric("acks_seen", header="ACKs", meaning="records"), compute)
LATE = MeasureEntry(Metric("acks_seen", header="ACKs"), broken)
ENGINE = EngineEntry(Traits(outlives_run=True), HostEngine)
COMMAND = CommandEntry("say hello", lambda commands: commands.add_parser("hello").set_defaults(execute=lambda _: 0))
BROKEN = CommandEntry("break", broken)
"""


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Install]:
    """Install a package of one module, NAME, whose entry points are given as ``commands="hello = NAME:COMMAND"``."""
    place = tmp_path / "site-packages"
    place.mkdir()
    monkeypatch.setattr(extension, "folders", lambda: [str(place)])
    monkeypatch.syspath_prepend(str(place))
    monkeypatch.setattr("howdah.trait._TRAITS", dict(_TRAITS))

    def put(name: str, module: str = _MODULE, **groups: str) -> None:
        about = place / f"{name}-2.1.dist-info"
        about.mkdir(parents=True)
        (place / f"{name}.py").write_text(module, encoding="utf-8")
        text = "[console_scripts]\nother = other:main\n\n"
        text += "".join(f"[howdah.{group}]\n{entry}\n\n" for group, entry in groups.items())
        (about / "entry_points.txt").write_text(text, encoding="utf-8")
        importlib.invalidate_caches()
        _forget()

    yield put
    for name in [name for name, module in sys.modules.items() if str(place) in str(getattr(module, "__file__", ""))]:
        del sys.modules[name]
    monkeypatch.undo()
    _forget()


def _forget() -> None:
    for cached in (
        extension._all,
        registered.registered,
        registered.declare_engines,
        known_metrics,
        provenance.analysis_sha256,
    ):
        cached.cache_clear()


def test_an_entry_point_is_found_with_its_package(install: Install) -> None:
    install("gauge", measures="# a remark\nacks_seen = gauge:ACKS [extra]")
    assert extensions("measures") == {"acks_seen": Extension("measures", "acks_seen", "gauge:ACKS", "gauge", "2.1")}
    assert "gauge" not in sys.modules, "nothing is imported before it is used"


def test_only_folders_of_installed_packages_are_searched(tmp_path: Path) -> None:
    """Neither the working directory nor PYTHONPATH adds code to howdah."""
    about = tmp_path / "gauge-1.dist-info"
    about.mkdir()
    (about / "entry_points.txt").write_text("[howdah.commands]\nhello = gauge:COMMAND\n", encoding="utf-8")
    code = "from howdah.extension import extensions; print('hello' in extensions('commands'))"
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, cwd=tmp_path, env={"PYTHONPATH": str(tmp_path)}, capture_output=True, text=True)
    assert done.stdout == "False\n", done.stderr


def test_the_start_of_howdah_asks_for_no_package() -> None:
    code = (
        "import sys; from howdah.command.main import main\n"
        "try: main(['--version'])\n"
        "except SystemExit: print('howdah.extension' in sys.modules, 'importlib.metadata' in sys.modules)"
    )
    done = subprocess.run([*OWN_PYTHON, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[1] == "False False"


def test_two_packages_cannot_have_one_name(install: Install) -> None:
    install("gauge", measures="acks_seen = gauge:ACKS")
    install("meter", measures="acks_seen = meter:ACKS")
    with pytest.raises(HowdahError) as raised:
        extensions("measures")
    assert "the package meter adds 'acks_seen' to howdah.measures" in raised.value.what
    assert "gauge" in raised.value.what
    assert raised.value.hint is not None
    assert "pip uninstall meter" in raised.value.hint


@pytest.mark.parametrize(
    ("group", "name"), [("commands", "run"), ("measures", "exit_time_s"), ("collectors", "qdisc"), ("engines", "uml")]
)
def test_a_name_of_howdah_cannot_be_taken(install: Install, group: str, name: str) -> None:
    install("gauge", **{group: f"{name} = gauge:COMMAND"})
    ask: dict[str, Callable[[], object]] = {
        "commands": lambda: main(["--help"]),
        "measures": known_metrics,
        "collectors": registered.registered,
        "engines": registered.declare_engines,
    }
    if group == "commands":
        assert main(["--help"]) == 1
        return
    with pytest.raises(HowdahError, match="the package gauge adds"):
        ask[group]()


def test_a_command_is_listed_and_run(install: Install, capsys: pytest.CaptureFixture[str]) -> None:
    install("gauge", commands="hello = gauge:COMMAND")
    assert main(["hello"]) == 0
    with pytest.raises(SystemExit):
        main(["--help"])
    assert "say hello" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("value", "module", "said"),
    [
        ("gauge:BROKEN", _MODULE, "ZeroDivisionError: by nothing"),
        ("gauge:ABSENT", _MODULE, "AttributeError: "),
        ("gauge:COMMAND", "import nothing_such\n", "ModuleNotFoundError: No module named 'nothing_such'"),
    ],
)
def test_a_package_that_does_not_work_is_named(
    install: Install, capsys: pytest.CaptureFixture[str], value: str, module: str, said: str
) -> None:
    install("gauge", module, commands=f"hello = {value}")
    assert main(["hello"]) == 1
    told = capsys.readouterr().err
    assert told.startswith("howdah: the package gauge 2.1 does not work: its entry point 'hello' in howdah.commands")
    assert said in told
    assert "pip uninstall gauge" in told
    assert "Traceback" not in told


def test_a_command_of_howdah_runs_beside_a_package_that_does_not_work(
    install: Install, capsys: pytest.CaptureFixture[str]
) -> None:
    install("gauge", "import nothing_such\n", commands="hello = gauge:COMMAND")
    assert main(["schema"]) == 0
    assert "gauge" not in capsys.readouterr().err


def _analysed(tmp_path: Path) -> RunDirectory:
    run = make_recorded_run(tmp_path, recorded_plan())
    ingest(run)
    return run


def test_a_measure_has_rows(install: Install, tmp_path: Path) -> None:
    run = _analysed(tmp_path / "run")
    measure(run, recorded_plan())
    before = read_json(run.metrics)["rows"]
    install("gauge", measures="acks_seen = gauge:ACKS")
    measure(run, recorded_plan())
    rows = read_json(run.metrics)["rows"]
    added = [row for row in rows if row["metric"] == "acks_seen"]
    assert [row for row in rows if row not in added] == before
    assert {row["flow"]: row["value"] for row in added if row["flow"] is not None}[1] > 100
    assert [(row["value"], row["why"]) for row in added if row["flow"] is None] == [(None, "of flows alone")]


def test_a_measure_that_breaks_names_its_package(install: Install, tmp_path: Path) -> None:
    run = _analysed(tmp_path / "run")
    install("gauge", measures="acks_seen = gauge:LATE")
    with pytest.raises(HowdahError, match=r"the package gauge 2\.1 does not work.*by nothing"):
        measure(run, recorded_plan())


def test_a_check_that_fails_makes_a_run_invalid(install: Install, tmp_path: Path) -> None:
    run = _analysed(tmp_path / "run")
    install("gauge", checks="lucky = gauge:check")
    verdict = judge(run, recorded_plan())
    assert verdict.verdict == "invalid"
    assert verdict.checks[-1].name == "lucky"


def test_an_engine_is_known_and_made(install: Install) -> None:
    install("gauge", engines="bench = gauge:ENGINE")
    registered.declare_engines()
    assert engines()[-1] == "bench"
    assert registry.engine("bench").name == "host"


def test_what_analyses_is_part_of_the_key_of_results(install: Install) -> None:
    before = provenance.analysis_sha256()
    install("gauge", commands="hello = gauge:COMMAND")
    assert provenance.analysis_sha256() == before, "a command computes no results"
    install("meter", measures="acks_seen = meter:ACKS")
    first = provenance.analysis_sha256()
    assert first != before
    source = Path(extension.folders()[0]) / "meter.py"
    source.write_text(_MODULE.replace("records", "other records"), encoding="utf-8")
    provenance.analysis_sha256.cache_clear()
    assert provenance.analysis_sha256() not in (before, first)


def test_the_guests_file_of_a_collector_is_part_of_the_key_of_a_run(install: Install) -> None:
    plan = recorded_plan()
    text, identity = plan.to_json(), {"engine": "uml"}
    before = provenance.run_key(text, identity)
    install("gauge", collectors="gauge = gauge")
    assert provenance.run_key(text, identity) == before, "the plan does not ask for it"
    asked = dataclasses.replace(plan, collect=plan.collect.at(gauge=10_000)).to_json()
    first = provenance.run_key(asked, identity)
    (Path(extension.folders()[0]) / "gauge.py").write_text(_MODULE + "\n", encoding="utf-8")
    assert provenance.run_key(asked, identity) != first


def test_verify_names_a_package_that_took_no_part_in_the_run(install: Install, tmp_path: Path) -> None:
    with recorded_compiler():
        run = make_recorded_experiment(tmp_path / "recorded")
    assert not verify_run(run).gaps
    install("gauge", measures="acks_seen = gauge:ACKS")
    report = verify_run(run)
    assert [gap for gap in report.gaps if gap.startswith("the package gauge 2.1 adds 'acks_seen' (measures) here")]


def test_the_page_has_every_group() -> None:
    page = (DOCS / "extending.md").read_text(encoding="utf-8")
    assert all(f"`howdah.{group}`" in page for group in GROUPS)
