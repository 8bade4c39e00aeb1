# SPDX-License-Identifier: Apache-2.0
"""Kernel modules: loading those a run brings, and what the kernel says of the loaded ones."""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from howdah.agent import syscall
from howdah.agent.error import AgentError

_SYS_MODULE = Path("/sys/module")


def load_modules(directory: Path, parameters: dict[str, dict[str, str]]) -> list[str]:
    """Load every ``*.ko`` of the directory, each behind those of them it depends on; returns their names in order.

    Raises AgentError with the kernel's errno; the reason is then in the console.
    """
    files = {path.stem.replace("-", "_"): path for path in sorted(directory.glob("*.ko"))}
    loaded: list[str] = []
    for name in _in_order(files):
        try:
            _load(files[name], parameters.get(name, {}))
        except OSError as error:
            raise AgentError(f"load module {files[name].name}", f"{error}; the console names the reason") from error
        loaded.append(name)
    return loaded


def _in_order(files: dict[str, Path]) -> Iterator[str]:
    """Names of modules, each behind what it depends on; what is not among them is part of the kernel."""
    waiting = {name: [one for one in _depends(path) if one in files] for name, path in files.items()}
    done: set[str] = set()
    while waiting:
        ready = [name for name, needed in waiting.items() if done.issuperset(needed)]
        if not ready:
            raise AgentError(f"load modules {', '.join(waiting)}", "they depend on each other in a circle")
        for name in ready:
            yield name
            del waiting[name]
        done.update(ready)


def _depends(path: Path) -> list[str]:
    """What the ``depends=`` of a module's .modinfo section says: names of modules."""
    match = re.search(rb"\0depends=([^\0]*)\0", path.read_bytes())
    return match[1].decode().split(",") if match and match[1] else []


def _load(path: Path, parameters: dict[str, str]) -> None:
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        syscall.finit_module(descriptor, " ".join(f"{name}={value}" for name, value in parameters.items()))
    except OSError as error:
        if error.errno != errno.EEXIST:
            raise
    finally:
        os.close(descriptor)


def set_parameter(module: str, name: str, value: str) -> None:
    """Raises OSError when module or parameter does not exist or the value is refused."""
    path = _SYS_MODULE / module / "parameters" / name
    if path.read_text().strip() != value:
        path.write_text(value)


def describe_modules(names: list[str]) -> dict[str, dict[str, Any]]:
    """``{module: {"srcversion", "parameters"}}`` of loaded modules and built-in code that has parameters."""
    found = {}
    for name in names:
        path = _SYS_MODULE / name
        if not path.is_dir():
            continue
        version = path / "srcversion"
        found[name] = {
            "srcversion": version.read_text().strip() if version.exists() else None,
            "parameters": {item.name: _readable(item) for item in sorted((path / "parameters").glob("*"))},
        }
    return found


def _readable(path: Path) -> str | None:
    try:
        return path.read_text().strip()
    except OSError:
        return None
