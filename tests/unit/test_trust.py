# SPDX-License-Identifier: Apache-2.0
"""A run that is made again may have this machine do what its user made or allowed, and nothing else."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import os
from pathlib import Path
from typing import Any

import pytest

from howdah.build.supervise import sandbox_key
from howdah.engine.share import bring_programs, stage_programs
from howdah.engine.uml import needs
from howdah.errors import HowdahError, RecordError, RunFailedError
from howdah.plan.named import dependencies_of
from howdah.plan.plan import Plan
from howdah.plan.traffic import ProgramEnd, ProgramFile, Programs
from howdah.record.directory import RunDirectory, read_json, write_json
from howdah.record.reading import read_plan_file
from howdah.record.run import RunRecord, read_record
from howdah.work import again
from howdah.work.again import make_again
from howdah.work.experiment import ExperimentDirectory, PlannedRun
from howdah.work.trust import UntrustedError, check_trust, signed
from tests.durations import ROOT
from tests.unit.plan_factory import make_plan
from tests.unit.traffic_factory import make_stack

_END = ProgramEnd(["true"], {}, [], own=False, signal="TERM")
PROGRAM = Programs("client", "tcp", [1], None, "client", None, _END, _END)


@pytest.fixture(autouse=True)
def own_places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOWDAH_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))


def _module(tmp_path: Path) -> Path:
    module = tmp_path / "module"
    module.mkdir()
    (module / "Kbuild").write_text(f"obj-m := x.o\n$(shell touch {tmp_path / 'ran'})\n")
    (module / "x.c").write_text("int x;\n")
    return module


def _flow(**fields: Any) -> Plan:
    plan = make_plan()
    return dataclasses.replace(plan, flows=[dataclasses.replace(plan.flows[0], **fields)])


def _with_file(name: str, path: str, sha256: str) -> Plan:
    end = dataclasses.replace(_END, files=[ProgramFile(path, name, sha256)])
    return _flow(program=dataclasses.replace(PROGRAM, client=end))


_RECORD = RunRecord(status="running")


def test_a_plan_of_howdahs_own_names_nothing() -> None:
    assert dependencies_of(make_plan()) == []
    assert signed(_RECORD, make_plan(), make_plan().to_json()).made_here is None


_SMALL = ROOT / "tests" / "extension"
_NAMING = {
    "kernel": dataclasses.replace(make_plan(), kernel="linux"),
    "kernel of a part": dataclasses.replace(make_plan(), machine_kernels={"receiver": "./linux"}),
    "module": dataclasses.replace(make_plan(), modules=["m"]),
    "engine host": dataclasses.replace(make_plan(), engine="host"),
    "engine machines": dataclasses.replace(make_plan(), engine="machines"),
    "engine ns2": dataclasses.replace(make_plan(), engine="ns2"),
    "engine of another": dataclasses.replace(make_plan(), engine="mine"),
    "stack": _flow(receiver_stack=dataclasses.replace(make_stack("s"), file=f"{_SMALL}/s.yaml")),
    "stack beside those of howdah": _flow(
        sender_stack=dataclasses.replace(make_stack("s"), file=f"stacks/../{_SMALL.relative_to(ROOT)}/s.yaml")
    ),
    "program": _flow(program=PROGRAM),
}


def _confines(problem: str | None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(needs, "why_unconfined", lambda: problem)


@pytest.mark.parametrize("what", _NAMING)
def test_everything_that_would_run_is_named_and_asked_for(what: str, monkeypatch: pytest.MonkeyPatch) -> None:
    _confines("files: Function not implemented", monkeypatch)
    plan = _NAMING[what]
    (named,) = dependencies_of(plan)
    assert str(named).startswith(what.split()[0])
    text = plan.to_json()
    with pytest.raises(UntrustedError):
        check_trust(plan, text, _RECORD, trust=False)
    with pytest.raises(UntrustedError):
        check_trust(plan, text, _RECORD.replaced(made_here="0" * 32), trust=False)
    check_trust(plan, text, signed(_RECORD, plan, text), trust=False)  # the user's own


def test_a_program_in_a_guest_that_is_confined_is_not_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    plan = _NAMING["program"]
    _confines(None, monkeypatch)
    check_trust(plan, plan.to_json(), _RECORD, trust=False)
    both = dataclasses.replace(plan, modules=["m"])
    with pytest.raises(UntrustedError) as caught:
        check_trust(both, both.to_json(), _RECORD, trust=False)
    assert "module m" in str(caught.value)
    assert "program" not in str(caught.value)


@pytest.mark.parametrize("engine", ["vm", "host"])
def test_a_program_elsewhere_than_in_such_a_guest_is_asked_for(engine: str, monkeypatch: pytest.MonkeyPatch) -> None:
    _confines(None, monkeypatch)
    plan = dataclasses.replace(_NAMING["program"], engine=engine)
    with pytest.raises(UntrustedError, match=f"not confined here .the engine {engine} does not."):
        check_trust(plan, plan.to_json(), _RECORD, trust=False)


@pytest.mark.parametrize("lacking", ["namespaces", "files", "truncation", "network"])
def test_what_a_machine_lacks_has_its_programs_asked_for(lacking: str, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = dict.fromkeys(("namespaces", "files", "truncation", "network"))
    plan = _NAMING["program"]
    monkeypatch.setattr(needs, "_try", lambda: whole)
    check_trust(plan, plan.to_json(), _RECORD, trust=False)
    for trial in ({**whole, lacking: "no"}, "it did not start", {}):
        monkeypatch.setattr(needs, "_try", lambda trial=trial: trial)
        with pytest.raises(UntrustedError, match=r"program of .*, which is not confined here"):
            check_trust(plan, plan.to_json(), _RECORD, trust=False)


def test_what_is_allowed_is_remembered_by_its_content(tmp_path: Path) -> None:
    module = _module(tmp_path)
    plan = dataclasses.replace(make_plan(), modules=[str(module)])
    with pytest.raises(UntrustedError, match="runs the sender's code") as refused:
        check_trust(plan, plan.to_json(), _RECORD, trust=False)
    assert str(module) in str(refused.value)
    check_trust(plan, plan.to_json(), _RECORD, trust=True)
    check_trust(plan, plan.to_json(), _RECORD, trust=False)
    other = dataclasses.replace(plan, seed=99)
    check_trust(other, other.to_json(), _RECORD, trust=False)
    (module / "x.c").write_text("int y;\n")
    with pytest.raises(UntrustedError):
        check_trust(plan, plan.to_json(), _RECORD, trust=False)


def test_a_plan_with_another_is_asked_for_again(tmp_path: Path) -> None:
    plan = dataclasses.replace(make_plan(), modules=[str(_module(tmp_path))])
    own = signed(_RECORD, plan, plan.to_json())
    changed = dataclasses.replace(plan, seed=99)
    with pytest.raises(UntrustedError):
        check_trust(changed, changed.to_json(), own, trust=False)


def test_what_is_not_here_is_not_allowed_by_saying_so() -> None:
    plan = dataclasses.replace(make_plan(), modules=["/nowhere/module"])
    with pytest.raises(UntrustedError, match="not on this machine"):
        check_trust(plan, plan.to_json(), _RECORD, trust=True)


def test_nothing_is_built_before_the_answer(tmp_path: Path) -> None:
    plan = dataclasses.replace(make_plan(), modules=[str(_module(tmp_path))])
    run = RunDirectory(tmp_path / "run")
    run.path.mkdir()
    run.plan.write_text(plan.to_json())
    write_json(run.provenance, {"format": 1, "status": "finished", "key": "k", "data_removed": False})
    write_json(run.metrics, {"format": 1, "rows": []})
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises(HowdahError):
        make_again(run, tmp_path / "again", lambda *_: None, lambda *_: None, up_to_date=False)
    assert [entry for entry in sorted(tmp_path.rglob("*")) if entry not in before and "cache" not in entry.parts] == []


def test_a_run_that_is_made_here_says_so(tmp_path: Path) -> None:
    plan = dataclasses.replace(make_plan(), modules=[str(_module(tmp_path))])
    for made, marked in ((plan, True), (make_plan(), False)):
        begun = ExperimentDirectory(tmp_path).begin(PlannedRun(made, "k" * 64))
        record = read_record(begun)
        assert (record.made_here is not None) is marked
        check_trust(made, begun.plan.read_text(), record, trust=False)


_EVIL = hashlib.sha256(b"evil").hexdigest()


@pytest.mark.parametrize(
    ("plan", "said"),
    [
        (_with_file("/tmp/victim", "/etc/passwd", _EVIL), "is not the name of a program's file"),
        (_with_file("x" * 300, "/etc/passwd", _EVIL), "is not the name of a program's file"),
        (_with_file("a", "/etc/passwd", ""), "has no digest"),
        # An argument of user-mode Linux, which would start a program here.
        (dataclasses.replace(make_plan(), kernel_parameters={"xterm": "/bin/sh,-c,-e"}), "is not a parameter of"),
        (dataclasses.replace(make_plan(), run="../../x"), "is not the name of a run"),
    ],
)
def test_a_plan_whose_names_could_be_others_is_not_read(plan: Plan, said: str, tmp_path: Path) -> None:
    """``test_plan_named.py`` has every such name."""
    file = tmp_path / "plan.json"
    file.write_text(plan.to_json())
    with pytest.raises(RecordError, match=said):
        read_plan_file(file)


def test_programs_come_from_the_run_by_their_digests(tmp_path: Path) -> None:
    first, again = (RunDirectory(tmp_path / name) for name in ("first", "again"))
    there = first.share / "program" / "1-client" / "a"
    there.parent.mkdir(parents=True)
    there.write_bytes(b"evil")
    plan = _with_file("a", str(tmp_path / "gone"), _EVIL)
    assert bring_programs(first, again, plan) == []
    stage_programs(again, plan)
    assert (again.share / "program" / "1-client" / "a").read_bytes() == b"evil"


def test_a_link_or_another_content_is_not_brought(tmp_path: Path) -> None:
    first, again = (RunDirectory(tmp_path / name) for name in ("first", "again"))
    there = first.share / "program" / "1-client" / "a"
    there.parent.mkdir(parents=True)
    (tmp_path / "secret").write_bytes(b"evil")
    there.symlink_to(tmp_path / "secret")
    plan = _with_file("a", str(tmp_path / "secret"), "0" * 64)
    assert bring_programs(first, again, _with_file("a", "", _EVIL)) == ["a"]
    assert bring_programs(first, again, plan) == ["a"]
    with pytest.raises(RunFailedError, match="has changed since"):
        stage_programs(again, plan)
    assert not again.path.exists(), "not a byte is written"


def test_the_code_of_a_plan_is_that_of_its_text() -> None:
    plan = _NAMING["module"]
    marks = {signed(_RECORD, plan, text).made_here for text in (plan.to_json(), json.dumps({}))}
    assert len(marks) == 2


def test_what_was_allowed_is_still_a_strangers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _confines(None, monkeypatch)
    plan = dataclasses.replace(make_plan(), modules=[str(_module(tmp_path))])
    text = plan.to_json()
    assert check_trust(plan, text, _RECORD, trust=True) is True
    assert check_trust(plan, text, _RECORD, trust=False) is True, "it is built in a sandbox each time"
    assert check_trust(plan, text, signed(_RECORD, plan, text), trust=False) is False
    assert check_trust(make_plan(), make_plan().to_json(), _RECORD, trust=False) is False


def _stack(file: Path, directory: str) -> Path:
    """The YAML of a stack whose sources are in that directory, relative to it."""
    sources = file.parent / directory
    sources.mkdir(parents=True, exist_ok=True)
    file.parent.mkdir(parents=True, exist_ok=True)
    (sources / "main.c").write_text("int main(void) { return 0; }\n")
    file.write_text(f"summary: a test\ndirectory: {directory}\nbuild: [[make]]\nprogram: s\n")
    return file


def test_of_a_stack_its_yaml_and_sources_are_allowed_and_nothing_beside_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What lies beside the YAML may be a whole disk, and the sources may lie elsewhere."""
    _confines(None, monkeypatch)
    (tmp_path / "downloads").mkdir()
    os.mkfifo(tmp_path / "downloads" / "pipe")
    file = _stack(tmp_path / "downloads" / "s.yaml", "../sources")
    plan = _flow(receiver_stack=dataclasses.replace(make_stack("s"), file=str(file)))
    text = plan.to_json()
    assert check_trust(plan, text, _RECORD, trust=True) is True
    (file.parent / "beside").write_text("of somebody else")
    (tmp_path / "sources" / "build").mkdir()
    (tmp_path / "sources" / "build" / "s").write_text("what is not read")
    assert check_trust(plan, text, _RECORD, trust=False) is True
    changes: list[tuple[Path, str]] = [
        (tmp_path / "sources" / "main.c", "int main(void) { return 1; }\n"),
        (tmp_path / "sources" / "more.c", "\n"),
        (file, file.read_text() + "hint: none\n"),
    ]
    for changed, content in changes:
        changed.write_text(content)
        with pytest.raises(UntrustedError, match="this plan was not made here"):
            check_trust(plan, text, _RECORD, trust=False)
        assert check_trust(plan, text, _RECORD, trust=True) is True
    file.write_text("root:x:0:0\n")
    with pytest.raises(UntrustedError, match="this plan names code that is not on this machine"):
        check_trust(plan, text, _RECORD, trust=True)


