# SPDX-License-Identifier: Apache-2.0
"""Kernel modules: loading those a run brings, and what the kernel says of the loaded ones."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import Any

from howdah.agent import syscall
from howdah.agent.error import AgentError

_SYS_MODULE = Path("/sys/module")


def load_modules(directory: Path, parameters: dict[str, dict[str, str]]) -> list[str]:
    """Load every ``*.ko`` of the directory, those that need another one's symbols after it; returns their names.

    Raises AgentError with the kernel's errno; the reason is then in the console.
    """
    waiting = sorted(directory.glob("*.ko")) if directory.is_dir() else []
    loaded: list[str] = []
    while waiting:
        remaining = []
        for path in waiting:
            name = path.stem.replace("-", "_")
            try:
                _load(path, parameters.get(name, {}))
                loaded.append(name)
            except OSError as error:
                if error.errno != errno.ENOENT:  # ENOENT: unknown symbol, perhaps of a module that comes later
                    raise AgentError(f"load module {path.name}", f"{error}; the console names the reason") from error
                remaining.append(path)
        if len(remaining) == len(waiting):
            names = ", ".join(path.name for path in remaining)
            raise AgentError(f"load module {names}", "unknown symbols; the console names them")
        waiting = remaining
    return loaded


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
