# SPDX-License-Identifier: Apache-2.0
"""The section ``modules``: kernel modules of the user's own, which must exist, have unique names, and be used by some
run.

Each entry provides kernel modules, by name, and the congestion controls that they register. Nothing is built to find
those: sources are searched for the ``.name`` of each struct tcp_congestion_ops, built modules for the struct itself.
When a module is loaded, what it registers is compared with that (howdah/agent/own.py).
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from howdah.algorithm import (
    KERNEL_NAME,
    LONGEST_KERNEL_NAME,
    MODULE_PREFIX,
    PLUG_IN_PREFIX,
    ProfileModule,
    from_modules,
    module_name,
)
from howdah.errors import ProfileError
from howdah.profile.model import AlgorithmSection, ModuleSection, Scenario
from howdah.profile.profile import PointScenario
from howdah.profile.ready import defect, registered_by
from howdah.profile.source import Document
from howdah.profile.written import PATHS_START, written_path

MAKEFILES = ("Kbuild", "Makefile")  # in the order in which Kbuild looks for them
_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/|(?P<text>\"(?:\\.|[^\"\\\n])*\")", re.DOTALL)
_OPS = re.compile(r"\bstruct\s+tcp_congestion_ops\s+\w+[^;={]*=\s*\{")
_NAME = re.compile(r"\.\s*name\s*=\s*(?:\"(?P<text>[^\"\n]*)\"|(?P<macro>[A-Za-z_]\w*))")
_DEFINED = r"^[ \t]*#[ \t]*define[ \t]+{macro}[ \t]+\"([^\"\n]*)\""
_INCLUDED = re.compile(r"^[ \t]*#[ \t]*include[ \t]+\"([^\"\n]+)\"", re.MULTILINE)
_CONTINUED = re.compile(r"\\\n")
_ASSIGNED = re.compile(r"^[ \t]*([\w.-]+)[ \t]*[:+?]?=[ \t]*(.*)$", re.MULTILINE)
_VARIABLE = re.compile(r"\$[({]([\w.-]+)[)}]")


def all_provided_modules(scenario: Scenario, document: Document, directory: Path) -> list[ProfileModule]:
    """The modules of every entry of a profile in ``directory``. Raises ProfileError for an impossible path."""
    return [
        found
        for index, entry in enumerate(scenario.modules)
        for found in provided_modules(*files_of(entry, directory, document.place(("modules", index))))
    ]


def defects(scenario: Scenario, document: Document, directory: Path) -> Iterator[str]:
    """Defects of built modules as files, which may therefore not show what they register. Only their own runs fail."""
    for index, entry in enumerate(scenario.modules):
        file = files_of(entry, directory, document.place(("modules", index)))[0]
        wrong = defect(file) if file.suffix == ".ko" else None
        if wrong is not None:
            yield f"{file.name} {wrong}"


def files_of(
    entry: ModuleSection, directory: Path, where: str | None
) -> tuple[Path, tuple[Path, ...], tuple[tuple[str, str], ...]]:
    """The arguments of ``provided_modules`` for an entry: its file, the sources linked with it, and its macros.

    Raises ProfileError for an impossible path.
    """
    own, *further = (written_path(directory, name, where) for name in (entry.file, *entry.sources))
    return own, tuple(further), tuple(entry.define.items())


def provided_modules(
    source: Path, further: tuple[Path, ...] = (), define: tuple[tuple[str, str], ...] = ()
) -> tuple[ProfileModule, ...]:
    """The modules of a .c, .ko or .bpf.c file with the ``further`` sources, or of a directory's Kbuild or Makefile."""
    if source.is_dir():
        return tuple(_of_directory(source, define))
    return (ProfileModule(module_name(source), source.name, _registered((source, *further), define)),)


