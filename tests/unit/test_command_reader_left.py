# SPDX-License-Identifier: Apache-2.0
"""A reader that has left, as ``head`` does: no command answers it with a traceback, whenever it left."""

from __future__ import annotations

import os
import sys

import pytest

from howdah.command.main import main

_COMMANDS = (
    ("explain", "--json"),  # wrong usage, before anything has started
    ("run", "--json"),
    ("no-such-command", "--json"),
    ("explain", "no-such-file", "--json"),  # an error of the command itself
    ("plan", "no-such-profile", "--json"),
    ("list", "metrics"),
    ("list", "metrics", "--json"),
    ("--help",),
)


@pytest.mark.parametrize("words", _COMMANDS, ids=" ".join)
def test_a_reader_that_left_meets_no_traceback(words: tuple[str, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    with os.fdopen(writing, "w", encoding="utf-8") as output:  # closing it flushes what is left, as Python's end does
        monkeypatch.setattr(sys, "stdout", output)
        try:
            code = main(list(words))
        except SystemExit as end:
            code = end.code if isinstance(end.code, int) else 1
        assert code in (0, 1, 2)
