# SPDX-License-Identifier: Apache-2.0
"""Bisection over real git repositories; in the place of builds and runs is a file that says the answer."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest

from howdah.bisect.session import BAD, GOOD, SKIP, Answer, Question, Session, answer_of, chosen_claims
from howdah.bisect.worktree import find_repository
from howdah.build.cache import Cache
from howdah.command.main import main
from howdah.errors import HowdahError
from howdah.profile import Profile, load
from howdah.record.claims import ClaimRow
from howdah.work.experiment import ExperimentDirectory
from tests.claim_factory import write_profile
from tests.claim_rows import claim_row


def _git(directory: Path, *arguments: str, given: str = "") -> str:
    environment = {**os.environ, "GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_SYSTEM": "/dev/null"}
    options = ["-c", "user.name=T", "-c", "user.email=t@example.org"]
    return subprocess.run(
        ["git", "-C", str(directory), *options, *arguments],
        input=given,
        check=True,
        capture_output=True,
        text=True,
        env=environment,
    ).stdout.strip()


class History:
    """A repository whose commits say in a file what a trial of them finds."""

    def __init__(self, root: Path, answers: list[str]) -> None:
        self.path = root / "tree"
        self.path.mkdir()
        _git(self.path, "init", "--quiet", "--initial-branch=main")
        commits = (
            f"commit refs/heads/main\ncommitter T <t@example.org> {number} +0000\ndata 0\n"
            f"M 644 inline answer\ndata {len(answer)}\n{answer}\nM 644 inline number\ndata 1\n{number}\n"
            for number, answer in enumerate(answers)
        )
        _git(self.path, "fast-import", "--quiet", given="".join(commits))
        _git(self.path, "reset", "--quiet", "--hard")
        self.commits = _git(self.path, "rev-list", "--topo-order", "--reverse", "main").split()
        self.session = self.again()

    def again(self) -> Session:
        """Another command on the same repository."""
        return Session(find_repository(self.path), Cache(self.path.parent / "cache"))

    def question(self, good: int = 0, bad: int = -1, text: str = "") -> Question:
        return Question(self.commits[good], self.commits[bad], "/profile.yaml", text, ["claim"], [])


def _trial(tree: Path) -> Answer:
    return Answer((tree / "answer").read_text(), "as its file says")


def _quiet(_line: str) -> None:
    pass


@pytest.mark.parametrize("first_bad", range(1, 9))
def test_the_first_bad_commit_is_found_wherever_it_is(tmp_path: Path, first_bad: int) -> None:
    history = History(tmp_path, [GOOD] * first_bad + [BAD] * (9 - first_bad))
    history.session.open(history.question(), _quiet)
    assert history.session.find(history.question(), _trial, _quiet).first_bad == history.commits[first_bad]
    assert len(history.session.steps) <= 2 + 3  # both ends, and log2 of the eight between


def test_a_revision_that_cannot_be_told_is_skipped(tmp_path: Path) -> None:
    history = History(tmp_path, [GOOD, GOOD, GOOD, GOOD, SKIP, BAD, BAD, BAD])
    history.session.open(history.question(), _quiet)
    found = history.session.find(history.question(), _trial, _quiet)
    assert found.first_bad is None
    assert set(found.candidates) == {history.commits[4], history.commits[5]}
    assert f"{history.commits[4][:12]} skip: as its file says" in history.session.log()


def test_skipped_revisions_elsewhere_do_not_hide_the_first_bad_one(tmp_path: Path) -> None:
    history = History(tmp_path, [GOOD, GOOD, SKIP, GOOD, GOOD, BAD, BAD, SKIP, BAD])
    history.session.open(history.question(), _quiet)
    assert history.session.find(history.question(), _trial, _quiet).first_bad == history.commits[5]


@pytest.mark.parametrize(("answers", "wrong"), [([BAD, BAD, BAD], " was named good, but it is bad"),
                                                ([GOOD, GOOD, GOOD], " was named bad, but it is good"),
                                                ([SKIP, GOOD, BAD], " was named good, but it is skipped")])  # fmt: skip
def test_ends_that_are_not_what_they_are_said_to_be(tmp_path: Path, answers: list[str], wrong: str) -> None:
    history = History(tmp_path, answers)
    history.session.open(history.question(), _quiet)
    with pytest.raises(HowdahError, match=wrong):
        history.session.find(history.question(), _trial, _quiet)
    history.again().open(history.question(1, 2), _quiet)  # another question may be asked now


@pytest.mark.parametrize("before", range(5))
def test_an_interrupted_bisection_goes_on_without_trying_anything_again(tmp_path: Path, before: int) -> None:
    history = History(tmp_path, [GOOD] * 5 + [BAD] * 4)
    tried: list[str] = []

    def trial(tree: Path) -> Answer:
        if len(tried) == before and not resumed:
            raise KeyboardInterrupt
        tried.append((tree / "number").read_text())
        return _trial(tree)

    resumed = False
    history.session.open(history.question(), _quiet)
    with pytest.raises(KeyboardInterrupt):
        history.session.find(history.question(), trial, _quiet)
    resumed = True
    session = history.again()
    session.open(history.question(), _quiet)
    assert session.find(history.question(), trial, _quiet).first_bad == history.commits[5]
    assert len(tried) == len(set(tried)) == len(session.steps)


def test_an_interrupted_bisection_is_not_taken_for_another_one(tmp_path: Path) -> None:
    history = History(tmp_path, [GOOD, GOOD, BAD])
    history.session.open(history.question(), _quiet)
    with pytest.raises(HowdahError, match="another bisection of this repository was interrupted"):
        history.again().open(history.question(good=1), _quiet)
    with pytest.raises(HowdahError, match="--abandon"):
        history.again().open(history.question(text="edited since"), _quiet)


def test_the_users_work_tree_and_bisection_are_left_alone(tmp_path: Path) -> None:
    history = History(tmp_path, [GOOD] * 3 + [BAD] * 3)
    (history.path / "answer").write_text("not committed")
    (history.path / "beside").write_text("not known to git")
    _git(history.path, "bisect", "start", history.commits[4], history.commits[1])
    before = [_git(history.path, *words.split()) for words in ("status --porcelain", "rev-parse HEAD", "bisect log")]
    hook = history.path / ".git" / "hooks" / "post-checkout"
    hook.write_text("#!/bin/sh\ntouch ran-a-hook\n")
    hook.chmod(0o755)
    history.session.open(history.question(), _quiet)
    assert history.session.find(history.question(), _trial, _quiet).first_bad == history.commits[3]
    assert not (history.session.worktree.path / "ran-a-hook").exists()
    history.session.close()
    after = [_git(history.path, *words.split()) for words in ("status --porcelain", "rev-parse HEAD", "bisect log")]
    assert after == before
    assert (history.path / "answer").read_text() == "not committed"
    assert not history.session.worktree.path.exists()
    assert len(_git(history.path, "worktree", "list").splitlines()) == 1


def test_two_commands_do_not_bisect_one_repository(tmp_path: Path) -> None:
    history = History(tmp_path, [GOOD, BAD])
    with history.session.locked(), pytest.raises(HowdahError, match="another howdah is bisecting"):
        history.again().locked().__enter__()


def test_the_log_is_one_that_git_replays(tmp_path: Path) -> None:
    history = History(tmp_path, [GOOD] * 3 + [BAD] * 3)
    history.session.open(history.question(), _quiet)
    history.session.find(history.question(), _trial, _quiet)
    log = tmp_path / "bisect.log"
    log.write_text(history.session.log())
    _git(history.path, "bisect", "replay", str(log))
    assert f"first bad commit: [{history.commits[3]}]" in _git(history.path, "bisect", "log")


def _claim(verdict: str) -> ClaimRow:
    return claim_row(verdict=verdict, why="so", measured={"text": "7 packets"})


@pytest.mark.parametrize(
    ("verdicts", "expected"),
    [
        (["pass"], GOOD),
        (["pass", "pass"], GOOD),
        (["fail"], BAD),
        (["differs"], BAD),
        (["pass", "fail"], BAD),
        (["invalid", "fail"], BAD),
        (["invalid"], SKIP),
        (["unsupported"], SKIP),
        (["pass", "invalid"], SKIP),
    ],
)
def test_what_claims_say_of_a_revision(verdicts: list[str], expected: str) -> None:
    answer = answer_of([_claim(verdict) for verdict in verdicts])
    assert answer.verdict == expected
    assert answer.why


CLAIMS = """\
- id: one
  says: one
  value: {metric: exit_cwnd_packets, at: {algorithm: cubic}}
  expect: {at_least: 5}
