# SPDX-License-Identifier: Apache-2.0
"""``howdah list``: in groups, with costs, and as wide as the terminal."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace

import pytest

from howdah.algorithm import ALGORITHMS
from howdah.command.main import main
from howdah.place import STACKS
from howdah.work import catalogue
from howdah.work.catalogue import GROUPS, OTHER, entries, expected_s, shipped_profiles


def _listed(what: str, capsys: pytest.CaptureFixture[str], *more: str) -> str:
    assert main(["list", what, *more]) == 0
    return capsys.readouterr().out


@pytest.mark.parametrize("columns", [80, 200])
@pytest.mark.parametrize("what", ["profiles", "algorithms", "receivers", "stacks", "metrics"])
def test_a_list_fits_the_terminal(
    what: str, columns: int, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    text = _listed(what, capsys)
    assert max(map(len, text.splitlines())) <= columns
    for row in json.loads(_listed(what, capsys, "--json"))[what]:
        name = str(row[what.removesuffix("s")])
        assert name.removesuffix("-cubic") in text or name in text


def test_every_stack_that_is_shipped_is_listed_with_what_builds_it(capsys: pytest.CaptureFixture[str]) -> None:
    rows = json.loads(_listed("stacks", capsys, "--json"))["stacks"]
    assert [row["stack"] for row in rows] == ["linux", *sorted(file.stem for file in STACKS.glob("*.yaml"))]
    needs = {row["stack"]: row["needs"] for row in rows}
    assert needs["linux"] == []
    assert needs["lwip"] == ["gcc"]


def test_kernels_of_long_paths_fit_too(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    about = {"name": "debian-6.12", "release": "6.12.9", "source": "s" * 40, "image_sha256": "0" * 64}
    built = SimpleNamespace(**about, options_not_taken=(), directory=f"/{'d' * 60}")
    monkeypatch.setattr("howdah.command.listing.built_kernels", lambda _cache: iter([built]))
    lines = _listed("kernels", capsys, "--runs", str(tmp_path)).splitlines()
    assert lines[0] == "debian-6.12"
    assert f"  directory: /{'d' * 60}" in lines
    assert max(map(len, lines)) <= 80


def test_profiles_are_in_groups_with_what_they_cost(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    lines = _listed("profiles", capsys).splitlines()
    headings = [
        next(index for index, line in enumerate(lines) if line.startswith(f"{title}: ")) for title, *_ in GROUPS
    ]
    assert headings == sorted(headings)
    first = lines[headings[0] + 1].split()
    assert first[:3] == ["quick", "2", "runs"]
    assert first[4] in ("s", "min")
    assert not any(line.startswith(OTHER) for line in lines)


def test_every_shipped_profile_has_a_group_and_a_cost() -> None:
    found = entries()
    assert {entry.profile for entry in found} == set(shipped_profiles())
    assert [entry.profile for entry in found if entry.group == OTHER or entry.core_s <= 0] == []


def test_the_index_is_current() -> None:
    assert catalogue.main(["--check"]) == 0, "run make references"


def test_a_profile_that_was_changed_is_read_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = {entry.profile: entry for entry in entries()}
    monkeypatch.setattr(catalogue, "PROFILES", tmp_path)
    file = tmp_path / "quick.yaml"
    text = shipped_profiles().get("quick")
    assert text is None, "the profiles are those of the directory"
    original = catalogue.INDEX.parent / "quick.yaml"
    file.write_text(original.read_text(encoding="utf-8").replace("repetitions: 1", "repetitions: 7"), encoding="utf-8")
    (entry,) = entries()
    assert (entry.runs, before["quick"].runs) == (14, 2)
    assert entry.core_s > 5 * before["quick"].core_s


@pytest.mark.parametrize(
    ("core_s", "text"), [(0.2, "1 s"), (42, "42 s"), (300, "5 min"), (7200, "2 h"), (400_000, "5 d")]
)
def test_costs_in_words(core_s: float, text: str) -> None:
    assert expected_s(core_s) == text


def test_algorithms_are_listed_with_what_they_are(capsys: pytest.CaptureFixture[str]) -> None:
    rows = {row["algorithm"]: row for row in json.loads(_listed("algorithms", capsys, "--json"))["algorithms"]}
    assert set(rows) == set(ALGORITHMS)
    assert rows["cubic"]["summary"] == ALGORITHMS["cubic"].summary
