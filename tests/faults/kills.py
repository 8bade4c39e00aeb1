# SPDX-License-Identifier: Apache-2.0
"""Commands killed at random moments: a random signal to a random process of theirs, and what is found afterwards.

Most moments are the one before an operation on a file, of which a command has some hundred: each is another state of
the disk. The others are moments in time, some of them while Python starts.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import random
import shutil
import signal
import subprocess
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field

from howdah.publish.prometheus import find as find_prometheus
from howdah.publish.server import free_port
from tests.faults.operations import Operations, go_on
from tests.faults.pack_file import index_of, unlike_its_index
from tests.faults.processes import Process, processes_of
from tests.faults.sandbox import REBUILT, Sandbox
from tests.faults.starter import Started

SIGNALS = (signal.SIGKILL, signal.SIGTERM, signal.SIGINT)
Running = subprocess.Popen[bytes] | Started
ENDED = "(ended)"  # before the signal
TERMINAL = "terminal"  # Ctrl-C: the whole process group of the command
_ENDS_WITHIN_S = 120.0
_BY_OPERATION = 0.75  # of the kills; of the others
_FORKED = 0.6  # are of a process that has loaded howdah, and the rest of one that is yet to do so
_OPERATIONS = 60  # of a command that has not ended yet
_SHARES = {"run": 5, "again": 3, "report": 3, "build": 2, "serve": 2, "serve --live": 1, "rerun": 2, "compare": 1}
_SHARES |= {"export": 1, "clean": 1, "pack": 2, "unpack": 2, "verify": 2, "verify a pack": 1, "nightly": 2}
_SUITE = """\
suite: small
cells: [{profile: tiny.yaml, name: tiny, algorithms: [cubic], repetitions: 3, primary: [utilisation]}]
"""
_NIGHT = "small-tiny-debian-6.12"
# These are given again, and then must end well; after the others the next run shows it.
_GIVEN_AGAIN = ("report", "rerun", "compare", "export", "pack", "unpack", "verify", "verify a pack", "nightly")


@dataclass
class Kill:
    """One round; ``number`` and the seed give the same command, signal and share of its time again."""

    number: int
    command: str
    target: str
    signal: str
    moment: str
    faults: list[str] = field(default_factory=list)


@dataclass
class KillTally:
    kills: list[Kill] = field(default_factory=list)
    resumed: int = 0
    missed: int = 0  # the command had ended before the signal

    def add(self, other: KillTally) -> None:
        self.kills = sorted([*self.kills, *other.kills], key=lambda kill: kill.number)
        self.resumed += other.resumed
        self.missed += other.missed

    @property
    def faults(self) -> list[Kill]:
        return [kill for kill in self.kills if kill.faults]

    def count(self, what: str) -> Counter[str]:
        return Counter(str(getattr(kill, what)) for kill in self.kills)


class Killer:
    """Kills commands in a sandbox, one after the other."""

    def __init__(self, sandbox: Sandbox, seed: int) -> None:
        self.sandbox = sandbox
        self.seed = seed
        self.usual_s: dict[str, float] = {}
        self.usual_operations: dict[str, int] = {}
        self.operations = Operations(sandbox.root / "operations")
        self.good_pack = sandbox.root / "good.howdah.tar.zst"
        self.pack = sandbox.runs / "tiny.howdah.tar.zst"
        self.unpacked = sandbox.runs / "taken-out"
        self.suite = sandbox.root / "small.yaml"
        self.suite.write_text(_SUITE)
        assert sandbox.reference is not None
        if sandbox.run(["pack", str(sandbox.reference), "--output", str(self.good_pack)]):
            raise AssertionError(f"the undisturbed pack: {sandbox.said()}")
        shares = dict(_SHARES)
        if find_prometheus() is None:
            del shares["serve"], shares["serve --live"]
        self.shares = shares

    def run(self, numbers: Iterable[int], told: Callable[[Kill], None] = lambda _kill: None) -> KillTally:
        """The kills of these numbers.

        After every one to three of them the runs are resumed and compared with undisturbed ones.
        """
        tally = KillTally()
        chance = random.Random(self.seed)
        until_resumed = 0
        kill = None
        for number in numbers:
            kill = self._kill(number, tally)
            until_resumed -= 1
            if until_resumed < 0:
                self._resume(kill, tally)
                until_resumed = chance.randrange(3)
            tally.kills.append(kill)
            told(kill)
        if kill is not None:
            self._resume(kill, tally)
        return tally

    def _resume(self, after: Kill, tally: KillTally) -> None:
        after.faults += self.sandbox.resume()
        tally.resumed += 1

    def _arguments(self, command: str, chance: random.Random) -> list[str]:
        """The command line, with the sandbox brought into a state in which it has something to do."""
        runs = ["--runs", str(self.sandbox.runs)]
        profile = str(self.sandbox.profile)
        if command == "run":
            shutil.rmtree(self.sandbox.runs / "tiny", ignore_errors=True)
            return ["run", profile, *runs, *(["--no-report"] if chance.random() < 0.5 else [])]
        if command == "build":
            # All of these take some seconds together; kernel and guest tree take minutes and are built the same way.
            for kind in chance.sample(REBUILT, chance.choice([1, 2])):
                shutil.rmtree(self.sandbox.cache / kind, ignore_errors=True)
            return ["build"]
        if command == "nightly":
            for run in sorted((self.sandbox.runs / _NIGHT).glob("cubic-*"))[: chance.choice([0, 1])]:
                shutil.rmtree(run)
            return ["nightly", str(self.suite), *runs, "--baseline", str(self.sandbox.root / "baseline"), "--accept"]
        if command in ("unpack", "verify a pack"):
            shutil.rmtree(self.unpacked, ignore_errors=True)
            return [
                command.partition(" ")[0],
                str(self.good_pack),
                *([str(self.unpacked)] if command == "unpack" else []),
            ]
        whole = list(self.sandbox.runs.glob("tiny/[!.]*/run.json"))
        if len(whole) < 2 or not (self.sandbox.runs / "tiny" / "experiment.json").exists():
            self.sandbox.copy_reference()  # a killed clean may have left an experiment without runs
        if command == "verify":
            return ["verify", "tiny", *runs, *(["--digests-only"] if chance.random() < 0.2 else [])]
        if command == "pack":
            self.pack.unlink(missing_ok=True)
            return ["pack", "tiny", "--output", str(self.pack), *runs]
        if command == "again":
            return ["run", profile, *runs, "--again", "--no-report"]
        if command == "report":
            without = ["--without-prometheus"] if chance.random() < 0.5 else []
            return ["report", "tiny", *runs, "--reanalyse", *without]
        if command.startswith("serve"):
            return [*command.split(), "--port", str(free_port()), *runs]
        if command == "rerun":
            return ["rerun", "tiny/cubic-r0", *runs]
        if command == "compare":
            return ["compare", "tiny", "tiny", *runs, "--without-prometheus"]
        if command == "export":
            return ["export", "tiny", *runs]
        return ["clean", *runs, *(["--all-runs"] if chance.random() < 0.5 else [])]

    def _kill(self, number: int, tally: KillTally) -> Kill:
        chance = random.Random(f"{self.seed}-{number}")
        command = chance.choices(list(self.shares), list(self.shares.values()))[0]
        arguments = self._arguments(command, chance)
        how = chance.choice(SIGNALS)
        usual_s = self.usual_s.get(command, 4.0)
        start = time.monotonic()
        if chance.random() < _BY_OPERATION and not command.startswith("serve"):
            process, target, moment = self._at_an_operation(command, arguments, how, chance)
        else:
            after_s = chance.uniform(0.0, usual_s)
            process, target = self._at_a_time(arguments, after_s, how, chance)
            moment = f"after {after_s:.3f} s"
        if target == ENDED:
            tally.missed += 1
            self.usual_s[command] = 0.9 * usual_s
        kill = Kill(number, command, target, how.name, moment)
        kill.faults += self._wait(process, command, how)
        if target != ENDED and not command.startswith("serve"):
            self.usual_s[command] = max(usual_s, min(time.monotonic() - start, 8.0))
        kill.faults += self.sandbox.at_once()
        kill.faults += self.sandbox.traceback()
        kill.faults += self._what_was_written()
        if command in _GIVEN_AGAIN and not self.unpacked.exists():
            self.operations.begin()
            if status := self._whole(arguments):
                kill.faults.append(f"given again, it ended with {status}: {self.sandbox.said()[-1500:]}")
            self.usual_operations[command] = self.operations.done
            kill.faults += self._what_was_written()
        return kill

    def _at_an_operation(
        self, command: str, arguments: list[str], how: signal.Signals, chance: random.Random
    ) -> tuple[Running, str, str]:
        """Stop the process that is about to do the n-th operation, send the signal, and let it go on."""
        usual = self.usual_operations.get(command, _OPERATIONS)
        stop_before = 1 + int(chance.random() * usual)
        self.operations.begin(stop_before)
        process = self.sandbox.fork(arguments, operations=self.operations.file)
        stopped = self.operations.stopped(_ENDS_WITHIN_S, lambda: process.poll() is not None)
        moment = f"before operation {stop_before} of some {usual}"
        if stopped is None:
            self.usual_operations[command] = self.operations.done
            return process, ENDED, moment
        target = self._send(process, how, chance)
        go_on(stopped)
        return process, target, moment

    def _at_a_time(
        self, arguments: list[str], after_s: float, how: signal.Signals, chance: random.Random
    ) -> tuple[Running, str]:
        is_fork = self.sandbox.starter is not None and chance.random() < _FORKED
        process: Running = self.sandbox.fork(arguments) if is_fork else self.sandbox.start(arguments)
        try:
            process.wait(after_s)
        except subprocess.TimeoutExpired:
            return process, self._send(process, how, chance)
        return process, ENDED

    def _whole(self, arguments: list[str]) -> int:
        """The command's status, with its operations counted."""
        if self.sandbox.starter is None:
            return self.sandbox.run(arguments)
        try:
            return self.sandbox.fork(arguments, operations=self.operations.file).wait(300.0)
        except subprocess.TimeoutExpired:
            return -1

    def _what_was_written(self) -> Iterator[str]:
        """A pack, or what was taken out of one, that has its name and is not whole."""
        if self.pack.exists():
            yield from (f"the pack is half-written: {problem}" for problem in unlike_its_index(self.pack))
        if self.unpacked.exists():
            files = {str(each.relative_to(self.unpacked)): each for each in self.unpacked.rglob("*") if each.is_file()}
            for name, known in index_of(self.good_pack)["files"].items():
                if name not in files or hashlib.sha256(files[name].read_bytes()).hexdigest() != known["sha256"]:
                    yield f"what was taken out of the pack is not whole: {name}"

    def _send(self, process: Running, how: signal.Signals, chance: random.Random) -> str:
        """The signal, to a process of a kind drawn from those there are."""
        there = processes_of(self.sandbox.root)
        kinds = sorted({each.kind for each in there} | {TERMINAL})
        # The command is always there, the others now and then.
        kind = chance.choices(kinds, [1 if kind in ("command", TERMINAL) else 3 for kind in kinds])[0]
        if kind == TERMINAL or process.poll() is not None:
            _signal(lambda: os.killpg(process.pid, how))
            return TERMINAL
        target: Process = chance.choice([each for each in there if each.kind == kind])
        _signal(lambda: os.kill(target.pid, how))
        return kind

    def _wait(self, process: Running, command: str, how: signal.Signals) -> list[str]:
        """Let the command end. A server whose helper was killed may go on, and is told to end."""
        limit_s = 1.0 if command.startswith("serve") else _ENDS_WITHIN_S
        try:
            process.wait(limit_s)
        except subprocess.TimeoutExpired:
            if command.startswith("serve"):
                process.send_signal(signal.SIGTERM)
                try:
                    process.wait(_ENDS_WITHIN_S)
                except subprocess.TimeoutExpired:
                    pass
                else:
                    return []
            process.kill()
            process.wait()
            return [f"'{command}' did not end in {_ENDS_WITHIN_S:g} s after {how.name}"]
        return []


def _signal(send: Callable[[], None]) -> None:
    with contextlib.suppress(ProcessLookupError):  # it has just ended
        send()
