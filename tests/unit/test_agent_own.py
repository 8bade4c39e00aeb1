# SPDX-License-Identifier: Apache-2.0
"""Modules of a profile in the agent: whose an algorithm is, and what is said where it is not the profile's."""

from __future__ import annotations

import contextlib
import socket
from collections.abc import Callable
from pathlib import Path

import pytest

from howdah.agent import own
from howdah.agent.error import AgentError
from howdah.agent.own import OwnModules
from howdah.record.agent import ModuleRecord

OWN = "howdah_own_tcp_mine"


class _Kernel:
    """Algorithms and the module that owns each (None: built in, or nobody); sockets hold modules."""

    def __init__(self, root: Path, **modules: int) -> None:
        self.root = root
        self.owners: dict[str, str | None] = {"reno": None, "cubic": None}
        for name, uses in modules.items():
            (root / name).mkdir(parents=True)
            self.count(name, uses)

    def count(self, module: str, uses: int) -> None:
        (self.root / module / "refcnt").write_text(f"{uses}\n")

    def choose(self, algorithm: str, change: int) -> None:
        module = self.owners[algorithm]
        if module is not None:
            self.count(module, own.uses(module) + change)


@pytest.fixture
def kernel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> _Kernel:
    made = _Kernel(tmp_path / "sys", howdah_own_tcp_mine=3, meter=0)

    class Socket:
        def __init__(self, *_kind: object) -> None:
            self.chosen: str | None = None

        def __enter__(self) -> Socket:
            return self

        def __exit__(self, *_error: object) -> None:
            if self.chosen:
                made.choose(self.chosen, -1)

        def setsockopt(self, _level: int, _name: int, value: bytes) -> None:
            self.chosen = value.decode()
            made.choose(self.chosen, 1)

    monkeypatch.setattr(socket, "socket", Socket)
    monkeypatch.setattr(own, "SYS_MODULE", made.root)
    monkeypatch.setattr(own, "available", lambda: list(made.owners))
    return made


def _loaded(
    kernel: _Kernel, expected: dict[str, str], asked: set[str], registered: dict[str, str | None]
) -> OwnModules:
    """The module is loaded, and ``registered`` are the owners of algorithms from then on."""
    modules = OwnModules({"tcp_mine": OWN}, expected, asked)
    modules.before_loading()
    kernel.owners |= registered
    modules.after_loading()
    return modules


def described(modules: OwnModules, name: str) -> ModuleRecord:
    return modules.with_uses({name: ModuleRecord()})[name]


def test_what_a_module_registered_and_how_many_used_it(kernel: _Kernel) -> None:
    modules = _loaded(kernel, {"mine": "tcp_mine"}, {"mine", "reno"}, {"mine": OWN})
    started: list[int] = []

    def start(now: int) -> None:
        started.append(now)
        kernel.count(OWN, 7)

    modules.and_count(start)(5)
    kernel.count(OWN, 4)
    assert started == [5]
    assert modules.providers() == {"mine": OWN}
    facts = ModuleRecord("ABC", loaded_as=OWN, algorithms=["mine"], uses_before=3, uses_most=7)
    other = ModuleRecord("DEF")
    assert modules.with_uses({"tcp_mine": ModuleRecord("ABC"), "other": other}) == {"tcp_mine": facts, "other": other}


def test_one_that_took_a_built_ins_place_is_known_by_who_holds_it(kernel: _Kernel) -> None:
    modules = _loaded(kernel, {"cubic": "tcp_mine"}, {"cubic"}, {"cubic": OWN})
    assert described(modules, "tcp_mine").algorithms == ["cubic"]


@pytest.mark.parametrize(
    ("expected", "asked", "registered", "words"),
    [
        ("mine", {"mine"}, {"even": OWN}, r"registers even, not mine.*kernel: even, module: tcp_mine"),
        ("mine", {"mine"}, {"even": None}, "registers even, not mine"),
        ("mine", {"mine"}, {}, "does not register mine.*nor any other"),
        ("cubic", {"cubic"}, {}, r"the kernel's own cubic is in use.*needs \.owner = THIS_MODULE"),
        ("mine", {"mine"}, {"mine": None}, r"nobody owns the algorithm mine: .*\.owner = THIS_MODULE"),
        (None, {"reno"}, {"even": OWN}, "never used: it registers even"),
        (None, {"cubic"}, {"cubic": OWN}, "registers cubic, which this run takes from elsewhere"),
    ],
)
def test_what_the_run_would_not_measure_ends_it(
    kernel: _Kernel, expected: str | None, asked: set[str], registered: dict[str, str | None], words: str
) -> None:
    with pytest.raises(AgentError, match=words):
        _loaded(kernel, {expected: "tcp_mine"} if expected else {}, asked, registered)


def test_a_module_that_registers_no_algorithm_is_used_by_being_there(kernel: _Kernel) -> None:
    modules = OwnModules({"meter": "meter"}, {}, {"cubic"})
    modules.before_loading()
    modules.after_loading()
    assert kernel.owners
    assert described(modules, "meter").algorithms == []


def test_a_kernel_that_does_not_count_uses_is_told(kernel: _Kernel) -> None:
    (kernel.root / OWN / "refcnt").unlink()
    with pytest.raises(AgentError, match="needs CONFIG_MODULE_UNLOAD"):
        _loaded(kernel, {"mine": "tcp_mine"}, {"mine"}, {"mine": None})


def test_without_modules_of_a_profile_nothing_is_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(own, "available", lambda: pytest.fail("asked"))
    modules = OwnModules({}, {}, {"cubic"})
    modules.before_loading()
    modules.after_loading()

    def start(_now: int) -> None:
        """A flow's."""

    assert modules.and_count(start) is start
    assert modules.with_uses({}) == {}


def test_sockets_of_an_algorithm_in_bpf_are_counted(kernel: _Kernel, monkeypatch: pytest.MonkeyPatch) -> None:
    modules = OwnModules({}, {"delay": "tcp_delay"}, {"delay"})
    modules.before_loading()
    kernel.owners["delay"] = None
    modules.after_loading({"tcp_delay": ["delay"]})
    chosen = ["cubic", "delay", "delay"]
    monkeypatch.setattr(own, "congestion_controls", lambda _netlink: chosen)
    monkeypatch.setattr(own, "open_diag", lambda: None)
    loop = _Loop()
    modules.watch(loop, 0, [_Namespace()])  # type: ignore[arg-type, list-item]
    loop.action(0)
    chosen[:] = ["cubic"]
    loop.action(0)
    assert modules.providers() == {"delay": "tcp_delay"}
    record = described(modules, "tcp_delay")
    assert (record.algorithms, record.uses_before, record.uses_most) == (["delay"], 0, 2)


def test_bpf_that_registers_another_name_is_refused(kernel: _Kernel) -> None:
    modules = OwnModules({}, {"delay": "tcp_delay"}, {"delay"})
    modules.before_loading()
    kernel.owners["other"] = None
    with pytest.raises(AgentError, match="it registers other, not delay"):
        modules.after_loading({"tcp_delay": ["other"]})


class _Loop:
    def every(self, _step_ns: int, _first_ns: int, action: Callable[[int], None]) -> None:
        self.action = action


class _Namespace:
    def entered(self) -> contextlib.AbstractContextManager[None]:
        return contextlib.nullcontext()
