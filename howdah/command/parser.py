# SPDX-License-Identifier: Apache-2.0
"""The parser class of all commands: grouped help, and suggestions for misspelt words."""

from __future__ import annotations

import argparse
import re
import shutil
import textwrap
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NoReturn

from howdah.command.commands import Commands
from howdah.errors import ExitCode, nearest
from howdah.layout import write_stderr

EXIT_CODES: dict[int, str] = {
    ExitCode.DONE: "done",
    ExitCode.ERROR: "error",
    ExitCode.WRONG_USE: "wrong profile or usage",
    ExitCode.NO_ENGINE: "the engine cannot run here",
    ExitCode.RUN_FAILED: "a run failed",
    ExitCode.INVALID: "a run is invalid or not checked",
    ExitCode.DIFFERS: "a claim failed, results differ or were changed",
    ExitCode.NO_BASELINE: "no baseline to compare with",
    ExitCode.INTERRUPTED: "interrupted",
}
# The groups of `howdah --help`, in order. A command that is in none of them is listed under OTHER.
GROUPS: dict[str, tuple[str, ...]] = {
    "make experiments": ("new", "list", "plan", "run", "build", "bundle"),
    "read results": ("report", "compare", "claims", "score", "figure", "table", "explain", "export"),
    "check and share results": ("verify", "rerun", "sign", "pack", "unpack", "validate"),
    "run many experiments": ("nightly", "bisect", "search", "cluster", "attach"),
    "watch": ("serve", "exporter"),
    "machines and this installation": ("machines", "doctor", "clean", "completion", "schema"),
}
OTHER = "other commands"
_WIDEST = 100
# The beginning of argparse's message about missing arguments.
_MISSING = "the following arguments are required: "
# Options that were removed, and what replaces them.
_GONE = {
    "--part": "the machines of a cluster make one atlas together: --scheduler tcp://HOST:8786, see docs/cluster.md",
}
# Commands and options that were renamed.
_RENAMED = {"lab": "machines", "--lab": "--machines", "--labs": "--machine-sets"}


class Formatter(argparse.HelpFormatter):
    """Format help as wide as the terminal, up to 100 columns. Lines that begin with a space are not wrapped."""

    def __init__(self, prog: str) -> None:
        super().__init__(prog, width=min(shutil.get_terminal_size().columns, _WIDEST) - 2, max_help_position=28)

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        lines: list[str] = []
        for kept, part in _parts(text):
            lines += [indent + line for line in (part if kept else textwrap.wrap(" ".join(part), width) or [""])]
        return "\n".join(lines)


def _parts(text: str) -> Iterator[tuple[bool, list[str]]]:
    """Yield (False, lines of a paragraph to wrap) and (True, [line to keep])."""
    block: list[str] = []
    for line in text.strip("\n").split("\n"):
        if line.startswith(" ") or not line:
            if block:
                yield False, block
                block = []
            yield True, [line]
        else:
            block.append(line)
    if block:
        yield False, block


def _is_profile(word: str) -> bool:
    from howdah.work.catalogue import shipped_profiles  # slow to load and rarely needed

    return Path(word).suffix in (".yaml", ".yml") or word in shipped_profiles()


class WrongUsageError(SystemExit):
    """Exit because a command line is wrong. The message has already been printed on standard error."""

    def __init__(self, what: str, where: str, hint: str) -> None:
        super().__init__(ExitCode.WRONG_USE)
        self.what = what
        self.where = where
        self.hint = hint


def _name(action: argparse.Action) -> str:
    return "/".join(action.option_strings) or str(action.metavar or action.dest)


