# SPDX-License-Identifier: Apache-2.0
"""Kernel modules, the project's own and the user's, built against the kernel a run uses."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from howdah.engine.cache import Cache, Progress, content_key
from howdah.engine.supervise import CommandFailedError, run_logged
from howdah.engine.uml.kernel import Kernel, make_command, module_information
from howdah.engine.uml.tools import build_tools
from howdah.errors import HowdahError

PROJECT_MODULES = Path(__file__).resolve().parents[3] / "modules"
_SOURCES = (".c", ".h", ".S")
_MAKEFILES = ("Kbuild", "Makefile")
_ERROR = re.compile(r"^(?P<file>[^\s:]+):(?P<line>\d+)(?::\d+)?: (?:fatal )?error: (?P<text>.*)")
_UNDEFINED = re.compile(r'^ERROR: modpost: "(?P<symbol>[^"]+)" \[(?P<module>[^]]+)\] undefined')
_NAME = re.compile(r"[A-Za-z0-9_-]+")


@dataclass(frozen=True)
class Module:
    """A built module. ``srcversion`` is the kernel's hash of its sources (null when the kernel made none)."""

    name: str
    file: Path
    srcversion: str | None
    source: str


def build_modules(
    kernel: Kernel, wanted: Iterable[str], progress: Progress, cache: Cache | None = None
) -> list[Module]:
    """The project's modules and the ``wanted`` ones: C files, directories with a Kbuild, or .ko files.

    Raises HowdahError naming file and line of what does not compile, or why a .ko does not fit the kernel.
    """
    cache = cache or Cache()
    built: dict[str, Module] = {}
    for source in ([PROJECT_MODULES] if _has_makefile(PROJECT_MODULES) else []) + [Path(item) for item in wanted]:
        for module in _provide(kernel, source, progress, cache):
            if module.name in built and built[module.name].file != module.file:
                raise HowdahError(
                    f"two modules are called {module.name}: this one and {built[module.name].source}", where=str(source)
                )
            built[module.name] = module
    return list(built.values())


def _provide(kernel: Kernel, source: Path, progress: Progress, cache: Cache) -> list[Module]:
    if not source.exists():
        raise HowdahError("there is no such module", where=str(source))
    if source.suffix == ".ko":
        return [_ready(kernel, source)]
    if source.is_dir():
        if not _has_makefile(source):
            raise HowdahError("a directory of module sources needs a Kbuild file", where=str(source))
        files = {path.relative_to(source): path for path in sorted(source.rglob("*")) if _belongs(path)}
        kbuild = None
    elif source.suffix == ".c":
        if not _NAME.fullmatch(source.stem):
            raise HowdahError("a module's name has letters, digits and underscores only", where=str(source))
        headers = sorted(source.parent.glob("*.h"))
        files = {Path(path.name): path for path in [source, *headers]}
        # Copied beside the source: a compiler flag cannot name a checkout with a space in its path.
        shared = sorted((PROJECT_MODULES / "include").rglob("*.h"))
        files |= {path.relative_to(PROJECT_MODULES): path for path in shared}
        kbuild = f"obj-m := {source.stem}.o\nccflags-y := -I$(src) -I$(src)/include\n"
    else:
        raise HowdahError("a module is a .c file, a directory with a Kbuild, or a .ko file", where=str(source))
    return _build(kernel, source, files, kbuild, progress, cache)


def _has_makefile(directory: Path) -> bool:
    return any((directory / name).is_file() for name in _MAKEFILES)


def _belongs(path: Path) -> bool:
    return path.is_file() and (path.suffix in _SOURCES or path.name in _MAKEFILES) and not path.name.endswith(".mod.c")


def _build(
    kernel: Kernel, source: Path, files: dict[Path, Path], kbuild: str | None, progress: Progress, cache: Cache
) -> list[Module]:
    parts: list[str | bytes] = [kernel.key, kernel.image_sha256, kbuild or ""]
    for name, path in files.items():
        parts += [str(name), path.read_bytes()]
    key = content_key(*parts)
    tools = build_tools(cache)
    label = "modules of howdah" if source == PROJECT_MODULES else f"module {source.name}"

    def compile_all(directory: Path, log: Path) -> None:
        progress(label, 0, 1)
        for name, path in files.items():
            (directory / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, directory / name)
        if kbuild:
            (directory / "Kbuild").write_text(kbuild)
        command = make_command(kernel.source_dir, kernel.build_dir, f"M={directory}", "modules")
        try:
            run_logged(command, log, launcher=tools.launch)
        except CommandFailedError as error:
            raise _failure(error, kernel, source, directory, log) from error
        for path in sorted(directory.glob("*/**/*.ko")):
            path.rename(directory / path.name)
        for path in sorted(directory.rglob("*"), reverse=True):
            if path.is_dir():
                shutil.rmtree(path)
            elif path.suffix != ".ko":
                path.unlink()
        if not list(directory.glob("*.ko")):
            raise HowdahError("its Kbuild names no module (obj-m)", where=str(source))
        progress(label, 1, 1)

    entry = cache.build("module", key, compile_all)
    return [_ready(kernel, path, str(source)) for path in sorted(entry.glob("*.ko"))]


def _ready(kernel: Kernel, file: Path, source: str | None = None) -> Module:
    try:
        information = module_information(file)
    except OSError as error:
        raise HowdahError(f"the module cannot be read: {error.strerror}", where=str(file)) from error
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
    name = information.get("name", file.stem)
    return Module(name, file, information.get("srcversion"), source or str(file))


def _failure(error: CommandFailedError, kernel: Kernel, source: Path, directory: Path, log: Path) -> HowdahError:
    """The first error of the compiler (with its file as the user knows it), and the lines around it."""
    original = source if source.is_dir() else source.parent
    lines = [line.replace(f"{directory}/", "") for line in log.read_text(errors="replace").splitlines()]
    for number, line in enumerate(lines):
        match = _ERROR.match(line)
        if match:
            file = original / match["file"]
            where = f"{file if file.exists() else match['file']}:{match['line']}"
            said = "\n    ".join(lines[number : number + 6])
            return HowdahError(
                f"the module does not compile against kernel {kernel.release}: {match['text']}",
                where=where,
                hint=f"The compiler said:\n    {said}\n  The whole output is in {log}",
            )
    undefined = [match["symbol"] for line in lines if (match := _UNDEFINED.match(line))]
    if undefined:
        return HowdahError(
            f"the module uses what kernel {kernel.release} does not export: {', '.join(undefined)}",
            where=str(source),
            hint=f"The whole output is in {log}",
        )
    return HowdahError(
        f"the module does not build against kernel {kernel.release}: " + " / ".join(error.tail[-4:]),
        where=str(source),
        hint=f"The whole output is in {log}",
    )
