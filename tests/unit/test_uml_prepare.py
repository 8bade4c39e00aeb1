# SPDX-License-Identifier: Apache-2.0
"""What cannot be made ready for one cell of a sweep on the uml engine costs that cell's runs, and no other."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from howdah.build.cache import Cache
from howdah.build.guest_tree import further_packages
from howdah.engine import registry
from howdah.engine.registry import keep, kept
from howdah.engine.uml import engine as engine_module
from howdah.engine.uml.engine import UmlEngine
from howdah.errors import HowdahError, RunFailedError
from howdah.plan.plan import Plan
from howdah.record.directory import RunDirectory
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
        return bool(further_packages(plan)) or any("/" in name for name in plan.kernels)

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
