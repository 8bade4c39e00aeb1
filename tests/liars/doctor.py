# SPDX-License-Identifier: Apache-2.0
"""Ways to change one file, one table or one number of an honest run."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from howdah.ingest.framed import read_frames
from howdah.ingest.run import ingest
from howdah.plan.plan import Plan
from howdah.record import table as store
from howdah.record.directory import RunDirectory
from tests.liars.bench import Bench, edited
from tests.liars.liar import About, Catch, RunLiar

Doctor = Callable[[RunDirectory], object]


def doctored(
    name: str,
    lie: str,
    caught: Catch,
    doctor: Doctor,
    *,
    about: About = "run",
    honest: str = "plain",
    plan: Callable[[Plan], Plan] = lambda plan: plan,
    appears: bool = True,
    table: bool = False,
) -> RunLiar:
    """``doctor`` changes raw/, or the tables made of it where ``table`` is set."""

    def make(bench: Bench, path: Path) -> tuple[RunDirectory, Plan]:
        directory, truth = bench.copy(honest, path)
        claimed = plan(truth)
        directory.plan.write_text(claimed.to_json(), encoding="utf-8")
        if not table:
            doctor(directory)
        if honest != "machines":  # whose records do not lie where several machines leave them
            ingest(directory)
        if table:
            doctor(directory)
        return directory, claimed

    return RunLiar(name, about, lie, caught, honest, make, appears)


def edit(file: str, change: Callable[[dict[str, Any]], object]) -> Doctor:
    def doctor(directory: RunDirectory) -> None:
        with edited(directory, file) as value:
            change(value)

    return doctor


def remove(file: str) -> Doctor:
    return lambda directory: (directory.raw / file).unlink()


def edit_agent(change: Callable[[dict[str, Any]], object]) -> Doctor:
    return edit("agent.json", change)


def edit_account(change: Callable[[dict[str, Any]], object]) -> Doctor:
    return edit("accounting.json", lambda found: change(found["after"]))


def add(values: dict[str, int], name: str, more: int) -> None:
    values[name] = int(values[name]) + more


def change_interface(node: str, interface: str, counter: str, more: int) -> Doctor:
    return edit_account(lambda after: add(after["nodes"][node]["interfaces"][interface], counter, more))


def cut(file: str, share: float) -> Doctor:
    def doctor(directory: RunDirectory) -> None:
        path = directory.raw / file
        path.write_bytes(path.read_bytes()[: int(path.stat().st_size * share) | 1])

    return doctor


def answers(file: str, share: float) -> Doctor:
    """Leave the first ``share`` of the answers of a framed file, all of them whole: its collector stopped early."""

    def doctor(directory: RunDirectory) -> None:
        path = directory.raw / file
        frames = read_frames(path)
        last = int(frames.offset.size * share) - 1
        path.write_bytes(path.read_bytes()[: int(frames.offset[last] + frames.length[last])])

    return doctor


def lines(file: str, count: int) -> Doctor:
    """Leave the first lines of a file of text."""

    def doctor(directory: RunDirectory) -> None:
        path = directory.raw / file
        path.write_text("".join(path.read_text(encoding="utf-8").splitlines(True)[:count]), encoding="utf-8")

    return doctor


def rows(table: str, share: float) -> Doctor:
    """Leave the first ``share`` of the rows of a table."""

    def doctor(directory: RunDirectory) -> None:
        found = store.read(directory, table)
        store.write(directory, table, found.slice(0, int(found.num_rows * share)))

    return doctor


def empty(file: str) -> Doctor:
    return lambda directory: (directory.raw / file).write_bytes(b"")


def change_column(table: str, name: str, change: Callable[[np.ndarray[Any, Any]], Any]) -> Doctor:
    """A column of a table, changed as an array; nothing else in the run is."""

    def doctor(directory: RunDirectory) -> None:
        found = store.read(directory, table)
        index = found.schema.get_field_index(name)
        values = pa.array(change(found[name].to_numpy(zero_copy_only=False).copy()), found.schema.field(index).type)
        store.write(directory, table, found.set_column(index, found.schema.field(index), values))

    return doctor
