# SPDX-License-Identifier: Apache-2.0
"""Builds a directory of module sources with Kbuild so that each module fails alone.

Kbuild links nothing while one object is missing. Therefore the build continues after errors (make -k), the failed
modules are read from its output, and the next attempt leaves those out, until the rest builds.
"""

from __future__ import annotations

import contextlib
import os
import re
import shlex
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from howdah.build.compiler import first_error, known_change
from howdah.build.kernel_make import INHERITED
from howdah.build.stock_kernel import StockKernel
from howdah.build.supervise import CommandFailedError, Sandbox, run_logged
from howdah.build.uml_kernel import Kernel
from howdah.errors import HowdahError
from howdah.profile.ready import NAME_BYTES, registered_by
from howdah.record.kernel_log import OWN_PREFIX

_HEADER = Path(__file__).with_name("private.h")
_COMMAND = re.compile(r"^(?:saved)?cmd_\S+ := (?P<compiler>.*?) -c -o (?P<object>\S+) (?P<source>\S+\.c)(?:\s|$)")
_DEPENDENCIES = re.compile(r"-Wp,-MM?D,\S+")
_WARNING = re.compile(
    r"^(?P<file>[^\s:]+):(?P<line>\d+):\d+: warning: array subscript .(?P<struct>[^\[]+)\[\d+\]. is partly outside "
    r"array bounds of .unsigned char\[(?P<bytes>\d+)\]"
)


@dataclass(frozen=True)
class Oversized:
    """A struct too long for its area. ``object`` is the object file's path; ``file`` and ``line`` say where it is."""

    object: str
    file: str
    line: int
    what: str


def private_header() -> bytes:
    return _HEADER.read_bytes()


def oversized(build: Path, directory: Path, sandbox: Sandbox | None = None) -> Iterator[Oversized]:
    """Yield, for each source below ``directory`` that Kbuild has compiled, the first use of a struct that does not fit.

    A congestion control's state in a socket has ICSK_CA_PRIV_SIZE bytes, followed by TCP's own state. Kernel code
    checks the size with BUILD_BUG_ON(), if its author remembers to. Here each source is compiled once more without
    output, as Kbuild did it, but with an inet_csk_ca() that tells the compiler the length of the area (private.h).

    ``build`` is the directory in which the kernel's make ran the compiler. The compiler's command is read from files in
    ``directory``, which a makefile may have written: for a stranger's modules it runs in their ``sandbox``.
    """
    for record in sorted(directory.rglob(".*.o.cmd")):
        found = _COMMAND.match(record.read_text(encoding="utf-8", errors="replace").partition("\n")[0])
        if found is None:
            continue
        compiler = _DEPENDENCIES.sub("", found["compiler"])
        header = shlex.quote(str(_HEADER))
        command = f"{compiler} -include {header} -Warray-bounds -S -o /dev/null {shlex.quote(found['source'])}"
        words = ["/bin/sh", "-c", command]
        answer = subprocess.run(
            sandbox.command(words) if sandbox else words,
            cwd=build,
            env=sandbox.environment({}) if sandbox else None,
            capture_output=True,
            text=True,
            errors="replace",
            check=False,
        )
        if sandbox:
            sandbox.check()
        for line in answer.stderr.splitlines():
            if (warned := _WARNING.match(line)) is not None:
                what = (
                    f"{warned['struct']} is longer than the {warned['bytes']} bytes that a socket has for it "
                    "(ICSK_CA_PRIV_SIZE), and would overwrite TCP's own state"
                )
                yield Oversized(found["object"], warned["file"], int(warned["line"]), what)
                break


# A kernel for which modules are built.
Target = Kernel | StockKernel

