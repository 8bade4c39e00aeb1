# SPDX-License-Identifier: Apache-2.0
"""With the wheel howdah-guest a machine that has nothing makes the same runs as the one that built it."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import sysconfig
import zipfile
from pathlib import Path

import pytest

import howdah
from howdah.build.cache import Cache, content_key
from howdah.cluster.store import results_sha256
from howdah.default import DEFAULT_KERNEL
from howdah.engine.uml.bundling import make_bundle
from howdah.place import PROJECT
from howdah.record.closure import remembered_sha256
from howdah.record.directory import RunDirectory
from howdah.work.batch import RunEvent
from tests import remembered
from tests.guest.bare_root import run_in_bare_root
from tests.guest.guest_run import require_engine
from tests.guest.remembered_run import launcher_sha256
from tests.wheel import build, install

_EPOCH = "1764288000"


def _guest_wheel(place: Path) -> Path:
    """The wheel of the project in guest/, filled by the bundle in ``place``."""
    project = place / "guest"
    shutil.copytree(PROJECT / "guest", project, ignore=shutil.ignore_patterns("bundle"))
    filled = project / "src/howdah_guest/bundle"
    filled.mkdir()
    make_bundle(filled, [DEFAULT_KERNEL], [], lambda *_: None, level=1)
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(place / "built")]
    subprocess.run(command, cwd=project, check=True, capture_output=True)
    (wheel,) = (place / "built").glob("howdah_guest-*.whl")
    return wheel


@pytest.fixture(scope="module")
def first(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel, of what this machine has built."""
    require_engine()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SOURCE_DATE_EPOCH", _EPOCH)
        patch.setenv("HOWDAH_BUNDLE", "none")
        return _guest_wheel(tmp_path_factory.mktemp("one"))


def test_two_builds_of_the_wheel_have_the_same_bytes(
    first: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In two directories. For the second, modules, tools and agent are compiled anew, and all is packed anew.

    Not again where the same code has made the same wheel: it has all that the second is made of.
    """
    monkeypatch.setenv("SOURCE_DATE_EPOCH", _EPOCH)
    monkeypatch.setenv("HOWDAH_BUNDLE", "none")
    built = Cache()

    def check() -> None:
        cache = tmp_path / "cache"
        cache.mkdir()
        for kind in ("kernel", "tree"):
            (cache / kind).symlink_to(built.root / kind)
        monkeypatch.setenv("HOWDAH_CACHE", str(cache))
        (tmp_path / "a-longer-name").mkdir()
        second = _guest_wheel(tmp_path / "a-longer-name")
        assert list((cache / "module").iterdir())
        assert list((cache / "tool").iterdir())
        assert list((cache / "agent").iterdir())
        assert first.name == second.name
        assert _contents(first) == _contents(second), "these are what differs"
        assert first.read_bytes() == second.read_bytes()

    code = remembered_sha256(["howdah.engine.uml.bundling"])
    key = content_key(first.read_bytes(), code, launcher_sha256(), Path(__file__).read_bytes())
    remembered.once("equal-wheels", key, check, says=first.name, cache=built)


def _contents(wheel: Path) -> dict[str, str]:
    with zipfile.ZipFile(wheel) as opened:
        return {name: hashlib.sha256(opened.read(name)).hexdigest() for name in opened.namelist()}


def _needs_namespaces() -> None:
    if os.geteuid() and subprocess.run(["unshare", "-Urm", "true"], capture_output=True, check=False).returncode:
        pytest.skip("a root of its own takes root or user namespaces")


def _results(runs: Path) -> dict[str, str]:
    """Run to the digest of its measures and verdict."""
    return {run.name: results_sha256(RunDirectory(run)) for run in sorted((runs / "quick").glob("*-r0-*"))}


def test_a_root_without_anything_makes_the_same_runs(
    first: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No C library, compiler, apt or shell; read-only, noexec, a container's seccomp filter, a plain user."""
    _needs_namespaces()
    monkeypatch.setenv("SOURCE_DATE_EPOCH", _EPOCH)
    howdah_wheel, _ = build(PROJECT, tmp_path / "dist")
    install(howdah_wheel, tmp_path / "env", first)
    dependencies = Path(sysconfig.get_path("purelib"))
    site = tmp_path / "env" / dependencies.relative_to(sys.prefix)
    home = tmp_path / "home"
    home.mkdir()
    for parent in (tmp_path, *tmp_path.parents[:2]):
        parent.chmod(parent.stat().st_mode | 0o011)
    done = run_in_bare_root(
        ["-m", "howdah.command.main", "run", "quick", "--set", "path.rtt=47 ms", "--no-report"],
        places=[Path(sys.base_prefix), tmp_path / "env", dependencies],
        home=home,
        PYTHONPATH=f"{site}:{dependencies}",
    )
    assert done.returncode == 0, done.stdout + done.stderr

    events: list[RunEvent] = []
    data = howdah.run("quick", settings={"path.rtt": "47 ms"}, runs=tmp_path / "runs", on_event=events.append)
    there, here = _results(home / "runs"), _results(tmp_path / "runs")
    assert len(here) == 2
    assert there == here, "the names of runs have their keys in them: those are equal, too"
    assert sorted(event["run"] for event in events if event["event"] == "run") == sorted(here)
    assert {event["verdict"] for event in events if event["event"] == "run"} == {"pass"}
    assert len(data.runs) == 2
