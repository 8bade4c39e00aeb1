# SPDX-License-Identifier: Apache-2.0
"""What a pack may contain: experiments of runs as in docs/data-format.md, and nothing else.

Users work in the directory of an unpacked pack. Any other file could be taken there for a program, its settings, or a
Python module.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, Literal

from pydantic import Field

from howdah.foreign import is_plain_name
from howdah.record.digest import MANIFEST, MINISIGN_SIGNATURE, SSH_SIGNATURE
from howdah.record.index import DRAWN_NAME
from howdah.record.model import FilePart

Kind = Literal["everything", "tables", "results"]
_SIGNATURES = {MANIFEST, SSH_SIGNATURE, MINISIGN_SIGNATURE}
_TOP = {"README.txt", "units.json"}
_OF_EXPERIMENT = {"experiment.json", "profile.yaml", "claims.json", DRAWN_NAME, "report.html", *_SIGNATURES}
_OF_RUN = {"plan.json", "run.json", "metrics.json", "connections.parquet", "verdict.json", "engine.log", *_SIGNATURES}
_FOLDERS = {"raw", "share"}  # the guest's records, and the files given to the guest
_TABLE = re.compile(r"[a-z0-9_]+\.parquet|ingest\.json", re.ASCII)
_DIGEST = re.compile(r"[0-9a-f]{64}", re.ASCII)
_DEEPEST = 12
_LARGEST_BYTES = 1 << 50


class IndexedFile(FilePart):
    bytes: int
    sha256: str


class PackIndex(FilePart):
    """pack.json (docs/pack.md). For the one run that a cluster's worker sends, it has only the run's name and files."""

    format: int = 0
    howdah: str | None = None
    experiments: list[str] = Field(default=[])
    runs: list[str]
    kind: Kind | None = None
    raw: bool = True
    rewritten: list[str] = Field(default=[])
    left_out: list[str] = Field(default=[])
    files: dict[str, IndexedFile] = Field(default={})


IndexCheck = Callable[[Any], None]


def check_index(index: Any) -> None:
    """Raise ValueError for the first thing in pack.json that ``howdah pack`` would not write."""
    if not isinstance(index, dict):
        raise ValueError("it is not an object")
    experiments, runs, files = (index.get(name) for name in ("experiments", "runs", "files"))
    for name, value in (("experiments", experiments), ("runs", runs)):
        if not isinstance(value, list) or not value or not all(isinstance(each, str) for each in value):
            raise ValueError(f"{name} is not a list of names, or empty")
        if len(set(value)) != len(value):
            raise ValueError(f"{name} names one of them twice")
    if not isinstance(files, dict):
        raise ValueError("files is not an object")
    assert isinstance(experiments, list)
    assert isinstance(runs, list)
    found: set[str] = set()
    for name, said in files.items():
        if not isinstance(said, dict) or not _is_size(said.get("bytes")) or not _is_digest(said.get("sha256")):
            raise ValueError(f"size or digest of {name!r} is missing")
        if name in _TOP:
            continue
        parts = name.split("/")
        if parts[0] not in experiments or not _is_of_experiment(parts):
            raise ValueError(f"{name!r} is not a file of an experiment")
        if len(parts) > 2:
            found.add("/".join(parts[:2]))
    for run in (*sorted(found - set(runs)), *runs):
        if run not in found or run not in runs or f"{run}/run.json" not in files or f"{run}/plan.json" not in files:
            raise ValueError(f"the run {run!r} is not listed, or is not whole")
    for experiment in experiments:
        if not any(run.startswith(f"{experiment}/") for run in runs):
            raise ValueError(f"the experiment {experiment!r} has no runs")


def check_run_index(index: Any) -> None:
    """Raise ValueError likewise for the index of the one run that a cluster's worker sends."""
    if not isinstance(index, dict) or not isinstance(index.get("files"), dict):
        raise ValueError("it is not an object with files")
    for name, said in index["files"].items():
        if not isinstance(said, dict) or not _is_size(said.get("bytes")) or not _is_digest(said.get("sha256")):
            raise ValueError(f"size or digest of {name!r} is missing")
        parts = name.split("/")
        if not all(map(is_plain_name, parts)) or len(parts) > _DEEPEST or not _is_of_run(parts):
            raise ValueError(f"{name!r} is not a file of a run")


def _is_of_experiment(parts: list[str]) -> bool:
    if not all(map(is_plain_name, parts)) or not 2 <= len(parts) <= _DEEPEST:
        return False
    return parts[1] in _OF_EXPERIMENT if len(parts) == 2 else _is_of_run(parts[2:])


def _is_of_run(parts: list[str]) -> bool:
    if len(parts) == 1:
        return parts[0] in _OF_RUN
    return parts[0] in _FOLDERS or (parts[0] == "tables" and len(parts) == 2 and bool(_TABLE.fullmatch(parts[1])))


def _is_size(value: Any) -> bool:
    return type(value) is int and 0 <= value <= _LARGEST_BYTES


def _is_digest(value: Any) -> bool:
    return isinstance(value, str) and bool(_DIGEST.fullmatch(value))
