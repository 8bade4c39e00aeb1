# SPDX-License-Identifier: Apache-2.0
"""Published results: written of complete experiments, shown where nothing was run, compared with the same runs."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from howdah.atlas.catalogue import read_catalogue
from howdah.atlas.chapter import read_chapters
from howdah.atlas.encoding import controls_sha256, encoding, renewed, unknown_sha256
from howdah.atlas.published import RESULTS, published
from howdah.atlas.site import index_data, write_site
from howdah.atlas.summary import summary
from howdah.atlas.view import View, views
from howdah.atlas.work import Record, conclude, publish_complete
from howdah.claim.claims import judge_claims
from howdah.claim.grid import summarise_grid
from howdah.command.main import main
from howdah.errors import HowdahError
from howdah.place import PROFILES
from howdah.profile import load
from howdah.profile.claim import ClaimSection
from howdah.record.claims import GridPointRow
from howdah.record.provenance import sha256_text
from howdah.report.plot import draw
from howdah.work.display import Display
from tests.atlas_factory import PROFILE, Made, make_atlas, make_judged_atlas, measured
from tests.claim_factory import Measured, make_runs, row
from tests.claim_rows import claim_row


def _shown(made: Made, *, quick: bool = False) -> list[View]:
    return views(made.read(), made.chapters(quick=quick), made.runs / "atlas", draw, quick=quick)


def _publish(made: Made) -> tuple[list[Path], Display]:
    with Display(quiet=True) as display:
        return publish_complete(made.chapters(), display), display


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Made:
    """An atlas whose runs were made and published, and are there."""
    made = make_judged_atlas(tmp_path_factory.mktemp("published"))
    assert _publish(made)[0] == [made.results / "made.json"]
    return made


@pytest.fixture
def made(whole: Made, tmp_path: Path) -> Made:
    return whole.copy(tmp_path)


@pytest.fixture
def elsewhere(made: Made) -> Made:
    """Its runs were made somewhere else."""
    shutil.rmtree(made.runs)
    return made


def test_without_runs_published_results_are_shown_as_what_they_are(elsewhere: Made, tmp_path: Path) -> None:
    found = _shown(elsewhere)
    assert [view.verdict for view in found] == ["differs", "pass", "definition", "trace"]
    assert found[0].chapters[0].counts_text.startswith("18 pass (published: ")
    write_site(tmp_path / "site", elsewhere.read(), found, Record(), [], quick=False)
    page = (tmp_path / "site" / found[0].entry.page).read_text()
    assert "what is shown are published results" in page
    assert "howdah atlas --only Astart_tab1" in page
    assert "Published results: of 1 profiles: 18 runs" in summary(found, Record(), [], quick=False)
    assert index_data(found, Record(), quick=False).entries[0].published == ["made"]


def test_they_are_not_mixed_with_the_quick_atlas(elsewhere: Made) -> None:
    assert [view.verdict for view in _shown(elsewhere, quick=True)][:2] == ["not run", "not run"]


def test_they_are_of_the_runs_that_the_profile_makes(elsewhere: Made) -> None:
    profile = elsewhere.profiles / "made.yaml"
    profile.write_text(profile.read_text().replace("duration: 10 s", "duration: 11 s"))
    assert [view.verdict for view in _shown(elsewhere)][:2] == ["not run", "not run"]


@pytest.mark.parametrize(
    ("was", "now", "claim", "verdict"),
    [
        ("equals: 30", "equals: 31", "window", "pass"),  # 30.1 is within 10 % of it
        ("equals: 30", "equals: 60", "window", "fail"),
        ("equals: 30", "above: 30", "window", "fail"),  # the mean is, its interval is not
        ("expect: {above: 10}", "expect: {above: 1}", "losses", "differs"),  # by the control's published numbers
        ("expect: {above: 10}", "expect: {above: 100}", "losses", "fail"),
        ("expect: {above: 10}", "expect: {at_most: 0}", "losses", "pass"),
        ("expect: more", "expect: much more", "more", "fail"),
        ("expect: more", "expect: similar", "more", "pass"),
        ("expect: more", "expect: {ratio: {between: [1.05, 1.06]}}", "more", "pass"),
        ("expect: more", "expect: {difference: {below: 4 points}}", "more", "fail"),
        ("metric: exit_cwnd_packets", "metric: exit_time_s", "window", "not run"),
        ("at: {algorithm: cubic}}\n    each: path.buffer\n    expect: {equals",
         "at: {algorithm: reno}}\n    each: path.buffer\n    expect: {equals", "window", "not run"),
        ("    than: {at: {algorithm: reno}}\n    each: path.buffer\n    expect: more",
         "    each: path.buffer\n    expect: {below: 96 %}", "more", "pass"),  # what remains is published
        ("    control: no-hystart\n    because: HyStart leaves slow start before the queue is full.\n", "",
         "losses", "fail"),
        ("    control: no-hystart\n    because: HyStart leaves slow start before the queue is full.\n",
         "    contradiction: Two numbers for one\n", "losses", "unsupported"),
        ("expect: {above: 10}", "expect: {above: 1}\n    contradiction: Two numbers for one", "losses", "differs"),
        ("expect: {equals: 30}", "expect: {equals: 30}\n    contradiction: Two numbers for one", "window", "pass"),
        ("id: window", "id: newer", "newer", "not run"),
        ("CUBIC leaves slow start at 30 packets.", "It leaves.", "window", "pass"),
    ],
)  # fmt: skip
def test_a_claim_is_judged_as_it_is_written_now(elsewhere: Made, was: str, now: str, claim: str, verdict: str) -> None:
    profile = elsewhere.profiles / "made.yaml"
    text = profile.read_text()
    assert was in text
    text = text.replace(was, now, 1)
    profile.write_text(text.replace("{equals: 30}", "{equals: 30 s}") if "exit_time_s" in now else text)
    chapter = elsewhere.chapters()[0]
    found = {row.id: row for row in chapter.claims()}
    assert list(found) == [each.id for each in chapter.profile.claims]
    assert found[claim].verdict == verdict, found[claim].why
    for view in _shown(elsewhere):
        assert all(view_claim.data.says for view_claim in view.claims)


NO_HYSTART = "no-hystart: {what: HyStart switched off, set: {algorithm: cubic-no-hystart}}"


@pytest.mark.parametrize(
    ("was", "now", "losses"),
    [
        (NO_HYSTART, NO_HYSTART.replace("switched off", "off"), "differs"),  # words alone
        (NO_HYSTART, f"deep: {{what: Deep, set: {{path.buffer: 9 bdp}}}}\n  {NO_HYSTART}", "differs"),
        (NO_HYSTART, NO_HYSTART.replace("no-hystart}", "no-hystart, path.rtt: 41 ms}"), "not run"),
        (NO_HYSTART, NO_HYSTART.replace("hystart}}", "hystart}, at: {path.buffer: 1 bdp}}"), "not run"),
        ("{equals: 30}", "{equals: 30}\n    control: no-hystart\n    because: It is late.", "differs"),
    ],
)  # fmt: skip
def test_a_control_that_changes_leaves_what_holds_without_it(elsewhere: Made, was: str, now: str, losses: str) -> None:
    profile = elsewhere.profiles / "made.yaml"
    assert was in profile.read_text()
    profile.write_text(profile.read_text().replace(was, now, 1))
    found = {row.id: row.verdict for row in elsewhere.chapters()[0].claims()}
    assert found == {"window": "pass", "losses": losses, "more": "pass"}


def test_a_control_that_is_new_to_a_claim_that_fails_needs_runs(elsewhere: Made) -> None:
    profile = elsewhere.profiles / "made.yaml"
    failing = "expect: {equals: 60}\n    control: no-hystart\n    because: It is late."
    profile.write_text(profile.read_text().replace("expect: {equals: 30}", failing))
    [row] = [row for row in elsewhere.chapters()[0].claims() if row.id == "window"]
    assert (row.verdict, row.why) == ("not run", "the results of its control no-hystart are not published")


def test_a_control_that_is_taken_away_leaves_all_that_was_found_without_it(elsewhere: Made) -> None:
    profile = elsewhere.profiles / "made.yaml"
    text = profile.read_text().replace(f"controls:\n  {NO_HYSTART}\n", "")
    used = "    control: no-hystart\n    because: HyStart leaves slow start before the queue is full.\n"
    profile.write_text(text.replace(used, ""))
    found = {row.id: row.verdict for row in elsewhere.chapters()[0].claims()}
    assert found == {"window": "pass", "losses": "fail", "more": "pass"}


def test_a_claim_that_was_encoded_anew_is_no_difference_of_the_same_runs(made: Made) -> None:
    profile = made.profiles / "made.yaml"
    profile.write_text(profile.read_text().replace("equals: 30", "equals: 60").replace("expect: more", "expect: less"))
    chapters = made.chapters()
    with Display(quiet=True) as display:
        conclude(chapters, 1, display)
    assert chapters[0].problems == []


def test_a_text_is_judged_by_its_published_counts() -> None:
    counts = {"counts": {"delay": 9, "ack-train": 1}}
    row = claim_row(verdict="fail", measured={"points": [counts]})
    for share, verdict in (("90 %", "pass"), ("95 %", "fail")):
        value = {"metric": "exit_cause", "flow": 1}
        given = {"id": "a", "says": "x", "value": value, "expect": {"is": "delay", "in_at_least": share}}
        before = encoding(ClaimSection.model_validate({**given, "expect": {"is": "delay"}}))
        assert renewed(ClaimSection.model_validate(given), row, before).verdict == verdict


@pytest.mark.parametrize(
    ("verdict", "expect", "now"),
    [
        ("pass", {"trend": "falls", "over": "path.rtt", "by": "10 %"}, "pass"),
        ("pass", {"trend": "falls", "over": "path.rtt", "by": "20 %"}, "fail"),
        ("fail", {"trend": "falls", "over": "path.rtt", "by": "10 %"}, "fail"),  # the ends may not differ
        ("pass", {"trend": "rises", "over": "path.rtt"}, "not run"),
        ("pass", {"trend": "flat", "over": "path.rtt"}, "pass"),
        ("pass", {"trend": "flat", "over": "path.rtt", "within": "5 %"}, "fail"),
    ],
)
def test_a_trend_is_judged_by_its_published_means(verdict: str, expect: dict[str, str], now: str) -> None:
    trend = [{"axis": rtt, "mean": mean} for rtt, mean in (("10 ms", 0.99), ("40 ms", 0.95), ("160 ms", 0.85))]
    row = claim_row(verdict=verdict, measured={"points": [{"verdict": verdict, "trend": trend}]})
    given = {"id": "a", "says": "x", "value": {"metric": "utilisation"}}
    before = encoding(ClaimSection.model_validate({**given, "expect": {"trend": "falls", "over": "path.rtt"}}))
    assert renewed(ClaimSection.model_validate({**given, "expect": expect}), row, before).verdict == now


OPEN = "unknown: {fields: {path-rate: {what: not stated, field: path.rate, values: [9 Mbit/s]}}}\n"


def _over_the_grid(made: Made, profile: str) -> None:
    """As if the claim *more* failed, and held on the grid that the profile has."""
    file = made.results / "made.json"
    data = json.loads(file.read_text())
    [row] = [row for row in data["claims"] if row["id"] == "more"]
    rates = (("10 Mbit/s", "fail"), ("9 Mbit/s", "pass"))
    points = [
        GridPointRow(at={"path-rate": rate}, verdict=verdict, reverse=False, text="95 %") for rate, verdict in rates
    ]
    row.update(verdict="differs", unknown=summarise_grid(points).plain())
    together = {"fields": {}, "made": 1, "of": 1, "together": None, "most": None, "text": "all hold"}
    grid = {"unknown": together, "unknown_sha256": unknown_sha256(profile)}
    data["profile_sha256"] = sha256_text(profile)
    file.write_text(json.dumps({**data, **grid}))


def test_a_grid_that_is_declared_later_leaves_what_is_published(elsewhere: Made) -> None:
    profile = elsewhere.profiles / "made.yaml"
    before = [row.verdict for row in elsewhere.chapters()[0].claims()]
    profile.write_text(profile.read_text() + OPEN)
    assert [row.verdict for row in elsewhere.chapters()[0].claims()] == before


@pytest.mark.parametrize(
    ("was", "now", "verdict", "together"),
    [
        ("not stated", "left open", "differs", "all hold"),  # words alone
        ("A paper, Fig. 2", "A paper, Fig. 3", "differs", "all hold"),
        ("[9 Mbit/s]", "[9 Mbit/s, 8 Mbit/s]", "fail", ""),
        (OPEN, "", "fail", ""),
        ("expect: more", "expect: much more", "fail", ""),
    ],
)
def test_what_is_published_of_a_grid_is_of_that_grid(
    elsewhere: Made, was: str, now: str, verdict: str, together: str
) -> None:
    profile = elsewhere.profiles / "made.yaml"
    profile.write_text(profile.read_text() + OPEN)
    _over_the_grid(elsewhere, profile.read_text())
    profile.write_text(profile.read_text().replace(was, now))
    chapter = elsewhere.chapters()[0]
    [row] = [row for row in chapter.claims() if row.id == "more"]
    assert (row.verdict, bool(row.unknown)) == (verdict, verdict == "differs")
    assert chapter.together() == together


def test_a_contradiction_that_is_taken_back_leaves_the_verdict_of_the_numbers(elsewhere: Made) -> None:
    profile = elsewhere.profiles / "made.yaml"
    was, now = "expect: {equals: 30}", "expect: {equals: 60}"
    profile.write_text(profile.read_text().replace(was, f"{now}\n    contradiction: Two numbers for one"))
    [row] = [row for row in elsewhere.chapters()[0].claims() if row.id == "window"]
    assert row.why == "its source contradicts itself: Two numbers for one"
    profile.write_text(profile.read_text().replace("    contradiction: Two numbers for one\n", ""))
    [row] = [row for row in elsewhere.chapters()[0].claims() if row.id == "window"]
    assert (row.verdict, row.contradiction) == ("fail", "")


def test_what_is_outdated_says_so(elsewhere: Made, tmp_path: Path) -> None:
    file = elsewhere.results / "made.json"
    file.write_text(json.dumps({**json.loads(file.read_text()), "outdated": "reno was mended <since>"}))
    found = _shown(elsewhere)
    assert "; outdated: reno was mended <since>)" in found[0].chapters[0].counts_text
    write_site(tmp_path / "site", elsewhere.read(), found, Record(), [], quick=False)
    page = (tmp_path / "site" / found[0].entry.page).read_text()
    assert "Results of made are outdated: reno was mended &lt;since&gt;." in page


def test_publishing_again_ends_being_outdated(made: Made) -> None:
    file = made.results / "made.json"
    file.write_text(json.dumps({**json.loads(file.read_text()), "outdated": "reno was mended since"}))
    _publish(made)
    assert json.loads(file.read_text())["outdated"] == ""


def test_runs_made_here_go_before_them(made: Made) -> None:
    found = _shown(made)
    assert found[0].chapters[0].published is None
    assert not found[0].only_published
    assert found[1].figures


def _spoil(made: Made, name: str, value: object) -> None:
    file = made.results / "made.json"
    data = json.loads(file.read_text())
    if name == "runs_sha256":
        data[name] = value
    else:
        data["claims"][0]["measured"]["text"] = value
    file.write_text(json.dumps(data))


def test_the_same_runs_must_have_found_the_same(made: Made) -> None:
    chapters = made.chapters()
    with Display(quiet=True) as display:
        conclude(chapters, 1, display)
        assert chapters[0].problems == []
        _spoil(made, "text", "31 packets")
        again = made.chapters()
        conclude(again, 1, display)
        assert again[0].problems == ["the published results differ for identical runs: window"]
        _spoil(made, "runs_sha256", "of another kernel")  # which may find something else
        others = made.chapters()
        conclude(others, 1, display)
    assert others[0].problems == []


def _costing(share: float) -> Measured:
    return lambda plan: [*measured(plan), row("cpu_seconds_per_simulated_second", share, "ratio")]


def test_processor_time_is_of_the_machine(tmp_path: Path) -> None:
    """Perf's samples differ from machine to machine, and twice on one; counted instructions do not."""
    claim = """\
  - id: costs
    entry: Astart_tab2
    says: CUBIC costs more than a tenth of a processor.
    value: {metric: cpu_seconds_per_simulated_second, at: {algorithm: cubic}}
    each: path.buffer
    expect: {above: 10 %}
figures:
"""
    for engine, problems in (("uml", []), ("vm", ["the published results differ for identical runs: costs"])):
        place = tmp_path / engine
        place.mkdir()
        profile = PROFILE.replace("figures:\n", claim) + f"collect: {{cpu: true}}\nengine: {engine}\n"
        made = make_atlas(place, profile=profile)
        for cost in (0.12, 0.31):
            shutil.rmtree(made.runs, ignore_errors=True)
            judge_claims(make_runs(place, made.profiles / "made.yaml", _costing(cost)))
            chapters = made.chapters()
            if cost == 0.12:
                assert _publish(made)[0]
        with Display(quiet=True) as display:
            conclude(chapters, 1, display)
        assert chapters[0].problems == problems


