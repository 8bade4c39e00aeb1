# SPDX-License-Identifier: Apache-2.0
"""A collector that reads at an interval is two files: both are there, and what they say fits together."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from howdah.errors import HowdahError
from howdah.place import DOCS, OWN_PYTHON, PACKAGE, PROJECT
from howdah.profile.collect import CollectSection
from howdah.quantity import parse_duration
from howdah.record.schema import TABLES
from howdah.registered import FOLDER, collector_named, registered


def test_each_file_of_a_guest_has_one_of_the_host() -> None:
    files = {file.stem for file in FOLDER.glob("*.py")} - {"__init__"}
    assert set(registered()) == files
    assert all((PACKAGE / "ingest" / f"{name}.py").is_file() for name in files)


@pytest.mark.parametrize("name", registered())
def test_both_files_name_one_table(name: str) -> None:
    each = collector_named(name)
    assert TABLES[each.reader.table or name] == each.reader.schema
    assert "time_ns" in each.reader.schema.names
    assert each.guest_file.name == f"{name}.py"


@pytest.mark.parametrize("name", registered())
def test_a_profile_takes_its_interval(name: str) -> None:
    each = collector_named(name)
    field = CollectSection.model_fields[each.word]
    assert field.default == (None if each.collector.default is None else parse_duration(each.collector.default))
    assert field.description == each.collector.says
    assert CollectSection.model_validate({each.word: "30 ms"}).intervals_us[name] == 30_000
    assert name not in CollectSection.model_validate({each.word: "off"}).intervals_us


def test_the_page_has_every_collector() -> None:
    page = (DOCS / "collectors.md").read_text(encoding="utf-8")
    shown = set(re.findall(r"^\| `(\w+)` \|", page, re.MULTILINE))
    assert set(registered()) <= shown


def test_two_files_are_all_that_a_further_collector_needs(tmp_path: Path) -> None:
    """The example of docs/extending.md, put among howdah's own: profile, plan, its text and the tables know it."""
    for name in ("howdah", "collectors", "topologies", "profiles", "reports"):
        shutil.copytree(
            PROJECT / name, tmp_path / name, ignore=shutil.ignore_patterns("__pycache__", "vendor", "results")
        )
    source = PROJECT / "tests" / "extension" / "howdah_softirq"
    shutil.copyfile(source / "guest.py", tmp_path / "collectors" / "interval" / "softirq.py")
    shutil.copyfile(source / "host.py", tmp_path / "howdah" / "ingest" / "softirq.py")
    code = (
        "from howdah.command.main import main; from howdah.record.schema import TABLES; "
        "main(['plan', 'quick', '--set', 'collect.softirq=50 ms']); "
        "print('columns', *TABLES['softirq'].names)"
    )
    command = [*OWN_PYTHON, "-c", code]
    environment = {"PYTHONPATH": str(tmp_path), "HOME": str(tmp_path)}
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment, cwd=tmp_path)
    assert re.search(r"^  softirq +every 50 ms$", done.stdout, re.MULTILINE), done.stdout + done.stderr
    assert done.stdout.splitlines()[-1] == "columns kind time_ns count"


def test_one_that_nobody_brings_has_a_message() -> None:
    with pytest.raises(HowdahError) as raised:
        collector_named("nothing")
    assert "nothing" in raised.value.what
    assert raised.value.hint is not None
