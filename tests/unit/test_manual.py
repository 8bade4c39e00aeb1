# SPDX-License-Identifier: Apache-2.0
"""The manual page: current, complete, and one that man reads without a warning."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from howdah.command.main import build_parser
from howdah.command.manual import PAGE, current, main, page
from howdah.command.parser import EXIT_CODES, commands_of, every_parser
from howdah.place import DOCS


def _plain(roff: str) -> str:
    return re.sub(r"\\f[BIR]", "", roff).replace("\\-", "-").replace("\\&", "").replace("\\e", "\\")


def test_the_page_in_docs_is_current() -> None:
    assert main(["--check"]) == 0, "run make references"


def test_check_finds_a_missing_and_a_changed_page(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "environment.md").write_text((DOCS / "environment.md").read_text())
    assert main(["--check", str(tmp_path)]) == 1
    assert main([str(tmp_path)]) == 0
    assert main(["--check", str(tmp_path)]) == 0
    (tmp_path / PAGE).write_text((tmp_path / PAGE).read_text() + "more\n")
    assert main(["--check", str(tmp_path)]) == 1
    assert "howdah.1" in capsys.readouterr().err


def test_it_has_every_command_option_variable_and_exit_code() -> None:
    text = _plain(current(DOCS))
    parsers = list(every_parser(build_parser()))
    assert len(parsers) > 20
    for parser in parsers[1:]:
        assert f".SS {parser.prog}\n" in text
        for action in parser._actions:
            assert all(f"{name}" in text for name in action.option_strings if name not in ("-h", "--help"))
    for code in EXIT_CODES:
        assert f".B {code}\n" in text
    assert ".B HOWDAH_RUNS\n" in text


def test_a_new_command_is_in_it_with_nothing_else_changed() -> None:
    parser = build_parser()
    commands = commands_of(parser)
    assert commands is not None
    new = commands.add_parser("brandish", help="wave it\\about")
    new.add_argument("--speed", metavar="N", help=".5 is slow, 100 %% is fast")
    text = page(parser, "")
    assert ".SH OTHER COMMANDS\n.SS howdah brandish\n" in text
    assert ".B \\fB\\-\\-speed\\fR \\fIN\\fR\n\\&.5 is slow, 100 % is fast\n" in text


def test_what_follows_the_options_is_a_paragraph_of_its_own() -> None:
    parser = build_parser()
    commands = commands_of(parser)
    assert commands is not None
    new = commands.add_parser("brandish", help="wave it about", epilog="Mind the ceiling.")
    new.add_argument("--far", help="reach")
    assert "\nreach\n.PP\nMind the ceiling.\n" in page(parser, "")


@pytest.mark.parametrize(
    "command", [("mandoc", "-T", "lint", "-W", "warning"), ("groff", "-man", "-Tutf8", "-ww", "-z")]
)
def test_man_reads_it_without_a_warning(command: tuple[str, ...]) -> None:
    program = shutil.which(command[0])
    if program is None:
        pytest.skip(f"{command[0]} is not installed")
    done = subprocess.run([program, *command[1:], str(DOCS / PAGE)], capture_output=True, text=True, check=False)
    # The page has no date: it would be another one with each build.
    said = [line for line in (done.stdout + done.stderr).splitlines() if "missing date" not in line]
    assert said == []
