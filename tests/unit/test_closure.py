# SPDX-License-Identifier: Apache-2.0
"""What a piece of the program is made of: no import escapes its key."""

from __future__ import annotations

import ast
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from howdah.agent.start import LATER
from howdah.engine.share import agent_sources
from howdah.metric import TABLE
from howdah.place import PROJECT
from howdah.record import provenance
from howdah.record.closure import PACKAGES, closure, closure_sha256, imported, modules_of

ANALYSIS = "howdah.work.analysis"
AGENT = [*modules_of("howdah.agent"), *modules_of("collectors"), *provenance.DISCIPLINES]
# Names with which a program imports or runs a file that no import statement names.
_DYNAMIC = {"importlib", "__import__", "exec", "eval", "runpy", "pkgutil", "__file__"}
_MININET = "howdah.agent.wiring.mininet"  # imports the planning code, and the topology's file, where Mininet wires
# A guest loads it where packets draw their delays; the judge imports another part of its package.
_LATER = {"howdah.agent.calibration.jitter"}
_LIBRARY = {"howdah": ["importlib"]}  # for who asks for ``howdah.load``, see below
# One of this package, all of which the keys have; pkgutil lists them where kinds are shown.
_DISCIPLINES = {"howdah.linux.netlink.discipline": ["importlib", "pkgutil"]}


def _loaded(module: str) -> set[str]:
    """Modules of ours that a fresh interpreter has after importing one."""
    code = f"import sys, {module}; print(*(name for name in sys.modules if name.partition('.')[0] in {PACKAGES}))"
    environment = {**os.environ, "PYTHONPATH": str(PROJECT)}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environment)
    return set(done.stdout.split())


def _names(file: Path) -> set[str]:
    tree = ast.parse(file.read_text(encoding="utf-8"))
    found = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found.add(node.module.partition(".")[0])
    return found


def test_the_analysis_is_exactly_what_an_interpreter_loads_for_it() -> None:
    found = closure([ANALYSIS])
    assert set(found) == _loaded(ANALYSIS) | _LATER
    for name in ("howdah.record.clock", "howdah.plan.route", "howdah.receiver", "howdah.agent.calibration.train"):
        assert name in found


def test_nothing_in_the_analysis_imports_in_a_way_that_parsing_does_not_see() -> None:
    found = {name: sorted(_names(file) & _DYNAMIC) for name, file in closure([ANALYSIS]).items()}
    assert {name: names for name, names in found.items() if names} == {
        **_LIBRARY,
        **_DISCIPLINES,
        "howdah.extension": ["importlib"],  # of installed packages, whose own files the key has
        "howdah.place": ["__file__"],
        "howdah.registered": ["importlib"],  # a module of howdah.ingest, all of which the key has
    }
    assert {*modules_of("howdah.ingest"), *modules_of("howdah.linux.netlink.discipline")} <= set(provenance.ANALYSIS)


def test_the_module_of_hooks_imports_nothing_of_ours() -> None:
    assert _loaded("howdah.hooks") == {"howdah", "howdah.hooks"}


def test_nothing_below_the_library_asks_for_it() -> None:
    """``howdah/__init__.py`` imports it for a program that does; neither the analysis nor the agent is one."""
    names = {"howdah.load", "howdah.Data", "howdah.Rows", "howdah.HowdahError", "howdah.library"}
    for name, file in (closure([ANALYSIS]) | closure(AGENT)).items():
        assert not names & set(imported(file, name)), name


def test_the_one_file_that_the_analysis_reads_beside_its_code_is_part_of_its_key() -> None:
    """Whoever reads another of our files asks ``howdah.place`` for it."""
    modules = closure([ANALYSIS])
    readers = [name for name, file in modules.items() if "howdah.place" in imported(file, name)]
    assert readers == ["howdah.extension", "howdah.metric", "howdah.registered"], "the others find code"
    assert provenance.ANALYSIS_DATA == (TABLE,)
    assert provenance.analysis_sha256() != closure_sha256([ANALYSIS])


def test_the_analysis_of_a_run_is_the_module_that_has_the_key() -> None:
    """``howdah/work/stage.py`` turns raw/ into results by nothing else."""
    direct = imported(PROJECT / "howdah/work/stage.py", "howdah.work.stage")
    assert ANALYSIS in direct
    assert not [name for name in direct if name.startswith(("howdah.ingest", "howdah.measure", "howdah.judge"))]


def test_the_agent_is_what_a_guest_is_given() -> None:
    found = closure(AGENT, deferred=False)
    staged = {str(PROJECT / name) for name in agent_sources("netlink")}
    assert {str(file) for file in found.values()} == staged
    assert _loaded("howdah.agent.__main__") <= set(found)


