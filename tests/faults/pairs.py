# SPDX-License-Identifier: Apache-2.0
"""Two at once: two commands on one directory, two users on one cache.

Each does its work or says who is in its way. Afterwards nothing is half-written, and no file of the other user's ran.
"""

from __future__ import annotations

import os
import random
import shutil
import subprocess
import time

from howdah.build.seal import seal_of
from tests.faults.bounded import LIMIT_S, NOTHING, Around, command_in, faults_in, other_user_missing
from tests.faults.sandbox import REBUILT, Sandbox
from tests.faults.starter import Started
from tests.faults.trial import Case, CommandTrials

_READS = (
    *(["report", "{name}", "--reanalyse"], ["report", "{name}", "--without-prometheus"], ["verify", "{name}"]),
    *(["pack", "{name}", "--output", "{root}/pack{number}.howdah.tar.zst"], ["export", "{name}"], ["claims", "{name}"]),
    *(["compare", "{name}", "{name}"], ["clean"], ["list", "runs"], ["score", "{name}"]),
)
_MAKES = (["run", "{profile}", "--no-report"], ["run", "{profile}", "--again", "--no-report"], ["rerun", "{first}"])
_OTHERS = (
    ["list", "kernels"],
    ["doctor"],
    ["plan", "quick"],
    ["clean"],
    ["build"],
    ["run", "{profile}", "--no-report"],
)
_OTHER_USER = 65534


