# SPDX-License-Identifier: Apache-2.0
"""action.yml, its page and the workflows that are ready to copy name the same inputs."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

from howdah.place import DOCS, PROJECT

WORKFLOWS = [*sorted((DOCS / "examples/workflows").glob("*.yml")), PROJECT / ".github/workflows/test.yml"]


def _yaml(file: Path) -> dict[str, Any]:
    value: dict[str, Any] = YAML(typ="safe").load(file)
    return value


def _inputs() -> set[str]:
    return set(_yaml(PROJECT / "action.yml")["inputs"])


@pytest.mark.parametrize("file", WORKFLOWS, ids=lambda file: str(file.stem))
def test_a_workflow_gives_inputs_that_there_are(file: Path) -> None:
    jobs = _yaml(file)["jobs"].values()
    steps = [step for job in jobs for step in job["steps"] if step.get("uses") in ("./", "howdah/howdah@v0")]
    assert steps
    for step in steps:
        assert set(step["with"]) <= _inputs()


def test_the_page_has_every_input() -> None:
    table = (DOCS / "continuous-integration.md").read_text().partition("| input |")[2].partition("\n\n")[0]
    rows = {name for line in table.splitlines()[2:] for name in re.findall(r"`([^`]+)`", line.split("|")[1])}
    assert rows == _inputs()


def test_each_input_is_used_and_each_variable_of_the_script_given() -> None:
    text = (PROJECT / "action.yml").read_text()
    used = set(re.findall(r"inputs\.([\w-]+)", text))
    assert used == _inputs()
    given = {name for step in _yaml(PROJECT / "action.yml")["runs"]["steps"] for name in step.get("env", {})}
    script = (PROJECT / "setup/action.sh").read_text()
    asked = set(re.findall(r"\$\{?([A-Z][A-Z_]+)", script))
    assert asked - {"GITHUB_STEP_SUMMARY", "GITHUB_OUTPUT"} == given - {"HOWDAH_RUNS"}
