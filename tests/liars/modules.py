# SPDX-License-Identifier: Apache-2.0
"""Lies of modules: what a profile brings or sets is not what the kernel runs."""

from __future__ import annotations

import dataclasses
import shutil
from collections.abc import Callable
from pathlib import Path

from howdah.errors import HowdahError
from howdah.profile import load
from tests.built_modules import build_modules
from tests.guest import guest_run
from tests.guest.guest_kit import build_or_skip
from tests.liars.bench import SMALL, Bench
from tests.liars.liar import Catch, ToldLiar
from tests.unit.profile_factory import write_profile

Told = Callable[[Bench, Path], list[Catch]]

MODULE = """\
#include <linux/module.h>
#include <net/tcp.h>
static struct tcp_congestion_ops mine = {
\t.ssthresh = tcp_reno_ssthresh, .undo_cwnd = tcp_reno_undo_cwnd,
\t.cong_avoid = %s,
\t.name = "mine", .owner = THIS_MODULE,
};
static int __init start(void)
{
\treturn tcp_register_congestion_control(&mine);
}
static void __exit stop(void)
{
\ttcp_unregister_congestion_control(&mine);
}
module_init(start);
module_exit(stop);
MODULE_LICENSE("GPL");
"""


def _refused(act: Callable[[], object]) -> list[Catch]:
    try:
        act()
    except HowdahError as error:
        return [Catch("error", type(error).__name__, str(error))]
    return []


def _built(function: str, name: str = "tcp_mine") -> Told:
    def told(_bench: Bench, path: Path) -> list[Catch]:
        path.mkdir()
        source = path / f"{name}.c"
        source.write_text(MODULE % function, encoding="utf-8")
        kernel = build_or_skip().kernel
        return _refused(lambda: build_modules(kernel, [str(source)], guest_run.ignore))

    return told


def _ready(name: str, change: Callable[[bytes], bytes] = lambda content: content) -> Told:
    """A module that somebody built by hand under this name, and perhaps for another kernel."""

    def told(_bench: Bench, path: Path) -> list[Catch]:
        sources = path / "sources"
        sources.mkdir(parents=True)
        (sources / f"{name}.c").write_text(MODULE % "tcp_reno_cong_avoid", encoding="utf-8")
        (sources / "Kbuild").write_text(f"obj-m := {name}.o\n", encoding="utf-8")
        kernel = build_or_skip().kernel
        built = build_modules(kernel, [str(sources)], guest_run.ignore)
        ready = path / f"{name}.ko"
        shutil.copyfile(next(module.file for module in built if module.name == name), ready)
        ready.write_bytes(change(ready.read_bytes()))
        return _refused(lambda: build_modules(kernel, [str(ready)], guest_run.ignore))

    return told


def _of_another_kernel(content: bytes) -> bytes:
    assert content.count(b"vermagic=6.") == 1
    return content.replace(b"vermagic=6.", b"vermagic=5.")


def _profile(text: str) -> Told:
    """A profile beside a user's own tcp_cubic.c and better_cubic.c."""

    def told(_bench: Bench, path: Path) -> list[Catch]:
        path.mkdir()
        for name in ("tcp_cubic.c", "better_cubic.c"):
            (path / name).write_text("/* C */\n", encoding="utf-8")
        return _refused(lambda: load(write_profile(path, text)))

    return told


def _with_parameter(name: str, value: str) -> Told:
    def told(bench: Bench, path: Path) -> list[Catch]:
        plan = guest_run.plan_of(*SMALL, "algorithm=limited")
        plan = dataclasses.replace(plan, module_parameters={"ss_limited": {name: value}})
        return _refused(lambda: bench.carry_out(plan, plan, path))

    return told


_OWN_COMPILES, _READY, _USED = "one's own tcp_cubic.c", "a module that is ready", "a profile that uses its module"

HONEST_MODULES: dict[str, Told] = {
    _OWN_COMPILES: _built("tcp_reno_cong_avoid", "tcp_cubic"),
    _READY: _ready("tcp_mine"),
    _USED: _profile("modules: [tcp_cubic.c]\nalgorithm: cubic\n"),
    "a module that compiles": _built("tcp_reno_cong_avoid"),
    "a parameter that the module has": _with_parameter("max_ssthresh", "200"),
}

MODULES = [
    ToldLiar(
        "module-does-not-compile",
        "module",
        "A module of the profile does not compile.",
        Catch("error", "HowdahError", "tcp_mine.c:5"),
        "a module that compiles",
        _built("tcp_reno_cong_avoidance"),
    ),
    ToldLiar(
        "parameter-that-does-not-exist",
        "module",
        "A profile sets a parameter that the module does not have, which the kernel would ignore.",
        Catch("error", "ParameterError", "ss_limited has no parameter 'max_sstresh'"),
        "a parameter that the module has",
        _with_parameter("max_sstresh", "200"),
    ),
    ToldLiar(
        "parameter-that-is-refused",
        "module",
        "The module refuses the value that the profile gives its parameter.",
        Catch("error", "RunFailedError", "`many' invalid for parameter `max_ssthresh'"),
        "a parameter that the module has",
        _with_parameter("max_ssthresh", "many"),
    ),
    ToldLiar(
        "own-cubic-does-not-compile",
        "module",
        "A user's own tcp_cubic.c does not compile, and the kernel has a CUBIC of the same name.",
        Catch("error", "HowdahError", "tcp_cubic.c:5"),
        _OWN_COMPILES,
        _built("tcp_reno_cong_avoidance", "tcp_cubic"),
    ),
    ToldLiar(
        "own-module-that-no-flow-uses",
        "module",
        "A profile names a user's own tcp_cubic.c, and its flows use Reno.",
        Catch("error", "ProfileError", "tcp_cubic.c is never used"),
        _USED,
        _profile("modules: [tcp_cubic.c]\nalgorithm: reno\n"),
    ),
    ToldLiar(
        "two-modules-of-one-name",
        "module",
        "One flow asks for the kernel's CUBIC and another for a user's own, which the kernel calls by the same name.",
        Catch("error", "ProfileError", "the kernel has one cubic"),
        _USED,
        _profile(
            "modules: [better_cubic.c]\nalgorithms: {better: {kernel: cubic, module: better_cubic}}\n"
            "flows:\n  - {algorithm: cubic}\n  - {algorithm: better}\n"
        ),
    ),
    ToldLiar(
        "ready-module-with-a-built-ins-name",
        "module",
        "A module that is ready has the name of one that is built into the kernel, which would load no second one.",
        Catch("error", "HowdahError", "has a module tcp_cubic built in"),
        _READY,
        _ready("tcp_cubic"),
    ),
    ToldLiar(
        "module-of-another-kernel",
        "module",
        "A module that is ready was built for another kernel.",
        Catch("error", "HowdahError", "the module was built for another kernel"),
        _READY,
        _ready("tcp_mine", _of_another_kernel),
    ),
]
