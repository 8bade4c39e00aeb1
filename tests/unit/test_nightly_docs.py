# SPDX-License-Identifier: Apache-2.0
"""docs/nightly.md: its tables are those of the code, its units and its CI job are what they are said to be."""

from __future__ import annotations

import configparser
import re
import shlex
from pathlib import Path
from typing import get_args

import pytest
from ruamel.yaml import YAML

from howdah.command.main import build_parser
from howdah.errors import ExitCode
from howdah.metric import known_metrics
from howdah.nightly.change import FAILING, Outcome, State, label
from howdah.nightly.output import METRICS
from howdah.nightly.significance import (
    ALPHA,
    EFFECTS,
    OTHER_ALPHA,
    PRIMARY,
    PRIMARY_ALPHA,
    comparisons_provable,
    is_better_absent,
    is_excluded,
    least_p,
)
from howdah.nightly.suite import ItemSection, SuiteSection, read_suite, slugs_of
from howdah.place import PROFILES
from tests.nightly_factory import night, sheet, usual

ROOT = Path(__file__).resolve().parents[2]
TEXT = (ROOT / "docs" / "nightly.md").read_text(encoding="utf-8")
EXAMPLES = ROOT / "docs" / "examples"


def _blocks(kind: str) -> list[str]:
    return re.findall(rf"^```{kind}\n(.*?)^```$", TEXT, re.MULTILINE | re.DOTALL)


def _rows(heading: str) -> list[list[str]]:
    """Cells of the table whose head begins with these words."""
    table = TEXT[TEXT.index(f"| {heading}") :].partition("\n\n")[0]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in table.splitlines()[2:]]


def test_the_least_that_matters_is_that_of_the_code() -> None:
    written = [(kind, unit, share, float(quantity)) for kind, unit, share, quantity in _rows("kind | unit")]
    assert written == [
        (each.kind, each.unit, f"{each.relative:.0%}".replace("%", " %"), each.absolute) for each in EFFECTS
    ]
    assert all(f"`{name}`" in TEXT for name in known_metrics() if is_excluded(name))
    of_losses = [name for name in known_metrics() if is_better_absent(name)]
    assert of_losses
    assert all(f"`{name}`" in TEXT for name in of_losses if not name.startswith("synchronous_losses_"))


def test_the_metrics_are_those_of_the_code() -> None:
    assert [(name.strip("`"), text) for name, text in _rows("metric | meaning")] == [(m.name, m.help) for m in METRICS]


def test_the_numbers_of_repetitions_are_right() -> None:
    assert (round(least_p(3), 2), round(least_p(5), 3), f"{least_p(10):.6f}") == (0.03, 0.002, "0.000002")
    served = [comparisons_provable(pairs, PRIMARY_ALPHA) for pairs in (10, 5, 3)]
    assert served == [20_971, 20, 1]
    assert "10 repetitions serve 20 971 comparisons, 5 serve 20, and 3 serve one" in TEXT
    assert f"2 m / 4ⁿ must be below {PRIMARY_ALPHA:g}" in TEXT
    assert f"at most {PRIMARY_ALPHA:.0%} + {OTHER_ALPHA:.0%} = {ALPHA:.0%}".replace("%", " %") in TEXT


def test_the_primary_measures_are_those_of_the_code() -> None:
    (paragraph,) = [each for each in TEXT.split("\n\n") if each.startswith("By default the primary measures are")]
    assert set(re.findall(r"`([a-z0-9_]+)`", paragraph.partition(".\n")[0])) == set(PRIMARY)


def test_every_state_and_outcome_is_there() -> None:
    rows = {name: fails for name, _, fails in _rows("state of a cell")}
    names = {name.partition(" (")[0] for name in rows}
    assert names == {label(state) for state in get_args(State)}
    always = {name.partition(" (")[0] for name, fails in rows.items() if fails == "yes"}
    assert always == set(FAILING)
    assert all(f"`{outcome}`" in TEXT for outcome in get_args(Outcome))


