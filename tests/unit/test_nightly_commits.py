# SPDX-License-Identifier: Apache-2.0
"""Ranges of commits with stand-ins for compiler, engine and worker: a file of each commit says what its kernel does."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from howdah.bisect import trial
from howdah.build import uml_kernel as kernel_module
from howdah.build.cache import Cache
from howdah.build.kernel_source import KernelSource
from howdah.build.tools import build_tools
from howdah.build.uml_kernel import build_kernel
from howdah.command.main import main
from howdah.errors import HowdahError
from howdah.plan.plan import Plan
from howdah.record.provenance import analysis_sha256
from howdah.work import prepared
from tests.nightly_factory import PROFILE, write_suite
from tests.unit.kernel_tree import write_tree
from tests.unit.stand_in import stand_in

WORKER = """
    import json, sys, pathlib
    directory = pathlib.Path(sys.argv[1])
    plan = json.loads((directory / "plan.json").read_text())
    with (pathlib.Path(sys.argv[0]).parent / "made").open("a") as file:
        file.write(plan["run"] + "\\n")
    text = (pathlib.Path(plan["kernel"]) / "utilisation").read_text()
    if text == "unusable":
        print(json.dumps({"error": "utilisation cannot be read from " + plan["kernel"], "where": None, "hint": None}))
        sys.exit(1)
    value = float(text) + plan["repetition"] / 1000
    rows = [{"run": plan["run"], "flow": None, "metric": "utilisation", "value": value, "unit": "ratio"}]
    (directory / "metrics.json").write_text(json.dumps({"format": 1, "rows": rows, "cross_checks": []}))
    (directory / "verdict.json").write_text(json.dumps({"format": 1, "verdict": "pass", "checks": []}))
    record = json.loads((directory / "run.json").read_text())
    record.update(status="finished", analysis_sha256=ANALYSIS, wall_s=0.25)
    (directory / "run.json").write_text(json.dumps(record))
    print(json.dumps({"verdict": "pass"}))
"""
CLAIM = """\
claims:
  - id: used
    says: The path is used.
    value: {metric: utilisation, at: {algorithm: cubic}}
    expect: {at_least: 85 %}
