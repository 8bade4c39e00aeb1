# SPDX-License-Identifier: Apache-2.0
"""experiment.json: what is written is read again, and other versions' fields survive."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from howdah.errors import RecordError
from howdah.record.index import ExperimentIndex, IndexedRun, ProfileSource, read_index, write_index
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
    assert f"| `status` | {IndexedRun.model_fields['status'].description} |" in text
