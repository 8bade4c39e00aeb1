# SPDX-License-Identifier: Apache-2.0
"""The documentation as a whole, and against the code: links, variables, algorithms, the first hour, the README."""

from __future__ import annotations

import json
import re
import shlex
import statistics
from pathlib import Path

import pytest
from ruamel.yaml import YAML

from howdah.algorithm import PLUG_INS
from howdah.command.main import build_parser, main
from howdah.number import significant
from howdah.place import DOCS, PACKAGE
from howdah.profile import load
from howdah.work.compiled import compile_plans
from tests.docs_site import ROOT, BrokenLinkError, gather, pages, targets
from tests.readme import GOLDEN, README, REMEDY, block, of_golden, shown
from tests.unit.recorded_run import make_recorded_experiment

PICTURE_BYTES = 200_000


def test_the_picture_of_the_readme_is_small() -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    (picture,) = re.findall(r"!\[[^\]]+\]\(([^)]+)\)", readme)
    assert 0 < (ROOT / picture).stat().st_size < PICTURE_BYTES


def test_the_index_has_every_page_of_docs() -> None:
    index = ROOT / "docs" / "index.md"
    listed = {target for _, target in targets(index)}
    there = {page for page in (ROOT / "docs").glob("*.md") if page != index}
    assert there <= listed


def test_the_navigation_has_every_page_once() -> None:
    nav = YAML(typ="safe", pure=True).load((ROOT / "mkdocs.yml").read_text(encoding="utf-8"))["nav"]

    def names(entry: object) -> list[str]:
        if isinstance(entry, str):
            return [entry]
        values = entry if isinstance(entry, list) else list(entry.values())  # type: ignore[attr-defined]
        return [name for value in values for name in names(value)]

    found = names(nav)
    assert sorted(found) == sorted(str(page.relative_to(ROOT)) for page in pages())


def test_every_link_to_a_file_leads_to_one() -> None:
    for page in pages():
        assert all(target.exists() for _, target in targets(page))


def test_the_site_has_pages_and_what_they_link_to(tmp_path: Path) -> None:
    gather(tmp_path / "site")
    for page in pages():
        assert (tmp_path / "site" / page.relative_to(ROOT)).is_file()
    assert (tmp_path / "site" / "docs" / "figures" / "start-up.png").is_file()
    assert (tmp_path / "site" / "howdah" / "engine" / "vm" / "instructions.c").is_file()
    assert "reports/dashboard/provisioning/](" not in (tmp_path / "site" / "docs" / "live.md").read_text()


@pytest.mark.parametrize("link", ["missing.md", "../../outside.md", "../howdah/missing.py#part"])
def test_a_link_to_nothing_is_named_with_its_line(tmp_path: Path, link: str) -> None:
    (tmp_path / "docs").mkdir()
    (tmp_path / "outside.md").touch()
    page = tmp_path / "docs" / "page.md"
    page.write_text(f"# A page\n\nSee [this]({link}), and `[not](this.md)`.\n")
    with pytest.raises(BrokenLinkError, match=re.escape(f"docs/page.md:3: the link to {link.partition('#')[0]} leads")):
        list(targets(page, tmp_path))


_NAME = re.compile(r"\bHOWDAH_[A-Z_]+\b")


def test_the_page_has_the_variables_of_the_program() -> None:
    used = {name for file in PACKAGE.rglob("*.py") for name in _NAME.findall(file.read_text(encoding="utf-8"))}
    page = (DOCS / "environment.md").read_text(encoding="utf-8")
    assert set(_NAME.findall(page)) == used


SOURCES = sorted((ROOT / "modules" / "algorithms").glob("ss_*.c"))
_PARAMETER = re.compile(r"^(?:module_param(?:_cb)?|slow_start_parameter(?:_named)?)\(\s*(\w+)", re.MULTILINE)
_TABLE_ROW = re.compile(r"^\| ((?:`[a-z_0-9]+`(?:, )?)+) \|", re.MULTILINE)


