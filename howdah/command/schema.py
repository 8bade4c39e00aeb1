# SPDX-License-Identifier: Apache-2.0
"""``howdah schema``: print the path of the JSON Schema of profiles or suites, for an editor."""

from __future__ import annotations

import argparse

from howdah.errors import HowdahError
from howdah.layout import write_stdout
from howdah.nightly.suite import SUITE_SCHEMA
from howdah.profile.schema import SCHEMA

_SCHEMAS = {"profile": SCHEMA, "suite": SUITE_SCHEMA}
_HOW = """\
An editor that runs yaml-language-server checks and completes a file with this line in it:
  # yaml-language-server: $schema=PATH
It reads PATH up to the first space. Write a path with one as file:///… with %20 for the space.
'howdah new' writes the line, and the shipped profiles and suites have it.
"""


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.epilog = _HOW
    parser.add_argument(
        "what", nargs="?", choices=_SCHEMAS, default="profile", help="what the schema describes (default: profile)"
    )
    parser.add_argument("--text", action="store_true", help="print the schema itself")


def execute(options: argparse.Namespace) -> int:
    file = _SCHEMAS[options.what]
    if not file.is_file():
        raise HowdahError("the schema is missing", where=str(file), hint="Install howdah again.")
    write_stdout(file.read_text(encoding="utf-8") if options.text else f"{file}\n")
    return 0
