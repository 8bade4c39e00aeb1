# SPDX-License-Identifier: Apache-2.0
"""What an entry of ``modules:`` brings: kernel modules by their names, and the congestion controls that each registers.

Nothing is built to know that: sources are read for the ``.name`` of each struct tcp_congestion_ops, ready modules for
the struct itself. What a module registers when it is loaded is compared with it (howdah/agent/own.py).
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from howdah.algorithm import Brought, module_name
from howdah.profile.model import Scenario
from howdah.profile.module_section import ModuleSection
from howdah.profile.ready import defect, registered_by
from howdah.profile.source import Document
from howdah.profile.written import written_path

MAKEFILES = ("Kbuild", "Makefile")  # in the order in which Kbuild looks for them
_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/|(?P<text>\"(?:\\.|[^\"\\\n])*\")", re.DOTALL)
_OPS = re.compile(r"\bstruct\s+tcp_congestion_ops\s+\w+[^;={]*=\s*\{")
_NAME = re.compile(r"\.\s*name\s*=\s*(?:\"(?P<text>[^\"\n]*)\"|(?P<macro>[A-Za-z_]\w*))")
_DEFINED = r"^[ \t]*#[ \t]*define[ \t]+{macro}[ \t]+\"([^\"\n]*)\""
_INCLUDED = re.compile(r"^[ \t]*#[ \t]*include[ \t]+\"([^\"\n]+)\"", re.MULTILINE)
_CONTINUED = re.compile(r"\\\n")
_ASSIGNED = re.compile(r"^[ \t]*([\w.-]+)[ \t]*[:+?]?=[ \t]*(.*)$", re.MULTILINE)
_VARIABLE = re.compile(r"\$[({]([\w.-]+)[)}]")


def all_brought(scenario: Scenario, document: Document, directory: Path) -> list[Brought]:
    """Of every entry of a profile in ``directory``. Raises ProfileError for what can be no path."""
    return [
        found
        for index, entry in enumerate(scenario.modules)
        for found in brought(*files_of(entry, directory, document.place(("modules", index))))
    ]


def defects(scenario: Scenario, document: Document, directory: Path) -> Iterator[str]:
    """What is wrong with ready modules as files: such a one may not say what it registers. It costs its own runs."""
    for index, entry in enumerate(scenario.modules):
        file = files_of(entry, directory, document.place(("modules", index)))[0]
        wrong = defect(file) if file.suffix == ".ko" else None
        if wrong is not None:
            yield f"{file.name} {wrong}"


def files_of(
    entry: ModuleSection, directory: Path, where: str | None
) -> tuple[Path, tuple[Path, ...], tuple[tuple[str, str], ...]]:
    """The entry's own file, the sources that are linked with it, and its macros: what ``brought`` takes.

    Raises ProfileError for what can be no path.
    """
    own, *further = (written_path(directory, name, where) for name in (entry.file, *entry.sources))
    return own, tuple(further), tuple(entry.define.items())


def brought(
    source: Path, further: tuple[Path, ...] = (), define: tuple[tuple[str, str], ...] = ()
) -> tuple[Brought, ...]:
    """Of a .c, .ko or .bpf.c file, or a directory with a Kbuild or Makefile; ``further`` are sources linked with it."""
    if source.is_dir():
        return tuple(_of_directory(source, define))
    return (Brought(module_name(source), source.name, _registered((source, *further), define)),)


def _of_directory(directory: Path, define: tuple[tuple[str, str], ...]) -> Iterator[Brought]:
    makefile = next((directory / name for name in MAKEFILES if (directory / name).is_file()), None)
    if makefile is None:
        return
    values = _values(_CONTINUED.sub(" ", _text(makefile)))
    for item in values.get("obj-m", []):
        if not item.endswith(".o"):
            continue
        name = item.removesuffix(".o")
        parts = [*values.get(f"{name}-y", []), *values.get(f"{name}-objs", [])] or [item]
        files = tuple(directory / f"{part.removesuffix('.o')}.c" for part in parts)
        yield Brought(Path(name).name.replace("-", "_"), f"{directory.name}/{name}", _registered(files, define))


def _values(makefile: str) -> dict[str, list[str]]:
    """Words of each variable, with those that are written in place of others."""
    found: dict[str, list[str]] = {}
    for name, value in _ASSIGNED.findall(makefile):
        text = _VARIABLE.sub(lambda match: " ".join(found.get(match[1], [])), value.partition("#")[0])
        found.setdefault(name, []).extend(text.split())
    return found


def _registered(files: tuple[Path, ...], define: tuple[tuple[str, str], ...]) -> tuple[str, ...] | None:
    stamps = []
    for file in files:
        try:
            status = file.stat()
        except OSError:
            continue
        stamps.append((file, status.st_mtime_ns, status.st_size))
    return _read(tuple(stamps), define)


@functools.cache
def _read(files: tuple[tuple[Path, int, int], ...], define: tuple[tuple[str, str], ...]) -> tuple[str, ...] | None:
    found: dict[str, None] = {}
    for file, _time, _size in files:
        names = registered_by(file) if file.suffix == ".ko" else list(_in_source(file, dict(define)))
        found |= dict.fromkeys(names)
    return tuple(found) or None


def _in_source(file: Path, define: Mapping[str, str]) -> Iterator[str]:
    """Names that the source, and the headers beside it that it includes, give their congestion controls."""
    texts = [_text(file)]
    texts += [_text(file.parent / name) for name in _INCLUDED.findall(texts[0])]
    code = "\n".join(_COMMENT.sub(lambda match: match["text"] or " ", text) for text in texts)
    for ops in _OPS.finditer(code):
        name = _NAME.search(code, ops.end(), _closing(code, ops.end()))
        if name is None:
            continue
        if name["text"] is not None:
            yield name["text"]
        elif name["macro"] in define:
            yield define[name["macro"]].strip('"')
        elif (defined := re.search(_DEFINED.format(macro=name["macro"]), code, re.MULTILINE)) is not None:
            yield defined[1]


def _closing(code: str, start: int) -> int:
    """Where the brace closes that was opened just before ``start``."""
    depth = 1
    for match in re.compile(r"[{}]").finditer(code, start):
        depth += 1 if match[0] == "{" else -1
        if not depth:
            return match.start()
    return len(code)


def _text(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
