# SPDX-License-Identifier: Apache-2.0
"""The examples of docs/explain.md, run as written: from the recording to the twin laid over it."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from howdah.command.main import main
from howdah.errors import ExitCode
from tests.guest.guest_run import require_engine

pytestmark = pytest.mark.guest

PAGE = Path(__file__).parents[2] / "docs" / "explain.md"
_NEAR = 0.1  # of a number: what another build of the kernel may change
_NUMBER = re.compile(r"[−-]?\d+(?:\.\d+)?")


def _examples() -> list[tuple[str, str]]:
    """The profile and the commands with what they print, of each."""
    part = PAGE.read_text(encoding="utf-8").partition("## Two examples")[2].partition("\n## ")[0]
    blocks = re.findall(r"^```(yaml|console)\n(.*?)^```$", part, re.MULTILINE | re.DOTALL)
    assert [kind for kind, _ in blocks] == ["yaml", "console"] * 2
    return [(blocks[at][1], blocks[at + 1][1]) for at in range(0, 4, 2)]


def _is_printed(line: str, printed: list[str]) -> bool:
    """Whether a line has the same words, and about the same numbers. A distance is at most about what the page says."""
    for each in printed:
        if _NUMBER.sub("#", each).split() != _NUMBER.sub("#", line).split():
            continue
        pairs = zip(_NUMBER.findall(line), _NUMBER.findall(each), strict=True)
        told = [(float(a.replace("−", "-")), float(b.replace("−", "-"))) for a, b in pairs]
        if line.startswith("twin: "):
            return all(b <= max(1.5 * a, 1.0) for a, b in told)
        return all(abs(a - b) <= _NEAR * max(abs(a), 1) for a, b in told)
    return False


@pytest.mark.parametrize("number", [0, 1])
def test_an_example_prints_what_the_page_says(
    number: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    require_engine()
    profile, console = _examples()[number]
    name = re.findall(r"^name: (\S+)$", profile, re.MULTILINE)[0]
    monkeypatch.chdir(tmp_path)
    Path(f"{name}.yaml").write_text(profile, encoding="utf-8")
    commands = re.split(r"^\$ howdah ", console, flags=re.MULTILINE)[1:]
    assert len(commands) == 4
    for command in commands:
        line, *expected = command.rstrip("\n").split("\n")
        words = [
            found for word in shlex.split(line) for found in (map(str, Path().glob(word)) if "*" in word else [word])
        ]
        capsys.readouterr()
        assert main(words) == ExitCode.DONE, line
        printed = capsys.readouterr().out.splitlines()
        for each in expected:
            assert _is_printed(each, printed), (each, printed)


def test_another_number_or_word_is_not_what_the_page_says() -> None:
    said = "  base RTT           40 ms (39.8 ms … 40.2 ms): the handshake"
    assert _is_printed(said, ["x", said.replace("40.2", "40.9")])
    assert not _is_printed(said, [said.replace("40 ms", "50 ms")])
    assert not _is_printed(said, [said.replace("handshake", "least")])