def _of_directory(directory: Path, define: tuple[tuple[str, str], ...]) -> Iterator[ProfileModule]:
    makefile = next((directory / name for name in MAKEFILES if (directory / name).is_file()), None)
    if makefile is None:
        return
    values = _variables(_CONTINUED.sub(" ", _text(makefile)))
    for item in values.get("obj-m", []):
        if not item.endswith(".o"):
            continue
        name = item.removesuffix(".o")
        parts = [*values.get(f"{name}-y", []), *values.get(f"{name}-objs", [])] or [item]
        files = tuple(directory / f"{part.removesuffix('.o')}.c" for part in parts)
        yield ProfileModule(Path(name).name.replace("-", "_"), f"{directory.name}/{name}", _registered(files, define))


def _variables(makefile: str) -> dict[str, list[str]]:
    """The words of each variable of a makefile, with references to other variables expanded."""
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
    """Names of the congestion controls in a source and in the headers beside it that it includes."""
    texts = [_text(file)]
    texts += [_text(file.parent / name) for name in _INCLUDED.findall(texts[0])]
    code = "\n".join(_COMMENT.sub(lambda match: match["text"] or " ", text) for text in texts)
    for ops in _OPS.finditer(code):
        name = _NAME.search(code, ops.end(), _closing_brace(code, ops.end()))
        if name is None:
            continue
        if name["text"] is not None:
            yield name["text"]
        elif name["macro"] in define:
            yield define[name["macro"]].strip('"')
        elif (defined := re.search(_DEFINED.format(macro=name["macro"]), code, re.MULTILINE)) is not None:
            yield defined[1]


def _closing_brace(code: str, start: int) -> int:
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


RESERVED = "howdah_"  # prefix of the project's own modules
_RENAME = "rename one of the files, and what it registers"
_PLAIN_VALUE = re.compile(r"[^'\n\\#$]*")  # characters that make and a shell pass on unchanged
_SUFFIXES = (".c", ".ko")


def check_modules(scenario: Scenario, document: Document, directory: Path) -> None:
    """Raise ProfileError unless each file exists, and its name is a valid and unique module name."""
    files: dict[str, str] = {}
    names: dict[str, str] = {}
    sources: set[Path] = set()
    given = declared_modules(scenario)
    for index, entry in enumerate(scenario.modules):
        where = document.place(("modules", index))
        source = _source(directory, entry, where)
        if (real := source.resolve()) in sources:
            raise ProfileError(f"{entry.file} is named twice", where=where, hint="Take one of the two out.")
        sources.add(real)
        found = provided_modules(*files_of(entry, directory, where))
        if source.is_dir() and not found:
            what = f"{source.name} names no module (obj-m) in its Kbuild or Makefile"
            raise ProfileError(what, where=where, hint="Name the module's .c file, or write obj-m := NAME.o there.")
        for module in found:
            _check_names(module, given, where)
            if module.name in files:
                what = f"two modules are called {module.name}: {files[module.name]} and {entry.file}"
                raise ProfileError(what, where=where, hint=_RENAME)
            files[module.name] = entry.file
            for name in from_modules([module]):
                if name in names:
                    what = f"{names[name]} and {entry.file} both bring an algorithm called {name}"
                    raise ProfileError(what, where=where, hint=_RENAME)
                names[name] = entry.file


def _source(directory: Path, entry: ModuleSection, where: str | None) -> Path:
    """The entry's file or directory. Raises ProfileError unless everything that the entry names exists."""
    source = written_path(directory, entry.file, where)
    if source.is_dir():
        if not any((source / name).is_file() for name in MAKEFILES):
            raise ProfileError(f"the directory {source} has no Kbuild and no Makefile", where=where)
        if entry.sources:
            raise ProfileError("a directory's Kbuild or Makefile names its sources; leave sources out", where=where)
    elif source.suffix not in _SUFFIXES:
        expected = "a kernel module's .c, .ko or .bpf.c file, or a directory with a Kbuild or Makefile"
        raise ProfileError(f"expected {expected}, not {entry.file!r}", where=where)
    elif not source.is_file():
        raise ProfileError(f"there is no file {source}", where=where, hint=PATHS_START)
    built = source.is_dir() or (source.suffix == ".c" and not source.name.endswith(".bpf.c"))
    if not built and (entry.include or entry.define or entry.sources):
        raise ProfileError(f"{source.name} is not built from C by howdah: it takes its file alone", where=where)
    for name in entry.include:
        if not written_path(directory, name, where).is_dir():
            raise ProfileError(f"there is no directory {written_path(directory, name, where)}", where=where)
    for name in entry.sources:
        further = written_path(directory, name, where)
        if further.suffix != ".c" or not further.is_file():
            raise ProfileError(f"there is no .c file {further}", where=where, hint=PATHS_START)
    for name, value in entry.define.items():
        if not _PLAIN_VALUE.fullmatch(value):
            raise ProfileError(f"define.{name} has a quote, a backslash, # or $: {value!r}", where=where)
    return source


