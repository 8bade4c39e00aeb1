# SPDX-License-Identifier: Apache-2.0
"""The project's modules on every kernel of modules/kernels.txt: ``python -m tests.guest.kernel_matrix [KERNEL…]``.

For a user-mode kernel: build it, build the modules, load each, use every congestion control, unload, read the kernel's
log, and see that idle times are told to plug-ins. For a distribution's headers: build. Prints a table; the exit status
is 1 when anything failed or nothing could be tried. A kernel that cannot be had is unsupported, and named.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path

from rich.console import Console
from rich.table import Table

from howdah.build.archive import Archive, Offer
from howdah.build.cache import Cache, content_key
from howdah.build.cache import Progress as BuildProgress
from howdah.build.kernel_package import best_offer, unpacked_headers
from howdah.build.source_package import UnsupportedKernelError
from howdah.engine.uml.build import Built, build
from howdah.engine.uml.guest import boot
from howdah.errors import HowdahError, RunFailedError
from howdah.work.display import Display
from tests.guest import restarts
from tests.guest.guest_kit import give_modules, make_guest

MODULES = Path(__file__).parents[2] / "modules"
KERNELS = MODULES / "kernels.txt"
_HERE = Path(__file__).parent
_SCRIPTS = ("load_modules.sh", "use_algorithms.py")
_HEADERS = "headers-"
# CC: the headers ask for their own distribution's compiler, which need not be here.
_COMPILER = "gcc"
_MAKE = ("make", "-k", f"CC={_COMPILER}")
_TRACE_LINES = 8
_WARNING = 4  # KERN_WARNING; lower levels are worse
_LOGGED = re.compile(r"^<(?P<priority>\d+)>(?:\[[^]]*\] )?(?P<text>.*)$")
# Said of every module from outside the kernel's tree.
_EXPECTED = re.compile(r"loading out-of-tree module taints kernel|module verification failed")


@dataclass
class Row:
    """What happened on one kernel. Names of modules, except ``used``: names of congestion controls."""

    kernel: str
    release: str = ""
    source: str = ""
    unsupported: str | None = None
    built: list[str] = field(default_factory=list)
    loaded: list[str] = field(default_factory=list)
    used: list[str] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    wall_s: float = 0.0


def listed_kernels(only_ci: bool = False, file: Path = KERNELS) -> list[str]:
    """Names in kernels.txt. Raises ValueError naming a wrong line."""
    found = []
    for number, line in enumerate(file.read_text(encoding="utf-8").splitlines(), 1):
        fields = line.partition("#")[0].split()
        if not fields:
            continue
        if fields[1:] not in ([], ["ci"]):
            raise ValueError(f"{file}:{number}: expected a kernel and perhaps 'ci'")
        if fields[1:] or not only_ci:
            found.append(fields[0])
    return found


def examine(kernel: str, directory: Path, progress: BuildProgress, cache: Cache | None = None) -> Row:
    """Try one kernel of the list, with what is written in between in ``directory``."""
    row = Row(kernel)
    started = time.monotonic()
    try:
        if kernel.startswith(_HEADERS):
            _examine_headers(row, directory, cache or Cache())
        else:
            _examine_guest(row, build(kernel, (), progress, cache), directory)
    except UnsupportedKernelError as error:
        row.unsupported = str(error)
    except HowdahError as error:
        row.problems.append(str(error))
    row.wall_s = time.monotonic() - started
    return row


def _examine_guest(row: Row, built: Built, directory: Path) -> None:
    row.release, row.source = built.kernel.release, built.kernel.source
    row.built = sorted(built.module_set.built)
    row.problems += [str(error) for error in built.module_set.failed.values()]
    guest = make_guest(built, directory, "", command=("/bin/sh", "/howdah/in/load_modules.sh"), clock_limit_s=100_000)
    for script in _SCRIPTS:
        shutil.copy(_HERE / script, guest.share)
    give_modules(guest.share, built.module_set.choose(None))
    failed: RunFailedError | None = None
    try:
        boot(guest, lambda _phase, _done, _total: None)
    except RunFailedError as error:
        failed = error
    row.loaded, row.used = _lines(guest.raw / "loaded"), _lines(guest.raw / "used")
    row.problems += _lines(guest.raw / "errors")
    if failed:
        after = f"after {row.used[-1]}" if row.used else "while modules were loaded"
        row.problems.append("\n    ".join([f"{failed.what}, {after}:", *_trace(guest.console)]))
        return
    stayed = set(row.loaded) - {*_lines(guest.raw / "unloaded")}
    row.problems += [f"{name} could not be unloaded" for name in sorted(stayed)]
    row.problems += complaints((guest.raw / "log").read_text(errors="replace"))
    if "howdah_slow_start" in row.built:
        row.problems += restarts.problems(restarts.count_restarts(built, directory / "restarts"))


def complaints(log: str) -> list[str]:
    """Messages of a kernel's log at the level of a warning or worse, but for those that all modules cause."""
    found = []
    for line in log.splitlines():
        match = _LOGGED.match(line)
        if match and int(match["priority"]) % 8 <= _WARNING and not _EXPECTED.search(match["text"]):
            found.append(f"kernel log: {match['text']}")
    return found


