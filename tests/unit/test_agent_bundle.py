# SPDX-License-Identifier: Apache-2.0
"""The agent's modules in one file: what is in it comes from it, and the rest is found as always."""

from __future__ import annotations

import marshal
import os
import subprocess
import sys
from pathlib import Path

import pytest

from howdah.agent.provenance import boot_parameters
from howdah.agent.start import BUNDLE, LATER
from howdah.build import bundle
from howdah.engine import share
from howdah.engine.share import agent_sources, copy_agent
from howdah.record.directory import RunDirectory

_BUNDLER = Path(bundle.__file__)
_START = "howdah/agent/start.py"


def _run(agent: Path, *command: str) -> subprocess.CompletedProcess[str]:
    environment = {"PATH": os.environ["PATH"], "PYTHONPATH": str(agent), "PYTHONHASHSEED": "0"}
    return subprocess.run(
        [sys.executable, "-S", "-B", *command], env=environment, cwd=agent, capture_output=True, text=True, check=False
    )


@pytest.fixture(scope="module")
def agent(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Its directory, bundled by this Python as for a guest that calls it the same."""
    found = tmp_path_factory.mktemp("an agent").resolve()
    copy_agent(found)
    done = _run(found, str(_BUNDLER), str(found), str(found), sys.base_prefix, str(found / BUNDLE))
    assert done.returncode == 0, done.stderr
    return found


def test_the_agent_starts_without_its_sources(agent: Path, tmp_path: Path) -> None:
    for file in (agent / "howdah").rglob("*.py"):
        if file.name != "start.py":
            kept = tmp_path / file.relative_to(agent)
            kept.parent.mkdir(parents=True, exist_ok=True)
            kept.write_bytes(file.read_bytes())
            file.write_text("raise SystemExit('this source was read')\n")
    try:
        done = _run(agent, str(agent / _START), "--help")
    finally:
        for file in tmp_path.rglob("*.py"):
            (agent / file.relative_to(tmp_path)).write_bytes(file.read_bytes())
    assert done.returncode == 1
    assert done.stderr.startswith("'--help' is not understood; usage: ")


def test_the_byte_code_of_its_start_is_beside_it(agent: Path) -> None:
    done = _run(agent, str(agent / _START.removesuffix(".py")), "--help")
    assert done.stderr.startswith("'--help' is not understood; usage: ")


def test_what_hardly_a_run_uses_is_in_it_and_not_what_every_run_needs(agent: Path) -> None:
    place = int.from_bytes((agent / BUNDLE).read_bytes()[:8], "little")
    always, index = marshal.loads((agent / BUNDLE).read_bytes()[place:])
    assert {*LATER, "ast"} <= index.keys()
    assert {"dataclasses", "howdah.agent.run"} <= {*always}
    assert {*always} & {*LATER, "ast"} == set()


_USES = """\
import sys
from howdah.agent.start import BUNDLE, Bundle
for name in [name for name in sys.modules if name.startswith("howdah")]:
    del sys.modules[name]
sys.meta_path.insert(0, Bundle(BUNDLE))
import another, howdah.linux.netlink, howdah.agent.loop, json
print(another.__spec__.loader.__class__.__name__)
for module in (howdah.agent, howdah.agent.loop, json):
    print(module.__spec__.loader.__class__.__name__, module.__file__)
print(howdah.linux.netlink.__path__)
howdah.agent.loop.Loop(virtual_time=True).every(None, None, None)
"""


def test_what_is_not_in_it_is_found_and_what_is_names_its_source(agent: Path) -> None:
    (agent / "another.py").write_text("")
    done = _run(agent, "-c", _USES)
    said = done.stdout.splitlines()
    assert said[0] == "SourceFileLoader", done.stderr
    assert said[1] == f"_Loader {agent}/howdah/agent/__init__.py"
    assert said[2] == f"_Loader {agent}/howdah/agent/loop.py"
    assert said[3].startswith("_Loader ")
    assert said[3].endswith("/json/__init__.py")
    assert said[4] == f"['{agent}/howdah/linux/netlink']"
    # A traceback names the line, and quotes it.
    assert f'File "{agent}/howdah/agent/loop.py", line ' in done.stderr
    assert "TypeError" in done.stderr


def test_an_agent_that_cannot_be_imported_is_no_bundle(tmp_path: Path) -> None:
    copy_agent(tmp_path)
    (tmp_path / "howdah/agent/loop.py").write_text("import howdah.nowhere\n")
    done = _run(tmp_path, str(_BUNDLER), str(tmp_path), "/howdah/in", sys.base_prefix, str(tmp_path / BUNDLE))
    assert done.returncode != 0
    assert "howdah.nowhere" in done.stderr
    assert not (tmp_path / BUNDLE).exists()


def test_a_module_from_nowhere_known_is_told_and_not_left_out(tmp_path: Path) -> None:
    copy_agent(tmp_path)
    done = _run(tmp_path, str(_BUNDLER), str(tmp_path), "/howdah/in", "/another/tree", str(tmp_path / BUNDLE))
    assert done.returncode != 0
    assert "which is neither of the agent nor of /another/tree" in done.stderr
    assert not (tmp_path / BUNDLE).exists()


# The agent's files import each other alone: a guest has nothing else of howdah, and no package but the library's

_IMPORT_ALL = """\
import importlib, sys
sys.path.insert(0, sys.argv[1])
for name in sys.argv[2:]:
    try:
        importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name.partition(".")[0] in ("howdah", "collectors", "topologies"):
            sys.exit(f"{name} imports {error.name}")
"""


@pytest.mark.parametrize("wiring", ["netlink", "mininet"])
def test_what_a_guest_gets_is_whole(tmp_path: Path, wiring: str) -> None:
    copy_agent(tmp_path, wiring)
    modules = [".".join(name.with_suffix("").parts).removesuffix(".__init__") for name in agent_sources(wiring)]
    modules = [name for name in modules if not name.endswith("__main__")]
    assert len(modules) > 50
    command = [sys.executable, "-I", "-S", "-c", _IMPORT_ALL, str(tmp_path), *modules]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_the_agent_is_standard_library_code_of_this_project() -> None:
    names = {str(name) for name in share.agent_sources()}
    assert "howdah/__init__.py" in names
    assert "howdah/agent/__main__.py" in names
    files = (f"howdah/{name}.py" for name in ("codec", "frame", "traffic", "trait"))
    own = ("howdah/__init__", "howdah/agent/", "howdah/linux/", "howdah/plan/", "howdah/record/", "collectors/", *files)
    assert all(name.startswith(own) for name in names)
    assert "topologies/dumbbell.py" in {str(name) for name in share.agent_sources("mininet")}


def test_staging(tmp_path: Path) -> None:
    agent, cached = tmp_path / "agent", tmp_path / "built.ko"
    share.copy_agent(agent)
    cached.write_bytes(b"module")
    directory = RunDirectory(tmp_path / "a run")
    directory.path.mkdir()
    directory.plan.write_text("{}")
    share.stage(directory, agent, [("tcp_mine", cached)])
    assert (directory.share / "plan.json").read_text() == "{}"
    assert (directory.share / "modules/tcp_mine.ko").read_bytes() == b"module"
    assert (directory.share / "howdah/agent/__main__.py").is_file()
    assert directory.raw.is_dir()
    cached.rename(tmp_path / "tcp_bpf.bpf.o").touch()
    share.stage(directory, agent, [("tcp_bpf", tmp_path / "tcp_bpf.bpf.o")])
    assert (directory.share / "modules/tcp_bpf.bpf.o").read_bytes() == b"module"
    cached.write_bytes(b"module")
    share.stage(directory, agent, [("tcp_mine", cached)])  # a second time changes nothing and fails on nothing


def test_the_key_follows_the_wiring() -> None:
    assert share.agent_key() == share.agent_key()
    assert share.agent_key() != share.agent_key("mininet")


# What the agent loads before it knows the plan, and what is kept of a kernel's command line

ROOT = Path(__file__).resolve().parents[2]
# Of the standard library, with all that each brings.
NEEDLESS = {"decimal", "fractions", "hashlib", "lzma", "platform", "random", "shutil", "statistics", "tempfile"}
# For some plans only.
SOME_PLANS = {
    "howdah.agent.calibration",
    "howdah.agent.kernel_part",
    "howdah.agent.timer_lateness",
    "howdah.agent.part",
    "howdah.agent.profiling",
    "howdah.agent.traffic.flent",
    "howdah.agent.traffic.http",
    "howdah.agent.traffic.program",
    "howdah.agent.traffic.stack",
    "howdah.agent.wiring.mininet",
}


def test_the_agent_loads_what_every_plan_needs(python: str) -> None:
    program = "import sys, howdah.agent.__main__; print(*sys.modules)"
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run([python, "-S", "-c", program], env=environment, capture_output=True, text=True, check=True)
    loaded = set(done.stdout.split())
    assert "howdah.agent.run" in loaded
    assert loaded & (NEEDLESS | SOME_PLANS) == set()


def test_what_it_loads_later_is_there() -> None:
    for name in SOME_PLANS:
        place = ROOT / name.replace(".", "/")
        assert place.is_dir() or place.with_suffix(".py").exists(), name


_LATER = """\
import sys
sys.path.insert(0, ROOT)
from howdah.agent.start import LATER, Later, leave_for_later
leave_for_later()
from howdah.agent.__main__ import main
left = [name for name in LATER if isinstance(sys.modules[name], Later)]
import subprocess, inspect
print(*left, subprocess.run(["true"]).returncode, inspect.signature(lambda a: a), type(sys.modules["inspect"]).__name__)
"""


def test_what_hardly_a_run_uses_is_loaded_when_it_is_used() -> None:
    """A dataclass of the agent without a docstring would load inspect."""
    program = _LATER.replace("ROOT", repr(str(ROOT)))
    done = subprocess.run([sys.executable, "-S", "-c", program], capture_output=True, text=True)
    assert done.stdout == "inspect subprocess 0 (a) module\n", done.stderr


def test_parameters_are_kept_and_nothing_else() -> None:
    line = (
        "mem=64M root=/home/somebody/x.y=z rootfstype=hostfs tcp_cubic.hystart=1 quiet tcp_cubic.hystart=0 a.b= init\n"
    )
    assert boot_parameters(line) == {"tcp_cubic.hystart": "0", "a.b": ""}
