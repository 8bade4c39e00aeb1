# SPDX-License-Identifier: Apache-2.0
"""The uml engine: what cannot be made ready, how a kernel is started, and a run whose time stands still."""

from __future__ import annotations

import dataclasses
import subprocess
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from howdah.build.cache import Cache, file_sha256
from howdah.build.guest_tree import GuestTree, image_of_tree, needed_glibc, packages_of_plan, with_loader
from howdah.build.modules import ModuleSet
from howdah.build.tools import Tools, build_tools
from howdah.engine import registry
from howdah.engine.engine_bundle import EngineBundle
from howdah.engine.registry import keep, kept
from howdah.engine.uml import engine as engine_module
from howdah.engine.uml.build import Built
from howdah.engine.uml.engine import UmlEngine
from howdah.engine.uml.sent import add_part
from howdah.errors import HowdahError, RunFailedError
from howdah.plan.plan import Plan
from howdah.record.directory import RunDirectory
from howdah.work import worker
from howdah.work.worker import Patience
from tests.unit.profile_factory import make_plans

NO_TREE = HowdahError("this is not a Linux source tree: it has no Makefile", where="linux")
UNUSED: list[HowdahError] = []
NO_PACKAGE = HowdahError("the guest tree cannot be had: no mirror answers")


@pytest.fixture
def engine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> UmlEngine:
    """One that builds nothing: a directory is no kernel tree, and no mirror has further packages."""

    entry = tmp_path / "entry"
    entry.mkdir()

    def build(
        kernel: str, _modules: Any, _progress: Any, _cache: Any, _wiring: str, packages: tuple[str, ...], _extras: Any
    ) -> Any:
        if "/" in kernel:
            raise NO_TREE
        if packages:
            raise NO_PACKAGE
        modules = SimpleNamespace(unused=lambda *_: UNUSED)
        return SimpleNamespace(
            module_set=modules,
            tree=SimpleNamespace(sha256="tree", root=entry),
            tools=SimpleNamespace(key="tools", directory=entry),
            kernel=SimpleNamespace(image_sha256=kernel, image=entry),
            agent=entry,
        )

    monkeypatch.setattr(engine_module, "build", build)
    monkeypatch.setattr(engine_module, "lacks", lambda _kernel, **_what: [])
    monkeypatch.setattr(UmlEngine, "_modules", staticmethod(lambda *_: []))
    return UmlEngine(Cache(tmp_path / "cache"))


@pytest.mark.parametrize(
    ("axis", "ready", "broken", "error"),
    [
        ("kernel", ["debian-6.12"], ["{}/linux"], NO_TREE),
        ("receiver.kernel", ["debian-6.12"], ["{}/linux"], NO_TREE),
        ("traffic.quic", ["off"], ["ngtcp2", "aioquic"], NO_PACKAGE),
    ],
)
def test_what_one_cell_lacks_fails_its_runs_alone(
    tmp_path: Path, engine: UmlEngine, axis: str, ready: list[str], broken: list[str], error: HowdahError
) -> None:
    told: list[str] = []
    (tmp_path / "linux").mkdir()
    values = ", ".join([*ready, *broken]).format(tmp_path)
    plans = make_plans(tmp_path, overrides=[f"{axis}=[{values}]", "algorithm=cubic"])
    identity = engine.prepare(plans, lambda what, _done, _total: told.append(what))
    assert identity["kernel debian-6.12"] == "debian-6.12"
    place = f"{error.where}: " if error.where else ""
    assert told == [f"not built: {place}{error.what}"]

    def lacks(plan: Plan) -> bool:
        return bool(packages_of_plan(plan)) or any("/" in name for name in plan.kernels)

    lacking = [plan for plan in plans if lacks(plan)]
    assert len(lacking) == len(broken) < len(plans)
    for plan in lacking:
        with pytest.raises(RunFailedError) as caught:
            engine.run(RunDirectory(tmp_path / "run"), plan, lambda *_: None)
        assert caught.value.what == error.what


def test_what_no_cell_can_do_without_ends_the_command(tmp_path: Path, engine: UmlEngine) -> None:
    (tmp_path / "linux").mkdir()
    plans = make_plans(tmp_path, overrides=[f"kernel={tmp_path}/linux"])
    with pytest.raises(HowdahError, match="not a Linux source tree"):
        engine.prepare(plans, lambda *_: None)


