# SPDX-License-Identifier: Apache-2.0
"""Kernel modules, the project's own and the user's, built against the kernel of a run."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cached_property
from pathlib import Path
from types import MappingProxyType
from typing import Any

from howdah.algorithm import MODULE_PREFIX, is_bpf, module_name
from howdah.build.bpf import build_bpf
from howdah.build.cache import Cache, Progress, content_key, file_sha256
from howdah.build.module_build import SYMBOLS, ModuleFailure, Target, build_directory, check_built, private_header
from howdah.build.module_sources import NO_EXTRAS, Extras, Sources, directory_sources, file_sources
from howdah.build.supervise import Sandbox, sandbox_key, sandbox_of
from howdah.build.supply import entry_from_bundle
from howdah.build.tools import build_tools
from howdah.errors import HowdahError
from howdah.linux.modinfo import module_information
from howdah.place import MODULES
from howdah.profile.ready import defect
from howdah.record.agent import ModuleRecord
from howdah.record.kernel_log import OWN_PREFIX
from howdah.record.run import ModuleOrigin

PROJECT_MODULES = MODULES
_SOURCES = (".c", ".h", ".S")
_MAKEFILES = ("Kbuild", "Makefile")
_FAILURES = "failures.json"
_CHECKS = "1"  # part of the key of a user's modules: raise it when their checks change
_LAYOUT = "4"  # part of every key: raise it when the files of an entry change
_NAME = re.compile(r"[A-Za-z0-9_-]+")
_BUILD_ANEW = "Name its .c file instead, or build or copy it again."
# Fields that the agent records only for a profile's own modules (howdah/agent/own.py).
_OWN_FACTS = ("loaded_as", "algorithms", "uses_before", "uses_most")


@dataclass(frozen=True)
class Module:
    """A built module. ``srcversion`` is the kernel's hash of its sources (null if the kernel computed none).

    ``name`` is its file's name, used by plans, and ``loaded_as`` the kernel's name for it. ``depends`` lists the
    kernel's names of the modules whose symbols it uses; ``source`` is the .c file or directory from which it was built.
    """

    name: str
    file: Path
    srcversion: str | None
    source: str
    depends: tuple[str, ...] = ()
    loaded_as: str = ""

    def __post_init__(self) -> None:
        if not self.loaded_as:
            object.__setattr__(self, "loaded_as", self.name)

    @cached_property
    def identity(self) -> str:
        """A digest that differs between modules that may behave differently; ``srcversion`` may not, because it ignores
        flags and headers of other directories."""
        return file_sha256(self.file)

    def described(self, loaded: ModuleRecord | None) -> ModuleOrigin:
        """Return its entry in run.json; ``loaded`` is the agent's record of it (agent.json, ``modules``)."""
        own: dict[str, Any] = {}
        if loaded is not None and loaded.loaded_as is not None:
            own = {name: getattr(loaded, name) for name in _OWN_FACTS}
        if loaded is not None and loaded.programs is not None:
            own["programs"] = loaded.programs
        parameters = {} if loaded is None else loaded.parameters
        said = {"srcversion": self.srcversion, "source": self.source, "sha256": self.identity}
        return ModuleOrigin(**said, parameters=parameters, **own)


