# SPDX-License-Identifier: Apache-2.0
"""Results in the repository: what the full atlas found, profile by profile, on the machines that made it.

``howdah atlas --publish`` writes them. Users without runs of a profile see them, marked as published. Users with the
same runs must get the same results, since virtual time does not depend on the machine (except for processor time).
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Container, Iterable, Sequence
from pathlib import Path

from pydantic import ConfigDict, Field

from howdah.atlas.catalogue import ATLAS
from howdah.atlas.encoding import (
    Encoding,
    controls_sha256,
    encoding,
    experiment_sha256,
    renewed,
    unknown_sha256,
    unpublished,
    without_grid,
)
from howdah.atlas.verdict import count
from howdah.errors import HowdahError
from howdah.generated import compact_json
from howdah.profile import Profile
from howdah.profile.claim import ClaimSection
from howdah.record.claims import ClaimRow, ClaimsFile, OpenRow
from howdah.record.directory import read_json, write_whole
from howdah.record.model import FilePart, checked
from howdah.record.provenance import sha256_text
from howdah.record.result import Experiment, Run
from howdah.trait import is_model

RESULTS = ATLAS / "results"
FORMAT = 3


class Published(FilePart):
    """Claims of one profile as in claims.json, and their origin.

    ``runs_sha256`` is a hash of the keys of all runs: plan, kernel, modules and agent. ``core_s`` is seconds of one
    core. ``experiment_sha256`` is a hash of what decides the runs, ``controls_sha256`` one of each control;
    ``encodings`` are what each claim measured and expected. ``unknown`` is the part of claims.json about the grid of
    what the paper leaves open, ``unknown_sha256`` a hash of it. ``outdated`` says which later change of the measurement
    would give other results; a person writes it into the file, and the next publication removes it.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    profile: str
    profile_sha256: str
    experiment_sha256: str
    controls_sha256: dict[str, str]
    runs_sha256: str
    runs: dict[str, int]
    made: list[str]
    revisions: list[str]
    kernels: list[str]
    core_s: float
    simulated_s: float
    claims: list[ClaimRow] = Field(default_factory=list)
    outdated: str = ""
    unknown: OpenRow | None = None
    encodings: list[Encoding] = Field(default_factory=list)
    unknown_sha256: str = ""

    @property
    def counts_text(self) -> str:
        """``210 pass (published: 2026-01-31, Linux 6.12.9)``."""
        runs = ", ".join(f"{number} {word}" for word, number in self.runs.items())
        days = " to ".join(dict.fromkeys(time[:10] for time in self.made))
        outdated = f"; outdated: {self.outdated}" if self.outdated else ""
        return f"{runs} (published: {days}, {self._made_on()}{outdated})"

    def _made_on(self) -> str:
        """Return ``Linux 6.12.9``, and engines without a kernel: ``model (ns-2 2.35)``."""
        models = [name for name in self.kernels if is_model(name)]
        kernels = [name for name in self.kernels if name not in models]
        return ", ".join([*(["Linux " + ", ".join(kernels)] if kernels else []), *models])

    def other_controls(self, profile_text: str) -> set[str]:
        """Return the controls of the current profile whose runs are not the published ones."""
        now = controls_sha256(profile_text)
        return {name for name, sha256 in now.items() if self.controls_sha256.get(name) != sha256}

    def differing(
        self, experiment: Experiment, claims: list[ClaimRow], of_the_machine: Container[str] = ()
    ) -> list[str]:
        """Return the ids of claims with different results for identical runs; empty if other runs were made.

        Claims whose encoding changed since are left out, as are claims ``of_the_machine``, about its processor's time,
        in which no two machines agree.
        """
        if runs_key(experiment.runs) != self.runs_sha256:
            return []
        known = {
            claim.id: _read(claim) for claim in self.claims if claim.id not in of_the_machine and not claim.renewed
        }
        return [claim.id for claim in claims if claim.id in known and _read(claim) != known[claim.id]]


def rows_of(all_of_it: Iterable[Published]) -> dict[str, ClaimRow]:
    """Return published claims by ``profile/claim``; ``outdated`` of each says what changed since in its measurement."""
    return {
        f"{each.profile}/{claim.id}": claim.model_copy(update={"outdated": each.outdated})
        for each in all_of_it
        for claim in each.claims
    }


def kernel_of(all_of_it: Iterable[Published]) -> str:
    """Return ``6.12``: the release of Linux on which most of the profiles ran; empty without results."""
    releases = Counter(
        ".".join(name.split(".")[:2]) for each in all_of_it for name in each.kernels if not is_model(name)
    )
    return releases.most_common(1)[0][0] if releases else ""


def runs_key(runs: Iterable[Run]) -> str:
    """Return one key of many runs, independent of their order."""
    return hashlib.sha256("\n".join(sorted(str(run.provenance.key) for run in runs)).encode()).hexdigest()


