# SPDX-License-Identifier: Apache-2.0
"""run.json: where a run came from, what it ran on, and how it ended."""

from __future__ import annotations

import hashlib
import json
import platform
import subprocess
import time
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any

from howdah import __version__
from howdah.extension import extensions
from howdah.metric import TABLE
from howdah.place import CHECKOUT
from howdah.record.closure import modules_of, remembered_sha256
from howdah.record.run import RUN_FORMAT, AddedPart, HostMachine, RunRecord, Software
from howdah.registered import Registered, registered

_REVISION = "# branch.oid "
_ASK_EVERY_S = 1.0
# When git ran, and the revision and state that it gave.
_git_answer: tuple[float, str | None, bool | None] = (-_ASK_EVERY_S, None, None)
DISCIPLINES = modules_of("howdah.linux.netlink.discipline")  # found by name, also in guests
ANALYSIS = ("howdah.work.analysis", *modules_of("howdah.ingest"), *DISCIPLINES)  # all but the first are found by name
RESULTS = ("measures", "checks")  # kinds of parts by which packages add to results
ANALYSIS_DATA = (TABLE,)  # files that the analysis reads beside its modules


def now() -> str:
    """The time as ISO 8601 in UTC, to the second."""
    return datetime.now(UTC).isoformat(timespec="seconds")


def sha256_text(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


@cache
def agent_sha256() -> str:
    """Version of the code that runs inside the guest, part of a run's key: the agent, the collectors, the queueing
    disciplines, and all they import.

    Imports in functions do not count: they belong to the wiring by Mininet, which no guest has. The engines that use it
    include its version in their identity.
    """
    return remembered_sha256([*modules_of("howdah.agent"), *modules_of("collectors"), *DISCIPLINES], deferred=False)


@cache
def analysis_sha256() -> str:
    """Version of the code that turns raw/ into tables, metrics and verdict, which are made again when it changes.

    It covers ``howdah.work.analysis`` and all that it imports, modules found by name, the table schemas, the table of
    metrics, and the packages that add collectors, measures or checks.
    """
    own = remembered_sha256(ANALYSIS, data=ANALYSIS_DATA)
    more = [each for kind in ("collectors", *RESULTS) for each in extensions(kind).values() if not each.is_own]
    return sha256_text("\0".join([own, *(f"{each.to_json()} {each.sha256}" for each in more)])) if more else own


def _git(*arguments: str) -> str | None:
    if CHECKOUT is None:
        return None  # site-packages may be inside somebody else's repository
    try:
        answer = subprocess.run(["git", "-C", str(CHECKOUT), *arguments], capture_output=True, text=True, check=False)
    except FileNotFoundError:
        return None
    return answer.stdout.strip() if answer.returncode == 0 else None


def software() -> Software:
    """Version and git revision of howdah; ``modified`` is true if the checkout differs from the revision.

    Git runs at most once a second, because it looks at two thousand files.
    """
    global _git_answer
    if time.monotonic() - _git_answer[0] >= _ASK_EVERY_S:
        _git_answer = (time.monotonic(), *_checkout())
    _, revision, modified = _git_answer
    return Software(version=__version__, revision=revision, modified=modified)


def _checkout() -> tuple[str | None, bool | None]:
    """The checkout's revision, and whether it differs from it; None if unknown."""
    said = _git("status", "--porcelain=v2", "--branch", "--no-ahead-behind", "--untracked-files=no")
    if said is None:
        return _git("rev-parse", "HEAD"), None
    lines = said.splitlines()
    revisions = [line.removeprefix(_REVISION) for line in lines if line.startswith(_REVISION)]
    revision = next((each for each in revisions if each != "(initial)"), None)
    return revision, not all(line.startswith("# ") for line in lines)


def machine() -> HostMachine:
    cpu = None
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        names = [
            line.split(":", 1)[1].strip() for line in cpuinfo.read_text().splitlines() if line[:10] == "model name"
        ]
        cpu = names[0] if names else None
    return HostMachine(
        machine=platform.machine(), system=platform.platform(), cpu=cpu, python=platform.python_version()
    )


def run_key(plan_json: str, engine_identity: dict[str, Any]) -> str:
    """The content address of a run: the plan, what the engine says it is made of, and the code in the guest.

    Two runs with the same key have equal tables, so a finished run need not be made again.
    """
    parts = [plan_json, repr(sorted(engine_identity.items())), agent_sha256()]
    parts += [each.extension.sha256 for each in installed_collectors(plan_json) if each.extension]
    return sha256_text("\0".join(parts))


def installed_collectors(plan_json: str) -> list[Registered]:
    """The collectors of the plan that installed packages provide."""
    installed = [each for each in registered().values() if each.extension is not None]
    asked = json.loads(plan_json)["collect"].get("intervals_us", {}) if installed else {}
    return [each for each in installed if each.name in asked]


def extensions_of(plan_json: str) -> list[AddedPart]:
    """``extensions`` of run.json: what installed packages add to a run of the plan and to its results."""
    plan = json.loads(plan_json)
    taken = [each.extension for each in installed_collectors(plan_json) if each.extension]
    taken += [each for kind in RESULTS for each in extensions(kind).values()]
    taken += [each for each in extensions("engines").values() if each.name == plan["engine"]]
    return [AddedPart(**each.to_json()) for each in taken if not each.is_own]


def first_record(plan_json: str, key: str) -> RunRecord:
    plan = json.loads(plan_json)
    return RunRecord(
        format=RUN_FORMAT,
        status="running",
        key=key,
        plan_sha256=sha256_text(plan_json),
        **{name: plan[name] for name in ("sender", "processors") if plan.get(name)},
        howdah=software(),
        host=machine(),
        started=now(),
        stages=[],
        error=None,
    )
