# SPDX-License-Identifier: Apache-2.0
"""Disks that give out: full, without inodes, read-only, or with a limit on a file's size, under runs or cache.

The rounds have a mount namespace of their own, and each a small tmpfs where the command writes. The command ends in
words and leaves nothing that looks whole; once there is room again, the next one goes on.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import subprocess
import sys
import traceback
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path

from tests.faults.sandbox import REBUILT, ROOT, Sandbox
from tests.faults.starter import Starter

TROUBLES = ("full", "inodes", "read-only", "file size")
PLACES = ("runs", "report", "cache")
_PAGE = 4096
_MOST_BYTES = 2_500_000
_ROOM = "size=400m,nr_inodes=100000"
_NAMESPACE = ("unshare", "--mount", "--propagation", "private")


@dataclass
class Disk:
    """One round: what was wrong with the disk under what, and how much room there was."""

    number: int
    place: str
    trouble: str
    room: int
    ended: int = 0
    faults: list[str] = field(default_factory=list)


def namespaces_missing() -> str | None:
    """Why no mount namespace can be had; None where it can."""
    probe = [*_namespace(), "mount", "-t", "tmpfs", "none", "/mnt"]
    try:
        done = subprocess.run(probe, capture_output=True, text=True, check=False)
    except FileNotFoundError:
        return "the program unshare is not installed"
    return None if done.returncode == 0 else f"no mount namespace here: {done.stderr.strip()}"


def _namespace() -> list[str]:
    return [*_NAMESPACE, *([] if os.geteuid() == 0 else ["--map-root-user"])]


def run_disks(sandbox: Sandbox, count: int, seed: int, told: Callable[[Disk], None] = lambda _disk: None) -> list[Disk]:
    """So many rounds, in a namespace of their own.

    The process there has the sandbox's path nowhere but on its standard input: it is none of the processes that a round
    may leave. Its commands are forks.
    """
    found = []
    command = [*_namespace(), sys.executable, "-m", "tests.faults.disks"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    pipe = subprocess.PIPE
    with subprocess.Popen(command, env=environment, cwd=ROOT, stdin=pipe, stdout=pipe, text=True) as rounds:
        assert rounds.stdin is not None
        assert rounds.stdout is not None
        for number in range(count):
            chance = random.Random(f"disks-{seed}-{number}")
            # Every combination comes in turn; how much room there is, is drawn.
            place, trouble = PLACES[number % len(PLACES)], TROUBLES[number // len(PLACES) % len(TROUBLES)]
            room = chance.randrange(60) if trouble == "inodes" else chance.randrange(_MOST_BYTES)
            disk = Disk(number, place, trouble, room)
            rounds.stdin.write(json.dumps({"root": str(sandbox.root), "disk": asdict(disk)}) + "\n")
            rounds.stdin.flush()
            disk = Disk(**json.loads(rounds.stdout.readline()))
            disk.faults += sandbox.at_once()
            sandbox.clear_left()
            found.append(disk)
            told(disk)
    return found


def _round(sandbox: Sandbox, disk: Disk) -> None:
    """Within the namespace."""
    mounted = sandbox.cache if disk.place == "cache" else sandbox.runs
    _mount_over(mounted, keep=disk.place == "cache")
    sandbox.expected_mounts = sandbox.mounts()
    arguments = ["run", str(sandbox.profile), "--runs", str(sandbox.runs), "--no-report"]
    if disk.place == "cache":
        arguments = ["build"]
        for kind in REBUILT:
            shutil.rmtree(sandbox.cache / kind, ignore_errors=True)
    elif disk.place == "report":
        sandbox.copy_reference()
        arguments = ["report", "tiny", "--runs", str(sandbox.runs), "--reanalyse", "--without-prometheus"]
    disk.ended = sandbox.run(arguments, limits=_make_trouble(mounted, disk))
    said = sandbox.said()
    if disk.ended == -1:
        disk.faults.append(f"it did not end: {said[-1000:]}")
    if disk.ended and not said.strip():
        disk.faults.append(f"it ended with {disk.ended} and said nothing")
    disk.faults += sandbox.traceback()
    _remount(mounted, f"rw,{_ROOM}")
    disk.faults += [*sandbox.at_once(), *sandbox.resume()]
    if disk.faults:
        disk.faults.append(f"what it had said: {said[-1500:]}")


def _mount_over(place: Path, *, keep: bool) -> None:
    """A tmpfs over a directory; with ``keep`` what was there is linked into it."""
    behind = place.with_name(f"{place.name}-behind")
    behind.mkdir(exist_ok=True)
    place.mkdir(exist_ok=True)
    _call("mount", "--bind", str(place), str(behind))
    _call("mount", "-t", "tmpfs", "-o", _ROOM, "none", str(place))
    for entry in behind.iterdir() if keep else ():
        if entry.name not in (*REBUILT, "log"):
            (place / entry.name).symlink_to(entry)


def _make_trouble(mounted: Path, disk: Disk) -> dict[str, int]:
    """Take the room away; a limit of a file's size is that of the command's process and is returned."""
    if disk.trouble == "file size":
        return {"RLIMIT_FSIZE": disk.room}
    status = os.statvfs(mounted)
    used_bytes = (status.f_blocks - status.f_bfree) * status.f_frsize
    if disk.trouble == "full":
        _remount(mounted, f"size={-(-(used_bytes + disk.room) // _PAGE) * _PAGE or _PAGE}")
    elif disk.trouble == "inodes":
        _remount(mounted, f"nr_inodes={status.f_files - status.f_ffree + disk.room}")
    else:
        _remount(mounted, "ro")
    return {}


def _remount(place: Path, options: str) -> None:
    _call("mount", "-o", f"remount,{options}", str(place))


def _call(*command: str) -> None:
    subprocess.run(command, check=True, capture_output=True)


def main() -> int:
    starter = Starter()
    for line in sys.stdin:
        asked = json.loads(line)
        sandbox, disk = Sandbox(Path(asked["root"])), Disk(**asked["disk"])
        sandbox.reference = sandbox.root / "reference" / "tiny"
        sandbox.starter = starter
        try:
            _round(sandbox, disk)
        except Exception:  # noqa: BLE001 - a round that fails is told of, and the next one begins
            disk.faults.append(f"the round itself failed: {traceback.format_exc()[-2000:]}")
        for mount in sandbox.mounts():
            _call("umount", "--lazy", mount.split()[4])
        sys.stdout.write(json.dumps(asdict(disk)) + "\n")
        sys.stdout.flush()
    starter.end()
    return 0


if __name__ == "__main__":
    sys.exit(main())
