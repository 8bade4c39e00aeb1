# SPDX-License-Identifier: Apache-2.0
"""The central claim of an entry: declared, its verdict the entry's, first on the page; and what a claim declares."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from howdah.atlas.chapter import check
from howdah.atlas.encoding import encoding, renewed
from howdah.atlas.site import write_site
from howdah.atlas.view import View, views
from howdah.atlas.work import Record
from howdah.claim.claims import judge_claims
from howdah.errors import ProfileError
from howdah.profile.claim import ClaimSection
from howdah.report.plot import draw
from tests.atlas_factory import ENTRIES, PROFILE, Made, make_atlas, measured
from tests.claim_factory import make_runs
from tests.claim_rows import claim_row

CENTRAL = "central: [made/losses, made/window]"


def judged(directory: Path, *, entries: str = ENTRIES, profile: str = PROFILE) -> Made:
    made = make_atlas(directory, entries=entries, profile=profile)
    judge_claims(make_runs(directory, made.profiles / "made.yaml", measured))
    return made


def shown(made: Made) -> View:
    return views(made.read(), made.chapters(), made.runs / "atlas", draw, quick=False)[0]


def test_no_other_claim_changes_the_verdict_of_an_entry(tmp_path: Path) -> None:
    """One claim differs; whether the entry does depends on which of its claims is central."""
    for number, (central, verdict) in enumerate([("made/window", "pass"), ("made/losses", "differs")]):
        made = judged(tmp_path / str(number), entries=ENTRIES.replace(CENTRAL, f"central: {central}"))
        view = shown(made)
        assert view.verdict == verdict
        assert [claim.name for claim in view.claims if claim.is_central] == [central] == [view.claims[0].name]
        write_site(made.runs / "atlas", made.read(), [view], Record(), [], quick=False)
        page = (made.runs / "atlas" / view.entry.page).read_text()
        assert page.count("Central claim.") == 1
        assert page.index("Central claim.") < page.index(f"<code>{view.claims[1].name}</code>")


@pytest.mark.parametrize(
    ("central", "message"),
    [
        ("", "Astart_tab1 has claims, and none is 'central'"),
        ("central: made/more", "the central claim made/more is none of Astart_tab1"),
        ("central: [made/window, made/gone]", "the central claim made/gone is none of Astart_tab1"),
    ],
)
def test_an_entry_with_claims_needs_a_central_one_of_its_own(tmp_path: Path, central: str, message: str) -> None:
    made = make_atlas(tmp_path, entries=ENTRIES.replace(f"  {CENTRAL}\n", f"  {central}\n" if central else ""))
    with pytest.raises(ProfileError, match=message) as error:
        check(made.read(), made.chapters())
    assert "paper.yaml:1" in str(error.value)


def test_a_trace_with_claims_has_their_verdict(tmp_path: Path) -> None:
    entries = ENTRIES.replace("id: Astart_fig16,", "id: Astart_fig16, central: made/window,")
    profile = PROFILE.replace("entry: Astart_tab1", "entry: [Astart_tab1, Astart_fig16]", 1)
    made = judged(tmp_path, entries=entries, profile=profile)
    found = views(made.read(), made.chapters(), made.runs / "atlas", draw, quick=False)
    assert [view.verdict for view in found] == ["differs", "pass", "definition", "pass"]


def test_a_definition_that_holds_is_implemented_and_one_that_fails_fails(tmp_path: Path) -> None:
    kind = "says: CUBIC leaves slow start at 30 packets.\n    kind: implemented"
    profile = PROFILE.replace("says: CUBIC leaves slow start at 30 packets.", kind)
    for number, (text, verdict) in enumerate([("equals: 30", "implemented"), ("equals: 60", "fail")]):
        made = judged(tmp_path / str(number), profile=profile.replace("equals: 30", text))
        window = next(claim for claim in shown(made).claims if claim.id == "window")
        assert window.verdict == verdict


def test_a_kind_that_is_declared_or_taken_back_needs_no_runs() -> None:
    row = claim_row()
    given = {"id": "a", "says": "x", "value": {"metric": "utilisation"}, "expect": {"above": "1 %"}}
    plain, definition = (ClaimSection.model_validate({**given, **more}) for more in ({}, {"kind": "implemented"}))
    now = renewed(definition, row, encoding(plain))
    assert now.verdict == "implemented"
    assert renewed(plain, now, encoding(definition)).verdict == "pass"


def test_a_range_that_was_chosen_after_a_result_says_so(tmp_path: Path) -> None:
    field = "expect: {equals: 30}\n    chosen_after: It was 29 <packets>, which failed."
    made = judged(tmp_path, profile=PROFILE.replace("expect: {equals: 30}", field))
    view = shown(made)
    write_site(made.runs / "atlas", made.read(), [view], Record(), [], quick=False)
    page = (made.runs / "atlas" / view.entry.page).read_text()
    assert "<strong>Chosen after a result was known.</strong> It was 29 &lt;packets&gt;, which failed." in page


# Claims that count repetitions, judged again from published means and intervals: where these leave no doubt

EQUAL = {"mean": 0.0, "low": None, "high": None, "n": 10, "why": ""}
APART = {"mean": 5.0, "low": 4.5, "high": 5.5, "n": 10, "why": ""}  # no value is below 3.01 or above 6.99
LACKING = {**EQUAL, "n": 9, "missing": 1}


@pytest.mark.parametrize(
    ("point", "expect", "verdict"),
    [
        (EQUAL, {"equals": "0"}, "pass"),
        (EQUAL, {"at_least": "1"}, "fail"),
        (EQUAL, {"at_most": "-1"}, "fail"),
        (EQUAL, {"between": ["0", "1"]}, "pass"),
        (APART, {"at_least": "3"}, "pass"),
        (APART, {"at_least": "3.1"}, "not run"),
        (APART, {"at_least": "6.9"}, "not run"),
        (APART, {"at_least": "7"}, "fail"),
        (APART, {"at_most": "3"}, "fail"),
        (APART, {"between": ["3", "7"]}, "pass"),
        (APART, {"between": ["3", "5"]}, "not run"),
        (APART, {"between": ["4", "6"]}, "not run"),
        (APART, {"equals": "5", "within": "1"}, "not run"),
        (APART, {"between": ["7", "9"]}, "fail"),
        (LACKING, {"equals": "0"}, "not run"),
        ({**EQUAL, "mean": None}, {"equals": "0"}, "not run"),
    ],
)
def test_a_share_of_numbers_needs_runs_unless_all_are_on_one_side(
    point: dict[str, Any], expect: dict[str, Any], verdict: str
) -> None:
    row = claim_row(measured={"points": [point]})
    given = {"id": "a", "says": "x", "value": {"metric": "timeouts", "flow": 1}}
    before = encoding(ClaimSection.model_validate({**given, "expect": expect}))
    claim = ClaimSection.model_validate({**given, "expect": {**expect, "in_at_least": "90 %"}})
    found = renewed(claim, row, before)
    assert found.verdict == verdict, found.why
