# SPDX-License-Identifier: Apache-2.0
"""The judge with one condition changed at a time, to see whether a liar or an honest run notices.

A finer look than making a whole check blind: each comparison becomes always true or always false, each operand of an
``and`` or ``or`` loses its say. ``python -m tests.liars.mutants`` lists the changes that nobody notices, in a quarter
of an hour. Many of them are texts of messages, guards against missing data, and what the plans of the liars do
not ask for; the unit tests of the judge cover those.
"""

from __future__ import annotations

import ast
import copy
import importlib
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from types import CodeType, FunctionType
from typing import Any

from howdah.judge.run import judge
from tests.liars.bench import Bench
from tests.liars.registry import RUNS
from tests.liars.sites import JUDGE

_SKIPPED = ("__init__.py", "run.py")  # no conditions of a check


@dataclass(frozen=True)
class Mutant:
    """One change of one function; ``code`` is the function's with it."""

    module: str
    function: str
    line: int
    what: str
    code: CodeType

    def __str__(self) -> str:
        return f"howdah/judge/{self.module}.py:{self.line} ({self.function}): {self.what}"


def mutants() -> Iterator[Mutant]:
    for path in sorted(JUDGE.glob("*.py")):
        if path.name in _SKIPPED:
            continue
        tree = ast.parse(path.read_text(encoding="utf-8"))
        for function in tree.body:
            if isinstance(function, ast.FunctionDef):
                yield from _of_function(path, tree, function)


def _of_function(path: Path, tree: ast.Module, function: ast.FunctionDef) -> Iterator[Mutant]:
    conditions = [node for node in ast.walk(function) if isinstance(node, ast.Compare | ast.BoolOp)]
    for number, condition in enumerate(conditions):
        changes: list[tuple[str, ast.expr]] = []
        if isinstance(condition, ast.Compare):
            changes = [(str(value), ast.Constant(value)) for value in (True, False)]
        else:
            neutral = isinstance(condition.op, ast.And)
            for position in range(len(condition.values)):
                less = copy.deepcopy(condition)
                less.values[position] = ast.Constant(neutral)
                changes.append((ast.unparse(less), less))
        for what, instead in changes:
            changed = copy.deepcopy(tree)
            mine = next(node for node in changed.body if getattr(node, "name", None) == function.name)
            found = [node for node in ast.walk(mine) if isinstance(node, ast.Compare | ast.BoolOp)][number]
            _Replace(found, instead).visit(mine)
            ast.fix_missing_locations(changed)
            code = _code_of(compile(changed, str(path), "exec", dont_inherit=True), function.name)
            text = f"{ast.unparse(condition)} becomes {what}"
            yield Mutant(path.stem, function.name, condition.lineno, text, code)


class _Replace(ast.NodeTransformer):
    def __init__(self, old: ast.AST, new: ast.expr) -> None:
        self._old, self._new = old, new

    def visit(self, node: ast.AST) -> Any:
        return self._new if node is self._old else super().visit(node)


def _code_of(module: CodeType, name: str) -> CodeType:
    return next(each for each in module.co_consts if isinstance(each, CodeType) and each.co_name == name)


def noticed(mutant: Mutant, oracles: list[Callable[[], bool]]) -> bool:
    """Whether one of the oracles says something else with this change; an exception is something else."""
    function = getattr(importlib.import_module(f"howdah.judge.{mutant.module}"), mutant.function)
    assert isinstance(function, FunctionType)
    original = function.__code__
    function.__code__ = mutant.code
    try:
        return any(not _holds(oracle) for oracle in oracles)
    finally:
        function.__code__ = original


def _holds(oracle: Callable[[], bool]) -> bool:
    try:
        return oracle()
    except Exception:  # noqa: BLE001 - a judge that breaks has been noticed
        return False


def oracles(bench: Bench) -> list[Callable[[], bool]]:
    """Honest runs that pass, and liars that are caught by their check."""
    found: list[Callable[[], bool]] = []

    def passes(name: str) -> Callable[[], bool]:
        honest = bench.honest(name)
        return lambda: judge(honest.directory, honest.plan).verdict == "pass"

    def catches(number: int) -> Callable[[], bool]:
        liar = RUNS[number]
        directory, plan = liar.make(bench, bench.root / f"liar-{liar.name}")
        place = (liar.caught.stage, liar.caught.name, False)
        words = liar.caught.words
        return lambda: any(
            (each.stage, each.name, each.ok) == place and words in each.message
            for each in judge(directory, plan).checks
        )

    found += [passes(name) for name in dict.fromkeys(liar.honest for liar in RUNS)]
    return found + [catches(number) for number in range(len(RUNS))]


def main() -> int:
    with tempfile.TemporaryDirectory() as place:
        asked = oracles(Bench(Path(place)))
        survivors = 0
        total = 0
        for mutant in mutants():
            total += 1
            if not noticed(mutant, asked):
                survivors += 1
                print(mutant)  # noqa: T201
        print(f"{survivors} of {total} changes of the judge were noticed by nobody")  # noqa: T201
    return 0


if __name__ == "__main__":
    sys.exit(main())
