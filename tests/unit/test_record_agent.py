# SPDX-License-Identifier: Apache-2.0
"""agent.json as later stages read it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from howdah.errors import RecordError
from howdah.plan.operation import ROUTE_METRICS
from howdah.record import reading
from howdah.record.agent import AgentRecord, ShownRoute
from howdah.record.directory import RunDirectory
from howdah.record.model import adapter
from howdah.record.raw import agent_or_empty, read_agent


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
    values = dict.fromkeys(ROUTE_METRICS, 7)
    assert ShownRoute("default", None, None, **values).metrics == values


def test_what_checks_a_record_is_made_before_processes_are_forked() -> None:
    made = adapter(AgentRecord)
    reading.prepare(AgentRecord)
    assert made.pydantic_complete
