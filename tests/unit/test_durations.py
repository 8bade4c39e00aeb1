# SPDX-License-Identifier: Apache-2.0
"""The longest test files come first, and ``make test`` keeps how long each took."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.bench.suite import suite_time
from tests.compiled import import_tests
from tests.durations import (
    _MAY_TAKE_S,
    ROOT,
    TABLE,
    Record,
    longest_first,
    read_record,
    read_table,
    table_of,
    write_record,
)

_CONFTEST = """\
import tests.conftest
tests.conftest.read_table = lambda: {"test_slow.py": 60.0, "test_quick.py": 2.0}
from tests.conftest import *
"""


def test_files_of_the_table_are_there() -> None:
    table = read_table()
    assert [file for file in table if not (ROOT / file).is_file()] == []
    assert list(table.values()) == sorted(table.values(), reverse=True)
    assert longest_first(["tests/unit/test_a.py", "tests/vm/test_machines.py"], table)[0] == "tests/vm/test_machines.py"
    assert [file for file in _MAY_TAKE_S if not (ROOT / file).is_file()] == []


def test_a_file_that_boots_something_and_is_new_does_not_come_last() -> None:
    table = {"tests/unit/test_a.py": 2.0, "tests/vm/test_b.py": 600.0}
    files = ["tests/unit/test_new.py", *table, "tests/guest/test_new.py"]
    assert longest_first(files, table) == [
        "tests/vm/test_b.py",
        "tests/guest/test_new.py",
        "tests/unit/test_a.py",
        "tests/unit/test_new.py",
    ]


def test_a_record_becomes_the_table(tmp_path: Path) -> None:
    assert read_record(tmp_path / "none.json") is None
    record = Record(wall_s=33.3, workers=2, files_s={"tests/a.py": 0.4, "tests/b.py": 2.6, "tests/c.py": 61.2})
    write_record(record, tmp_path / "bench/tests.json")
    assert read_record(tmp_path / "bench/tests.json") == record
    (tmp_path / "durations.txt").write_text(table_of(record))
    assert read_table(tmp_path / "durations.txt") == {"tests/c.py": 61.0, "tests/b.py": 3.0}
    assert (tmp_path / "durations.txt").read_text().startswith(TABLE.read_text().splitlines()[0])


def test_the_benchmark_has_the_total_where_there_is_one(tmp_path: Path) -> None:
    assert list(suite_time(tmp_path / "none.json")) == []
    write_record(
        Record(wall_s=33.3, workers=2, files_s={"tests/a.py": 20.0, "tests/b.py": 40.0}), tmp_path / "tests.json"
    )
    (figure,) = suite_time(tmp_path / "tests.json")
    assert (figure.value, figure.unit) == (33.3, "s")
    assert "60 s of tests with 2 workers" in figure.note


def test_workers_begin_with_the_longest_and_the_end_names_it(tmp_path: Path) -> None:
    (tmp_path / "conftest.py").write_text(_CONFTEST)
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    for name, seconds in (("new", 0), ("quick", 0), ("slow", 0.2)):
        test = f"import time\n\ndef test_{name}():\n    time.sleep({seconds})\n"
        (tmp_path / f"test_{name}.py").write_text(test)
    record = tmp_path / "record.json"
    options = ["-v", "-n", "1", "--dist", "loadfile", "--no-loadscope-reorder", f"--record-durations={record}"]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *options],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    passed = [line.split("PASSED ")[1].partition("::")[0] for line in done.stdout.splitlines() if "PASSED " in line]
    assert passed == ["test_slow.py", "test_quick.py", "test_new.py"]
    found = read_record(record)
    assert found is not None
    assert max(found.files_s, key=lambda file: found.files_s[file]) == "test_slow.py"
    assert found.files_s["test_slow.py"] >= 0.2
    lines = done.stdout.splitlines()
    said = next(number for number, line in enumerate(lines) if "the longest files" in line)
    assert lines[said + 1].endswith("test_slow.py")
    assert "3 passed" in lines[-1]


PLACES = [ROOT / "tests" / "unit", ROOT / "tests" / "golden"]


def imported(worker: int, workers: int) -> list[str]:
    names: list[str] = []
    import_tests(PLACES, worker, workers, names.append)
    return names


def test_each_worker_begins_with_its_own_share_of_the_same_files() -> None:
    first, *others = [imported(worker, 3) for worker in range(3)]
    assert "tests.unit.test_durations" in first
    assert len(first) == len(set(first)) > 200
    for number, names in enumerate(others, start=1):
        begin = len(first) * number // 3
        assert names == first[begin:] + first[:begin]


@pytest.mark.parametrize("error", [ImportError("no such module"), SyntaxError("invalid"), pytest.skip.Exception("no")])
def test_a_file_that_cannot_be_imported_is_left_to_the_collection(error: BaseException) -> None:
    names: list[str] = []

    def importing(name: str) -> None:
        names.append(name)
        raise error

    import_tests(PLACES, 0, 1, importing)
    assert names == imported(0, 1)
