# SPDX-License-Identifier: Apache-2.0
"""Programs with their own TCP stacks, built as their YAML says (docs/stacks.md), once per set of ingredients.

Sources are copied into the cache and built there, so their own directory stays unchanged. The commands use the user's
own tools and the caches in which those tools keep what they fetch. A stranger's get no cache and no network
(supervise.py).
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from howdah.build.cache import Cache, Progress, content_key, file_sha256
from howdah.build.supervise import CommandFailedError, Sandbox, run_logged, sandbox_of
from howdah.build.tools import build_tools
from howdah.errors import HowdahError, ProfileError
from howdah.place import STACKS, file_of, recorded_name
from howdah.plan.plan import Plan
from howdah.profile.stack import Stack, read_stack
from howdah.record.run import StackOrigin

KIND = "stack"
_LEFT_OUT = ("target", "build")  # build directories of the user's beside the sources
_SPACE_BYTES = 500 * 2**20
_DYNAMIC = {
    "own": re.compile(r"Library soname: \[([^]/]+)\]"),
    "needed": re.compile(r"Shared library: \[([^]/]+)\]"),
}
_OF_THE_C_LIBRARY = ("libc.so", "libm.so", "libpthread.so", "libdl.so", "librt.so", "ld-linux")
_ASKED = ".partial-asked"
_KEPT_FROM = (
    "It came from elsewhere: what builds it has no network and none of your files, so its sources must be whole."
)
_LAYOUT = "3"  # part of the key: raise it when _build changes


@dataclass(frozen=True)
class BuiltStack:
    """A built stack. ``directory`` holds the program and its libraries; ``identity`` is a key of their content,
    ``tools`` maps the programs that built them to versions."""

    name: str
    directory: Path
    identity: str
    source: str
    tools: dict[str, str]

    def described(self) -> StackOrigin:
        return StackOrigin(identity=self.identity, source=self.source, tools=self.tools)


class StackUnsupportedError(HowdahError):
    """A program or library for building the stack is missing."""


@dataclass(frozen=True)
class StackSet:
    """The stacks that a plan needs, and why others of them do not build."""

    built: dict[str, BuiltStack]
    failed: dict[str, HowdahError]

    def choose(self) -> list[BuiltStack]:
        """Return all stacks. Raises HowdahError for one that did not build."""
        for error in self.failed.values():
            raise error
        return list(self.built.values())


def files_of(plan: Plan) -> dict[str, Path]:
    """Return name and YAML of each stack in a plan."""
    return {each.name: file_of(each.file) for flow in plan.flows for each in flow.stacks}


def provide_stacks(plan: Plan, progress: Progress, cache: Cache) -> StackSet:
    """Return the plan's stacks, built unless the cache has them."""
    made = StackSet({}, {})
    for name, file in files_of(plan).items():
        try:
            made.built[name] = build_stack(read_stack(file), progress, cache)
        except HowdahError as error:
            made.failed[name] = error
    return made


def build_stack(stack: Stack, progress: Progress, cache: Cache) -> BuiltStack:
    """Build a stack. Raises HowdahError with the build's error, and StackUnsupportedError for a missing program."""
    tools = build_tools(cache)
    versions = _versions(stack, _sandbox(stack, cache.path(KIND, f"{_ASKED}-{os.getpid()}"), tools.launch))
    parts: list[str | bytes] = [_LAYOUT, stack.file.read_bytes(), *versions.values()]
    for file in sources_in(stack.directory):
        parts += [str(file.relative_to(stack.directory)), file.read_bytes()]
    libraries = _libraries(stack)
    parts += [f"{name} {file_sha256(file)}" for name, file in libraries.items()]

    def build(directory: Path, log: Path) -> None:
        progress(f"stack {stack.name}: build", 0, 1)
        _build(stack, libraries, directory, log, tools.launch, _sandbox(stack, directory, tools.launch, directory))
        progress(f"stack {stack.name}: build", 1, 1)

    def waiting() -> None:
        progress(f"stack {stack.name} (built by another howdah, waiting)", 0, 0)

    entry = cache.build(KIND, content_key(*parts), build, needs_bytes=_SPACE_BYTES, waiting=waiting)
    content = sorted((file.name, file_sha256(file)) for file in entry.iterdir())
    identity = content_key(*(f"{name} {digest}" for name, digest in content))
    tools_used = {program: said.partition("\n")[0] for program, said in versions.items()}
    return BuiltStack(stack.name, entry, identity, recorded_name(stack.file), tools_used)


def _sandbox(stack: Stack, entry: Path, launcher: Path, *write: Path) -> Sandbox | None:
    return None if stack.file.parent == STACKS else sandbox_of(entry, launcher, write)


