# SPDX-License-Identifier: Apache-2.0
"""The JSON Schema as another program's validator reads it, and the generated reference: current and complete."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator
from jsonschema.exceptions import best_match
from ruamel.yaml import YAML

from howdah.errors import ProfileError
from howdah.profile import load
from howdah.profile.field import QUANTITIES
from howdah.profile.model import Scenario
from howdah.profile.reference import PAGE_NAME, main, page
from howdah.profile.schema import SCHEMA, SCHEMA_NAME, json_schema
from howdah.work.catalogue import shipped_profiles

_BEGIN = "howdah: 1\nname: tried\n"
_PATH = "path: {rate: 20 Mbit/s, rtt: 40 ms}\n"
_REST = "duration: 4 s\n"
_CLAIM = "claims:\n  - {id: a, says: it, value: {metric: METRIC, at: {algorithm: cubic}}, expect: EXPECT}\n"
_BARS = (
    "path: {rate: 20 Mbit/s, rtt: [40 ms, 80 ms]}\n"
    "figures:\n  - {id: a, title: it, kind: bars, x: path.rtt, y: METRIC}\n"
)
_TABLE = "figures:\n  - {id: a, title: it, kind: table, rows: algorithm, columns: COLUMNS}\n"


@pytest.fixture(scope="module")
def validator() -> Draft202012Validator:
    schema = json_schema()
    Draft202012Validator.check_schema(schema)
    return Draft202012Validator(schema)


def _read(file: Path) -> Any:
    return YAML(typ="safe", pure=True).load(file.read_text(encoding="utf-8"))


def _profile(directory: Path, text: str) -> Path:
    path = "" if text.startswith("path:") else _PATH
    file = directory / "tried.yaml"
    file.write_text(f"{_BEGIN}{path}{_REST}{text}", encoding="utf-8")
    return file


def test_every_shipped_profile_validates_and_names_the_schema(validator: Draft202012Validator) -> None:
    assert len(shipped_profiles()) > 90
    wrong = {name: best_match(validator.iter_errors(_read(file))) for name, file in shipped_profiles().items()}
    assert {name: error.message for name, error in wrong.items() if error} == {}
    for file in shipped_profiles().values():
        line = file.read_text(encoding="utf-8").splitlines()[1]
        match = re.fullmatch(r"# yaml-language-server: \$schema=(\S+)", line)
        assert match, f"{file}:2 does not say which schema it follows"
        assert Path(os.path.normpath(file.parent / match[1])) == SCHEMA


@pytest.mark.parametrize(
    "text",
    [
        "algorithm: [cubicc]\n",
        "algorithm: cubicc\n",
        "flows: [{algorithm: rno}]\n",
        "groups: [{name: many, connections: 2, size: 10 kB, algorithm: rno}]\n",
        "algorithms: {mine: {like: cubicc}}\nalgorithm: mine\n",
        "algorithm: [cubic]\ncross_check: {traffic: iperf3, algorithm: cubicc}\n",
        "kernel: debina-6.12\n",
        "kernel: [debian-6.12, 'newest-debian']\n",
        "engine: umll\n",
        "receiver: delayed-akc\n",
        "collect: {tcp_prob: true}\n",
        "collect: {qdisc: often}\n",
        "traffic: {source: iperf}\n",
        "topology: {name: dumbell}\n",
        "repetitions: [1, 2]\n",
        "rate: 20 Mbit/s\n",
        "quick: {repetitons: 1}\n",
        "controls: {no-sack: {what: it, set: {hosts.sysctls: 1}}}\n",
        "perturbation: {rtt: many}\n",
        "path: {rat: 20 Mbit/s, rtt: 40 ms}\n",
        "path: {rate: 20, rtt: 40 ms}\n",
        "path: {rate: 20 MB/s, rtt: 40 ms}\n",
        "path: {rate: 20 Mbit/s}\n",
        "path: {rtt: 40 ms}\n",
        "path: {rate: 20 Mbit/s, rtt: 40 ms, one_way_delay: {forward: 20 ms, reverse: 20 ms}}\n",
        "path: {rate: 20 Mbit/s, rtt: 40 ms, queue: codell}\n",
        "path: {rate: 20 Mbit/s, rtt: 40 ms, sender_interface: fast}\n",
        "path: {rate: 20 Mbit/s, rtt: 40 ms, buffer: 1 bpd}\n",
        _CLAIM.replace("METRIC", "exit_tiem_s").replace("EXPECT", "{above: 1 s}"),
        _CLAIM.replace("METRIC", "exit_time_s").replace("EXPECT", "moree"),
        _CLAIM.replace("METRIC", "exit_time_s").replace("EXPECT", "{above: soon}"),
        _CLAIM.replace("METRIC", "exit_time_s")
        .replace("EXPECT", "{above: 1 s}")
        .replace("id: a", "id: a, entry: no_e"),
        _BARS.replace("METRIC", "goodputt"),
        _TABLE.replace("COLUMNS", "[exit_cuase]"),
        _TABLE.replace("COLUMNS", "[{metric: exit_cuase}]"),
    ],
)
def test_a_wrong_profile_is_refused_by_the_schema_and_by_howdah(
    text: str, tmp_path: Path, validator: Draft202012Validator
) -> None:
    file = _profile(tmp_path, text)
    assert not validator.is_valid(_read(file))
    with pytest.raises(ProfileError):
        load(file)


@pytest.mark.parametrize(
    "text",
    [
        "algorithm: [cubic, search-2-cubic]\n",
        "algorithms: {mine: {like: cubic}}\nalgorithm: [mine, reno]\n",
        "algorithms: {mine: {like: cubic}, other: {like: mine}}\nalgorithm: [mine, other]\n",
        "modules: [tcp_mine.c]\nalgorithm: mine\n",
        "flows: [{algorithm: reno}, {}]\n",
        "kernel: [6.12, debian-newest, /usr]\n",
        "collect: {qdisc: off, counters: 2 s}\n",
        "perturbation: {rtt: 0.5 %, start: 1 RTT, jitter: 0}\n",
        "path: {like: paths/geo, buffer: 2 BDP}\n",
        "path: {rate: 20Mbps, rtt: 40. ms, buffer: [1 packet, 10 packets], sender_interface: unlimited, loss: 0.01}\n",
        "quick: {algorithm: [cubic]}\nalgorithm: [cubic, reno]\n",
        _CLAIM.replace("METRIC", "exit_cause").replace("EXPECT", "{is: loss}"),
        _CLAIM.replace("METRIC", "exit_time_s").replace("EXPECT", "{above: 1 s}"),
        _BARS.replace("METRIC", "goodput_bits_per_second"),
        _TABLE.replace("COLUMNS", "[exit_time_s, {metric: exit_cause, title: why}]"),
        _TABLE.replace("COLUMNS", "[exit_time_s]").replace(
            "rows", "paper: {label: T, cubic: {exit_time_s: 1 s}}, rows"
        ),
    ],
)
def test_a_right_profile_is_taken_by_both(text: str, tmp_path: Path, validator: Draft202012Validator) -> None:
    (tmp_path / "tcp_mine.c").touch()
    file = _profile(tmp_path, text)
    error = best_match(validator.iter_errors(_read(file)))
    assert error is None, error.message
    load(file)


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
