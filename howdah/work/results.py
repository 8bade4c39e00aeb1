# SPDX-License-Identifier: Apache-2.0
"""Read results for all commands: results of the current analysis, from files whose digests match.

Only this module calls ``load_experiment`` and ``refresh`` (tests/unit/test_work_reading.py). A command that read
results on its own could print numbers of another analysis, or of a file that somebody changed.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Iterator, Mapping
from concurrent.futures import as_completed
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from howdah.build.cache import Progress
from howdah.claim.claims import claims_profile, judge_claims
from howdah.errors import HowdahError
from howdah.layout import write_stderr
from howdah.number import counted
from howdah.record.claims import CLAIMS_NAME, ClaimsFile
from howdah.record.digest import MismatchError, check
from howdah.record.directory import RunDirectory, states_of
from howdah.record.index import PENDING, ExperimentIndex, read_index
from howdah.record.result import Experiment, Run, load_experiment, load_run
from howdah.record.run import read_record
from howdah.record.verdict import read_verdict
from howdah.work import experiment as run_experiment
from howdah.work.pool import pool
from howdah.work.stage import is_current, outdated, refresh

Tell = Callable[[str], None]
_warned: set[tuple[Path, str]] = set()
_AGAIN = "compute results again"


def say(text: str) -> None:
    """Print a line to standard error: results go to standard output."""
    write_stderr(f"howdah: {text}\n")


def read_results(
    path: Path, tell: Tell = say, *, workers: int = 1, kept: Callable[[Run], Run] | None = None
) -> Experiment:
    """Read the experiment, or the one run, in a directory. ``kept`` reduces each run to what the caller keeps.

    Results of another analysis are recomputed first. Raise HowdahError if that is not possible or the directory holds
    neither experiment nor run, and MismatchError if a file differs from its digest.
    """
    bring_up_to_date(path, tell, workers=workers)
    return load_experiment(path, kept=kept)


PIECE = 250  # the most runs in memory at once when many are read


@dataclass(frozen=True)
class ChangedRuns:
    """The result of ``read_changed_runs``. ``names`` has all existing runs, in the experiment's order."""

    path: Path
    name: str
    names: list[str]
    unchanged: set[str]
    states: dict[str, bytes]  # of the changed runs, taken before they are read

    def pieces(self) -> Iterator[list[Run]]:
        """Yield all runs that changed, PIECE at a time. Each has only its own kernel (``Run.likely_kernel``)."""
        names = list(self.states)
        for start in range(0, len(names), PIECE):
            yield load_experiment(self.path, only=set(names[start : start + PIECE])).runs


def read_changed_runs(path: Path, known: Mapping[str, bytes], tell: Tell = say) -> ChangedRuns:
    """Read like ``read_results``, but skip runs whose files have the ``known`` state, and keep few runs in memory.

    A caller that knows a run's state has its results from an earlier call, which checked them.
    """
    index = read_index(path / "experiment.json")
    name = index.name or path.name
    names = list(dict.fromkeys(run.name for run in _runs_in(path, index)))
    states = states_of(path, names)
    unchanged = {each for each, state in states.items() if known.get(each) == state}
    if len(unchanged) < len(names):
        bring_up_to_date(path, tell, without=unchanged)
    return ChangedRuns(path, name, names, unchanged, states_of(path, [each for each in names if each not in unchanged]))


def read_ended(experiment: Path, names: Iterable[str]) -> Iterator[Run]:
    """Read runs that the caller has just made in an experiment; skip those that cannot be read."""
    for name in names:
        with suppress(HowdahError, OSError):
            run = load_run(experiment / name, experiment.name)
            if is_current(run.provenance):
                yield run


def check_results(path: Path) -> None:
    """Check like ``read_results``, with the same errors and messages, but keep no run in memory."""
    if not (path / "experiment.json").exists():
        read_results(path)
        return
    for _ in read_changed_runs(path, {}, say).pieces():
        pass


def bring_up_to_date(
    path: Path,
    tell: Tell = say,
    *,
    force: bool = False,
    workers: int = 1,
    without: Container[str] = (),
    progress: Progress | None = None,
) -> int:
    """Recompute results of another analysis, or with ``force`` all results. Return the number of runs recomputed.

    Report results that cannot be recomputed (data not kept) or checked (no digests). Skip runs named in ``without``.
    """
    without_digests, old = _runs_to_update(path, without, force=force)
    done = 0
    if old and progress is not None:
        progress(_AGAIN, 0, len(old))
    for number, (refreshed, error) in enumerate(refresh_all(old, workers, force=force), 1):
        if error is not None:
            raise error
        done += refreshed is not None
        if progress is not None:
            progress(_AGAIN, number, len(old))
    if old:
        with suppress(OSError):  # a read-only directory: its index has no measures
            run_experiment.ExperimentDirectory(
                path if (path / "experiment.json").exists() else path.parent
            ).update_index()
    _warn_of_outdated(path, [run for run in old if outdated(run)], tell)
    if unchecked := [run for run in without_digests if read_record(run).digests is None]:
        _warn_once(
            path,
            f"{counted(len(unchecked), 'run')} of {path.name} {'has' if len(unchecked) == 1 else 'have'} no digests "
            "(made by an earlier version of howdah): nothing shows whether the files were changed",
            tell,
        )
    return done


