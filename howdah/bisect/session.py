# SPDX-License-Identifier: Apache-2.0
"""A bisection from its first question to its answer, which may be interrupted anywhere and goes on where it was."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from howdah.bisect.trial import BAD, GOOD, SKIP, Answer, Trial
from howdah.bisect.worktree import Found, Worktree
from howdah.build.build_tree import BuildTree
from howdah.build.cache import Cache, alone, content_key
from howdah.errors import HowdahError
from howdah.number import counted
from howdah.record.directory import read_json, write_json
from howdah.record.provenance import now

FORMAT = 1
Say = Callable[[str], None]


@dataclass(frozen=True)
class Question:
    """What is asked; a session that was interrupted goes on only for the same. ``text_sha256`` is of the profile's
    text with its overrides: one that was edited in between is another question."""

    good: str
    bad: str
    profile: str
    text_sha256: str
    claims: list[str]
    overrides: list[str]


class Session:
    """``directory`` holds the work tree and session.json; one a repository. ``build_tree`` is where it is built."""

    def __init__(self, repository: Path, cache: Cache | None = None) -> None:
        cache = cache or Cache()
        self.directory = cache.path("bisect", content_key(str(repository)))
        self.worktree = Worktree(repository, self.directory / "tree")
        self.build_tree = BuildTree(self.worktree.path.resolve(), cache)
        self.steps: list[dict[str, Any]] = []

    @property
    def record(self) -> Path:
        return self.directory / "session.json"

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Hold the session; a second command on the same repository fails."""
        taken = HowdahError("another howdah is bisecting this repository", where=str(self.worktree.repository))
        with alone(self.directory, taken):
            yield

    def open(self, question: Question, say: Say) -> None:
        """Begin, or go on with the session of the same question. Raises HowdahError where another one is open."""
        asked = vars(question)
        self.directory.mkdir(parents=True, exist_ok=True)
        if self.record.exists():
            known = read_json(self.record)
            if known.get("format") != FORMAT or known["question"] != asked:
                raise HowdahError(
                    "another bisection of this repository was interrupted",
                    where=str(self.directory),
                    hint="Repeat its command to continue, or drop it with 'howdah bisect --abandon --tree DIR'.",
                )
            self.steps = known["steps"]
            if self.steps:
                say(f"going on after {counted(len(self.steps), 'revision')}")
        self._write(asked)
        if not self.worktree.exists:
            say("checking a work tree out in the cache")
            self.worktree.create(question.good)

    def find(self, question: Question, trial: Trial, say: Say) -> Found:
        """Try both ends, then what git asks for. Raises HowdahError where the ends are not what they are said to be."""
        asked = vars(question)
        tree = self.worktree
        if not tree.is_bisecting:
            for revision, expected in ((question.good, GOOD), (question.bad, BAD)):
                answer = self._known(revision)
                if answer is None:
                    tree.check_out(revision)
                    answer = self._try(trial, revision, say, asked)
                if answer.verdict != expected:
                    self.record.unlink()  # a wrong end is no answer to keep: the person will ask otherwise
                    raise HowdahError(
                        f"{revision[:12]} was named {expected}, and it is {_shown(answer.verdict)}: {answer.why}",
                        where=str(tree.repository),
                        hint="Name other ends, or another claim; docs/nightly.md says how answers are found.",
                    )
            self._tell_left(tree.begin(question.bad, question.good), say)
        while not tree.found().is_over:
            revision = tree.head()
            answer = self._known(revision) or self._try(trial, revision, say, asked)
            self._tell_left(tree.mark(answer.verdict), say)
        return tree.found()

    def close(self) -> None:
        """Take everything away but what the runs directory and the cache of kernels keep."""
        self.worktree.remove()
        self.build_tree.remove()
        self.record.unlink(missing_ok=True)

    def log(self) -> str:
        """git's log with what was measured of every revision, as comments: ``git bisect replay`` reads it."""
        lines = [f"# {step['revision'][:12]} {step['verdict']}: {step['why']}" for step in self.steps]
        return "\n".join([*lines, self.worktree.log()]) + "\n"

    def _try(self, trial: Trial, revision: str, say: Say, asked: dict[str, Any]) -> Answer:
        subject = self.worktree.subject(revision)
        say(f"{revision[:12]} {subject}")
        answer = trial(self.worktree.path)
        step = {"revision": revision, "subject": subject, "verdict": answer.verdict, "why": answer.why, "at": now()}
        self.steps.append(step)
        self._write(asked)
        say(f"  {_shown(answer.verdict)}: {answer.why}")
        return answer

    def _known(self, revision: str) -> Answer | None:
        for step in self.steps:
            if step["revision"] == revision:
                return Answer(step["verdict"], step["why"])
        return None

    def _write(self, asked: dict[str, Any]) -> None:
        write_json(self.record, {"format": FORMAT, "question": asked, "steps": self.steps})

    @staticmethod
    def _tell_left(left: str, say: Say) -> None:
        if left:
            say(f"  {left}")


def _shown(verdict: str) -> str:
    return "skipped" if verdict == SKIP else verdict
