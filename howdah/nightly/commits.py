# SPDX-License-Identifier: Apache-2.0
"""A suite on every commit of a range: each commit is built in one build tree, run, and compared with another commit.

All commits of a range are one night: its correction counts the comparisons of all commits, so a long range has no more
false alarms than one night.
"""

from __future__ import annotations

import dataclasses
import shlex
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from howdah.bisect.session import Unbuilt, build_revision, within
from howdah.bisect.worktree import Worktree, find_repository
from howdah.build.cache import Cache, content_key, hold_alone
from howdah.build.uml_kernel import forget_kernels
from howdah.default import DEFAULT_ENGINE
from howdah.errors import HowdahError
from howdah.nightly.comparison import compare_claims, compare_sheets
from howdah.nightly.night import JudgedCommit, Night, NightCommit, NightRange
from howdah.nightly.sheet import NightSheet, empty_sheet
from howdah.nightly.suite import Suite, SuiteExperiment, Wanted, slugs_of
from howdah.nightly.work import MadeSheets, make
from howdah.work.display import Display
from howdah.work.job import Executor

Against = Literal["previous", "start"]
SHORT = 12


@dataclass(frozen=True)
class Commit:
    """A commit; ``subject`` is the first line of its message."""

    hash: str
    subject: str

    @property
    def short(self) -> str:
        return self.hash[:SHORT]

    @property
    def label(self) -> str:
        return f"{self.short} {self.subject}"


@dataclass
class CommitSpan:
    """The range that a night compares. ``bases`` are the commits that each was compared with, by hash."""

    tree: Path
    start: Commit
    commits: list[Commit]
    against: Against
    bases: dict[str, Commit] = field(default_factory=dict)
    experiments: dict[str, Commit] = field(default_factory=dict)
    states: dict[str, str] = field(default_factory=dict)

    @property
    def baseline(self) -> str:
        what = "the commit before each" if self.against == "previous" else f"{self.start.label}"
        return f"{what}, in {self.tree}"

    def words(self, experiment: str) -> list[str]:
        """Options of ``howdah nightly`` that repeat the comparison of one commit's experiment."""
        commit = self.experiments[experiment]
        base = self.bases.get(commit.hash, self.start)
        return ["--tree", str(self.tree), "--range", f"{base.short}..{commit.short}", "--against", "start"]

    def look(self, experiment: str) -> str:
        return shlex.join(["git", "-C", str(self.tree), "show", "--stat", self.experiments[experiment].short])

    def set_states(self, night: Night) -> None:
        """Set each commit's state, in the words of ``git bisect``, once the night is decided."""
        for commit in self.commits:
            cells = [cell for cell in night.cells if self.experiments[cell.experiment] == commit]
            unknown = all(cell.problem is not None or cell.state == "cannot tell" for cell in cells)
            fails = any(night.fails(cell) for cell in cells)
            self.states[commit.hash] = "skip" if unknown else "bad" if fails else "good"

    @property
    def first_bad(self) -> Commit | None:
        return next((commit for commit in self.commits if self.states.get(commit.hash) == "bad"), None)

    def bisect_log(self) -> str:
        """Input for ``git bisect replay``: all results up to the first commit that fails."""
        bad = self.first_bad
        lines = ["git bisect start"]
        if bad is None:
            lines = [f"# no commit of {self.start.short}..{self.commits[-1].short} fails", *lines]
        for commit in [self.start, *self.commits]:
            state = self.states.get(commit.hash, "good")
            lines += [f"# {state}: [{commit.hash}] {commit.subject}", f"git bisect {state} {commit.hash}"]
            if commit == bad:
                break
        return "\n".join(lines) + "\n"

    def text(self) -> str:
        """One line a commit, the oldest first."""
        signs = {"good": "✓", "bad": "✕", "skip": "?"}
        lines = [f"{signs[self.states[each.hash]]} {each.label}" for each in self.commits]
        if self.first_bad is not None:
            lines.append(f"first bad commit: {self.first_bad.label}")
        return "\n".join(lines) + "\n"

    def file(self) -> NightRange:
        return NightRange(
            tree=str(self.tree),
            against=self.against,
            start=NightCommit(**vars(self.start)),
            commits=[JudgedCommit(**vars(each), state=self.states.get(each.hash)) for each in self.commits],
            first_bad=self.first_bad.hash if self.first_bad else None,
        )


class Range:
    """The commits of a tree's repository, in a separate work tree in the cache; the user's tree is not touched."""

    def __init__(self, tree: Path, cache: Cache | None = None) -> None:
        self.cache = cache or Cache()
        self.tree = tree
        repository = find_repository(tree)
        self.directory = self.cache.path("commits", content_key(str(repository)))
        self.worktree = Worktree(repository, self.directory / "tree")
        self._checkout = Worktree(tree, tree)  # resolves HEAD as the user's checkout

    def span(self, revisions: str | None, last: int | None, against: Against) -> CommitSpan:
        """Return the commits of ``A..B``, or the newest ``last`` of the checked-out branch, along first parents.

        Raises HowdahError for a range without commits.
        """
        if revisions is None:
            revisions = f"HEAD~{last}..HEAD"
        first, dots, end = revisions.partition("..")
        if not dots or end.startswith(".") or not first:
            raise HowdahError(f"{revisions!r} is not a range of commits", hint="Write it like v6.12..HEAD.")
        start = self._commit(self._checkout.resolve(first))
        last_one = self._checkout.resolve(end or "HEAD")
        commits = [self._commit(each) for each in self.worktree.between(start.hash, last_one)]
        if not commits:
            raise HowdahError(f"there is no commit in {revisions}", where=str(self.tree))
        return CommitSpan(self.tree, start, commits, against)

    def _commit(self, revision: str) -> Commit:
        return Commit(revision, self.worktree.subject(revision))

    @contextmanager
    def opened(self, start: Commit) -> Iterator[None]:
        """Lock the work tree for the block, made if necessary and removed at the end; built kernels stay in the cache.

        The build tree stays too, so the next range compiles only differences from this one's last commit.
        """
        busy = HowdahError("another howdah is working on a range of this repository", where=str(self.tree))
        with hold_alone(self.directory, busy):
            if not self.worktree.exists:
                self.worktree.create(start.hash)
            try:
                yield
            finally:
                self.worktree.remove()


