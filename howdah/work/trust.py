# SPDX-License-Identifier: Apache-2.0
"""Decide whether a repeated run may execute what its plan names on this machine (docs/trust.md).

A plan that this user's howdah made runs what the user named. Any other plan is a stranger's, wherever its directory
came from: howdah lists what it names, with digests, and runs nothing of it before the user agrees. What was permitted
is remembered by digest, never by name.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from howdah.build.cache import authentication_code
from howdah.build.kernel_source import read_tree
from howdah.build.stack import sources_in
from howdah.codec import encoded
from howdah.errors import HowdahError, RecordError, explain
from howdah.foreign import files_below, kind_of, open_foreign
from howdah.place import file_of, state_directory
from howdah.plan.named import BUILT, CONFINING, ENGINE, KERNEL, PROGRAM, STACK, Dependency, dependencies_of
from howdah.plan.plan import Plan
from howdah.profile.stack import read_stack
from howdah.record.provenance import sha256_text
from howdah.record.run import RunRecord

ANSWER = "--trust"
_FILE = "trusted"


class UntrustedError(HowdahError):
    """A stranger's plan names something that the user has not permitted."""


@dataclass(frozen=True)
class NamedCode:
    """Something that a plan names, and the SHA-256 of what would run, or None if it is not on this machine. ``bare``:
    it would be built without a sandbox, because this machine has none.
    """

    named: Dependency
    sha256: str | None
    bare: bool = False

    def __str__(self) -> str:
        return f"{self.named} (SHA-256 {self.sha256 or 'unknown: it is not here'})"


def signed(record: RunRecord, plan: Plan, plan_json: str) -> RunRecord:
    """Return a run's record marked as made by this user's howdah, or unchanged if the plan names nothing."""
    return record.replaced(made_here=_code(plan_json)) if dependencies_of(plan) else record


def check_trust(plan: Plan, plan_json: str, record: RunRecord, *, trust: bool) -> bool:
    """Return whether the plan is a stranger's and names something, which is then built under howdah/build/supervise.py.

    Raise UntrustedError unless the user has permitted it. With ``trust`` the user permits it, now and later, except
    builds without a sandbox, which need ``trust`` each time.
    """
    named = dependencies_of(plan)
    if not named or hmac.compare_digest((record.made_here or "").encode(), _code(plan_json).encode()):
        return False
    known = _remembered()
    required = [
        NamedCode(each, _digest(each, plan, plan_json), bare) for each, bare in _reaching_this_machine(named, plan)
    ]
    new = [each for each in required if each.bare or each.sha256 not in known]
    if not new:
        return True
    lines = "".join(f"\n    {each}" for each in new)
    absent = [each for each in new if each.sha256 is None]
    if absent:
        what = f"this plan names code that is not on this machine:{lines}"
        raise UntrustedError(what, hint="The run cannot be repeated here.")
    if not trust:
        raise UntrustedError(
            f"this plan was not made here, and repeating it runs the sender's code:{lines}",
            hint=f"Look at it first. {ANSWER} runs it, and remembers it by these digests.",
        )
    _remember(new)
    return True


def _reaching_this_machine(named: list[Dependency], plan: Plan) -> Iterator[tuple[Dependency, bool]]:
    """Yield what can reach this machine, leaving out programs confined to a guest, and whether it is built without a
    sandbox."""
    for each in named:
        problem = _unconfined(plan, each.kind)
        described = replace(each, runs=f"{each.runs}, which is not confined here ({problem})") if problem else each
        if each.kind != PROGRAM or problem:
            yield described, each.kind in BUILT and problem is not None


def _unconfined(plan: Plan, kind: str) -> str | None:
    """Return why a guest of this plan, or a build for it, could reach the user's files; None if it cannot."""
    if kind == PROGRAM and plan.engine not in CONFINING:
        return f"the engine {plan.engine} does not"
    if kind not in (PROGRAM, *BUILT):
        return None
    from howdah.engine.uml.needs import why_unconfined  # slow: tries what the machine can do

    return why_unconfined()


def _code(plan_json: str) -> str:
    return authentication_code(b"plan\0" + sha256_text(plan_json).encode())


def _digest(named: Dependency, plan: Plan, plan_json: str) -> str | None:
    """Return the SHA-256 of all files that would be read: for an engine of its plan, for a flow's program of its
    command."""
    if named.kind == ENGINE:
        return sha256_text(plan_json)
    if named.kind == PROGRAM:
        programs = [flow.program for flow in plan.flows if flow.title == named.name]
        return sha256_text(json.dumps(encoded(programs), sort_keys=True))
    try:
        if named.kind == STACK:
            return _of_stack(file_of(named.name))
        path = Path(named.name).expanduser()
        if path.is_dir():
            return read_tree(path).sha256 if named.kind == KERNEL else _of_directory(path)
        return _of_file(path)
    except (OSError, HowdahError):
        return None


def _of_directory(directory: Path) -> str:
    return _of_files(directory, (directory / name for name, _kind in sorted(files_below(directory))))


def _of_stack(file: Path) -> str:
    """Return the digest of a stack's YAML and sources, wherever they are, without other files beside them."""
    directory = read_stack(file).directory
    return _of_files(directory, [file, *sources_in(directory)])


def _of_files(directory: Path, files: Iterable[Path]) -> str:
    digest = hashlib.sha256()
    for file in files:
        name = os.path.relpath(file, directory)
        digest.update(f"{name}\0{kind_of(file) or _of_file(file)}\n".encode(errors="surrogateescape"))
    return digest.hexdigest()


def _of_file(file: Path) -> str:
    with open_foreign(file) as opened:
        return hashlib.file_digest(opened, "sha256").hexdigest()


def _remembered() -> set[str]:
    try:
        with open_foreign(state_directory() / _FILE) as opened:
            return {line.split(b" ", 1)[0].decode() for line in opened.read().splitlines()}
    except (OSError, RecordError, UnicodeError):
        return set()


def _remember(permitted: Iterable[NamedCode]) -> None:
    file = state_directory() / _FILE
    text = "".join(f"{each.sha256} {each.named.kind} {json.dumps(each.named.name)}\n" for each in permitted)
    try:
        file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        handle = os.open(file, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        with os.fdopen(handle, "w", encoding="utf-8") as opened:
            opened.write(text)
    except OSError as error:
        what = f"what you trust cannot be remembered: {explain(error)}"
        raise HowdahError(what, where=str(file)) from error
