# SPDX-License-Identifier: Apache-2.0
"""Causes of claims that are not reproduced: each such claim has one or is counted as unexplained; no other has one."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from howdah.atlas.catalogue import ATLAS
from howdah.atlas.cause import CLASSES, NOT_LISTED, UNEXPLAINED, read_causes, tally, wrong_causes
from howdah.atlas.site import index_data, write_site
from howdah.atlas.summary import summary
from howdah.atlas.view import views
from howdah.atlas.work import Record
from howdah.claim.claims import judge_claims
from howdah.claim.finding import FAIL
from howdah.command.main import main
from howdah.errors import ProfileError
from howdah.record.claims import ClaimRow, MeasuredRow
from howdah.report.plot import draw
from tests.atlas_factory import PROFILE, Made, make_atlas, measured
from tests.atlas_shipped import shipped_rows
from tests.claim_factory import make_runs
from tests.claim_rows import claim_row

FAILS = PROFILE.replace("expect: {equals: 30}", "expect: {equals: 60}")
MOST_UNEXPLAINED = 6  # of the 517 claims; it may become less
CAUSES = """\
- cause: kernel
  says: Windows grow otherwise now.
  evidence: A control.
  claims:
    made: [window]
"""


@pytest.fixture
def failing(tmp_path: Path) -> Made:
    """An atlas of which one claim is not reproduced."""
    made = make_atlas(tmp_path, profile=FAILS)
    judge_claims(make_runs(tmp_path, made.profiles / "made.yaml", measured))
    return made


def test_every_cause_of_the_repository_is_of_a_claim_that_is_not_reproduced() -> None:
    assert wrong_causes(read_causes(ATLAS / "causes.yaml"), shipped_rows()) == []


def test_every_claim_that_is_not_reproduced_has_a_cause_or_is_counted_as_unexplained() -> None:
    causes = read_causes(ATLAS / "causes.yaml")
    fails = {name for name, row in shipped_rows().items() if row.verdict == FAIL}
    unlisted = fails - set(causes)
    unexplained = unlisted | {name for name, cause in causes.items() if cause.key == UNEXPLAINED}
    counted = {each.cause: each.claims for each in tally(shipped_rows().items(), causes) if each.verdict == FAIL}
    assert sum(map(len, counted.values())) == len(fails)
    assert set(counted[CLASSES[UNEXPLAINED].word]) == unexplained
    assert unlisted == set(), "write in causes.yaml what was tried"
    assert len(unexplained) <= MOST_UNEXPLAINED


def test_what_is_unexplained_names_what_would_decide_it_and_what_that_needs() -> None:
    causes = read_causes(ATLAS / "causes.yaml")
    says = {name: cause.says for name, cause in causes.items() if cause.key == UNEXPLAINED}
    assert says
    assert [name for name, text in says.items() if "would decide it" not in text] == []
    assert [name for name, text in says.items() if "That needs " not in text] == []


def ratio_of(side: MeasuredRow) -> float | None:
    [point] = side.points
    return point.comparison.ratio if point.comparison is not None else None


def moved_by_its_control(row: ClaimRow) -> float | None:
    """How much farther apart the sides of a comparison are with its control: 1 is not at all; None without both."""
    measured, control = row.measured, row.control
    if measured is None or control is None or control.measured is None or len(measured.points) != 1:
        return None
    before, after = ratio_of(measured), ratio_of(control.measured)
    return None if before is None or after is None else after / before


def test_no_cause_is_the_hosts_of_the_time_where_the_control_has_them_and_changes_nothing() -> None:
    causes, rows = read_causes(ATLAS / "causes.yaml"), shipped_rows()
    moved = {name: moved_by_its_control(rows[name]) for name, cause in causes.items() if cause.key == "host"}
    refuted = [name for name, by in moved.items() if by is not None and by < 1.1]  # each claims more, not less
    assert any(by is not None and by > 1.1 for by in moved.values())
    assert refuted == [], "its control has such hosts, and the ratio does not come nearer: that is not its cause"


@pytest.mark.parametrize(
    ("was", "now", "message", "line"),
    [
        ("cause: kernel", "cause: kernal", "no class of causes 'kernal'", 1),
        ("  evidence: A control.\n", "", "a cause without evidence", 1),
        ("says:", "sais:", "says: field required", 1),
        ("[window]", "[window, window]", "made/window has two causes", 5),
    ],
)
def test_a_wrong_cause_is_told_with_its_line(tmp_path: Path, was: str, now: str, message: str, line: int) -> None:
    file = tmp_path / "causes.yaml"
    assert was in CAUSES
    file.write_text(CAUSES.replace(was, now))
    with pytest.raises(ProfileError, match=message) as error:
        read_causes(file)
    assert f"causes.yaml:{line}" in str(error.value)


def test_what_is_unexplained_needs_no_evidence(tmp_path: Path) -> None:
    (tmp_path / "causes.yaml").write_text(
        CAUSES.replace("cause: kernel", "cause: unexplained").replace("  evidence: A control.\n", "")
    )
    assert read_causes(tmp_path / "causes.yaml")["made/window"].word == "unexplained"


def test_a_cause_of_a_claim_that_is_reproduced_is_an_error(tmp_path: Path) -> None:
    file = tmp_path / "causes.yaml"
    file.write_text(CAUSES)
    causes = read_causes(file)
    assert wrong_causes(causes, {"made/window": claim_row(verdict="fail")}) == []
    (told,) = wrong_causes(causes, {"made/window": claim_row()})
    assert f"{file}:5" in told
    assert "its verdict is pass" in told
    (told,) = wrong_causes(causes, {"made/other": claim_row(verdict="fail")})
    assert "there is no published claim made/window" in told
    assert wrong_causes(causes, {"other/window": claim_row()}) == []  # nothing of this profile is published


def test_the_cause_stands_beside_the_claim_and_is_counted(failing: Made) -> None:
    (failing.catalogue / "causes.yaml").write_text(CAUSES)
    catalogue = failing.read()
    found = views(catalogue, failing.chapters(), failing.runs / "atlas", draw, quick=False)
    index = write_site(failing.runs / "atlas", catalogue, found, Record(), [], quick=False).read_text()
    page = (failing.runs / "atlas" / "astart-tab1.html").read_text()
    assert "<strong>The kernel has changed.</strong> Windows grow otherwise now." in page
    assert "A control." in page
    assert "<td>the kernel has changed</td>" in index
    data = index_data(found, Record(), quick=False).plain()
    (counted,) = [each for each in data["causes"] if each["verdict"] == "fail"]
    assert (counted["cause"], counted["number"]) == ("the kernel has changed", 1)
    assert counted["claims"] == ["made/window"]
    window, losses = data["entries"][0]["claims"]
    assert window["cause"]["class"] == "kernel"
    assert losses["cause"] is None
    assert "- not reproduced: the kernel has changed: 1" in summary(found, Record(), [], quick=False)


def test_a_claim_without_a_cause_is_unexplained(failing: Made) -> None:
    catalogue = failing.read()
    found = views(catalogue, failing.chapters(), failing.runs / "atlas", draw, quick=False)
    assert found[0].claims[0].cause is NOT_LISTED
    write_site(failing.runs / "atlas", catalogue, found, Record(), [], quick=False)
    assert "<strong>Unexplained.</strong>" in (failing.runs / "atlas" / "astart-tab1.html").read_text()


def test_differing_and_unmeasured_claims_are_counted_by_what_is_known_of_them() -> None:
    rows = {
        "a/by-control": claim_row(verdict="differs", control={"verdict": "pass"}),
        "a/by-grid": claim_row(verdict="differs", unknown={"holds": 1}),
        "a/contradicted": claim_row(verdict="unsupported", contradiction="Two numbers"),
        "a/drawn": claim_row(verdict="unsupported"),
        "a/passed": claim_row(),
    }
    assert [(each.verdict, each.cause) for each in tally(rows.items(), {})] == [
        ("pass", ""),
        ("differs", "a control shows the mechanism"),
        ("differs", "holds elsewhere in what the paper leaves open"),
        ("unsupported", "the paper contradicts itself"),
        ("unsupported", "nothing that can be measured here"),
    ]


def test_the_list_counts_published_claims_by_cause(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["atlas", "--list", "--json"]) == 0
    data = json.loads(capsys.readouterr().out)
    assert sum(each["number"] for each in data["causes"]) == len(shipped_rows())
    assert {each["cause"] for each in data["causes"] if each["verdict"] == "fail"} <= {
        each.word for each in CLASSES.values()
    }
