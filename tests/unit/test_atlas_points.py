# SPDX-License-Identifier: Apache-2.0
"""Points of published figures: what is drawn from them is what the runs gave, and says what it is drawn from."""

from __future__ import annotations

import json
import shutil
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree

import pytest

from howdah.atlas.chapter import read_chapters
from howdah.atlas.points import FOLDER, OF_CLAIMS, OF_RUNS
from howdah.atlas.published import RESULTS
from howdah.atlas.site import write_site
from howdah.atlas.view import View, views
from howdah.atlas.work import Record, publish_complete
from howdah.claim.claims import judge_claims
from howdah.errors import HowdahError
from howdah.place import PROFILES
from howdah.plan.plan import Plan
from howdah.report.plot import draw
from howdah.work.display import Display
from tests.atlas_factory import PROFILE, Made, make_atlas
from tests.atlas_factory import measured as measured_of_all
from tests.claim_factory import Row, make_runs, row

FIGURES = """\
  - {id: gain, entry: Astart_tab2, title: Gain, kind: bars, x: path.buffer, y: utilisation,
     relative_to: {algorithm: reno}}
  - {id: against, entry: Astart_tab2, title: Against the buffer, kind: sweep, x: path.buffer, y: retransmitted_packets}
  - {id: numbers, entry: Astart_tab2, title: Numbers, kind: table, rows: [algorithm, path.buffer],
     columns: [utilisation, {metric: exit_cause, title: cause}, {metric: exit_time_s, title: exit}]}
"""
DRAWN = ("rows", "gain", "against", "numbers")


def measured(plan: Plan) -> list[Row]:
    """As in other tests of the atlas; Reno ends its slow start in one repetition only, and by loss in every second."""
    reno = plan.algorithm == "reno"
    ends = 1.23456 + 1e-6 * plan.repetition
    return [
        *measured_of_all(plan),
        row("exit_time_s", None if reno and plan.repetition else ends, "s", flow=1),
        row("exit_cause", "loss" if reno and plan.repetition % 2 else "delay", flow=1),
    ]


@dataclass
class Published:
    """Of an atlas whose runs are not there any more: its files, and its figures as the runs gave them."""

    made: Made
    of_runs: dict[str, str]

    @property
    def file(self) -> Path:
        return self.made.results / FOLDER / "made.json"

    def drawn(self) -> dict[str, str]:
        chapter = self.made.chapters()[0]
        stored = chapter.stored()
        return {figure.id: draw(figure, stored[figure.id]) for figure in chapter.profile.figures if figure.id in stored}

    def shown(self) -> list[View]:
        return views(self.made.read(), self.made.chapters(), self.made.runs / "atlas", draw, quick=False)

    def site(self, directory: Path) -> Path:
        """Its index."""
        catalogue = self.made.read()
        shown = views(catalogue, self.made.chapters(), directory, draw, quick=False)
        return write_site(directory, catalogue, shown, Record(), [], quick=False)


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Published:
    directory = tmp_path_factory.mktemp("points")
    return _published(directory, PROFILE.replace("repetitions: 3", "repetitions: 6") + FIGURES)


def _published(directory: Path, profile: str) -> Published:
    made = make_atlas(directory, profile=profile)
    judge_claims(make_runs(directory, made.profiles / "made.yaml", measured))
    chapters = made.chapters()
    experiment = chapters[0].experiment()
    assert experiment is not None
    of_runs = {figure.id: draw(figure, experiment) for figure in chapters[0].profile.figures}
    with Display(quiet=True) as display:
        assert publish_complete(chapters, display) == [made.results / "made.json"]
    shutil.rmtree(made.runs)
    return Published(made, of_runs)


@pytest.fixture
def published(whole: Published, tmp_path: Path) -> Published:
    """A copy, to be changed."""
    return Published(whole.made.copy(tmp_path / "copy"), whole.of_runs)


@pytest.mark.parametrize("name", DRAWN)
def test_a_figure_of_numbers_is_the_same_without_the_runs(whole: Published, name: str) -> None:
    """Marks, whiskers, texts, reasons of what is missing: each character but for the sentence on its source."""
    drawn = whole.drawn()[name]
    assert OF_RUNS in drawn
    assert drawn.replace(f" {OF_RUNS}", "") == whole.of_runs[name]


def test_what_some_repetitions_lack_is_told(whole: Published) -> None:
    drawn = whole.drawn()["numbers"]
    assert "5 x there was none" in drawn
    assert "delay ×3, loss ×3" in drawn


