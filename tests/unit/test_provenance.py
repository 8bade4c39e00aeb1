# SPDX-License-Identifier: Apache-2.0
"""What run.json says of the checkout that made a run."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest

from howdah.record import provenance
from howdah.record.provenance import software

_PERSON = {f"GIT_{who}_{what}": "x@y" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
Git = Callable[..., str]


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    """Its ``now`` are seconds; nobody has asked yet."""
    made = SimpleNamespace(now=1000.0)
    monkeypatch.setattr(provenance, "time", SimpleNamespace(monotonic=lambda: made.now))
    monkeypatch.setattr(provenance, "_git_answer", (0.0, None, None))
    return made


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(provenance, "CHECKOUT", tmp_path)
    return tmp_path


@pytest.fixture
def git(checkout: Path) -> Git:
    def run(*words: str) -> str:
        environment = {**os.environ, **_PERSON}
        done = subprocess.run(
            ["git", *words], cwd=checkout, env=environment, capture_output=True, text=True, check=True
        )
        return done.stdout.strip()

    run("init", "--quiet")
    return run


@pytest.fixture
def told(clock: SimpleNamespace) -> Callable[[], tuple[str | None, bool | None]]:
    """Revision and whether it is modified, as they are said a second later."""

    def ask() -> tuple[str | None, bool | None]:
        clock.now += 1.0
        said = software()
        return said.revision, said.modified

    return ask


Told = Callable[[], tuple[str | None, bool | None]]


def test_a_checkout_is_told_with_its_changes(checkout: Path, git: Git, told: Told) -> None:
    assert told() == (None, False), "nothing is committed yet"
    (checkout / "code.py").write_text("one")
    assert told() == (None, False), "files that git does not know are nobody's"
    git("add", "code.py")
    assert told() == (None, True)
    git("commit", "--quiet", "--message", "one")
    first = git("rev-parse", "HEAD")
    assert told() == (first, False)
    (checkout / "code.py").write_text("another")
    assert told() == (first, True)
    git("commit", "--quiet", "--all", "--message", "two")
    assert told() == (git("rev-parse", "HEAD"), False)
    git("checkout", "--quiet", "--detach", first)
    assert told() == (first, False)
    git("mv", "code.py", "moved.py")
    assert told() == (first, True)


def test_a_revision_is_told_where_changes_are_not_known(checkout: Path, git: Git, told: Told) -> None:
    git("commit", "--quiet", "--allow-empty", "--message", "one")
    (checkout / ".git" / "index").write_text("damaged")
    assert told() == (git("rev-parse", "HEAD"), None)


def test_nothing_is_known_without_a_checkout_or_git(
    checkout: Path, told: Told, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(checkout.parent))
    assert told() == (None, None)
    monkeypatch.setenv("PATH", str(checkout))
    assert told() == (None, None)
    monkeypatch.setattr(provenance, "CHECKOUT", None)
    assert told() == (None, None)


def test_git_is_asked_once_a_second_at_most(clock: SimpleNamespace, monkeypatch: pytest.MonkeyPatch) -> None:
    """So a program that goes on for long notices a change before its next run but one."""
    answers = iter("abc")
    monkeypatch.setattr(provenance, "_git", lambda *_: f"# branch.oid {next(answers)}")
    told = []
    for seconds in (0.0, 0.5, 0.4, 0.1, 0.9, 0.2):
        clock.now += seconds
        told.append(software().revision)
    assert told == ["a", "a", "a", "b", "b", "c"]
