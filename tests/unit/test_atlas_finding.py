# SPDX-License-Identifier: Apache-2.0
"""Findings of the atlas: sentences that stand on published claims, with numbers from there, and fall with them."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from howdah.atlas import command as atlas_command
from howdah.atlas.catalogue import read_catalogue
from howdah.atlas.finding import STATUSES, Findings, Statement, plain, quoted, read_findings, supported_findings
from howdah.atlas.published import Published, kernel_of, rows_of
from howdah.atlas.site import write_site
from howdah.atlas.view import views
from howdah.atlas.work import Record
from howdah.command.main import main
from howdah.errors import ProfileError
from howdah.record.claims import ClaimRow
from howdah.report.plot import draw
from tests.atlas_factory import FINDINGS, Made, judged_atlas
from tests.atlas_shipped import shipped_rows
from tests.claim_rows import claim_row

__all__ = ["judged_atlas"]  # a fixture
POINTS = {
    "measured": {
        "points": [
            {"than": {"text": "3 s, n = 10", "mean": 3}, "comparison": {"ratio": 1.5}},
            {"than": {"text": "1 s, n = 10", "mean": 1}, "comparison": {"ratio": 0.25}},
        ]
    }
}
ROWS: dict[str, dict[str, Any]] = {
    "made/window": {"verdict": "pass", "measured": {"text": "30.1 ± 0.2 packets, n = 3"}},
    "made/more": {
        "verdict": "pass",
        "measured": {
            "text": "95.1 ± 0.2 %, n = 3",
            "points": [{"than": {"text": "90.1 ± 0.2 %, n = 3", "mean": 0.901}}],
        },
    },
    "made/losses": {
        "verdict": "differs",
        "measured": {"text": "0 packets, deterministic, n = 3"},
        "control": {"measured": {"text": "51 ± 2 packets, n = 3"}},
    },
}


def rows(**changed: dict[str, Any]) -> dict[str, ClaimRow]:
    """Published claims that support every sentence; ``changed`` is of some of them, by their ids."""
    more = {f"made/{name}": given for name, given in changed.items()}
    return {name: claim_row(**{**row, "entries": ["Astart_tab1"], **more.get(name, {})}) for name, row in ROWS.items()}


def statements(directory: Path, text: str = FINDINGS) -> list[Statement]:
    (directory / "paper.yaml").write_text(text)
    return read_findings(directory, ["Astart"])


@pytest.fixture
def made(judged_atlas: Made, tmp_path: Path) -> Made:
    found = judged_atlas.copy(tmp_path / "made")
    found.write_findings()
    return found


def site_of(made: Made, findings: Findings) -> Path:
    catalogue = made.read()
    found = views(catalogue, made.chapters(), made.runs / "atlas", draw, quick=False)
    write_site(made.runs / "atlas", catalogue, found, Record(), [], quick=False, findings=findings)
    return made.runs / "atlas"


def test_every_sentence_of_the_repository_stands_on_its_claims() -> None:
    assert supported_findings(read_catalogue().findings, shipped_rows(), "6.12").fallen == []


def test_every_paper_has_its_sentence_and_several_findings_what_is_not_reproduced_among_them() -> None:
    catalogue = read_catalogue()
    found = supported_findings(catalogue.findings, shipped_rows(), "6.12")
    for paper in catalogue.papers:
        assert found.learnt(paper.key) is not None, paper.key
        assert found.number(paper.key) >= 4, paper.key
        assert any(each.paper == paper.key for each in found.of("open")), paper.key
    for status in STATUSES:
        assert found.of(status), status


def test_numbers_are_those_of_the_claims(tmp_path: Path) -> None:
    assert [each.says for each in supported_findings(statements(tmp_path), rows(), "6.12").supported] == [
        "CUBIC leaves at 30.1 packets.",
        "CUBIC uses 95.1 % and Reno 90.1 %.",
        "CUBIC loses 0 packets, and 51 packets without HyStart.",
    ]
    changed = rows(window={"measured": {"text": "47 ± 2 packets, n = 3"}})
    assert supported_findings(statements(tmp_path), changed, "6.12").supported[0].says == "CUBIC leaves at 47 packets."


@pytest.mark.parametrize(
    ("row", "what", "said"),
    [
        ({"measured": {"text": "24.67 ± 0.15 %, n = 10"}}, "measured", "24.67 %"),
        ({"measured": {"text": "0 s, deterministic, n = 10"}}, "measured", "0 s"),
        ({"measured": {"text": "1.2 s [1, 1.5], n = 3"}}, "measured", "1.2 s"),
        ({"measured": {"text": "97.2 % to 99.86 % at 3 points"}}, "measured", "97.2 % to 99.86 %"),
        ({"measured": {"text": "means from 95.54 % to 97.65 %"}}, "measured", "95.54 % to 97.65 %"),
        (
            {"measured": {"text": "from 97.7 ± 0.016 %, n = 10 to 8.474 ± 0.042 %, n = 10, rank correlation -1.00"}},
            "measured",
            "97.7 % to 8.474 %",
        ),
        ({"measured": {"text": "ack-train 9, delay 1, n = 10"}}, "measured", "ack-train 9, delay 1"),
        ({"expected": {"text": "13.9 s ± 10 %"}}, "expected", "13.9 s"),
        ({"control": {"measured": {"text": "912.2 ± 94 packets, n = 10"}}}, "control", "912.2 packets"),
        ({"unknown": {"text": "holds where buffer is 100 packets"}}, "where", "holds where buffer is 100 packets"),
        (POINTS, "ratio", "0.25 to 1.5"),
        (POINTS, "than", "1 s to 3 s"),
        ({"measured": {"text": "30.1 packets to 30.1 packets at 2 points"}}, "measured", "30.1 packets"),
    ],
)  # fmt: skip
def test_a_claim_is_quoted_without_what_stands_beside_its_number(row: dict[str, Any], what: str, said: str) -> None:
    assert quoted(f"{{a/b.{what}}}!", {"a/b": claim_row(**row)}) == f"{said}!"


def test_plain_leaves_texts_alone() -> None:
    assert plain("delivery-rate, n = 10") == "delivery-rate"


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"verdict": "fail"}, "made/more must be pass, and is fail"),
        ({"measured": {"text": ""}}, "made/more has no measured"),
        (None, "there is no published claim made/more"),
    ],
)
def test_a_sentence_falls_with_its_claim(tmp_path: Path, change: dict[str, Any] | None, why: str) -> None:
    changed = rows(more=change or {})
    if change is None:
        del changed["made/more"]
    found = supported_findings(statements(tmp_path), changed, "6.12")
    assert [each.status for each in found.supported] == [None, "cured"]
    (fallen,) = found.fallen
    assert fallen.endswith(f"this sentence does not stand: {why}")
    assert "paper.yaml:7" in fallen


def test_the_page_says_which_sentences_have_fallen(made: Made) -> None:
    changed = made.published_rows()
    changed["made/more"].verdict = "fail"
    page = (site_of(made, supported_findings(made.read().findings, changed, "6.12")) / "findings.html").read_text()
    assert "CUBIC uses" not in page
    assert "made/more must be pass, and is fail" in page


@pytest.mark.parametrize(
    ("was", "now", "message", "line"),
    [
        ("paper: Astart", "paper: Astert", "no paper 'Astert'", 1),
        ("status: holds", "status: held", "status: input should be", 6),
        ("{made/more: pass}", "{made/more: passes}", "input should be", 8),
        ("{made/more: pass}", "{made/window: pass}", "refers to made/more, and does not stand on it", 7),
        ("{made/more: pass}", "{made/more: differs}", "'holds' stands on no claim that is pass", 6),
        ("{made/losses: differs}", "{made/losses: pass}", "'cured' stands on no claim that is fail or differs", 9),
        ("{made/more.than}", "{made/more.that}", "and no that", 7),
        ("{made/more.than}", "{more}", "is not a reference", 7),
        ("{made/more.than}", "90 %", "'90 %' is typed", 7),
        ("{made/more.than}", "is 1.1 times slower", "'1.1 times' is typed", 7),
        ("    by: HyStart.\n", "", "needs 'by'", 9),
        ("status: cured", "status: open", "'by' says what has cured", 9),
    ],
)
def test_a_wrong_finding_is_told_with_its_line(tmp_path: Path, was: str, now: str, message: str, line: int) -> None:
    assert was in FINDINGS
    with pytest.raises(ProfileError, match=message) as error:
        statements(tmp_path, FINDINGS.replace(was, now))
    assert f"paper.yaml:{line}" in str(error.value)


def test_a_paper_has_one_file(tmp_path: Path) -> None:
    (tmp_path / "another.yaml").write_text(FINDINGS)
    with pytest.raises(ProfileError, match="the findings of Astart are defined twice"):
        statements(tmp_path)


def test_pages_link_to_the_findings_and_they_to_the_claims(made: Made) -> None:
    known = made.published_rows()
    for row in known.values():
        row.outdated = "the algorithm is another one"
    site = site_of(made, supported_findings(made.read().findings, known, "6.12"))
    index, page = (site / "index.html").read_text(), (site / "findings.html").read_text()
    assert "CUBIC leaves at 30.1\u00a0packets." in index
    assert 'href="findings.html"' in index
    assert "What thirty years of slow start look like on Linux 6.12" in page
    assert 'href="findings.html#paper-astart"' in (site / "astart-tab1.html").read_text()
    assert "Its results are outdated: the algorithm is another one." in page
    links = [link for link in re.findall(r'href="([^"]*)"', page + index) if not link.startswith("../")]
    assert len(links) > 10
    for link in links:
        file, _, fragment = link.partition("#")
        if fragment == "main" or not file:
            continue
        assert (site / file).exists(), link
        assert not fragment or f'id="{fragment}"' in (site / file).read_text(), link
    for fragment in re.findall(r'href="#([^"]*)"', page):
        assert f'id="{fragment}"' in page, fragment


def test_the_command_reports_a_sentence_that_does_not_stand(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    catalogue = replace(read_catalogue(), findings=statements(tmp_path), causes={})
    monkeypatch.setattr(atlas_command, "read_catalogue", lambda: catalogue)
    monkeypatch.setattr(atlas_command, "views", lambda *_a, **_n: [])
    monkeypatch.setenv("HOWDAH_RUNS", str(tmp_path / "none"))
    assert main(["atlas", "--no-run", "--site", str(tmp_path / "site")]) == 4
    assert "there is no published claim made/window" in capsys.readouterr().out


def test_the_kernel_is_that_of_most_results() -> None:
    def one(name: str, *kernels: str) -> Published:
        hashes = {"profile_sha256": "", "experiment_sha256": "", "runs_sha256": ""}
        counts = {"controls_sha256": {}, "runs": {}, "made": [], "revisions": [], "core_s": 0, "simulated_s": 0}
        claims = [claim_row(id="a")]
        return Published.model_validate({"profile": name, "kernels": [*kernels], "claims": claims, **hashes, **counts})

    results = [one("a", "6.12.9"), one("b", "6.12.117", "5.10.262"), one("c", "model (ns-2 2.35)"), one("d", "7.1")]
    assert kernel_of(results) == "6.12"
    assert kernel_of([]) == ""
    assert list(rows_of(results)) == ["a/a", "b/a", "c/a", "d/a"]


def test_no_findings_are_read_where_there_are_none(tmp_path: Path) -> None:
    assert read_findings(tmp_path / "nowhere", ["Astart"]) == []