SYMBOLS = "Module.symvers"  # Kbuild's list of the modules' exports, for modules built later
_LISTED = re.compile(r"^howdah-module (?P<module>\S+) =(?P<parts>.*)$")
_STOPPED = re.compile(r"^make\S*: \*\*\* \[(?:[^]]*: )?(?P<object>\S+\.o)\] Error")
_UNDEFINED = re.compile(r'^ERROR: modpost: "(?P<symbol>[^"]+)" \[(?P<module>\S+)\.ko\] undefined')
_MODPOST = re.compile(r"^(?:ERROR|FATAL): modpost: (?P<text>.*?(?P<module>[^\s\[\]:']+)\.k?o\b.*)")
_MISSING = re.compile(r"fatal error: (\S+): No such file or directory")
_LICENCE = re.compile(r"MODULE_LICENSE|GPL-incompatible")
_SAY_LICENCE = 'TCP\'s functions are for modules that say MODULE_LICENSE("GPL");'
_QUOTED_LINES = 6
_MAKEFILES = ("Kbuild", "Makefile")

# Appended to the directory's own Kbuild: print the objects of each module, and leave modules out.
_TRAILER = """
$(foreach module,$(obj-m),$(info howdah-module $(module) = $($(module:.o=-y)) $($(module:.o=-objs))))
obj-m := $(filter-out $(HOWDAH_LEFT_OUT),$(obj-m))
"""


@dataclass(frozen=True)
class ModuleFailure:
    """A module that does not build. ``file`` is relative to its sources if a line is to blame, otherwise None."""

    module: str
    what: str
    file: str | None
    line: int | None
    said: str

    def error(self, source: Path, place: str = ".") -> HowdahError:
        """Return the error for the module's author; ``source`` is the .c file or directory that the user named, and
        ``place`` its location in the build."""
        directory = source if source.is_dir() else source.parent
        where = str(source)
        if self.file is not None:
            here = Path(os.path.normpath(directory / os.path.relpath(self.file, place)))
            where = f"{here if here.exists() else self.file}:{self.line}"
        return HowdahError(self.what, where=where, hint=self.said or None)


def build_directory(
    kernel: Target,
    directory: Path,
    log: Path,
    launcher: Path,
    symbols: Path | None = None,
    flags: str = "",
    sandbox: Sandbox | None = None,
) -> list[ModuleFailure]:
    """Build the modules whose sources and Kbuild (or Makefile) are in ``directory``; return those that do not build.

    ``symbols`` is a Module.symvers of modules that they may use, ``flags`` are additional compiler flags; ``sandbox``
    is for a stranger's modules. Raises HowdahError for a failure that no single module causes.
    """
    makefile = next(place for name in ("Kbuild", "Makefile") if (place := directory / name).is_file())
    with makefile.open("a", encoding="utf-8") as file:
        file.write(_TRAILER + (f"ccflags-y += {flags}\n" if flags else ""))
    options = _make_options(directory, symbols, parallel=sandbox is None)
    failures: dict[str, ModuleFailure] = {}
    generated: set[str] = set()
    while True:
        command = kernel.make(*options, f"HOWDAH_LEFT_OUT={' '.join(failures)}", "modules")
        failed = _attempt(command, directory, log, launcher, sandbox)
        if failed is None:
            return list(failures.values())
        error, lines = failed
        if headers := _headers_to_make(lines, directory, generated):
            generated |= headers
            _make_headers(headers, directory, log, launcher, sandbox)
            continue
        found = dict(blame(lines, kernel.release, directory, failures))
        if not found:
            raise HowdahError(
                f"modules do not build against kernel {kernel.release}: " + " / ".join(error.tail[-4:]),
                where=str(makefile.name),
                hint=f"The full output is in {log}",
            ) from error
        failures |= found
        every_module_failed = all(match["module"] in failures for line in lines if (match := _LISTED.match(line)))
        if every_module_failed:
            return list(failures.values())


def _make_options(directory: Path, symbols: Path | None, *, parallel: bool) -> list[str]:
    # GNU make 4.3 sorts the output of jobs in /tmp, whatever TMPDIR says, and crashes in a sandbox, which denies it.
    jobs = ["-Otarget", f"-j{len(os.sched_getaffinity(0))}"] if parallel else []
    # Without these maps a module's file names would differ between two builds. The last map has precedence.
    maps = f"-ffile-prefix-map={directory}=. -ffile-prefix-map={directory}/="
    exports = [f"KBUILD_EXTRA_SYMBOLS={symbols}"] if symbols else []
    return ["-k", *jobs, f"M={directory}", f"KCFLAGS={maps}", *exports]


