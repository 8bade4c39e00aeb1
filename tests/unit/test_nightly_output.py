# SPDX-License-Identifier: Apache-2.0
"""What a night leaves: JUnit XML of the common shape, OpenMetrics that promtool reads, night.json, the page."""

from __future__ import annotations

import json
import re
import subprocess
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

from howdah.command import nightly as command
from howdah.command.main import main
from howdah.nightly.night import Night
from howdah.nightly.output import METRICS, families, junit
from howdah.nightly.page import headline, write_page
from howdah.nightly.sheet import Baseline, NightSheet, Value
from howdah.nightly.work import MadeSheets
from howdah.publish.openmetrics import openmetrics
from howdah.publish.serve import Importer
from tests.nightly_factory import as_stored, changed, night, sheet, usual, write_suite
from tests.prometheus_fixture import exposition, prometheus_or_skip

NAME = "test-made-debian-6.12"
# The shape that CI systems agree on (Jenkins' junit-10.xsd and its kin): element -> attributes it must have, those it
# may have, and its children with the most of each.
_SHAPE: dict[str, tuple[set[str], set[str], dict[str, int | None]]] = {
    "testsuites": (set(), {"name", "time", "tests", "failures", "errors", "skipped"}, {"testsuite": None}),
    "testsuite": (
        {"name", "tests"},
        {"failures", "errors", "skipped", "time", "timestamp", "hostname", "id", "package"},
        {"properties": 1, "testcase": None, "system-out": 1, "system-err": 1},
    ),
    "properties": (set(), set(), {"property": None}),
    "property": ({"name", "value"}, set(), {}),
    "testcase": (
        {"name", "classname"},
        {"time", "status", "assertions"},
        {"skipped": 1, "error": None, "failure": None, "system-out": 1, "system-err": 1},
    ),
    "failure": (set(), {"message", "type"}, {}),
    "error": (set(), {"message", "type"}, {}),
    "skipped": (set(), {"message"}, {}),
    "system-out": (set(), set(), {}),
}


def _check_shape(element: ET.Element) -> None:
    required, optional, children = _SHAPE[element.tag]
    assert required <= set(element.attrib) <= required | optional, element.tag
    for child in element:
        assert child.tag in children, f"{child.tag} in {element.tag}"
        most = children[child.tag]
        assert most is None or len(element.findall(child.tag)) <= most
        _check_shape(child)


def _red(directory: Path) -> Night:
    def tonight(slug: str, number: int) -> dict[str, Value]:
        return changed(slug, number, retransmitted_packets__1=40.0 + number, exit_cause__1="loss & \x1b[31m<b>")

    return night(directory, sheet(NAME, usual), sheet(NAME, tonight))


def test_junit_has_the_common_shape_and_its_counts_add_up(tmp_path: Path) -> None:
    made = _red(tmp_path)
    root = ET.fromstring(junit(made))
    _check_shape(root)
    (suite,) = root
    cases = suite.findall("testcase")
    assert [case.get("name") for case in cases] == ["cubic", "reno"]
    assert (suite.get("tests"), suite.get("failures"), suite.get("errors"), suite.get("skipped")) == (
        "2",
        "1",
        "0",
        "0",
    )
    assert root.get("failures") == "1"
    failure = cases[0].find("failure")
    assert failure is not None
    assert failure.get("type") == "regression"
    assert "again: howdah nightly" in (failure.text or "")
    assert "and 1 more" in failure.get("message", "")
    assert cases[1].find("failure") is None


def test_junit_of_what_is_new_and_of_what_does_not_build(tmp_path: Path) -> None:
    new = ET.fromstring(junit(night(tmp_path, None, sheet(NAME, usual))))
    _check_shape(new)
    assert (new.get("errors"), new.get("skipped")) == ("2", "0"), "a first night is no success"
    part = sheet(NAME, usual)
    del part.cells["reno"]
    some = ET.fromstring(junit(night(tmp_path, part, sheet(NAME, usual))))
    assert (some.get("errors"), some.get("skipped")) == ("0", "1")
    required = ET.fromstring(junit(night(tmp_path, part, sheet(NAME, usual), require_baseline=True)))
    assert (required.get("errors"), required.get("skipped")) == ("1", "0")
    broken = sheet(NAME, usual)
    broken.cells, broken.problem = {}, "no such option"
    root = ET.fromstring(junit(night(tmp_path, sheet(NAME, usual), broken)))
    _check_shape(root)
    assert root.get("errors") == "2"