def _versions(stack: Stack, sandbox: Sandbox | None) -> dict[str, str]:
    """Return the version output of each program that the stack needs; its file names program and option."""
    found = {}
    for program, option in stack.section.needs.items():
        words, environment = [program, option], None
        if sandbox:
            words, environment = sandbox.command(words), sandbox.environment({})
        try:
            answer = subprocess.run(words, env=environment, capture_output=True, text=True, check=True)
        except (FileNotFoundError, PermissionError):
            what = f"unsupported: {program}, which builds the stack {stack.name}, is not installed"
            raise StackUnsupportedError(what, where=str(stack.file), hint=stack.section.hint or None) from None
        except subprocess.CalledProcessError as error:
            said = error.stderr.strip() or error.stdout.strip()
            what = f"unsupported: {program}, which builds the stack {stack.name}, does not work here: {said[:200]}"
            raise StackUnsupportedError(what, where=str(stack.file), hint=stack.section.hint or None) from None
        found[program] = answer.stdout.strip()
    return found


def sources_in(directory: Path) -> Iterable[Path]:
    """Yield all files that are read from a stack's directory, in order."""
    for file in sorted(directory.rglob("*")):
        parts = file.relative_to(directory).parts
        if file.is_file() and parts[0] not in _LEFT_OUT and not any(part.startswith(".") for part in parts):
            yield file


def _libraries(stack: Stack) -> dict[str, Path]:
    """Return the shared libraries to put beside the program, and their dependencies, by the loader's names.

    The C library is the guest's. Raises StackUnsupportedError.
    """
    found: dict[str, Path] = {}
    wanted = list(stack.section.libraries)
    for name in wanted:
        file = _library(stack, name)
        names = {kind: _DYNAMIC[kind].findall(_dynamic_section(file)) for kind in _DYNAMIC}
        found[(names["own"] or [name])[0]] = file
        wanted += [each for each in names["needed"] if each not in wanted and not each.startswith(_OF_THE_C_LIBRARY)]
    return found


def _dynamic_section(file: Path) -> str:
    """Return the output of readelf(1), which comes with the compiler."""
    environment = {**os.environ, "LC_ALL": "C"}
    return subprocess.run(
        ["readelf", "-d", str(file)], env=environment, capture_output=True, text=True, check=False
    ).stdout


def _library(stack: Stack, name: str) -> Path:
    """Return where the compiler finds a shared library. Raises StackUnsupportedError."""
    try:
        answer = subprocess.run(["gcc", f"-print-file-name={name}"], capture_output=True, text=True, check=False)
    except FileNotFoundError:
        what = f"unsupported: gcc, which finds the library {name} of the stack {stack.name}, is not installed"
        raise StackUnsupportedError(what, where=str(stack.file), hint=stack.section.hint or None) from None
    file = Path(answer.stdout.strip())
    if not file.is_absolute() or not file.is_file():
        what = f"unsupported: the library {name} of the stack {stack.name} is not installed"
        raise StackUnsupportedError(what, where=str(stack.file), hint=stack.section.hint or None)
    return file.resolve()


def _build(
    stack: Stack, libraries: dict[str, Path], directory: Path, log: Path, launcher: Path, sandbox: Sandbox | None
) -> None:
    work = directory / ".work"
    source = work / "source"
    for file in sources_in(stack.directory):
        if sandbox:
            sandbox.require_file(file)
        place = source / file.relative_to(stack.directory)
        place.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(file, place)
    places = {"{out}": str(directory), "{work}": str(work)}
    environment = {name: _filled(value, places) for name, value in stack.section.environment.items()}
    for command in stack.section.build:
        words = [_filled(word, places) for word in command]
        try:
            run_logged(words, log, launcher=launcher, sandbox=sandbox, cwd=source, environment=environment)
        except CommandFailedError as error:
            said = [line for line in error.tail if "rror" in line] or error.tail
            what = f"the stack {stack.name} does not build: " + " / ".join(line.strip() for line in said[-3:])
            hint = "\n  ".join(
                filter(None, [stack.section.hint, _KEPT_FROM if sandbox else "", f"The full output is in {log}"])
            )
            raise HowdahError(what, where=str(stack.file), hint=hint) from error
    shutil.rmtree(work)
    program = directory / stack.section.program
    if not program.is_file():
        what = f"the build of {stack.name} leaves no {stack.section.program} in {{out}}"
        raise ProfileError(what, where=str(stack.file))
    program.chmod(0o755)
    for name, file in libraries.items():
        shutil.copyfile(file, directory / name)


def _filled(text: str, places: dict[str, str]) -> str:
    for name, value in places.items():
        text = text.replace(name, value)
    return text