@dataclass(frozen=True)
class ModuleSet:
    """Modules that built, and why others did not, by name; ``of_kernel`` are the kernel's own congestion controls."""

    built: dict[str, Module]
    failed: dict[str, HowdahError]
    of_kernel: dict[str, Module] = field(default_factory=dict)

    def choose(
        self, names: Iterable[str] | None, algorithms: Iterable[str] = (), beside: Iterable[str] = ()
    ) -> list[Module]:
        """Return the named modules (None: all that built) and their dependencies, in the order of loading.

        Adds those of ``beside`` that built, and the kernel's own modules that it would load for ``algorithms`` by its
        naming rule (tcp_NAME). Raises HowdahError for a module that does not exist or did not build.
        """
        chosen: dict[str, Module] = {}
        for name in self.built if names is None else names:
            self._add(name.replace("-", "_"), chosen)
        for name in beside:
            if name in self.built:
                self._add(name, chosen)
        for algorithm in algorithms:
            own = self.of_kernel.get(f"{MODULE_PREFIX}{algorithm}")
            if own is not None:
                chosen.setdefault(own.name, own)
        return list(chosen.values())

    def unused(self, wanted: Iterable[str], needed: Collection[str]) -> list[HowdahError]:
        """Return the errors of the ``wanted`` files that did not build and that no run needs.

        A run that needs a module fails with the same error; without such a run the error would go unreported.
        """
        names = (module_name(Path(item)) for item in wanted)
        return [self.failed[name] for name in names if name in self.failed and name not in needed]

    def _add(self, name: str, chosen: dict[str, Module]) -> None:
        if name in chosen:
            return
        if name in self.failed:
            raise self.failed[name]
        module = self.built.get(name)
        if module is None:
            raise HowdahError(
                f"there is no module {name}", hint=f"There are: {', '.join(sorted(self.built)) or 'none'}."
            )
        called = {one.loaded_as: one.name for one in self.built.values()}
        for needed in module.depends:
            if needed in called or needed in self.failed:  # otherwise it is part of the kernel
                self._add(called.get(needed, needed), chosen)
        chosen[module.name] = module


def provide_modules(
    kernel: Target,
    wanted: Sequence[str],
    progress: Progress,
    cache: Cache | None = None,
    extras: Mapping[str, Extras] = MappingProxyType({}),
) -> ModuleSet:
    """Build the project's modules and the ``wanted`` ones: C files, directories with a Kbuild, .ko files, or BPF.

    A wanted one replaces the project's of the same name. One that is not a module for this kernel, does not compile or
    link, or has the name of another fails alone; ready-made ones fail before anything is compiled. ``extras`` are the
    profile's additions by the path of a wanted one.
    """
    cache = cache or Cache()
    own = ModuleSet({}, {})
    ready = [item for item in wanted if Path(item).suffix == ".ko"]
    for item in ready:
        _provide_alone(kernel, Path(item), progress, cache, None, own)
    for error in own.failed.values():
        progress(f"not built: {error.where}: {error.what}", 0, 0)
    found = ModuleSet({}, {})
    symbols: Path | None = None
    if _has_makefile(PROJECT_MODULES):
        entry = _provide(kernel, PROJECT_MODULES, progress, cache, None, found)
        symbols = entry / SYMBOLS if entry and (entry / SYMBOLS).is_file() else None
    for item in wanted:
        if item not in ready:
            _provide_alone(kernel, Path(item), progress, cache, symbols, own, extras.get(item, NO_EXTRAS))
    for name in {*own.built, *own.failed}:
        found.built.pop(name, None)
        found.failed.pop(name, None)
    return ModuleSet(found.built | own.built, found.failed | own.failed, _of_kernel(kernel))


def _provide_alone(
    kernel: Target,
    source: Path,
    progress: Progress,
    cache: Cache,
    symbols: Path | None,
    found: ModuleSet,
    extras: Extras = NO_EXTRAS,
) -> None:
    """Build a source; an error about it as a whole counts as the failure of its own module."""
    try:
        _provide(kernel, source, progress, cache, symbols, found, extras)
    except HowdahError as error:
        found.failed[module_name(source)] = error


