# SPDX-License-Identifier: Apache-2.0
"""Suites: what they expand to, what is said of wrong ones with their line, and that their schema agrees."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator
from ruamel.yaml import YAML

from howdah.command.main import main
from howdah.errors import HowdahError, ProfileError
from howdah.nightly.suite import SUITE_SCHEMA, chosen, read_suite, slugs_of, suite_schema
from howdah.nightly.suite import main as write
from howdah.place import PROFILES
from tests.nightly_factory import PROFILE, write_suite


def test_a_suite_is_items_times_kernels(tmp_path: Path) -> None:
    tree = tmp_path / "linux"
    tree.mkdir()
    suite = read_suite(
        write_suite(
            tmp_path,
            """\
suite: test
cells:
  - profile: made.yaml
    algorithms: [cubic, bbr]
    receivers: [linux, delayed-ack]
    kernels: [debian-6.12, linux]
    repetitions: 4
    set: {path.rate: 20 Mbit/s, duration: 5 s}
  - {profile: made.yaml, name: other, metrics: [utilisation]}
""",
        )
    )
    first, second, other = suite.series
    assert first.name == "test-made-debian-6.12"
    assert second.name.startswith("test-made-linux-")
    assert second.kernel == str(tree), "a path starts at the suite"
    assert slugs_of(first) == slugs_of(second) == ["cubic-linux", "cubic-delayed-ack", "bbr-linux", "bbr-delayed-ack"]
    assert {cell.repetition for cell in first.profile.cells()} == {0, 1, 2, 3}
    assert first.profile.points[0].scenario.path.rate == 20_000_000
    assert first.command[:3] == ("howdah", "run", str(tmp_path / "made.yaml"))
    assert 'path.rate="20 Mbit/s"' in first.command
    assert first.measures.compares("exit_round")
    assert first.measures.is_primary("exit_time_s")
    assert not first.measures.is_primary("exit_round")
    assert not other.measures.compares("exit_time_s")
    assert other.measures.is_primary("utilisation")
    assert not other.measures.is_primary("exit_time_s")
    assert other.profile.repetitions == 10


def test_a_shipped_profile_by_its_name(tmp_path: Path) -> None:
    """Who installed a wheel does not know where its profiles are. A file beside the suite comes first."""
    suite = write_suite(tmp_path, "suite: t\ncells:\n- {profile: quick}\n")
    (one,) = read_suite(suite).series
    assert slugs_of(one) == ["cubic", "reno"]
    assert one.command[:3] == ("howdah", "run", "quick")
    write_suite(tmp_path, "suite: t\ncells:\n- {profile: qucik}\n")
    with pytest.raises(HowdahError, match="did you mean quick"):
        read_suite(suite)


def test_controls_and_cross_checks_are_no_cells(tmp_path: Path) -> None:
    extra = (
        "cross_check: {traffic: iperf3, algorithm: cubic}\n"
        "controls:\n  deep: {what: a deeper buffer, set: {path.buffer: 4 bdp}}\n"
    )
    (one,) = read_suite(write_suite(tmp_path, "suite: t\ncells:\n- {profile: made.yaml}\n", PROFILE + extra)).series
    assert slugs_of(one) == ["cubic", "reno"]


@pytest.mark.parametrize(
    ("text", "line", "said"),
    [
        ("suite: t\ncells: []\n", 2, "cells"),
        ("suite: t\ncells:\n- {profile: none.yaml}\n", 3, "there is no profile none.yaml"),
        ("suite: t\ncells:\n- profile: made.yaml\n  repetitions: 2\n", 4, "greater than or equal to 3"),
        ("suite: t\ncells:\n- profile: made.yaml\n  algoritms: [cubic]\n", 4, "there is no field 'algoritms'"),
        ("suite: t\ncells:\n- profile: made.yaml\n  algorithms: []\n", 4, "at least 1"),
        ("suite: t\ncells:\n- profile: made.yaml\n  algorithms: [cubik]\n", 3, "cubik"),
        ("suite: t\ncells:\n- profile: made.yaml\n  receivers: [windos-xp]\n", 3, "windos-xp"),
        ("suite: t\ncells:\n- profile: made.yaml\n  set: {path.rat: 3}\n", 3, "rat"),
        ("suite: t\ncells:\n- profile: made.yaml\n  set: {algorithm: cubic}\n", 4, "algorithm is set with algorithms"),
        ("suite: t\ncells:\n- profile: made.yaml\n  metrics: [utilization]\n", 4, "did you mean utilisation"),
        ("suite: t\ncells:\n- profile: made.yaml\n- profile: made.yaml\n", 4, "listed twice"),
        ("suite: T!\ncells:\n- profile: made.yaml\n", 1, "does not have the form"),
        ("cells:\n- profile: made.yaml\n", 1, "'suite' is missing"),
        ("suite: t\ncells: 3\n", 2, "expected a list"),
        ("- a\n", 1, "a suite is a mapping of fields, not a list"),
    ],
)
def test_a_wrong_suite_is_refused_with_its_line(tmp_path: Path, text: str, line: int, said: str) -> None:
    file = write_suite(tmp_path, text)
    with pytest.raises(ProfileError) as caught:
        read_suite(file)
    assert said in str(caught.value)
    assert str(caught.value).startswith(f"{file}:{line}")


def test_a_suite_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(ProfileError, match="no such suite"):
        read_suite(tmp_path / "none.yaml")


def test_parts_are_chosen_by_item_experiment_or_cell(tmp_path: Path) -> None:
    suite = read_suite(write_suite(tmp_path))
    both = {"test-made-debian-6.12", "test-made-debian-6.1"}
    assert chosen(suite, []) == dict.fromkeys(both)
    assert chosen(suite, ["made"]) == dict.fromkeys(both)
    assert chosen(suite, ["test-made-debian-6.1"]) == {"test-made-debian-6.1": None}
    assert chosen(suite, ["test-made-debian-6.1/reno"]) == {"test-made-debian-6.1": {"reno"}}
    assert chosen(suite, ["made/reno", "test-made-debian-6.1"])["test-made-debian-6.1"] is None
    with pytest.raises(HowdahError, match="has no 'made/renno'") as caught:
        chosen(suite, ["made/renno"])
    assert "did you mean reno" in str(caught.value)
    with pytest.raises(HowdahError, match="has no 'mad'"):
        chosen(suite, ["mad"])


@pytest.mark.parametrize("file", sorted((PROFILES / "suites").glob("*.yaml")), ids=lambda file: file.stem)
def test_shipped_suites_can_be_read(file: Path) -> None:
    suite = read_suite(file)
    assert suite.name == file.stem
    assert suite.description
    assert sum(len(slugs_of(one)) for one in suite.series) > 10


_BEGIN = "suite: mine\ncells:\n"
_ITEM = "  - profile: quick\n"


@pytest.fixture(scope="module")
def validator() -> Draft202012Validator:
    Draft202012Validator.check_schema(suite_schema())
    return Draft202012Validator(suite_schema())


def _accepted(validator: Draft202012Validator, text: str, place: Path) -> tuple[bool, bool]:
    """Whether the schema takes it, and whether howdah does."""
    file = place / "suite.yaml"
    file.write_text(text, encoding="utf-8")
    try:
        read_suite(file)
    except ProfileError:
        taken = False
    else:
        taken = True
    return validator.is_valid(YAML(typ="safe", pure=True).load(text)), taken


def test_the_written_schema_is_current() -> None:
    assert write(["--check"]) == 0


def test_every_shipped_suite_validates_and_names_the_schema(validator: Draft202012Validator) -> None:
    suites = sorted((PROFILES / "suites").glob("*.yaml"))
    assert suites
    for file in suites:
        text = file.read_text(encoding="utf-8")
        assert not list(validator.iter_errors(YAML(typ="safe", pure=True).load(text)))
        line = re.fullmatch(r"# yaml-language-server: \$schema=(\S+)", text.splitlines()[1])
        assert line is not None, f"{file}:2 does not say which schema it follows"
        assert Path(os.path.normpath(file.parent / line[1])) == SUITE_SCHEMA


@pytest.mark.parametrize(
    "text",
    [
        _BEGIN + _ITEM,
        _BEGIN + _ITEM + "    kernels: [debian-6.12, debian-6.1]\n    algorithms: [cubic, reno]\n    repetitions: 12\n",
        _BEGIN + _ITEM + "    metrics: [utilisation, exit_time_s]\n    primary: [utilisation]\n",
        _BEGIN + _ITEM + "    set: {path.rtt: 80 ms}\n",
        "primary: [exit_cwnd_packets]\nallow_unproven: true\n" + _BEGIN + _ITEM,
    ],
)
def test_both_take_it(validator: Draft202012Validator, text: str, tmp_path: Path) -> None:
    assert _accepted(validator, text, tmp_path) == (True, True)


@pytest.mark.parametrize(
    "text",
    [
        "suite: mine\n",
        "cells:\n" + _ITEM,
        "suite: Mine\ncells:\n" + _ITEM,
        "suite: mine\ncells: []\n",
        _BEGIN + "  - name: a\n",
        _BEGIN + _ITEM + "    repetitions: 2\n",
        _BEGIN + _ITEM + "    repetition: 10\n",
        _BEGIN + _ITEM + "    metrics: [utilization]\n",
        _BEGIN + _ITEM + "    kernels: []\n",
        _BEGIN + _ITEM + "    set: {pth.rtt: 80 ms}\n",
        _BEGIN + _ITEM + "    claims: [3]\n",
    ],
)
def test_both_refuse_it(validator: Draft202012Validator, text: str, tmp_path: Path) -> None:
    assert _accepted(validator, text, tmp_path) == (False, False)


def test_the_command_says_where_it_is(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["schema", "suite"]) == 0
    assert capsys.readouterr().out == f"{SUITE_SCHEMA}\n"
    assert main(["schema", "suite", "--text"]) == 0
    assert json.loads(capsys.readouterr().out) == suite_schema()


def test_every_field_is_described() -> None:
    schema = suite_schema()
    for definition in (schema, schema["$defs"]["ItemSection"]):
        assert all(each.get("description") for each in definition["properties"].values())