"""
# Five runs a commit.
SUITE = "suite: test\ncells: [{profile: made.yaml, algorithms: [cubic], repetitions: 5, metrics: [utilisation]}]\n"
BROKEN, UNPREPARED, UNUSABLE = "broken", "unprepared", "unusable"


def _git(directory: Path, *arguments: str) -> str:
    environment = {**os.environ, "GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_SYSTEM": "/dev/null"}
    command = ["git", "-C", str(directory), "-c", "user.name=T", "-c", "user.email=t@example.org", *arguments]
    return subprocess.run(command, check=True, capture_output=True, text=True, env=environment).stdout.strip()


def _content(tree: Path) -> str:
    text = (tree / "utilisation").read_text()
    if text == BROKEN:
        raise HowdahError("it does not compile", where=f"{tree}/utilisation:1")
    return text


class _Engine:
    name, parallel = "uml", True

    def prepare(self, plans: Sequence[Plan], _progress: object) -> dict[str, Any]:
        text = _content(Path(plans[0].kernel))
        if text == UNPREPARED:
            raise HowdahError("the module does not build", where=f"{plans[0].kernel}/modules/one.c:7")
        return {"engine": "stand-in", "kernel": text}


class _History:
    """A repository with a commit for each value of utilisation, the first of which is the start."""

    def __init__(self, root: Path, values: list[str], capsys: pytest.CaptureFixture[str]) -> None:
        self.root, self.capsys = root, capsys
        self.suite = write_suite(root, SUITE)
        self.tree = root / "linux"
        self.tree.mkdir()
        _git(self.tree, "init", "--quiet", "--initial-branch=main")
        self.hashes = []
        for number, value in enumerate(values):
            (self.tree / "utilisation").write_text(value)
            (self.tree / "number").write_text(str(number))
            _git(self.tree, "add", "--all")
            _git(self.tree, "commit", "--quiet", "--message", f"tcp: change {number}")
            self.hashes.append(_git(self.tree, "rev-parse", "HEAD"))

    def run(self, *more: str) -> tuple[int, dict[str, Any]]:
        words = ["nightly", str(self.suite), "--tree", str(self.tree), "--runs", str(self.root / "runs"), "--json"]
        code = main([*words, *more])
        return code, json.loads(self.capsys.readouterr().out)

    def made(self) -> int:
        file = self.root / "made"
        return len(file.read_text().split()) if file.exists() else 0


@pytest.fixture
def history(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Any:
    worker = stand_in(tmp_path / "worker.py", WORKER.replace("ANALYSIS", repr(analysis_sha256())))
    monkeypatch.setenv("HOWDAH_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(prepared, "WORKER", worker)
    monkeypatch.setattr(prepared, "find_engine", lambda _name: _Engine())
    monkeypatch.setattr(
        trial,
        "build_kernel",
        lambda tree, *_rest: SimpleNamespace(image_sha256=_content(Path(tree)), interface="the same"),
    )
    return lambda *values: _History(tmp_path, list(values), capsys)


def _states(found: dict[str, Any]) -> list[tuple[str, str]]:
    return [(cell["kernel"].partition(" ")[2], cell["state"]) for cell in found["cells"]]


def test_each_commit_is_compared_with_the_one_before_it(history: Any) -> None:
    tree = history("0.9", "0.9", "0.8", "0.8001", "0.9")
    code, found = tree.run("--last", "4")
    assert code == 6
    assert _states(found) == [
        ("tcp: change 1", "equal"),
        ("tcp: change 2", "regression"),
        ("tcp: change 3", "unchanged"),
        ("tcp: change 4", "improvement"),
    ]
    assert tree.made() == 3 * 5, "the kernels of 0, 1 and 4 are one"
    span = found["range"]
    assert [each["state"] for each in span["commits"]] == ["good", "bad", "good", "good"]
    assert span["first_bad"] == tree.hashes[2]
    assert found["tests"]["primary"] == 3, "one correction for the whole range; the first commit has the same kernel"
    assert _git(tree.tree, "worktree", "list").count("\n") == 0, "the repository keeps no trace of it"
    assert _git(tree.tree, "status", "--porcelain") == ""


def test_the_start_may_be_what_all_are_compared_with(history: Any) -> None:
    tree = history("0.9", "0.8", "0.8", "0.9")
    code, found = tree.run("--range", f"{tree.hashes[0][:10]}..", "--against", "start")
    assert code == 6
    assert [state for _subject, state in _states(found)] == ["regression", "regression", "equal"]
    log = Path(found["night"], "bisect.log").read_text()
    assert log.splitlines()[-1] == f"git bisect bad {tree.hashes[1]}"
    replay = tree.root / "replay"
    replay.write_text(log)
    said = _git(tree.tree, "bisect", "replay", str(replay))
    assert f"{tree.hashes[1]} is the first bad commit" in said
    _git(tree.tree, "bisect", "reset")


def test_a_commit_that_does_not_build_is_told_and_the_next_is_compared_across_it(history: Any) -> None:
    tree = history("0.9", BROKEN, "0.8")
    code, found = tree.run("--last", "2")
    assert code == 6
    assert [state for _subject, state in _states(found)] == ["regression", "regression"]
    first, last = found["cells"]
    assert first["reasons"] == ["cannot be run: it does not build: utilisation:1: it does not compile"]
    assert "utilisation: 0.902 to 0.802" in last["reasons"][0]
    assert [each["state"] for each in found["range"]["commits"]] == ["skip", "bad"]
    assert f"{tree.hashes[0][:12]}..{tree.hashes[2][:12]}" in last["reproduce"]


def test_what_went_wrong_names_files_of_the_tree_and_none_of_the_cache(history: Any) -> None:
    """A commit that does not build, one on which nothing can be prepared, and one whose runs fail."""
    tree = history("0.9", BROKEN, UNPREPARED, UNUSABLE)
    texts = [tree.root / name for name in ("ktap", "mail")]
    code, found = tree.run("--last", "3", *(f"--{file.name}={file}" for file in texts))
    assert code == 6
    night = Path(found["night"])
    texts += [night / name for name in ("night.json", "junit.xml", "index.html")]
    for file in texts:
        text = file.read_text()
        assert str(tree.root / "cache") not in text, file.name
        assert "it does not build: utilisation:1: it does not compile" in text
        assert "modules/one.c:7: the module does not build" in text
        assert "utilisation cannot be read from the tree" in text
    assert [each["state"] for each in found["range"]["commits"]] == ["skip", "skip", "bad"]


def test_the_reproducing_command_compares_that_commit_alone(history: Any) -> None:
    tree = history("0.9", "0.9001", "0.8")
    _code, found = tree.run("--last", "2")
    (failing,) = [cell for cell in found["cells"] if cell["fails"]]
    words = shlex.split(failing["reproduce"])
    assert words[0] == "howdah"
    assert main([*words[1:], "--json"]) == 6
    again = json.loads(tree.capsys.readouterr().out)
    (cell,) = again["cells"]
    alone, among = (each["regressions"][0].partition(", p = ")[0] for each in (cell, failing))
    assert alone == among == "utilisation: 0.9021 to 0.802, -0.1001"


def test_a_range_that_is_none_is_refused_before_anything_is_built(history: Any) -> None:
    tree = history("0.9", "0.8")
    for words, what in (
        (("--range", "HEAD"), "is not a range"),
        (("--range", "HEAD..HEAD"), "there is no commit in"),
        (("--range", "nothing..HEAD"), "there is no commit 'nothing'"),
        (("--range", "HEAD~1...HEAD"), "is not a range"),
        (("--last", "7"), "there is no commit"),
    ):
        code, found = tree.run(*words)
        assert code != 0
        assert what in found["error"]["what"]
    code, found = tree.run()
    assert "--tree needs a range" in found["error"]["what"]
    assert tree.made() == 0


def test_a_long_range_needs_more_repetitions(history: Any) -> None:
    tree = history(*(str(0.9 + number / 1e6) for number in range(22)))
    code, found = tree.run("--last", "21")
    assert code == 2
    assert "21 primary comparisons" in found["error"]["what"]
    assert tree.made() == 0
    assert tree.run("--last", "1")[0] == 0


def test_the_commits_can_be_listed(history: Any) -> None:
    tree = history("0.9", "0.8", "0.7")
    assert main(["nightly", str(tree.suite), "--tree", str(tree.tree), "--last", "2", "--list"]) == 0
    listed = tree.capsys.readouterr().out.splitlines()
    assert [line.partition(" ")[2] for line in listed] == ["tcp: change 0", "tcp: change 1", "tcp: change 2"]


def test_claims_are_cells_and_their_verdicts_are_compared(history: Any) -> None:
    """With a baseline of a kernel, and over a range."""
    tree = history("0.9", "0.88", "0.8", "0.9")
    profile = write_suite(tree.root, profile=PROFILE + "repetitions: 3\n" + CLAIM).parent / "made.yaml"
    base = ("--baseline", str(tree.root / "base"), "--runs", str(tree.root / "runs"), "--json")
    words = ["nightly", "--claims", str(profile), "--kernel", str(tree.tree), *base]
    assert main(words) == 7
    assert main([*words, "--accept"]) == 0
    tree.capsys.readouterr()
    assert main(words) == 0
    equal = json.loads(tree.capsys.readouterr().out)
    assert [(cell["id"].rpartition("/")[2], cell["state"]) for cell in equal["cells"]] == [("used", "equal")]
    assert equal["cells"][0]["wall_s"] == 0.75, "what the three runs of the claim took"
    (tree.tree / "utilisation").write_text("0.8")
    assert main(words) == 6
    red = json.loads(tree.capsys.readouterr().out)
    assert red["cells"][0]["regressions"] == [
        "claim: pass (90.1 (90 … 90.2) %, n = 3) to fail (80.1 (80 … 80.2) %, n = 3)",
    ]
    assert shlex.split(red["cells"][0]["reproduce"])[:4] == ["howdah", "nightly", "--claims", str(profile)]
    _git(tree.tree, "checkout", "--quiet", "utilisation")

    write_suite(tree.root, "suite: test\ncells: [{profile: made.yaml, claims: [used]}]\n", PROFILE + CLAIM)
    code, found = tree.run("--last", "3")
    assert code == 6
    assert [cell["state"] for cell in found["cells"]] == ["unchanged", "regression", "improvement"]
    assert found["range"]["first_bad"] == tree.hashes[2]


@pytest.mark.parametrize(
    ("item", "what"),
    [
        ("{profile: made.yaml, claims: [other]}", "makes no claim 'other'"),
        ("{profile: made.yaml, claims: all, metrics: [utilisation]}", "claims or measures"),
    ],
)
def test_wrong_claims_of_a_suite_are_refused_with_their_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], item: str, what: str
) -> None:
    suite = write_suite(tmp_path, f"suite: test\ncells:\n  - {item}\n", PROFILE + CLAIM)
    assert main(["nightly", str(suite), "--list", "--json"]) == 2
    error = json.loads(capsys.readouterr().out)["error"]
    assert what in error["what"]
    assert error["where"].startswith(f"{suite}:3")


def test_a_profile_without_claims_has_none_to_compare(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_suite(tmp_path)
    assert main(["nightly", "--claims", str(tmp_path / "made.yaml"), "--json"]) == 2
    assert "makes no claim" in json.loads(capsys.readouterr().out)["error"]["what"]


def test_an_entry_of_the_atlas_stands_for_its_profiles(capsys: pytest.CaptureFixture[str]) -> None:
    listed = []
    for name in ("HyStart_fig1", "atlas/hystart-fig1"):
        assert main(["nightly", "--claims", name, "--quick", "--list"]) == 0
        listed.append(capsys.readouterr().out)
    assert "claims-hystart-fig1-debian-6.12/both-flows-dark-for-30-s" in listed[1]
    assert set(listed[1].splitlines()) <= set(listed[0].splitlines())


def test_a_commit_compiles_what_it_changes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """With the real build tree and make, on the outline of a kernel tree."""
    cache = Cache(tmp_path / "cache")
    tools = build_tools(Cache(tmp_path / "tools"))
    monkeypatch.setattr(kernel_module, "build_tools", lambda _cache: tools)
    monkeypatch.setattr(kernel_module, "_SPACE_BYTES", 0)
    monkeypatch.setenv("HOWDAH_CACHE", str(cache.root))
    worker = stand_in(tmp_path / "worker.py", WORKER.replace("ANALYSIS", repr(analysis_sha256())))
    monkeypatch.setattr(prepared, "WORKER", worker)
    built: list[list[str]] = []
    asked: list[str] = []
    build = kernel_module._build

    def count(source: KernelSource, key: str, *rest: Any) -> None:
        asked.append(key)
        build(source, key, *rest)

    monkeypatch.setattr(kernel_module, "_build", count)

    class Engine(_Engine):
        def prepare(self, plans: Sequence[Plan], _progress: object) -> dict[str, Any]:
            kernel = build_kernel(plans[0].kernel, lambda *_: None, cache)
            lines = cache.log("kernel", kernel.key).read_text().splitlines()
            built.append(sorted(line.split("/")[-1] for line in lines if line.startswith("  CC")))
            return {"image": kernel.image_sha256}

    monkeypatch.setattr(prepared, "find_engine", lambda _name: Engine())
    history = _History(tmp_path, [], capsys)
    write_tree(history.tree)
    for name, text in (("utilisation", "0.9"), ("net/ipv4/cubic.c", "cubic two\n"), ("net/ipv4/cubic.c", "BROKEN\n")):
        (history.tree / name).write_text(text)
        _git(history.tree, "add", "--all")
        _git(history.tree, "commit", "--quiet", "--message", f"{name}: {text.strip()}")
    code, found = history.run("--last", "2")
    assert code == 6
    assert _states(found) == [
        ("net/ipv4/cubic.c: cubic two", "equal"),
        ("net/ipv4/cubic.c: BROKEN", "regression"),
    ]
    what = "net/ipv4/cubic.c:3: the kernel does not compile: it is broken"
    assert found["cells"][1]["reasons"] == [f"cannot be run: it does not build: {what}"]
    assert len(asked) == len(set(asked)) == 3, "each commit is compiled once, also the one that does not compile"
    assert built == [["cubic.o", "tcp.o"], ["cubic.o"]]
