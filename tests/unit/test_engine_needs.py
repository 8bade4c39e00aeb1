# SPDX-License-Identifier: Apache-2.0
"""What an engine lacks is found, named with its remedy, and keeps the engine from starting."""

from __future__ import annotations

import errno
import os
import platform
import shlex
import shutil
import sys
import threading
import types
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import howdah.distribution
from howdah import distribution
from howdah.build import supply
from howdah.build.cache import Cache
from howdah.command import doctor
from howdah.distribution import install_command, install_extra
from howdah.engine import engine as engines
from howdah.engine import host
from howdah.engine.engine import MISSING, OK, EngineCheck, Lack, lacks_of, prerequisites, require
from howdah.engine.ns2 import needs as ns2_needs
from howdah.engine.registry import engine
from howdah.engine.uml import memory, needs
from howdah.engine.vm import needs as vm_needs
from howdah.errors import EngineUnavailableError
from tests.unit.bundle_factory import ready_piece, write_bundle

_SIZE = {"xstate_bytes": 2696}


def test_engines_by_name() -> None:
    assert engine("uml").parallel
    assert not engine("host").parallel
    with pytest.raises(EngineUnavailableError, match="'qemu'"):
        engine("qemu")


def test_only_what_is_missing_keeps_an_engine_from_running() -> None:
    checks = [
        EngineCheck("uml", "a", OK, "there"),
        EngineCheck("uml", "b", "note", "slow"),
        EngineCheck("uml", "c", MISSING, "no", "buy"),
    ]
    assert lacks_of(checks) == [Lack("c", "no", "buy")]


def test_the_refusal_names_lack_remedy_and_alternative() -> None:
    with pytest.raises(EngineUnavailableError) as caught:
        require([Lack("sch_netem", "tried: unknown", "modprobe sch_netem")], "host", "Use uml.")
    message = str(caught.value)
    assert all(part in message for part in ("host", "sch_netem", "tried: unknown", "modprobe sch_netem", "Use uml."))
    assert caught.value.exit_code == 3
    require([], "host", "")


