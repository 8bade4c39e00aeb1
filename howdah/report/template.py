# SPDX-License-Identifier: Apache-2.0
"""Templates of pages, as all pages load them."""

from __future__ import annotations

import sys
from contextlib import suppress
from pathlib import Path

import jinja2
from jinja2 import BytecodeCache, Environment, FileSystemLoader, StrictUndefined
from jinja2.bccache import Bucket

from howdah.build.cache import Cache, content_key
from howdah.errors import HowdahError

KIND = "template"
_FILE = "bytecode"


def templates_of(directory: Path) -> Environment:
    """The templates in a directory: what they print is escaped, and a name that is not known is an error."""
    return Environment(
        loader=FileSystemLoader(directory),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        bytecode_cache=_Compiled(),
    )


class _Compiled(BytecodeCache):
    """Compiled templates as entries of the cache: to compile those of a report is a twelfth of a command that has
    nothing to run. Where the cache cannot be used, they are compiled."""

    def load_bytecode(self, bucket: Bucket) -> None:
        with suppress(HowdahError, OSError):
            entry = Cache().find(KIND, _key(bucket))
            if entry is not None:
                bucket.bytecode_from_string((entry / _FILE).read_bytes())

    def dump_bytecode(self, bucket: Bucket) -> None:
        with suppress(HowdahError, OSError):
            Cache().build(KIND, _key(bucket), lambda entry, _log: _write(bucket, entry / _FILE))


def _write(bucket: Bucket, file: Path) -> None:
    file.write_bytes(bucket.bytecode_to_string())


def _key(bucket: Bucket) -> str:
    """Of the place and text of a template, and of what compiles it."""
    return content_key(bucket.key, bucket.checksum, jinja2.__version__, sys.version)
