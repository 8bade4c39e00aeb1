# SPDX-License-Identifier: Apache-2.0
"""run.json: where a run came from, what it ran on, and how it ended."""

from __future__ import annotations

import hashlib
import platform
import subprocess
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any

from howdah import __version__

PROVENANCE_FORMAT = 1
_ROOT = Path(__file__).resolve().parents[2]


def now() -> str:
    """The time as ISO 8601 in UTC, to the second."""
    return datetime.now(UTC).isoformat(timespec="seconds")


def sha256_text(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def source_sha256(*roots: Path) -> str:
    """Hash of every Python file below the roots, by relative name and content: the version of a piece of our code."""
    digest = hashlib.sha256()
    for root in roots:
        for file in sorted(root.rglob("*.py")):
            digest.update(str(file.relative_to(root)).encode() + b"\0" + file.read_bytes() + b"\0")
    return digest.hexdigest()


def agent_sha256() -> str:
    """Version of the code that runs inside the guest: part of a run's key."""
    return source_sha256(_ROOT / "howdah" / "agent", _ROOT / "collectors")


@cache
def analysis_sha256() -> str:
    """Version of the code that turns raw/ into tables, metrics and verdict: those are made again when it changes."""
    return source_sha256(*(_ROOT / "howdah" / name for name in ("tables", "ingest", "measure", "judge")))


def _git(*arguments: str) -> str | None:
    try:
        answer = subprocess.run(["git", "-C", str(_ROOT), *arguments], capture_output=True, text=True, check=False)
    except FileNotFoundError:
        return None
    return answer.stdout.strip() if answer.returncode == 0 else None


def software() -> dict[str, Any]:
    """Version and git revision of howdah; ``modified`` is true when the checkout differs from the revision."""
    changes = _git("status", "--porcelain", "--untracked-files=no")
    return {
        "version": __version__,
        "revision": _git("rev-parse", "HEAD"),
        "modified": bool(changes) if changes is not None else None,
    }


def machine() -> dict[str, Any]:
    cpu = None
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        names = [
            line.split(":", 1)[1].strip() for line in cpuinfo.read_text().splitlines() if line[:10] == "model name"
        ]
        cpu = names[0] if names else None
    return {
        "machine": platform.machine(),
        "system": platform.platform(),
        "cpu": cpu,
        "python": platform.python_version(),
    }


def run_key(plan_json: str, engine_identity: dict[str, Any]) -> str:
    """The content address of a run: plan, everything the engine says it is made of, and the guest-side code.

    Two runs with the same key have equal tables, so a finished run with the key need not be made again.
    """
    parts = [plan_json, repr(sorted(engine_identity.items())), agent_sha256()]
    return sha256_text("\0".join(parts))


def first_record(plan_json: str, key: str) -> dict[str, Any]:
    return {
        "format": PROVENANCE_FORMAT,
        "status": "running",
        "key": key,
        "plan_sha256": sha256_text(plan_json),
        "howdah": software(),
        "host": machine(),
        "started": now(),
        "stages": [],
        "error": None,
    }
