# SPDX-License-Identifier: Apache-2.0
"""A work tree of its own for a bisection: the user's files, index, branch and HEAD are not touched.

``git worktree`` shares the objects of the repository, and the state of ``git bisect`` belongs to the work tree in which
it was begun: a bisection of the user's own may go on beside this one.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from dataclasses import dataclass, field
from pathlib import Path

from howdah.build.kernel_source import git_environment
from howdah.distribution import installing
from howdah.errors import HowdahError, UsageError

_FIRST_BAD = re.compile(r"^# first bad commit: \[([0-9a-f]+)\]", re.MULTILINE)
_POSSIBLE = re.compile(r"^# possible first bad commit: \[([0-9a-f]+)\]", re.MULTILINE)
_REMAINING = re.compile(r"^Bisecting: (.+)$", re.MULTILINE)
# Do not run the user's hooks (post-checkout), which are meant for their own work.
_OPTIONS = ("-c", "core.hooksPath=/dev/null", "-c", "advice.detachedHead=false")


@dataclass(frozen=True)
class Found:
    """What git bisect knows: the first bad commit, or the candidates among which it cannot decide, or nothing yet."""

    first_bad: str | None = None
    candidates: list[str] = field(default_factory=list)

    @property
    def is_over(self) -> bool:
        return self.first_bad is not None or bool(self.candidates)


class Worktree:
    """The work tree ``path`` of the repository at ``repository``. Methods raise HowdahError with git's message."""

    def __init__(self, repository: Path, path: Path) -> None:
        self.repository = repository
        self.path = path

    @property
    def exists(self) -> bool:
        return (self.path / ".git").exists()

    def create(self, revision: str) -> None:
        """Check out ``revision`` at ``path``. Whatever a killed command left there is deleted."""
        shutil.rmtree(self.path, ignore_errors=True)
        self._git_of_user("worktree", "prune")
        self._git_of_user("worktree", "add", "--quiet", "--detach", str(self.path), revision)

    def remove(self) -> None:
        """Remove the work tree and its bisection; nothing is left in the repository."""
        if self.exists:
            self._git_of_user("worktree", "remove", "--force", str(self.path))
        shutil.rmtree(self.path, ignore_errors=True)
        self._git_of_user("worktree", "prune")

    def resolve(self, revision: str) -> str:
        """The full hash of the commit with that name. Raises UsageError for an unknown one."""
        try:
            return self._git_of_user("rev-parse", "--verify", "--quiet", f"{revision}^{{commit}}")
        except HowdahError:
            raise UsageError(f"there is no commit {revision!r}", where=str(self.repository)) from None

    def check_out(self, revision: str) -> None:
        self._git("checkout", "--quiet", "--force", "--detach", revision)

    def head(self) -> str:
        return self._git("rev-parse", "HEAD")

    def subject(self, revision: str) -> str:
        return self._git_of_user("log", "-1", "--format=%s", revision)

    def between(self, start: str, end: str) -> list[str]:
        """Hashes of the commits after ``start`` up to ``end``, oldest first. Merges are followed by their first parent
        only, so each commit is the child of the one before."""
        return self._git_of_user("rev-list", "--first-parent", "--reverse", f"{start}..{end}").split()

    def describe(self, revision: str) -> str:
        """Hash, author, date and message of a commit, with the files that it changes."""
        return self._git_of_user("show", "--stat", "--format=medium", "--no-color", revision)

    def begin(self, bad: str, good: str) -> str:
        """Start the bisection; git checks out the first revision to test. Return git's text on what is left."""
        return self._remaining(self._git("bisect", "start", bad, good))

    def mark(self, answer: str) -> str:
        """Answer ``good``, ``bad`` or ``skip`` for the current revision. Return git's text on what is left.

        git fails if only skipped revisions are left; ``found`` then has the candidates.
        """
        done = self._run(self.path, "bisect", answer)
        if done.returncode != 0 and not self.found().is_over:
            raise _failed(done, "bisect")
        return self._remaining(done.stdout)

    @property
    def is_bisecting(self) -> bool:
        return self.exists and self._run(self.path, "bisect", "log").returncode == 0

    def log(self) -> str:
        """The log that ``git bisect replay`` reads."""
        return self._git("bisect", "log")

    def found(self) -> Found:
        log = self.log()
        first = _FIRST_BAD.search(log)
        return Found(first[1] if first else None, _POSSIBLE.findall(log))

    @staticmethod
    def _remaining(said: str) -> str:
        found = _REMAINING.search(said)
        return found[1] if found else ""

    def _git(self, *arguments: str) -> str:
        return _answer(self._run(self.path, *arguments), arguments[0])

    def _git_of_user(self, *arguments: str) -> str:
        return _answer(self._run(self.repository, *arguments), arguments[0])

    def _run(self, directory: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
        environment = git_environment()
        try:
            return subprocess.run(
                ["git", "-C", str(directory), *_OPTIONS, *arguments],
                capture_output=True,
                text=True,
                errors="replace",
                check=False,
                stdin=subprocess.DEVNULL,
                env={**environment, "LC_ALL": "C"},
            )
        except FileNotFoundError:
            raise HowdahError("git is not installed", hint=installing("git")) from None


def _answer(done: subprocess.CompletedProcess[str], what: str) -> str:
    if done.returncode != 0:
        raise _failed(done, what)
    return done.stdout.strip()


def _failed(done: subprocess.CompletedProcess[str], what: str) -> HowdahError:
    said = " / ".join(line.strip() for line in (done.stderr or done.stdout).strip().splitlines()[-3:])
    return HowdahError(f"git {what}: {said or f'status {done.returncode}'}", where=str(done.args[2]))


def find_repository(tree: Path) -> Path:
    """The directory of the repository that a kernel tree belongs to, which all its work trees share.

    Raises HowdahError if the tree belongs to no repository.
    """
    done = Worktree(tree, tree)._run(tree, "rev-parse", "--path-format=absolute", "--git-common-dir")
    if done.returncode != 0:
        raise HowdahError(
            "this is not a git repository, so it has no commits",
            where=str(tree),
            hint="Name a kernel tree that was cloned with git: --tree DIR.",
        )
    return Path(done.stdout.strip())