def published(
    profile: str, profile_text: str, claims: Sequence[ClaimSection], directory: Path = RESULTS
) -> Published | None:
    """Return the published results of a profile; None without any, or if the profile makes other runs since.

    Claims are those of the current profile (``encoding.py``): their words, and their expectations of the published
    numbers.

    Raise HowdahError for an unreadable file.
    """
    file = directory / f"{profile}.json"
    try:
        data = read_json(file)
        if data.pop("format") != FORMAT:
            raise ValueError(f"its format is not {FORMAT}")
        found = checked(Published, data, file)
    except FileNotFoundError:
        return None
    except (ValueError, KeyError, TypeError) as error:
        raise HowdahError(f"this is not a file of published results: {error}", where=str(file)) from error
    written = sha256_text(profile_text)
    same = found.profile_sha256 == written
    if not same and found.experiment_sha256 != experiment_sha256(profile_text):
        return None
    same_grid = same or found.unknown_sha256 == unknown_sha256(profile_text)
    rows = {row.id: row if same_grid else without_grid(row) for row in found.claims}
    before = {each["id"]: each for each in found.encodings}
    others = set() if same else found.other_controls(profile_text)
    now = [
        renewed(claim, rows[claim.id], before.get(claim.id, {}), others) if claim.id in rows else unpublished(claim)
        for claim in claims
    ]
    kept = same_grid and not any(row.renewed for row in now)
    changed = {"profile_sha256": written, "claims": now, "encodings": [encoding(claim) for claim in claims]}
    return found.model_copy(update={**changed, "unknown": found.unknown if kept else None})


def publish(
    experiment: Experiment,
    profile_text: str,
    claims: Sequence[ClaimSection],
    judged: ClaimsFile,
    directory: Path = RESULTS,
) -> Path:
    """Write the results of an experiment (``judged`` is its claims.json).

    Raise HowdahError if it is incomplete, or of another profile.
    """
    if experiment.pending:
        missing = f"{len(experiment.pending)} of {len(experiment.pending) + len(experiment.runs)} runs are missing"
        raise HowdahError(f"{experiment.name} cannot be published: {missing}", where=str(experiment.path))
    failed = [run for run in experiment.runs if run.status != "finished"]
    if failed:
        what = f"{experiment.name} cannot be published: {len(failed)} of {len(experiment.runs)} runs failed"
        raise HowdahError(what, where=str(failed[0].directory.path))
    if experiment.profile.sha256 != sha256_text(profile_text):
        raise HowdahError(
            f"{experiment.name} cannot be published: its runs are of another version of the profile",
            where=str(experiment.path),
        )
    runs = experiment.runs
    times = sorted(run.provenance.started or "" for run in runs)
    result = Published(
        profile=experiment.name,
        profile_sha256=sha256_text(profile_text),
        experiment_sha256=experiment_sha256(profile_text),
        controls_sha256=controls_sha256(profile_text),
        runs_sha256=runs_key(runs),
        runs=count(run.verdict_name for run in runs),
        made=[times[0], times[-1]],
        revisions=sorted({str(run.provenance.howdah.revision) for run in runs}),
        kernels=sorted({run.kernel for run in runs}),
        core_s=round(sum(run.provenance.core_s for run in runs), 1),
        simulated_s=round(sum((run.plan.epoch_us + run.plan.duration_us) / 1e6 for run in runs if run.plan), 1),
        claims=judged.claims,
        unknown=judged.unknown,
        encodings=[encoding(claim) for claim in claims],
        unknown_sha256=unknown_sha256(profile_text),
    )
    directory.mkdir(parents=True, exist_ok=True)
    return _write(result, directory)


def _write(result: Published, directory: Path) -> Path:
    file = directory / f"{result.profile}.json"
    write_whole(file, _text(result))
    return file


def _text(result: Published) -> str:
    open_ = result.unknown.plain() if result.unknown is not None else None
    rows = {"claims": [row.plain() for row in result.claims], "unknown": open_}
    return compact_json({"format": FORMAT, **dict(result), **rows}, rows=("claims", "encodings"))


def bring_up_to_date(profiles: Iterable[Profile], directory: Path = RESULTS) -> list[Path]:
    """Rewrite the published results for the current profiles, remove those without one, and return the changed files.

    Removed claims are dropped, claims that the published numbers now judge differently get that verdict, and results of
    a profile that makes other runs are removed with the points of its figures. A second call changes nothing.
    """
    known = {profile.name: profile for profile in profiles}
    changed = []
    for file in sorted(directory.glob("*.json")):
        profile = known.get(file.stem)
        now = published(profile.name, profile.text, profile.claims, directory) if profile is not None else None
        if now is None:
            file.unlink()
            (directory / "points" / file.name).unlink(missing_ok=True)
        elif read_json(file) != json.loads(_text(now)):
            _write(now, directory)
        else:
            continue
        changed.append(file)
    return changed


def _read(claim: ClaimRow) -> tuple[str, ...]:
    """Return a claim as read: the last digits of a mean depend on the processor that added it up."""
    texts = [sample.text if sample is not None else "" for sample in (claim.measured, claim.than)]
    return claim.verdict, *texts, claim.control.verdict if claim.control is not None else ""
