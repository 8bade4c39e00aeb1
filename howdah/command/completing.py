# SPDX-License-Identifier: Apache-2.0
"""Shell completion. Commands, options and choices come from the parser itself, names from the functions below.

An argument's completer is chosen by the argument's name (``profile``, ``run`` ...), so arguments that a new command
shares with others are completed without further code.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from argcomplete import autocomplete
from argcomplete.completers import DirectoriesCompleter, FilesCompleter
from argcomplete.shell_integration import shellcode

from howdah.algorithm import ALGORITHMS
from howdah.command.names import (
    LATEST,
    algorithms_of,
    axes_of,
    claims_of,
    experiments,
    fields,
    kernels,
    runs_of,
    suites,
    values_of,
)
from howdah.command.parser import every_parser
from howdah.errors import HowdahError
from howdah.metric import known_entries, known_metrics
from howdah.trait import engines
from howdah.work.catalogue import find_profile, shipped_profiles

SHELLS = ("bash", "zsh", "fish")
Completer = Callable[..., Iterable[str]]


def complete(parser: argparse.ArgumentParser) -> None:
    """Answer a completion request of the shell and end the process. Return if there is no such request."""
    add_completers(parser)
    autocomplete(parser, always_complete_options="long")


def script(shell: str, program: str = "howdah") -> str:
    """Return the shell script that registers completion of ``program``."""
    text = shellcode([program], shell=shell)
    return text if text.endswith("\n") else f"{text}\n"


def add_completers(parser: argparse.ArgumentParser) -> None:
    for each in every_parser(parser):
        for action in each._actions:
            completer = _completer(action)
            if completer is not None:
                action.completer = completer  # type: ignore[attr-defined]


def _completer(action: argparse.Action) -> Completer | None:
    if action.choices is not None:
        return None
    is_directory = action.metavar == "DIR"
    if action.type is Path:
        return DirectoriesCompleter() if is_directory else FilesCompleter()
    if action.type in (int, float):
        return _nothing
    word = action.dest if action.dest in _BY_NAME else str(action.metavar or "").lower()
    return _without_errors(_BY_NAME[word]) if word in _BY_NAME else None


def _without_errors(completer: Completer) -> Completer:
    """Make a completer offer nothing when a file cannot be read; the command itself will report the error."""

    def complete_or_nothing(**arguments: Any) -> list[str]:
        try:
            return list(completer(**arguments))
        except (HowdahError, OSError):
            return []

    return complete_or_nothing


def _nothing(**_: Any) -> list[str]:
    return []


def _profiles(*, prefix: str, **_: Any) -> list[str]:
    files = [*FilesCompleter(("yaml", "yml"))(prefix)]
    return [*shipped_profiles(), *files] if "/" not in prefix else files


def _runs(*, prefix: str, parsed_args: argparse.Namespace, **_: Any) -> list[str]:
    runs = getattr(parsed_args, "runs", None) or Path(os.environ.get("HOWDAH_RUNS") or "runs")
    experiment, slash, _rest = prefix.partition("/")
    if slash and (runs / experiment).is_dir():
        return runs_of(runs, experiment)
    return [*experiments(runs), *FilesCompleter()(prefix)] if slash else experiments(runs)


def _kernels(*, prefix: str, **_: Any) -> list[str]:
    return [*kernels(), *DirectoriesCompleter()(prefix)]


def _algorithms(*, parsed_args: argparse.Namespace, **_: Any) -> list[str]:
    """Return the algorithms of the runs on the command line, or every known algorithm if it names no run."""
    runs = getattr(parsed_args, "runs", None)
    named = getattr(parsed_args, "what", None) or [LATEST]
    found = [name for each in named for name in algorithms_of(runs / str(each))] if runs else []
    return found or list(ALGORITHMS)


def _claims(*, parsed_args: argparse.Namespace, **_: Any) -> list[str]:
    profile = getattr(parsed_args, "profile", None)
    return claims_of(find_profile(str(profile))) if profile else []


def _settings(*, prefix: str, parsed_args: argparse.Namespace, **_: Any) -> list[str]:
    """Complete ``FIELD=`` for --set, fields that the profile sweeps over included; after ``=`` the field's named
    values."""
    field, equals, _value = prefix.partition("=")
    if equals:
        return [f"{field}={value}" for value in values_of(field)]
    profile = getattr(parsed_args, "profile", None)
    swept = axes_of(find_profile(str(profile))) if profile else []
    return [f"{name}=" for name in dict.fromkeys([*fields(), *swept])]


def _entries(**_: Any) -> list[str]:
    return sorted(known_entries())


# Completers by the argument's name or, in lower case, its placeholder in the help.
_BY_NAME: dict[str, Completer] = {
    "profile": _profiles,
    "like": _profiles,
    "run": _runs,
    "runs": _runs,
    "experiment": _runs,
    "experiments": _runs,
    "what": _runs,
    "kernel": _kernels,
    "tree": _kernels,
    "engine": lambda **_: engines(),
    "algorithm": _algorithms,
    "algorithms": lambda **_: list(ALGORITHMS),
    "metric": lambda **_: list(known_metrics()),
    "claim": _claims,
    "suite": lambda **_: suites(),
    "only": _entries,
    "overrides": _settings,
    "field=value": _settings,
}