def _page(source: Path) -> str:
    return (DOCS / "algorithms" / f"{source.stem.removeprefix('ss_')}.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("source", SOURCES, ids=lambda path: path.stem)
def test_a_page_lists_the_parameters_of_its_plug_in(source: Path) -> None:
    parameters = set(_PARAMETER.findall(source.read_text(encoding="utf-8")))
    # prefix_ipv4, prefix_ipv6 and the like may share a row.
    rows = {name for row in _TABLE_ROW.findall(_page(source)) for name in re.findall(r"`(\w+)`", row)}
    algorithms = {name for plug_in in PLUG_INS for name in (plug_in.name, plug_in.short)}
    assert parameters <= rows
    assert {row for row in rows - algorithms if "-" not in row} == parameters


@pytest.mark.parametrize("source", SOURCES, ids=lambda path: path.stem)
def test_every_plug_in_has_a_row_with_a_link(source: Path) -> None:
    short = source.stem.removeprefix("ss_")
    assert f"](algorithms/{short}.md)" in (DOCS / "algorithms.md").read_text(encoding="utf-8")


def test_every_name_of_a_profile_is_there_and_its_module_exists() -> None:
    text = (DOCS / "algorithms.md").read_text(encoding="utf-8")
    for plug_in in PLUG_INS:
        assert ROOT / "modules" / "algorithms" / f"ss_{plug_in.short}.c" in SOURCES
        suffix = re.search(r"-(ca|app)$", plug_in.name)
        assert f"`{plug_in.name}`" in text or (suffix and f"`-{suffix[1]}`" in text), plug_in.name


TEXT = (DOCS / "first-hour.md").read_text(encoding="utf-8")
COMMANDS = [shlex.split(line)[1:] for line in re.findall(r"^\$ (howdah .*)$", TEXT, re.MULTILINE)]


def test_every_command_is_one() -> None:
    assert len(COMMANDS) > 6
    parser = build_parser()
    for words in COMMANDS:
        assert parser.parse_args(words).command == words[0]


def test_the_profile_of_the_first_story_has_its_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(COMMANDS[0]) == 0
    assert all(line in TEXT for line in capsys.readouterr().out.splitlines())
    assert f"mine: {len(compile_plans(load(tmp_path / 'mine.yaml')))} runs" in TEXT


def test_the_profile_of_the_second_story_has_its_runs() -> None:
    words = next(words for words in COMMANDS if "--set" in words)
    overrides = [words[number + 1] for number, word in enumerate(words) if word == "--set"]
    profile = load(DOCS.parent / "profiles" / "quick.yaml", overrides)
    assert f"quick: {len(compile_plans(profile))} runs" in TEXT


def test_a_rerun_of_an_experiment_asks_for_one_of_its_runs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = make_recorded_experiment(tmp_path / "mine")
    assert main(["rerun", str(run.path.parent)]) == 2
    said = capsys.readouterr().err
    assert f"{run.path.parent}: this is an experiment; name one of its runs" in said
    assert f"Name one of its runs: {run.path.name}." in said


def _shown() -> str:
    readme = README.read_text(encoding="utf-8")
    begin, end = shown(readme)
    return readme[begin:end]


def test_the_block_is_what_the_report_makes_of_its_measures() -> None:
    assert _shown() == block(of_golden(json.loads(GOLDEN.read_text(encoding="utf-8")))), REMEDY


def test_retransmissions_are_the_medians_of_the_runs() -> None:
    """Read here in another way than the report does."""
    data = json.loads(GOLDEN.read_text(encoding="utf-8"))
    for algorithm in ("cubic-no-hystart", "cubic", "reno", "bbr"):
        values = [
            row["value"]
            for run, rows in data.items()
            for row in rows
            if re.fullmatch(rf"{algorithm}-r\d", run) and row["flow"] == 1 and row["metric"] == "retransmitted_packets"
        ]
        assert len(values) == 3
        (line,) = re.findall(rf"^{algorithm} +3 .*$", _shown(), re.MULTILINE)
        assert significant(statistics.median(values)) in re.split(r" {2,}", line)
