# SPDX-License-Identifier: Apache-2.0
"""Asks howdah a question as a person does, with a profile and ``howdah run``, and reads all that it answers."""

from __future__ import annotations

import os
import re
import subprocess
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from howdah.build.cache import content_key, locked
from howdah.record import table as store
from howdah.record.connections import read_connections
from howdah.record.directory import RunDirectory, read_json
from tests.guest.remembering import COMMAND

_WHOLE = ".whole"
_NUMBER = re.compile(r"(?<![\w.])([−-]?\d+)(\.\d+)?(?: ([A-Za-z%/]+))?")
_places: list[Path] = []


def keep_answers_in(place: Path) -> None:
    """One directory of the session, whichever of its workers this is."""
    place.mkdir(exist_ok=True)
    _places[:] = [place]


def says(text: str, value: float, unit: str = "") -> bool:
    """Whether a text has this number, as exact as it is printed there, and the unit behind it where one is given.

    >>> says("cubic left slow start at 1.34 BDP by delay", 1.3391, "BDP")
    True
    >>> says("cubic left slow start at 1.34 BDP by delay", 1.3291, "BDP")
    False
    """
    for whole, fraction, follows in _NUMBER.findall(text):
        half = 0.5 * 10.0 ** -max(len(fraction) - 1, 0)
        if abs(float(whole.replace("−", "-") + fraction) - value) <= half and unit in ("", follows):
            return True
    return False


@dataclass(frozen=True)
class FieldRun:
    """One run of an answer; its files are for reading only."""

    directory: RunDirectory
    axes: dict[str, str]

    @cached_property
    def verdict(self) -> dict[str, Any]:
        found: dict[str, Any] = read_json(self.directory.verdict)
        return found

    @property
    def failed(self) -> dict[str, str]:
        """Name of every check that failed, and what it says."""
        return {check["name"]: check["message"] for check in self.verdict["checks"] if check["ok"] is False}

    @cached_property
    def rows(self) -> list[dict[str, Any]]:
        """The rows of metrics.json, and those of the connections of groups."""
        found: list[dict[str, Any]] = read_json(self.directory.metrics)["rows"]
        return [*found, *(row.plain({}) for row in read_connections(self.directory).rows())]

    @cached_property
    def cross_checks(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = read_json(self.directory.metrics)["cross_checks"]
        return found

    def row(self, metric: str, flow: int | None = 1, **more: Any) -> dict[str, Any]:
        """The one row of a measure of a flow; ``flow=None`` of the run, ``group=`` of a group."""
        wanted = {"metric": metric, "flow": flow, **more}
        (found,) = [row for row in self.rows if all(row.get(name) == value for name, value in wanted.items())]
        return found

    def value(self, metric: str, flow: int | None = 1, **more: Any) -> Any:
        """The number or the word of a measure; None where it is not known."""
        return self.row(metric, flow, **more)["value"]

    def why(self, metric: str, flow: int | None = 1, **more: Any) -> str:
        """The reason of a measure that is not known."""
        return str(self.row(metric, flow, **more).get("why", ""))

    def counter(self, name: str, node: str = "s1") -> int:
        """By how much a counter of a host grew, first to last reading; named as nstat does (``TcpExtTCPTimeouts``)."""
        rows = store.read(self.directory, "counter").to_pylist()
        found = [row["value"] for row in rows if (row["name"], row["node"]) == (name, node)]
        assert found, f"no counter {name} of {node}"
        return int(found[-1] - found[0])

    def info(self, flow: int = 1, end: str = "sender") -> list[dict[str, Any]]:
        """What the kernel said of a flow's socket at each reading (table tcp_info)."""
        rows = store.read(self.directory, "tcp_info").to_pylist()
        return [row for row in rows if (row["flow"], row["end"]) == (flow, end)]

    def table(self, name: str) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = store.read(self.directory, name).to_pylist()
        return found

    def agent(self, flow: int = 1) -> dict[str, Any]:
        """What the agent recorded of a flow: what sender and receiver moved, and when."""
        flows = read_json(self.directory.raw / "agent.json")["flows"]
        (found,) = [each for each in flows if each["id"] == flow]
        return dict(found)

    def program_json(self, file: str) -> Any:
        """What a program wrote itself, such as ``iperf3/1-client.json``."""
        return read_json(self.directory.raw / file)


@dataclass(frozen=True)
class Answer:
    """What ``howdah run`` made of a profile."""

    status: int  # 0, or as docs/json.md has it
    said: str  # on standard output: the sentences, the table, why runs are invalid
    complained: str  # on standard error
    runs: tuple[FieldRun, ...]

    @property
    def sentence(self) -> str:
        """What was found, in words, on one line."""
        return " ".join(self.said.partition("\n\n")[0].split())

    def run(self, **axes: str) -> FieldRun:
        """The one run at these values of the sweep; a dot of a field is two underscores: ``path__rtt="20 ms"``."""
        wanted = {name.replace("__", "."): value for name, value in axes.items()}
        (found,) = [run for run in self.runs if wanted.items() <= run.axes.items()]
        return found


def ask(profile: str, files: dict[str, str] | None = None, *arguments: str) -> Answer:
    """Run a profile, with ``files`` beside it (modules, traces), once in a session. The name of its experiment does not
    matter. No run needs to be valid, or to end well: the answer says what came of it."""
    (place,) = _places
    name = content_key(profile, repr(sorted((files or {}).items())), *arguments)
    mine = place / name
    with locked(place / f".lock-{name}", lambda: None):
        if not (mine / _WHOLE).exists():
            _run(mine, profile, files or {}, arguments)
            (mine / _WHOLE).touch()
    return _read(mine)


def _run(mine: Path, profile: str, files: dict[str, str], arguments: tuple[str, ...]) -> None:
    mine.mkdir(exist_ok=True)
    for name, content in {"question.yaml": profile, **files}.items():
        (mine / name).parent.mkdir(parents=True, exist_ok=True)
        (mine / name).write_text(content, encoding="utf-8")
    command = [*COMMAND, "run", str(mine / "question.yaml"), "--no-report"]
    command += ["--jobs", "1", "--runs", str(mine / "runs"), *arguments]
    quiet = {**os.environ, "COLUMNS": "200"}
    done = subprocess.run(command, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL, env=quiet)
    for name, content in (("status", str(done.returncode)), ("said", done.stdout), ("complained", done.stderr)):
        (mine / name).write_text(content, encoding="utf-8")


def _read(mine: Path) -> Answer:
    status, said, complained = ((mine / name).read_text(encoding="utf-8") for name in ("status", "said", "complained"))
    runs = []
    for index in (mine / "runs").glob("[!.]*/experiment.json"):
        if index.parent.is_symlink():
            continue
        for cell in read_json(index)["cells"]:
            axes = {"algorithm": cell["algorithm"], **cell["axes"]}
            texts = {field: value if isinstance(value, str) else repr(value) for field, value in axes.items()}
            runs.append(FieldRun(RunDirectory(index.parent / cell["run"]), texts))
    return Answer(int(status), said, complained, tuple(runs))
