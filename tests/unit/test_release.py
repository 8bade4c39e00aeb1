# SPDX-License-Identifier: Apache-2.0
"""One version everywhere, with the notes that a release publishes, and SOURCE_DATE_EPOCH."""

from __future__ import annotations

import re
import subprocess
import tomllib
from datetime import UTC, datetime

import pytest

import howdah
from howdah.command.main import main
from howdah.errors import UsageError
from howdah.place import DOCS, PROJECT
from howdah.sourcedate import source_date


@pytest.mark.parametrize(
    ("file", "form"),
    [
        ("CITATION.cff", r"^version: (\S+)$"),
        ("CHANGELOG.md", r"^## (\d\S+)$"),  # the newest first
        ("docs/releases.md", r"^## (\d\S+)$"),
        ("docs/environment.md", r"howdah-(\d[\d.]*)-py3"),
        ("docs/man/howdah.1", r"^\.TH HOWDAH 1 \"\" \"howdah (\S+)\""),
    ],
)
def test_every_file_names_this_version(file: str, form: str) -> None:
    found = re.search(form, (PROJECT / file).read_text(), re.MULTILINE)
    assert found is not None
    assert found[1] == howdah.__version__


def test_the_package_has_this_version() -> None:
    assert tomllib.loads((PROJECT / "pyproject.toml").read_text())["project"]["version"] == howdah.__version__


def test_the_release_publishes_the_notes_of_its_version() -> None:
    """With the workflow's own command."""
    workflow = (PROJECT / ".github/workflows/release.yml").read_text()
    (command,) = re.findall(r"^ +(sed -n .*) > notes\.md$", workflow, re.MULTILINE)
    environment = {"version": howdah.__version__, "PATH": "/usr/bin:/bin"}
    said = subprocess.run(["sh", "-c", command], cwd=PROJECT, env=environment, capture_output=True, text=True).stdout
    assert said.strip().startswith("howdah runs on any x86-64 Linux")
    assert "##" not in said
    assert said.strip() in (DOCS / "releases.md").read_text()


def test_the_moment_of_the_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "86400")
    assert source_date() == datetime(1970, 1, 2, tzinfo=UTC)


@pytest.mark.parametrize("text", ["tomorrow", "1e9", "9" * 30, "-" + "9" * 30])
def test_what_is_no_moment(text: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("SOURCE_DATE_EPOCH", text)
    with pytest.raises(UsageError):
        source_date()
    assert main(["figure", "nothing"]) == 2
    assert f"SOURCE_DATE_EPOCH={text}" in capsys.readouterr().err
