# SPDX-License-Identifier: Apache-2.0
"""A revision on trial with stand-ins for compiler and worker: what makes it good, bad, or one to skip."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from howdah.bisect import trial
from howdah.bisect.trial import BAD, GOOD, SKIP, KernelTrial, chosen_claims
from howdah.build.cache import Cache
from howdah.errors import EngineUnavailableError, HowdahError
from howdah.explain.read import read_files
from howdah.explain.twin import twin_text
from howdah.profile import Profile, load
from howdah.record.provenance import analysis_sha256
from howdah.work import prepared
from tests.claim_factory import write_profile
from tests.explain.damage import pcap
from tests.explain.made import Path as Drawn
from tests.explain.made import transfer
from tests.unit.stand_in import stand_in

CLAIMS = """\
- id: small
  says: CUBIC leaves with a small window.
  value: {metric: exit_cwnd_packets, flow: 1, at: {algorithm: cubic}}
  expect: {at_most: 100}
  control: deep
  because: it is deep
"""
CONTROL = "controls:\n  deep: {what: a deep buffer, set: {path.buffer: 4 bdp}}\n"
WORKER = """
    import json, sys, pathlib
    directory = pathlib.Path(sys.argv[1])
    plan = json.loads((directory / "plan.json").read_text())
    tree = pathlib.Path(plan["kernel"])
    (tree / "runs").open("a").write(plan["run"] + "\\n")
    if (tree / "dies").exists():
        sys.exit(1)
    record = json.loads((directory / "run.json").read_text())
    measured = json.loads((tree / "measured").read_text())
    same = {"run": plan["run"], "flow": 1, "unit": ""}
    rows = [{**same, "metric": name, "value": value} for name, value in measured.items()]
    (directory / "metrics.json").write_text(json.dumps({"format": 1, "rows": rows, "cross_checks": []}))
    verdict = "invalid" if (tree / "unsound").exists() else "pass"
    (directory / "verdict.json").write_text(json.dumps({"format": 1, "verdict": verdict, "checks": []}))
    (directory / "run.json").write_text(json.dumps({**record, "status": "finished", "analysis_sha256": ANALYSIS}))
    print(json.dumps({"verdict": verdict}))
