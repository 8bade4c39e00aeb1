# SPDX-License-Identifier: Apache-2.0
"""The files of a kernel module call each other in one direction: none of them needs one that needs it."""

from __future__ import annotations

import graphlib
import re
from collections import defaultdict
from pathlib import Path

import pytest

from howdah.place import MODULES

# Directories of a module that has several files.
DIRECTORIES = sorted({file.parent for file in MODULES.glob("*/*.c") if file.parent.name != "algorithms"})
_COMMENT = re.compile(r"/\*.*?\*/|//[^\n]*|\"(?:\\.|[^\"\\])*\"", re.DOTALL)
_FUNCTION = re.compile(r"^(?!static)\w[\w \t*]*?\b(\w+)\([^;{}]*\)\s*\{", re.MULTILINE)
_VARIABLE = re.compile(
    r"^(?!static|extern|return|goto|typedef)\w[\w \t*]*?\b(\w+)(?:\[\w+\])?(?: = [^;]*)?;", re.MULTILINE
)


def _needs(directory: Path) -> dict[str, set[str]]:
    """For each file the others whose functions and variables it uses."""
    texts = {file.name: _COMMENT.sub(" ", file.read_text(encoding="utf-8")) for file in sorted(directory.glob("*.c"))}
    declared = " ".join(_COMMENT.sub(" ", file.read_text(encoding="utf-8")) for file in sorted(directory.glob("*.h")))
    homes = {
        name: file
        for file, text in texts.items()
        for name in (*_FUNCTION.findall(text), *_VARIABLE.findall(text))
        if re.search(rf"\b{name}\b", declared)
    }
    needs: dict[str, set[str]] = defaultdict(set)
    for file, text in texts.items():
        for name, home in homes.items():
            if home != file and re.search(rf"\b{name}\b(?! =)", text):
                needs[file].add(home)
    return needs


@pytest.mark.parametrize("directory", DIRECTORIES, ids=lambda path: path.name)
def test_no_two_files_of_a_module_need_each_other(directory: Path) -> None:
    needs = _needs(directory)
    assert needs, "the search finds what files use"
    list(graphlib.TopologicalSorter(needs).static_order())  # raises CycleError with the files of a circle


def test_a_circle_is_found_with_its_files(tmp_path: Path) -> None:
    (tmp_path / "both.h").write_text("void first(void);\nvoid second(int a);\nextern struct thing *third;\n")
    (tmp_path / "one.c").write_text("struct thing *third;\n\nvoid first(void)\n{\n\tsecond(1);\n}\n")
    (tmp_path / "two.c").write_text("/* first() */\nvoid second(int a)\n{\n\tuse(third);\n}\n")
    with pytest.raises(graphlib.CycleError, match="in a cycle") as found:
        list(graphlib.TopologicalSorter(_needs(tmp_path)).static_order())
    assert set(found.value.args[1]) == {"one.c", "two.c"}
