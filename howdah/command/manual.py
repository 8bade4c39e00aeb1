# SPDX-License-Identifier: Apache-2.0
"""Write the manual page howdah(1) from the parser, or with ``--check`` tell whether it is current.

``python -m howdah.command.manual [--check] [docs]``
"""

from __future__ import annotations

import argparse
import re
import sys
from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from pathlib import Path

from howdah import __version__
from howdah.command.main import build_parser
from howdah.command.parser import EXIT_CODES, commands_of, entries_of, every_parser, grouped
from howdah.generated import docs_of, keep_current

PAGE = Path("man") / "howdah.1"
_COMMON = 4  # options of at least this many commands are described once, under COMMON OPTIONS
_LINK = re.compile(r"\[([^\]]+)\]\([^)]+\)")


def page(parser: argparse.ArgumentParser, environment: str) -> str:
    """Return the page in man macros. ``environment`` is the text of docs/environment.md, which has the table of
    variables.

    The page depends neither on the version of Python nor on the width of the terminal.
    """
    commands = commands_of(parser)
    assert commands is not None
    lines = [
        '.\\" SPDX-License-Identifier: Apache-2.0',
        '.\\" Made by `python -m howdah.command.manual` from the parser; do not edit.',
        f'.TH HOWDAH 1 "" "howdah {__version__}" "User commands"',
        ".nh",
        ".ad l",
        ".SH NAME",
        f"howdah \\- {_text(_lower(parser.description))}",
        ".SH SYNOPSIS",
        ".B howdah",
        ".I COMMAND",
        "[\\fIARGUMENT\\fR ...]",
        ".SH DESCRIPTION",
        "howdah runs experiments that profiles describe, proves the path of each run, and reports what was measured.",
        "Each command below has the same text under",
        '.BR "howdah \\fICOMMAND\\fB \\-\\-help" .',
    ]
    shared = _shared_options(parser)
    for title, entries in grouped(commands):
        lines.append(f".SH {_text(title).upper()}")
        for entry in entries:
            lines += _command(f"howdah {entry.dest}", commands.choices[entry.dest], shared)
    lines += [".SH COMMON OPTIONS", "These mean the same in each command that names them.", *_option_lines(shared)]
    lines.append(".SH ENVIRONMENT")
    for name, says, otherwise in _variables(environment):
        lines += [".TP", f".B {name}", f"{_text(says)} (otherwise: {_text(otherwise)})"]
    lines.append(".SH EXIT STATUS")
    for code, words in EXIT_CODES.items():
        lines += [".TP", f".B {code}", _text(words)]
    return "\n".join(lines) + "\n"


def _shared_options(parser: argparse.ArgumentParser) -> list[tuple[str, str]]:
    """Return the options (name and help) that at least ``_COMMON`` commands have in the same words."""
    entries = Counter(each for one in every_parser(parser) for each in map(_entry, _arguments(one)))
    return [each for each, times in entries.items() if times >= _COMMON and each[0].startswith("\\fB")]


def _entry(action: argparse.Action) -> tuple[str, str]:
    return _invocation(action), _text(_help(action))


def _option_lines(entries: Iterable[tuple[str, str]]) -> Iterator[str]:
    for called, words in entries:
        yield from (".TP", f".{called[2]} {called}", words)


def _command(name: str, parser: argparse.ArgumentParser, shared: Collection[tuple[str, str]]) -> Iterator[str]:
    yield f".SS {_text(name)}"
    yield f".B {_text(name)}"
    yield from _synopsis(parser)
    yield ".PP"
    yield from _paragraphs(parser.description)
    inner = commands_of(parser)
    entries = [_entry(action) for action in _arguments(parser) if action is not inner]
    yield from _option_lines(each for each in entries if each not in shared)
    if common := [each[0] for each in entries if each in shared]:
        yield ".PP"
        yield f"Common options: {'; '.join(common)}."
    if parser.epilog:
        yield ".PP"  # ends the paragraph of the last option
        yield from _paragraphs(parser.epilog)
    if inner is not None:
        for entry in entries_of(inner).values():
            yield from _command(f"{name} {entry.dest}", inner.choices[entry.dest], shared)


def _arguments(parser: argparse.ArgumentParser) -> Iterator[argparse.Action]:
    """Yield the documented arguments of a parser, without its help option."""
    for action in parser._actions:
        if action.help != argparse.SUPPRESS and not isinstance(action, argparse._HelpAction):
            yield action


def _synopsis(parser: argparse.ArgumentParser) -> Iterator[str]:
    """Yield the required and the positional arguments; the other options are listed below the synopsis."""
    optional = False
    for action in _arguments(parser):
        if action.option_strings and not action.required:
            optional = True
        else:
            written = _invocation(action, short=True)
            yield written if action.required else f"[{written}]"
    if optional:
        yield "[\\fIOPTION\\fR ...]"


def _invocation(action: argparse.Action, *, short: bool = False) -> str:
    """Return an argument as the user writes it: ``--jobs N, -j N``, ``PROFILE ...``."""
    values = _value(action)
    if not action.option_strings:
        return values
    names = action.option_strings[:1] if short else action.option_strings
    return ", ".join(f"\\fB{_text(name)}\\fR {values}".rstrip() for name in names)


def _value(action: argparse.Action) -> str:
    if action.nargs == 0:
        return ""
    if action.metavar is not None:
        word = str(action.metavar)
    elif action.choices is not None:
        word = "|".join(str(choice) for choice in action.choices)
    else:
        word = action.dest.upper()
    several = action.nargs in ("*", "+", argparse.REMAINDER) or isinstance(action, argparse._SubParsersAction)
    return f"\\fI{_text(word)}\\fR" + (" ..." if several else "")


def _help(action: argparse.Action) -> str:
    text = action.help or ""
    return text % {**vars(action), "prog": "howdah"} if "%(" in text else text.replace("%%", "%")


def _paragraphs(text: str | None) -> Iterator[str]:
    """Yield a text's lines; lines that begin with a space are not filled."""
    if not text:
        return
    kept = False
    for line in text.strip("\n").split("\n"):
        if line.startswith(" ") != kept:
            kept = not kept
            yield ".nf" if kept else ".fi"
        yield _text(line.rstrip()) or ".PP"
    if kept:
        yield ".fi"


def _variables(environment: str) -> list[tuple[str, str, str]]:
    """Return the rows of the environment table: variable, meaning, default."""
    rows = [
        [cell.strip() for cell in line.strip("|").split(" | ")] for line in environment.splitlines() if "| `" in line
    ]
    plain = [[_LINK.sub(r"\1", cell).replace("`", "") for cell in row] for row in rows]
    return [(name.strip("| "), says, otherwise.strip("| ")) for name, says, otherwise in plain]


def _lower(text: str | None) -> str:
    text = (text or "").rstrip(".")
    return text[:1].lower() + text[1:]


def _text(text: str) -> str:
    """Escape backslashes, hyphens and leading request characters for roff."""
    escaped = text.replace("\\", "\\e").replace("-", "\\-")
    escaped = escaped.replace("…", "...").replace("’", "'")
    return f"\\&{escaped}" if escaped.startswith((".", "'")) else escaped


def current(docs: Path) -> str:
    return page(build_parser(), (docs / "environment.md").read_text(encoding="utf-8"))


def main(arguments: list[str]) -> int:
    docs = docs_of(arguments)
    return keep_current({docs / PAGE: current(docs)}, arguments)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
