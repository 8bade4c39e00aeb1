# SPDX-License-Identifier: Apache-2.0
"""A bisection from its first question to its answer, which may be interrupted anywhere and goes on where it was.

Of each revision on trial the kernel is built, the profile is run on it, and its claim is judged.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from howdah.bisect.worktree import Found, Worktree
from howdah.build.build_tree import BuildTree
from howdah.build.cache import Cache, Progress, content_key, hold_alone
from howdah.build.uml_kernel import Kernel, build_kernel, forget_kernels
from howdah.claim.finding import DEPENDS, DIFFERS, FAIL, IMPLEMENTED, PASS
from howdah.codec import encoded
from howdah.default import DEFAULT_ENGINE
from howdah.errors import EngineUnavailableError, HowdahError, UsageError, did_you_mean
from howdah.number import counted
from howdah.profile import Profile
from howdah.profile.control import CONTROL_AXIS
from howdah.record.claims import ClaimRow
from howdah.record.directory import read_json, write_json
from howdah.record.model import checked
from howdah.record.provenance import now
from howdah.work.batch import Listener
from howdah.work.compiled import compile_plans
from howdah.work.experiment import ExperimentDirectory
from howdah.work.prepared import hold, make, prepare
from howdah.work.results import judged_claims

_LEAST_FREE_BYTES = 1 << 30


@dataclass(frozen=True)
class Unbuilt:
    """``why`` names the tree's file and line, relative to the tree."""

    why: str


def build_revision(tree: Path, progress: Progress, cache: Cache) -> Kernel | Unbuilt:
    """Build what is checked out in a work tree.

    Raises EngineUnavailableError, and HowdahError on a full disk: they say nothing of the revision.
    """
    try:
        return build_kernel(str(tree), progress, cache)
    except EngineUnavailableError:
        raise
    except HowdahError as error:
        if shutil.disk_usage(cache.root).free < _LEAST_FREE_BYTES:
            raise
        where = f"{error.where}: " if error.where and error.where != str(tree) else ""
        return Unbuilt(within(tree, f"it does not build: {where}{error.what}"))


def within(tree: Path, text: str) -> str:
    """A text that names the tree's files as the repository does: the work tree is howdah's own and goes away."""
    return text.replace(f"{tree}/", "").replace(str(tree), "the tree")


GOOD, BAD, SKIP = "good", "bad", "skip"


@dataclass(frozen=True)
class Answer:
    """The verdict on a revision and its reason: the claims in words, or why there can be no verdict."""

    verdict: str
    why: str


Trial = Callable[[Path], Answer]  # judges what is checked out in a work tree


def answer_of(claims: list[ClaimRow]) -> Answer:
    """Good if all claims pass, bad if one fails; otherwise undecided.

    A claim that *differs* or *depends* fails on this kernel, whatever a control or a grid says of the reason.
    """
    verdicts = {claim.verdict for claim in claims}
    bad, good = {FAIL, DIFFERS, DEPENDS}, {PASS, IMPLEMENTED}
    if verdicts & bad:
        some = [claim for claim in claims if claim.verdict in bad]
        return Answer(BAD, "; ".join(map(_text, some)))
    if verdicts and verdicts <= good:
        return Answer(GOOD, "; ".join(map(_text, claims)))
    some = [claim for claim in claims if claim.verdict not in good]
    return Answer(SKIP, "; ".join(f"{claim.id} is {claim.verdict}: {claim.why}" for claim in some))


def _text(claim: ClaimRow) -> str:
    measured = claim.measured.text if claim.measured else claim.why
    than = f" against {claim.than.text}" if claim.than else ""
    return f"{claim.id}: {measured}{than}"


class KernelTrial:
    """Trials of the revisions of one tree, whose objects stay: each build compiles what has changed.

    Calling it raises EngineUnavailableError and KeyboardInterrupt, and HowdahError on a full disk: they say nothing of
    the revision. What else goes wrong makes it one to skip.
    """

    def __init__(
        self,
        profile: Profile,
        claims: list[str],
        runs: Path,
        workers: int,
        build: Progress,
        listen: Listener,
        cache: Cache | None = None,
    ) -> None:
        self.profile = profile
        self.claims = claims
        self.experiment = ExperimentDirectory(runs / f"{profile.name}-bisect")
        self.workers = workers
        self.build = build
        self.listen = listen
        self.cache = cache or Cache()

    def __call__(self, tree: Path) -> Answer:
        forget_kernels()
        kernel = build_revision(tree, self.build, self.cache)
        if isinstance(kernel, Unbuilt):
            return Answer(SKIP, kernel.why)
        return self._run(tree)

    def _run(self, tree: Path) -> Answer:
        plans = compile_plans(self.profile, engine=DEFAULT_ENGINE, kernel=str(tree))
        plans = plans.only(lambda _run, axes: CONTROL_AXIS not in axes)
        with ExitStack() as locks:
            experiment = hold(self.experiment.path, locks)
            try:
                prepared = prepare(experiment, self.profile, plans, self.build)
            except EngineUnavailableError:
                raise
            except HowdahError as error:
                return Answer(SKIP, within(tree, f"nothing can run on it: {error.what}"))
            outcomes = make([prepared], self.workers, False, self.listen, keep_going=True)
            judged = judged_claims(experiment.path)
        errors = [outcome.error for outcome in outcomes if outcome.error is not None]
        assert judged is not None
        answer = answer_of([claim for claim in judged.claims if claim.id in self.claims])
        if answer.verdict == SKIP and errors:
            return Answer(SKIP, within(tree, f"{len(errors)} of {len(plans)} runs failed: {errors[0].what}"))
        return answer


