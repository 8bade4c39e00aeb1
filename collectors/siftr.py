# SPDX-License-Identifier: Apache-2.0
"""FreeBSD's SIFTR for an experiment: ``siftr.py start`` before it, ``siftr.py stop`` after it, as root.

The kernel itself writes the log; this program switches it on and off and records what the log lacks. It is copied to
FreeBSD hosts alone, so it imports nothing of howdah and nothing beyond the standard library.

Writes ``NODE.log``, SIFTR's own text (siftr(4)), and ``NODE.json``: ``node``, ``system``, ``port``, the host's wall
clock at switching on and off, and ``epoch_realtime_ns``, its wall clock at time zero of the plan.
"""

from __future__ import annotations

import argparse
import json
import platform
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

_TREE = "net.inet.siftr"
Sysctl = Callable[[str], str]


class SiftrError(Exception):
    """SIFTR cannot be used here; the message says why and what to do."""


def sysctl(argument: str) -> str:
    """Run ``sysctl -n NAME`` or ``sysctl NAME=VALUE`` and return its output. Raises SiftrError."""
    command = ["sysctl", *(["-n"] if "=" not in argument else []), argument]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    except OSError as error:
        raise SiftrError(f"sysctl cannot be run: {error.strerror}") from error
    if done.returncode != 0:
        raise SiftrError(f"'{' '.join(command)}' failed: {done.stderr.strip() or done.stdout.strip()}")
    return done.stdout.strip()


class Siftr:
    """SIFTR of this host. ``directory`` has the log and the note, which ``node`` names."""

    def __init__(self, directory: Path, node: str, control: Sysctl = sysctl) -> None:
        self.log = directory / f"{node}.log"
        self.note = directory / f"{node}.json"
        self._node = node
        self._control = control

    def start(self, port: int | None) -> None:
        """Switch SIFTR on for packets of ``port``, or of all ports. Raises SiftrError."""
        try:
            enabled = self._control(f"{_TREE}.enabled")
        except SiftrError as error:
            raise SiftrError(f"SIFTR is not loaded ({error}): kldload siftr") from error
        if enabled != "0":
            raise SiftrError(f"SIFTR is on already and writes {self._control(f'{_TREE}.logfile')}: stop that first")
        if self.log.exists():
            raise SiftrError(f"{self.log} is there already, and SIFTR would add to it: choose another directory")
        self.log.parent.mkdir(parents=True, exist_ok=True)
        self._control(f"{_TREE}.logfile={self.log.resolve()}")
        self._control(f"{_TREE}.ppl=1")
        if port is not None:
            # Older systems have no filter; they log every connection, and ingest skips those of no flow.
            try:
                self._control(f"{_TREE}.port_filter={port}")
            except SiftrError:
                port = None
        note = {"format": 1, "node": self._node, "system": f"{platform.system()} {platform.release()}", "port": port}
        self._write(note | {"start_realtime_ns": time.time_ns()})
        self._control(f"{_TREE}.enabled=1")

    def stop(self, epoch_realtime_ns: int | None) -> None:
        """Switch SIFTR off, which also writes the log's last line. Raises SiftrError."""
        self._control(f"{_TREE}.enabled=0")
        try:
            note = json.loads(self.note.read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            raise SiftrError(f"{self.note} cannot be read: was it started with this directory and node?") from error
        self._write(note | {"stop_realtime_ns": time.time_ns(), "epoch_realtime_ns": epoch_realtime_ns})

    def _write(self, note: dict[str, Any]) -> None:
        temporary = self.note.with_name(f".{self.note.name}.new")
        temporary.write_text(json.dumps(note) + "\n", encoding="utf-8")
        temporary.replace(self.note)


def main(arguments: list[str] | None = None, control: Sysctl = sysctl) -> int:
    parser = argparse.ArgumentParser(prog="siftr.py", description="Switch FreeBSD's SIFTR on or off.")
    parser.add_argument("action", choices=("start", "stop"))
    parser.add_argument("--directory", type=Path, default=Path("/var/db/howdah/siftr"))
    parser.add_argument("--node", default=platform.node(), help="name of this host in the plan")
    parser.add_argument("--port", type=int, default=None, help="start: only connections with this port")
    parser.add_argument(
        "--epoch-realtime-ns", type=int, default=None, help="stop: this host's wall clock at time zero of the plan"
    )
    options = parser.parse_args(arguments)
    siftr = Siftr(options.directory, options.node, control)
    try:
        if options.action == "start":
            siftr.start(options.port)
        else:
            siftr.stop(options.epoch_realtime_ns)
    except (SiftrError, OSError) as error:
        sys.stderr.write(f"siftr.py {options.action}: {error}\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
