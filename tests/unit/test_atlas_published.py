# SPDX-License-Identifier: Apache-2.0
"""Published results: written of complete experiments, shown where nothing was run, compared with the same runs."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from howdah.atlas.catalogue import read_catalogue
from howdah.atlas.chapter import read_chapters
from howdah.atlas.published import RESULTS, published
from howdah.atlas.record import Record
from howdah.atlas.site import index_data, write_site
from howdah.atlas.summary import summary
from howdah.atlas.view import View, views
from howdah.atlas.work import conclude, publish_complete
from howdah.claim.claims import judge_claims
from howdah.command.main import main
from howdah.errors import HowdahError
from howdah.place import PROFILES
from howdah.report.plot import draw
from howdah.work.display import Display
from tests.atlas_factory import PROFILE, Made, make_atlas, make_judged_atlas, measured
from tests.claim_factory import Measured, make_runs, row


def _shown(made: Made, *, quick: bool = False) -> list[View]:
    return views(made.read(), made.chapters(quick=quick), made.runs / "atlas", draw, quick=quick)


def _publish(made: Made) -> tuple[list[Path], Display]:
    with Display(quiet=True) as display:
        return publish_complete(made.chapters(), display), display


@pytest.fixture
def elsewhere(tmp_path: Path) -> Made:
    """An atlas whose runs were made and published somewhere else."""
    made = make_judged_atlas(tmp_path)
    assert _publish(made)[0] == [made.results / "made.json"]
    shutil.rmtree(made.runs)
    return made


def test_without_runs_published_results_are_shown_as_what_they_are(elsewhere: Made, tmp_path: Path) -> None:
    found = _shown(elsewhere)
    assert [view.verdict for view in found] == ["differs", "pass", "definition", "trace"]
    assert found[0].chapters[0].counts_text.startswith("18 pass (published: ")
    write_site(tmp_path / "site", elsewhere.read(), found, Record(), [], quick=False)
    page = (tmp_path / "site" / found[0].entry.page).read_text()
    assert "what follows are published results" in page
    assert "howdah atlas --only Astart_tab1" in page
    assert "Published results: of 1 profiles: 18 runs" in summary(found, Record(), [], quick=False)
    assert index_data(found, Record(), quick=False)["entries"][0]["published"] == ["made"]


def test_they_are_not_mixed_with_the_quick_atlas(elsewhere: Made) -> None:
    assert [view.verdict for view in _shown(elsewhere, quick=True)][:2] == ["not run", "not run"]


def test_they_are_of_the_profile_as_it_is(elsewhere: Made) -> None:
    profile = elsewhere.profiles / "made.yaml"
    profile.write_text(profile.read_text().replace("equals: 30", "equals: 31"))
    assert [view.verdict for view in _shown(elsewhere)][:2] == ["not run", "not run"]


def test_what_is_outdated_says_so(elsewhere: Made, tmp_path: Path) -> None:
    file = elsewhere.results / "made.json"
    file.write_text(json.dumps({**json.loads(file.read_text()), "outdated": "reno was mended <since>"}))
    found = _shown(elsewhere)
    assert "; outdated: reno was mended <since>)" in found[0].chapters[0].counts_text
    write_site(tmp_path / "site", elsewhere.read(), found, Record(), [], quick=False)
    page = (tmp_path / "site" / found[0].entry.page).read_text()
    assert "Results of made are outdated: reno was mended &lt;since&gt;." in page


def test_publishing_again_ends_being_outdated(tmp_path: Path) -> None:
    made = make_judged_atlas(tmp_path)
    _publish(made)
    file = made.results / "made.json"
    file.write_text(json.dumps({**json.loads(file.read_text()), "outdated": "reno was mended since"}))
    _publish(made)
    assert json.loads(file.read_text())["outdated"] == ""


def test_runs_made_here_go_before_them(tmp_path: Path) -> None:
    made = make_judged_atlas(tmp_path)
    _publish(made)
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


def test_the_same_runs_must_have_found_the_same(tmp_path: Path) -> None:
    made = make_judged_atlas(tmp_path)
    _publish(made)
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
    for damaged in ("{", '{"format": 2}', '{"format": 1, "profile": "made"}'):
        (elsewhere.results / "made.json").write_text(damaged)
        with pytest.raises(HowdahError, match="no published results") as caught:
            published("made", text, elsewhere.results)
        assert caught.value.where == str(elsewhere.results / "made.json")


def test_every_published_file_of_the_repository_is_of_a_profile_and_its_claims() -> None:
    chapters = {chapter.name: chapter for chapter in read_chapters(PROFILES / "atlas", Path("none"), quick=False)}
    entries = {entry.id for entry in read_catalogue().entries}
    for file in sorted(RESULTS.glob("*.json")):
        assert file.stem in chapters, f"{file}: there is no such profile"
        found = chapters[file.stem].published()
        if found is None:
            continue  # the profile has changed since; it is not shown
        assert [claim["id"] for claim in found.claims] == [claim.id for claim in chapters[file.stem].profile.claims]
        assert {name for claim in found.claims for name in claim["entries"]} <= entries
        assert sum(found.runs.values()) == len(chapters[file.stem].profile.cells())