def _attempt(
    command: list[str], directory: Path, log: Path, launcher: Path, sandbox: Sandbox | None
) -> tuple[CommandFailedError, list[str]] | None:
    """Run make. If it fails, return the error and the lines of this attempt, with names relative to ``directory``."""
    already = log.stat().st_size if log.exists() else 0
    try:
        run_logged(command, log, launcher=launcher, sandbox=sandbox, inherit=INHERITED)
    except CommandFailedError as error:
        with log.open(encoding="utf-8", errors="replace") as file:
            file.seek(already)
            return error, [line.replace(f"{directory}/", "") for line in file.read().splitlines()]
    return None


def _headers_to_make(lines: list[str], directory: Path, generated: set[str]) -> set[str]:
    """Return missing headers, not yet generated, for which the directory's Makefile has a rule."""
    missing = {match[1] for line in lines if (match := _MISSING.search(line))} - generated
    makefiles = [directory / name for name in _MAKEFILES if (directory / name).is_file()]
    rules = "\n".join(file.read_text(encoding="utf-8", errors="replace") for file in makefiles)
    return {name for name in missing if re.search(rf"^[^\t#=\n]*(?<![\w.]){re.escape(name)}\s*:(?!=)", rules, re.M)}


def _make_headers(headers: set[str], directory: Path, log: Path, launcher: Path, sandbox: Sandbox | None) -> None:
    """Generate headers by rules of the module's own Makefile, in the copy. If that fails, the compiler reports them."""
    makefile = "Makefile" if (directory / "Makefile").is_file() else "Kbuild"
    command = ["make", "-C", str(directory), "-f", makefile, *sorted(headers)]
    with contextlib.suppress(CommandFailedError):
        run_logged(command, log, launcher=launcher, sandbox=sandbox, inherit=INHERITED)


def check_built(kernel: Target, directory: Path, sandbox: Sandbox | None = None) -> Iterator[tuple[str, ModuleFailure]]:
    """Yield what is wrong with a user's modules that did build, by their object files."""
    for found in oversized(kernel.build_dir, directory, sandbox):
        for listing in directory.rglob("*.mod"):
            if found.object in listing.read_text(encoding="utf-8").split():
                name = _name_of_module(f"{listing.stem}.o")
                what = f"the module {name}: {found.what}"
                yield name, ModuleFailure(name, what, found.file.removeprefix(f"{directory}/"), found.line, "")
    for module in directory.rglob("*.ko"):
        for registered in registered_by(module):
            if len(registered) >= NAME_BYTES:
                name = _name_of_module(f"{module.stem}.o")
                what = f"the module {name} registers {registered!r}…: the kernel takes at most 15 characters"
                yield name, ModuleFailure(name, what, None, None, "Shorten its .name.")


def blame(
    lines: list[str], release: str, directory: Path, earlier: dict[str, ModuleFailure]
) -> Iterator[tuple[str, ModuleFailure]]:
    """Yield modules (as their object files) that cannot be built according to one attempt's output, with the reason."""
    parts: dict[str, list[str]] = {}
    for line in lines:
        listed = _LISTED.match(line)
        if listed:
            parts[listed["module"]] = listed["parts"].split()
    told: set[str] = set()
    start = 0
    for number, line in enumerate(lines):
        stopped = _STOPPED.match(line)
        if stopped:
            failed = stopped["object"]
            for module in (name for name, made_of in parts.items() if failed == name or failed in made_of):
                if module not in told:
                    told.add(module)
                    yield module, _compiler_failure(module, lines[start:number], release, directory)
            start = number + 1
    if not told:
        yield from _unlinked(lines, release, directory, parts, earlier)