def test_without_points_the_numbers_of_claims_are_drawn(published: Published) -> None:
    published.file.unlink()
    drawn = published.drawn()
    # No claim has the numbers that are missing here, and none has differences of pairs.
    assert list(drawn) == ["rows", "against", "numbers"]
    assert all(OF_CLAIMS in each for each in drawn.values())
    own, of_runs = (
        [each.text for each in ElementTree.fromstring(html).iter("title")]
        for html in (drawn["rows"], published.of_runs["rows"])
    )
    assert own == of_runs
    assert "cubic, 1 bdp: 0, n = 6" in drawn["against"] and "reno" not in drawn["against"], "no claim has Reno's"
    assert "reno, 1 bdp, cause: it has no published number" in drawn["numbers"]


def test_the_page_names_figures_that_have_no_points(published: Published, tmp_path: Path) -> None:
    published.file.unlink()
    shown = published.shown()
    assert [len(view.figures) for view in shown] == [0, 3, 0, 0]
    assert shown[1].undrawn == ["Gain"]
    page = published.site(tmp_path / "site").with_name(shown[1].entry.page).read_text()
    assert "1 figure of this entry has no published points: Gain." in page
    assert page.count("<figure") == 3


def test_points_are_of_the_very_runs_that_are_published(published: Published) -> None:
    data = json.loads(published.file.read_text())
    published.file.write_text(json.dumps({**data, "runs_sha256": "0" * 64}))
    assert OF_RUNS not in "".join(published.drawn().values())


def test_a_figure_that_shows_something_else_now_has_no_points(published: Published) -> None:
    profile = published.made.profiles / "made.yaml"
    profile.write_text(profile.read_text().replace("title: Gain, kind: bars", "title: The gain, kind: sweep"))
    assert "gain" not in published.drawn()
    assert OF_RUNS in published.drawn()["against"]


def test_a_figure_of_a_control_that_has_changed_has_no_points(tmp_path: Path) -> None:
    of_control = "{id: without, entry: Astart_tab2, title: Without, kind: bars, x: path.buffer, y: utilisation,\n"
    published = _published(tmp_path, f"{PROFILE}  - {of_control}     at: {{control: no-hystart}}}}\n")
    assert published.drawn().keys() == {"rows", "without"}
    profile = published.made.profiles / "made.yaml"
    profile.write_text(profile.read_text().replace("cubic-no-hystart}", "cubic-no-hystart, path.rtt: 41 ms}"))
    assert published.drawn().keys() == {"rows"}


def test_words_of_a_figure_may_change(published: Published) -> None:
    profile = published.made.profiles / "made.yaml"
    profile.write_text(profile.read_text().replace("title: Gain,", "title: The gain,"))
    assert OF_RUNS in published.drawn()["gain"]


@pytest.mark.parametrize("damaged", ["{", "[]", '{"format": 2}', '{"format": 1}'])
def test_a_damaged_file_is_told(published: Published, damaged: str) -> None:
    published.file.write_text(damaged)
    with pytest.raises(HowdahError, match="not a file of figure points") as caught:
        published.drawn()
    assert caught.value.where == str(published.file)


def test_the_index_has_a_small_plot_of_each_entry_that_has_one(published: Published, tmp_path: Path) -> None:
    shown = published.shown()
    assert [bool(view.thumbnail) for view in shown] == [False, True, False, False]
    plot = ElementTree.fromstring(shown[1].thumbnail)
    assert (plot.get("class"), plot.get("aria-hidden"), plot.get("aria-label")) == ("chart", "true", None)
    tags = [each.tag for each in plot.iter()]
    assert "rect" in tags and not {"title", "desc", "text"} & set(tags)
    assert published.site(tmp_path / "site").read_text().count('class="thumbnail"') == 1


def test_every_file_of_points_is_of_published_runs_and_of_all_figures() -> None:
    chapters = {chapter.name: chapter for chapter in read_chapters(PROFILES / "atlas", Path("none"), quick=False)}
    files = sorted((RESULTS / FOLDER).glob("*.json"))
    assert files
    for file in files:
        chapter = chapters[file.stem]
        drawn = [draw(figure, chapter.stored()[figure.id]) for figure in chapter.profile.figures]
        assert all(OF_RUNS in each for each in drawn), f"{file}: publish the profile again"
