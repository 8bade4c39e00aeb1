# SPDX-License-Identifier: Apache-2.0
"""Entries of the atlas: each is there once, of a kind that was fixed before, and tied to a claim."""

from __future__ import annotations

from pathlib import Path

import pytest

from howdah.atlas.catalogue import read_catalogue
from howdah.atlas.chapter import check, chosen, read_chapters
from howdah.errors import HowdahError, ProfileError
from howdah.place import PROFILES, PROJECT
from howdah.work.compiled import compile_plans
from howdah.work.cost import expected_core_s
from tests.atlas_factory import ENTRIES, PROFILE, make_atlas


def test_the_shipped_atlas_has_all_entries_and_every_experiment_has_a_claim(tmp_path: Path) -> None:
    catalogue = read_catalogue()
    assert {entry.kind for entry in catalogue.entries} == {"experiment", "definition", "trace"}
    assert catalogue.inconsistencies
    for quick in (False, True):
        check(catalogue, read_chapters(PROFILES / "atlas", tmp_path, quick=quick))


def test_entries_keep_the_order_of_the_kinds(tmp_path: Path) -> None:
    lines = ENTRIES.splitlines(keepends=True)
    made = make_atlas(tmp_path, entries="".join(lines[-2:] + lines[:-2]))
    assert [entry.id for entry in made.read().entries] == ["Astart_tab1", "Astart_tab2", "Astart_fig1", "Astart_fig16"]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (("id: Astart_tab1", "id: Astart_fig9"), "there is no entry 'Astart_fig9'"),
        (("id: Astart_tab2", "id: Astart_tab1"), "the entry Astart_tab1 is defined twice"),
        (
            ("{id: Astart_fig1, title: The map, where: Fig. 3, says: A map., reason: It is a map.}", ""),
            "expected|list|valid",
        ),
        ((", reason: It is a map.", ""), "Astart_fig1 is a definition: its reason must say why"),
        (
            ("  profiles: [made]\n  central: [made/losses, made/window]\n  differences: none\n", ""),
            "Astart_tab1 is an experiment and names no profile",
        ),
        (("title: Exit windows", "titel: Exit windows"), "titel|title"),
    ],
)
def test_a_wrong_entry_is_told_with_its_place(tmp_path: Path, change: tuple[str, str], message: str) -> None:
    made = make_atlas(tmp_path, entries=ENTRIES.replace(*change))
    with pytest.raises(ProfileError, match=message) as error:
        made.read()
    assert "paper.yaml:" in str(error.value)


def test_missing_entries_are_all_named(tmp_path: Path) -> None:
    made = make_atlas(tmp_path, entries="".join(ENTRIES.splitlines(keepends=True)[:-2]))
    with pytest.raises(ProfileError, match="2 entries are missing: Astart_fig1, Astart_fig16"):
        made.read()


def test_an_experiment_without_a_claim_is_an_error(tmp_path: Path) -> None:
    made = make_atlas(tmp_path, profile=PROFILE.replace("entry: Astart_tab2\n    says", "says"))
    with pytest.raises(ProfileError, match="the experiment Astart_tab2 has no claim"):
        check(made.read(), made.chapters())


def test_a_claim_of_an_unknown_entry_is_an_error(tmp_path: Path) -> None:
    made = make_atlas(tmp_path, profile=PROFILE.replace("entry: Astart_tab1", "entry: Astart_fig7", 1))
    with pytest.raises(ProfileError, match="made refers to the unknown entry Astart_fig7"):
        check(made.read(), made.chapters())


@pytest.mark.parametrize(
    ("claim", "title", "message"),
    [
        ("window", "Two numbers for one", ""),
        ("window", "Three numbers", "hangs on the contradiction 'Three numbers', which is not in inconsistencies.yaml"),
        ("more", "Two numbers for one", "the claim more hangs on .*, which is of none of its entries"),
    ],
)
def test_a_contradiction_is_written_down_and_of_an_entry_of_the_claim(
    tmp_path: Path, claim: str, title: str, message: str
) -> None:
    made = make_atlas(tmp_path, profile=PROFILE.replace(f"id: {claim}\n", f"id: {claim}\n    contradiction: {title}\n"))
    if not message:
        check(made.read(), made.chapters())
        return
    with pytest.raises(ProfileError, match=message):
        check(made.read(), made.chapters())


def test_an_entry_that_names_no_such_profile_is_an_error(tmp_path: Path) -> None:
    made = make_atlas(tmp_path, entries=ENTRIES.replace("profiles: [made]", "profiles: [made, mad]", 1))
    with pytest.raises(ProfileError, match="there is no profile 'mad'"):
        check(made.read(), made.chapters())


def test_a_profile_is_called_as_its_file(tmp_path: Path) -> None:
    made = make_atlas(tmp_path, profile=PROFILE.replace("name: made", "name: other"))
    with pytest.raises(ProfileError, match="profile name and file name differ: 'other'"):
        made.chapters()


def test_only_takes_entries_papers_and_profiles(tmp_path: Path) -> None:
    made = make_atlas(tmp_path)
    catalogue, chapters = made.read(), made.chapters()
    for word in ("Astart_tab2", "Astart", "made"):
        assert chosen(catalogue, chapters, [word]) == chapters
    for word in ("Astart_fig1", "nothing"):
        with pytest.raises(HowdahError, match="no entry, paper or profile"):
            chosen(catalogue, chapters, [word])


def test_quick_leaves_repetitions_out_and_full_has_their_runs_too(tmp_path: Path) -> None:
    made = make_atlas(tmp_path)
    quick, full = ({cell.run for cell in made.chapters(quick=quick)[0].profile.cells()} for quick in (True, False))
    assert quick < full
    assert len(quick) == 12
    assert len(full) == 18


def test_the_quick_atlas_is_cheap(tmp_path: Path) -> None:
    """Two cores make it in 25 minutes where a run takes half as long again as is expected."""
    chapters = read_chapters(PROFILES / "atlas", tmp_path, quick=True)
    plans = [plan for chapter in chapters for plan in compile_plans(chapter.profile)]
    assert sum(map(expected_core_s, plans)) < 2 * 25 * 60 / 1.5


def test_each_entry_is_read_against_its_passage() -> None:
    """reports/atlas/reading.md has a line of each, and of no other."""
    lines = (PROJECT / "reports" / "atlas" / "reading.md").read_text(encoding="utf-8").splitlines()
    read = [line.split("|")[1].strip() for line in lines if line.startswith("| ") and not line.startswith("| entry")]
    assert sorted(read) == sorted(entry.id for entry in read_catalogue().entries)
