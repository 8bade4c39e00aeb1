# SPDX-License-Identifier: Apache-2.0
"""Imports point down, as pyproject.toml's contract and docs/architecture.md say; one class for a name."""

from __future__ import annotations

import ast
import graphlib
import re
import subprocess
import sys
import tomllib
from collections import defaultdict
from pathlib import Path

import pytest

from howdah.place import COLLECTORS, DOCS, MODULES, PACKAGE, PROJECT, TOPOLOGIES

PYPROJECT = tomllib.loads((PROJECT / "pyproject.toml").read_text(encoding="utf-8"))
CONTRACTS = PYPROJECT["tool"]["importlinter"]["contracts"]
LAYERS = [re.split(r"\s*:\s*", line) for line in CONTRACTS[0]["layers"]]
_LINT = "import sys; from importlinter.cli import lint_imports; sys.exit(lint_imports(no_cache=True))"


def _lint(root: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", f"import sys; sys.path.insert(0, {str(root)!r}); {_LINT}"]
    return subprocess.run(command, cwd=root, capture_output=True, text=True, check=False)


def test_no_import_points_up_and_none_runs_in_a_circle() -> None:
    found = _lint(PROJECT)
    assert found.returncode == 0, found.stdout


def test_every_package_has_its_layer() -> None:
    there = {path.stem for path in PACKAGE.iterdir() if path.suffix == ".py" or (path / "__init__.py").exists()}
    listed = [name.removeprefix("howdah.") for layer in LAYERS for name in layer if name.startswith("howdah.")]
    assert sorted(listed) == sorted(there - {"__init__"})


def test_the_architecture_page_shows_the_same_storeys() -> None:
    page = (DOCS / "architecture.md").read_text(encoding="utf-8")
    shown = re.findall(r"^\| (`[^|]+`) \|", page, re.MULTILINE)
    names = [[name.strip("` ") for name in row.split(",")] for row in shown]
    assert [row for row in names if row in _plain()] == _plain()


def _plain() -> list[list[str]]:
    return [[name.removeprefix("howdah.") for name in layer] for layer in LAYERS]


@pytest.mark.parametrize(
    ("file", "line", "said"),
    [
        ("howdah/measure/row.py", "import howdah.command.main\n", "howdah.measure is not allowed to import"),
        ("howdah/command/nightly.py", "import howdah.atlas.catalogue\n", "howdah.command is not allowed to import"),
        ("collectors/record.py", "import howdah.agent.run\n", "collectors is not allowed to import"),
        ("howdah/plan/queue.py", "import howdah.plan.compile\n", "cycles"),
    ],
)
def test_a_planted_import_is_found(tmp_path: Path, file: str, line: str, said: str) -> None:
    """The contract is not blind."""
    for name in ("howdah", "collectors", "topologies"):
        for path in (PROJECT / name).rglob("*.py"):
            target = tmp_path / path.relative_to(PROJECT)
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(path.read_bytes())
    (tmp_path / "pyproject.toml").write_bytes((PROJECT / "pyproject.toml").read_bytes())
    with (tmp_path / file).open("a", encoding="utf-8") as planted:
        planted.write(f"\n{line}")
    found = _lint(tmp_path)
    assert found.returncode != 0
    assert said in found.stdout


def test_the_atlas_is_an_extension() -> None:
    """Its entry points add what it has: no module of another package names one of its modules."""
    named = [
        str(path)
        for path in PACKAGE.rglob("*.py")
        if not path.is_relative_to(PACKAGE / "atlas") and re.search(r"howdah[./]atlas\b", path.read_text("utf-8"))
    ]
    assert named == []


def _classes(roots: list[Path]) -> dict[str, list[str]]:
    """Where each name of a class is defined."""
    found = defaultdict(list)
    for root in roots:
        for path in sorted(root.rglob("*.py")):
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                if isinstance(node, ast.ClassDef):
                    found[node.name].append(f"{path.relative_to(root.parent)}:{node.lineno}")
    return found


def test_a_class_name_is_given_once() -> None:
    """A reader who searches for one finds one: no two classes share a name."""
    found = _classes([PACKAGE, COLLECTORS, TOPOLOGIES])
    assert {name: places for name, places in found.items() if len(places) > 1} == {}


def test_a_name_given_twice_is_found_with_both_places(tmp_path: Path) -> None:
    for name in ("one", "two"):
        (tmp_path / f"{name}.py").write_text("class Cell:\n    pass\n")
    places = [f"{tmp_path.name}/one.py:1", f"{tmp_path.name}/two.py:1"]
    assert _classes([tmp_path]) == {"Cell": places}


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


_OWN_FILE = re.compile(r"(?<![\w/.<$-])(?:howdah|collectors|topologies|modules)/[a-z0-9_/]+\.(?:py|yaml|c|h)\b")
_FOREIGN = {"howdah/siftr.py", "howdah/rules.yaml"}  # on hosts and in their configuration


def _named_and_missing(text: str) -> list[str]:
    return [name for name in _OWN_FILE.findall(text) if name not in _FOREIGN and not (PROJECT / name).exists()]


def test_a_file_that_the_program_or_a_page_names_is_there() -> None:
    files = [*PACKAGE.rglob("*.py"), *COLLECTORS.rglob("*.py"), *DOCS.rglob("*.md"), PROJECT / "CONTRIBUTING.md"]
    found = {str(file): _named_and_missing(file.read_text(encoding="utf-8")) for file in files}
    assert {file: names for file, names in found.items() if names} == {}


def test_a_file_that_has_gone_is_found() -> None:
    assert _named_and_missing("see howdah/profile/gone.py and howdah/place.py") == ["howdah/profile/gone.py"]


def _given_twice(tree: ast.Module) -> set[str]:
    """Names to which the top of a module gives a value more than once."""
    targets = [target for node in tree.body if isinstance(node, ast.Assign) for target in node.targets]
    each = [part for target in targets for part in (target.elts if isinstance(target, ast.Tuple) else [target])]
    names = [part.id for part in each if isinstance(part, ast.Name)]
    return {name for name in names if names.count(name) > 1}


def test_no_constant_is_overwritten_further_down() -> None:
    files = [*PACKAGE.rglob("*.py"), *COLLECTORS.rglob("*.py")]
    found = {str(file): _given_twice(ast.parse(file.read_text(encoding="utf-8"))) for file in files}
    assert {file: names for file, names in found.items() if names} == {}


def test_a_constant_that_is_overwritten_is_found() -> None:
    assert _given_twice(ast.parse("_PACK = 1\ndef f():\n    x = 1\n    x = 2\n_PACK, _OTHER = 2, 3\n")) == {"_PACK"}
