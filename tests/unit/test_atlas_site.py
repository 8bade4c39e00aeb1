# SPDX-License-Identifier: Apache-2.0
"""The site of the atlas: verdicts of entries, index.json, pages, the summary, and what it took."""

from __future__ import annotations

import itertools
import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from howdah.atlas.catalogue import KINDS, Catalogue
from howdah.atlas.site import bar, write_index, write_site
from howdah.atlas.summary import brief, summary
from howdah.atlas.verdict import WORDS, count, entry_verdict, words_text
from howdah.atlas.view import View, views
from howdah.atlas.work import Record, Sitting, add, read_sittings
from howdah.claim.finding import DIFFERS, FAIL, INVALID, PASS, UNSUPPORTED
from howdah.report.plot import draw
from tests.atlas_factory import Made, judged_atlas, make_atlas

__all__ = ["judged_atlas"]  # a fixture


def sitting(quick: bool = False, **more: Any) -> Sitting:
    return replace(Sitting(started="2026-11-22T00:00:00+00:00", quick=quick, made=9, wall_s=60.0), **more)


def plain(page: str) -> str:
    """With spaces that break."""
    return page.replace("\u00a0", " ")


@pytest.fixture
def made(judged_atlas: Made, tmp_path: Path) -> Made:
    return judged_atlas.copy(tmp_path / "made")


def shown(made: Made) -> tuple[Catalogue, list[View]]:
    catalogue = made.read()
    return catalogue, views(catalogue, made.chapters(), made.runs / "atlas", draw, quick=False)


@pytest.mark.parametrize(
    ("claims", "verdict"),
    [
        (["pass", "pass"], "pass"),
        (["pass", "implemented"], "implemented"),
        (["pass", "unsupported"], "unsupported"),
        (["pass", "differs", "unsupported"], "differs"),
        (["pass", "differs", "depends"], "depends"),
        (["pass", "differs", "invalid"], "invalid"),
        (["pass", "differs", "invalid", "fail"], "fail"),
        (["unsupported"], "unsupported"),
        (["not run"], "not run"),
    ],
)
def test_an_entry_has_the_worst_verdict_of_its_central_claims(claims: list[str], verdict: str) -> None:
    assert entry_verdict("experiment", claims) == verdict


def test_a_definition_has_its_kind_as_its_verdict() -> None:
    assert entry_verdict("definition", []) == "definition"


def test_every_verdict_has_a_word_that_pages_explain(made: Made) -> None:
    catalogue, found = shown(made)
    text = write_site(made.runs / "atlas", catalogue, found, Record(), [], quick=False).read_text()
    for state in (PASS, FAIL, DIFFERS, UNSUPPORTED, INVALID, "not run", *KINDS[1:]):
        assert f">{WORDS[state].word}</span></dt><dd>{WORDS[state].meaning}</dd>" in text
    assert words_text(["trace", "pass", "definition", "pass"]) == "2 reproduced, 2 not measurable here"


def test_verdicts_are_counted_in_a_fixed_order() -> None:
    assert list(count(["pass", "odd", "fail", "pass"]).items()) == [("pass", 2), ("fail", 1), ("odd", 1)]


def test_the_entries_of_a_judged_atlas(made: Made) -> None:
    _, found = shown(made)
    assert {view.entry.id: view.verdict for view in found} == {
        "Astart_tab1": "differs",
        "Astart_tab2": "pass",
        "Astart_fig1": "definition",
        "Astart_fig16": "trace",
    }


def test_an_entry_with_a_central_claim_that_was_not_run_does_not_pass(made: Made) -> None:
    entries = made.catalogue / "entries" / "paper.yaml"
    entries.write_text(entries.read_text().replace("central: made/more", "central: [made/more, other/more]"))
    text = (made.profiles / "made.yaml").read_text().replace("name: made", "name: other")
    (made.profiles / "other.yaml").write_text(text.replace("Astart_tab1", "Astart_tab2"))
    _, found = shown(made)
    assert [view.verdict for view in found[:2]] == ["differs", "not run"]
    assert [claim.verdict for claim in found[1].claims] == ["pass"]


