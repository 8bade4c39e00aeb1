# SPDX-License-Identifier: Apache-2.0
"""Digests of a run's files, kept in run.json, by which a reader sees whether a file is the recorded one; and which
files of a finished run are kept: all of them, or its results only.

run.json has no digest of itself. If somebody changes a file and its digest, computing the results again shows it
(``howdah verify``), or a signature (``howdah sign``), which covers run.json too.
"""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from howdah.errors import ExitCode, HowdahError, RecordError
from howdah.foreign import files_below, kind_of, open_foreign
from howdah.record.directory import RunDirectory
from howdah.record.run import RunRecord, read_record, write_record
from howdah.record.verdict import read_verdict

SOURCES = ("plan.json", "raw/", "share/")  # what the analysis reads; everything else in a run is made from it
MANIFEST = "manifest.sha256"  # part of a signature (howdah/verify/signature.py)
SSH_SIGNATURE, MINISIGN_SIGNATURE = f"{MANIFEST}.sig", f"{MANIFEST}.minisig"
UNCOVERED = ("run.json", "report.html", MANIFEST, SSH_SIGNATURE, MINISIGN_SIGNATURE)

CHANGED, MISSING, ADDED, NO_FILE = "changed", "missing", "added", "no file"


class MismatchError(HowdahError):
    """A file differs from the one recorded in run.json."""

    exit_code = ExitCode.DIFFERS


@dataclass(frozen=True)
class Mismatch:
    """A file, by its path in the run directory, that was ``changed``, is ``missing``, was ``added``, or is a link, a
    pipe or a device (``no file``)."""

    file: str
    what: str

    def __str__(self) -> str:
        return {
            CHANGED: f"{self.file} was changed after it was recorded",
            MISSING: f"{self.file} is missing",
            ADDED: f"{self.file} was added after the files were recorded",
            NO_FILE: f"{self.file} is a link, a pipe or a device, and no file",
        }[self.what]


_State = tuple[Path, int, int, int, int]
_MOST_KNOWN = 1 << 15  # about 20 MB; a command may read a million runs of 30 files each
_known: dict[_State, str] = {}


def file_sha256(file: Path) -> str:
    """SHA-256 of a file, computed once per process while the file keeps its size and times.

    Only the newest digests are remembered.
    """
    status = file.stat()
    state = (file, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns)
    known = _known.get(state)
    if known is None:
        with open_foreign(file) as stream:
            known = hashlib.file_digest(stream, "sha256").hexdigest()
        _known[state] = known
        while len(_known) > _MOST_KNOWN:
            with suppress(KeyError, StopIteration, RuntimeError):  # another thread removed it
                del _known[next(iter(_known))]
    return known


def forget_digests() -> None:
    """Forget all computed digests."""
    _known.clear()


def covered_files(directory: RunDirectory) -> list[str]:
    """Paths of the files that have a digest: all except run.json, a report, a signature, and hidden files."""
    return [name for name, kind in _entries(directory) if kind is None and name not in UNCOVERED]


def _entries(directory: RunDirectory) -> list[tuple[str, str | None]]:
    """Paths of everything except directories and hidden files; for what is not a regular file, with its kind."""
    found = files_below(directory.path)
    return sorted((name, kind) for name, kind in found if not name.startswith(".") and "/." not in name)


def digests(directory: RunDirectory, keep: Callable[[str], bool] = lambda _name: True) -> dict[str, str]:
    """Digests of the files whose paths ``keep`` accepts."""
    return {name: file_sha256(directory.path / name) for name in covered_files(directory) if keep(name)}


def seal(directory: RunDirectory, record: RunRecord, keep: Callable[[str], bool] = lambda _name: True) -> None:
    """Write ``record`` as run.json with the current digests of all other files that ``keep`` accepts; files that are
    about to be removed are left out that way."""
    write_record(directory, record.replaced(digests=digests(directory, keep)))


def is_source(name: str) -> bool:
    return name.startswith(SOURCES)


