# SPDX-License-Identifier: Apache-2.0
"""The generated reference: current in docs/, complete, and the schema's patterns agree with the parser."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from howdah.profile.field import QUANTITIES
from howdah.profile.model import Scenario
from howdah.profile.reference import PAGE_NAME, main, page
from howdah.profile.schema import SCHEMA_NAME, json_schema


def test_the_files_in_docs_are_current() -> None:
    assert main(["--check"]) == 0, "run make references"


def test_check_names_missing_and_changed_files(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    schema, reference = tmp_path / SCHEMA_NAME, tmp_path / PAGE_NAME
    assert main(["--check", str(tmp_path)]) == 1
    assert f"not current: {schema}, {reference}\n" in capsys.readouterr().err
    assert main([str(tmp_path)]) == 0
    assert main(["--check", str(tmp_path)]) == 0
    reference.write_text(reference.read_text() + "an edit by hand\n")
    assert main(["--check", str(tmp_path)]) == 1
    assert f"not current: {reference}\n" in capsys.readouterr().err
    assert main([str(tmp_path)]) == 0
    assert reference.read_text() == page()


def test_the_page_names_every_field_and_quantity() -> None:
    text = page()
    whole = json_schema()
    for name, definition in [("Scenario", whole), *whole["$defs"].items()]:
        for key, schema in definition.get("properties", {}).items():
            assert re.search(rf"\| `{key}` \||\.{key}` [|(]", text), f"{name}.{key}"
            assert schema.get("description"), f"{name}.{key} has no description"
    for kind in QUANTITIES:
        assert f"| {kind} |" in text


def test_the_schema_is_plain_json_schema() -> None:
    whole = json_schema()

    def walk(schema: Any) -> None:
        if isinstance(schema, dict):
            assert not [key for key in schema if key.startswith("x-")]
            for reference in (schema["$ref"],) if isinstance(schema.get("$ref"), str) else ():
                assert reference.rpartition("/")[2] in whole["$defs"]
            for item in schema.values():
                walk(item)
        elif isinstance(schema, list):
            for item in schema:
                walk(item)

    walk(whole)
    assert set(whole["required"]) == {"howdah", "name", "path", "duration"}


def test_fields_that_can_be_swept_take_lists_and_fixed_ones_do_not() -> None:
    properties = json_schema()["properties"]
    assert properties["algorithm"]["anyOf"][1]["type"] == "array"
    assert properties["repetitions"]["type"] == "integer"
    assert "anyOf" not in properties["name"]


@pytest.mark.parametrize(
    ("text", "fits"), [("400 Mbit/s", True), ("1.5Gbit/s", True), ("400", False), ("fast", False), ("-1 Mbit/s", False)]
)
def test_the_pattern_of_rates_agrees_with_the_parser(text: str, fits: bool) -> None:
    definitions = json_schema()["$defs"]
    assert definitions["PathSection"]["properties"]["rate"]["anyOf"][0] == {"$ref": "#/$defs/Rate"}
    assert bool(re.search(definitions["Rate"]["pattern"], text)) == fits
    data = {"howdah": 1, "name": "x", "path": {"rate": text, "rtt": "1 ms"}, "duration": "1 s"}
    if fits:
        Scenario.model_validate(data)
    else:
        with pytest.raises(ValueError, match=r"path\.rate"):
            Scenario.model_validate(data)