class Parser(argparse.ArgumentParser):
    """A parser that suggests the nearest command, choice or option for a misspelt one and names the list of them."""

    def __init__(self, *arguments: Any, **settings: Any) -> None:
        settings.setdefault("formatter_class", Formatter)
        super().__init__(*arguments, **settings)
        self._positionals.title = "arguments"

    def error(self, message: str) -> NoReturn:
        help_is = f"'{self.prog} --help' lists its arguments"
        if message.startswith(_MISSING):
            message += self._choices_of(message.removeprefix(_MISSING).split(", "))
        write_stderr(f"{self.prog}: {message}\n  {help_is}\n")
        what, *more = (line.strip() for line in message.split("\n"))
        raise WrongUsageError(what, self.prog, "\n".join([*more, help_is]))

    def _choices_of(self, missing: Sequence[str]) -> str:
        """Return a line of choices for each missing argument that has some."""
        named = {_name(action): action.choices for action in self._actions if action.choices is not None}
        return "".join(f"\n  {name} is one of {', '.join(map(str, named[name]))}" for name in missing if name in named)

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        if action.choices is None or value in action.choices:
            return
        names = [str(choice) for choice in action.choices]
        is_command = isinstance(action, argparse._SubParsersAction)
        name = "command" if is_command else _name(action)
        what = f"there is no command {value!r}" if is_command else f"{name}: expected one of {', '.join(names)}"
        if value in _RENAMED:
            raise argparse.ArgumentError(None, f"{what}; {value} is now called {_RENAMED[value]}")
        if is_command and _is_profile(str(value)):
            raise argparse.ArgumentError(None, f"{what}, but a profile; did you mean '{self.prog} run {value}'?")
        close = nearest(str(value), names)
        raise argparse.ArgumentError(
            None,
            (what if is_command else f"{what}, not {value!r}")
            + (f"\n  did you mean {close}?" if close else f"\n  there are {', '.join(names)}" if is_command else ""),
        )

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        found, rest = super().parse_known_args(args, namespace)
        unknown = [word for word in rest if re.match(r"--?[A-Za-z]", word)]
        if unknown and commands_of(self) is None:
            option = unknown[0].partition("=")[0]
            known = [text for action in self._actions for text in action.option_strings]
            if option in _RENAMED:
                self.error(f"there is no option {option}; {option} is now called {_RENAMED[option]}")
            if option in _GONE:
                self.error(f"there is no option {option} any more; {_GONE[option]}")
            # Compare without the hyphens, which make any two short options similar, and require 0.6: with half of the
            # letters in common, --runs (an option of other commands) would count as a misspelt --unknowns.
            bare = {text.lstrip("-"): text for text in known}
            close = nearest(option.lstrip("-"), bare, least=0.6)
            self.error(f"there is no option {option}" + (f"\n  did you mean {bare[close]}?" if close else ""))
        if rest and commands_of(self) is None:
            self.error(f"unexpected argument {rest[0]!r}")
        return found, rest

    def format_help(self) -> str:
        commands = commands_of(self)
        if commands is None or not isinstance(self, TopParser):
            return super().format_help()
        formatter = self._get_formatter()
        formatter.add_usage(self.usage, self._actions, self._mutually_exclusive_groups)
        formatter.add_text(self.description)
        for title, entries in grouped(commands):
            formatter.start_section(title)
            formatter.add_arguments(entries)
            formatter.end_section()
        formatter.start_section("options")
        formatter.add_arguments(self._optionals._group_actions)
        formatter.end_section()
        formatter.add_text(self.epilog)
        return formatter.format_help()


class TopParser(Parser):
    """The parser of ``howdah`` itself. The parsers of its commands are plain ``Parser`` objects."""

    def add_subparsers(self, **settings: Any) -> Any:
        return super().add_subparsers(**{"parser_class": Parser, "action": Commands, **settings})


def commands_of(parser: argparse.ArgumentParser) -> argparse._SubParsersAction[argparse.ArgumentParser] | None:
    """Return the subcommands of a parser, or None."""
    return next((each for each in parser._actions if isinstance(each, argparse._SubParsersAction)), None)


def entries_of(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> dict[str, argparse.Action]:
    """Return the list entries of subcommands by name; an entry's ``help`` is its line in the list."""
    return {str(entry.dest): entry for entry in commands._choices_actions}


def grouped(
    commands: argparse._SubParsersAction[argparse.ArgumentParser],
) -> list[tuple[str, list[argparse.Action]]]:
    """Return all commands by their group in GROUPS; those in no group come last, under ``OTHER``."""
    entries = entries_of(commands)
    added = commands.added if isinstance(commands, Commands) else {}
    groups = {
        title: (*names, *(name for name, entry in added.items() if entry.heading == title))
        for title, names in GROUPS.items()
    }
    placed = {name for names in groups.values() for name in names}
    groups[OTHER] = tuple(name for name in entries if name not in placed)
    found = [(title, [entries[name] for name in names if name in entries]) for title, names in groups.items()]
    return [(title, members) for title, members in found if members]


def every_parser(parser: argparse.ArgumentParser) -> Iterator[argparse.ArgumentParser]:
    """Yield a parser and, recursively, those of its subcommands."""
    yield parser
    commands = commands_of(parser)
    for each in dict.fromkeys(commands.choices.values()) if commands else ():
        yield from every_parser(each)


def describe(parser: argparse.ArgumentParser) -> None:
    """Use a command's line in the list as its description where it has none."""
    commands = commands_of(parser)
    if commands is None:
        return
    entries = entries_of(commands)
    for name, each in commands.choices.items():
        text = entries[name].help if name in entries else None
        if text and not each.description:
            each.description = f"{text[0].upper()}{text[1:].rstrip('.')}."
        describe(each)


def section(parser: argparse.ArgumentParser, title: str) -> argparse._ArgumentGroup:
    """Return the option group with this title; create it on first use."""
    known = (group for group in parser._action_groups if group.title == title)
    return next(known, None) or parser.add_argument_group(title)


def exit_codes() -> str:
    """The exit codes with their meanings, one per line."""
    return "\n".join(f"  {code:<4} {words}" for code, words in EXIT_CODES.items())