def test_nothing_is_judged_before_it_is_run(tmp_path: Path) -> None:
    _, found = shown(make_atlas(tmp_path))
    assert [view.verdict for view in found] == ["not run", "not run", "definition", "trace"]


def test_index_json_has_every_claim_with_expected_and_measured_values(made: Made) -> None:
    _, found = shown(made)
    (made.runs / "atlas").mkdir()
    write_index(made.runs / "atlas", found, Record([sitting()]), quick=False)
    data = json.loads((made.runs / "atlas" / "index.json").read_text())
    assert data["verdicts"] == {"differs": 1, "pass": 1, "definition": 1, "trace": 1}
    assert data["claims"] == {"differs": 1, "pass": 2}
    assert data["words"]["entries"] == {"differs (mechanism shown)": 1, "reproduced": 1, "not measurable here": 2}
    assert data["entries"][0]["word"] == "differs (mechanism shown)"
    assert data["entries"][0]["claims"][0]["word"] == "reproduced"
    assert data["wall_s"] == 60.0
    entry = data["entries"][0]
    assert (entry["id"], entry["kind"], entry["verdict"]) == ("Astart_tab1", "experiment", "differs")
    window, losses = entry["claims"]
    assert window["central"] and losses["central"]
    assert (window["profile"], window["verdict"]) == ("made", "pass")
    assert (window["expected"]["low"], window["expected"]["high"]) == (27.0, 33.0)
    assert window["measured"]["mean"] == pytest.approx(30.1)
    assert window["measured"]["n"] == 3
    assert len(window["runs"]) == 6
    assert losses["control"]["verdict"] == "pass"
    assert data["entries"][2]["reason"] == "It is a map."


def test_the_pages_say_what_the_paper_says_and_what_was_measured(made: Made) -> None:
    catalogue, found = shown(made)
    site = made.runs / "atlas"
    index = write_site(site, catalogue, found, Record([sitting()]), ["made: something broke"], quick=False)
    text = plain(index.read_text())
    for words in (
        "3 claims: 2 reproduced, 1 differs (mechanism shown)",
        "Two numbers for one",
        "something broke",
        ">60 s<",
        "HyStart switched off",
    ):
        assert words in text
    page = plain((site / "astart-tab1.html").read_text())
    for words in ("&lt;b&gt;never&lt;/b&gt;", "HyStart leaves slow start before", "30 is not 31", "10 Mbit/s, 40 ms"):
        assert words in page
    assert "<svg" in (site / "astart-tab2.html").read_text()
    assert "It is a map." in (site / "astart-fig1.html").read_text()
    for file in site.glob("*.html"):
        assert "http://" not in file.read_text().replace("http://www.w3.org", "")
        assert "https://" not in file.read_text()


def test_a_control_shows_what_it_was_compared_with(made: Made) -> None:
    """Of a comparison the one side may be the same with the control; what has changed is the other."""
    catalogue, found = shown(made)
    losses = next(claim for claim in found[0].claims if claim.id == "losses")
    control = losses.data.control
    assert control is not None and control.measured is not None
    control.measured.text, control.why = "51 packets", "ratio 7.3 (7.1 to 7.5)"
    control.than = control.measured.model_copy(update={"text": "7 packets (algorithm = reno)"})
    losses.data.because = "the queue is full later"
    words = "51 packets against 7 packets (algorithm = reno); ratio 7.3 (7.1 to 7.5)"
    site = made.runs / "atlas"
    write_site(site, catalogue, found, Record([sitting()]), [], quick=False)
    assert f"</span>, {words}. The queue is full later.<" in plain((site / "astart-tab1.html").read_text())
    assert f"<em>HyStart switched off</em>: {words}." in plain((site / "index.html").read_text())
    text = summary(found, Record(), [], quick=False)
    assert f"With HyStart switched off: {words}. The queue is full later.\n" in text


def test_a_contradiction_and_a_note_stand_beside_the_claim(made: Made) -> None:
    catalogue, found = shown(made)
    window = next(claim for claim in found[0].claims if claim.id == "window")
    window.data.contradiction, window.data.note = "Two numbers for one", "It is <set>"
    site = made.runs / "atlas"
    write_site(site, catalogue, found, Record([sitting()]), [], quick=False)
    page = plain((site / "astart-tab1.html").read_text())
    assert "<strong>The paper contradicts itself here:</strong> Two numbers for one." in page
    assert "<strong>Note.</strong> It is &lt;set&gt;" in page


