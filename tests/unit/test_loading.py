# SPDX-License-Identifier: Apache-2.0
"""Commands that only plan load nothing that reads tables, makes pages or builds networks, so they start quickly."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from howdah.record.closure import closure

ROOT = Path(__file__).resolve().parents[2]
SLOW = {
    "numpy",
    "pyarrow",
    "pyarrow.compute",
    "pandas",
    "jinja2",
    "mininet.node",
    "setuptools",
    "howdah.ingest.run",
    "howdah.judge.run",
    "howdah.measure.run",
    "howdah.report.build",
    "howdah.work.analysis",
}
SCRIPT = """
import contextlib, io, json, sys
from howdah.command.main import main
with contextlib.redirect_stdout(io.StringIO()), contextlib.suppress(SystemExit):
    main(sys.argv[1:])
print(json.dumps(sorted(sys.modules)))
"""


def _loaded(*arguments: str) -> set[str]:
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, *arguments], cwd=ROOT, capture_output=True, text=True, check=True
    )
    return set(json.loads(done.stdout.splitlines()[-1]))


@pytest.mark.parametrize(
    ("arguments", "allowed"),
    [
        (["plan", "quick"], set()),
        (["plan", "profiles/atlas/hystart-fig14a-hosts.yaml", "--json"], set()),
        (["list"], set()),
        (["run", "--help"], {"numpy", "pyarrow"}),  # they hold the results of runs that are there
    ],
)
def test_a_command_loads_what_it_needs(arguments: list[str], allowed: set[str]) -> None:
    assert _loaded(*arguments) & SLOW <= allowed


def test_a_command_does_without_pandas_and_a_library_keeps_it() -> None:
    """pyarrow loads pandas at the first look into an array, unless a command's process has left it out."""
    pytest.importorskip("pandas")
    look = "import sys, pyarrow, pyarrow.compute; pyarrow.compute.sum([1]); print('pandas' in sys.modules)"
    command = f"import howdah.command.main as m; m.main = lambda: None; m.program(); {look}"
    library = f"import howdah.library; {look}"
    found = [
        subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True).stdout
        for code in (command, library)
    ]
    assert found == ["False\n", "True\n"]


def test_the_end_of_a_command_loads_no_page() -> None:
    """``howdah run --no-report`` says what was found as a page does, and makes none."""
    loaded = closure(["howdah.report.ending", "howdah.report.results"], deferred=False).keys()
    assert not {"howdah.report.build", "howdah.report.page"} & loaded


def test_a_page_loads_nothing_that_reads_raw_files() -> None:
    loaded = closure(["howdah.report.build"], deferred=False)
    assert not [name for name in loaded if name.startswith("howdah.ingest")]
