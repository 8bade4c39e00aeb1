# SPDX-License-Identifier: Apache-2.0
"""Raw files with bytes that no agent writes: tables, or a refusal in words. ``make attack`` tries many more."""

from __future__ import annotations

from pathlib import Path

import pytest

from howdah.ingest.run import ingest
from tests.faults.raw_files import RawFiles
from tests.unit.recorded_run import make_recorded_run

FILES, SEED = 100, 1


def test_mutated_raw_files(tmp_path: Path) -> None:
    tally = RawFiles(tmp_path, SEED).run(range(FILES))
    assert tally.count == FILES
    assert not tally.faults, [(case.number, case.base, case.fault) for case in tally.faults[:3]]
    assert any(outcome == "accepted" for _, outcome in tally.outcomes)


BAD_LINES = {
    "no text": b"\xcd\xff",
    "nested": b"[" * 100_000,
    "a time without end": b'{"time_ns": 1e999, "node": null, "source": "x", "values": {}}',
}


@pytest.mark.parametrize("what", BAD_LINES)
def test_a_bad_line_of_counters_costs_that_line(what: str, tmp_path: Path) -> None:
    good = make_recorded_run(tmp_path / "good")
    rows = ingest(good).sources["counter"].rows
    bad = make_recorded_run(tmp_path / "bad")
    file = bad.raw / "counters.jsonl"
    file.write_bytes(BAD_LINES[what] + b"\n" + file.read_bytes())
    report = ingest(bad).sources["counter"]
    assert report.rows == rows
    assert any("line 1 is not a reading" in problem for problem in report.problems)