def _check_names(module: ProfileModule, given: set[str], where: str | None) -> None:
    for name in module.registers or ():
        if len(name) > LONGEST_KERNEL_NAME:
            what = f"{module.file} registers {name!r}, of {len(name)} characters: the kernel takes at most"
            raise ProfileError(f"{what} {LONGEST_KERNEL_NAME}", where=where, hint="Shorten its .name.")
    unsaid = module.registers is None and module.name.startswith((MODULE_PREFIX, PLUG_IN_PREFIX))
    if unsaid and module.name not in given and not KERNEL_NAME.fullmatch(module.name.removeprefix(MODULE_PREFIX)):
        what = f"{module.file} cannot name an algorithm: the kernel takes at most 15 letters, digits, - and _"
        hint = f"Say what it registers: algorithms: {{NAME: {{kernel: NAME, module: {module.name}}}}}"
        raise ProfileError(what, where=where, hint=hint)
    if module.name.startswith(RESERVED):
        what = f"{module.file} has the name of one of howdah's own modules, which begin with {RESERVED}"
        raise ProfileError(what, where=where, hint="rename the file")


def declared_module(section: AlgorithmSection) -> str | None:
    """The module that an entry of ``algorithms:`` names, which may be written as its file."""
    return module_name(Path(section.module)) if section.module else None


def declared_modules(scenario: Scenario) -> set[str]:
    return {name for section in scenario.algorithms.values() if (name := declared_module(section))}


def claimed_modules(scenario: Scenario, document: Document, directory: Path) -> set[str]:
    """Modules of the profile with a known algorithm, by what they register or by ``algorithms:``.

    A run loads such a module only if it uses the algorithm. Every run loads all other modules.
    """
    found = {entry.module for entry in from_modules(all_provided_modules(scenario, document, directory)).values()}
    for section in scenario.algorithms.values():
        found.add(declared_module(section) or f"{MODULE_PREFIX}{section.kernel}".replace("-", "_"))
    return {name for name in found if name}


def check_modules_used(points: Iterable[PointScenario], directory: Path) -> None:
    """Raise ProfileError for a module that no run of the profile would load."""
    used: set[int] = set()
    unused: dict[int, PointScenario] = {}
    for point in points:
        claimed = claimed_modules(point.scenario, point.document, directory)
        needed = {entry.module for entry in point.algorithms.values()}
        for index, entry in enumerate(point.scenario.modules):
            where = point.document.place(("modules", index))
            names = {module.name for module in provided_modules(*files_of(entry, directory, where))}
            if names & needed or not names <= claimed:
                used.add(index)
            else:
                unused.setdefault(index, point)
    for index, point in unused.items():
        if index not in used:
            raise _unused(index, point, directory)


def _unused(index: int, point: PointScenario, directory: Path) -> ProfileError:
    entry = point.scenario.modules[index]
    where = point.document.place(("modules", index))
    files = files_of(entry, directory, where)
    source, found = files[0], provided_modules(*files)
    names = [*from_modules(found)]
    names += [
        name
        for name, section in point.scenario.algorithms.items()
        if declared_module(section) in {module.name for module in found}
    ]
    what = f"{source.name} is never used: no flow of any run asks for its algorithm ({', '.join(names)})"
    hint = (
        f"Name the algorithm (algorithm: {names[-1]}), or take the file out (--set 'modules=[]'). "
        f"A module that is not a congestion control needs a name without {MODULE_PREFIX} or {PLUG_IN_PREFIX}."
    )
    return ProfileError(what, where=where, hint=hint)
