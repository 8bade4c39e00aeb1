# SPDX-License-Identifier: Apache-2.0
"""The notebook that makes runs does, from its first cell to its last."""

from __future__ import annotations

from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

from howdah.place import DOCS, PROJECT
from tests.guest.guest_run import require_engine

NOTEBOOK = DOCS / "examples" / "making.ipynb"

pytestmark = pytest.mark.guest


def test_the_notebook_makes_runs_and_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    require_engine()
    monkeypatch.setenv("PYTHONPATH", str(PROJECT))
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path / "ipython"))
    monkeypatch.delenv("HOWDAH_RUNS", raising=False)
    notebook = nbformat.read(NOTEBOOK, as_version=4)  # type: ignore[no-untyped-call]
    nbformat.validate(notebook)
    assert all(not cell.get("outputs") for cell in notebook.cells), "it is kept without output"
    installs = [cell for cell in notebook.cells if cell.source.startswith("%pip install")]
    assert [cell.metadata.tags for cell in installs] == [["install"]]
    notebook.cells = [cell for cell in notebook.cells if cell not in installs]
    NotebookClient(
        notebook, timeout=300, kernel_name="python3", resources={"metadata": {"path": str(tmp_path)}}
    ).execute()
    first, *_, sweep = [cell for cell in notebook.cells if cell.cell_type == "code"]
    said = "".join(output.get("text", "") for output in first.outputs)
    assert said.count(": pass, ") == 2
    assert any("image/png" in output.get("data", {}) for cell in notebook.cells for output in cell.get("outputs", []))
    (table,) = [output["data"]["text/plain"] for output in sweep.outputs if "data" in output]
    assert {"40 ms", "80 ms"} <= {word.strip() for line in table.splitlines() for word in line.split("  ")}
