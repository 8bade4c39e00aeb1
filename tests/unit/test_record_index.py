# SPDX-License-Identifier: Apache-2.0
"""experiment.json is read as it was written, with other versions' fields; agent.json as later stages read it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from howdah.errors import RecordError
from howdah.plan.operation import AddRoute
from howdah.record import reading
from howdah.record.agent import AgentRecord, ShownRoute
from howdah.record.directory import RunDirectory
from howdah.record.index import ExperimentIndex, IndexedRun, ProfileSource, read_index, write_index
from howdah.record.model import adapter
from howdah.record.raw import agent_or_empty, read_agent
from howdah.record.reference import PAGE, page

ROW: dict[str, Any] = {
    "run": "cubic-r0-1a2b3c4d",
    "axes": {"algorithm": "cubic", "path.rate": 10_000_000, "shape": None, "share": 0.5},
    "algorithm": "cubic",
    "repetition": 0,
    "status": "finished",
    "verdict": "pass",
}
ABOUT: dict[str, Any] = {
    "format": 1,
    "name": "mine",
    "profile": {"file": "mine.yaml", "sha256": "0" * 64},
    "description": "",
    "created": "2026-01-01T00:00:00Z",
    "quick": False,
    "axes": {"algorithm": ["cubic"]},
}


def test_what_is_written_is_read_again(tmp_path: Path) -> None:
    file = tmp_path / "experiment.json"
    about = ExperimentIndex(**{**ABOUT, "profile": ProfileSource(**ABOUT["profile"])}, cells=[])
    rows = [IndexedRun(**{**ROW, "run": name}) for name in ("a", "b")]
    write_index(file, about, iter(rows))
    assert json.loads(file.read_text()) == {**ABOUT, "cells": [{**ROW, "run": "a"}, {**ROW, "run": "b"}]}
    assert list(json.loads(file.read_text())["cells"][0]) == list(ROW)
    assert read_index(file).cells == rows
    assert sum('"run"' in line for line in file.read_text().splitlines()) == len(rows)


@pytest.mark.parametrize(
    "said",
    [
        {**ABOUT, "cells": [ROW]},
        {"cells": []},
        {"cells": [{"run": "a"}]},
        {**ABOUT, "later": {"x": [1]}, "cells": [{**ROW, "later": 2}], "profile": {"file": "x", "later": 3}},
        {**ABOUT, "total": 2000, "cells": []},
    ],
)
def test_an_index_of_another_version_is_written_as_it_was(said: dict[str, Any], tmp_path: Path) -> None:
    file = tmp_path / "experiment.json"
    file.write_text(json.dumps(said))
    found = read_index(file)
    assert json.loads(found.text()) == said
    write_index(file, found, found.cells)
    assert json.loads(file.read_text()) == said


def test_a_row_that_lacks_fields_has_their_defaults(tmp_path: Path) -> None:
    (tmp_path / "experiment.json").write_text('{"cells": [{"run": "a"}]}')
    (row,) = read_index(tmp_path / "experiment.json").cells
    assert (row.axes, row.algorithm, row.repetition, row.status, row.verdict) == ({}, "", 0, "unknown", None)


@pytest.mark.parametrize("name", ["..", "a/b", "/etc", ""])
def test_a_row_names_nothing_outside_of_the_experiment(name: str, tmp_path: Path) -> None:
    (tmp_path / "experiment.json").write_text(json.dumps({"cells": [{"run": name}]}))
    with pytest.raises(RecordError, match=r"cells\.0\.run"):
        read_index(tmp_path / "experiment.json")


def test_a_list_that_cannot_be_written_leaves_the_one_before(tmp_path: Path) -> None:
    def rows() -> Iterator[IndexedRun]:
        yield IndexedRun(**ROW)
        raise RuntimeError

    file = tmp_path / "experiment.json"
    file.write_text('{"cells": []}')
    with pytest.raises(RuntimeError):
        write_index(file, read_index(file), rows())
    assert file.read_text() == '{"cells": []}'
    assert list(tmp_path.iterdir()) == [file]


def test_the_page_has_the_fields_of_the_models() -> None:
    text = PAGE.read_text(encoding="utf-8")
    assert page(text) == text, "python -m howdah.record.reference writes the page again"
    described = IndexedRun.model_fields["status"].description
    assert described is not None and described in text


def written(parent: Path, text: str) -> RunDirectory:
    directory = RunDirectory(parent)
    directory.raw.mkdir()
    (directory.raw / "agent.json").write_text(text)
    return directory


def test_a_flow_that_never_came_to_be_has_a_record_without_facts(tmp_path: Path) -> None:
    told: dict[str, Any] = {"flows": [{"id": 3, "bytes_sent": 1, "new": 1}, {"id": 3, "bytes_sent": 2}], "other": []}
    agent = read_agent(written(tmp_path, json.dumps(told)))
    assert agent.flow(3).bytes_sent == 1, "the first record counts"
    assert (agent.flow(4).start_ns, agent.flow(4).complete) == (None, False)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[]", "be an object"),
        ("no json", "this is not JSON"),
        ('{"flows": 3}', "flows: "),
        ('{"flows": [{"id": "4"}]}', "flows.0.id: "),
        ('{"epoch_monotonic_ns": "soon"}', "epoch_monotonic_ns: "),
        ('{"qdiscs": {"left": [1]}}', "qdiscs.left: "),
    ],
)
def test_what_is_wrong_is_named_by_its_place(tmp_path: Path, text: str, words: str) -> None:
    directory = written(tmp_path, text)
    with pytest.raises(RecordError, match=words):
        read_agent(directory)
    assert agent_or_empty(directory) == AgentRecord()


def test_a_run_without_an_agent_has_an_empty_record(tmp_path: Path) -> None:
    assert agent_or_empty(RunDirectory(tmp_path)) == AgentRecord()


def test_every_metric_of_a_route_is_read() -> None:
    values = dict.fromkeys(AddRoute.METRICS, 7)
    assert ShownRoute("default", None, None, **values).metrics == values


def test_what_checks_a_record_is_made_before_processes_are_forked() -> None:
    made = adapter(AgentRecord)
    reading.prepare(AgentRecord)
    assert made.pydantic_complete
