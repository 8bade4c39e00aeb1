# SPDX-License-Identifier: Apache-2.0
"""Parse a profile: YAML to plain values, with the line of each.

It uses the parser's *events* instead of a loader, so no other objects are constructed. Tags, anchors, aliases, merge
keys, duplicate keys and second documents are refused; depth and size are limited. Scalars follow YAML 1.2's core schema
(``off`` and ``no`` are texts, not booleans).
"""

from __future__ import annotations

import copy
import re
import stat
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml import events as yaml_events
from ruamel.yaml.error import MarkedYAMLError, YAMLError

from howdah.errors import ProfileError

LARGEST_FILE_BYTES = 1 << 20
LARGEST_DEPTH = 32
MOST_VALUES = 20_000
_KEPT_CHARACTERS = 16 << 10  # longest text that is cached
_READ_TWICE_CHARACTERS = 64 << 10  # longest text that is parsed again for a better error

_INTEGER = re.compile(r"[-+]?[0-9]+|0x[0-9a-fA-F]+|0o[0-7]+", re.ASCII)
_FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?", re.ASCII)
_NOT_FINITE = re.compile(r"[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)", re.ASCII)
_LONGEST_NUMBER = 64
# Tabs and YAML 1.1's other line ends: the parsers in C (libyaml) and Python treat them differently.
_READ_DIFFERENTLY = re.compile("[\t\x85\u2028\u2029\ufeff]")

Path_ = tuple[str | int, ...]
Scalar = str | int | float | bool | None


class _NotYamlError(ProfileError):
    """The YAML parser itself refused the text."""


@dataclass
class Document:
    """A profile as plain dictionaries, lists and scalars, with the place (``file:line``) of every value by its path."""

    data: dict[str, Any]
    places: dict[Path_, str] = field(default_factory=dict)
    text: str = ""

    def copy(self) -> Document:
        """A copy whose data and places can be changed."""
        return Document(copy.deepcopy(self.data), dict(self.places), self.text)

    def below(self, place: Path_) -> dict[Path_, str]:
        """The places of all values at or below ``place``, by their paths relative to it."""
        return {path[len(place) :]: line for path, line in self.places.items() if path[: len(place)] == place}

    def place(self, path: Path_) -> str:
        """The place of the value at ``path``, or of its nearest ancestor that was written."""
        while path and path not in self.places:
            path = path[:-1]
        return self.places[path]


def read_document(path: Path, what: str = "profile") -> Document:
    """Read a profile's file. Raises ProfileError, which calls it ``what``, unless it is a small UTF-8 YAML mapping."""
    text = read_text(path, what)
    data, places = parse_yaml(text, str(path))
    if data is None:
        hint = "see profiles/quick.yaml for a small one" if what == "profile" else None
        raise ProfileError(f"the {what} is empty", where=str(path), hint=hint)
    if not isinstance(data, dict):
        kind = "a list" if isinstance(data, list) else "a single value"
        raise ProfileError(f"a {what} is a mapping of fields, not {kind}", where=places[()])
    return Document(data, places, text)


def read_text(path: Path, what: str = "profile") -> str:
    """The text of a regular file of at most LARGEST_FILE_BYTES; ``what`` names it in errors. Raises ProfileError."""
    where = str(path)
    try:
        status = path.stat()
        if stat.S_ISDIR(status.st_mode):
            raise ProfileError(f"this is a directory, a {what} is a file", where=where, hint=_yaml_files(path))
        if not stat.S_ISREG(status.st_mode):
            raise ProfileError("this is not a regular file", where=where)
        with path.open("rb") as file:
            content = file.read(LARGEST_FILE_BYTES + 1)
    except FileNotFoundError:
        hint = "howdah list profiles shows them" if what == "profile" else None
        raise ProfileError(f"there is no such {what}", where=where, hint=hint) from None
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise ProfileError(f"the {what} cannot be read: {reason}", where=where) from None
    if len(content) > LARGEST_FILE_BYTES:
        raise ProfileError(
            f"the file is larger than {LARGEST_FILE_BYTES >> 20} MiB, too large for a {what}", where=where
        )
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        odd = f"the file is not UTF-8 text (byte 0x{content[error.start]:02x})"
        raise ProfileError(odd, where=f"{where}:{line}", hint="save it as UTF-8") from None


