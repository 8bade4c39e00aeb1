# SPDX-License-Identifier: Apache-2.0
"""Kernel modules: load those that a run brings, and describe the loaded ones.

The kernel accepts an unknown module parameter and only logs it. Requested parameters are therefore looked up before
loading and compared with the kernel's values after it.
"""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from howdah.agent.error import AgentError
from howdah.agent.kernellog import KernelLog
from howdah.agent.settings import SYS_MODULE, Settings, same_value
from howdah.linux import syscall
from howdah.linux.kernelfile import read_file
from howdah.linux.modinfo import module_information, modules_needed
from howdah.record.agent import ModuleRecord

# parm= has the description, parmtype= the type, __param_str_NAME is a symbol; each parameter has at least the symbol.
_PARAMETER = re.compile(rb"(?<![A-Za-z0-9_.])(?:parm=|parmtype=|__param_str_)([A-Za-z0-9_]+)[:\0]")


def load_modules(directory: Path, parameters: dict[str, dict[str, str]], settings: Settings | None = None) -> list[str]:
    """Load every ``*.ko`` of the directory in order of dependencies; return the files' names in the order of loading.

    The kernel's name of a module may differ from its file's: see ``names_in_kernel``. If settings are to be restored,
    parameters are set as settings after loading, because the module stays loaded after the run.

    Raises AgentError if a module lacks a parameter, if the kernel refuses it (with the kernel's errno and log), or if a
    parameter has another value afterwards than the one requested.
    """
    files = _files(directory)
    loaded: list[str] = []
    for name in _in_order(files):
        _load(files[name], name, parameters.get(name, {}), settings or Settings())
        loaded.append(name)
    return loaded


def _files(directory: Path) -> dict[str, Path]:
    return {path.stem.replace("-", "_"): path for path in sorted(directory.glob("*.ko"))}


def names_in_kernel(directory: Path) -> dict[str, str]:
    """The kernel's name of each module in the directory, by the name of its file."""
    return {name: _kernel_name(path) or name for name, path in _files(directory).items()}


def _kernel_name(path: Path) -> str | None:
    return module_information(path.read_bytes()).get("name")


def parameters_of(path: Path) -> list[str]:
    """Names of the parameters that the file of a module declares, sorted."""
    return sorted({match[1].decode() for match in _PARAMETER.finditer(path.read_bytes())})


def _in_order(files: dict[str, Path]) -> Iterator[str]:
    """Yield the modules' names, each after the modules it depends on. A dependency without a file is part of the
    kernel. Raises AgentError for a cycle."""
    called = {_kernel_name(path) or name: name for name, path in files.items()}
    waiting = {
        name: [called[one] for one in modules_needed(path.read_bytes()) if one in called]
        for name, path in files.items()
    }
    done: set[str] = set()
    while waiting:
        ready = [name for name, needed in waiting.items() if done.issuperset(needed)]
        if not ready:
            raise AgentError(f"load modules {', '.join(waiting)}", "they depend on each other in a circle")
        for name in ready:
            yield name
            del waiting[name]
        done.update(ready)


def _load(path: Path, name: str, parameters: dict[str, str], settings: Settings) -> None:
    operation = f"load module {path.name}"
    loaded_as = _kernel_name(path) or name
    _check_loadable(operation, path, loaded_as, parameters)
    loading_parameters = {} if settings.are_restored else parameters
    given = " ".join(f"{key}={_quoted(value)}" for key, value in loading_parameters.items())
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    log = KernelLog()
    try:
        syscall.finit_module(descriptor, given)
    except OSError as error:
        if error.errno != errno.EEXIST or not _is_loaded(path, loaded_as):
            raise AgentError(operation, _refusal(error, given, log.texts())) from error
    finally:
        os.close(descriptor)
        log.close()
    if settings.are_restored:
        set_parameters(operation, loaded_as, parameters, settings)
    _check_parameters(operation, loaded_as, parameters)


def _check_loadable(operation: str, path: Path, loaded_as: str, parameters: dict[str, str]) -> None:
    """Raise AgentError for a parameter that the module lacks, and for a module that the kernel has built in."""
    if parameters and (unknown := sorted(set(parameters) - set(parameters_of(path)))):
        has = ", ".join(parameters_of(path)) or "none"
        raise AgentError(operation, f"it has no parameter {', '.join(unknown)}; its parameters are {has}")
    if (SYS_MODULE / loaded_as).is_dir() and not (SYS_MODULE / loaded_as / "initstate").exists():
        what = f"the kernel has a module {loaded_as} built in and loads no second one"
        raise AgentError(operation, f"{what}; name its .c file instead, or rename it and what it registers")


def _refusal(error: OSError, given: str, messages: list[str]) -> str:
    """Describe why the kernel refused a module, with its log."""
    with_ = f" with the parameters {given}" if given else ""
    log = "; the kernel's log: " + " / ".join(messages) if messages else ""
    hint = "; a .c file under modules would replace the one with this name" if error.errno == errno.EEXIST else ""
    return f"the kernel refused it{with_}: {error.strerror}{log}{hint}"


def _is_loaded(path: Path, loaded_as: str) -> bool:
    """Whether this very module (by srcversion) is already loaded. EEXIST alone does not show that: the kernel also
    returns it for an algorithm whose name is taken."""
    found = _read_or_none(SYS_MODULE / loaded_as / "srcversion")
    return found is not None and found == module_information(path.read_bytes()).get("srcversion")


def set_parameters(operation: str, module: str, parameters: dict[str, str], settings: Settings) -> None:
    """Set parameters of a loaded module. Raises AgentError if the kernel refuses one."""
    for name, value in parameters.items():
        try:
            settings.parameter(module, name, value)
        except OSError as error:
            raise AgentError(operation, f"parameter {name}={value}: {error.strerror or error}") from error


def _quoted(value: str) -> str:
    """Quote a value that contains spaces, as the kernel's argument parser (next_arg()) requires."""
    return f'"{value}"' if any(character.isspace() for character in value) else value


def _check_parameters(operation: str, module: str, parameters: dict[str, str]) -> None:
    """Raise AgentError if a parameter's value in the kernel differs from the requested one. Skip parameters that cannot
    be read."""
    for name, asked in parameters.items():
        path = SYS_MODULE / module / "parameters" / name
        if not path.exists():
            continue
        found = _read_or_none(path)
        if found is not None and not same_value(asked, found):
            raise AgentError(operation, f"{name}={asked} was asked for, and the module has {name}={found}")


def describe_modules(names: Iterable[str], in_kernel: Mapping[str, str] | None = None) -> dict[str, ModuleRecord]:
    """Return the version and parameters of loaded modules and of built-in code that has parameters.

    ``in_kernel`` maps a name to the kernel's name where they differ.
    """
    found = {}
    for name in names:
        path = SYS_MODULE / (in_kernel or {}).get(name, name)
        if not path.is_dir():
            continue
        parameters = {item.name: _read_or_none(item) for item in sorted((path / "parameters").glob("*"))}
        found[name] = ModuleRecord(_read_or_none(path / "srcversion"), parameters)
    return found


def _read_or_none(path: Path) -> str | None:
    try:
        return read_file(str(path)).strip()
    except OSError:
        return None


def module_symbols(text: str) -> list[tuple[int, str, str]]:
    """Parse kallsyms: address, name and module of each function in a module (``ADDRESS t NAME [MODULE]``), sorted."""
    found = []
    for line in text.splitlines():
        fields = line.split()
        if len(fields) == 4 and fields[1] in "tTwW":
            found.append((int(fields[0], 16), fields[2], fields[3].strip("[]")))
    return sorted(found)
