# SPDX-License-Identifier: Apache-2.0
"""The rules: each looks at a page and yields findings."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML

from tests.prose.page import Paragraph, paragraphs, sentences, without_quotations

HERE = Path(__file__).resolve().parent
LONGEST_LINE = 120
LONGEST_SENTENCE = 36


@dataclass(frozen=True, order=True)
class Finding:
    """One habit at one line."""

    line: int
    rule: str
    message: str


def check(text: str) -> list[Finding]:
    """Findings of all rules on a Markdown page, in the order of its lines."""
    found: set[Finding] = set()
    for paragraph in paragraphs(text):
        found.update(_phrases(paragraph))
        if paragraph.kind == "text":
            found.update(_long_lines(paragraph))
            found.update(_long_sentences(paragraph))
            found.update(_sentences_of_a_line(paragraph))
        if paragraph.kind != "table":
            found.update(_proselint(paragraph))
    return sorted(found)


def _phrases(paragraph: Paragraph) -> Iterator[Finding]:
    text = without_quotations(paragraph.text).replace("\n", " ")
    for pattern, instead in phrases():
        for match in pattern.finditer(text):
            yield Finding(paragraph.line_at(match.start()), "phrase", f"“{match.group()}”; better: {instead}")


def _long_lines(paragraph: Paragraph) -> Iterator[Finding]:
    for line in paragraph.lines:
        if line.width > LONGEST_LINE:
            yield Finding(line.number, "line", f"{line.width} columns, more than {LONGEST_LINE}: break it")


def _long_sentences(paragraph: Paragraph) -> Iterator[Finding]:
    for begin, message in long_sentences(paragraph.text):
        yield Finding(paragraph.line_at(begin), "sentence", message)


def long_sentences(text: str) -> Iterator[tuple[int, str]]:
    """Where each sentence that is too long begins, and what is wrong with it."""
    for begin, sentence in sentences(text):
        words = len([word for word in sentence.split() if any(map(str.isalpha, word))])
        if words > LONGEST_SENTENCE:
            first = begin + len(sentence) - len(sentence.lstrip())
            yield first, f"{words} words in a sentence, more than {LONGEST_SENTENCE}: make two of it"


def _sentences_of_a_line(paragraph: Paragraph) -> Iterator[Finding]:
    for line in paragraph.lines:
        if len(list(sentences(line.text))) > 1:
            yield Finding(line.number, "sentence", "more than one sentence in a line: break the line after the first")


def _proselint(paragraph: Paragraph) -> Iterator[Finding]:
    content = without_quotations(paragraph.text)
    for begin, name, message in _proselint_of(content):
        yield Finding(paragraph.line_at(begin), name, message)


def _proselint_of(content: str) -> Iterator[tuple[int, str, str]]:
    from proselint.tools import LintFile

    _register_checks()
    for result in LintFile("page", content).lint(_proselint_settings()):
        found = result.check_result
        yield max(found.span[0] - 1, 0), found.check_path, found.message.split("\n")[0]


@cache
def _register_checks() -> None:
    from proselint.checks import __register__
    from proselint.registry import CheckRegistry

    CheckRegistry().register_many(__register__)


@cache
def _proselint_settings() -> Any:
    # Of names that begin alike, proselint heeds the first: checks stand before their groups there.
    return json.loads((HERE / "proselint.json").read_text(encoding="utf-8"))


@cache
def phrases() -> tuple[tuple[re.Pattern[str], str], ...]:
    """The project's own list: what to find, and what to write."""
    data = YAML(typ="safe", pure=True).load(HERE / "phrases.yaml")
    return tuple((re.compile(rf"\b(?:{key})\b", re.IGNORECASE), str(value)) for key, value in data.items())
