# SPDX-License-Identifier: Apache-2.0
"""A sweep on a cluster whose workers, scheduler and client are killed, stopped, cut off and left without room.

Two workers, each with a network and a disk of its own (island.py). A supervisor starts again what has died, as systemd
does. What must hold: the guests of a worker that was killed die; in the end every run is there and has one result; no
worker made a run again that one had finished; some runs, made again without a cluster, come out the same; no process
is left.
"""

from __future__ import annotations

import contextlib
import json
import os
import random
import secrets
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from datetime import datetime, timedelta
from pathlib import Path

from howdah.build.cache import cache_root
from howdah.publish.server import free_port
from howdah.record.directory import RunDirectory, read_json
from howdah.record.provenance import now
from tests.faults.island import MIDDLE, Island, inside, islands_missing, make_middle
from tests.faults.processes import end_all, left_after, processes_of

ROOT = Path(__file__).resolve().parents[2]
# Of so many faults in all, on average:
FAULTS = {"worker": 8, "run": 4, "guest": 4, "scheduler": 1, "client": 2, "stall": 1, "cut": 1, "disk": 1}
KILLS = ("worker", "run", "guest", "scheduler", "client")
_PROFILE = """\
howdah: 1
name: tiny
path: {{rate: 10 Mbit/s, rtt: 20 ms}}
algorithm: [cubic, reno]
duration: 1 s
repetitions: {repetitions}
"""
_STALL_S = 10.0
_CUT_S = (5.0, 45.0)  # shorter and longer than TCP waits (Dask: 30 s)
_FULL_S = 15.0
_LEFT_WITHIN_S = 20.0
_GUESTS_WITHIN_S = 10.0  # guests of a worker that was killed are dead
_MADE_AGAIN = 8  # runs of the finished sweep that are made once more here, and compared
_SLOWEST_S = 120.0  # of a run, on a machine that others use too: the sweep is given up after so much for each


@dataclass(frozen=True)
class Made:
    """A run that a worker finished."""

    place: str
    begun: datetime
    ended: datetime
    results: str

    def __str__(self) -> str:
        return f"on {self.place} from {self.begun:%H:%M:%S} to {self.ended:%H:%M:%S}"


@dataclass
class Tally:
    """``faults_made`` are those that were made, ``found`` what went wrong, in words."""

    faults_made: list[str] = field(default_factory=list)
    found: list[str] = field(default_factory=list)
    details: str = ""
    kills: int = 0