def test_a_module_that_no_run_needs_costs_none(
    tmp_path: Path, engine: UmlEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(globals(), "UNUSED", [HowdahError("does not compile", where="tcp_mine.c:3")])
    told: list[str] = []
    plans = make_plans(tmp_path, overrides=["algorithm=[cubic, reno]"])
    assert engine.prepare(plans, lambda what, _done, _total: told.append(what))["engine"] == "uml"
    assert told == ["not built, and no run needs it: tcp_mine.c:3: does not compile"]


def test_what_is_told_before_the_compilation_is_not_told_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, engine: UmlEngine
) -> None:
    """A ready module of another kernel: at once, and where the run that needs it is made ready."""
    stale = HowdahError("the module was built for another kernel", where="tcp_mine.ko")

    def build(_kernel: str, _modules: Any, progress: Any, *_: Any) -> Any:
        progress(f"not built: {stale.where}: {stale.what}", 0, 0)
        raise stale

    monkeypatch.setattr(engine_module, "build", build)
    told: list[str] = []
    with pytest.raises(HowdahError):
        engine.prepare(make_plans(tmp_path, ""), lambda what, _done, _total: told.append(what))
    assert told == ["not built: tcp_mine.ko: the module was built for another kernel"]


def test_what_all_runs_lack_is_said_once(tmp_path: Path, engine: UmlEngine) -> None:
    told: list[str] = []
    (tmp_path / "linux").mkdir()
    plans = make_plans(tmp_path, overrides=[f"kernel={tmp_path}/linux", "algorithm=cubic"])
    with pytest.raises(HowdahError) as failed:
        engine.prepare(plans, lambda what, _done, _total: told.append(what))
    assert failed.value.what == NO_TREE.what
    assert told == []