def _yaml_files(directory: Path) -> str | None:
    try:
        names = sorted(entry.name for entry in directory.iterdir() if entry.suffix in (".yaml", ".yml"))
    except OSError:
        return None
    return f"it holds {', '.join(names[:8])}" if names else None


def parse_yaml(text: str, name: str, *, lines: bool = True) -> tuple[Any, dict[Path_, str]]:
    """The value of a YAML text, and the place of each value in it: ``name`` and, with ``lines``, the line.

    Texts are cached, because suites, the atlas and profiles with ``path.like`` parse the same files many times. The
    caller owns the result and may change it.

    Raises ProfileError.
    """
    value, places = (_parse_again if len(text) <= _KEPT_CHARACTERS else _parse)(text, name, lines)
    return _copy(value), dict(places)


def _copy(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _copy(item) for key, item in value.items()}
    return [_copy(item) for item in value] if isinstance(value, list) else value


def _parse(text: str, name: str, lines: bool) -> tuple[Any, dict[Path_, str]]:
    if not _READ_DIFFERENTLY.search(text):
        try:
            return _parse_with(YAML(typ="safe"), text, name, lines)
        except _NotYamlError:
            if len(text) > _READ_TWICE_CHARACTERS:
                raise
    # The parser in Python takes ten times as long, and locates errors better.
    return _parse_with(YAML(typ="safe", pure=True), text, name, lines)


def _parse_with(parser: YAML, text: str, name: str, lines: bool) -> tuple[Any, dict[Path_, str]]:
    builder = _Builder(name, lines=lines)
    events = parser.parse(text)
    try:
        while (event := _next(events, builder)) is not None:
            builder.take(event)
    except MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        where = builder.line(mark.line) if mark is not None else name
        problem = " ".join(str(part) for part in (error.context, error.problem) if part)
        raise _NotYamlError(f"this is not YAML: {problem}", where=where) from None
    except YAMLError as error:
        line = text.count("\n", 0, getattr(error, "position", 0))
        character = getattr(error, "character", None)
        shown = f"U+{character:04X}" if isinstance(character, int) else repr(character)
        what = f"the character {shown} is not allowed" if character is not None else str(error).splitlines()[0]
        raise _NotYamlError(f"this is not YAML: {what}", where=builder.line(line)) from None
    return builder.value, builder.places


def _next(events: Iterator[Any], builder: _Builder) -> Any:
    """The next event, or None. The parser's assertions, which ``%YAML 1.12`` violates, count as syntax errors."""
    try:
        return next(events, None)
    except YAMLError:
        raise
    except Exception as error:  # noqa: BLE001 - what the parser does not expect is a text that it cannot read
        reason = str(error).splitlines()[0] if str(error) else f"the parser failed ({type(error).__name__})"
        raise _NotYamlError(f"this is not YAML: {reason}", where=builder.line(builder.last_line)) from None


_parse_again = lru_cache(maxsize=256)(_parse)


@dataclass
class _Open:
    value: dict[str, Any] | list[Any]
    path: Path_
    key: str | None = None