def test_junit_has_the_time_that_the_runs_took(tmp_path: Path) -> None:
    root = ET.fromstring(junit(_red(tmp_path)))
    (suite,) = root
    assert [case.get("time") for case in suite.findall("testcase")] == ["15.000", "15.000"], "ten runs of 1.5 s each"
    assert suite.get("time") == "30.000"
    assert root.get("time") == "3600.000"
    broken = sheet(NAME, usual)
    broken.cells, broken.problem, broken.prepare_s = {}, "no such option", 8.0
    (suite,) = ET.fromstring(junit(night(tmp_path, sheet(NAME, usual), broken)))
    assert [case.get("time") for case in suite.findall("testcase")] == ["4.000", "4.000"]


def test_an_unproven_change_is_red_unless_it_is_allowed(tmp_path: Path) -> None:
    after = sheet(NAME, lambda slug, n: changed(slug, n, retransmitted_packets__1=900.0 if n < 2 else 0.0))
    made = night(tmp_path, sheet(NAME, usual), after)
    root = ET.fromstring(junit(made))
    (failure,) = root.iter("failure")
    assert failure.get("type") == "changed, too few repetitions"
    assert failure.get("message", "").startswith("changed, too few repetitions: retransmitted_packets of flow 1")
    assert made.file().states == {"unproven": 1, "equal": 1}
    text = "".join(openmetrics(families(made)))
    assert re.search(r'^howdah_nightly_state\{.*state="unproven".*\} 1', text, re.MULTILINE)
    assert re.search(r'^howdah_nightly_measures\{.*outcome="unproven".*\} 1', text, re.MULTILINE)
    assert re.search(r'^howdah_nightly_regressed\{.*cell="cubic".*\} 1', text, re.MULTILINE)
    page = write_page(made, tmp_path / "index.html").read_text()
    assert headline(made) == "1 of 2 cells fail, 1 changed, too few repetitions"
    assert '<tr class="unproven">' in page
    allowed = night(tmp_path, sheet(NAME, usual), after, allow_unproven=True)
    root = ET.fromstring(junit(allowed))
    assert root.get("failures") == "0"
    assert "changed, too few repetitions" in next(root.iter("system-out")).text  # type: ignore[operator]
    assert headline(allowed) == "none of 2 cells fails, 1 changed, too few repetitions"