def _name_of_module(module: str) -> str:
    return Path(module).stem.removeprefix(OWN_PREFIX).replace("-", "_")


def _compiler_failure(module: str, lines: list[str], release: str, directory: Path) -> ModuleFailure:
    name = _name_of_module(module)

    def is_own(file: str) -> bool:
        """Return whether a file is the author's. Names of the kernel's headers are absolute or, for a kernel built in
        its tree, such as ./include/net/tcp.h."""
        return not Path(file).is_absolute() and (not file.startswith("./") or (directory / file).is_file())

    error = first_error(lines, is_own)
    if error is None:
        said = "\n    ".join(lines[-_QUOTED_LINES:])
        return ModuleFailure(name, f"the module {name} does not build against kernel {release}", None, None, said)
    why = known_change(error.said) or error.text
    what = f"the module {name} does not compile against kernel {release}: {why}"
    return ModuleFailure(name, what, error.file, error.line, f"The compiler said:\n    {error.said}")


def _unlinked(
    lines: list[str], release: str, directory: Path, parts: dict[str, list[str]], earlier: dict[str, ModuleFailure]
) -> Iterator[tuple[str, ModuleFailure]]:
    """Yield the modules that modpost rejects: for symbols that nothing exports, or for any other reason."""
    undefined: dict[str, list[str]] = {}
    others: dict[str, str] = {}
    for line in lines:
        if match := _UNDEFINED.match(line):
            undefined.setdefault(f"{match['module']}.o", []).append(match["symbol"])
        elif match := _MODPOST.match(line):
            others.setdefault(f"{match['module']}.o", match["text"])
    for module in sorted({*undefined, *others} & {*parts} - {*earlier}):
        name = _name_of_module(module)
        symbols = undefined.get(module)
        if symbols is None:
            what = f"the module {name} does not link against kernel {release}: {others[module].replace(OWN_PREFIX, '')}"
        elif provider := _provider(symbols, directory, parts, earlier):
            what = f"the module {name} needs {provider.module}, which does not build: {provider.what}"
            yield module, ModuleFailure(name, what, provider.file, provider.line, provider.said)
            continue
        else:
            what = f"the module {name} uses what kernel {release} does not export: {', '.join(symbols)}"
        is_licence = symbols is None and _LICENCE.search(others[module]) is not None
        used = ["MODULE_LICENSE"] if is_licence else symbols or []
        file, number = _first_use(used, directory, [module, *parts[module]])
        yield module, ModuleFailure(name, what, file, number, _SAY_LICENCE if is_licence else "")


def _first_use(symbols: list[str], directory: Path, objects: list[str]) -> tuple[str | None, int | None]:
    """Return the first use of one of the symbols in a module's sources, ignoring comments and pure declarations."""
    named = re.compile(rf"\b(?:{'|'.join(map(re.escape, symbols))})\b")
    passed_over = re.compile(rf"\s*(?:/\*|\*|//)|\w[\w\s*]*{named.pattern}\s*\([^{{]*\)\s*;\s*$")
    for made_of in objects if symbols else []:
        source = (directory / made_of).with_suffix(".c")
        if not source.is_file():
            continue
        for number, text in enumerate(source.read_text(encoding="utf-8", errors="replace").splitlines(), start=1):
            if named.search(text) and not passed_over.match(text):
                return str(source.relative_to(directory)), number
    return None, None


def _provider(
    symbols: list[str], directory: Path, parts: dict[str, list[str]], earlier: dict[str, ModuleFailure]
) -> ModuleFailure | None:
    """Return the previously failed module whose sources export one of the symbols."""
    exports = re.compile(rf"^EXPORT_SYMBOL(?:_GPL)?\((?:{'|'.join(map(re.escape, symbols))})\)", re.MULTILINE)
    for module, failure in earlier.items():
        for made_of in (module, *parts.get(module, [])):
            source = (directory / made_of).with_suffix(".c")
            if source.is_file() and exports.search(source.read_text(encoding="utf-8", errors="replace")):
                return failure
    return None