class Pairs(CommandTrials):
    """``make(n)`` is the same for ever. Without guests the commands are those that need none."""

    def __init__(self, sandbox: Sandbox, seed: int) -> None:
        self.sandbox = sandbox
        self.seed = seed
        assert sandbox.reference is not None
        self.name = sandbox.reference.name
        self.has_guests = self.name == "tiny"
        self.canary = sandbox.root / "canary"
        self.theirs = sandbox.root / "theirs"
        self.kinds = ["one directory"] * 3 + ([] if other_user_missing() else ["another's cache", "a planted entry"])

    def make(self, number: int) -> Case:
        chance = random.Random(f"pairs-{self.seed}-{number}")
        kind = self.kinds[number % len(self.kinds)]
        if kind == "a planted entry" and not self.has_guests:
            kind = "one directory"
        shutil.rmtree(self.sandbox.runs, ignore_errors=True)
        self.sandbox.copy_reference()
        commands = [*_READS, *(_MAKES if self.has_guests else ())]
        second = chance.choice(_OTHERS if kind == "another's cache" else commands)
        words = [self._words(chance.choice(commands), 0), self._words(second, 1)]
        if kind == "a planted entry":
            words = [self._words(_MAKES[1], 0), self._words(["list", "kernels"], 1)]
        base = " | ".join(" ".join(each[:2]) for each in words)
        request = {"commands": words, "later_s": chance.choice([0.0, 0.0, 0.3, 1.0, 3.0])}
        return Case(number, kind, base, request, b"")

    def _words(self, command: list[str], number: int) -> list[str]:
        assert self.sandbox.reference is not None
        first = sorted(path.parent.name for path in self.sandbox.reference.glob("*/plan.json"))[0]
        places = {"name": self.name, "root": self.sandbox.root, "profile": self.sandbox.profile, "number": number}
        words = [word.format(**places, first=f"{self.name}/{first}") for word in command]
        with_runs = words[0] not in ("doctor", "plan", "build") and words[:2] != ["list", "kernels"]
        return [*words, *(["--runs", str(self.sandbox.runs)] if with_runs else [])]

    def tried(self, case: Case) -> tuple[bool, list[str]]:
        arounds = [NOTHING, NOTHING]
        if case.kind == "another's cache":
            arounds[1] = self._other_user()
        planted = self._plant(case.number) if case.kind == "a planted entry" else None
        faults, refused = self._run_both(case, arounds)
        if planted is not None:
            if self.canary.exists():
                faults.append(f"what another user had put into the cache ran: {planted}")
            self._take_out(planted)
        self.canary.unlink(missing_ok=True)
        faults += [*self.sandbox.at_once(), *self._after()]
        shutil.rmtree(self.theirs, ignore_errors=True)
        for pack in self.sandbox.root.glob("pack?.howdah.tar.zst"):
            pack.unlink()
        return refused, faults

    def _other_user(self) -> Around:
        """Who may look into the cache, but has directories of their own for the rest."""
        self.sandbox.root.chmod(0o755)
        for name in ("tmp", "run", "home", "runs"):
            (self.theirs / name).mkdir(parents=True)
        for place in (self.theirs, *self.theirs.iterdir()):
            os.chown(place, _OTHER_USER, _OTHER_USER)
        own: dict[str, str | None] = {"TMPDIR": "tmp", "XDG_RUNTIME_DIR": "run", "HOME": "home", "HOWDAH_RUNS": "runs"}
        own = {name: str(self.theirs / str(place)) for name, place in own.items()}
        own["HOWDAH_MEMORY_DIR"] = None
        return Around("another user", own, directory=self.theirs, other_user=True)

    def _plant(self, number: int) -> str:
        """An entry of what is built here, with programs and modules that leave a mark, and its seal, all another's."""
        kind = REBUILT[number % len(REBUILT)]
        entries = [each for each in sorted((self.sandbox.cache / kind).iterdir()) if not each.name.startswith(".")]
        shell = f"#!/bin/sh\n: > {self.canary}\n"
        for entry in (each for each in entries if each.is_dir()):
            for file in [each for each in entry.rglob("*") if each.is_file() and not each.is_symlink()]:
                text = f"open({str(self.canary)!r}, 'w')\n" if file.suffix == ".py" else shell
                mode = file.stat().st_mode
                file.unlink()  # it is a link to this machine's own
                file.write_text(text)
                file.chmod(mode)
                os.chown(file, _OTHER_USER, _OTHER_USER)
            os.chown(entry, _OTHER_USER, _OTHER_USER)
            if seal_of(entry).exists():
                os.chown(seal_of(entry), _OTHER_USER, _OTHER_USER)
        return kind

    def _take_out(self, kind: str) -> None:
        """What was planted goes; what was there comes back."""
        shutil.rmtree(self.sandbox.cache / kind)
        self.sandbox.link(kind)

    def _run_both(self, case: Case, arounds: list[Around]) -> tuple[list[str], bool]:
        processes: list[subprocess.Popen[bytes] | Started] = []
        for number, (words, around) in enumerate(zip(case.request["commands"], arounds, strict=True)):
            if number:
                time.sleep(case.request["later_s"])
            said = self.sandbox.root / f"said{number}.txt"
            if self.sandbox.starter is not None and around is NOTHING:
                processes.append(self.sandbox.fork(words, said=said.name))
                continue
            command, environment, directory = command_in(self.sandbox, words, around)
            if around.other_user and "--runs" in words:
                command[-1] = str(self.theirs / "runs")
            with said.open("wb") as out:
                processes.append(
                    subprocess.Popen(
                        command, cwd=directory, env=environment, stdin=subprocess.DEVNULL, stdout=out, stderr=out,
                        start_new_session=True,
                    )
                )  # fmt: skip
        faults, refused = [], False
        for number, process in enumerate(processes):
            said = self.sandbox.root / f"said{number}.txt"
            named = " ".join(case.request["commands"][number][:2])
            try:
                status = process.wait(2 * LIMIT_S)
            except subprocess.TimeoutExpired:
                process.kill()
                faults.append(f"'{named}' did not end in {2 * LIMIT_S:g} s: {said.read_text()[-500:]}")
                process.wait()
                continue
            refused = refused or status != 0
            faults += faults_in(named, status, said.read_bytes().decode(errors="replace"))
            said.unlink()
        return faults, refused

    def _after(self) -> list[str]:
        """What the next command finds."""
        if self.has_guests:
            return self.sandbox.resume()
        status = self.sandbox.run(["report", self.name, "--without-prometheus", "--runs", str(self.sandbox.runs)])
        faults = [] if status == 0 else [f"the next command ended with {status}: {self.sandbox.said()[-500:]}"]
        faults += self.sandbox.left()
        self.sandbox.clear_left()
        return faults
