# SPDX-License-Identifier: Apache-2.0
"""Every place of the judge that can say no: found in its source, and watched while it works."""

from __future__ import annotations

import ast
import inspect
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import howdah.judge
from howdah.judge import check as helpers
from howdah.judge.check import none_of, within
from howdah.record.verdict import Check

JUDGE = Path(inspect.getfile(howdah.judge)).parent
_MAKERS = {Check.__name__: 2, none_of.__name__: None, within.__name__: None}  # which argument is ``ok``, if any


@dataclass(frozen=True, order=True)
class Site:
    """A call that makes a check; ``first`` and ``last`` are its lines."""

    file: str
    first: int
    last: int
    function: str

    def __str__(self) -> str:
        return f"howdah/judge/{self.file}:{self.first} ({self.function})"


def sites() -> list[Site]:
    """Those that can fail: not where ``ok`` is the constant True or None."""
    found = []
    for path in sorted(JUDGE.glob("*.py")):
        if path.name == Path(inspect.getfile(helpers)).name:
            continue  # its helpers make what their callers ask for
        tree = ast.parse(path.read_text(encoding="utf-8"))
        for function in ast.walk(tree):
            if not isinstance(function, ast.FunctionDef):
                continue
            found += [
                Site(path.name, node.lineno, node.end_lineno or node.lineno, function.name)
                for node in ast.walk(function)
                if isinstance(node, ast.Call) and _can_fail(node)
            ]
    return sorted(set(found))


def _can_fail(call: ast.Call) -> bool:
    if not isinstance(call.func, ast.Name) or call.func.id not in _MAKERS:
        return False
    if call.func.id == "within":
        measured = call.args[2] if len(call.args) > 2 else None
        return not (isinstance(measured, ast.Constant) and measured.value is None)
    position = _MAKERS[call.func.id]
    ok = call.args[position] if position is not None else None
    return not (isinstance(ok, ast.Constant) and ok.value in (True, None))


@dataclass
class Watch:
    """What was made at which place: the site's file and line of each failed check, by stage and name."""

    failed: dict[tuple[str, str], tuple[str, int]]

    def site(self, stage: str, name: str, among: list[Site]) -> Site | None:
        if (stage, name) not in self.failed:
            return None
        file, line = self.failed[stage, name]
        return next((site for site in among if site.file == file and site.first <= line <= site.last), None)


@contextmanager
def watched(blind: Site | None = None) -> Iterator[Watch]:
    """Watch every check that is made; what is made at ``blind`` passes, whatever was found."""
    watch = Watch({})
    original = Check.__init__

    def make(self: Check, name: str, stage: str, ok: bool | None, *rest: Any, **named: Any) -> None:
        file, line = _caller()
        if ok is False and blind is not None and (file, True) == (blind.file, blind.first <= line <= blind.last):
            ok = True
        if ok is False:
            watch.failed[stage, name] = (file, line)
        original(self, name, stage, ok, *rest, **named)

    Check.__init__ = make  # type: ignore[method-assign]
    try:
        yield watch
    finally:
        Check.__init__ = original  # type: ignore[method-assign]


def _caller() -> tuple[str, int]:
    """File and line of the judge that asked for a check, past the helpers that make it."""
    frame = sys._getframe(2)
    helper = inspect.getfile(helpers)
    while frame.f_code.co_filename == helper and frame.f_back is not None:
        frame = frame.f_back
    return Path(frame.f_code.co_filename).name, frame.f_lineno