def _provide(
    kernel: Target,
    source: Path,
    progress: Progress,
    cache: Cache,
    symbols: Path | None,
    found: ModuleSet,
    extras: Extras = NO_EXTRAS,
) -> Path | None:
    """Add the modules of a source to ``found``; return their entry of the cache, if they have one."""
    if not source.exists():
        raise HowdahError("there is no such module", where=str(source))
    if is_bpf(source):
        _add_bpf(kernel, source, progress, cache, found)
        return None
    if source.suffix == ".ko":
        _add(found, _ready(kernel, source))
        return None
    if source.is_dir():
        if not _has_makefile(source):
            raise HowdahError("a directory of module sources needs a Kbuild file", where=str(source))
        what = project_sources() if source == PROJECT_MODULES else directory_sources(source, extras)
    elif source.suffix == ".c":
        if not _NAME.fullmatch(source.stem):
            raise HowdahError("a module's name has letters, digits and underscores only", where=str(source))
        what = file_sources(source, extras)
    else:
        raise HowdahError("a module is a .c file, a directory with a Kbuild, or a .ko file", where=str(source))
    entry = _build(kernel, source, what, progress, cache, symbols)
    for path in sorted(entry.glob("*.ko")):
        _add(found, _ready(kernel, path, str(source)))
    for record in json.loads((entry / _FAILURES).read_text()):
        failure = ModuleFailure(**record)
        found.failed[failure.module] = failure.error(source, what.here)
    return entry


def _add_bpf(kernel: Target, source: Path, progress: Progress, cache: Cache, found: ModuleSet) -> None:
    result = build_bpf(kernel, source, progress, cache)
    if isinstance(result, ModuleFailure):
        found.failed[result.module] = result.error(source)
    else:
        _add(found, Module(module_name(source), result, None, str(source)))


def _add(found: ModuleSet, module: Module) -> None:
    for other in found.built.values():
        if module.file != other.file and {module.name, module.loaded_as} & {other.name, other.loaded_as}:
            raise HowdahError(f"two modules are called {module.name}: this one and {other.source}", where=module.source)
    found.built[module.name] = module


def _has_makefile(directory: Path) -> bool:
    return any((directory / name).is_file() for name in _MAKEFILES)


def _belongs(path: Path) -> bool:
    return path.is_file() and (path.suffix in _SOURCES or path.name in _MAKEFILES) and not path.name.endswith(".mod.c")


def _build(
    kernel: Target,
    source: Path,
    what: Sources,
    progress: Progress,
    cache: Cache,
    symbols: Path | None,
) -> Path:
    is_users = source != PROJECT_MODULES
    if not is_users:
        given = entry_from_bundle("module", modules_recipe(kernel, what), cache)
        if given is not None:
            return given
    tools = build_tools(cache)
    label = "modules of howdah" if source == PROJECT_MODULES else f"module {source.name}"

    def compile_all(directory: Path, log: Path) -> None:
        progress(label, 0, 1)
        read = [*kernel.places, *([symbols.parent] if symbols else [])]
        sandbox = sandbox_of(directory, tools.launch, [directory], read) if is_users else None
        for name, path in what.files.items():
            if sandbox:
                sandbox.require_file(path)
            (directory / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, directory / name)
        if what.kbuild:
            (directory / "Kbuild").write_text(what.kbuild)
        built_in = directory / what.place
        failures = build_directory(kernel, built_in, log, tools.launch, symbols, what.flags, sandbox)
        if is_users:
            failures += _check(kernel, built_in, sandbox)
        _keep_results(directory)
        if not failures and not list(directory.glob("*.ko")):
            raise HowdahError("its Kbuild names no module (obj-m)", where=str(source))
        (directory / _FAILURES).write_text(json.dumps([asdict(failure) for failure in failures], indent=1) + "\n")
        progress(label, 1, 1)

    return cache.build("module", _key(kernel, what, symbols, is_users=is_users), compile_all)


def _key(kernel: Target, what: Sources, symbols: Path | None, *, is_users: bool) -> str:
    built_against = [kernel.interface] if kernel.interface else [kernel.key, kernel.image_sha256]
    parts: list[str | bytes] = [_LAYOUT, *built_against, what.kbuild or "", *filter(None, [what.flags])]
    if is_users:
        parts += [_CHECKS, private_header(), *sandbox_key()]
    if symbols:
        parts.append(symbols.parent.name)
    for name, path in what.files.items():
        parts += [str(name), path.read_bytes()]
    return content_key(*parts)