class Cluster:
    """Processes by name: scheduler, worker 1, worker 2, client."""

    def __init__(self, root: Path, runs: int) -> None:
        self.root = root
        make_middle()
        self.islands = {f"worker {number}": Island(number, root / f"worker-{number}" / "cache") for number in (1, 2)}
        port = str(free_port())
        self.address = f"tcp://{MIDDLE}:{port}"
        self.runs = root / "runs"
        self.profile = root / "tiny.yaml"
        self.profile.write_text(_PROFILE.format(repetitions=(runs + 1) // 2))
        self.processes: dict[str, subprocess.Popen[bytes]] = {}
        self.commands = {
            "scheduler": ["cluster", "scheduler", "--host", MIDDLE, "--port", port],
            **{
                name: ["cluster", "worker", self.address, "--jobs", "1", "--host", island.address]
                for name, island in self.islands.items()
            },
            "client": ["run", str(self.profile), "--runs", str(self.runs), "--no-report", "--scheduler", self.address],
        }
        self.client_status: int | None = None

    def start(self, name: str) -> None:
        place = self.root / name.replace(" ", "-")
        for directory in ("tmp", "run", "home"):
            (place / directory).mkdir(parents=True, exist_ok=True)
        cache = cache_root() if name in ("client", "scheduler") else place / "cache"
        places = {"TMPDIR": place / "tmp", "XDG_RUNTIME_DIR": place / "run", "HOME": place / "home"}
        environment = {**os.environ, **{key: str(value) for key, value in places.items()}}
        environment |= {"HOWDAH_CACHE": str(cache), "PYTHONPATH": str(ROOT), "LC_ALL": "C.UTF-8"}
        command = [sys.executable, "-m", "howdah.command.main", *self.commands[name]]
        if name in self.islands:
            command = self.islands[name].enter(command)
        with (self.root / f"{name}.txt").open("ab") as said:
            self.processes[name] = subprocess.Popen(
                command,
                cwd=self.root,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=said,
                stderr=said,
                start_new_session=True,
            )

    def supervise(self) -> None:
        """Start again what has died, but a client that has ended by itself."""
        for name, process in list(self.processes.items()):
            status = process.poll()
            if status is None or self.client_status is not None:
                continue
            if name == "client" and status >= 0:
                self.client_status = status
            else:
                self.start(name)

    def finished(self) -> int:
        return len(list(self.runs.glob("tiny/[!.]*/run.json")))

    def made(self) -> dict[str, list[Made]]:
        """By key each time that a worker finished it, the first one first."""
        found: dict[str, list[Made]] = {}
        for place in self.root.glob("worker-*"):
            file = place / "cache" / "unfetched" / ".made"
            for line in file.read_text().splitlines() if file.exists() else ():
                at, key, results, wall = line.split()
                ended = datetime.fromisoformat(at)
                found.setdefault(key, []).append(
                    Made(place.name, ended - timedelta(seconds=float(wall)), ended, results)
                )
        return {key: sorted(each, key=lambda made: made.ended) for key, each in found.items()}

    def end(self) -> None:
        for process in self.processes.values():
            with contextlib.suppress(ProcessLookupError):
                process.send_signal(signal.SIGCONT)
                process.terminate()
        for process in self.processes.values():
            try:
                process.wait(30)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()

    def close(self) -> None:
        for island in self.islands.values():
            island.end()


def workers_missing() -> str | None:
    """Why there can be no such sweep here."""
    return islands_missing()


def run_workers(runs: int, faults: int, seed: int, tell: Callable[[str], None], *, kind: str = "") -> Tally:
    """A sweep of ``runs`` runs with at most ``faults`` faults, spread over it, in namespaces of its own. All faults are
    of one ``kind`` if it is given."""
    command = inside("tests.faults.workers", [str(runs), str(faults), str(seed), kind])
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        last = ""
        try:
            for line in process.stdout:
                if last:
                    tell(last)
                last = line.rstrip("\n")
        except BaseException:
            process.terminate()
            raise
    try:
        return Tally(**json.loads(last))
    except ValueError:
        return Tally(found=[f"the sweep itself failed with {process.returncode}: {last}"])


def _run_inside(runs: int, faults: int, seed: int, kind: str, tell: Callable[[str], None]) -> Tally:
    root = Path("/tmp") / f"hw-{os.getpid()}-{secrets.token_hex(3)}"
    root.mkdir(mode=0o700)
    tally = Tally()
    cluster = Cluster(root, runs)
    begun = time.monotonic()
    try:
        shares = {kind: 1} if kind else FAULTS
        _disturb(cluster, runs, faults, shares, random.Random(seed), tally, tell)
        cluster.end()
        tally.found += [
            f"a process is left: {each.kind} {each.words[:200]!r}" for each in left_after(root, _LEFT_WITHIN_S)
        ]
        tally.found += [*_judged(cluster, runs), *_made_again(cluster, random.Random(seed), tell)]
        more = sum(len(made) - 1 for made in cluster.made().values())
    finally:
        with contextlib.suppress(Exception):
            cluster.end()
        end_all(root)
        cluster.close()
        shutil.rmtree(root, ignore_errors=True)
    kinds = ", ".join(f"{count} {name}" for name, count in sorted(Counter(tally.faults_made).items()))
    took = f"{runs} runs in {time.monotonic() - begun:.0f} s, {more} of them finished by two workers"
    tally.details = f"{took}; {tally.kills} kills; {kinds}"
    return tally


def _disturb(
    cluster: Cluster,
    runs: int,
    faults: int,
    shares: dict[str, int],
    chance: random.Random,
    tally: Tally,
    tell: Callable[[str], None],
) -> None:
    for name in cluster.commands:
        cluster.start(name)
    limit = time.monotonic() + _SLOWEST_S * (runs + 2)
    every = runs / (faults + 1)
    next_at = every
    while cluster.client_status is None and time.monotonic() < limit:
        time.sleep(chance.uniform(0.1, 0.7))
        cluster.supervise()
        if len(tally.faults_made) < faults and cluster.finished() >= next_at:
            kind = chance.choices(list(shares), list(shares.values()))[0]
            tally.faults_made.append(_fault(cluster, kind, chance, tally))
            tally.kills += kind in KILLS
            tell(f"{now()}: {cluster.finished()} of {runs} runs: {tally.faults_made[-1]}")
            next_at += every
    if cluster.client_status != 0:
        said = (cluster.root / "client.txt").read_text(errors="replace")
        tally.found.append(f"the sweep ended with {cluster.client_status}: {said[-1500:]}")


def _fault(cluster: Cluster, kind: str, chance: random.Random, tally: Tally) -> str:
    """What was done."""
    name = f"worker {chance.randint(1, 2)}"
    place = str(cluster.root / name.replace(" ", "-"))
    if kind in ("run", "guest"):
        wanted = "worker" if kind == "run" else "guest"
        there = [each for each in processes_of(cluster.root) if each.kind == wanted]
        if there:
            chance.choice(there).end()
            return f"killed a {kind}"
        kind = "worker"
    if kind == "stall":
        process = cluster.processes[name]
        process.send_signal(signal.SIGSTOP)
        time.sleep(_STALL_S)
        process.send_signal(signal.SIGCONT)
        return "stopped a worker for 10 s"
    if kind == "cut":
        return _cut(cluster, cluster.islands[name], chance.choice(_CUT_S))
    if kind == "disk":
        return _fill(cluster, name)
    target = cluster.processes[kind if kind in cluster.processes else name]
    before = {each.pid for each in processes_of(cluster.root) if each.kind == "guest" and place in each.words}
    target.kill()
    target.wait()
    if kind == "worker":
        end = time.monotonic() + _GUESTS_WITHIN_S
        while alive := {each.pid for each in processes_of(cluster.root)} & before:
            if time.monotonic() > end:
                tally.found.append(f"{len(alive)} guests of a killed worker live on")
                break
            time.sleep(0.1)
    return f"killed the {kind}"


def _cut(cluster: Cluster, island: Island, seconds: float) -> str:
    """The supervisor goes on meanwhile: nothing has died."""
    island.cut()
    _supervise_for(cluster, seconds)
    island.join()
    return f"cut a worker off for {seconds:g} s"


def _fill(cluster: Cluster, name: str) -> str:
    """The worker is not started again: it is used again when it has room."""
    cluster.islands[name].fill()
    _supervise_for(cluster, _FULL_S)
    cluster.islands[name].empty()
    return f"left a worker without room for {_FULL_S:g} s"


def _supervise_for(cluster: Cluster, seconds: float) -> None:
    end = time.monotonic() + seconds
    while time.monotonic() < end and cluster.client_status is None:
        cluster.supervise()
        time.sleep(0.2)


def _judged(cluster: Cluster, runs: int) -> list[str]:
    """What does not hold."""
    found = []
    there = [RunDirectory(file.parent) for file in cluster.runs.glob("tiny/[!.]*/run.json")]
    wanted = 2 * ((runs + 1) // 2)
    records = [read_json(run.provenance) for run in there]
    if sum(record["status"] == "finished" for record in records) != wanted:
        found.append(f"{len(there)} runs are there, {wanted} were asked for: {Counter(r['status'] for r in records)}")
    for key, made in cluster.made().items():
        if len({each.results for each in made}) > 1:
            found.append(f"a run has two results: {key[:12]}")
        if any(each.begun > made[0].ended for each in made[1:]):  # not of two that made it at once
            found.append(f"a run that had finished was made again: {key[:12]} {', '.join(map(str, made))}")
    hidden = [path.name for path in cluster.runs.glob("tiny/.partial-*")]
    return found + ([f"left: {hidden}"] if hidden else [])


def _made_again(cluster: Cluster, chance: random.Random, tell: Callable[[str], None]) -> list[str]:
    """Some of the runs without a cluster: those that come out differently."""
    there = sorted(file.parent for file in cluster.runs.glob("tiny/[!.]*/run.json"))
    chosen = chance.sample(there, min(_MADE_AGAIN, len(there)))
    found = []
    for run in chosen:
        command = [sys.executable, "-m", "howdah.command.main", "rerun", str(run), "--runs", str(cluster.runs)]
        done = subprocess.run(command, cwd=ROOT, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            found.append(f"made again, {run.name} is another: {done.stdout[-400:]} {done.stderr[-400:]}")
    tell(f"{now()}: {len(chosen) - len(found)} of {len(chosen)} runs, made again without a cluster, are equal")
    return found


def main() -> int:
    """Within the namespaces: lines of what was done, and the tally as JSON in the last one."""
    signal.signal(signal.SIGTERM, lambda _number, _frame: sys.exit(1))
    runs, faults, seed = (int(word) for word in sys.argv[1:4])
    tally = _run_inside(runs, faults, seed, sys.argv[4], lambda text: print(text, flush=True))  # noqa: T201
    sys.stdout.write(json.dumps(asdict(tally)) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
