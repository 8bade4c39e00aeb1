# SPDX-License-Identifier: Apache-2.0
"""Compiles all that the agent imports into one file: ``python3 bundle.py AGENT THERE TREE OUTPUT``.

Run by the guest tree's Python on this machine. ``AGENT`` is the directory with the agent's sources, which the guest
calls ``THERE``; ``TREE`` is the guest's root. Python's own import opens, reads and examines some twenty files for each
of 120 modules; howdah/agent/start.py reads one slice of one file instead.

The file contains eight bytes with the offset of the index (little-endian), the code of each module as marshal writes
it, and the index, ``(names, {module: (name of its source, first byte, bytes)})``. ``names`` are the modules that every
run needs, in the order in which Python finishes them. The byte code of start.py is beside the file, as ``start``.
Standard library only, and nothing of howdah.
"""

from __future__ import annotations

import importlib
import marshal
import os
import py_compile
import sys
from collections.abc import Callable, Sequence
from functools import partial
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from pathlib import Path
from types import ModuleType

PLACE_BYTES = 8
MAIN, START = "howdah.agent.__main__", "howdah.agent.start"


def own_modules(agent: Path) -> list[str]:
    """Return the names of the agent's modules, from its files."""
    found = []
    for file in sorted(agent.rglob("*.py")):
        parts = list(file.relative_to(agent).with_suffix("").parts)
        found.append(".".join(parts[:-1] if parts[-1] == "__init__" else parts))
    return found


class ImportOrder:
    """Replaces Python's finder of files and records the order in which modules are finished."""

    def __init__(self) -> None:
        self.names: list[str] = []

    def find_spec(self, name: str, path: Sequence[str] | None, target: ModuleType | None = None) -> ModuleSpec | None:
        spec = PathFinder.find_spec(name, path, target)
        if spec is not None and isinstance(spec.loader, SourceFileLoader):
            spec.loader.exec_module = partial(self._execute, spec.loader.exec_module)  # type: ignore[method-assign]
        return spec

    def _execute(self, execute: Callable[[ModuleType], None], module: ModuleType) -> None:
        execute(module)
        self.names.append(module.__name__)


def sources_of(agent: Path) -> dict[str, tuple[Path, bool]]:
    """Return the source of each module that the agent may import, its own and Python's, and whether every run needs it.

    Those that every run needs come first, in the order in which Python finishes them.
    """
    sys.path.insert(0, str(agent))
    start = importlib.import_module(START)
    for name in ("howdah", "howdah.agent", START):
        del sys.modules[name]
    for name, module in list(sys.modules.items()):
        # The agent may need what this program imports, too. Python loads its encodings before any program.
        if not name.startswith(("__main__", "encodings")) and (getattr(module, "__file__", "") or "").endswith(".py"):
            del sys.modules[name]
    order = ImportOrder()
    sys.meta_path[sys.meta_path.index(PathFinder)] = order
    start.leave_for_later()
    importlib.import_module(MAIN)
    always = list(order.names)
    for name in start.LATER:
        if isinstance(sys.modules[name], start.Later):
            del sys.modules[name]
        importlib.import_module(name)
    for name in own_modules(agent):
        if name.rpartition(".")[2] not in ("__main__", "start"):  # importing these runs them
            try:
                importlib.import_module(name)
            except ModuleNotFoundError as error:  # needed by another wiring only, which provides it
                if error.name is None or error.name.partition(".")[0] in ("howdah", "collectors"):
                    raise
    found = {}
    for name in (*always, *sorted(set(sys.modules) - {*always, "__main__"})):
        origin = getattr(getattr(sys.modules[name], "__spec__", None), "origin", None)
        if origin is not None and origin.endswith(".py"):
            found[name] = Path(origin), name in always
    return found


def found_by_a_child(agent: Path) -> dict[str, tuple[Path, bool]]:
    """Return ``sources_of`` from a child process, so that this one does not import the modules.

    What marshal writes for a code object depends on who else refers to its strings, and so on what was imported and
    how. Two builds of one agent must be identical: what a guest reads shows in its memory counters.
    """
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reader)
        status = 1
        try:
            with os.fdopen(writer, "w", encoding="utf-8") as told:
                told.writelines(f"{name}\t{file}\t{always:d}\n" for name, (file, always) in sources_of(agent).items())
            status = 0
        except BaseException:  # noqa: BLE001 - a child never returns
            sys.excepthook(*sys.exc_info())
        finally:
            os._exit(status)
    os.close(writer)
    with os.fdopen(reader, encoding="utf-8") as told:
        lines = told.read().splitlines()
    if os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]):
        sys.exit("the agent cannot be imported")
    return {name: (Path(file), always == "1") for name, file, always in (line.split("\t") for line in lines)}


def bundle(agent: Path, there: str, tree: Path) -> bytes:
    """Return the content of the file."""
    index: dict[str, tuple[str, int, int]] = {}
    body = b""
    sources = found_by_a_child(agent)
    for name, (file, _always) in sources.items():
        if file.is_relative_to(agent):
            seen_as = f"{there}/{file.relative_to(agent)}"
        elif file.is_relative_to(tree):
            seen_as = f"/{file.relative_to(tree)}"
        else:
            sys.exit(f"{name} comes from {file}, which is neither of the agent nor of {tree}")
        code = marshal.dumps(compile(file.read_bytes(), seen_as, "exec", dont_inherit=True))
        index[name] = (seen_as, PLACE_BYTES + len(body), len(code))
        body += code
    always = [name for name, (_file, is_always) in sources.items() if is_always]
    return (PLACE_BYTES + len(body)).to_bytes(PLACE_BYTES, "little") + body + marshal.dumps((always, index))


def main() -> int:
    agent, there, tree, output = sys.argv[1:]
    # Paths stay unresolved: either may be a link, and Python names its modules by the same paths.
    Path(output).write_bytes(bundle(Path(agent), there, Path(tree)))
    start = f"{START.replace('.', '/')}.py"
    py_compile.compile(
        f"{agent}/{start}",
        cfile=f"{agent}/{start.removesuffix('.py')}",
        dfile=f"{there}/{start}",
        doraise=True,
        invalidation_mode=py_compile.PycInvalidationMode.UNCHECKED_HASH,
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
