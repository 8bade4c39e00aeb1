# SPDX-License-Identifier: Apache-2.0
"""What is installed with pip works anywhere, without the checkout, and is the same bytes for the same files."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

from howdah import __version__, place
from howdah.command.manual import PAGE
from howdah.engine.share import agent_key
from howdah.errors import ProfileError
from howdah.machines.archive import modules, programs
from howdah.machines.image import sources_key
from howdah.place import PROFILES
from howdah.profile.schema import json_schema
from howdah.record.provenance import agent_sha256, analysis_sha256, sha256_text
from howdah.work.catalogue import find_profile, shipped_profiles
from tests.wheel import ROOT, build, install, run

# Of the packages of the project, those that a program is made of.
_PACKAGES = ("howdah", "collectors", "topologies")
_IDENTITY = """
import json, sys
from howdah.engine.share import agent_key
from howdah.machines.archive import modules, programs
from howdah.machines.image import sources_key
from howdah.record.provenance import agent_sha256, analysis_sha256, sha256_text, software
import howdah.command.main, collectors.ss, topologies.dumbbell
print(json.dumps({
    "keys": [agent_sha256(), analysis_sha256(), agent_key(), agent_key("mininet"), sources_key(),
             sha256_text(programs().hex()), sha256_text(modules().hex())],
    "files": {name: module.__file__ for name, module in sys.modules.items() if getattr(module, "__file__", None)},
    "software": software().plain(),
}))
"""


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """The wheel and the sdist of this checkout."""
    return build(ROOT, tmp_path_factory.mktemp("built"))


@pytest.fixture(scope="module")
def elsewhere(built: tuple[Path, Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Somebody's git repository, with an environment ``env`` that has the wheel."""
    theirs = tmp_path_factory.mktemp("elsewhere")
    git = ["git", "-C", str(theirs), "-c", "user.name=a", "-c", "user.email=a@example.org"]
    subprocess.run([*git, "init", "--quiet"], check=True)
    subprocess.run([*git, "commit", "--quiet", "--allow-empty", "--message", "theirs"], check=True)
    install(built[0], theirs / "env")
    return theirs


