# SPDX-License-Identifier: Apache-2.0
"""One count: published files, list, index and README have the same claims, and one command keeps the files current."""

from __future__ import annotations

import json
import shutil
from collections import Counter
from pathlib import Path

import pytest

from howdah.atlas.catalogue import read_catalogue
from howdah.atlas.chapter import read_chapters
from howdah.atlas.published import RESULTS, bring_up_to_date
from howdah.atlas.site import index_data
from howdah.atlas.summary import summary
from howdah.atlas.verdict import claims_text, count_words
from howdah.atlas.view import views
from howdah.atlas.work import Record, publish_complete
from howdah.command.main import main
from howdah.place import PROFILES
from howdah.work.display import Display
from tests.atlas_factory import Made, make_judged_atlas

ROOT = PROFILES.parent


def verdicts_in(directory: Path) -> list[str]:
    files = sorted(directory.glob("*.json"))
    return [row["verdict"] for file in files for row in json.loads(file.read_text(encoding="utf-8"))["claims"]]


def test_files_list_index_and_readme_count_the_same_claims(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    published = verdicts_in(RESULTS)
    sentence = claims_text(published)
    assert sentence.startswith(f"{len(published)} claims: ")

    assert main(["atlas", "--list", "--runs", str(tmp_path)]) == 0
    assert capsys.readouterr().out.splitlines()[-1] == sentence

    assert main(["atlas", "--list", "--json", "--runs", str(tmp_path)]) == 0
    listed = json.loads(capsys.readouterr().out)
    assert listed["claims"] == Counter(published)
    assert listed["words"] == count_words(published)
    assert sum(each["number"] for each in listed["causes"]) == len(published)

    chapters = read_chapters(PROFILES / "atlas", tmp_path, quick=False)
    found = views(read_catalogue(), chapters, tmp_path / "atlas", lambda *_: "", quick=False)
    index = index_data(found, Record(), quick=False).plain()
    assert index["claims"] == Counter(published)
    assert index["words"]["claims"] == count_words(published)
    assert f"{sentence}." in summary(found, Record(), [], quick=False)
    shown = {entry["id"]: entry["verdict"] for entry in index["entries"]}
    assert {entry["id"]: entry["verdict"] for entry in listed["entries"]} == shown

    assert f"As published, {sentence}." in " ".join((ROOT / "README.md").read_text(encoding="utf-8").split())


def test_the_published_results_are_as_their_profiles_have_them_now(tmp_path: Path) -> None:
    """Else 'howdah atlas --no-run --publish' has to be run."""
    copied = tmp_path / "results"
    shutil.copytree(RESULTS, copied)
    chapters = read_chapters(PROFILES / "atlas", tmp_path / "runs", quick=False)
    assert bring_up_to_date((chapter.profile for chapter in chapters), copied) == []


@pytest.fixture(scope="module")
def published(tmp_path_factory: pytest.TempPathFactory) -> Made:
    """An atlas with published results and no runs."""
    made = make_judged_atlas(tmp_path_factory.mktemp("published"))
    with Display(quiet=True) as display:
        assert publish_complete(made.chapters(), display)
    shutil.rmtree(made.runs)
    assert brought(made) == []
    return made


@pytest.fixture
def elsewhere(published: Made, tmp_path: Path) -> Made:
    return published.copy(tmp_path)


def brought(made: Made) -> list[Path]:
    return bring_up_to_date((chapter.profile for chapter in made.chapters()), made.results)


@pytest.mark.parametrize(
    ("was", "now", "verdicts"),
    [
        ("equals: 30", "equals: 60", {"window": "fail", "losses": "differs", "more": "pass"}),
        ("id: window", "id: newer", {"newer": "not run", "losses": "differs", "more": "pass"}),
        (
            "exit_cwnd_packets, flow",
            "overshoot_packets, flow",
            {"window": "not run", "losses": "differs", "more": "pass"},
        ),
        ("CUBIC leaves slow start", "It leaves", {"window": "pass", "losses": "differs", "more": "pass"}),
    ],
)
def test_what_is_judged_otherwise_now_is_rewritten_once(
    elsewhere: Made, was: str, now: str, verdicts: dict[str, str]
) -> None:
    profile = elsewhere.profiles / "made.yaml"
    assert was in profile.read_text()
    profile.write_text(profile.read_text().replace(was, now, 1))
    assert brought(elsewhere) == [elsewhere.results / "made.json"]
    rows = json.loads((elsewhere.results / "made.json").read_text())["claims"]
    assert {row["id"]: row["verdict"] for row in rows} == verdicts
    assert verdicts_in(elsewhere.results) == [row.verdict for row in elsewhere.chapters()[0].claims()]
    assert brought(elsewhere) == []


def test_results_of_other_runs_or_of_no_profile_are_removed(elsewhere: Made) -> None:
    points = elsewhere.results / "points" / "made.json"
    other = elsewhere.results / "gone.json"
    shutil.copy(elsewhere.results / "made.json", other)
    assert points.exists()
    assert brought(elsewhere) == [other]
    assert points.exists()
    profile = elsewhere.profiles / "made.yaml"
    profile.write_text(profile.read_text().replace("duration: 10 s", "duration: 11 s"))
    assert brought(elsewhere) == [elsewhere.results / "made.json"]
    assert not list(elsewhere.results.rglob("*.json"))


def test_a_grid_without_the_reverse_is_judged_when_it_is_published_again(elsewhere: Made) -> None:
    """Whether it shows a mechanism cannot be told; a claim without a reverse needs none."""
    file = elsewhere.results / "made.json"
    data = json.loads(file.read_text())
    points = [
        {"at": {"path-rate": rate}, "verdict": verdict, "text": ""}
        for rate, verdict in (("10 Mbit/s", "fail"), ("9 Mbit/s", "pass"))
    ]
    for row in data["claims"]:
        if row["id"] in ("more", "window"):
            row.update(verdict="differs", unknown={"text": "", "holds": 1, "of": 2, "share": 0.5, "points": points})
    file.write_text(json.dumps(data))
    found = {row.id: row.verdict for row in elsewhere.chapters()[0].claims()}
    assert found == {"window": "differs", "losses": "differs", "more": "not run"}