def _provide_headers(release: str, cache: Cache) -> tuple[Path, Offer]:
    """Of the newest Debian kernel of that release (``6.1``). Its programs must run here, so no suite newer than this
    machine's Debian counts. Raises HowdahError when no suite offers any."""
    archive = Archive(cache)
    offer = best_offer(archive, "linux-headers", release, cache, all_suites=False)
    return unpacked_headers(archive, offer, cache), offer


def _examine_headers(row: Row, directory: Path, cache: Cache) -> None:
    try:
        tree, offer = _provide_headers(row.kernel.removeprefix(_HEADERS), cache)
    except HowdahError as error:
        raise UnsupportedKernelError(error.what, where=error.where, hint=error.hint) from error
    row.release = tree.name.removeprefix("linux-headers-")
    row.source = f"{offer.package} {offer.version}"
    key = _headers_key(offer, tree)

    def build_all(kept: Path, _log: Path) -> None:
        made, wrong = _build_for(tree, directory / "out")
        if wrong:
            raise _NotBuiltError(made, wrong)
        (kept / "made.json").write_text(json.dumps(made), encoding="utf-8")

    try:
        entry = cache.build("modules-for-headers", key, build_all)
        row.built = json.loads((entry / "made.json").read_text(encoding="utf-8"))
    except _NotBuiltError as error:  # it is not kept: the next try builds again
        row.built = error.made
        row.problems += error.wrong


class _NotBuiltError(Exception):
    """``made`` modules were built, and ``wrong`` says why others were not."""

    def __init__(self, made: list[str], wrong: list[str]) -> None:
        super().__init__(*wrong)
        self.made, self.wrong = made, wrong


def _headers_key(offer: Offer, tree: Path) -> str:
    """Of an answer: package, compiler, the command and everything in modules/ that it may read decide it."""
    compiler = subprocess.run([_COMPILER, "--version"], capture_output=True, text=True, check=True).stdout
    return content_key("1", offer.package, offer.version, tree.name, compiler, *_MAKE, *ingredients(MODULES))


def ingredients(modules: Path) -> list[str | bytes]:
    """Name and content of every file of a directory of modules, for a key, without what a build there made."""
    made = (".o", ".ko", ".cmd", ".mod", ".order", ".symvers")
    sources = sorted(path for path in modules.rglob("*") if path.is_file() and path.suffix not in made)
    return [part for path in sources for part in (str(path.relative_to(modules)), path.read_bytes())]


def _build_for(tree: Path, out: Path) -> tuple[list[str], list[str]]:
    """Names of the modules that were built, and what was wrong."""
    jobs = ["-Otarget", f"-j{len(os.sched_getaffinity(0))}"]
    command = [*_MAKE, *jobs, "-C", str(MODULES), f"KDIR={tree}", f"OUT={out}"]
    answer = subprocess.run(command, capture_output=True, text=True, errors="replace", check=False)
    made = sorted(file.stem for file in out.rglob("*.ko"))
    if answer.returncode:
        output = (answer.stdout + answer.stderr).replace(f"{out}/", "modules/")
        return made, _first_errors(output) or output.splitlines()[-3:]
    return made, [] if made else ["nothing was built"]


def _first_errors(output: str) -> list[str]:
    """The first error of each file, and what the linker or a missing program said."""
    found = re.findall(r"^((?:\S+?(?=:\d))?.*(?:\berror:|ERROR:|not found).*)$", output, re.MULTILINE)
    return list({line.partition(":")[0] if " error:" in line else line: line for line in reversed(found)}.values())


def _trace(console: Path) -> list[str]:
    """The beginning of a panic's call trace: its end is always the same."""
    lines = console.read_text(errors="replace").splitlines()
    start = next((number for number, line in enumerate(lines) if "Call Trace" in line), len(lines))
    return lines[start + 1 : start + 1 + _TRACE_LINES]


def _lines(file: Path) -> list[str]:
    return file.read_text(errors="replace").split("\n")[:-1] if file.is_file() else []


def _table(rows: list[Row]) -> Table:
    table = Table(box=None, header_style="bold")
    for column in ("kernel", "release", "source", "modules built", "loaded", "algorithms used", "problems", "s"):
        table.add_column(column)
    for row in rows:
        counts = [str(len(row.built)), str(len(row.loaded)), str(len(row.used)), str(len(row.problems))]
        if row.kernel.startswith(_HEADERS):
            counts[1] = counts[2] = "-"
        shown = ["unsupported", "", "", ""] if row.unsupported else counts
        table.add_row(row.kernel, row.release, row.source, *shown, f"{row.wall_s:.0f}")
    return table


def main(kernels: list[str]) -> int:
    rows = []
    with Display(quiet=False) as display, tempfile.TemporaryDirectory(prefix="howdah-kernels-") as place:
        for kernel in kernels or listed_kernels():
            display.say(kernel)
            rows.append(examine(kernel, Path(place) / kernel.replace("/", "_"), display.build))
    console = Console(highlight=False, soft_wrap=True, width=None if sys.stdout.isatty() else 200)
    console.print(_table(rows))
    for row in rows:
        for text in [row.unsupported] if row.unsupported else row.problems:
            console.print(f"! {row.kernel}: {text}", markup=False)
    tried = [row for row in rows if row.unsupported is None]
    return 0 if tried and not any(row.problems for row in tried) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
