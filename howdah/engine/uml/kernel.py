# SPDX-License-Identifier: Apache-2.0
"""The user-mode kernel: configured, compiled and kept in the cache with what building modules against it needs."""

from __future__ import annotations

import json
import os
import re
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from howdah.engine.cache import Cache, Progress, content_key, file_sha256
from howdah.engine.supervise import CommandFailedError, run_logged
from howdah.engine.uml.kconfig import FRAGMENT, read_wanted, taken
from howdah.engine.uml.source import KernelSource, provide_source, unpack_command
from howdah.engine.uml.tools import Tools, build_tools, compiler_version
from howdah.errors import HowdahError

_RECORD = "kernel.json"
_EXPECTED_OBJECTS = 680  # Debian's 6.12; other releases differ a little, and the display is corrected as it goes
_SPACE_BYTES = 900 * 2**20
_LAYOUT = "1"  # part of every key: raise it when the files of an entry change
_COMPILED = re.compile(r"^\s+(?:CC|AS)\s")
_ERROR = re.compile(r"^(?P<file>[^\s:]+):(?P<line>\d+)(?::\d+)?: (?:fatal )?error: (?P<text>.*)")

# The version string is stirred into the guest's random numbers, and the image's hash is part of every run's key:
# neither may depend on when and by whom the kernel was built.
_FIXED = {
    "KBUILD_BUILD_TIMESTAMP": "Thu Jan  1 00:00:00 UTC 1970",
    "KBUILD_BUILD_USER": "howdah",
    "KBUILD_BUILD_HOST": "howdah",
    "KBUILD_BUILD_VERSION": "1",
}
# The kernel's makefiles ask for the large code model, in which every call goes through a 64-bit constant. The image is
# linked at 0x60000000, where the small one does and is 15 % faster. Modules live beyond 2 GiB and keep the large one.
IMAGE_FLAGS = "KCFLAGS=-mcmodel=small"
_KEPT_SOURCE = ("Makefile", "Kbuild", "scripts", "include", "arch/um", "arch/x86", "tools/include")
_KEPT_HEADERS = ("net", "kernel", "lib", "crypto")
_HOST_PROGRAMS = "scripts"


@dataclass(frozen=True)
class Kernel:
    """A built kernel. ``source_dir`` and ``build_dir`` are what ``make M=`` takes; hashes are SHA-256, hexadecimal."""

    name: str
    directory: Path
    image: Path
    build_dir: Path
    source_dir: Path
    release: str
    config_sha256: str
    image_sha256: str
    source: str
    compiler: str
    vermagic: str
    options_not_taken: tuple[str, ...]

    @property
    def key(self) -> str:
        return self.directory.name

    def make(self, *arguments: str) -> list[str]:
        """``make`` for modules of this kernel."""
        return make_command(self.source_dir, self.build_dir, *arguments)


def make_command(source_dir: Path, build_dir: Path, *arguments: str) -> list[str]:
    """``make`` for the user-mode architecture, with output apart from the source."""
    return ["make", "-C", str(source_dir), f"O={build_dir}", "ARCH=um", *arguments]


def kernel_key(source: KernelSource) -> str:
    wanted = read_wanted(source.release)
    options = ["required", *wanted.required, "optional", *wanted.optional]
    return content_key(_LAYOUT, IMAGE_FLAGS, source.key, *options, compiler_version())


def build_kernel(
    kernel: str, progress: Progress, cache: Cache | None = None, *, workshop: Path | None = None
) -> Kernel:
    """Build ``debian-VERSION``, ``debian-newest`` or the tree at a path, unless the cache has it.

    ``workshop`` is a directory in which the objects of a tree stay: its next revision compiles what has changed alone.

    Raises HowdahError naming a package that cannot be had, the wrong tree, the options the tree lacks, or the file and
    line that does not compile.
    """
    cache = cache or Cache()
    source = provide_source(kernel, progress, cache)
    key = kernel_key(source)
    if cache.find("kernel", key) is None:
        tools = build_tools(cache)
        cache.build(
            "kernel",
            key,
            lambda directory, log: _Build(source, tools, directory, log, progress, workshop).run(),
            needs_bytes=_SPACE_BYTES,
            waiting=lambda: progress("kernel (built by another howdah, waiting)", 0, 0),
        )
    return load_kernel(cache.path("kernel", key))


