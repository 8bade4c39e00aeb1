# SPDX-License-Identifier: Apache-2.0
"""The modules build, load, work and unload on the kernels that kernels.txt marks; `make kernels` does the rest."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from howdah.build.modules import provide_modules
from tests.guest import kernel_matrix
from tests.guest.guest_kit import build_or_skip
from tests.guest.guest_run import QUICK, failures, ignore, plan_of, require_engine, run
from tests.guest.kernel_matrix import MODULES, examine, listed_kernels
from tests.guest.restarts import Restarts, problems

pytestmark = [pytest.mark.guest, pytest.mark.timeout(1800)]  # a kernel may have to be built first

_MARKED = listed_kernels(only_ci=True)
_GUESTS = [kernel for kernel in _MARKED if not kernel.startswith("headers-")]


@pytest.mark.parametrize("kernel", _MARKED)
def test_modules_build_and_load(kernel: str, tmp_path: Path) -> None:
    build_or_skip()
    row = examine(kernel, tmp_path, ignore)
    if row.unsupported:
        pytest.skip(f"{kernel} cannot be had: {row.unsupported}")
    assert row.problems == []
    plug_ins = {source.stem for source in (MODULES / "algorithms").glob("ss_*.c")}
    assert plug_ins
    wire = set() if kernel.startswith("headers-") else {"howdah_wire"}  # only user-mode kernels share memory
    own = {"howdah_traffic", "howdah_slow_start", "howdah_receiver", "howdah_processor", "howdah_hop", "howdah_link"}
    assert own | wire | plug_ins == {*row.built}
    if not kernel.startswith("headers-"):
        assert {*row.loaded} == {*row.built}
        assert {"standard_reno", "standard_cubic", "cubic", "reno"} <= {*row.used}


@pytest.mark.parametrize("kernel", _GUESTS)
def test_the_quick_profile_passes(kernel: str, tmp_path: Path) -> None:
    engine = require_engine()
    plan = dataclasses.replace(plan_of("algorithm=standard", profile=QUICK), kernel=kernel)
    engine.prepare([plan], ignore)
    directory, verdict = run(engine, plan, tmp_path / "run")
    assert verdict.verdict == "pass", failures(verdict)
    assert (directory.raw / "tcp_probe.bin").stat().st_size > 0


_WARNS = """\
#include <linux/module.h>
static int __init start(void) { WARN(1, "said by a test"); return 0; }
static void __exit stop(void) { }
module_init(start);
module_exit(stop);
MODULE_LICENSE("GPL");
"""


def test_a_warning_of_the_kernel_and_a_module_that_does_not_build_are_problems(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The matrix would be worth nothing if it could not fail."""
    built = build_or_skip()
    warning, wrong = tmp_path / "my_warning.c", tmp_path / "my_mistake.c"
    warning.write_text(_WARNS)
    wrong.write_text(_WARNS.replace("return 0", "return nought"))
    found = provide_modules(built.kernel, [str(warning), str(wrong)], ignore)
    monkeypatch.setattr(kernel_matrix, "build", lambda *_arguments: dataclasses.replace(built, module_set=found))
    row = examine("debian-6.12", tmp_path / "guest", ignore)
    assert "my_warning" in row.loaded, "what builds is loaded all the same"
    assert any(problem.startswith(f"{wrong}:2: ") and built.kernel.release in problem for problem in row.problems)
    assert any("said by a test" in problem for problem in row.problems)
    assert not any("taints kernel" in problem for problem in row.problems)


def test_a_kernel_that_tells_nothing_of_pauses_is_noticed() -> None:
    told = [Restarts(1, 0, 0), Restarts(2, 1, 0), Restarts(3, 2, 0), Restarts(8, 2, 4)]
    assert problems(told) == []
    assert "sending starts again" in problems([told[0], Restarts(1, 1, 0), Restarts(1, 2, 0), told[3]])[0]
    assert "idle time" in problems([told[0], told[1], Restarts(3, 1, 0), told[3]])[0]
    assert "a timeout" in problems([*told[:3], told[2]])[0]
    assert problems(told[:2]) == ["restarts were counted 2 times, not 4"]