def _howdah(elsewhere: Path, *arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
    return run(elsewhere / "env/bin/howdah", *arguments, cwd=elsewhere, **variables)


def _tracked(*folders: str) -> set[str]:
    done = subprocess.run(["git", "-C", str(ROOT), "ls-files", "-z", *folders], capture_output=True, check=False)
    if done.returncode != 0:
        pytest.skip("the checkout is no git repository, so nothing says which files are the project's")
    return {name for name in os.fsdecode(done.stdout).split("\0") if (ROOT / name).is_file()}


def test_site_packages_gets_one_name(built: tuple[Path, Path]) -> None:
    with zipfile.ZipFile(built[0]) as wheel:
        tops = {name.partition("/")[0] for name in wheel.namelist()}
    assert {top for top in tops if not top.endswith((".dist-info", ".data"))} == {"howdah"}


def test_the_wheel_has_every_file_that_the_program_reads(built: tuple[Path, Path]) -> None:
    with zipfile.ZipFile(built[0]) as wheel:
        modes = {entry.filename: entry.external_attr >> 16 for entry in wheel.infolist()}
    # The documentation is not part of the program.
    folders = {value.name for value in vars(place).values() if isinstance(value, Path) and value.parent == ROOT}
    data = _tracked(*folders - {"howdah", "docs"})
    assert {"collectors", "modules", "playbooks", "profiles", "reports", "topologies"} <= folders
    assert {f"howdah/_shipped/{name}" for name in data} | _tracked("howdah") <= modes.keys()
    assert modes["howdah/machines/root/mount.sh"] & 0o111


def test_the_sdist_has_every_file_of_the_project(built: tuple[Path, Path]) -> None:
    with tarfile.open(built[1]) as sdist:
        names = {name.partition("/")[2] for name in sdist.getnames()}
    assert _tracked() - names == set()


def test_two_builds_are_equal_bytes(built: tuple[Path, Path], tmp_path: Path) -> None:
    """The second is made of the unpacked sdist, in another directory, with other times and other modes of the files."""
    subprocess.run(["tar", "--extract", "--file", str(built[1]), "--directory", str(tmp_path)], check=True)
    (source,) = tmp_path.iterdir()
    for file in source.rglob("*"):
        if file.is_file():
            file.chmod(file.stat().st_mode & 0o700)
            os.utime(file, (1_000_000_000, 1_000_000_000))
    again = build(source, tmp_path / "again")
    assert [file.name for file in again] == [file.name for file in built]
    assert [file.read_bytes() for file in again] == [file.read_bytes() for file in built]


def test_what_is_installed_is_the_same_program_and_reads_no_checkout(elsewhere: Path) -> None:
    """Keys of runs, guests and hosts are equal, so what one of the two has made the other finds."""
    done = run(elsewhere / "env/bin/python", "-c", _IDENTITY, cwd=elsewhere)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    own = [agent_sha256(), analysis_sha256(), agent_key(), agent_key("mininet"), sources_key()]
    assert found["keys"] == [*own, sha256_text(programs().hex()), sha256_text(modules().hex())]
    ours = {name: file for name, file in found["files"].items() if name.partition(".")[0] in _PACKAGES}
    assert {name.partition(".")[0] for name in ours} == set(_PACKAGES)
    assert {name: file for name, file in ours.items() if not Path(file).is_relative_to(elsewhere / "env")} == {}


def test_the_repository_around_an_installation_is_not_taken_for_the_checkout(elsewhere: Path) -> None:
    code = "import json; from howdah.record.provenance import software; print(json.dumps(software().plain()))"
    done = run(elsewhere / "env/bin/python", "-c", code, cwd=elsewhere)
    assert json.loads(done.stdout) == {"version": __version__, "revision": None, "modified": None}


def test_list_shows_the_shipped_profiles(elsewhere: Path) -> None:
    done = _howdah(elsewhere, "list", "profiles", "--json")
    assert done.returncode == 0, done.stderr
    assert {row["profile"] for row in json.loads(done.stdout)["profiles"]} == set(shipped_profiles())


def test_an_editor_finds_the_schema_that_the_shipped_profiles_name(elsewhere: Path) -> None:
    schema = Path(_howdah(elsewhere, "schema").stdout.strip())
    assert schema.is_relative_to(elsewhere / "env")
    assert json.loads(schema.read_text(encoding="utf-8")) == json_schema()
    profiles = schema.parents[1] / "profiles"
    for name in ("quick.yaml", "paths/geo.yaml"):
        line = (profiles / name).read_text(encoding="utf-8").splitlines()[1]
        assert (profiles / name).parent.joinpath(line.partition("$schema=")[2]).resolve() == schema.resolve()


def test_new_names_the_installed_schema_and_its_profile_can_be_planned(elsewhere: Path) -> None:
    done = _howdah(elsewhere, "new", "first", "--like", "geo", "--repetitions", "1")
    assert done.returncode == 0, done.stderr
    assert str(elsewhere / "env") in (elsewhere / "first.yaml").read_text(encoding="utf-8").splitlines()[0]
    assert _howdah(elsewhere, "plan", "first.yaml").returncode == 0


def test_the_manual_page_is_where_man_looks(elsewhere: Path) -> None:
    installed = elsewhere / "env" / "share" / "man" / "man1" / "howdah.1"
    assert installed.read_bytes() == (ROOT / "docs" / PAGE).read_bytes()


def test_a_shell_completes_what_is_installed(elsewhere: Path) -> None:
    done = _howdah(elsewhere, "completion", "bash")
    assert done.returncode == 0, done.stderr
    assert "complete" in done.stdout


def test_plan_is_that_of_the_checkout(elsewhere: Path) -> None:
    done = _howdah(elsewhere, "plan", "quick", "--json")
    assert done.returncode == 0, done.stderr
    here = subprocess.run(
        [sys.executable, "-m", "howdah.command.main", "plan", "quick", "--json"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    (shipped,) = (elsewhere / "env").glob("lib/python*/site-packages/howdah/_shipped")
    # A plan says which line of which file sets a kernel parameter, from the directory of the command.
    place_here = PROFILES.relative_to(ROOT) / "quick.yaml"
    place_there = shipped.relative_to(elsewhere) / "profiles/quick.yaml"
    assert f'"{place_there}:' in done.stdout
    found = done.stdout.replace(f'"{place_there}:', f'"{place_here}:')
    assert json.loads(found) == json.loads(here.stdout)


@pytest.mark.parametrize("name", ["hystart-fig1", "atlas/hystart-fig1", "paths/geo"])
def test_a_shipped_profile_is_found_by_name(name: str) -> None:
    assert find_profile(name).name == f"{name.rpartition('/')[2]}.yaml"


def test_a_file_that_is_not_there_is_like_a_shipped_profile_only_where_it_is_much_alike(tmp_path: Path) -> None:
    other = tmp_path / "such.yaml"
    assert find_profile(str(other)) == other, "which is then reported as missing; 'quic' has half of its letters"
    with pytest.raises(ProfileError) as caught:
        find_profile(str(tmp_path / "quik.yaml"))
    assert caught.value.hint == "Did you mean quick?"
    (tmp_path / "sunk.yaml").touch()
    with pytest.raises(ProfileError) as caught:
        find_profile(str(other))
    assert caught.value.hint == f"Did you mean {tmp_path / 'sunk.yaml'}?"


def test_a_name_without_its_ending_means_the_file_beside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("below").mkdir()
    for name in ("wide", "below/wide", f"{tmp_path}/wide"):
        Path(f"{name}.yaml").touch()
        with pytest.raises(ProfileError, match=f"there is no profile '{name}'") as caught:
            find_profile(name)
        assert caught.value.hint == f"Did you mean {name}.yaml?"
    assert find_profile(".") == Path(), "of which its reader says that it is a directory"


def test_doctor_looks_at_every_engine(elsewhere: Path) -> None:
    done = _howdah(elsewhere, "doctor")
    assert "Traceback" not in done.stderr
    for name in ("uml", "vm", "host"):
        assert f"engine {name}" in done.stdout


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("profiles/quick.yaml", "The shipped profile is called quick."),
        ("nothing-like-it-at-all", "'howdah list profiles' has them all"),
    ],
)
def test_a_profile_that_is_not_there_is_told_what_there_is(
    name: str, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ProfileError) as caught:
        find_profile(name)
    assert said in str(caught.value)


def test_a_directory_of_a_profiles_name_does_not_hide_the_profile(elsewhere: Path) -> None:
    (elsewhere / "quick").mkdir()
    try:
        assert _howdah(elsewhere, "plan", "quick").returncode == 0
    finally:
        shutil.rmtree(elsewhere / "quick")


def test_every_profile_has_a_name_of_its_own() -> None:
    files = [file for file in PROFILES.rglob("*.yaml") if file.parent.name != "suites"]
    assert len(shipped_profiles()) == len(files)


@pytest.mark.parametrize("named", ["", "kept"])
def test_runs_are_where_the_environment_says(elsewhere: Path, named: str) -> None:
    """And in ./runs where it says nothing: an empty variable counts as none."""
    experiment = elsewhere / (named or "runs") / "unreadable"
    experiment.mkdir(parents=True)
    (experiment / "experiment.json").write_text("no JSON", encoding="utf-8")
    try:
        done = _howdah(elsewhere, "list", "runs", HOWDAH_RUNS=named)
    finally:
        shutil.rmtree(experiment.parent)
    assert done.returncode != 0
    assert str(experiment.relative_to(elsewhere)) in done.stderr
