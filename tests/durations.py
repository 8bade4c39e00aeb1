# SPDX-License-Identifier: Apache-2.0
"""How long the test files take: recorded by ``make test``, kept in ``durations.txt``; the longest are begun first.

``python -m tests.durations`` takes what the last ``make test`` recorded into ``durations.txt``.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
TABLE = ROOT / "tests" / "durations.txt"
RECORD = ROOT / "var" / "bench" / "tests.json"
# Of a file that is not in the table: a new one that boots something is begun early, so that it does not come last.
_UNKNOWN_S = {"tests/guest/": 30.0, "tests/field/": 30.0, "tests/vm/": 60.0}
# Where the cache is empty these build kernels, modules or a disk image first, which the table does not show.
_MAY_TAKE_S = {
    "tests/vm/test_machines.py": 900.0,
    "tests/guest/test_kernel_matrix.py": 600.0,
    "tests/guest/test_kernel_sparse.py": 200.0,
}
_LEAST_S = 1.0  # files that take less are left out of the table, for few changes of it
_HEAD = """\
# Seconds that each test file takes, the longest first: `make test` begins with those.
# Written by `python -m tests.durations` from the last `make test`. A file that is not listed takes less than a second.
"""


@dataclass(frozen=True)
class Record:
    """One run of all tests: ``wall_s`` from the first to the last, ``files_s`` the sum of each file's tests.

    ``processor_s``: user and system time of each file's tests and of the processes they waited for.
    Other work on the machine changes it far less than ``files_s``.
    ``collection_s``: processor time of the workers before their first test.
    """

    wall_s: float
    workers: int
    files_s: dict[str, float]
    processor_s: dict[str, float] = field(default_factory=dict)
    collection_s: float = 0.0

    @property
    def total_s(self) -> float:
        return sum(self.files_s.values())


def read_table(file: Path = TABLE) -> dict[str, float]:
    """File, relative to the repository, to seconds."""
    lines = (line.split() for line in file.read_text(encoding="utf-8").splitlines() if not line.startswith("#"))
    return {name: float(seconds) for seconds, name in (fields for fields in lines if fields)}


def longest_first(files: Iterable[str], table: dict[str, float]) -> list[str]:
    """Distinct files; those of equal length stay in the order in which they came.

    >>> longest_first(["new", "a", "b", "a", "tests/guest/new"], {"a": 5.0, "b": 60.0})
    ['b', 'tests/guest/new', 'a', 'new']
    """

    def expected_s(file: str) -> float:
        unknown_s = next((seconds for place, seconds in _UNKNOWN_S.items() if file.startswith(place)), 0.0)
        return max(table.get(file, unknown_s), _MAY_TAKE_S.get(file, 0.0))

    return sorted(dict.fromkeys(files), key=lambda file: -expected_s(file))


def write_record(record: Record, file: Path = RECORD) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    value = {
        "format": 2,
        "wall_s": round(record.wall_s, 1),
        "workers": record.workers,
        "collection_s": round(record.collection_s, 1),
        "files_s": _longest_above(record.files_s),
        "processor_s": _longest_above(record.processor_s),
    }
    file.write_text(json.dumps(value, indent=1) + "\n", encoding="utf-8")


def read_record(file: Path = RECORD) -> Record | None:
    """None where no ``make test`` has ended yet."""
    if not file.exists():
        return None
    value: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
    processor_s, collection_s = value.get("processor_s", {}), value.get("collection_s", 0.0)
    return Record(value["wall_s"], value["workers"], value["files_s"], processor_s, collection_s)


def _longest_above(seconds_by_file: dict[str, float]) -> dict[str, float]:
    ordered = sorted(seconds_by_file.items(), key=lambda item: -item[1])
    return {name: round(seconds, 2) for name, seconds in ordered}


def table_of(record: Record) -> str:
    """The text of ``durations.txt``. Whole seconds: their last digits are noise."""
    rows = sorted(record.files_s.items(), key=lambda item: (-round(item[1]), item[0]))
    return _HEAD + "".join(f"{seconds:.0f} {name}\n" for name, seconds in rows if seconds >= _LEAST_S)


def main() -> int:
    record = read_record()
    if record is None:
        sys.stderr.write(f"{RECORD} is not there: run 'make test' first\n")
        return 1
    TABLE.write_text(table_of(record), encoding="utf-8")
    ran = f"{record.wall_s:.0f} s with {record.workers} workers"
    sys.stdout.write(f"{len(record.files_s)} files, {record.total_s:.0f} s in all; {ran}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