@pytest.mark.parametrize("what", ["module", "kernel", "stack"])
def test_what_no_sandbox_can_be_had_for_is_asked_for_each_time(
    what: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _confines("files: Function not implemented", monkeypatch)
    module = _module(tmp_path)
    stack = _stack(tmp_path / "s" / "s.yaml", ".")
    plan = {
        "module": dataclasses.replace(make_plan(), modules=[str(module)]),
        "kernel": dataclasses.replace(make_plan(), kernel=str(module / "x.c")),
        "stack": _flow(receiver_stack=dataclasses.replace(make_stack("s"), file=str(stack))),
    }[what]
    for _attempt in range(2):
        check_trust(plan, plan.to_json(), _RECORD, trust=True)
        with pytest.raises(UntrustedError, match=r"not confined here .files: Function not implemented"):
            check_trust(plan, plan.to_json(), _RECORD, trust=False)


@pytest.mark.parametrize("of_a_stranger", [True, False])
def test_a_strangers_run_is_made_again_in_a_sandbox_and_does_not_become_ones_own(
    of_a_stranger: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _confines(None, monkeypatch)
    plan = dataclasses.replace(make_plan(), modules=[str(_module(tmp_path))])
    text = plan.to_json()
    run = RunDirectory(tmp_path / "run")
    run.path.mkdir()
    run.plan.write_text(text)
    made = {} if of_a_stranger else {"made_here": signed(_RECORD, plan, text).made_here}
    write_json(run.provenance, {"format": 1, "status": "finished", "key": "k", "data_removed": False, **made})
    write_json(run.metrics, {"format": 1, "rows": []})
    seen: list[tuple[bool, bool]] = []

    class _Engine:
        def prepare(self, _plans: list[Plan], _progress: Any) -> None:
            (partial,) = tmp_path.glob(".partial-again-*")
            seen.append((bool(sandbox_key()), "made_here" in read_json(partial / "run.json")))
            raise HowdahError("enough")

    monkeypatch.setattr(again, "find_engine", lambda _name: _Engine())
    monkeypatch.setattr(again, "outdated", lambda _run: False)
    with pytest.raises(HowdahError, match="enough"):
        make_again(run, tmp_path / "again", lambda *_: None, lambda *_: None, up_to_date=False, trust=True)
    assert seen == [(of_a_stranger, not of_a_stranger)]
    assert sandbox_key() == []