class _Builder:
    def __init__(self, name: str, *, lines: bool) -> None:
        self.name = name
        self.lines = lines
        self.value: Any = None
        self.places: dict[Path_, str] = {(): self.line(0)}
        self._open: list[_Open] = []
        self.last_line = 0  # line of the last event
        self._documents = 0
        self._values = 0

    def take(self, event: Any) -> None:
        self.last_line = event.end_mark.line
        if isinstance(event, yaml_events.DocumentStartEvent):
            self._documents += 1
            if self._documents > 1:
                raise self._error(event, "a second document begins here; a profile is one document")
        elif isinstance(event, yaml_events.AliasEvent):
            raise self._error(event, f"aliases (*{event.anchor}) are not supported; write the value out")
        elif isinstance(event, yaml_events.MappingEndEvent | yaml_events.SequenceEndEvent):
            self._open.pop()
        elif isinstance(event, yaml_events.NodeEvent):
            self._node(event)

    def _node(self, event: Any) -> None:
        if event.anchor is not None:
            raise self._error(event, f"anchors (&{event.anchor}) are not supported; write the value out")
        if event.tag is not None:
            raise self._error(event, f"tags ({event.tag}) are not supported; write a plain value")
        self._values += 1
        if self._values > MOST_VALUES:
            raise self._error(event, f"there are more than {MOST_VALUES} values, too many for a profile")
        if isinstance(event, yaml_events.ScalarEvent):
            self._scalar(event)
        else:
            is_mapping = isinstance(event, yaml_events.MappingStartEvent)
            if len(self._open) >= LARGEST_DEPTH:
                raise self._error(event, f"values are nested more than {LARGEST_DEPTH} deep")
            opened = _Open({} if is_mapping else [], ())
            opened.path = self._place(event, opened.value)
            self._open.append(opened)

    def _scalar(self, event: Any) -> None:
        parent = self._open[-1] if self._open else None
        if parent is not None and isinstance(parent.value, dict) and parent.key is None:
            key = event.value
            if not event.style and key == "<<":
                raise self._error(event, "merge keys (<<) are not supported; write the fields out")
            if key in parent.value:
                first = self.places[(*parent.path, key)].rpartition(":")[2]
                raise self._error(event, f"{key!r} is given twice (first on line {first})")
            parent.key = key
            parent.value[key] = None
            self.places[(*parent.path, key)] = self._where(event)
            return
        # ruamel marks joined lines of a folded text with a bell character.
        text = event.value.replace("\a", "") if event.style == ">" else event.value
        self._place(event, text if event.style else self._resolve(event))

    def _place(self, event: Any, value: Any) -> Path_:
        if not self._open:
            self.value = value
            self.places[()] = self._where(event)
            return ()
        parent = self._open[-1]
        if isinstance(parent.value, list):
            path: Path_ = (*parent.path, len(parent.value))
            parent.value.append(value)
            self.places[path] = self._where(event)
        elif parent.key is None:
            raise self._error(event, "a field's name must be a plain word")
        else:
            path = (*parent.path, parent.key)
            parent.value[parent.key] = value
            parent.key = None
        return path

    def _resolve(self, event: Any) -> Any:
        """The value of a plain scalar in YAML 1.2's core schema. Raises ProfileError for infinity and NaN."""
        text = event.value
        if text in ("", "~", "null", "Null", "NULL"):
            return None
        if text in ("true", "True", "TRUE", "false", "False", "FALSE"):
            return text.lower() == "true"
        if _NOT_FINITE.fullmatch(text):
            raise self._error(event, f"{text} is not a number that can be used here")
        if _INTEGER.fullmatch(text) or _FLOAT.fullmatch(text):
            if len(text) > _LONGEST_NUMBER:
                raise self._error(event, f"a number with {len(text)} digits is too long")
            return _number(text)
        return text

    def _where(self, event: Any) -> str:
        return self.line(event.start_mark.line)

    def line(self, index: int) -> str:
        """``profiles/quick.yaml:12`` for the line with index 11."""
        return f"{self.name}:{index + 1}" if self.lines else self.name

    def _error(self, event: Any, what: str) -> ProfileError:
        return ProfileError(what, where=self._where(event))


class WrittenFloat(float):
    """A decimal number that remembers its spelling: a kernel called 6.10 must not become 6.1."""

    text: str

    def __new__(cls, text: str) -> WrittenFloat:
        self = super().__new__(cls, text)
        self.text = text
        return self

    def __repr__(self) -> str:
        return self.text

    __str__ = __repr__


def _number(text: str) -> int | float | str:
    if text.startswith("0x"):
        return int(text, 16)
    if text.startswith("0o"):
        return int(text, 8)
    if _INTEGER.fullmatch(text):
        return int(text)
    value = WrittenFloat(text)
    return value if abs(value) != float("inf") else text
