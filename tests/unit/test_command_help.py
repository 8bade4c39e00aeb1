# SPDX-License-Identifier: Apache-2.0
"""Help fits a terminal of 80 columns, names everything, and a misspelt word is answered with the nearest one."""

from __future__ import annotations

import subprocess
import sys

import pytest

from howdah.command.commands import COMMANDS
from howdah.command.main import build_parser, main
from howdah.command.parser import OTHER, commands_of, every_parser
from howdah.errors import HowdahError
from tests.wheel import ROOT


@pytest.mark.parametrize("columns", [80, 200])
def test_help_fits_and_describes(columns: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    for parser in every_parser(build_parser()):
        text = parser.format_help()
        assert max(map(len, text.splitlines())) <= columns, parser.prog
        assert parser.description, f"{parser.prog} does not say what it does"
        for action in parser._actions:
            assert action.help or action is commands_of(parser), f"{parser.prog}: {action.dest} has no help"


def test_help_lists_every_command_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    parser = build_parser()
    commands = commands_of(parser)
    assert commands is not None
    commands.add_parser("brandish", help="wave it about")
    lines = parser.format_help().splitlines()
    for name in commands.choices:
        assert len([line for line in lines if line.startswith(f"  {name} ") and not line.startswith("  howdah")]) == 1
    assert lines.index(f"{OTHER}:") < lines.index(next(line for line in lines if line.startswith("  brandish ")))


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["rnu", "quick"], "did you mean run?"),
        (["nightyl"], "did you mean nightly?"),
        (["run", "quick", "--kernle", "debian-6.1"], "did you mean --kernel?"),
        (["list", "profile"], "did you mean profiles?"),
        (["completion", "bsh"], "did you mean bash?"),
        (["machines", "provison", "x.yaml"], "did you mean provision?"),
    ],
)
def test_a_misspelt_word_of_the_command_line(words: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(words)
    assert ended.value.code == 2
    assert said in capsys.readouterr().err


def test_help_loads_no_command() -> None:
    """Nor does a word that is no command: each module loads what its command works with."""
    code = (
        "import sys; from howdah.command.main import build_parser; build_parser(['rnu']).format_help();"
        "print(*[name for name in ('numpy', 'pyarrow', 'pydantic', 'rich', 'jinja2') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT)
    assert done.stdout.strip() == ""


@pytest.mark.parametrize("name", ["list", "unpack", "figure"])
def test_a_command_that_is_asked_for_is_the_one_of_the_whole_parser(name: str) -> None:
    few, whole = commands_of(build_parser([name])), commands_of(build_parser())
    assert few is not None and whole is not None
    assert list(few.choices) == list(COMMANDS), "what packages add is not asked for"
    assert [name for name in whole.choices if name in COMMANDS] == list(COMMANDS)
    assert "atlas" in whole.choices
    assert few.choices[name].format_help() == whole.choices[name].format_help()
    lines = {each.dest: each.help for each in whole._choices_actions}
    assert {each.dest: each.help for each in few._choices_actions} == {name: lines[name] for name in COMMANDS}
    assert few.choices["verify"].format_help() != whole.choices["verify"].format_help(), "others have names only"


@pytest.mark.parametrize(
    "words",
    [
        [],
        ["run", "qick"],
        ["list", "profilse"],
        ["new", "mine", "--rate", "50"],
        ["new", "mine", "--like", "nowhere", "--output", "a-directory/that-is-not-there/mine.yaml"],
        ["run", "quick", "--set", "path.rate=fast"],
        ["compare", "no-such-experiment", "and-another-one-that-nobody-has-made"],
    ],
)
def test_an_error_fits_the_terminal(
    words: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    try:
        code = main(words)
    except SystemExit as error:
        code = error.code if isinstance(error.code, int) else 1
    assert code != 0
    printed = capsys.readouterr().err
    assert printed
    assert [line for line in printed.splitlines() if len(line) > 80] == []


def test_a_command_to_copy_stays_on_its_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    command = f"apt install {' '.join(['qemu-system-x86'] * 8)}"

    def refuse(_options: object) -> int:
        raise HowdahError("programs are missing", hint=command)

    monkeypatch.setattr("howdah.command.doctor.execute", refuse)
    monkeypatch.setenv("COLUMNS", "80")
    assert main(["doctor"]) == 1
    assert command in capsys.readouterr().err
