# SPDX-License-Identifier: Apache-2.0
"""``howdah doctor``: what each engine needs, what is missing here, and what to do about it."""

from __future__ import annotations

import argparse
import dataclasses
import json
import sys

from rich.console import Console
from rich.table import Table
from rich.text import Text

from howdah.command.common import add_json_option
from howdah.engine.doctor import examine

_MARK = {"ok": ("✓", "green"), "missing": ("✕", "red"), "note": ("i", "yellow")}


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser("doctor", help="show what each engine lacks on this machine, and the remedy")
    add_json_option(parser)
    parser.set_defaults(execute=execute)


def execute(options: argparse.Namespace) -> int:
    checks = examine()
    if options.json:
        sys.stdout.write(json.dumps([dataclasses.asdict(check) for check in checks], indent=1) + "\n")
        return 0
    console = Console()
    for engine in dict.fromkeys(check.engine for check in checks):
        table = Table(title=f"engine {engine}" if engine != "all" else "all engines", title_justify="left", box=None)
        for column in ("", "what", "found", "remedy"):
            table.add_column(column, overflow="fold")
        for check in (check for check in checks if check.engine == engine):
            mark, style = _MARK[check.status]
            table.add_row(Text(mark, style=style), check.what, check.found, check.remedy or "")
        console.print(table)
    return 0
