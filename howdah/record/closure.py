# SPDX-License-Identifier: Apache-2.0
"""Find the project's own files that a part of the program consists of, and hash them.

The files are found by following import statements from entry modules, so a new import is included without a list. Files
are parsed, not imported.
"""

from __future__ import annotations

import ast
import hashlib
import os
import re
from collections.abc import Iterable, Iterator
from contextlib import suppress
from functools import cache, lru_cache
from pathlib import Path

from howdah.place import cache_directory, name_of, root_of
from howdah.record.directory import write_whole

PACKAGES = ("howdah", "collectors", "topologies")
_TYPES = "howdah.hooks"  # imports nothing at run time, and has types of all layers
_BLOCKS = ("body", "orelse", "handlers", "finalbody", "cases")  # attributes of ast nodes that hold statements


def closure(entries: Iterable[str], root: Path | None = None, *, deferred: bool = True) -> dict[str, Path]:
    """Return the files of the entry modules and of all modules of this project that they import, by module name,
    sorted.

    Imports count at the top, in functions, and below ``if TYPE_CHECKING``; without ``deferred``, those in functions do
    not. The ``__init__`` files of parent packages count too. ``root`` is the directory of the packages, by default the
    program's. Raise ValueError if an entry does not exist.
    """
    found: dict[str, Path] = {}
    waiting = list(entries)
    for name in waiting:
        if _file(name, root) is None:
            raise ValueError(f"there is no module {name} below {_root(name, root)}")
    seen = set()
    while waiting:
        name = waiting.pop()
        if name in seen:
            continue
        seen.add(name)
        if (file := _file(name, root)) is None:
            continue
        found[name] = file
        waiting += _parents(name)
        if name != _TYPES:
            waiting += imported(file, name, deferred=deferred)
    return dict(sorted(found.items()))


def closure_sha256(
    entries: Iterable[str], root: Path | None = None, *, deferred: bool = True, data: Iterable[Path] = ()
) -> str:
    """Hash the names and contents of a closure's files: the version of that part of the program.

    ``data`` are further files, of the project or below ``root``, that these modules read.
    """
    digest = hashlib.sha256()
    files = closure(entries, root, deferred=deferred)
    read = {str(each.relative_to(root) if root else name_of(each)): each for each in data}
    for name, file in [*files.items(), *sorted(read.items())]:
        content = file.read_bytes()
        digest.update(f"{name}\0{len(content)}\0".encode() + content)
    return digest.hexdigest()


def imported(file: Path, name: str, *, deferred: bool = True) -> list[str]:
    """Names that a module imports from the project's packages. Some are not modules but names that a module defines."""
    found = _imports(file, name, file.stat().st_mtime_ns)
    return [each for each, in_function in found.items() if deferred or not in_function]


@lru_cache(maxsize=4096)
def _imports(file: Path, name: str, _modified_ns: int) -> dict[str, bool]:
    """The names that a module imports, and whether only its functions import each."""
    package = name if file.name == "__init__.py" else name.rpartition(".")[0]
    found: dict[str, bool] = {}
    for node, in_function in _statements(ast.parse(file.read_bytes(), str(file))):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = _base(node, package)
            names = [base, *(f"{base}.{alias.name}" for alias in node.names)]
        else:
            continue
        for each in names:
            if each.partition(".")[0] in PACKAGES:
                found[each] = found.get(each, True) and in_function
    return found


def _statements(tree: ast.Module) -> Iterator[tuple[ast.AST, bool]]:
    """Yield each statement, and whether it is in a function. Expressions are skipped, because they contain no
    statements."""
    waiting: list[tuple[ast.AST, bool]] = [(tree, False)]
    while waiting:
        node, in_function = waiting.pop()
        yield node, in_function
        in_function = in_function or isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        for block in _BLOCKS:
            waiting += [(each, in_function) for each in getattr(node, block, ())]


def _base(node: ast.ImportFrom, package: str) -> str:
    """The module after ``from``, with relative imports resolved."""
    if not node.level:
        return node.module or ""
    above = package.split(".")[: len(package.split(".")) - node.level + 1]
    return ".".join([*above, *([node.module] if node.module else [])])


def _parents(name: str) -> list[str]:
    parts = name.split(".")
    return [".".join(parts[:count]) for count in range(1, len(parts))]


def _root(name: str, root: Path | None) -> Path:
    return root or root_of(name.partition(".")[0])


def _file(name: str, root: Path | None) -> Path | None:
    place = _root(name, root).joinpath(*name.split("."))
    for file in (place / "__init__.py", place.with_name(f"{place.name}.py")):
        if file.is_file():
            return file
    return None


def modules_of(package: str, root: Path | None = None) -> list[str]:
    """Names of all modules in a package, including the package."""
    root = _root(package, root)
    top = root.joinpath(*package.split("."))
    found = []
    for file in sorted(top.rglob("*.py")):
        parts = file.relative_to(root).with_suffix("").parts
        found.append(".".join(parts[:-1] if parts[-1] == "__init__" else parts))
    return found


_HASH = re.compile(r"[0-9a-f]{64}")


def memory_place() -> Path:
    """The directory in which hashes are kept; it need not exist."""
    return cache_directory() / "closure"


def remembered_sha256(entries: Iterable[str], *, deferred: bool = True, data: Iterable[Path] = ()) -> str:
    """Return ``closure_sha256`` of the program's own files, from the cache if an earlier command computed it."""
    entries, data = tuple(entries), tuple(data)
    key = hashlib.sha256(f"{_modules_sha256()} {deferred} {' '.join(entries)}".encode())
    for each in data:
        key.update(f"\0{each}\0".encode() + each.read_bytes())
    place = memory_place() / key.hexdigest()[:20]
    try:
        known = place.read_text(encoding="ascii")
    except (OSError, ValueError):
        known = ""
    if _HASH.fullmatch(known):
        return known
    found = closure_sha256(entries, deferred=deferred, data=data)
    with suppress(OSError):
        place.parent.mkdir(parents=True, exist_ok=True)
        write_whole(place, found)
    return found


@cache
def _modules_sha256() -> str:
    """Hash of the names and contents of all modules of the project."""
    digest = hashlib.sha256()
    for package in PACKAGES:
        top = f"{root_of(package)}/"  # making a Path for each file takes longer than reading it
        for directory, below, files in os.walk(top + package):
            below.sort()
            for name in sorted(files):
                if name.endswith(".py"):
                    file = f"{directory}/{name}"
                    with open(file, "rb", buffering=0) as opened:  # noqa: PTH123
                        content = opened.read()
                    digest.update(f"{file.removeprefix(top)}\0{len(content)}\0".encode() + content)
    return digest.hexdigest()
