# SPDX-License-Identifier: Apache-2.0
"""Finds which functions the compiler inlined where, in the kernel files of TCP.

The image has no debugging information, and half of the functions that papers name (tcp_sacktag_write_queue,
tcp_clean_rtx_queue …) are inlined into tcp_ack(). The same compiler with the same flags and ``-g`` generates the same
code. So these files are compiled once more and compared with the image, function by function.
"""

from __future__ import annotations

import bisect
import re
import shutil
import subprocess
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from howdah.build.build_tree import TreeChangedError, copy_tree
from howdah.build.cache import Cache, Progress, content_key
from howdah.build.kernel_make import FIXED, IMAGE_FLAGS, INHERITED, make_command
from howdah.build.kernel_source import KernelSource, provide_source, unpack_command
from howdah.build.supervise import CommandFailedError, run_logged, sandbox_of
from howdah.build.tools import build_tools
from howdah.build.uml_kernel import Kernel, kernel_key
from howdah.distribution import installing
from howdah.errors import HowdahError

OBJECTS = tuple(  # a kernel may lack some: 7.3 no longer has tcp_rate.c
    f"net/ipv4/{name}.o"
    for name in ("tcp", "tcp_input", "tcp_output", "tcp_ipv4", "tcp_rate", "tcp_recovery", "tcp_timer")
)
_LAYOUT = "1"  # part of the key: raise it when the files of an entry change
_SPACE_BYTES = 1200 * 2**20
_failed: dict[str, HowdahError] = {}  # by key, so that a compilation that failed after minutes is not repeated
_FUNCTION = re.compile(
    r"^(?P<at>[0-9a-f]+) .{6}F (?P<section>\S+)\t(?P<size>[0-9a-f]+) +(?:\.hidden )?(?P<name>\S+)$", re.MULTILINE
)
_CLONE = re.compile(r"\.(?:constprop|isra|part|cold|lto_priv)(?:\.\d+)*$")


@dataclass(frozen=True)
class Function:
    """A function of the image, from ``address`` to ``address + size``."""

    address: int
    size: int
    name: str


class SymbolTable:
    """Functions by address."""

    def __init__(self, functions: Iterable[Function]) -> None:
        self.functions = sorted(functions, key=lambda function: function.address)
        self._addresses = [function.address for function in self.functions]

    def at(self, address: int) -> Function | None:
        number = bisect.bisect_right(self._addresses, address) - 1
        if number < 0:
            return None
        found = self.functions[number]
        return found if address < found.address + max(found.size, 1) else None


def read_functions(file: Path, section: str | None = None) -> list[Function]:
    """Return the functions of an image or object, of one section or of all. Raises HowdahError if it cannot be read."""
    command = ["objdump", "--syms", str(file)]
    try:
        text = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    except (OSError, subprocess.CalledProcessError) as error:
        raise HowdahError(
            f"the symbols cannot be read: {error}", where=str(file), hint=installing("binutils")
        ) from None
    return parse_functions(text, section)


def parse_functions(text: str, section: str | None = None) -> list[Function]:
    """Parse lines ``ADDRESS FLAGS SECTION<TAB>SIZE NAME`` of objdump --syms, and keep those flagged as functions."""
    return [
        Function(int(match["at"], 16), int(match["size"], 16), match["name"])
        for match in _FUNCTION.finditer(text)
        if section in (None, match["section"])
    ]


def place_of(functions: list[Function], image: SymbolTable) -> tuple[int, int] | None:
    """Return begin and end of an object in the image; None unless all its functions are there with their sizes."""
    by_name: dict[str, list[Function]] = {}
    for function in image.functions:
        by_name.setdefault(function.name, []).append(function)
    bases = Counter(
        there.address - function.address for function in functions for there in by_name.get(function.name, [])
    )
    if not bases:
        return None
    base = bases.most_common(1)[0][0]
    for function in functions:
        same = Function(base + function.address, function.size, function.name)
        if same not in by_name.get(function.name, []):
            return None
    return base, base + max(function.address + function.size for function in functions)


