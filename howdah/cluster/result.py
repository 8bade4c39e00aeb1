# SPDX-License-Identifier: Apache-2.0
"""Packs a run for transport with the digest of every file; checks and unpacks it at the client.

The agent's part of share/ is in the cache of both sides, so it is named and not sent.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from howdah.errors import HowdahError
from howdah.pack.archive import INDEX, extract, write_archive
from howdah.pack.content import PackedFile
from howdah.pack.shape import PackIndex, check_run_index
from howdah.record.digest import covered, file_sha256, mismatches, refusal
from howdah.record.directory import RunDirectory
from howdah.record.provenance import sha256_text
from howdah.record.run import RunRecord, read_record

_RESULTS = ("metrics.json", "verdict.json")


def results_sha256(directory: RunDirectory) -> str:
    """SHA-256 of what must be equal wherever a run is made: its measures and its verdict."""
    return sha256_text("".join(file_sha256(directory.path / name) for name in _RESULTS))


def pack_run(directory: RunDirectory, name: str, target: Path) -> str:
    """Write the run's files, without those of share/, to ``target``; the file's SHA-256."""
    names = [each for each in (*covered(directory), "run.json") if not each.startswith("share/")]
    files = [PackedFile(each, directory.path / each) for each in names]
    write_archive(target, name, PackIndex(runs=[name]), files, check_run_index)
    return file_sha256(target)


def unpack_run(pack: Path, directory: RunDirectory, plan_json: str, key: str, agent: Path | None) -> None:
    """Unpack a run into the partial ``directory``, and check every file.

    share/ comes from ``agent``, the agent's entry of the cache. Raises HowdahError where the run is not that of the
    key, or a file differs from what it was when the run ended.
    """
    shutil.rmtree(directory.path, ignore_errors=True)
    extract(pack, directory.path, check_run_index)
    (directory.path / INDEX).unlink()
    record = read_record(directory)
    if record.key != key or directory.plan.read_text(encoding="utf-8") != plan_json:
        raise HowdahError("a worker sent another run than it was asked for", where=str(directory.path))
    _fill_share(directory, record, agent)
    wrong = mismatches(directory, record)
    if wrong:
        raise refusal(directory, wrong[0])


def _fill_share(directory: RunDirectory, record: RunRecord, agent: Path | None) -> None:
    for name in record.digests or {}:
        if not name.startswith("share/"):
            continue
        inside = name.removeprefix("share/")
        source = directory.plan if inside == "plan.json" else agent / inside if agent else None
        if source is None or not source.is_file():
            raise HowdahError(f"{name} of this run is not in the cache", where=str(directory.path))
        target = directory.path / name
        target.parent.mkdir(parents=True, exist_ok=True)
        if inside == "plan.json":
            shutil.copyfile(source, target)
            continue
        try:
            os.link(source, target)
        except OSError:
            shutil.copyfile(source, target)
