# SPDX-License-Identifier: Apache-2.0
"""The profiles of ``profiles/atlas``. Each serves one or several entries, by its claims and figures."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from howdah.atlas.catalogue import Catalogue, Entry
from howdah.atlas.points import stored_figures
from howdah.atlas.published import RESULTS, Published, published
from howdah.errors import HowdahError, ProfileError, UsageError, nearest
from howdah.profile import Profile, load
from howdah.profile.experiment import names_of
from howdah.record.claims import ClaimRow, ClaimsFile, read_claims_file
from howdah.record.result import Experiment
from howdah.report.plot.stored import StoredExperiment
from howdah.work.results import read_results


@dataclass
class Chapter:
    """One profile of the atlas and the results of its experiment so far. ``problems`` say why something is missing.

    ``results`` is the directory of published ones; None for the quick atlas, whose results are not published.
    """

    profile: Profile
    path: Path
    problems: list[str] = field(default_factory=list)
    results: Path | None = RESULTS
    _experiment: Experiment | None = None
    _refused: bool = False
    _stored: dict[str, StoredExperiment] | None = None

    @property
    def name(self) -> str:
        return self.profile.name

    @property
    def claimed(self) -> set[str]:
        """Ids of the entries that have claims in this profile."""
        return names_of(self.profile.claims)

    @property
    def drawn(self) -> set[str]:
        """Ids of the entries that have figures in this profile."""
        return names_of(self.profile.figures)

    @property
    def of_the_machine(self) -> set[str]:
        """Ids of the claims about processor time measured by perf, which the runs' keys do not determine.

        The vm engine counts instructions, which are the same on every machine.
        """
        experiment = self.experiment()
        plans = [run.plan for run in experiment.runs if run.plan is not None] if experiment is not None else []
        if all(plan.traits.finite_processor for plan in plans):
            return set()
        return {claim.id for claim in self.profile.claims if any(name.startswith("cpu_") for name in claim.metrics)}

    def experiment(self) -> Experiment | None:
        """Return the experiment with current results, which are read once; None until it exists.

        Also None if it cannot be read, or is not what was recorded; ``problems`` then has the reason.
        """
        if self._experiment is None and not self._refused and (self.path / "experiment.json").exists():
            try:
                self._experiment = read_results(self.path)
            except HowdahError as error:
                self._refused = True
                if str(error) not in self.problems:
                    self.problems.append(str(error))
        return self._experiment

    def judged(self) -> ClaimsFile | None:
        """Return claims.json, or None if the claims have not been judged."""
        return read_claims_file(self.path)

    def published(self) -> Published | None:
        """Return the published results of the current profile. Raise HowdahError for an unreadable file."""
        if self.results is None:
            return None
        return published(self.name, self.profile.text, self.profile.claims, self.results)

    def shown(self) -> Published | None:
        """Return the published results, which are shown if no run of the profile was made here; else None."""
        experiment = self.experiment()
        return None if experiment is not None and experiment.runs else self.published()

    def stored(self) -> dict[str, StoredExperiment]:
        """Return the data from which published figures are drawn, by figure id; empty if runs were made here."""
        shown = self.shown()
        if shown is None or self.results is None:
            return {}
        if self._stored is None:
            self._stored = stored_figures(self.profile, shown, self.results)
        return self._stored

    def claims(self) -> list[ClaimRow]:
        """Return judged claims: of the runs made here, else published ones; none of an unreadable experiment."""
        shown = self.shown()
        if shown is not None:
            return shown.claims
        if self._refused:
            return []
        judged = self.judged()
        return judged.claims if judged is not None else []

    def together(self) -> str:
        """Return whether the claims hold at one point of what the paper leaves open; empty if that was not examined."""
        shown = self.shown()
        of = shown if shown is not None else self.judged()
        return of.unknown.text if of is not None and of.unknown is not None else ""


def read_chapters(profiles: Path, runs: Path, *, quick: bool, unknowns: bool = False) -> list[Chapter]:
    """Return every profile of a directory, ordered by name.

    With ``unknowns``, each has the runs of the grid of what its paper leaves open.

    Raise ProfileError for the first wrong profile, or for a directory without profiles.
    """
    files = sorted(profiles.glob("*.yaml"))
    if not files:
        raise ProfileError("there is no profile", where=str(profiles))
    chapters = []
    for file in files:
        profile = load(file, quick=quick, unknowns=unknowns)
        if profile.name != file.stem:
            hint = f"rename the file to {profile.name}.yaml, or the profile to {file.stem}"
            raise ProfileError(f"profile name and file name differ: {profile.name!r}", where=str(file), hint=hint)
        chapters.append(Chapter(profile, runs / profile.name, results=None if quick else RESULTS))
    return chapters


def published_of(chapters: Iterable[Chapter]) -> list[Published]:
    """Return the published results of all chapters, even of the quick atlas, which does not show them."""
    found = (
        published(chapter.name, chapter.profile.text, chapter.profile.claims, chapter.results or RESULTS)
        for chapter in chapters
    )
    return [each for each in found if each is not None]


def check(catalogue: Catalogue, chapters: list[Chapter]) -> None:
    """Raise ProfileError unless entries and profiles match; it lists all mismatches."""
    entries = {entry.id: entry for entry in catalogue.entries}
    named = {chapter.name: chapter for chapter in chapters}
    found = [*_unknown(entries, named), *_without_claim(entries, named), *_contradictions(catalogue, chapters)]
    found += _central(entries, named)
    if found:
        hint = "\n  ".join(found[1:20]) or None
        raise ProfileError(found[0], where=str(chapters[0].profile.path.parent), hint=hint)


def _unknown(entries: dict[str, Entry], named: dict[str, Chapter]) -> list[str]:
    found = []
    for chapter in named.values():
        unknown = sorted((chapter.claimed | chapter.drawn) - set(entries))
        found += [f"{chapter.name} refers to the unknown entry {name}" for name in unknown]
    for entry in entries.values():
        found += [
            f"{entry.place}: there is no profile {name!r}" for name in entry.section.profiles if name not in named
        ]
    return found


def _without_claim(entries: dict[str, Entry], named: dict[str, Chapter]) -> list[str]:
    claimed = {name for chapter in named.values() for name in chapter.claimed}
    return [
        f"{entry.place}: the experiment {entry.id} has no claim in any profile"
        for entry in entries.values()
        if entry.kind == "experiment" and entry.id not in claimed
    ]


def _central(entries: dict[str, Entry], named: dict[str, Chapter]) -> list[str]:
    """Return errors for entries with claims but no central one, and for central claims of other entries."""
    claims: dict[str, set[str]] = {}
    for chapter in named.values():
        for claim in chapter.profile.claims:
            for name in claim.entry:
                claims.setdefault(name, set()).add(f"{chapter.name}/{claim.id}")
    found = []
    for entry in entries.values():
        mine, central = claims.get(entry.id, set()), entry.section.central
        if mine and not central:
            found.append(f"{entry.place}: {entry.id} has claims, and none is 'central': its verdict is that of one")
        found += [
            f"{entry.place}: the central claim {name} is none of {entry.id}" for name in central if name not in mine
        ]
    return found


def _contradictions(catalogue: Catalogue, chapters: list[Chapter]) -> list[str]:
    """Return errors for claims that depend on an unknown contradiction, or on one of other entries."""
    known = {item.title: set(item.entries) for item in catalogue.inconsistencies}
    found = []
    for chapter in chapters:
        for claim in chapter.profile.claims:
            if claim.contradiction is None:
                continue
            where = f"{chapter.name}: the claim {claim.id} hangs on the contradiction {claim.contradiction!r}"
            if claim.contradiction not in known:
                found.append(f"{where}, which is not in inconsistencies.yaml")
            elif not set(claim.entry) & known[claim.contradiction]:
                found.append(f"{where}, which is of none of its entries")
    return found


def behind(entry: Entry, chapters: list[Chapter]) -> list[Chapter]:
    """Return the chapters of an entry: those it names, then others with claims or figures of it."""
    named = {chapter.name: chapter for chapter in chapters}
    first = [named[name] for name in entry.section.profiles if name in named]
    return first + [one for one in chapters if entry.id in one.claimed | one.drawn and one not in first]


def chosen(catalogue: Catalogue, chapters: list[Chapter], only: list[str]) -> list[Chapter]:
    """Return the chapters that ``--only`` names, by entry, paper or profile. Raise UsageError for an unknown name."""
    if not only:
        return chapters
    names: set[str] = set()
    for word in only:
        profiles = {chapter.name for chapter in chapters if chapter.name == word}
        for entry in catalogue.entries:
            if word in (entry.id, entry.paper.key):
                profiles |= {chapter.name for chapter in behind(entry, chapters)}
        if not profiles:
            papers = [paper.key for paper in catalogue.papers]
            known = [*papers, *(entry.id for entry in catalogue.entries), *(chapter.name for chapter in chapters)]
            close = nearest(word, known)
            hint = f"papers: {', '.join(papers)}; entries: 'howdah atlas --list'"
            raise UsageError(
                f"there is no entry, paper or profile {word!r} to run",
                hint=f"did you mean {close}? {hint}" if close else hint,
            )
        names |= profiles
    return [chapter for chapter in chapters if chapter.name in names]
