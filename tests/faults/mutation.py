# SPDX-License-Identifier: Apache-2.0
"""Wrong inputs, made from good ones: YAML changed as text and as a tree, ``--set`` overrides, JSON and binary files.

Everything is drawn from the ``random.Random`` given, so that a seed and a number name one input for ever.
"""

from __future__ import annotations

import copy
import json
import random
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from tests.faults.material import (
    AMOUNTS,
    DIMENSIONS,
    LARGE,
    LINE,
    NUMBERS,
    PATHS,
    QUANTITY,
    TEXT_PIECES,
    TEXTS,
    UNITS,
)

Tree = Any
Place = tuple[str | int, ...]


@dataclass(frozen=True)
class Corpus:
    """Good inputs of one kind: their names, texts and trees, and all values and names there are in them."""

    texts: dict[str, str]
    trees: dict[str, Tree]
    keys: list[str]
    values: list[Tree]
    alike: dict[str, list[Tree]]  # values by the name of their field
    fields: list[str]

    @classmethod
    def of(cls, texts: dict[str, str], trees: dict[str, Tree], known_fields: list[str]) -> Corpus:
        """``known_fields`` are dotted names that may be set, besides those that the trees have."""
        keys: set[str] = set()
        values: list[Tree] = []
        fields = set(known_fields)
        alike: dict[str, list[Tree]] = {}
        for tree in trees.values():
            for place, value in nodes(tree):
                values.append(value)
                fields.add(".".join(map(str, place)))
                keys.update(str(part) for part in place)
                alike.setdefault(_name(place), []).append(value)
        keys.update(part for name in known_fields for part in name.split("."))
        return cls(texts, trees, sorted(keys), values, alike, sorted(fields - {""}))


def nodes(tree: Tree, place: Place = ()) -> Iterator[tuple[Place, Tree]]:
    """Every value in a tree with its place, the tree itself first."""
    yield place, tree
    if isinstance(tree, dict):
        for key, value in tree.items():
            yield from nodes(value, (*place, key))
    elif isinstance(tree, list):
        for index, value in enumerate(tree):
            yield from nodes(value, (*place, index))


def _name(place: Place) -> str:
    """Of the field: what a list holds has the name of the list."""
    return next((part for part in reversed(place) if isinstance(part, str)), "")