def test_only_the_words_of_tc_import_later_and_their_files_are_staged_for_mininet() -> None:
    at_once = closure(AGENT, deferred=False)
    later = {
        name: set(imported(file, name)) - set(imported(file, name, deferred=False)) for name, file in at_once.items()
    }
    # What it imports of its own packages later is among the files of these packages, which are all staged.
    own = tuple(f"{package}." for package in ("howdah.agent", "howdah.linux", "collectors"))
    others = {name for name, names in later.items() if any(not each.startswith(own) for each in names)}
    # The words of tc, which hosts show and Mininet runs.
    words = {f"howdah.linux.netlink.discipline.{name}" for name in ("discipline", "howdah_cpu")}
    assert others == words
    staged = {str(PROJECT / name) for name in agent_sources("mininet")}
    assert {str(file) for file in closure(AGENT).values()} <= staged
    found = {name: sorted(_names(file) & _DYNAMIC) for name, file in at_once.items() if name != _MININET}
    # One of collectors, and one of the drivers beside it, all of which are staged.
    by_name = {"howdah.agent.collecting": ["importlib"], "howdah.agent.traffic": ["importlib"]}
    # Of the standard library's modules that are left for later, and of the bundle's, all of which are staged.
    by_name["howdah.agent.start"] = ["__import__", "exec"]
    assert {*LATER} <= sys.stdlib_module_names
    assert {name: names for name, names in found.items() if names} == {**_LIBRARY, **_DISCIPLINES, **by_name}


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A project of the same names: entry ``howdah.a``, and a module ``howdah.sub.b`` that nothing imports yet."""
    for name in ("howdah/__init__.py", "howdah/sub/__init__.py", "howdah/sub/b.py", "collectors/__init__.py"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("")
    (tmp_path / "howdah/a.py").write_text("import os\n")
    (tmp_path / "howdah/near.py").write_text("VALUE = 1\n")
    return tmp_path


_FORMS = {
    "plain": "import howdah.sub.b",
    "named": "import howdah.sub.b as other",
    "from a package": "from howdah.sub import b",
    "from a module": "from howdah.sub.b import VALUE",
    "every name": "from howdah.sub.b import *",
    "relative": "from .sub import b",
    "relative to here": "from . import sub\nfrom .sub.b import VALUE",
    "in a function": "def later():\n    from howdah.sub import b\n    return b",
    "in a method": "class A:\n    def later(self):\n        import howdah.sub.b",
    "for types alone": "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from howdah.sub import b",
    "tried": "try:\n    import howdah.sub.b\nexcept ImportError:\n    pass",
    "by way of another": "import howdah.near",
    "in the package's own file": "import howdah.sub",
}


@pytest.mark.parametrize("form", _FORMS)
def test_no_form_of_import_escapes(tree: Path, form: str) -> None:
    before = closure_sha256(["howdah.a"], tree)
    assert "howdah.sub.b" not in closure(["howdah.a"], tree)
    if form == "by way of another":
        (tree / "howdah/near.py").write_text("from howdah.sub.b import VALUE\n")
    if form == "in the package's own file":
        (tree / "howdah/sub/__init__.py").write_text("from howdah.sub.b import VALUE\n")
    (tree / "howdah/a.py").write_text(f"import os\n{_FORMS[form]}\n")
    assert "howdah.sub.b" in closure(["howdah.a"], tree)
    assert "howdah.sub" in closure(["howdah.a"], tree)
    with_import = closure_sha256(["howdah.a"], tree)
    (tree / "howdah/sub/b.py").write_text("VALUE = 2\n")
    assert len({before, with_import, closure_sha256(["howdah.a"], tree)}) == 3


def test_what_is_imported_later_can_be_left_out(tree: Path) -> None:
    (tree / "howdah/a.py").write_text("import howdah.near\ndef later():\n    import howdah.sub.b\n")
    assert set(closure(["howdah.a"], tree, deferred=False)) == {"howdah", "howdah.a", "howdah.near"}


def test_the_key_is_of_contents_and_not_of_places(tree: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    copy = tmp_path_factory.mktemp("a copy") / "tree"
    shutil.copytree(tree, copy)
    assert closure_sha256(["howdah.a"], tree) == closure_sha256(["howdah.a"], copy)
    (copy / "howdah/sub/b.py").write_text("# nothing imports this\n")
    assert closure_sha256(["howdah.a"], tree) == closure_sha256(["howdah.a"], copy)


def test_a_file_of_data_belongs_to_the_key(tree: Path) -> None:
    table = tree / "table.yaml"
    found = {closure_sha256(["howdah.a"], tree)}
    for content in ("1", "2"):
        table.write_text(content)
        found.add(closure_sha256(["howdah.a"], tree, data=[table]))
    assert len(found) == 3


def test_an_entry_that_is_gone_is_an_error(tree: Path) -> None:
    with pytest.raises(ValueError, match=r"howdah\.moved"):
        closure(["howdah.moved"], tree)


def test_the_keys_are_of_these_closures() -> None:
    assert provenance.analysis_sha256() == closure_sha256(provenance.ANALYSIS, data=provenance.ANALYSIS_DATA)
    assert provenance.agent_sha256() == closure_sha256(AGENT, deferred=False)
