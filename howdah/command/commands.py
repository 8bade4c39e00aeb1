# SPDX-License-Identifier: Apache-2.0
"""The table of howdah's commands: the module and the help line of each.

Only the module of the command that runs is imported, because it loads what the command works with (tables, figures,
profiles). Help, the hint for a misspelt word and completion need just the table.
"""

from __future__ import annotations

import argparse
import importlib
from collections.abc import Collection
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from howdah.hooks import CommandEntry


class Command(NamedTuple):
    """One command. ``module``, below howdah/command, has ``arguments(parser)``, which adds its arguments, and
    ``execute(options)``. ``prefix`` begins the names of both functions where a module has a second command. ``says`` is
    the line in ``howdah --help``."""

    module: str
    says: str
    prefix: str = ""


# In the order in which messages list them; `howdah --help` has its own order (parser.py).
COMMANDS = {
    "new": Command("new", "write a commented profile of your own"),
    "build": Command("build", "build kernel, guest tree and modules before the first run needs them"),
    "bundle": Command("bundle", "write what was built as one file, for machines that build nothing"),
    "run": Command("run", "run a profile and report it"),
    "plan": Command("plan", "print every operation of a profile's runs, without running anything"),
    "report": Command("report", "make the HTML report of an experiment again; needs no kernel"),
    "figure": Command("figure", "draw figures for a paper: PDF, SVG or PNG, a column wide"),
    "table": Command("table", "print results or differences as LaTeX, Markdown or CSV"),
    "claims": Command("claims", "judge an experiment's claims again; needs no kernel"),
    "compare": Command("compare", "put algorithms, kernels, experiments or runs side by side"),
    "score": Command("score", "score an experiment's runs against thresholds; needs no kernel"),
    "rerun": Command("rerun", "repeat a run and compare tables, measures and verdict"),
    "verify": Command("verify", "check digests and signatures of runs, and recompute their results"),
    "sign": Command("sign", "sign runs or experiments, so that others can verify them"),
    "nightly": Command("nightly", "run a suite and compare every measure with the stored baseline"),
    "bisect": Command("bisect", "find the commit of a kernel tree that broke a claim"),
    "search": Command("search", "find the smallest path on which a claim fails"),
    "validate": Command("validate", "run a profile on two engines and compare their results"),
    "list": Command("listing", "list profiles, algorithms, kernels, receivers, stacks, metrics or runs"),
    "explain": Command("explain", "say what a recorded transfer shows: capture, log or qlog of any machine"),
    "export": Command("export", "write a run's data for another tool; needs no kernel"),
    "pack": Command("pack", "write runs or experiments as one file that can be mailed"),
    "unpack": Command("pack", "write the content of a pack to a new directory", "unpack_"),
    "serve": Command("serve", "serve all runs by a Prometheus on loopback"),
    "exporter": Command("exporter", "export the live state of this machine's TCP and queues to Prometheus"),
    "machines": Command("machines", "start, set up, use and stop several machines, virtual or your own"),
    "cluster": Command("cluster", "start a scheduler, or workers that make runs for other machines"),
    "attach": Command("cluster", "continue a command that was interrupted while its cluster kept working", "attach_"),
    "doctor": Command("doctor", "show what each engine lacks on this machine, and the remedy"),
    "clean": Command("clean", "remove leftovers; with options also old runs or the built kernels"),
    "completion": Command("completion", "print the script that completes commands, options and names"),
    "schema": Command("schema", "print the path of the JSON Schema of profiles or suites, for an editor"),
}


class Commands(argparse._SubParsersAction):  # type: ignore[type-arg]
    """The subcommands of ``howdah``. ``add_parser`` takes a command's help line from the table.

    ``added`` has the commands of other packages by name.
    """

    def __init__(self, *arguments: Any, **settings: Any) -> None:
        super().__init__(*arguments, **settings)
        self.added: dict[str, CommandEntry] = {}

    def add_parser(self, name: str, **settings: Any) -> Any:
        known = COMMANDS.get(name) or self.added.get(name)
        if known is not None:
            settings.setdefault("help", known.says)
        return super().add_parser(name, **settings)


def add_commands(commands: argparse._SubParsersAction[argparse.ArgumentParser], words: Collection[str] | None) -> None:
    """Add a parser for every command. Only commands among ``words`` get their arguments; None means all commands."""
    for name, command in COMMANDS.items():
        parser = commands.add_parser(name)
        if words is None or name in words:
            module = importlib.import_module(f"howdah.command.{command.module}")
            execute = getattr(module, f"{command.prefix}execute", None)
            if execute is not None:  # otherwise the command's actions have their own
                parser.set_defaults(execute=execute)
            getattr(module, f"{command.prefix}arguments")(parser)
    if _may_be_added(words):
        _add_extensions(commands, words)


def _may_be_added(words: Collection[str] | None) -> bool:
    """Return whether a command line may need commands of packages: not for howdah's own or ``--version``."""
    if words is None:
        return True
    first = next((word for word in words if not word.startswith("-")), None)
    return first not in COMMANDS if first is not None else "--version" not in words


def _add_extensions(commands: Any, words: Collection[str] | None) -> None:
    from howdah.extension import extensions  # rarely needed

    for name, extension in extensions("commands", COMMANDS).items():
        entry: CommandEntry = extension.load()
        commands.added[name] = entry
        if words is None or name in words:
            extension.guarded(entry.add_parser, commands)
        else:
            commands.add_parser(name)
