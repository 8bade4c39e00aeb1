# SPDX-License-Identifier: Apache-2.0
"""Hostile and broken profile files: each ends in a ProfileError that names the file and, if there is one, the line."""

from __future__ import annotations

import os
import random
import re
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from ruamel.yaml import YAML

from howdah.errors import ProfileError
from howdah.place import PROFILES
from howdah.profile import load, source
from howdah.profile.source import LARGEST_FILE_BYTES, Path_, parse_yaml, read_document
from howdah.work.catalogue import find_profile
from tests.faults.mutation import Corpus, Mutator


def _refused(tmp_path: Path, content: bytes) -> ProfileError:
    file = tmp_path / "hostile.yaml"
    file.write_bytes(content)
    with pytest.raises(ProfileError) as caught:
        load(file)
    assert caught.value.where is not None
    assert caught.value.where.startswith(str(file))
    return caught.value


@pytest.mark.parametrize(
    ("content", "line", "what"),
    [
        (b"a: &a [x, x]\nb: &b [*a, *a]\nc: [*b, *b]\n", 1, "anchors (&a) are not supported"),
        (b"howdah: 1\nname: *missing\n", 2, "aliases (*missing) are not supported"),
        (b"howdah: 1\nname: !!python/object/apply:os.system [id]\n", 2, "tags (tag:yaml.org,2002:python/object"),
        (b"howdah: 1\nname: !mine x\n", 2, "tags (!mine) are not supported"),
        (b"howdah: 1\nname: a\nname: b\n", 3, "'name' is given twice (first on line 2)"),
        (b"path:\n  rate: 1 Mbit/s\n  rtt: 1 ms\n  rate: 2 Mbit/s\n", 4, "'rate' is given twice"),
        (b"howdah: 1\nduration: .nan\n", 2, ".nan is not a number"),
        (b"howdah: 1\nduration: -.inf\n", 2, "-.inf is not a number"),
        (b"howdah: 1\nseed: " + b"9" * 5000 + b"\n", 2, "5000 digits"),
        (b"<<: {a: 1}\n", 1, "merge keys"),
        (b"? [a, b]\n: c\n", 1, "a field's name must be a plain word"),
        (b"howdah: 1\n---\nhowdah: 1\n", 2, "a second document"),
        (b"howdah: 1\nname: [a, b\n", 3, "this is not YAML"),
        (b"howdah: 1\n\tname: x\n", 2, "this is not YAML"),
        (b"howdah: 1\nname: \x07\n", 2, "this is not YAML: the character U+0007 is not allowed"),
        (b"howdah: 1\nname: caf\xe9\n", 2, "not UTF-8 text (byte 0xe9)"),
        ("howdah: 1\nname: x\n".encode("utf-16"), 1, "not UTF-8 text"),
        (b"- a\n- b\n", 1, "a profile is a mapping of fields, not a list"),
        (b"\n\njust words\n", 3, "a profile is a mapping of fields, not a single value"),
        (b"[" * 100 + b"]" * 100, 1, "nested more than 32 deep"),
        (b"a: " + b"{a: " * 2000 + b"1" + b"}" * 2000, 1, "nested more than 32 deep"),
        (b"sources: [" + b"x, " * 30000 + b"x]", 1, "more than 20000 values"),
    ],
)  # fmt: skip
def test_refused_with_its_line(tmp_path: Path, content: bytes, line: int, what: str) -> None:
    error = _refused(tmp_path, content)
    assert error.where == f"{tmp_path / 'hostile.yaml'}:{line}"
    assert what in error.what


def test_empty_and_comment_only_files(tmp_path: Path) -> None:
    for content in (b"", b"# nothing here\n", b"---\n", b"null\n"):
        assert "the profile is empty" in _refused(tmp_path, content).what


def test_a_huge_file_is_not_read(tmp_path: Path) -> None:
    file = tmp_path / "huge.yaml"
    with file.open("wb") as stream:
        stream.truncate(1 << 34)  # sparse: 16 GiB
    with pytest.raises(ProfileError, match="larger than 1 MiB"):
        load(file)
    file.write_bytes(b"#" * LARGEST_FILE_BYTES)
    with pytest.raises(ProfileError, match="empty"):
        load(file)


def test_things_that_are_not_files(tmp_path: Path) -> None:
    (tmp_path / "one.yaml").touch()
    with pytest.raises(ProfileError, match="this is a directory") as caught:
        load(tmp_path)
    assert caught.value.hint == "it holds one.yaml"
    with pytest.raises(ProfileError, match="this is a directory"):
        load(find_profile(str(tmp_path)))
    with pytest.raises(ProfileError, match="no such profile"):
        load(tmp_path / "missing.yaml")
    with pytest.raises(ProfileError, match="cannot be read"):
        load(tmp_path / "one.yaml" / "below.yaml")
    with pytest.raises(ProfileError, match="cannot be read"):
        load("nul\0byte.yaml")
    with pytest.raises(ProfileError, match="not a regular file"):
        load("/dev/zero")
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(ProfileError, match="not a regular file"):
        load(tmp_path / "pipe")


def test_an_unreadable_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "secret.yaml"
    file.write_text("howdah: 1\n")
    file.chmod(0)

    def refuse(*_arguments: object, **_options: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "open", refuse)  # root may open everything
    with pytest.raises(ProfileError, match="cannot be read: Permission denied"):
        load(file)