def load_kernel(directory: Path) -> Kernel:
    """Read an entry of the cache. Raises HowdahError when it was damaged."""
    try:
        record: dict[str, Any] = json.loads((directory / _RECORD).read_text())
        record["options_not_taken"] = tuple(record["options_not_taken"])
        tree = record.pop("tree")
        kernel = Kernel(
            directory=directory,
            image=directory / "linux",
            build_dir=directory / "build",
            source_dir=Path(tree) if tree else directory / "source",
            **record,
        )
        if kernel.image.is_file():
            return kernel
    except (OSError, ValueError, TypeError, KeyError):
        pass
    raise HowdahError(
        "this built kernel is damaged", where=str(directory), hint=f"Remove it ('rm -r {directory}') to build it again."
    )


def built_kernels(cache: Cache | None = None) -> Iterator[dict[str, Any]]:
    """A row for each kernel in the cache, for ``howdah list kernels``."""
    for directory in (cache or Cache()).entries("kernel"):
        kernel = load_kernel(directory)
        yield {
            "kernel": kernel.name,
            "release": kernel.release,
            "source": kernel.source,
            "image": kernel.image_sha256[:12],
            "options not taken": " ".join(kernel.options_not_taken),
            "directory": str(directory),
        }


class _Build:
    """One build in a partial cache entry."""

    def __init__(
        self,
        source: KernelSource,
        tools: Tools,
        directory: Path,
        log: Path,
        progress: Progress,
        workshop: Path | None = None,
    ) -> None:
        self.source = source
        self.tools = tools
        self.directory = directory
        self.log = log
        self.progress = progress
        self.workshop = workshop
        self.build_dir = workshop or directory / "build"
        self.source_dir = source.tree or directory / "source"

    def run(self) -> None:
        self.build_dir.mkdir(parents=True, exist_ok=self.workshop is not None)
        if self.source.archive:
            self.progress("kernel: unpack the source", 0, 0)
            self.source_dir.mkdir()
            self._command(unpack_command(self.source.archive, self.source_dir), "the source does not unpack")
        self.progress("kernel: configure", 0, 0)
        fragment = self.build_dir / "wanted.config"
        fragment.write_text(read_wanted(self.source.release).fragment())
        self._make("the kernel cannot be configured", f"KCONFIG_ALLCONFIG={fragment}", "allnoconfig")
        missing = self._check_options()
        self._compile()
        release = (self.build_dir / "include/config/kernel.release").read_text().strip()
        vermagic = self._probe()
        image = self.directory / "linux"
        shutil.copy2(self.build_dir / "linux", image)
        if self.workshop:
            self.build_dir = self.directory / "build"
            shutil.copytree(self.workshop, self.build_dir, symlinks=True, ignore=self._not_copied)
        self._trim()
        record = {
            "name": self.source.name,
            "release": release,
            "source": self.source.description,
            "tree": str(self.source.tree) if self.source.tree else None,
            "compiler": compiler_version(),
            "config_sha256": file_sha256(self.build_dir / ".config"),
            "image_sha256": file_sha256(image),
            "vermagic": vermagic,
            "options_not_taken": missing,
        }
        (self.directory / _RECORD).write_text(json.dumps(record, indent=1) + "\n")

    def _check_options(self) -> list[str]:
        """Optional options that were not taken; a missing required one is an error."""
        wanted = read_wanted(self.source.release)
        have = taken(self.build_dir / ".config")
        missing = [option for option in wanted.required if option not in have]
        if missing:
            names = ", ".join(f"CONFIG_{option}" for option in missing)
            raise HowdahError(
                f"this tree does not take what a guest needs: {names}",
                where=self.source.name,
                hint=f"The tree is too old, or was changed there. Wanted options: {FRAGMENT}",
            )
        return [option for option in wanted.optional if option not in have]

    def _compile(self) -> None:
        done = 0

        def count(line: str) -> None:
            nonlocal done
            if _COMPILED.match(line):
                done += 1
                self.progress("kernel: compile", done, max(_EXPECTED_OBJECTS, done + 1))

        self.progress("kernel: compile", 0, _EXPECTED_OBJECTS)
        jobs = f"-j{len(os.sched_getaffinity(0))}"
        self._make("the kernel does not compile", jobs, IMAGE_FLAGS, "linux", on_line=count)
        self.progress("kernel: compile", _EXPECTED_OBJECTS, _EXPECTED_OBJECTS)
        # Module.symvers: with it, a module that uses a symbol the kernel lacks is refused when it is built. The goal
        # must stand alone, or make would compile the image's own objects again for want of the image's flags.
        self._make("the kernel does not prepare for modules", jobs, "modules")
        self._make("the kernel does not prepare for modules", jobs, "modules_prepare")

    def _probe(self) -> str:
        """Build an empty module: it shows that modules can be built, and carries the kernel's version magic."""
        probe = self.directory / "probe"
        probe.mkdir()
        (probe / "probe.c").write_text('#include <linux/module.h>\nMODULE_LICENSE("GPL");\n')
        (probe / "Kbuild").write_text("obj-m := probe.o\n")
        self._make("modules cannot be built against this kernel", f"M={probe}", "modules")
        vermagic = module_information(probe / "probe.ko").get("vermagic", "")
        shutil.rmtree(probe)
        return vermagic

    def _make(self, failing: str, *arguments: str, on_line: Any = None) -> None:
        self._command(make_command(self.source_dir, self.build_dir, *arguments), failing, on_line)

    def _command(self, command: list[str], failing: str, on_line: Any = None) -> None:
        try:
            run_logged(command, self.log, launcher=self.tools.launch, environment=_FIXED, on_line=on_line)
        except CommandFailedError as error:
            raise _failure(error, failing, self.log, self.source.name) from error

    def _not_copied(self, directory: str, names: list[str]) -> list[str]:
        """Large files of the workshop that ``_trim`` would remove at once."""
        relative = Path(directory).relative_to(self.workshop or self.build_dir)
        if relative == Path():
            return ["linux", "vmlinux", "System.map", *(name for name in names if name.endswith((".o", ".a")))]
        in_programs = relative.parts[0] == _HOST_PROGRAMS
        return [] if in_programs else [name for name in names if name.endswith((".o", ".a"))]

    def _trim(self) -> None:
        """Keep what ``make M=`` reads: the host programs, headers and makefiles."""
        for path in sorted(self.build_dir.rglob("*"), reverse=True):
            relative = path.relative_to(self.build_dir)
            if path.is_symlink() or path.is_dir() or relative.parts[0] == _HOST_PROGRAMS:
                continue
            if path.suffix in (".o", ".a", ".cmd", ".c") or path.name in ("linux", "vmlinux", "System.map"):
                path.unlink()
        if not self.source.archive:
            return
        kept = self.directory / "kept"
        for name in _KEPT_SOURCE:
            if (self.source_dir / name).exists():
                (kept / name).parent.mkdir(parents=True, exist_ok=True)
                (self.source_dir / name).rename(kept / name)
        for name in _KEPT_HEADERS:
            for header in (self.source_dir / name).rglob("*.h"):
                place = kept / header.relative_to(self.source_dir)
                place.parent.mkdir(parents=True, exist_ok=True)
                header.rename(place)
        shutil.rmtree(self.source_dir)
        kept.rename(self.source_dir)
        for path in kept.parent.joinpath("source").rglob("*"):
            if path.suffix in (".c", ".S") and "scripts" not in path.parts:
                path.unlink()


def module_information(module: Path) -> dict[str, str]:
    """The ``.modinfo`` strings of a .ko (name=value, zero-terminated); the first of each name."""
    found: dict[str, str] = {}
    for match in re.finditer(rb"(?<=\0)([a-z_]+)=([^\0]*)\0", module.read_bytes()):
        found.setdefault(match[1].decode(), match[2].decode(errors="replace"))
    return found


def _failure(error: CommandFailedError, failing: str, log: Path, source: str) -> HowdahError:
    where = source
    lines = log.read_text(errors="replace").splitlines()
    for line in lines:
        match = _ERROR.match(line)
        if match:
            where, failing = f"{match['file']}:{match['line']}", f"{failing}: {match['text']}"
            break
    else:
        said = [line for line in error.tail if not line.startswith("make")] or error.tail
        failing += ": " + " / ".join(line.strip() for line in said[-3:])
    return HowdahError(failing, where=where, hint=f"The whole output is in {log}")
