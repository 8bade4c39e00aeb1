# SPDX-License-Identifier: Apache-2.0
"""Byte code of all that the agent imports, in one file: ``python3 bundle.py AGENT THERE TREE OUTPUT``.

Run by the guest tree's Python on this machine. ``AGENT`` is the directory with the agent's sources, which the guest
calls ``THERE``; ``TREE`` is the guest's root. Python's own search opens, reads and looks at some twenty files for each
of 120 modules; howdah/agent/start.py reads one slice of one file instead.

The file: eight bytes with the place of the index (little-endian), the code of each module as marshal writes it, and the
index, ``{module: (name of its source, first byte, bytes)}``. Standard library only, and nothing of howdah.
"""

from __future__ import annotations

import importlib
import marshal
import os
import sys
from pathlib import Path

PLACE_BYTES = 8


def own_modules(agent: Path) -> list[str]:
    """Names of the agent's modules, by its files."""
    found = []
    for file in sorted(agent.rglob("*.py")):
        parts = list(file.relative_to(agent).with_suffix("").parts)
        found.append(".".join(parts[:-1] if parts[-1] == "__init__" else parts))
    return found


def sources_of(agent: Path) -> dict[str, Path]:
    """The source of each module that the agent may import, its own and Python's."""
    sys.path.insert(0, str(agent))
    for name in own_modules(agent):
        if name.rpartition(".")[2] not in ("__main__", "start"):  # which do something
            try:
                importlib.import_module(name)
            except ModuleNotFoundError as error:  # of another wiring, which brings it
                if error.name is None or error.name.partition(".")[0] in ("howdah", "collectors"):
                    raise
    found = {}
    for name, module in sys.modules.items():
        origin = getattr(getattr(module, "__spec__", None), "origin", None)
        if name != "__main__" and origin is not None and origin.endswith(".py"):
            found[name] = Path(origin)
    return found


def found_by_a_child(agent: Path) -> dict[str, Path]:
    """The same, from a process that imports them in place of this one.

    What marshal writes of a code object depends on who else refers to its strings, so on what was imported and how.
    Two builds of one agent must be the same to the byte: what a guest reads is in its counters of memory.
    """
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reader)
        status = 1
        try:
            with os.fdopen(writer, "w", encoding="utf-8") as told:
                told.writelines(f"{name}\t{file}\n" for name, file in sources_of(agent).items())
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
    return {name: Path(file) for name, _tab, file in (line.partition("\t") for line in lines)}


def bundle(agent: Path, there: str, tree: Path) -> bytes:
    """The content of the file."""
    index: dict[str, tuple[str, int, int]] = {}
    body = b""
    sources = found_by_a_child(agent)
    sources["howdah.agent.__main__"] = agent / "howdah/agent/__main__.py"
    for name, file in sorted(sources.items()):
        if file.is_relative_to(agent):
            seen_as = f"{there}/{file.relative_to(agent)}"
        elif file.is_relative_to(tree):
            seen_as = f"/{file.relative_to(tree)}"
        else:
            sys.exit(f"{name} comes from {file}, which is neither of the agent nor of {tree}")
        code = marshal.dumps(compile(file.read_bytes(), seen_as, "exec", dont_inherit=True))
        index[name] = (seen_as, PLACE_BYTES + len(body), len(code))
        body += code
    return (PLACE_BYTES + len(body)).to_bytes(PLACE_BYTES, "little") + body + marshal.dumps(index)


def main() -> int:
    agent, there, tree, output = sys.argv[1:]
    # As they are named: either may be a link, and Python names its modules by the same names.
    Path(output).write_bytes(bundle(Path(agent), there, Path(tree)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