def test_what_is_built_once_serves_every_later_plan_and_run(
    tmp_path: Path, engine: UmlEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A search prepares each candidate, and a worker has what its command built: neither looks at the cache again."""
    once: Any = vars(engine_module)["build"]
    asked: list[str] = []

    def build(*arguments: Any) -> Any:
        asked.append(arguments[0])
        return once(*arguments)

    def lacks(kernel: str, **_what: Any) -> list[Any]:
        asked.append(kernel)
        return []

    monkeypatch.setattr(engine_module, "build", build)
    monkeypatch.setattr(engine_module, "lacks", lacks)
    plans = make_plans(tmp_path, overrides=["algorithm=[cubic, reno]"])
    first = engine.prepare(plans, lambda *_: None)
    assert asked == ["debian-6.12"] * 2  # what the machine lacks, and what is built
    assert engine.prepare(plans[:1], lambda *_: None) == first
    assert engine._built(plans[1], lambda *_: None)["debian-6.12"].kernel.image_sha256 == "debian-6.12"
    assert len(asked) == 2
    UmlEngine(engine.cache).prepare(plans, lambda *_: None)  # a new one looks: sources may have been edited
    assert len(asked) == 4
    own = dataclasses.replace(plans[0], modules=[str(tmp_path / "own.ko")])
    for _ in range(2):
        engine._built(own, lambda *_: None)
    assert len(asked) == 6, "a ready module is the user's own file, and may be another one by now"
    (tmp_path / "entry").rmdir()
    engine._built(plans[1], lambda *_: None)
    assert len(asked) == 7, "what left the cache is looked for again"


def test_runs_are_made_with_the_engine_that_was_prepared_last(
    engine: UmlEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(registry, "_prepared", {})
    keep("uml", engine)
    assert kept("uml") is engine
    assert kept("ns2") is None


def _tree(version: str) -> GuestTree:
    return GuestTree(Path("/tree"), "key", "sha", {"libc6": version} if version else {}, {})


@pytest.fixture(scope="module")
def tools(tmp_path_factory: pytest.TempPathFactory) -> Tools:
    return build_tools(Cache(tmp_path_factory.mktemp("cache")))


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("program")
    (place / "hello.c").write_text('#include <stdio.h>\nint main(void) { return puts("hello") < 0; }\n')
    subprocess.run(["gcc", "-no-pie", "-o", str(place / "hello"), str(place / "hello.c")], check=True)
    return place / "hello"


def test_the_program_is_the_same_but_for_its_loader(program: Path, tmp_path: Path) -> None:
    content = program.read_bytes()
    changed = with_loader(content, "./ld.so")
    assert changed is not None
    assert len(changed) == len(content)
    assert sum(one != other for one, other in zip(content, changed, strict=True)) <= 27
    (tmp_path / "hello").write_bytes(changed)
    (tmp_path / "hello").chmod(0o755)
    with pytest.raises(FileNotFoundError):
        subprocess.run([str(tmp_path / "hello")], check=True, cwd=tmp_path)
    loader = next(word for word in _said("ldd", str(program)).split() if word.startswith("/lib") and "ld-linux" in word)
    (tmp_path / "ld.so").symlink_to(loader)
    assert subprocess.run([str(tmp_path / "hello")], check=True, cwd=tmp_path, capture_output=True).stdout == b"hello\n"


def _said(*command: str) -> str:
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def test_a_static_program_and_a_name_that_does_not_fit_are_left(tools: Tools, program: Path) -> None:
    assert with_loader(tools.launch.read_bytes(), "./ld.so") is None
    assert with_loader(program.read_bytes(), "/a/name/that/is/longer/than/the/one/in/the/file") is None


def test_the_launcher_needs_no_library(tools: Tools) -> None:
    assert needed_glibc(tools.shim.read_bytes()) > ()
    assert "INTERP" not in _said("readelf", "--program-headers", str(tools.launch))


def test_an_older_tree_does_not_start_a_newer_kernel(program: Path, tools: Tools, tmp_path: Path) -> None:
    cache, sha256 = Cache(tmp_path), file_sha256(program)
    assert image_of_tree(program, sha256, tools, _tree("2.5-1"), cache) is None
    assert image_of_tree(program, sha256, tools, _tree(""), cache) is None
    found = image_of_tree(program, sha256, tools, _tree("2.99-1+deb13u1"), cache)
    assert found is not None
    assert b"./ld.so\0" in found.read_bytes()
    assert image_of_tree(program, sha256, tools, _tree("2.99-2"), cache) == found


@pytest.mark.parametrize(("started", "asked"), [(None, {"linux", "shim.so"}), (Path("/started/linux"), set())])
def test_a_worker_is_asked_for_its_c_library_where_it_is_used(
    started: Path | None, asked: set[str], tmp_path: Path
) -> None:
    for kind in ("tool", "kernel", "tree", "agent"):
        (tmp_path / kind / "abc").mkdir(parents=True)
    built = SimpleNamespace(
        tools=SimpleNamespace(directory=tmp_path / "tool/abc"),
        kernel=SimpleNamespace(directory=tmp_path / "kernel/abc", name="debian-6.12", source=""),
        tree=SimpleNamespace(root=tmp_path / "tree/abc/root"),
        agent=tmp_path / "agent/abc",
        module_set=ModuleSet({}, {}),
        started=started,
    )
    bundle = EngineBundle("uml")
    add_part(bundle, "part", cast("Built", built), Cache(tmp_path / "cache"))
    assert {name for piece in bundle.pieces.values() for name in piece.programs} == asked


@pytest.fixture
def used_s(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """What the processor spent; the test sets it."""
    spent = [0.0]
    monkeypatch.setattr(worker, "processor_s", lambda _pid: spent[0])
    monkeypatch.setattr(worker, "LOOKS_AFTER_S", -1.0)
    return spent


def test_time_that_stands_still_ends_a_run(used_s: list[float]) -> None:
    told: list[tuple[str, int, int]] = []
    watched = Patience(lambda *said: told.append(said), 2.0, lambda: "; mine was in use")
    watched("boot", 0, 0)
    used_s[0] = 1.9
    watched("boot", 0, 0)
    used_s[0] = 3.0
    watched("flows", 1_000_000, 3_000_000)
    used_s[0] = 4.9
    watched("flows", 1_000_000, 3_000_000)
    used_s[0] = 5.1
    with pytest.raises(RunFailedError) as raised:
        watched("flows", 1_000_000, 3_000_000)
    assert raised.value.what == (
        "the run hangs, and was ended: 2.1 s of a processor passed without simulated time "
        "(phase flows, 1.0 of 3.0 simulated seconds); mine was in use"
    )
    assert len(told) == 5


def test_time_that_passes_slowly_does_not(used_s: list[float]) -> None:
    watched = Patience(lambda *_said: None, 2.0, str)
    for second in range(10):
        watched("flows", second * 1_000_000, 10_000_000)
        used_s[0] += 1.9
