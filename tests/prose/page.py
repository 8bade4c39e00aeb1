# SPDX-License-Identifier: Apache-2.0
"""The prose of a Markdown page: its paragraphs, with code, comments and link targets taken out."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

Kind = Literal["text", "heading", "table"]

_FENCE = re.compile(r"^\s*(?:```|~~~)")
_ITEM = re.compile(r"^\s*(?:[-*+]|\d+\.)\s+")
_CODE = re.compile(r"(`+)(?!`).*?(?<!`)\1(?!`)")
_LINK = re.compile(r"!?\[([^\]]*)\]\([^)\s]*\)")
_URL = re.compile(r"<?https?://\S+")
# A title in bold that begins an item or a paragraph is no sentence of it.
_TITLE = re.compile(r"^\*\*[^*]+[.?!:]\*\*\s+")
_QUOTATION = re.compile(r"“[^”]*”")

# The full stop of these does not end a sentence.
_ABBREVIATION = re.compile(r"\b(?:e\.g|i\.e|cf|al|vs|etc|Fig|Figs|fig|No|Eq|Sec|approx|resp)\.$|^\d+\.$")
_END = re.compile(r"[.!?:]?[.!?][)*_”\"']*(?=\s)")


@dataclass(frozen=True)
class Line:
    """One line of prose. ``number`` counts from 1; ``width`` is in columns, without the targets of links."""

    number: int
    text: str
    width: int


@dataclass(frozen=True)
class Paragraph:
    """Lines that belong together: a paragraph, an item of a list, a heading or a row of a table."""

    kind: Kind
    lines: tuple[Line, ...]

    @property
    def text(self) -> str:
        return "\n".join(line.text for line in self.lines)

    def line_at(self, position: int) -> int:
        """The number of the line that holds this position of ``text``."""
        for line in self.lines:
            if position <= len(line.text):
                return line.number
            position -= len(line.text) + 1
        return self.lines[-1].number


def paragraphs(text: str) -> Iterator[Paragraph]:
    """The paragraphs of a page in their order. Code blocks, comments and front matter are left out."""
    gathered: list[Line] = []
    in_code = in_comment = False
    for number, raw in enumerate(text.splitlines(), 1):
        if in_code or _FENCE.match(raw):
            in_code ^= bool(_FENCE.match(raw))
            yield from _paragraph("text", gathered)
            continue
        if in_comment or raw.lstrip().startswith("<!--"):
            in_comment = "-->" not in raw
            yield from _paragraph("text", gathered)
            continue
        stripped = raw.strip()
        line = Line(number, plain(_TITLE.sub("", _ITEM.sub("", raw).strip())), len(_LINK.sub(r"\1", raw)))
        if not stripped or (raw.startswith("    ") and not gathered):
            yield from _paragraph("text", gathered)
        elif stripped.startswith(("#", "|")):
            yield from _paragraph("text", gathered)
            yield Paragraph("heading" if stripped.startswith("#") else "table", (line,))
        else:
            if _ITEM.match(raw):
                yield from _paragraph("text", gathered)
            gathered.append(line)
    yield from _paragraph("text", gathered)


def _paragraph(kind: Kind, gathered: list[Line]) -> Iterator[Paragraph]:
    if gathered:
        yield Paragraph(kind, tuple(gathered))
        gathered.clear()


def plain(text: str) -> str:
    """Text as it is read: a span of code becomes one word, a link its text, an address nothing."""
    return _URL.sub("", _LINK.sub(r"\1", _CODE.sub("CODE", text))).replace("**", "")


def sentences(text: str) -> Iterator[tuple[int, str]]:
    """Each sentence and where it begins."""
    begin = 0
    for end in _END.finditer(text):
        if _ABBREVIATION.search(text[begin : end.end()]):
            continue
        if text[end.end()] != "\n" and text[end.end() :].lstrip()[:1].islower():
            continue
        yield begin, text[begin : end.end()]
        begin = end.end() + 1
    if text[begin:].strip():
        yield begin, text[begin:]


def without_quotations(text: str) -> str:
    """The text with “what others say” blanked, at the same length."""
    return _QUOTATION.sub(lambda found: "“" + " " * (len(found.group()) - 2) + "”", text)