def experiments_by_commit(suite: Suite, span: CommitSpan, worktree: Path) -> dict[str, list[SuiteExperiment]]:
    """Return the suite's items on each commit, by hash, the start's first; the suite's own kernels are left out."""
    items = {one.item: one for one in suite.series}
    found = {}
    for commit in [span.start, *span.commits]:
        found[commit.hash] = [
            dataclasses.replace(one, name=f"{suite.name}-{one.item}-{commit.short}", kernel=str(worktree))
            for one in items.values()
        ]
        span.experiments |= {one.name: commit for one in found[commit.hash]}
    return found


def compare_commits(
    night: Night,
    span: CommitSpan,
    commits: Range,
    wanted: dict[str, set[str] | None],
    workers: int,
    again: bool,
    display: Display,
    executor: Executor | None = None,
) -> None:
    """Build and run every commit, the oldest first, and add all cells to the night, which remains undecided.

    ``wanted`` has the cells of each item. A commit that does not build, or whose runs fail, does not stop the others.
    """
    tree = commits.worktree.path.resolve()
    series = experiments_by_commit(night.suite, span, tree)
    night.suite = dataclasses.replace(night.suite, series=[one for each in series.values() for one in each])
    images: dict[str, tuple[Commit, MadeSheets]] = {}
    last: dict[str, tuple[Commit, NightSheet]] = {}  # by item: the last commit with a result
    with commits.opened(span.start):
        for commit in [span.start, *span.commits]:
            display.say(commit.label)
            commits.worktree.check_out(commit.hash)
            forget_kernels()
            of_commit = [one for one in series[commit.hash] if one.item in wanted]
            begun = time.monotonic()
            kernel = build_revision(tree, display.build, commits.cache)
            if isinstance(kernel, Unbuilt):
                display.say(f"  ✕ {kernel.why}")
                made = _unbuilt(of_commit, kernel.why, time.monotonic() - begun)
            elif (image := f"{kernel.image_sha256} {kernel.interface}") in images:
                display.say(f"  same kernel as {images[image][0].short}: nothing to run")
                made = images[image][1]
            else:
                names: Wanted = {one.name: wanted[one.item] for one in of_commit}
                made = make(of_commit, names, night.runs, workers, again, display, executor)
                night.runs_made += made.made
                night.runs_found += made.found
                night.problems += [within(tree, f"{commit.short}: {each}") for each in made.problems]
                for each in made.sheets.values():
                    _restore_paths(each, tree)
                images[image] = commit, made
            sheets = {sheet.item: sheet for sheet in made.sheets.values()}
            for one in of_commit:
                sheet = dataclasses.replace(sheets[one.item], experiment=one.name, kernel=commit.label)
                if commit is not span.start:
                    _compare(night, span, commit, one, sheet, last.get(one.item), wanted[one.item])
                is_known = sheet.problem is None
                if is_known and (one.item not in last or span.against == "previous"):
                    last[one.item] = commit, sheet
        display.build("remove the work tree", 0, 0)  # takes minutes on a busy disk


def _unbuilt(series: list[SuiteExperiment], why: str, took_s: float) -> MadeSheets:
    """Return the sheets of a commit without a kernel: nothing was run, and each item has the same problem."""
    made = MadeSheets()
    for one in series:
        made.sheets[one.name] = empty_sheet(one, why)
        made.sheets[one.name].prepare_s = took_s / len(series)
    return made


def _restore_paths(sheet: NightSheet, tree: Path) -> None:
    """Make messages name files of the repository instead of the temporary work tree."""
    sheet.problem = within(tree, sheet.problem) if sheet.problem is not None else None
    for cell in sheet.cells.values():
        for each in cell.repetitions.values():
            each.why = within(tree, each.why)


def _compare(
    night: Night,
    span: CommitSpan,
    commit: Commit,
    one: SuiteExperiment,
    sheet: NightSheet,
    before: tuple[Commit, NightSheet] | None,
    wanted: set[str] | None,
) -> None:
    slugs = [slug for slug in dict.fromkeys(slugs_of(one)) if wanted is None or slug in wanted]
    baseline = before[1] if before is not None else None
    span.bases[commit.hash] = before[0] if before is not None else span.start
    if one.claims is not None:
        night.cells += compare_claims(baseline, sheet, slugs)
    else:
        night.cells += compare_sheets(baseline, sheet, slugs, one.measures)


def check_engine(suite: Suite) -> None:
    """Raise HowdahError if the suite uses another engine than the one for which commits are built."""
    for one in suite.series:
        engines = {point.scenario.engine for point in one.profile.points}
        if engines - {DEFAULT_ENGINE}:
            raise HowdahError(
                f"{one.item} runs on {', '.join(sorted(engines))}, and commits are built for {DEFAULT_ENGINE}",
                where=str(suite.path),
            )