class Mutator:
    """Draws wrong inputs of one kind."""

    def __init__(self, corpus: Corpus, chance: random.Random) -> None:
        self.corpus = corpus
        self.chance = chance

    def document(self) -> tuple[str, bytes]:
        """The name of a good input, and a wrong one made of it."""
        name = self.chance.choice(list(self.corpus.texts))
        if self.chance.random() < 0.35:
            return name, self._encode(self.text(self.corpus.texts[name]))
        tree = self.tree(self.corpus.trees[name])
        return name, json.dumps(tree, ensure_ascii=False).encode("utf-8", "surrogatepass")

    def override(self, base: str) -> str:
        """A ``FIELD=VALUE`` as ``--set`` takes it, for the good input of that name; not always one that is right."""
        chance = self.chance
        own = [place for place, _ in nodes(self.corpus.trees[base]) if place]
        if chance.random() < 0.6:
            place = chance.choice(own)
            return f"{'.'.join(map(str, place))}={json.dumps(self.plausible(_name(place)), ensure_ascii=False)}"
        name = chance.choice(self.corpus.fields)
        if chance.random() < 0.2:
            parts = name.split(".")
            at = chance.randrange(len(parts))
            parts[at] = chance.choice(["0", "1", "999999", "-1", "", "٣", *self.corpus.keys])
            name = ".".join(parts)
        if chance.random() < 0.05:
            name = chance.choice(["", ".", "..", "a." * 40, "=", "path..rate", "flows." + "9" * 30, " path.rate "])
        value = json.dumps(self.value(), ensure_ascii=False) if chance.random() < 0.7 else chance.choice(TEXT_PIECES)
        # Nobody can give a NUL or a lone surrogate on a command line.
        return f"{name}={value}".replace("\x00", "")[:100_000]

    def text(self, text: str) -> str:
        """A text with one to four pieces taken out, put in, moved or doubled."""
        chance = self.chance
        for _ in range(chance.choice([1, 1, 2, 4])):
            lines = LINE.findall(text)
            at, line = chance.randrange(len(text) + 1), chance.randrange(len(lines))
            match chance.randrange(9):
                case 0:
                    text = text[:at] + chance.choice(TEXT_PIECES) + text[at:]
                case 1:
                    text = text[:at]
                case 2:
                    text = text[:at] + text[at + chance.choice([1, 2, 10, 100]) :]
                case 3:
                    text = "".join((*lines[:line], *lines[line + 1 :]))
                case 4:
                    text = "".join((*lines[:line], lines[line] * chance.choice([2, 3, 500]), *lines[line + 1 :]))
                case 5:
                    text = "".join(
                        (*lines[:line], " " * chance.choice([1, 2, 7, 2000]) + lines[line], *lines[line + 1 :])
                    )
                case 6:
                    text = self._renumbered(text)
                case 7:
                    other = chance.randrange(len(lines))
                    lines[line], lines[other] = lines[other], lines[line]
                    text = "".join(lines)
                case 8:
                    head, colon, _ = lines[line].partition(":")
                    written = chance.choice([*TEXTS, *PATHS, *NUMBERS])
                    lines[line] = f"{head}{colon} {written}\n"
                    text = "".join(lines)
            if not text:
                break
        return text

    def tree(self, tree: Tree) -> Tree:
        """A tree with one to four values replaced, taken out, renamed, doubled or nested."""
        tree = copy.deepcopy(tree)
        for _ in range(self.chance.choice([1, 1, 1, 2, 4])):
            tree = self._changed(tree)
        return tree

    def _changed(self, tree: Tree) -> Tree:
        chance = self.chance
        found = [(place, value) for place, value in nodes(tree) if place]
        if not found or chance.random() < 0.005:
            return self.value()
        place, value = chance.choice(found)
        parent = tree
        for part in place[:-1]:
            parent = parent[part]
        last: Any = place[-1]
        match chance.randrange(20):
            case 14 | 15:
                self._splice(tree)
            case 16 | 17 | 18 | 19:
                parent[last] = self._other_amount(value)
            case 0:
                del parent[last]
            case 1 if isinstance(parent, dict):
                parent[chance.choice(self.corpus.keys)] = parent.pop(last)
            case 2 if isinstance(parent, list):
                parent.extend(copy.deepcopy(value) for _ in range(chance.choice([1, 2, 50, 1500])))
            case 3:  # a sweep
                parent[last] = [self.plausible(_name(place)) for _ in range(chance.choice([1, 2, 3, 40]))]
            case 4:
                parent[last] = list(range(chance.choice([2, 30, 900, 3000, 15_000])))
            case 5:
                parent[last] = [copy.deepcopy(value)]
            case 6 if isinstance(value, dict):
                value[chance.choice(self.corpus.keys)] = self.value()
            case 7:
                parent[last] = copy.deepcopy(chance.choice(self.corpus.values))
            case 8 if isinstance(value, str):
                parent[last] = self._renumbered(value)
            case 9 | 10 | 11:
                parent[last] = self.plausible(_name(place))
            case _:
                parent[last] = self.value()
        return tree

    def _splice(self, tree: Tree) -> None:
        """Put what another input has somewhere into the same place of this one."""
        other = self.corpus.trees[self.chance.choice(list(self.corpus.trees))]
        places = [(place, value) for place, value in nodes(other) if place and all(isinstance(p, str) for p in place)]
        place, value = self.chance.choice(places)
        for part in place[:-1]:
            tree = tree.setdefault(part, {}) if isinstance(tree, dict) else None
        if isinstance(tree, dict):
            tree[place[-1]] = copy.deepcopy(value)

    def _other_amount(self, value: Tree) -> Tree:
        """Another amount of the same dimension, large and small ones among them."""
        chance = self.chance
        if isinstance(value, bool) or value is None:
            return not value
        if isinstance(value, int | float):
            return chance.choice([0, 1, 2, value + 1, value * 2, value * 10, value * 100, 200, 1000, 65535])
        match = QUANTITY.fullmatch(value) if isinstance(value, str) else None
        if match is None:
            return [value, value] if isinstance(value, str) else value
        units = next((units for units in DIMENSIONS if match.group(2) in units), UNITS)
        return f"{chance.choice(AMOUNTS)} {chance.choice(units)}"

    def plausible(self, name: str) -> Tree:
        """A value that a field of that name may well have, or one that is rather large for it."""
        chance = self.chance
        known = self.corpus.alike.get(name)
        value = copy.deepcopy(chance.choice(known)) if known else self.value()
        match chance.randrange(4):
            case 0 if isinstance(value, str):
                return self._renumbered(value)
            case 1:
                return chance.choice(LARGE)
            case 2 if isinstance(value, int | float):
                return chance.choice([value * 10, value + 1, -value, value * 1000, 0])
            case _:
                return value

    def value(self) -> Tree:
        """Any value: a number, a quantity, a text, a path, one of another input, or something nested."""
        chance = self.chance
        match chance.randrange(12):
            case 0:
                return chance.choice([None, True, False, 0, -1, 1, 2, 1.5, -0.5, 10**9, 10**18, 2**63, 10**60, 1e300])
            case 1 | 2:
                return f"{chance.choice(NUMBERS)}{chance.choice(['', ' '])}{chance.choice(UNITS)}"
            case 3:
                return chance.choice(NUMBERS)
            case 4:
                return chance.choice(TEXTS)
            case 5:
                return chance.choice(PATHS)
            case 6:
                return [self.value() for _ in range(chance.randrange(4))]
            case 7:
                return {chance.choice(self.corpus.keys): self.value() for _ in range(chance.randrange(4))}
            case 8:
                return self._nested(chance.choice([3, 20, 31, 33, 100]))
            case 9:
                return chance.randrange(-5, 5000)
            case _:
                return copy.deepcopy(chance.choice(self.corpus.values))

    def _nested(self, depth: int) -> Tree:
        value: Tree = self.chance.choice(TEXTS)
        for _ in range(depth):
            value = [value] if self.chance.random() < 0.5 else {self.chance.choice(self.corpus.keys): value}
        return value

    def _renumbered(self, text: str) -> str:
        """The text with one of its numbers, or its unit, replaced."""
        numbers = list(re.finditer(r"\d+(\.\d+)?", text))
        if not numbers:
            return f"{text} {self.chance.choice(NUMBERS)}"
        match = self.chance.choice(numbers)
        if self.chance.random() < 0.3:
            rest = re.sub(r"^\s*[A-Za-z%/]+", f" {self.chance.choice(UNITS)}", text[match.end() :], count=1)
            return text[: match.end()] + rest
        return text[: match.start()] + self.chance.choice([*NUMBERS, "2", "30", "1000", "86400"]) + text[match.end() :]

    def _encode(self, text: str) -> bytes:
        chance = self.chance.random()
        if chance < 0.95:
            return text.encode("utf-8", "surrogatepass")
        if chance < 0.97:
            return text.encode("utf-16")
        return text.encode("utf-8", "surrogatepass") + b"\xff\xfe\x80"

    def damaged(self, content: bytes) -> bytes:
        """A file of any format: cut off, emptied, with bytes changed, or something else altogether."""
        chance = self.chance
        at = chance.randrange(len(content) + 1)
        match chance.randrange(7):
            case 0:
                return content[:at]
            case 1:
                return b""
            case 2:
                return content[:at] + bytes([chance.randrange(256)]) + content[at + 1 :]
            case 3:
                return content[:at] + bytes(chance.randrange(256) for _ in range(64)) + content[at + 64 :]
            case 4:
                return chance.choice(
                    [b"[]", b"{}", b"null", b"0", b'"x"', b"\x00" * 100, b"[" * 5000, b"1e999", b"NaN"]
                )
            case 5:
                return content + content[at:]
            case _:
                return b"".join((content[:at], content[at + chance.choice([1, 8, 100]) :]))