def test_plain_scalars_follow_yaml_1_2() -> None:
    text = "a: off\nb: no\nc: 010\nd: 0x10\ne: 1.50\nf: '1'\ng: ~\nh: true\ni: 2026-01-01\nj: 1_000\nk: 0o10\n"
    data, _ = parse_yaml(text, "x")
    assert data["a"] == "off"
    assert data["b"] == "no"
    assert (data["c"], data["d"], data["k"]) == (10, 16, 8)
    assert (str(data["e"]), data["f"], data["g"], data["h"]) == ("1.50", "1", None, True)
    assert (data["i"], data["j"]) == ("2026-01-01", "1_000")


def test_every_value_has_its_place(tmp_path: Path) -> None:
    file = tmp_path / "p.yaml"
    file.write_text(
        "# comment\npath:\n  rate:\n    - 1 Mbit/s\n    - 2 Mbit/s\nflows:\n  - {start: 0 s}\n", "utf-8-sig"
    )
    document = read_document(file)
    assert document.place(("path", "rate", 1)) == f"{file}:5"
    assert document.place(("flows", 0, "start")) == f"{file}:7"
    assert document.place(("flows", 0, "stop")) == f"{file}:7", "an absent field is at its parent"


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=150)
@given(content=st.one_of(st.binary(max_size=300), st.text(alphabet="ab:-[]{}&*!#|>'\"%@`,? \n\t0.~", max_size=200)))
def test_no_content_ends_in_anything_but_a_profile_error(tmp_path: Path, content: bytes | str) -> None:
    _refused(tmp_path, content if isinstance(content, bytes) else content.encode())


def test_a_folded_text_holds_what_was_written_and_nothing_else() -> None:
    value, _ = parse_yaml("text: >-\n  one line,\n  and its rest\n", "profile.yaml")
    assert value == {"text": "one line, and its rest"}


def test_a_text_that_is_read_again_is_not_what_somebody_has_changed() -> None:
    text = "path: {rate: 1 Mbit/s}\nflows: [{}, {start: 1 s}]\n"
    first, places = parse_yaml(text, "profile.yaml")
    first["path"]["rate"] = "2 Mbit/s"
    first["flows"].append({})
    places.clear()
    value, places = parse_yaml(text, "profile.yaml")
    assert value == {"path": {"rate": "1 Mbit/s"}, "flows": [{}, {"start": "1 s"}]}
    assert places["flows", 1, "start"] == "profile.yaml:2"
    assert parse_yaml(text, "other.yaml")[1]["path",] == "other.yaml:1", "the name is a part of each place"
    assert parse_yaml(text, "other.yaml", lines=False)[1]["path",] == "other.yaml"


def _read(parse: Callable[[str], tuple[Any, dict[Path_, str]]], text: str) -> object:
    """Values with their types, and places; or the error with its place."""
    try:
        value, places = parse(text)
    except ProfileError as error:
        return error.what, error.where
    return repr(value), places


def _parsed_in_python(text: str) -> tuple[Any, dict[Path_, str]]:
    return source._parse_with(YAML(typ="safe", pure=True), text, "x", True)


def test_both_parsers_read_every_text_the_same_way() -> None:
    """What the parser in C accepts has the values and lines that the one in Python gives it."""
    texts = {str(file.relative_to(PROFILES)): file.read_text() for file in sorted(PROFILES.rglob("*.yaml"))}
    trees = {name: parse_yaml(text, name)[0] for name, text in texts.items()}
    chance = random.Random(1)
    mutator = Mutator(Corpus.of(texts, trees, []), chance)
    mutated = [content.decode("utf-8-sig", errors="replace") for _, content in (mutator.document() for _ in range(80))]
    small = [text for text in (*mutated, *chance.sample(list(texts.values()), 10)) if len(text) < 10_000]
    assert len(small) > 50
    for text in (*small, "a: b\tc", "{a: [b\t, c]}", "a: 'b\u2028c'\nd: e", "a: b\x85c: d", "\ufeffa: b", "a:\n\t- b"):
        assert _read(partial(parse_yaml, name="x"), text) == _read(_parsed_in_python, text), text


_PIECES = (
    *"#|>-:?a\"'{},[]&*!+2@`%\\é\n\n\t\r\ufeff\u2028",
    *(" #", "|-", "|2", "\n ", "  ", "<<", "---", "...", "\\x", "!!", "!<", "%YAML 1.1", "%TAG ! x"),
)


@pytest.mark.parametrize("text", ["#\n| #\t", "%YAML 1.12\na: 1", "\n\n: #-\ufeff@ %\u2028\ufeff\n\n"])
def test_what_the_parsers_assert_is_a_refusal(text: str) -> None:
    """Comments that meet, and the version of a directive, were assertions in the YAML library."""
    _parsed_or_refused(text)


def test_any_text_is_parsed_or_refused() -> None:
    chance = random.Random(1)
    accepted = sum(
        _parsed_or_refused("".join(chance.choice(_PIECES) for _ in range(chance.randint(1, 12)))) for _ in range(1500)
    )
    assert 50 < accepted < 1450


def _parsed_or_refused(text: str) -> bool:
    try:
        parse_yaml(text, "any.yaml")
    except ProfileError as error:
        assert re.fullmatch(r"any\.yaml(:\d+)?", error.where or ""), error
        assert error.what
        return False
    return True
