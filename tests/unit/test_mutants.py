# SPDX-License-Identifier: Apache-2.0
"""The score of a sample of mutants, from what mutmut says of each."""

from __future__ import annotations

import pytest

from tests.mutants import outcome
from tests.mutants.__main__ import KILLERS, LEFT_OUT, ROOT
from tests.mutants.outcome import Change, Outcome, read_equivalent, wilson


def test_wilson_by_hand() -> None:
    """9 of 10: (9 + 1.92) / 13.84 = 0.789, ± 1.96 / 13.84 x sqrt(0.9 + 0.96) = 0.193."""
    assert wilson(9, 10) == pytest.approx((0.596, 0.982), abs=1e-3)
    assert wilson(0, 10)[0] == pytest.approx(0, abs=1e-9)
    assert wilson(10, 10)[1] == pytest.approx(1, abs=1e-9)


def test_a_mutant_that_no_test_meets_has_survived_and_an_equivalent_one_does_not_count(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    same = Change("howdah/a.py", "x = 1", "x = 1.0")
    monkeypatch.setattr(outcome, "change_of", lambda name: same if name == "same" else Change("howdah/a.py", name, ""))
    codes = {"killed": 1, "alive": 0, "nobody": 33, "none left": 5, "not tried": None, "endless": 36, "same": 0}
    found = Outcome.of(codes, ROOT, {same: "it is equal"})
    assert (found.killed, found.timed_out) == (["killed"], ["endless"])
    assert set(found.survived) == {"alive", "nobody", "none left", "not tried"}
    assert found.equivalent == {"same": "it is equal"}
    assert "2 of 6 noticed, 33.3%" in found.text()


def test_what_counts_as_equivalent_is_still_a_line_of_the_code() -> None:
    for change, why in read_equivalent().items():
        code = " ".join((ROOT / change.file).read_text().split())
        assert " ".join(change.was.split()) in code, f"{change.file} has this line no more"
        assert len(why) > 10


def test_the_tests_that_meet_mutants_are_there() -> None:
    """A file that was renamed or merged away would meet no mutant, and nobody would see it."""
    subjects = {subject for listed in KILLERS.values() for subject in listed}
    assert [each for each in subjects if not list(ROOT.glob(f"tests/unit/test_{each}.py"))] == []
    for name in LEFT_OUT:
        file, _, test = name.partition("::")
        assert f"def {test}(" in (ROOT / file).read_text(encoding="utf-8")