def test_what_is_not_complete_is_not_published(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    made = make_judged_atlas(tmp_path)
    run = next(path for path in (made.runs / "made").iterdir() if (path / "run.json").exists())
    record = json.loads((run / "run.json").read_text())
    (run / "run.json").write_text(json.dumps({**record, "status": "failed"}))
    with Display(quiet=False) as display:
        assert publish_complete(made.chapters(), display) == []
        assert "made cannot be published: 1 of 18 runs failed" in capsys.readouterr().err
        shutil.rmtree(run)
        assert publish_complete(made.chapters(), display) == []
    assert "made cannot be published: 1 of 18 runs are missing" in capsys.readouterr().err
    assert not made.results.exists()


def test_the_quick_atlas_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["atlas", "--quick", "--publish", "--no-run"]) != 0
    assert "leaves points and repetitions out" in capsys.readouterr().err


def test_a_damaged_file_is_told(elsewhere: Made) -> None:
    text = (elsewhere.profiles / "made.yaml").read_text()
    for damaged in ("{", '{"format": 1}', '{"format": 2, "profile": "made"}'):
        (elsewhere.results / "made.json").write_text(damaged)
        with pytest.raises(HowdahError, match="not a file of published results") as caught:
            published("made", text, [], elsewhere.results)
        assert caught.value.where == str(elsewhere.results / "made.json")


def test_every_published_file_of_the_repository_is_of_a_profile_and_its_claims() -> None:
    chapters = {chapter.name: chapter for chapter in read_chapters(PROFILES / "atlas", Path("none"), quick=False)}
    entries = {entry.id for entry in read_catalogue().entries}
    for file in sorted(RESULTS.glob("*.json")):
        assert file.stem in chapters, f"{file}: there is no such profile"
        found = chapters[file.stem].published()
        if found is None:
            continue  # the profile has changed since; it is not shown
        assert [claim.id for claim in found.claims] == [claim.id for claim in chapters[file.stem].profile.claims]
        assert {name for claim in found.claims for name in claim.entries} <= entries
        of_grid = bool(found.unknown and found.unknown.made)
        cells = load(chapters[file.stem].profile.path, unknowns=of_grid).cells()
        # A control that is gone was counted, and one that is new was not.
        if found.controls_sha256 == controls_sha256(chapters[file.stem].profile.text):
            assert sum(found.runs.values()) == len(cells)
