# SPDX-License-Identifier: Apache-2.0
"""A module that does not build costs the runs that need it, with its file and line, and no other run."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

import pytest

from howdah.build import modules
from howdah.build.cache import Cache
from howdah.build.modules import provide_modules
from howdah.engine.uml.build import Built
from tests.guest.guest_kit import build_or_skip
from tests.guest.guest_run import QUICK, ROOT, howdah, ignore

pytestmark = pytest.mark.guest

_PLUG_IN = """\
#include "slow_start.h"
static u32 grow(struct sock *sk, u32 acked) { return 0; }
static const struct slow_start_ops my_ops = { .name = "%(name)s", .owner = THIS_MODULE, .grow = grow };
module_slow_start(my_ops);
MODULE_LICENSE("GPL");
"""


@pytest.fixture(scope="module")
def built() -> Built:
    return build_or_skip()


# It has nothing to do with what is broken. The project's own modules beside the core would be compiled in every test.
_BYSTANDER = '#include <linux/module.h>\nMODULE_LICENSE("GPL");\n'
_CORE = "howdah_slow_start"


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The project's core with two plug-ins, ss_one and ss_two, to be broken, and ss_alone, which needs neither."""
    copy = tmp_path / "modules"
    shutil.copytree(ROOT / "modules", copy, ignore=shutil.ignore_patterns("algorithms", "*.ko", "*.o", ".*"))
    kbuild = copy / "Kbuild"
    text = kbuild.read_text()
    for name in {*re.findall(r"\bhowdah_\w+(?=\.o\b)", text)} - {_CORE}:
        text = text.replace(f"{name}.o", "")
    kbuild.write_text(text)
    (copy / "algorithms").mkdir()
    for name in ("one", "two"):
        (copy / f"algorithms/ss_{name}.c").write_text(_PLUG_IN % {"name": name})
    monkeypatch.setattr(modules, "PROJECT_MODULES", copy)
    (copy / "algorithms/ss_alone.c").write_text(_BYSTANDER)
    return copy


def test_each_module_fails_alone(built: Built, project: Path, tmp_path: Path) -> None:
    """One does not compile, one needs a symbol that the kernel lacks, and three are as they were."""
    wrong, lacking = (project / f"algorithms/ss_{name}.c" for name in ("one", "two"))
    shutil.copyfile(wrong, project / "algorithms/ss_good.c")
    wrong.write_text(wrong.read_text().replace("return 0", "return nothing"))
    needs = lacking.read_text().replace("return 0", "return no_such_symbol()")
    lacking.write_text("#include <linux/types.h>\nextern u32 no_such_symbol(void);\n" + needs)
    found = provide_modules(built.kernel, [], ignore, Cache(tmp_path / "cache"))
    assert set(found.built) == {"ss_alone", _CORE, "ss_good"}
    assert found.failed["ss_one"].where == f"{wrong}:2"
    assert built.kernel.release in found.failed["ss_one"].what
    assert "nothing" in found.failed["ss_one"].what
    assert f"kernel {built.kernel.release} does not export: no_such_symbol" in found.failed["ss_two"].what
    assert [module.name for module in found.choose(["ss_good"])] == ["howdah_slow_start", "ss_good"]


def test_what_needs_a_broken_module_is_told_whose_fault_it_is(built: Built, project: Path, tmp_path: Path) -> None:
    core = project / "slow_start/flow.c"
    core.write_text(core.read_text() + "int mistake(void) { return missing; }\n")
    found = provide_modules(built.kernel, [], ignore, Cache(tmp_path / "cache"))
    assert set(found.built) == {"ss_alone"}
    assert set(found.failed) == {_CORE, "ss_one", "ss_two"}
    line = len(core.read_text().splitlines())
    for error in found.failed.values():
        assert error.where == f"{core}:{line}"
        assert "missing" in error.what
    assert "ss_one needs howdah_slow_start" in found.failed["ss_one"].what


def test_a_plug_in_of_the_users_own_uses_the_core(built: Built, tmp_path: Path) -> None:
    source = tmp_path / "my plug-ins/ss_mine.c"
    source.parent.mkdir()
    source.write_text(_PLUG_IN % {"name": "mine"})
    found = provide_modules(built.kernel, [str(source)], ignore)
    assert [module.name for module in found.choose(["ss_mine"])] == ["howdah_slow_start", "ss_mine"]


def test_the_other_runs_of_a_profile_go_on(built: Built, tmp_path: Path) -> None:
    assert built.kernel.image.is_file()
    wrong = tmp_path / "tcp_wrong.c"
    wrong.write_text("#include <linux/module.h>\nint wrong(void) { return mistaken; }\n")
    profile = tmp_path / "mixed.yaml"
    text = QUICK.read_text().replace("algorithm: [cubic, reno]", "algorithm: [wrong, cubic]\nmodules: [./tcp_wrong.c]")
    profile.write_text(text.replace("name: quick", "name: mixed"))
    answer = howdah("run", profile, "--no-report", "--runs", tmp_path / "runs")
    assert answer.returncode == 4, answer.stdout + answer.stderr
    runs = {path.name.split("-")[0]: path for path in (tmp_path / "runs/mixed").glob("*-r0-*")}
    assert json.loads((runs["cubic"] / "verdict.json").read_text())["verdict"] == "pass"
    failed = json.loads((runs["wrong"] / "run.json").read_text())
    assert failed["status"] == "failed"
    assert failed["kernel"]["release"] == built.kernel.release
    for said in (failed["error"], answer.stdout):
        assert f"{wrong}:2" in said
        assert built.kernel.release in said

    alone = howdah("run", profile, "--no-report", "--runs", tmp_path / "alone", "--set", "algorithm=wrong")
    assert alone.returncode == 1, "without any other run, it is an error before anything is run"
    assert f"{wrong}:2" in alone.stderr
    assert not list((tmp_path / "alone").glob("mixed/*-r0-*"))


def test_a_kernel_too_old_for_virtual_time_costs_its_own_runs_alone(built: Built, tmp_path: Path) -> None:
    assert built.kernel.image.is_file()
    old = tmp_path / "linux-4.19"
    for file in ("arch/um/Makefile", "net/ipv4/tcp.c", "Kconfig"):
        (old / file).parent.mkdir(parents=True, exist_ok=True)
        (old / file).touch()
    (old / "Makefile").write_text("VERSION = 4\nPATCHLEVEL = 19\nSUBLEVEL = 0\nallnoconfig:\n\ttouch $(O)/.config\n")
    profile = tmp_path / "old.yaml"
    text = QUICK.read_text().replace("algorithm: [cubic, reno]", f"algorithm: cubic\nkernel: [debian-6.12, {old}]")
    profile.write_text(text.replace("name: quick", "name: old"))
    short = ("--set", "duration=1 s", "--set", "calibrate=false")
    answer = howdah("run", profile, "--no-report", "--runs", tmp_path / "runs", *short)
    assert answer.returncode == 4, answer.stdout + answer.stderr
    records = [json.loads(path.read_text()) for path in (tmp_path / "runs/old").glob("*-r0-*/run.json")]
    errors = {record["status"]: record["error"] for record in records}
    assert {*errors} == {"finished", "failed"}
    for said in (errors["failed"], " ".join(answer.stdout.split())):
        assert "Linux 4.19 is too old for virtual time" in said
        assert "CONFIG_UML_TIME_TRAVEL_SUPPORT" in said
