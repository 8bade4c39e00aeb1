# SPDX-License-Identifier: Apache-2.0
"""Run directories in which a file is a pipe, a device, a link, huge and sparse, or named as no file of howdah's is."""

from __future__ import annotations

import contextlib
import os
import random
import shutil
from pathlib import Path

from tests.faults.bounded import run_bounded
from tests.faults.pack_file import unpacked
from tests.faults.processes import left_after
from tests.faults.sandbox import NAME, Sandbox
from tests.faults.trial import Case, CommandTrials

NO_FILES = ("pipe", "device", "link", "circle", "sparse", "unreadable", "directory", "encoding", "socket link")
COMMANDS = {
    "report": ["report", NAME, "--reanalyse", "--without-prometheus"],
    "verify": ["verify", f"{{runs}}/{NAME}"],
    "pack": ["pack", NAME, "-o", "{runs}/hostile.howdah.tar.zst"],
    "list": ["list"],
    "compare": ["compare", NAME, NAME, "--without-prometheus"],
    "export": ["export", NAME],
    "clean": ["clean"],
}
_SECRET = "the packer's private key"
_SPARSE_BYTES = 1 << 40


class Directories(CommandTrials):
    """``make(n)`` is the same for ever, for one good experiment."""

    def __init__(self, sandbox: Sandbox, seed: int) -> None:
        self.sandbox = sandbox
        self.seed = seed
        self.secret = sandbox.root / "secret"

    def make(self, number: int) -> Case:
        chance = random.Random(f"directories-{self.seed}-{number}")
        runs = self.sandbox.runs
        shutil.rmtree(runs, ignore_errors=True)
        self.sandbox.copy_reference()
        self.secret.write_text(_SECRET)
        kind = NO_FILES[number % len(NO_FILES)]
        files = sorted(file for file in (runs / NAME).rglob("*") if file.is_file() and "share" not in file.parts)
        file = chance.choice(files)
        name = str(file.relative_to(runs))
        spoil(file, kind, self.secret)
        command = list(COMMANDS)[number // len(NO_FILES) % len(COMMANDS)]
        words = [word.format(runs=runs) for word in COMMANDS[command]]
        request = {"kind": "command", "arguments": [*words, "--runs", str(runs)]}
        return Case(number, command, f"{kind} for {name}", request, b"")

    def tried(self, case: Case) -> tuple[bool, list[str]]:
        status, faults = run_bounded(self.sandbox, case.request["arguments"])
        pack = self.sandbox.runs / "hostile.howdah.tar.zst"
        if pack.is_file() and self._tells(pack):
            faults.append("the secret that a link points to is in the pack")
        if self.secret.read_text() != _SECRET:
            faults.append("the file that a link points to is another")
        for process in left_after(self.sandbox.root, 5.0):
            faults.append(f"a process is left: {process.words[:200]!r}")
        faults += self.sandbox.left()
        self.sandbox.clear_left()
        return status != 0, faults

    def _tells(self, pack: Path) -> bool:
        return _SECRET.encode() in unpacked(pack.read_bytes())


def spoil(file: Path, kind: str, secret: Path) -> None:
    """Put something of that kind in the file's place; ``secret`` is what a link points to."""
    if kind == "encoding":
        with contextlib.suppress(OSError):
            Path(os.fsdecode(os.fsencode(file.parent) + b"/\xff\x1b[2J\n")).write_bytes(file.read_bytes())
        return
    if kind == "unreadable":
        file.chmod(0)
        return
    file.unlink()
    match kind:
        case "pipe":
            os.mkfifo(file)
        case "device":
            file.symlink_to("/dev/zero")
        case "link":
            file.symlink_to(secret)
        case "circle":
            file.symlink_to(file.name)
        case "sparse":
            with file.open("wb") as opened:
                opened.truncate(_SPARSE_BYTES)
        case "directory":
            (file / "x").mkdir(parents=True)
        case _:
            file.symlink_to("/dev/log")
