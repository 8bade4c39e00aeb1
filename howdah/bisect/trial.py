# SPDX-License-Identifier: Apache-2.0
"""One revision on trial: its kernel is built, the profile is run on it, its claim is judged."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from howdah.build.cache import Cache, Progress
from howdah.build.uml_kernel import Kernel, build_kernel, forget_kernels
from howdah.claim.finding import DEPENDS, DIFFERS, FAIL, IMPLEMENTED, PASS
from howdah.default import DEFAULT_ENGINE
from howdah.errors import EngineUnavailableError, HowdahError, UsageError, nearest
from howdah.profile import Profile
from howdah.profile.control import CONTROL_AXIS
from howdah.record.claims import ClaimRow
from howdah.work.batch import Listener
from howdah.work.compiled import compile_plans
from howdah.work.experiment import ExperimentDirectory
from howdah.work.judged import judged_claims
from howdah.work.prepared import hold, make, prepare

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
        plans = [plan for plan in plans if CONTROL_AXIS not in plan.axes]
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
    close = nearest(name, known) if name else None
    hint = f"its claims are {', '.join(known)}" if known else "docs/claims.md says how to write one"
    hint = f"did you mean {close}? {hint}" if close else hint
    raise UsageError(what, where=str(profile.path), hint=hint)
