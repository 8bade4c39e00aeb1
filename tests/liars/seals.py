# SPDX-License-Identifier: Apache-2.0
"""Lies of files that somebody changed after the run, over a real recording."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from howdah.claim.claims import judge_claims
from howdah.errors import HowdahError
from howdah.record.digest import forget_digests, seal
from howdah.record.directory import RunDirectory, read_json, write_json
from howdah.record.result import load_run
from howdah.record.run import ModuleOrigin, read_record
from howdah.verify.experiment import verify_experiment
from howdah.verify.run import verify_run
from howdah.verify.signature import check_signature, sign
from howdah.work.again import differences
from howdah.work.stage import read_plan, refresh
from tests.liars.bench import Bench
from tests.liars.liar import Catch, ToldLiar
from tests.unit.recorded_run import make_recorded_experiment, recorded_compiler

Told = Callable[[Bench, Path], list[Catch]]


@dataclass(frozen=True)
class Recorded:
    """An experiment in ``path`` with one run, as it was recorded."""

    path: Path
    run: RunDirectory

    @property
    def utilisation(self) -> Any:
        return next(row["value"] for row in read_json(self.run.metrics)["rows"] if row["metric"] == "utilisation")

    def seal(self, **changes: Any) -> None:
        """Digests of all files as they are now, as somebody writes them who knows of them."""
        seal(self.run, read_record(self.run).replaced(**changes))


Doctor = Callable[[Recorded], object]


def _recorded(path: Path) -> Recorded:
    forget_digests()
    return Recorded(path, make_recorded_experiment(path))


def _nothing(_each: Recorded) -> None:
    """An honest person."""


def edited(name: str, change: Callable[[Any], object]) -> Doctor:
    def doctor(each: Recorded) -> None:
        file = each.path / name if name == "claims.json" else each.run.path / name
        value = read_json(file)
        change(value)
        write_json(file, value)

    return doctor


def _utilisation(value: float) -> Doctor:
    def change(metrics: Any) -> None:
        next(row for row in metrics["rows"] if row["metric"] == "utilisation")["value"] = value

    return edited("metrics.json", change)


def _verdict(verdict: Any) -> None:
    """The run is invalid, for nobody calibrated the path of this recording."""
    verdict["verdict"] = "pass"
    for check in verdict["checks"]:
        check["ok"] = True


_PASSES = edited("verdict.json", _verdict)


def _half_of_tcp_info(each: Recorded) -> None:
    file = each.run.raw / "tcp_info.bin"
    file.write_bytes(file.read_bytes()[: file.stat().st_size // 2])


def _a_guest_without_modules(each: Recorded) -> None:
    file = each.run.raw / "agent.json"
    write_json(file, {**read_json(file), "modules": {}})


def _everything_from_raw_on(each: Recorded) -> None:
    _half_of_tcp_info(each)
    each.seal()
    refresh(each.run, force=True)
    judge_claims(each.path)
    assert verify_run(each.run).findings == [], "nothing in the run contradicts it"


# Digests


def _read(doctor: Doctor) -> Told:
    """Read the results, then compute them again from raw/."""

    def told(_bench: Bench, path: Path) -> list[Catch]:
        each = _recorded(path)
        doctor(each)
        found = []
        for act in (lambda: load_run(each.run.path, "recorded"), lambda: refresh(each.run, force=True)):
            try:
                act()
            except HowdahError as error:
                found.append(Catch("error", type(error).__name__, str(error)))
        return found

    return told


# howdah verify


def _verified(doctor: Doctor, **changes: Any) -> Told:
    """What a verification finds although the digests were made anew, as if they had always been these."""

    def told(_bench: Bench, path: Path) -> list[Catch]:
        each = _recorded(path)
        doctor(each)
        each.seal(**changes)
        with recorded_compiler():
            reports = [verify_run(each.run), verify_experiment(each.path)]
        return [Catch("state", each.state, str(found)) for each in reports for found in (*each.findings, *each.gaps)]

    return told


def _signed(doctor: Doctor, name: str = "recorded") -> Told:
    """What a signature finds in files that were changed after it, or that lie elsewhere now."""

    def told(_bench: Bench, path: Path) -> list[Catch]:
        if shutil.which("ssh-keygen") is None:
            pytest.skip("needs ssh-keygen (openssh-client)")
        path.mkdir()
        each = _recorded(path / "recorded")
        key = path / "key"
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", key], check=True)
        sign(each.path, key)
        doctor(each)
        there = each.path.rename(each.path.with_name(name))
        return [Catch("state", "not what was signed", what) for what in check_signature(there).differing]

    return told


# Results of another analysis


def _computed_again(doctor: Doctor, **changes: Any) -> Told:
    """What is computed again before anybody reads it."""

    def told(_bench: Bench, path: Path) -> list[Catch]:
        each = _recorded(path)
        true = each.utilisation
        doctor(each)
        each.seal(**changes)
        if not refresh(each.run):
            return []
        is_true = "what raw/ gives" if each.utilisation == true else "not what raw/ gives"
        return [Catch("state", "computed again", f"utilisation is {is_true}")]

    return told


def _rerun(doctor: Doctor) -> Told:
    """The run against what comes out when it is made again, which is a copy of it."""

    def told(_bench: Bench, path: Path) -> list[Catch]:
        each = _recorded(path)
        again = RunDirectory(path.with_name("again"))
        shutil.copytree(each.run.path, again.path)
        doctor(each)
        each.seal()
        found = differences(each.run, again, read_plan(each.run))
        return [Catch("state", "difference", str(difference)) for difference in found]

    return told


_READ, _VERIFIED, _SIGNED = "files as they were recorded", "results as they were computed", "a run as it was signed"
_CURRENT, _SAME = "results of today's analysis", "the same results when the run is made again"

HONEST_SEALS: dict[str, Told] = {
    _READ: _read(_nothing),
    _VERIFIED: _verified(_nothing),
    _SIGNED: _signed(_nothing),
    _CURRENT: _computed_again(_nothing),
    _SAME: _rerun(_nothing),
}


def _mismatch(name: str, lie: str, words: str, doctor: Doctor) -> ToldLiar:
    return ToldLiar(name, "file", lie, Catch("error", "MismatchError", words), _READ, _read(doctor))


def differs(name: str, lie: str, words: str, doctor: Doctor, **changes: Any) -> ToldLiar:
    return ToldLiar(name, "file", lie, Catch("state", "differs", words), _VERIFIED, _verified(doctor, **changes))


def _other_when_made_again(name: str, lie: str, words: str, doctor: Doctor) -> ToldLiar:
    return ToldLiar(name, "file", lie, Catch("state", "difference", words), _SAME, _rerun(doctor))


SEALS = [
    _mismatch(
        "measure-changed",
        "Somebody changed a measure in metrics.json.",
        "metrics.json was changed after it was recorded",
        _utilisation(0.999),
    ),
    _mismatch(
        "verdict-changed",
        "Somebody changed the verdict to pass.",
        "verdict.json was changed after it was recorded",
        _PASSES,
    ),
    _mismatch(
        "plan-changed",
        "Somebody changed the path's RTT in plan.json.",
        "plan.json was changed after it was recorded",
        edited("plan.json", lambda plan: plan["path"].update(rtt_us=41_000)),
    ),
    _mismatch(
        "raw-file-missing",
        "A raw file is gone.",
        "raw/tcp_info.bin is missing",
        lambda each: (each.run.raw / "tcp_info.bin").unlink(),
    ),
    _mismatch(
        "raw-file-added",
        "Somebody put a calibration beside the raw files.",
        "raw/calibration-before.json was added after the files were recorded",
        lambda each: write_json(each.run.raw / "calibration-before.json", {}),
    ),
    differs(
        "measure-and-digest-changed",
        "Somebody changed a measure and its digest.",
        "metrics.json: utilisation: 0.999 against",
        _utilisation(0.999),
    ),
    differs(
        "verdict-and-digest-changed",
        "Somebody changed the verdict and its digest.",
        "verdict.json: verdict: 'pass' against 'invalid'",
        _PASSES,
    ),
    differs(
        "raw-file-and-digest-changed",
        "Somebody cut a raw file and changed its digest.",
        "tables/tcp_info.parquet: not what raw/ gives",
        _half_of_tcp_info,
    ),
    differs(
        "plan-and-digest-changed",
        "Somebody changed the plan and its digest.",
        "plan.json: it is not the plan that run.json names",
        edited("plan.json", lambda plan: plan["path"].update(rtt_us=41_000)),
    ),
    differs(
        "claim-written-by-hand",
        "Somebody wrote another verdict of a claim into claims.json.",
        "claims.json: used is",
        edited("claims.json", lambda found: found["claims"][0].update(verdict="beyond doubt")),
    ),
    differs(
        "data-said-to-be-removed",
        "run.json says that the data were removed, so that nobody computes the results again.",
        "run.json: it says that the data were removed, and raw/ is there",
        _utilisation(0.999),
        data_removed=True,
    ),
    differs(
        "module-that-the-guest-never-saw",
        "run.json names a module that the guest did not have.",
        "run.json: module ss_jump, which the guest did not have",
        _a_guest_without_modules,
        modules={"ss_jump": ModuleOrigin(srcversion="F" * 23)},
    ),
    differs(
        "measures-of-a-run-that-failed",
        "A run failed, and has measures.",
        "metrics.json: it has measures, and the run failed",
        _nothing,
        status="failed",
        error="the guest died",
    ),
    differs(
        "verdict-of-a-run-that-failed",
        "A run failed, and its verdict does not say so.",
        "verdict.json: it is not that of the failure in run.json",
        _nothing,
        status="failed",
        error="the guest died",
    ),
    ToldLiar(
        "run-that-never-ended",
        "file",
        "run.json says that the run still goes on, so that nobody computes its results.",
        Catch("state", "unchecked", "the run has not ended"),
        _VERIFIED,
        _verified(_utilisation(0.999), status="running"),
    ),
    differs(
        "raw-said-to-be-left-out",
        "run.json says that raw files were left out, so that nobody computes the tables, and they are there.",
        "raw/tcp_info.bin was left out, it says, and is there",
        _half_of_tcp_info,
        raw_left_out=["raw/tcp_info.bin"],
    ),
    differs(
        "something-said-to-be-left-out",
        "run.json says that a raw file was left out that no run has, so that nobody computes the tables.",
        "metrics.json: utilisation: 0.999 against",
        _utilisation(0.999),
        raw_left_out=["raw/nothing.bin"],
    ),
    differs(
        "plan-said-to-be-left-out",
        "run.json says that a file was left out that no pack leaves out.",
        "run.json: verdict.json is none of what a pack leaves out",
        _nothing,
        raw_left_out=["verdict.json"],
    ),
    differs(
        "traits-of-another-engine",
        "The plan says that its engine's clock is a real one, so that wider tolerances hold.",
        "plan.json: its traits are not those of the engine uml",
        edited("plan.json", lambda plan: plan["traits"].update(virtual_clock=False)),
    ),
    differs(
        "engine-that-nobody-has",
        "The plan names an engine that nobody has, so that nothing is known of its runs.",
        "no engine is called 'mine'",
        edited("plan.json", lambda plan: plan.update(engine="mine")),
    ),
    differs(
        "guest's-plan-taken-away",
        "What the guest was given is gone, with its digest.",
        "share/plan.json: it is missing",
        lambda each: (each.run.share / "plan.json").unlink(),
    ),
    ToldLiar(
        "signed-under-another-name",
        "file",
        "An experiment that somebody signed lies under the name of another one.",
        Catch("state", "not what was signed", "it was signed as 'recorded'"),
        _SIGNED,
        _signed(_nothing, "other"),
    ),
    ToldLiar(
        "changed-from-raw-to-report",
        "file",
        "Somebody changed raw/ and computed everything else from it.",
        Catch("state", "not what was signed", "recorded/raw/tcp_info.bin was changed since it was signed"),
        _SIGNED,
        _signed(_everything_from_raw_on),
    ),
    ToldLiar(
        "measure-of-another-analysis",
        "file",
        "A measure is wrong, and run.json says that another release computed it.",
        Catch("state", "computed again", "utilisation is what raw/ gives"),
        _CURRENT,
        _computed_again(_utilisation(99.0), analysis_sha256="older"),
    ),
    _other_when_made_again(
        "measure-that-the-tables-do-not-give",
        "A measure is wrong and all tables are right, when the run is made again.",
        "metrics.json utilisation: 0.999 against",
        _utilisation(0.999),
    ),
    _other_when_made_again(
        "verdict-that-the-tables-do-not-give",
        "The verdict is wrong and all tables are right, when the run is made again.",
        "verdict.json verdict: 'pass' against 'invalid'",
        _PASSES,
    ),
]