def test_a_page_says_that_nothing_was_run(tmp_path: Path) -> None:
    made = make_atlas(tmp_path)
    catalogue, found = shown(made)
    write_site(made.runs / "atlas", catalogue, found, Record(), [], quick=False)
    assert "its runs have not been made" in (made.runs / "atlas" / "astart-tab1.html").read_text()


def test_the_summary_counts_entries_and_says_why_claims_differ(made: Made) -> None:
    _, found = shown(made)
    text = summary(found, Record([sitting()]), ["x: broke"], quick=False)
    assert "| Astart " in text
    assert "3 claims: 2 reproduced, 1 differs (mechanism shown)." in text
    assert "HyStart switched off" in text
    assert "HyStart leaves slow start before the queue is full." in text
    assert "- x: broke" in text


def of_papers(found: list[View], number: int) -> list[View]:
    """The views as if each were of a paper of its own, over and over until there are so many."""
    several = itertools.islice(itertools.cycle(found), number)
    return [
        replace(view, entry=replace(view.entry, paper=view.entry.paper.model_copy(update={"key": f"Paper{at}"})))
        for at, view in enumerate(several)
    ]


@pytest.mark.parametrize("papers", [1, 2, 9, 10, 14])
def test_a_terminal_has_ten_lines_and_the_page(papers: int, made: Made, tmp_path: Path) -> None:
    _, found = shown(made)
    told = brief(of_papers(found, papers), Record(), [], tmp_path / "index.html", quick=False).splitlines()
    assert len(told) == 1 + min(papers, 9) + 1
    assert told[-1] == f"site: {tmp_path / 'index.html'}"
    assert ("others" in told[-2]) == (papers > 9)


def test_a_terminal_has_what_was_made_and_what_was_not(made: Made, tmp_path: Path) -> None:
    _, found = shown(made)
    told = brief(found, Record([sitting()]), [], tmp_path / "index.html", quick=False).splitlines()
    assert told[-2].startswith("Atlas: full; Runs made: ")
    lines = brief(found, Record(), [f"x{number}: broke" for number in range(9)], tmp_path / "index.html", quick=False)
    told = lines.splitlines()
    assert told[-1] == f"site: {tmp_path / 'index.html'}"
    assert "and 6 more that were not made: summary.md has them" in told
    papers = [line for line in told if line.startswith("  ")]
    numbers = [int(number[1]) for line in told if (number := re.search(r"(\d+) claims?:", line))]
    assert len(numbers) == len(papers) + 1
    assert sum(numbers[1:]) == numbers[0]


def test_a_bar_has_each_word_once_and_fills_its_width(made: Made) -> None:
    _, found = shown(made)
    for view in found:
        parts = bar(view.claims) if view.claims else []
        assert sum(part.number for part in parts) == len(view.claims)
        assert not parts or round(sum(part.percent for part in parts), 6) == 100
    words = [part.word for part in bar([claim for view in found for claim in view.claims])]
    assert words == sorted(set(words), key=[each.word for each in WORDS.values()].index)


def test_times_of_sittings_add_up_by_kind(tmp_path: Path) -> None:
    file = tmp_path / "atlas.json"
    add(file, sitting(wall_s=10.0))
    add(file, sitting(quick=True, wall_s=3.0))
    record = add(file, sitting(wall_s=5.0, interrupted=True))
    assert record == read_sittings(file)
    assert record.wall_s(quick=False) == 15.0
    assert record.wall_s(quick=True) == 3.0


def test_a_sitting_that_only_looked_takes_no_time(tmp_path: Path) -> None:
    record = add(tmp_path / "atlas.json", sitting(made=0, wall_s=7.0))
    assert record.wall_s(quick=False) == 0.0


def test_a_damaged_record_is_an_empty_one(tmp_path: Path) -> None:
    (tmp_path / "atlas.json").write_text("{")
    assert read_sittings(tmp_path / "atlas.json") == Record()
