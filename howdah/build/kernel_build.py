# SPDX-License-Identifier: Apache-2.0
"""One build of a kernel: from a package's source inside the cache entry, or from a tree in its build tree."""

from __future__ import annotations

import json
import os
import re
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from howdah.build.build_tree import BuildTree
from howdah.build.cache import Cache, Progress, content_key, file_sha256, link_file
from howdah.build.compiler import first_error
from howdah.build.kernel_make import (
    FIXED,
    FRAGMENT,
    IMAGE_FLAGS,
    INHERITED,
    CompilerCache,
    compiler_cache,
    enabled_options,
    make_command,
    read_wanted,
)
from howdah.build.kernel_source import KernelSource, TreeContent, files_sha256, unpack_command
from howdah.build.supervise import CommandFailedError, Sandbox, run_logged, sandbox_key, sandbox_of
from howdah.build.tools import Tools, compiler_version, toolchain
from howdah.codec import encoded
from howdah.errors import HowdahError
from howdah.linux.modinfo import module_information

RECORD = "kernel.json"
_EXPECTED_OBJECTS = 696  # of Debian's 6.12; other releases differ, and the total is unknown beyond it
_COMPILED = re.compile(r"^\s+(?:CC|AS)\s")
_ENDED_BY_A_SIGNAL = 125  # smallest status of a make that was killed or terminated

_KEPT_SOURCE = ("Makefile", "Kbuild", "scripts", "include", "arch/um", "arch/x86", "tools/include")
_KEPT_HEADERS = ("net/", "kernel/", "lib/", "crypto/")
_CODE = (".c", ".S")
_HOST_PROGRAMS = "scripts"
_IMAGES = ("linux", "vmlinux", "System.map")
_OBJECTS = (".o", ".a", ".cmd", ".c")
_TEMPORARY = ".tmp_"
_INTERFACE = (".config", "Module.symvers", "include", "arch", _HOST_PROGRAMS)
_VERMAGIC = "vermagic"


def is_kept_output(name: str) -> bool:
    """Return whether modules need this file of the build directory: host programs, headers and makefiles."""
    if name.startswith(f"{_HOST_PROGRAMS}/"):
        return True
    own = name.rpartition("/")[2]
    return not (own.endswith(_OBJECTS) or own in _IMAGES or own.startswith(_TEMPORARY))


def is_kept_source(name: str) -> bool:
    """Return whether modules need this file of the source."""
    if name in _KEPT_SOURCE or name.startswith(tuple(f"{kept}/" for kept in _KEPT_SOURCE)):
        return not name.endswith(_CODE) or f"/{_HOST_PROGRAMS}/" in f"/{name}"
    return name.endswith(".h") and name.startswith(_KEPT_HEADERS)


def configures(name: str) -> bool:
    """Return whether this source file can affect the configuration: every file except the kernel's code."""
    return not name.endswith((*_CODE, ".h")) or name.startswith(f"{_HOST_PROGRAMS}/")


_VIRTUAL_TIME = "UML_TIME_TRAVEL_SUPPORT"


class KbuildError(HowdahError):
    """The kernel's build failed but ended by itself, so that the next one can continue from there."""


@dataclass(frozen=True, kw_only=True)
class BuiltKernel:
    """The record stored beside a built kernel. Hashes are SHA-256, hexadecimal.

    ``interface`` names what modules are built against: kernels with the same value load the same modules. None if
    unknown; the image's hash then takes its place.
    """

    name: str
    release: str
    source: str
    compiler: str
    config_sha256: str
    image_sha256: str
    vermagic: str
    interface: str | None = None
    options_not_taken: tuple[str, ...]