def chosen_claims(profile: Profile, name: str | None) -> list[str]:
    """The ids of the claims that decide: the one of that name, or all. Raises HowdahError if nothing decides."""
    known = [claim.id for claim in profile.claims if claim.unsupported is None]
    if name is None and known:
        return known
    if name in known:
        assert name is not None
        return [name]
    what = f"the profile makes no claim {name!r}" if name else "the profile has no claim to bisect on"
    hint = f"its claims are {', '.join(known)}" if known else "docs/claims.md says how to write one"
    raise UsageError(what, where=str(profile.path), hint=did_you_mean(name, known, hint, both=True) if name else hint)


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


@dataclass(frozen=True)
class Step:
    """A revision that was tried, and what was found."""

    revision: str
    subject: str
    verdict: str
    why: str
    at: str


class Session:
    """``directory`` holds the work tree and session.json; one a repository. ``build_tree`` is where it is built."""

    def __init__(self, repository: Path, cache: Cache | None = None) -> None:
        cache = cache or Cache()
        self.directory = cache.path("bisect", content_key(str(repository)))
        self.worktree = Worktree(repository, self.directory / "tree")
        self.build_tree = BuildTree(self.worktree.path.resolve(), cache)
        self.steps: list[Step] = []

    @property
    def record(self) -> Path:
        return self.directory / "session.json"

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Hold the session; a second command on the same repository fails."""
        taken = HowdahError("another howdah is bisecting this repository", where=str(self.worktree.repository))
        with hold_alone(self.directory, taken):
            yield

    def open(self, question: Question, say: Say) -> None:
        """Begin, or go on with the session of the same question. Raises HowdahError where another one is open."""
        self.directory.mkdir(parents=True, exist_ok=True)
        if self.record.exists():
            known = read_json(self.record)
            if known.get("format") != FORMAT or known["question"] != vars(question):
                raise HowdahError(
                    "another bisection of this repository was interrupted",
                    where=str(self.directory),
                    hint="Repeat its command to continue, or drop it with 'howdah bisect --abandon --tree DIR'.",
                )
            self.steps = [checked(Step, each, self.record) for each in known["steps"]]
            if self.steps:
                say(f"going on after {counted(len(self.steps), 'revision')}")
        self._write(question)
        if not self.worktree.exists:
            say("checking a work tree out in the cache")
            self.worktree.create(question.good)

    def find(self, question: Question, trial: Trial, say: Say) -> Found:
        """Try both ends, then what git asks for. Raises HowdahError where the ends are not what they are said to be."""
        tree = self.worktree
        if not tree.is_bisecting:
            for revision, expected in ((question.good, GOOD), (question.bad, BAD)):
                answer = self._known(revision)
                if answer is None:
                    tree.check_out(revision)
                    answer = self._try(trial, revision, say, question)
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
            answer = self._known(revision) or self._try(trial, revision, say, question)
            self._tell_left(tree.mark(answer.verdict), say)
        return tree.found()

    def close(self) -> None:
        """Take everything away but what the runs directory and the cache of kernels keep."""
        self.worktree.remove()
        self.build_tree.remove()
        self.record.unlink(missing_ok=True)

    def log(self) -> str:
        """git's log with what was measured of every revision, as comments: ``git bisect replay`` reads it."""
        lines = [f"# {step.revision[:12]} {step.verdict}: {step.why}" for step in self.steps]
        return "\n".join([*lines, self.worktree.log()]) + "\n"

    def _try(self, trial: Trial, revision: str, say: Say, question: Question) -> Answer:
        subject = self.worktree.subject(revision)
        say(f"{revision[:12]} {subject}")
        answer = trial(self.worktree.path)
        self.steps.append(Step(revision, subject, answer.verdict, answer.why, now()))
        self._write(question)
        say(f"  {_shown(answer.verdict)}: {answer.why}")
        return answer

    def _known(self, revision: str) -> Answer | None:
        for step in self.steps:
            if step.revision == revision:
                return Answer(step.verdict, step.why)
        return None

    def _write(self, question: Question) -> None:
        write_json(self.record, {"format": FORMAT, "question": vars(question), "steps": encoded(self.steps)})

    @staticmethod
    def _tell_left(left: str, say: Say) -> None:
        if left:
            say(f"  {left}")


def _shown(verdict: str) -> str:
    return "skipped" if verdict == SKIP else verdict