def build_objects(kernel: Kernel, progress: Progress, cache: Cache) -> Path:
    """Return a directory with OBJECTS compiled like the image's, but with debugging information.

    Raises HowdahError if the source has changed since the kernel was built, or does not compile; a failed compilation
    is not repeated in the same process.
    """
    key = content_key(_LAYOUT, kernel.key, *OBJECTS)
    if key in _failed:
        raise _failed[key]
    if cache.find("symbols", key) is None:
        source = provide_source(kernel.name, progress, cache)
        if kernel_key(source) != kernel.key:
            raise HowdahError("the source has changed since the kernel was built", where=source.name)
        launch = build_tools(cache).launch

        def build(directory: Path, log: Path) -> None:
            progress("kernel: what is inlined where", 0, 0)
            try:
                _compile_objects(kernel, source, directory, log, launch)
            except TreeChangedError as error:
                raise HowdahError("the source changes while it is read", where=source.name) from error
            except CommandFailedError as error:
                _failed[key] = HowdahError(f"does not compile with -g: {' / '.join(error.tail[-2:])}", where=str(log))
                raise _failed[key] from error

        cache.build("symbols", key, build, needs_bytes=_SPACE_BYTES)
    return cache.path("symbols", key)


def _compile_objects(kernel: Kernel, source: KernelSource, directory: Path, log: Path, launch: Path) -> None:
    """Compile the objects that the kernel has, in a copy of its source and build directory."""
    work = directory / "work"
    tree = work / "source"
    work.mkdir()
    tree.mkdir()
    if source.archive:
        run_logged(unpack_command(source.archive, tree), log, launcher=launch)
    elif source.content:
        copy_tree(source.content, tree)
    sandbox = sandbox_of(directory, launch, [work]) if source.content else None
    shutil.copytree(kernel.build_dir, work / "build", symlinks=True)
    there = [name for name in OBJECTS if (tree / name).with_suffix(".c").exists()]
    command = make_command(tree, work / "build", f"{IMAGE_FLAGS} -g", *there)
    run_logged(command, log, launcher=launch, sandbox=sandbox, environment=FIXED, inherit=INHERITED)
    for name in there:
        (work / "build" / name).rename(directory / Path(name).name)
    shutil.rmtree(work)


class Inlined:
    """Resolves what was inlined at addresses of the image. Raises HowdahError if an object differs from it."""

    def __init__(self, image: SymbolTable, objects: Path) -> None:
        self._places: list[tuple[int, int, Path]] = []
        for file in sorted(objects.glob("*.o")):
            place = place_of(read_functions(file, ".text"), image)
            if place is None:
                raise HowdahError(f"{file.name} compiled with -g is not the code of the image", where=str(file))
            self._places.append((*place, file))

    def chains(self, addresses: Iterable[int]) -> dict[int, tuple[str, ...]]:
        """Return the functions inlined at each address, innermost first, without the enclosing symbol itself."""
        found: dict[int, tuple[str, ...]] = {}
        wanted = sorted(set(addresses))
        for begin, end, file in self._places:
            here = [address for address in wanted if begin <= address < end]
            if here:
                text = _addr2line(file, [address - begin for address in here])
                found.update({begin + offset: chain[:-1] for offset, chain in parse_chains(text).items()})
        return found


def _addr2line(file: Path, offsets: list[int]) -> str:
    command = ["addr2line", "--addresses", "--functions", "--inlines", "--section=.text", f"--exe={file}"]
    given = "".join(f"{offset:#x}\n" for offset in offsets)
    try:
        return subprocess.run(command, input=given, capture_output=True, text=True, check=True).stdout
    except (OSError, subprocess.CalledProcessError) as error:
        raise HowdahError(f"addr2line does not work: {error}", where=str(file), hint=installing("binutils")) from None


def parse_chains(text: str) -> dict[int, tuple[str, ...]]:
    """Parse the output of addr2line -a -f -i: an address, then alternating functions and locations, innermost first."""
    found: dict[int, tuple[str, ...]] = {}
    names: list[str] = []
    address: int | None = None
    lines = iter(text.splitlines())
    for line in lines:
        if line.startswith("0x"):
            if address is not None:
                found[address] = tuple(names)
            address, names = int(line, 16), []
        else:
            names.append(without_clone(line))
            next(lines, None)
    if address is not None:
        found[address] = tuple(names)
    return found


def without_clone(name: str) -> str:
    """Strip the suffix that the compiler appends to the name of a modified copy of a function."""
    return _CLONE.sub("", name)
