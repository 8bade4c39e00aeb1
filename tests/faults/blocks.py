# SPDX-License-Identifier: Apache-2.0
"""Prometheus blocks beside an experiment, under the names that this user's howdah gave them: changed, or no files.

Whoever got a directory of the user's and sends it back has such names. A report is made, or it says what is wrong.
"""

from __future__ import annotations

import json
import random
import shutil
from pathlib import Path

from howdah.publish.blocks import DIRECTORY
from tests.faults.bounded import run_bounded
from tests.faults.directories import NO_FILES, spoil
from tests.faults.mutation import Corpus, Mutator
from tests.faults.processes import left_after
from tests.faults.sandbox import NAME, Sandbox
from tests.faults.trial import Case, CommandTrials

COMMANDS = (["report", NAME], ["compare", NAME, NAME], ["pack", NAME, "--output", "{root}/blocks.howdah.tar.zst"])
_DIRECTORIES = ("another's name", "no block", "many blocks", "gone")
_SECRET = "a file of the user's"


class Blocks(CommandTrials):
    """``make(n)`` is the same for ever but for the names of the blocks."""

    def __init__(self, sandbox: Sandbox, seed: int) -> None:
        self.sandbox = sandbox
        self.seed = seed
        self.secret = sandbox.root / "secret"
        sandbox.copy_reference()
        status, faults = run_bounded(sandbox, ["report", NAME, "--runs", str(sandbox.runs)], space_bytes=None)
        if status or faults:
            raise AssertionError(f"the good report: {status}: {faults} {sandbox.said()}")
        self.good = sandbox.root / "good-blocks"
        (sandbox.runs / NAME / DIRECTORY).rename(self.good)
        self.metas = {str(at): json.loads(file.read_text()) for at, file in enumerate(self.good.rglob("meta.json"))}
        self.kinds = ["damaged", "damaged", "meta", "meta", *NO_FILES, *_DIRECTORIES]

    def make(self, number: int) -> Case:
        chance = random.Random(f"blocks-{self.seed}-{number}")
        runs = self.sandbox.runs
        shutil.rmtree(runs, ignore_errors=True)
        self.sandbox.copy_reference()
        self.secret.write_text(_SECRET)
        there = runs / NAME / DIRECTORY
        shutil.copytree(self.good, there)
        kind = self.kinds[number % len(self.kinds)]
        what = self._spoil(there, kind, chance)
        command = chance.choices(COMMANDS, [6, 2, 1])[0]
        words = [word.format(root=self.sandbox.root) for word in command]
        request = {"kind": "command", "arguments": [*words, "--runs", str(runs)]}
        return Case(number, words[0], f"{kind}: {what}", request, b"")

    def _spoil(self, there: Path, kind: str, chance: random.Random) -> str:
        block = chance.choice(sorted(file.parent for file in there.rglob("meta.json")))
        file = chance.choice(sorted(file for file in block.rglob("*") if file.is_file()))
        if kind == "damaged":
            file.write_bytes(Mutator(Corpus.of({}, {}, []), chance).damaged(file.read_bytes()))
        elif kind == "meta":
            file = block / "meta.json"
            file.write_text(
                json.dumps(Mutator(Corpus.of({}, self.metas, []), chance).tree(json.loads(file.read_text())))
            )
        elif kind == "another's name":
            file = block.parent
            file.rename(file.with_name(f"{file.name[:-16]}{'0' * 16}"))
        elif kind == "no block":
            file = block
            shutil.rmtree(block)
            block.write_text("x")
        elif kind == "many blocks":
            file = block
            for number in range(300):
                shutil.copytree(block, block.with_name(f"{block.name[:-3]}{number:03d}"), dirs_exist_ok=True)
        elif kind == "gone":
            file = block / "chunks"
            shutil.rmtree(file)
        else:
            spoil(file, kind, self.secret)
        return file.name

    def tried(self, case: Case) -> tuple[bool, list[str]]:
        # Prometheus reserves more address space than it uses.
        status, faults = run_bounded(self.sandbox, case.request["arguments"], space_bytes=None)
        if self.secret.read_text() != _SECRET:
            faults.append("the file that a link points to is another")
        faults += [f"a process is left: {each.words[:200]!r}" for each in left_after(self.sandbox.root, 5.0)]
        faults += self.sandbox.left()
        self.sandbox.clear_left()
        (self.sandbox.root / "blocks.howdah.tar.zst").unlink(missing_ok=True)
        return status != 0, faults
