# SPDX-License-Identifier: Apache-2.0
"""The schema of suites takes what ``howdah nightly`` takes, and refuses what it refuses."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator
from ruamel.yaml import YAML

from howdah.command.main import main
from howdah.errors import ProfileError
from howdah.nightly.suite import SUITE_SCHEMA, read_suite, suite_schema
from howdah.nightly.suite import main as write
from howdah.place import PROFILES

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
