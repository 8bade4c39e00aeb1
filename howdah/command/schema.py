# SPDX-License-Identifier: Apache-2.0
"""``howdah schema``: where the JSON Schema of profiles is, for an editor."""

from __future__ import annotations

import argparse

from howdah.errors import HowdahError
from howdah.layout import write_stdout
from howdah.profile.schema import SCHEMA

_HOW = """\
An editor that runs yaml-language-server checks and completes a profile with this line in it:
  # yaml-language-server: $schema=PATH
It reads PATH up to the first space. Write a path with one as file:///… with %20 for the space.
'howdah new' writes the line, and the shipped profiles have it.
"""


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser("schema", epilog=_HOW)
    parser.add_argument("--text", action="store_true", help="print the schema itself")
    parser.set_defaults(execute=execute)


def execute(options: argparse.Namespace) -> int:
    if not SCHEMA.is_file():
        raise HowdahError("the schema is missing", where=str(SCHEMA), hint="Install howdah again.")
    write_stdout(SCHEMA.read_text(encoding="utf-8") if options.text else f"{SCHEMA}\n")
    return 0