def test_the_series_are_openmetrics_that_promtool_takes(tmp_path: Path) -> None:
    found = families(_red(tmp_path))
    assert {metric.name for metric in found} == {metric.name for metric in METRICS}
    text = "".join(openmetrics(found))
    assert text.endswith("# EOF\n")
    assert 'howdah_nightly_regressed{algorithm="cubic"' in text
    prometheus = prometheus_or_skip()
    plain = "".join(exposition(found))
    done = subprocess.run([prometheus.promtool, "check", "metrics"], input=plain, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    file, blocks = tmp_path / "series.om", tmp_path / "blocks"
    file.write_text(text)
    order: list[str | Path] = [prometheus.promtool, "tsdb", "create-blocks-from", "openmetrics", file, blocks]
    done = subprocess.run(order, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert list(blocks.glob("*/meta.json"))


def test_the_page_says_what_the_night_found(tmp_path: Path) -> None:
    made = _red(tmp_path)
    page = write_page(made, tmp_path / "index.html").read_text()
    assert headline(made) == "1 of 2 cells fail, 1 regression"
    assert "&lt;b&gt;" in page
    assert "<b>" not in page
    assert page.count("http") == page.count("http-equiv"), "it asks nobody"


def _stand_in(monkeypatch: pytest.MonkeyPatch, tonight: NightSheet) -> None:
    """Runs are made by others' tests; here they are what a sheet says."""

    def make(_series: list[object], wanted: dict[str, object], *_rest: object) -> MadeSheets:
        return MadeSheets(dict.fromkeys(wanted, tonight), made=3, found=17)

    monkeypatch.setattr(command, "make", make)


def test_the_command_ends_with_six_for_a_regression_and_leaves_a_night(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    suite = write_suite(tmp_path, "suite: test\ncells:\n- {profile: made.yaml}\n")
    base, runs = tmp_path / "base", tmp_path / "runs"
    words = ["nightly", str(suite), "--baseline", str(base), "--runs", str(runs)]
    _stand_in(monkeypatch, sheet(NAME, usual))
    assert main(words) == 7, "without a baseline everything is new, and that is no success"
    assert "2 new" in capsys.readouterr().out
    assert main([*words, "--accept"]) == 0
    assert Baseline(base).read(NAME) == as_stored(sheet(NAME, usual))
    assert main(words) == 0
    assert "2 equal" in capsys.readouterr().out
    _stand_in(monkeypatch, sheet(NAME, lambda slug, n: changed(slug, n, utilisation=0.4)))
    assert main(words) == 6
    said = capsys.readouterr().out
    assert "utilisation: 0.9045 to 0.4" in said
    again = next(line for line in said.splitlines() if "again:" in line)
    assert again.split("again: howdah ")[1].split() == [*words[:2], "--only", f"{NAME}/cubic", "--again", *words[2:]]
    place = runs / "test.nights" / "latest"
    left = ["index.html", "junit.xml", "mail.txt", "night.json", "night.ktap", "series.om"]
    assert sorted(file.name for file in place.iterdir()) == left
    written = json.loads((place / "night.json").read_text())
    assert written["states"] == {"regression": 1, "equal": 1}
    assert main([*words, "--only", "made/reno", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["states"] == {"equal": 1}
    assert len([entry for entry in (runs / "test.nights").iterdir() if not entry.is_symlink()]) == 4


def test_a_cell_without_a_baseline_fails_where_one_is_required(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    suite = write_suite(tmp_path, "suite: test\ncells:\n- {profile: made.yaml}\n")
    baseline = Baseline(tmp_path / "base")
    part = sheet(NAME, usual)
    del part.cells["reno"]
    baseline.accept(part)
    words = ["nightly", str(suite), "--baseline", str(baseline.directory), "--runs", str(tmp_path / "runs")]
    _stand_in(monkeypatch, sheet(NAME, usual))
    assert main(words) == 0
    assert "1 new" in capsys.readouterr().out
    assert main([*words, "--require-baseline"]) == 7
    assert "reno  new" in capsys.readouterr().out
    _stand_in(monkeypatch, sheet(NAME, lambda slug, n: changed(slug, n, utilisation=0.4)))
    assert main([*words, "--require-baseline"]) == 6, "a regression is the worse of the two"


def test_a_baseline_of_nothing_is_not_accepted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    suite = write_suite(tmp_path, "suite: test\ncells:\n- {profile: made.yaml}\n")
    broken = sheet(NAME, usual)
    broken.cells, broken.problem = {}, "no such option"
    _stand_in(monkeypatch, broken)
    words = ["nightly", str(suite), "--baseline", str(tmp_path / "base"), "--runs", str(tmp_path / "runs")]
    assert main([*words, "--accept"]) == 1
    assert "there is nothing to accept" in capsys.readouterr().err
    assert not (tmp_path / "base").exists()


def test_a_suite_that_has_shrunk_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    suite = write_suite(tmp_path, "suite: test\ncells:\n- {profile: made.yaml, algorithms: [cubic]}\n")
    base = Baseline(tmp_path / "base")
    base.accept(sheet(NAME, usual))
    base.accept(sheet("test-other-debian-6.12", usual))
    tonight = sheet(NAME, usual)
    del tonight.cells["reno"]
    _stand_in(monkeypatch, tonight)
    assert main(["nightly", str(suite), "--baseline", str(base.directory), "--runs", str(tmp_path / "runs")]) == 0
    said = capsys.readouterr().out
    assert "the baseline has test-other-debian-6.12, which the suite no longer has" in said
    assert "1 gone" in said


def test_nights_are_served_beside_the_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    prometheus = prometheus_or_skip()
    suite = write_suite(tmp_path, "suite: test\ncells:\n- {profile: made.yaml}\n")
    runs, data = tmp_path / "runs", tmp_path / "data"
    data.mkdir()
    words = ["nightly", str(suite), "--baseline", str(tmp_path / "base"), "--runs", str(runs)]
    _stand_in(monkeypatch, sheet(NAME, usual))
    main(words)
    importer = Importer(runs, data, prometheus)
    importer.look()
    first = {block.name for block in data.iterdir()}
    assert first
    main(words)
    importer.look()
    assert {block.name for block in data.iterdir()} > first
    (link,) = [entry for entry in (runs / "test.nights").iterdir() if entry.is_symlink()]
    assert link.name == "latest"