def test_the_fields_of_a_comparison_and_of_a_night_are_there(tmp_path: Path) -> None:
    written = set(re.findall(r"`([a-z0-9_]+)`", TEXT))
    data = night(tmp_path, sheet("test-made-debian-6.12", usual), sheet("test-made-debian-6.12", usual)).file().plain()
    assert set(data) | set(data["alpha"]) | set(data["tests"]) | set(data["runs"]) <= written
    assert set(data["cells"][0]) | set(data["cells"][0]["comparisons"][0]) <= written
    assert f"`format` ({data['format']})" in TEXT


def test_the_exit_codes_are_those_of_the_command() -> None:
    codes = [int(code) for code, _ in _rows("exit code")]
    assert codes == [
        ExitCode.DONE,
        ExitCode.WRONG_USE,
        ExitCode.DIFFERS,
        ExitCode.NO_BASELINE,
        ExitCode.INTERRUPTED,
    ]
    assert f"{ExitCode.NO_BASELINE} no baseline to compare with" in (ROOT / "README.md").read_text(encoding="utf-8")
    assert f"  {ExitCode.NO_BASELINE}    no baseline to compare with\n" in str(build_parser().epilog)


def test_the_shipped_suite_is_as_large_as_it_says() -> None:
    series = read_suite(PROFILES / "suites" / "nightly.yaml").series
    counts = [(len(slugs_of(one)), one.profile.repetitions) for one in series]
    cells, runs = sum(cells for cells, _ in counts), sum(cells * repetitions for cells, repetitions in counts)
    assert f"{cells} cells, {runs} runs" in TEXT


def test_the_example_of_a_suite_has_every_field() -> None:
    (example,) = [text for text in _blocks("yaml") if text.startswith("suite:")]
    data = YAML(typ="safe", pure=True).load(example)
    assert set(data) == set(SuiteSection.model_fields)
    assert {name for cell in data["cells"] for name in cell} == set(ItemSection.model_fields)
    SuiteSection.model_validate(data)


def test_the_units_are_ones_that_systemd_reads() -> None:
    service, timer = (configparser.ConfigParser(interpolation=None, strict=True) for _ in range(2))
    for parser in (service, timer):
        parser.optionxform = str  # type: ignore[assignment,method-assign]
    service.read_string((EXAMPLES / "howdah-nightly.service").read_text(encoding="utf-8"))
    timer.read_string((EXAMPLES / "howdah-nightly.timer").read_text(encoding="utf-8"))
    assert set(service.sections()) == {"Unit", "Service"}
    assert set(timer.sections()) == {"Unit", "Timer", "Install"}
    program, *arguments = shlex.split(service["Service"]["ExecStart"])
    assert program.endswith("/.venv/bin/howdah")
    assert build_parser().parse_args(arguments).suite == "nightly"
    assert service["Service"]["Type"] == "oneshot"
    assert re.fullmatch(r"\*-\*-\* \d\d:\d\d:\d\d", timer["Timer"]["OnCalendar"])
    assert timer["Install"]["WantedBy"] == "timers.target"


def test_the_ci_job_runs_a_target_that_exists_and_keeps_what_a_night_leaves() -> None:
    job = YAML(typ="safe", pure=True).load(EXAMPLES / "gitlab-ci.yml")["nightly"]
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    (target,) = [line.removeprefix("make ") for line in job["script"]]
    assert re.search(rf"^{target}: ", makefile, re.MULTILINE)
    assert any("runs/nightly.nights/latest" in line for line in job["after_script"])
    assert job["artifacts"]["when"] == "always", "a red night's page is the one that is wanted"
    assert job["artifacts"]["reports"]["junit"].startswith(job["artifacts"]["paths"][0])


@pytest.mark.parametrize("text", [text for text in _blocks("console") if "howdah " in text])
def test_the_commands_are_ones_that_are_understood(text: str) -> None:
    for line in text.splitlines():
        if line.startswith("$ howdah "):
            build_parser().parse_args(shlex.split(line.removeprefix("$ howdah "), comments=True))
