# SPDX-License-Identifier: Apache-2.0
"""What programs say: help, messages and descriptions in Python code, and texts of data, templates and scripts of pages.

They are searched for the phrases of the list alone: a message is no page, so its lines and sentences have no rule.
Docstrings of ``howdah`` are checked for phrases and for the length of their sentences. Comments are not checked.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from tests.prose.page import paragraphs
from tests.prose.rule import Finding, long_sentences, phrases

PLACES = (
    "howdah/**/*.py",
    "collectors/*.py",
    "topologies/*.py",
    "docs/profile-reference.md",
    "playbooks/machines/*.yaml",
    "profiles/*.yaml",
    "profiles/cpu/*.yaml",
    "profiles/paths/*.yaml",
    "profiles/suites/*.yaml",
    "reports/*.yaml",
    "reports/dashboard/*.j2",
    "reports/dashboard/*.js",
    "reports/dashboard/*.yaml",
    "reports/js/*.js",
    "reports/nightly/templates/*.j2",
    "reports/templates/*.j2",
    "stacks/*.yaml",
)

_QUOTATION = re.compile(r'"[^"]*"')
# Its docstrings are checked.
_PACKAGE = Path(__file__).resolve().parents[2] / "howdah"


def check_source(file: Path) -> list[Finding]:
    """Phrases of the list in a file, in the order of its lines."""
    text = file.read_text(encoding="utf-8")
    lines = _of_code(text) if file.suffix == ".py" else enumerate(text.splitlines(), 1)
    found = {finding for number, line in lines for finding in _phrases(number, line)}
    if file.suffix == ".py" and file.resolve().is_relative_to(_PACKAGE):
        found |= set(check_docstrings(text))
    return sorted(found)


def check_docstrings(text: str) -> Iterator[Finding]:
    """Phrases of the list and sentences that are too long, in every docstring of a module's text.

    A docstring is read as a page is: an item of a list is a paragraph of its own, and what is indented is a formula.
    A semicolon ends a sentence, because it separates the definitions of fields and metrics.
    """
    for number, docstring in _docstrings(ast.parse(text)):
        for paragraph in paragraphs(docstring):
            first = number + paragraph.lines[0].number - 1
            yield from _phrases(first, _QUOTATION.sub('""', paragraph.text))  # others' words stay as they are
            for part in re.finditer(r"[^;]+", paragraph.text):
                for begin, message in long_sentences(part[0]):
                    line = paragraph.line_at(part.start() + begin)
                    yield Finding(number + line - 1, "sentence", message)


def _docstrings(tree: ast.Module) -> Iterator[tuple[int, str]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            docstring = ast.get_docstring(node)
            if docstring is not None:
                yield node.body[0].lineno, docstring


def _phrases(number: int, text: str) -> Iterator[Finding]:
    for pattern, instead in phrases():
        for match in pattern.finditer(text.replace("\n", " ")):
            yield Finding(number, "phrase", f"“{match.group()}”; better: {instead}")


def _of_code(text: str) -> Iterator[tuple[int, str]]:
    """Each text that a program may print, and its line; what an f-string fills in is one word."""
    tree = ast.parse(text)
    silent = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr):
            silent.add(node.value)  # a docstring
        elif isinstance(node, ast.JoinedStr):
            silent.update(node.values)
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            yield node.lineno, "".join(_part(part) for part in node.values)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and node not in silent:
            yield node.lineno, node.value


def _part(part: ast.expr) -> str:
    return str(part.value) if isinstance(part, ast.Constant) else "X"