class KernelBuild:
    """Fills ``directory``, an incomplete entry of the cache.

    If a build from an archive was interrupted, it continues with the source and objects that are there. Kbuild records
    a command only once it has succeeded, so the interrupted step is repeated.
    """

    def __init__(
        self,
        source: KernelSource,
        tools: Tools,
        cache: Cache,
        directory: Path,
        log: Path,
        progress: Progress,
    ) -> None:
        self.source = source
        self.tools = tools
        self.cache = cache
        self.directory = directory
        self.log = log
        self.progress = progress
        self.build_dir = directory / "build"
        self.source_dir = directory / "source"
        self._lock: tuple[int, ...] = ()
        self._sandbox: Sandbox | None = None
        self._compiler = CompilerCache()

    def run(self) -> None:
        """Build the kernel. Raises HowdahError, and TreeChangedError if a tree was edited while it was copied."""
        if self.source.content is None:
            self._build_archive()
        else:
            self._build_tree(self.source.content)

    def _build_archive(self) -> None:
        assert self.source.archive is not None
        self._compiler = compiler_cache(self.cache, self.source_dir)
        unpacked = self.directory / "unpacked"
        if not unpacked.exists():
            self.progress("kernel: unpack the source", 0, 0)
            for directory in (self.source_dir, self.build_dir):
                shutil.rmtree(directory, ignore_errors=True)
                directory.mkdir()
            self._command(unpack_command(self.source.archive, self.source_dir), "the source does not unpack")
            self._patch()
            unpacked.touch()
        missing = self._configure()
        self._compile(_EXPECTED_OBJECTS)
        vermagic = self._probe(self.directory / "probe")
        shutil.copy2(self.build_dir / "linux", self.directory / "linux")
        unpacked.unlink()
        self._trim_build()
        self._trim_source()
        self._record(vermagic, missing, interface=None)

    def _patch(self) -> None:
        """Apply the patches and append the set's name to ``uname -r``, which Kbuild takes from localversion*."""
        patches = self.source.patches
        if patches is None:
            return
        for file in patches.files:
            arguments = ["--strip=1", "--fuzz=0", "--batch", "--no-backup-if-mismatch", f"--input={file}"]
            self._command(["patch", f"--directory={self.source_dir}", *arguments], f"{file.name} does not apply")
        (self.source_dir / f"localversion-{patches.name}").write_text(f"-{patches.name}\n")

    def _build_tree(self, content: TreeContent) -> None:
        build_tree = BuildTree(content.root, self.cache)
        self._sandbox = sandbox_of(self.directory, self.tools.launch, [build_tree.build], [build_tree.source])
        parts = [IMAGE_FLAGS, *(f"{name}={value}" for name, value in FIXED.items()), toolchain()]
        # A user's own build does not continue from files that a stranger's makefiles left.
        fingerprint = content_key(*parts, *sandbox_key())
        with build_tree.held(
            lambda: self.progress("kernel (this tree is built by another howdah, waiting)", 0, 0)
        ) as lock:
            self.progress("kernel: copy what has changed of the tree", 0, 0)
            build_tree.follow(content, fingerprint)
            self.source_dir, self.build_dir = build_tree.source, build_tree.build
            self._lock = (lock,)
            is_first = not (self.build_dir / ".config").exists()
            try:
                missing = self._configure_if_changed(build_tree, content)
                self._compile(_EXPECTED_OBJECTS if is_first else 0)
            except KbuildError:
                build_tree.record_state(fingerprint)
                raise
            build_tree.record_state(fingerprint)
            self._copy_to_entry(content)
        self.source_dir, self.build_dir = self.directory / "source", self.directory / "build"
        interface = self._interface(content)
        self._record(self._vermagic(interface), missing, interface)

    def _configure_if_changed(self, build_tree: BuildTree, content: TreeContent) -> list[str]:
        """Configure if any input has changed: it takes seconds, and most edits are to code. As ``_configure``."""
        files = {name: what for name, what in content.files.items() if configures(name)}
        made_of = content_key(read_wanted(self.source.release).fragment(), files_sha256(files))
        if build_tree.configured == made_of:
            return self._check_options()
        build_tree.configured = None
        missing = self._configure()
        build_tree.configured = made_of
        return missing

    def _configure(self) -> list[str]:
        """Configure; return the optional options that were not taken. Raises KbuildError for a missing required one."""
        self.progress("kernel: configure", 0, 0)
        fragment = self.build_dir / "wanted.config"
        fragment.write_text(read_wanted(self.source.release).fragment())
        self._make("the kernel cannot be configured", f"KCONFIG_ALLCONFIG={fragment}", "allnoconfig")
        return self._check_options()

    def _check_options(self) -> list[str]:
        wanted = read_wanted(self.source.release)
        have = enabled_options(self.build_dir / ".config")
        missing = [option for option in wanted.required if option not in have]
        if missing:
            names = ", ".join(f"CONFIG_{option}" for option in missing)
            release = ".".join(map(str, self.source.release))
            too_old = f"Linux {release} is too old for virtual time; " if _VIRTUAL_TIME in missing else ""
            raise KbuildError(
                f"{too_old}the kernel configuration rejects required options: {names}",
                where=self.source.name,
                hint=f"5.10 is the oldest that is tested. Or the tree was changed there. Wanted options: {FRAGMENT}",
            )
        return [option for option in (*wanted.optional, *wanted.modules) if option not in have]

    def _compile(self, expected: int) -> None:
        """Compile; ``expected`` is the number of objects, 0 if unknown."""
        done = 0

        def count(line: str) -> None:
            nonlocal done
            if _COMPILED.match(line):
                done += 1
                self.progress("kernel: compile", done, expected if done < expected else 0)

        self.progress("kernel: compile", 0, expected)
        jobs = f"-j{len(os.sched_getaffinity(0))}"
        # "modules" makes Module.symvers, which makes the build of a module fail if the kernel lacks a symbol. All goals
        # have the image's flags; otherwise the next build would find objects compiled with different ones.
        self._make(
            "the kernel does not compile", jobs, IMAGE_FLAGS, "linux", "modules", "modules_prepare", on_line=count
        )
        self.progress("kernel: compile", max(expected, done), max(expected, done))

    def _copy_to_entry(self, content: TreeContent) -> None:
        build, source = self.directory / "build", self.directory / "source"
        shutil.copy2(self.build_dir / "linux", self.directory / "linux")
        for name in _files(self.build_dir):
            if is_kept_output(name) and not (self.build_dir / name).is_symlink():
                (build / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(self.build_dir / name, build / name)
        (build / "source").symlink_to("../source")
        kept = [name for name in content.files if is_kept_source(name)]
        for directory in {name.rpartition("/")[0] for name in kept}:
            (source / directory).mkdir(parents=True, exist_ok=True)
        for name in kept:
            # A link suffices: files of a build tree's source are replaced, never changed.
            link_file(f"{self.source_dir}/{name}", f"{source}/{name}")

    def _interface(self, content: TreeContent) -> str:
        """Return a key of all that modules are built against; kernels with equal keys load each other's modules."""
        source = {name: what for name, what in content.files.items() if is_kept_source(name)}
        build = {
            name: file_sha256(self.build_dir / name)
            for name in _files(self.build_dir)
            if name.partition("/")[0] in _INTERFACE and not name.endswith(".cmd")
        }
        return content_key(compiler_version(), files_sha256(source), files_sha256(build))

    def _vermagic(self, interface: str) -> str:
        """Return the version magic of modules for this interface; built once for all kernels that share it."""

        def build(directory: Path, log: Path) -> None:
            self.log = log
            probe = directory / "probe"
            self._sandbox = sandbox_of(directory, self.tools.launch, [probe], [self.directory])
            (directory / _VERMAGIC).write_text(self._probe(probe))

        return (self.cache.build("interface", interface, build) / _VERMAGIC).read_text()

    def _probe(self, probe: Path) -> str:
        """Build an empty module, which proves that modules can be built; return the kernel's version magic from it."""
        probe.mkdir(exist_ok=True)
        (probe / "probe.c").write_text('#include <linux/module.h>\nMODULE_LICENSE("GPL");\n')
        (probe / "Kbuild").write_text("obj-m := probe.o\n")
        self._make("modules cannot be built against this kernel", f"M={probe}", "modules")
        vermagic = module_information((probe / "probe.ko").read_bytes()).get("vermagic", "")
        shutil.rmtree(probe)
        return vermagic

    def _record(self, vermagic: str, missing: list[str], interface: str | None) -> None:
        image = self.directory / "linux"
        record = BuiltKernel(
            name=self.source.name,
            release=(self.build_dir / "include/config/kernel.release").read_text().strip(),
            source=self.source.description,
            compiler=compiler_version(),
            config_sha256=file_sha256(self.build_dir / ".config"),
            image_sha256=file_sha256(image),
            vermagic=vermagic,
            interface=interface,
            options_not_taken=tuple(missing),
        )
        (self.directory / RECORD).write_text(json.dumps(encoded(record), indent=1) + "\n")

    def _make(self, failing: str, *arguments: str, on_line: Callable[[str], None] | None = None) -> None:
        arguments = (*self._compiler.arguments, *arguments)
        self._command(make_command(self.source_dir, self.build_dir, *arguments), failing, on_line)

    def _command(self, command: list[str], failing: str, on_line: Callable[[str], None] | None = None) -> None:
        try:
            run_logged(
                command,
                self.log,
                launcher=self.tools.launch,
                sandbox=self._sandbox,
                environment=FIXED | self._compiler.environment,
                inherit=INHERITED,
                keep_open=self._lock,
                on_line=on_line,
            )
        except CommandFailedError as error:
            raise self._failure(error, failing) from error

    def _failure(self, error: CommandFailedError, failing: str) -> HowdahError:
        told = failure(error, failing, self.log, self.source.name)
        if self.source.tree:  # the user edits the tree, not the copy
            copy, original = f"{self.source_dir}/", f"{self.source.tree}/"
            told.what = told.what.replace(copy, original)
            told.where = told.where and told.where.replace(copy, original)
        return told

    def _trim_build(self) -> None:
        for name in _files(self.build_dir):
            if not (self.build_dir / name).is_symlink() and not is_kept_output(name):
                (self.build_dir / name).unlink()

    def _trim_source(self) -> None:
        kept = self.directory / "kept"
        for name in _files(self.source_dir):
            if is_kept_source(name):
                (kept / name).parent.mkdir(parents=True, exist_ok=True)
                (self.source_dir / name).rename(kept / name)
        shutil.rmtree(self.source_dir)
        kept.rename(self.source_dir)


def _files(directory: Path) -> list[str]:
    skip = len(str(directory)) + 1
    found = []
    for here, directories, names in os.walk(directory):
        links = [name for name in directories if os.path.islink(f"{here}/{name}")]  # noqa: PTH114
        found += [f"{here}/{name}"[skip:] for name in (*names, *links)]
    return found


def failure(error: CommandFailedError, failing: str, log: Path, source: str) -> HowdahError:
    """Return the error to show for a failed command: the first line that does not compile, or its last output."""
    where = source
    lines = log.read_text(errors="replace").splitlines()
    first = first_error(lines, lambda file: file.endswith(".c"), blame_include=False)
    if first is not None:
        where, failing = f"{first.file}:{first.line}", f"{failing}: {first.text}"
    else:
        said = [line for line in error.tail if not line.startswith("make")] or error.tail
        failing += ": " + " / ".join(line.strip() for line in said[-3:])
    found = KbuildError if error.status < _ENDED_BY_A_SIGNAL else HowdahError
    return found(failing, where=where, hint=f"The full output is in {log}")
