# SPDX-License-Identifier: Apache-2.0
"""The notebook of docs/examples runs from its first cell to its last."""

from __future__ import annotations

from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

from howdah.place import DOCS, PROJECT
from tests.experiment_factory import Scenario, make_experiment

NOTEBOOK = DOCS / "examples" / "runs.ipynb"


def test_the_notebook_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = make_experiment(tmp_path / "runs", Scenario(repetitions=2, duration_s=3.0, second_flow_s=1.0))
    monkeypatch.setenv("HOWDAH_EXAMPLE", str(root))
    monkeypatch.setenv("PYTHONPATH", str(PROJECT))
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path / "ipython"))
    notebook = nbformat.read(NOTEBOOK, as_version=4)  # type: ignore[no-untyped-call]
    nbformat.validate(notebook)
    assert all(not cell.get("outputs") for cell in notebook.cells), "it is kept without output"
    NotebookClient(
        notebook, timeout=300, kernel_name="python3", resources={"metadata": {"path": str(tmp_path)}}
    ).execute()
    shown = [output for cell in notebook.cells for output in cell.get("outputs", [])]
    assert sum("image/png" in output.get("data", {}) for output in shown) == 2
    tables = [output["data"]["text/plain"] for output in shown if "text/plain" in output.get("data", {})]
    assert any("exit_cwnd_bdp" in text and "cubic" in text for text in tables)
