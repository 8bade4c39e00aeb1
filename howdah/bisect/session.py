# SPDX-License-Identifier: Apache-2.0
"""A bisection, which can be interrupted at any time and continues where it was.

For each revision tested, the kernel is built, the profile is run on it, and its claim is judged.
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
    """A kernel that could not be built. ``why`` names file and line relative to the tree."""

    why: str


def build_revision(tree: Path, progress: Progress, cache: Cache) -> Kernel | Unbuilt:
    """Build the revision that is checked out in a work tree.

    Raises EngineUnavailableError, and HowdahError on a full disk: neither says anything about the revision.
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
    """The text with the tree's files named relative to the tree, because the work tree is temporary."""
    return text.replace(f"{tree}/", "").replace(str(tree), "the tree")


GOOD, BAD, SKIP = "good", "bad", "skip"


@dataclass(frozen=True)
class Answer:
    """The verdict on a revision and its reason: the claims in words, or why there is no verdict."""

    verdict: str
    why: str


Trial = Callable[[Path], Answer]  # judges the revision checked out in a work tree


def answer_of(claims: list[ClaimRow]) -> Answer:
    """Good if all claims pass, bad if one fails; otherwise skip.

    A claim that *differs* or *depends* also fails on this kernel, whatever a control or grid shows about the reason.
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
    """Tests revisions of one tree. Object files are kept, so each build compiles only what has changed.

    Calling it raises EngineUnavailableError and KeyboardInterrupt, and HowdahError on a full disk: these say nothing
    about the revision. Any other failure skips the revision.
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
    """The ids of the claims that decide: the one of that name, or all. Raises UsageError if none decides."""
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
    """The question of a bisection. An interrupted session continues only for an equal one. ``text_sha256`` is of the
    profile's text with overrides, so an edited profile is another question."""

    good: str
    bad: str
    profile: str
    text_sha256: str
    claims: list[str]
    overrides: list[str]


@dataclass(frozen=True)
class Step:
    """A revision that was tested, and the result."""

    revision: str
    subject: str
    verdict: str
    why: str
    at: str


class Session:
    """A bisection of one repository, with its work tree and session.json in ``directory``, built in ``build_tree``."""

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
        """Lock the session; a second command on the same repository fails."""
        taken = HowdahError("another howdah is bisecting this repository", where=str(self.worktree.repository))
        with hold_alone(self.directory, taken):
            yield

    def open(self, question: Question, say: Say) -> None:
        """Begin, or continue the session of an equal question. Raises HowdahError if that of another question is
        open."""
        self.directory.mkdir(parents=True, exist_ok=True)
        if self.record.exists():
            known = read_json(self.record)
            if known.get("format") != FORMAT or known["question"] != vars(question):
                raise HowdahError(
                    "another bisection of this repository was interrupted",
                    where=str(self.directory),
                    hint="Repeat its command to continue it, or drop it with 'howdah bisect --abandon --tree DIR'.",
                )
            self.steps = [checked(Step, each, self.record) for each in known["steps"]]
            if self.steps:
                say(f"continuing after {counted(len(self.steps), 'revision')}")
        self._write(question)
        if not self.worktree.exists:
            say("checking out a work tree in the cache")
            self.worktree.create(question.good)

    def find(self, question: Question, trial: Trial, say: Say) -> Found:
        """Test both ends, then the revisions that git chooses. Raises HowdahError unless the ends are good and bad."""
        tree = self.worktree
        if not tree.is_bisecting:
            for revision, expected in ((question.good, GOOD), (question.bad, BAD)):
                answer = self._known(revision)
                if answer is None:
                    tree.check_out(revision)
                    answer = self._try(trial, revision, say, question)
                if answer.verdict != expected:
                    self.record.unlink()  # do not keep it: the user will name other ends
                    raise HowdahError(
                        f"{revision[:12]} was named {expected}, but it is {_shown(answer.verdict)}: {answer.why}",
                        where=str(tree.repository),
                        hint="Name other ends, or another claim; docs/nightly.md says how answers are found.",
                    )
            self._say_remaining(tree.begin(question.bad, question.good), say)
        while not tree.found().is_over:
            revision = tree.head()
            answer = self._known(revision) or self._try(trial, revision, say, question)
            self._say_remaining(tree.mark(answer.verdict), say)
        return tree.found()

    def close(self) -> None:
        """Delete everything except the runs and the cached kernels."""
        self.worktree.remove()
        self.build_tree.remove()
        self.record.unlink(missing_ok=True)

    def log(self) -> str:
        """git's log, which ``git bisect replay`` reads, with each revision's measurements as comments."""
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
    def _say_remaining(left: str, say: Say) -> None:
        if left:
            say(f"  {left}")


def _shown(verdict: str) -> str:
    return "skipped" if verdict == SKIP else verdict