def limited_to(record: RunRecord, keep: Callable[[str], bool]) -> RunRecord:
    """The record with the digests of only the files that ``keep`` accepts."""
    if record.digests is None:
        return record
    return record.replaced(digests={name: digest for name, digest in record.digests.items() if keep(name)})


def mismatches(
    directory: RunDirectory, record: RunRecord, keep: Callable[[str], bool] = lambda _name: True
) -> list[Mismatch]:
    """Every file that differs from the record, sorted by path; empty without digests.

    ``keep`` selects the files to look at.
    """
    known = record.digests
    if known is None:
        return []
    entries = _entries(directory)
    there = {name for name, kind in entries if kind is None and name not in UNCOVERED}
    odd = {name for name, kind in entries if kind is not None and keep(name)}
    found = [Mismatch(name, NO_FILE) for name in odd]
    found += [Mismatch(name, ADDED) for name in there if keep(name) and name not in known]
    for name, digest in known.items():
        if not keep(name) or name in odd:
            continue
        if name not in there:
            found.append(Mismatch(name, MISSING))
        elif not _has_digest(directory.path / name, digest):
            found.append(Mismatch(name, CHANGED))
    return sorted(found, key=lambda each: each.file)


def _has_digest(file: Path, digest: str) -> bool:
    """Whether a file has this digest; a file that may not be opened has not."""
    try:
        return file_sha256(file) == digest
    except RecordError:
        return False


def check(directory: RunDirectory, record: RunRecord, files: Iterable[Path]) -> None:
    """Raise MismatchError for the first of these files that differs from the record. Without digests, do nothing."""
    known = record.digests
    if known is None:
        return
    for file in files:
        name = file.relative_to(directory.path).as_posix()
        if kind_of(file) is not None:
            what: str | None = NO_FILE
        elif not file.exists():
            what = MISSING if name in known else None
        elif name not in known:
            what = ADDED
        else:
            what = None if _has_digest(file, known[name]) else CHANGED
        if what is not None:
            raise mismatch_error(directory, Mismatch(name, what))


def mismatch_error(directory: RunDirectory, mismatch: Mismatch) -> MismatchError:
    """The error for a mismatch, with what to do about it."""
    if is_source(mismatch.file):
        remedy = "'howdah run --again' makes the run again."
    else:
        remedy = "'howdah report --reanalyse' computes the results again from raw/, where the run still has it."
    return MismatchError(
        f"these results are not shown: {mismatch}",
        where=str(directory.path),
        hint=f"'howdah verify' shows every difference. {remedy}",
    )


Keep = Literal["everything", "first"]
_DATA = ("raw/", "tables/", "share/")


def keeps_data(keep: Keep, repetition: int) -> bool:
    """Whether raw/ and tables/ of this repetition (from 0) are kept. Those of invalid runs always are."""
    return keep == "everything" or repetition == 0


def can_be_analysed(record: RunRecord) -> bool:
    """Whether a run still has everything that its tables are made from."""
    return not record.data_removed and not record.raw_left_out


def has_data(directory: RunDirectory) -> bool:
    """Whether a finished run still has raw/ and tables/."""
    return not read_record(directory).data_removed


def may_remove_data(record: RunRecord, verdict: str) -> bool:
    """Whether a run's data may be removed. Those of a failed or invalid run are kept, because they show why."""
    return record.status == "finished" and verdict != "invalid"


def outlives_data(name: str) -> bool:
    """Whether a file, by its path in the run, is kept when the data are removed."""
    return not name.startswith(_DATA)


def remove_data(directory: RunDirectory) -> bool:
    """Remove raw/, tables/ and share/ of a run that counts; return whether they were removed.

    run.json says so first, so a run that is killed meanwhile has no tables that look complete. The digests of the kept
    files remain.
    """
    record = read_record(directory)
    verdict = read_verdict(directory).verdict if directory.verdict.exists() else "invalid"
    if not may_remove_data(record, verdict):
        return False
    write_record(directory, limited_to(record, outlives_data).replaced(data_removed=True))
    for folder in (directory.raw, directory.tables, directory.share):
        shutil.rmtree(folder, ignore_errors=True)
    return True