def _runs_to_update(
    path: Path, without: Container[str], *, force: bool
) -> tuple[list[RunDirectory], list[RunDirectory]]:
    without_digests, old = [], []
    for run in runs_of(path):
        if run.name in without or not run.provenance.exists():
            continue
        record = read_record(run)
        if record.status == "finished" and record.digests is None:
            without_digests.append(run)
        if force or not is_current(record):
            old.append(run)
    return without_digests, old


def refresh_all(
    runs: Iterable[RunDirectory], workers: int = 1, *, force: bool = False
) -> Iterable[tuple[RunDirectory | None, HowdahError | None]]:
    """Refresh runs, ``workers`` at a time. Yield nothing for current runs. Otherwise yield the run, or None if another
    process refreshed it meanwhile, and its error, or None if it was refreshed."""
    runs = [run for run in runs if force or _perhaps_old(run)]
    if workers == 1 or len(runs) < 2:
        for run in runs:
            yield _refreshed(run, force)
        return
    with pool(min(workers, len(runs))) as processes:
        for future in as_completed([processes.submit(_refreshed, run, force) for run in runs]):
            yield future.result()


def _perhaps_old(run: RunDirectory) -> bool:
    try:
        return not is_current(read_record(run))
    except HowdahError:
        return True  # _refreshed() reports the error


def _refreshed(run: RunDirectory, force: bool) -> tuple[RunDirectory | None, HowdahError | None]:
    try:
        return (run if refresh(run, force=force) else None), None
    except HowdahError as error:
        error.where = error.where or str(run.path)
        return run, error


def runs_of(path: Path) -> list[RunDirectory]:
    """Return the runs of an experiment that exist on disk, or the one run whose directory this is."""
    index = path / "experiment.json"
    if not index.exists():
        return [RunDirectory(path)] if (path / "plan.json").exists() else []
    return _runs_in(path, read_index(index))


def _runs_in(path: Path, index: ExperimentIndex) -> list[RunDirectory]:
    places = [path / cell.run for cell in index.cells]
    return [RunDirectory(place) for place in places if place.is_dir()]


@dataclass(frozen=True)
class Listed:
    """A run in a list. ``verdict`` is empty if it is missing or its file was ``changed``."""

    experiment: str
    run: str
    status: str
    verdict: str
    outdated: bool = False  # the verdict is from another version of the analysis
    changed: bool = False

    @property
    def shown(self) -> str:
        """The verdict with a remark, as a list shows it."""
        return "(changed)" if self.changed else self.verdict + (" (outdated)" if self.outdated else "")


def listed(path: Path) -> list[Listed]:
    """Return the runs of an experiment as they are on disk, without recomputing. A verdict of another analysis is
    marked as outdated; a verdict whose file was changed is left out."""
    found = []
    for cell in read_index(path / "experiment.json").cells:
        run = RunDirectory(path / cell.run)
        if not run.provenance.exists():
            found.append(Listed(path.name, run.name, PENDING, ""))
            continue
        record = read_record(run)
        verdict, changed = "", False
        if run.verdict.exists():
            try:
                check(run, record, [run.verdict])
                verdict = read_verdict(run).verdict
            except MismatchError:
                changed = True
        outdated_ = bool(verdict) and not is_current(record)
        found.append(Listed(path.name, run.name, record.status, verdict, outdated_, changed))
    return found


def _warn_once(path: Path, text: str, tell: Tell) -> None:
    if (path, text) not in _warned:
        _warned.add((path, text))
        tell(text)


def _warn_of_outdated(path: Path, runs: list[RunDirectory], tell: Tell) -> None:
    if runs:
        one = len(runs) == 1
        _warn_once(
            path,
            f"{counted(len(runs), 'run')} {'was' if one else 'were'} analysed by another version of howdah, and "
            f"{'its' if one else 'their'} data were not kept (keep: first); 'howdah run --again' makes "
            f"{'it' if one else 'them'} again",
            tell,
        )


def judged_claims(path: Path, profile: Path | None = None) -> ClaimsFile | None:
    """Judge the claims of an experiment and write claims.json. Return its content, or None without claims.

    The claims are those of ``profile``, by default of the profile that the experiment was run with.
    """
    bring_up_to_date(path)
    return judge_claims(path, profile)


def renew_claims(path: Path) -> None:
    """Judge an experiment's claims again if it has claims.json, so that no stale claim is shown."""
    if (path / CLAIMS_NAME).exists():
        judge_claims(path, claims_profile(path))