- id: two
  says: two
  value: {metric: exit_cwnd_packets, at: {algorithm: reno}}
  expect: {at_least: 5}
"""


def test_the_claims_that_decide(tmp_path: Path) -> None:
    profile = load(write_profile(tmp_path, CLAIMS))
    assert chosen_claims(profile, None) == ["one", "two"]
    assert chosen_claims(profile, "two") == ["two"]
    with pytest.raises(HowdahError, match="no claim 'three'") as caught:
        chosen_claims(profile, "three")
    assert "one, two" in str(caught.value)
    with pytest.raises(HowdahError, match="no claim to bisect on"):
        chosen_claims(load(write_profile(tmp_path, "")), None)


def test_the_command_says_what_is_wrong(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOWDAH_CACHE", str(tmp_path / "cache"))
    history = History(tmp_path, [GOOD, BAD])
    plain = tmp_path / "plain"
    plain.mkdir()
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path))
    assert main(["bisect", "--tree", str(plain), "--good", "a", "--bad", "b", "--profile", "quick"]) == 1
    assert "not a git repository" in capsys.readouterr().err
    profile = write_profile(tmp_path, CLAIMS)
    tree = ["bisect", "--tree", str(history.path), "--profile", str(profile), "--json"]
    assert main([*tree, "--good", "HEAD~1"]) == 2
    assert "--bad is missing" in json.loads(capsys.readouterr().out)["error"]["what"]
    assert main([*tree, "--good", "nothing", "--bad", "HEAD"]) == 2
    assert "no commit 'nothing'" in json.loads(capsys.readouterr().out)["error"]["what"]
    assert main([*tree, "--abandon"]) == 0


class _FileTrial:
    """A trial by the file of a commit, in the place of KernelTrial."""

    def __init__(self, _profile: Profile, _claims: list[str], runs: Path, *_rest: object) -> None:
        self.experiment = ExperimentDirectory(runs / "experiment")
        self.experiment.path.mkdir(parents=True)

    def __call__(self, tree: Path) -> Answer:
        return _trial(tree)


def test_the_answer_is_there_before_the_work_tree_is_taken_away(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A kernel's work tree and objects took almost three minutes to remove, on a machine with other work."""
    monkeypatch.setenv("HOWDAH_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr("howdah.command.bisect.KernelTrial", _FileTrial)
    history = History(tmp_path, [GOOD, GOOD, BAD])
    close, told = Session.close, []

    def closed(session: Session) -> None:
        told.append(capsys.readouterr().out)
        close(session)

    monkeypatch.setattr(Session, "close", closed)
    words = ["bisect", "--tree", str(history.path), "--good", history.commits[0], "--bad", history.commits[2]]
    profile = write_profile(tmp_path, CLAIMS)
    assert main([*words, "--profile", str(profile), "--runs", str(tmp_path / "runs")]) == 0
    assert f"{history.commits[2]} is the first bad commit" in told[0]
    assert _git(history.path, "worktree", "list").count("\n") == 0
