# SPDX-License-Identifier: Apache-2.0
"""One version everywhere, with the notes that a release publishes."""

from __future__ import annotations

import re
import subprocess
import tomllib

import pytest

import howdah
from howdah.place import DOCS, PROJECT


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