def test_prerequisites_name_package_evidence_and_purpose(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shipped = {item.package for item in prerequisites()}
    assert {"gcc", "make", "flex", "bison", "bc", "mmdebstrap", "linux-source-6.12"} <= shipped
    listing = tmp_path / "prerequisites.txt"
    listing.write_text(f"# comment\nhere  {tmp_path}  testing\ngone  {tmp_path}/gone  testing more\n")
    monkeypatch.setattr(engines, "PREREQUISITES", listing)
    here, gone = prerequisites()
    assert here.there
    assert not gone.there
    assert gone.purpose == "testing more"


def test_a_missing_compiler_is_a_lack_with_one_remedy(monkeypatch: pytest.MonkeyPatch) -> None:
    real = shutil.which
    monkeypatch.setattr(shutil, "which", lambda name, *rest: None if name in ("gcc", "ld") else real(name, *rest))
    monkeypatch.setattr(needs, "install_command", lambda names: f"apt install {' '.join(names)}")
    (lack,) = [lack for lack in needs.lacks() if lack.what == "packages"]
    assert lack.remedy.startswith("pip install howdah-guest, or apt install")
    assert "binutils" in lack.remedy
    assert "gcc" in lack.remedy


def test_another_kind_of_machine_is_the_one_thing_that_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(platform, "machine", lambda: "aarch64")
    monkeypatch.setattr(shutil, "which", lambda _name, *_rest: None)
    (lack,) = needs.lacks()
    assert lack.why == "linux, aarch64"
    assert "x86_64" in lack.remedy
    assert [check.what for check in needs.checks()] == ["machine"]


def _given(monkeypatch: pytest.MonkeyPatch, *kinds: str) -> None:
    """Bundles have these kinds of pieces, and this machine no program at all."""
    monkeypatch.setattr(shutil, "which", lambda _name, *_rest: None)
    given = SimpleNamespace(image_sha256="", source_dir=Path("none"))
    monkeypatch.setattr(needs, "bundled_kernel", lambda *_: given if "kernel" in kinds else None)
    monkeypatch.setattr(needs, "is_in_bundle", lambda kind, _recipe, _cache: kind in kinds)
    monkeypatch.setattr(needs, "_kernel_built", lambda *_: False)


def _packages(**asked: Any) -> EngineCheck:
    (found,) = [item for item in needs.checks(**asked) if item.what == "packages"]
    return found


def test_with_a_bundle_nothing_is_needed_but_what_a_run_compiles(monkeypatch: pytest.MonkeyPatch) -> None:
    _given(monkeypatch, "kernel", "tree", "tool", "module")
    assert _packages().status == OK
    own = _packages(compiles=True)
    assert own.status == MISSING
    assert "gcc" in own.found
    assert "make" in own.found
    assert not any(name in own.found for name in ("flex", "bison", "mmdebstrap", "linux-source", "patch"))
    assert "howdah-guest" not in str(own.remedy), "it is there"


def test_a_bundle_of_an_older_howdah_leaves_what_changed_since(monkeypatch: pytest.MonkeyPatch) -> None:
    _given(monkeypatch, "kernel", "tree", "tool")
    assert "gcc" in _packages().found, "the modules have changed"
    _given(monkeypatch, "tree", "tool", "module")
    assert "flex" in _packages().found, "the kernel is configured in another way"
    assert "mmdebstrap" not in _packages().found


@pytest.mark.parametrize(
    ("system", "said"),
    [
        ("ID=debian\n", "apt install gcc libc6-dev"),
        ('ID=ubuntu\nID_LIKE="debian"\n', "apt install gcc libc6-dev"),
        ("ID=fedora\n", "dnf install gcc glibc-static"),
        ('ID="rocky"\nID_LIKE="rhel centos fedora"\n', "dnf install gcc glibc-static"),
        ("ID=arch\n", "pacman -S gcc glibc"),
        ("ID=alpine\n", "apk add gcc musl-dev"),
        ("ID=plan9\n", None),
    ],
)
def test_a_remedy_is_in_the_words_of_the_machine(system: str, said: str | None) -> None:
    assert install_command(["gcc", "libc6-dev"], system) == said
    if said and not said.startswith("apt"):
        assert install_command(["gcc", "linux-source-6.12"], system) is None, "Debian alone has it"


def test_the_doctor_speaks_the_language_of_the_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(distribution, "OS_RELEASE", tmp_path / "os-release")
    distribution.OS_RELEASE.write_text("ID=fedora\n")
    monkeypatch.setattr(host, "_SYSTEM_PROGRAMS", "")
    monkeypatch.setenv("PATH", str(tmp_path))  # nothing is installed
    found = [*host.checks(), *vm_needs.every_check(Cache(tmp_path / "cache")), *ns2_needs.checks(), doctor._perf()]
    remedies = {check.what: str(check.remedy) for check in found}
    assert remedies["ethtool"] == "dnf install ethtool"
    assert remedies["tc"] == "dnf install iproute"
    assert remedies["perf"] == "dnf install perf"
    assert remedies["ns"] == "Install what Debian calls ns2."
    assert not [remedy for remedy in remedies.values() if "apt " in remedy]


@pytest.mark.parametrize(
    ("trial", "what", "status"),
    [
        (
            {"ptrace": "PTRACE_TRACEME: Operation not permitted", "xstate_bytes": None, "namespaces": None},
            "ptrace",
            MISSING,
        ),
        ({"ptrace": None, "xstate_bytes": 2696, "namespaces": "Operation not permitted"}, "PID namespaces", "note"),
        ({"ptrace": None, "xstate_bytes": 11008, "namespaces": None}, "processor state", OK),
        (
            {"ptrace": None, "xstate_bytes": 2696, "namespaces": None, "files": "Function not implemented"},
            "guest's files",
            "note",
        ),
        (
            {"ptrace": None, "xstate_bytes": 2696, "namespaces": None, "truncation": "Landlock is of version 2"},
            "guest's truncation",
            "note",
        ),
        (
            {"ptrace": None, "xstate_bytes": 2696, "namespaces": None, "network": "No space left"},
            "guest's network",
            "note",
        ),
        (
            {"ptrace": None, "xstate_bytes": 2696, "namespaces": None, "addresses": "not permitted"},
            "guest's addresses",
            "note",
        ),
    ],
)
def test_what_was_tried_decides(monkeypatch: pytest.MonkeyPatch, trial: dict[str, Any], what: str, status: str) -> None:
    monkeypatch.setattr(needs, "_try", lambda: trial)
    found = {item.what: item for item in needs.checks()}
    assert found[what].status == status
    if status == MISSING:
        assert found[what].remedy


def test_memory_directories_are_tried(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert memory.examine(tmp_path, 4096).problem is None
    assert "needed" in str(memory.examine(tmp_path, 1 << 60).problem)
    assert memory.examine(tmp_path / "gone", 4096).problem == os.strerror(errno.ENOENT)
    monkeypatch.setenv("HOWDAH_MEMORY_DIR", str(tmp_path / "gone"))
    with pytest.raises(EngineUnavailableError, match="gone: No such file") as caught:
        memory.choose(1 << 20)
    assert "HOWDAH_MEMORY_DIR" in str(caught.value)
    monkeypatch.setenv("HOWDAH_MEMORY_DIR", str(tmp_path))
    assert memory.choose(1 << 20) == tmp_path


def test_the_host_engine_says_what_the_kernel_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(host, "_TRIALS", {"sch_netem": ["false"]})
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setattr(shutil, "which", lambda name: f"/usr/bin/{name}")
    found = {item.what: item for item in host.checks()}
    assert found["sch_netem"].status == MISSING
    assert "modprobe sch_netem" in str(found["sch_netem"].remedy)
    with pytest.raises(EngineUnavailableError, match="sch_netem") as caught:
        host.HostEngine().prepare([], lambda _what, _done, _total: None)
    assert "uml engine" in str(caught.value)


def test_the_host_engine_needs_root(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    assert next(item for item in host.checks() if item.what == "root").status == MISSING


def test_a_program_that_path_does_not_have_is_not_asked_to_be_installed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As of ``su`` on Debian: /usr/sbin has tc, PATH has no /usr/sbin."""
    tc = tmp_path / "tc"
    tc.touch(mode=0o755)
    monkeypatch.setattr(host, "_SYSTEM_PROGRAMS", str(tmp_path))
    monkeypatch.setenv("PATH", str(tmp_path / "elsewhere"))
    found = {item.what: item for item in host.checks()}
    assert found["tc"].status == found["ethtool"].status == MISSING
    assert str(tmp_path) in found["tc"].found
    assert found["tc"].remedy == f"export PATH=$PATH:{tmp_path}"
    assert found["ethtool"].remedy == "apt install ethtool"


def test_doctor_covers_every_engine() -> None:
    checks = doctor.examine(60)
    assert {"uml", "host", "vm", "all"} <= {item.engine for item in checks}
    assert all(item.found and item.status in (OK, MISSING, "note") for item in checks)


def test_the_doctor_does_not_wait_for_what_hangs() -> None:
    over = threading.Event()

    def hang() -> list[EngineCheck]:
        over.wait()
        return []

    try:
        groups: list[tuple[str, Any]] = [
            ("host", hang),
            ("all", lambda: [EngineCheck("all", "cache", OK, "there")]),
        ]
        found = doctor._run_groups(0.5, groups)
        assert found[0].engine == "host"
        assert "no answer" in found[0].found
    finally:
        over.set()


@pytest.mark.parametrize(("made", "status"), [("2020-01-01", "note"), ("2099-01-01", OK)])
def test_the_doctor_tells_the_age_of_a_bundle(
    made: str, status: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = tmp_path / "b"
    write_bundle(target, [ready_piece(tmp_path)], made=made)
    monkeypatch.setenv(supply.VARIABLE, str(target))
    monkeypatch.setattr(supply, "installed", lambda: None)
    (found,) = doctor._bundles(Cache(tmp_path / "cache"))
    assert found.status == status
    assert made in found.found
    assert "not signed" in found.found


def test_a_bundle_that_is_not_whole_leaves_the_other_checks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    target = tmp_path / "b"
    target.write_bytes(b"no bundle")
    monkeypatch.setenv(supply.VARIABLE, str(target))
    monkeypatch.setattr(doctor, "vm_needs", types.SimpleNamespace(every_check=lambda _: []))  # it boots a kernel
    found = doctor.examine(60)
    (told,) = [each for each in found if str(target) in each.found]
    assert (told.engine, told.status) == ("uml", MISSING)
    assert "Fetch it again" in str(told.remedy)
    assert {"root", "cache"} <= {each.what for each in found}


def test_a_process_that_is_traced_is_told_who_traces_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(needs, "_try", lambda: {"ptrace": "PTRACE_TRACEME: not permitted", "namespaces": None, **_SIZE})
    monkeypatch.setattr(needs, "_tracer", lambda: "4711")
    told = {item.what: item for item in needs.checks()}["ptrace"]
    assert told.status == MISSING
    assert "4711" in told.found
    assert "strace" in str(told.remedy)
    monkeypatch.setattr(needs, "_tracer", lambda: None)
    assert "SYS_PTRACE" in str({item.what: item for item in needs.checks()}["ptrace"].remedy)


def test_a_cache_where_no_program_starts_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = os.statvfs(tmp_path)
    flags = types.SimpleNamespace(f_flag=real.f_flag | os.ST_NOEXEC)
    monkeypatch.setattr(os, "statvfs", lambda _place: flags)
    found = needs._programs(Cache(tmp_path / "not" / "there"))
    assert found.status == MISSING
    assert "HOWDAH_CACHE" in str(found.remedy)


def test_a_cache_that_cannot_be_used_is_one_of_the_checks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor, "vm_needs", types.SimpleNamespace(every_check=lambda _: []))  # it boots a kernel
    monkeypatch.setenv("HOWDAH_CACHE", str(tmp_path / "my cache"))
    found = doctor.examine(60)
    (told,) = [each for each in found if each.what == "cache"]
    assert told.status == MISSING
    assert "HOWDAH_CACHE" in (told.remedy or "")
    assert {"machine", "guest tree", "root"} <= {each.what for each in found}, "the other checks are made all the same"
    monkeypatch.setenv("HOWDAH_CACHE", str(tmp_path / "cache"))
    (told,) = [each for each in doctor.examine(60) if each.what == "cache"]
    assert (told.status, told.found) == (OK, str(tmp_path / "cache"))


# How an extra is installed: into the environment that runs howdah, whatever the shell calls pip


def test_pip_is_that_of_this_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(howdah.distribution, "find_spec", lambda _name: object())
    monkeypatch.setattr(sys, "executable", "/opt/a place/bin/python")
    words = shlex.split(install_extra("figures"))
    assert words == ["/opt/a place/bin/python", "-m", "pip", "install", "howdah[figures]"]


def test_without_pip_it_is_a_tool_of_uv(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(howdah.distribution, "find_spec", lambda _name: None)
    assert shlex.split(install_extra("search")) == ["uv", "tool", "install", "howdah[guest,search]"]