"""


class _Engine:
    parallel = True
    error: HowdahError | None = None
    image = "first"

    def prepare(self, _plans: Sequence[Any], _progress: object) -> dict[str, Any]:
        if self.error is not None:
            raise self.error
        return {"image": self.image}


class _Bench:
    """A tree whose files say what its kernel does, and a trial of it."""

    def __init__(self, root: Path, monkeypatch: pytest.MonkeyPatch, profile: Profile, claims: list[str]) -> None:
        self.tree = root / "tree"
        self.tree.mkdir()
        self.engine = _Engine()
        worker = stand_in(root / "worker.py", WORKER.replace("ANALYSIS", repr(analysis_sha256())))
        monkeypatch.setattr(prepared, "WORKER", worker)
        monkeypatch.setattr(prepared, "find_engine", lambda _name: self.engine)
        self.build: Callable[[], None] = lambda: None
        monkeypatch.setattr(trial, "build_kernel", lambda *_arguments, **_more: self.build())
        cache = Cache(root / "cache")
        cache.root.mkdir()
        self.trial = KernelTrial(
            *(profile, claims, root / "runs", 2),
            lambda _what, _done, _total: None,
            lambda _active, _outcomes, _rest: None,
            cache,
        )

    def window(self, packets: int, image: str) -> None:
        self.measures(image, exit_cwnd_packets=packets)

    def measures(self, image: str, **measured: float | str) -> None:
        (self.tree / "measured").write_text(json.dumps(measured))
        self.engine.image = image

    def runs(self) -> list[str]:
        return (self.tree / "runs").read_text().split()


@pytest.fixture
def bench(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> _Bench:
    return _Bench(tmp_path, monkeypatch, load(write_profile(tmp_path, CLAIMS, extra=CONTROL)), ["small"])


def test_the_claim_decides_and_controls_are_not_run(bench: _Bench) -> None:
    bench.window(40, "first")
    good = bench.trial(bench.tree)
    assert (good.verdict, good.why) == (GOOD, "small: 40 packets, deterministic, n = 3")
    assert len(bench.runs()) == 6
    bench.window(400, "second")
    bad = bench.trial(bench.tree)
    assert (bad.verdict, bad.why) == (BAD, "small: 400 packets, deterministic, n = 3")


def test_an_image_that_was_tried_is_not_run_again(bench: _Bench) -> None:
    bench.window(40, "first")
    bench.trial(bench.tree)
    bench.window(400, "second")
    bench.trial(bench.tree)
    bench.window(0, "first")  # a commit that changes nothing: what was measured of the image holds
    assert bench.trial(bench.tree).verdict == GOOD
    assert len(bench.runs()) == 12


def test_a_twin_s_claims_are_the_question(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What the recorded flow did: it left by a loss after about 240 ms, and carried the path's rate or less."""
    (tmp_path / "x.pcap").write_bytes(pcap(transfer(Drawn(buffer_bytes=100_000))))
    (flow,) = read_files([tmp_path / "x.pcap"], 1).flows
    (tmp_path / "twin.yaml").write_text(twin_text(flow, "twin"))
    profile = load(tmp_path / "twin.yaml")
    claims = chosen_claims(profile, None)
    assert claims == ["exit-time", "exit-cause", "exit-window", "goodput"]
    bench = _Bench(tmp_path, monkeypatch, profile, claims)
    assert flow.exit is not None
    recorded: dict[str, float | str] = {
        "exit_time_s": flow.exit.time_s,
        "exit_cause": "loss",
        "exit_cwnd_packets": flow.exit.packets.value or 0.0,
        "goodput_bits_per_second": flow.goodput_bits_per_second,
    }
    bench.measures("first", **recorded)
    assert bench.trial(bench.tree).verdict == GOOD
    others: dict[str, dict[str, float | str]] = {
        "exit-time": {"exit_time_s": flow.exit.time_s + 0.2},
        "exit-cause": {"exit_cause": "delay"},
        "exit-window": {"exit_cwnd_packets": 1.5 * (flow.exit.packets.value or 0.0)},
        "goodput": {"goodput_bits_per_second": 0.8 * flow.goodput_bits_per_second},
    }
    for number, (claim, other) in enumerate(others.items()):
        bench.measures(f"other-{number}", **{**recorded, **other})
        answer = bench.trial(bench.tree)
        assert answer.verdict == BAD and answer.why.startswith(claim), answer


def test_what_does_not_build_is_skipped_with_its_line(bench: _Bench) -> None:
    def build() -> None:
        raise HowdahError("'x' undeclared", where=f"{bench.tree}/net/ipv4/tcp_cubic.c:57")

    bench.build = build
    answer = bench.trial(bench.tree)
    assert (answer.verdict, answer.why) == (SKIP, "it does not build: net/ipv4/tcp_cubic.c:57: 'x' undeclared")


def test_runs_that_fail_or_do_not_count_are_skipped(bench: _Bench) -> None:
    bench.window(40, "first")
    (bench.tree / "unsound").touch()
    invalid = bench.trial(bench.tree)
    assert invalid.verdict == SKIP
    assert "small is invalid" in invalid.why
    (bench.tree / "dies").touch()
    bench.window(40, "second")
    failed = bench.trial(bench.tree)
    assert failed.verdict == SKIP
    assert failed.why.startswith("6 of 6 runs failed: ")
    bench.engine.error = HowdahError("a module does not build")
    assert bench.trial(bench.tree).why == "nothing can run on it: a module does not build"


def test_what_says_nothing_of_the_revision_ends_the_bisection(bench: _Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    bench.window(40, "first")
    bench.engine.error = EngineUnavailableError("no namespaces")
    with pytest.raises(EngineUnavailableError):
        bench.trial(bench.tree)

    def build() -> None:
        raise HowdahError("the disk is full")

    bench.build = build
    monkeypatch.setattr(shutil, "disk_usage", lambda _path: SimpleNamespace(free=1000))
    with pytest.raises(HowdahError, match="the disk is full"):
        bench.trial(bench.tree)