def _check(kernel: Target, directory: Path, sandbox: Sandbox | None) -> list[ModuleFailure]:
    """Return what is wrong with modules that did build, and remove these."""
    failures = []
    for module, failure in check_built(kernel, directory, sandbox):
        failures.append(failure)
        for file in directory.rglob("*.ko"):
            if file.stem.removeprefix(OWN_PREFIX).replace("-", "_") == module:
                file.unlink()
    return failures


def project_sources() -> Sources:
    """Return the sources of the project's modules."""
    return Sources(
        {path.relative_to(PROJECT_MODULES): path for path in sorted(PROJECT_MODULES.rglob("*")) if _belongs(path)}
    )


def modules_recipe(kernel: Target, what: Sources) -> str:
    """Return a key of the sources of the project's modules and the image of the kernel that loads them."""
    files = (part for name, path in what.files.items() for part in (str(name), path.read_bytes()))
    return content_key(_LAYOUT, kernel.image_sha256, *files)


def _keep_results(directory: Path) -> None:
    for path in sorted(directory.glob("*/**/*.ko")):
        path.rename(directory / path.name)
    for path in directory.glob(f"{OWN_PREFIX}*.ko"):
        path.rename(directory / path.name.removeprefix(OWN_PREFIX))
    for path in sorted(directory.rglob("*"), reverse=True):
        if path.is_dir():
            shutil.rmtree(path)
        elif path.suffix != ".ko" and path.name != SYMBOLS:
            path.unlink()
    symbols = directory / SYMBOLS
    if symbols.is_file():  # for equal builds, remove the build directory from the modules' names
        symbols.write_text(symbols.read_text().replace(f"{directory}/", ""))


def _ready(kernel: Target, file: Path, source: str | None = None) -> Module:
    try:
        information = module_information(file.read_bytes())
        wrong = defect(file) if source is None else None
    except OSError as error:
        raise HowdahError(f"the module cannot be read: {error.strerror}", where=str(file)) from error
    if wrong is not None:
        raise HowdahError(f"the module {wrong}", where=str(file), hint=_BUILD_ANEW)
    magic = information.get("vermagic")
    if magic is None:
        raise HowdahError("this is not a kernel module: it carries no version magic", where=str(file))
    if magic.split() != kernel.vermagic.split():
        raise HowdahError(
            f"the module was built for another kernel: '{magic.strip()}', this one is '{kernel.vermagic.strip()}'",
            where=str(file),
            hint="Name its .c file instead, or build it with "
            f"'make -C {kernel.source_dir} O={kernel.build_dir} ARCH=um M=… modules'.",
        )
    name = file.stem.replace("-", "_")
    loaded_as = information.get("name", name)
    if source is None and loaded_as in _built_in(kernel):
        raise HowdahError(
            f"the kernel {kernel.release} has a module {loaded_as} built in and loads no second one",
            where=str(file),
            hint="Name its .c file instead, which is built under another name, or rename the module and what it "
            "registers, or change the kernel itself: --kernel TREE.",
        )
    depends = tuple(one for one in information.get("depends", "").split(",") if one)
    return Module(name, file, information.get("srcversion"), source or str(file), depends, loaded_as)


def _of_kernel(kernel: Target) -> dict[str, Module]:
    """Return the congestion controls that the kernel's build made as modules (kernel.config) and its entry keeps."""
    files = sorted((kernel.build_dir / "net/ipv4").glob(f"{MODULE_PREFIX}*.ko"))
    return {file.stem: _ready(kernel, file, f"kernel {kernel.release}") for file in files}


def _built_in(kernel: Target) -> set[str]:
    """Return the modules that are built into a kernel; empty if its build has no list of them."""
    listed = kernel.build_dir / "modules.builtin"
    if not listed.is_file():
        return set()
    return {Path(line).stem.replace("-", "_") for line in listed.read_text(encoding="utf-8").split()}
