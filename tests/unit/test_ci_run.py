# SPDX-License-Identifier: Apache-2.0
"""``.ci/run`` runs the test command in a clone at an awkward path, passes its status on and leaves nothing behind."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import time
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
_MAKEFILE = """\
test:
\t@pwd; cat words; echo '3 passed'; exit $$(cat status)
"""


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A small repository with the real ``.ci/run`` and a Makefile whose tests end with the status in a file."""
    for program in ("git", "make"):
        if shutil.which(program) is None:
            pytest.skip(f"{program} is not installed")
    place = tmp_path / "checkout"
    (place / ".ci").mkdir(parents=True)
    shutil.copy(ROOT / ".ci/run", place / ".ci/run")
    (place / "Makefile").write_text(_MAKEFILE)
    (place / "words").write_text("committed\n")
    (place / "status").write_text("0\n")
    _git(place, "init", "--quiet")
    _commit(place)
    return place


def _git(place: Path, *arguments: str) -> None:
    own = ["-c", "user.name=a", "-c", "user.email=a@b", "-c", "core.hooksPath=/dev/null"]
    subprocess.run(["git", "-C", str(place), *own, *arguments], check=True, capture_output=True)


def _commit(place: Path) -> None:
    _git(place, "add", "--all")
    _git(place, "commit", "--quiet", "--message", "all")


def _environment(temporary: Path) -> dict[str, str]:
    """This process's environment without what an outer ``make`` leaves in it: a level above 0 makes make talkative."""
    temporary.mkdir(exist_ok=True)
    own = {name: value for name, value in os.environ.items() if not name.startswith("MAKE") and name != "MFLAGS"}
    return {**own, "CI": "true", "TMPDIR": str(temporary)}


def _run(checkout: Path, temporary: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["bash", ".ci/run"],
        cwd=checkout,
        env=_environment(temporary),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def test_tests_run_in_a_clone_whose_path_is_awkward(checkout: Path, tmp_path: Path) -> None:
    (checkout / "words").write_text("not committed\n")
    done = _run(checkout, tmp_path / "temporary")
    where, words, last = done.stdout.splitlines()
    assert " " in Path(where).parent.name
    assert "ü" in Path(where).parent.name
    assert Path(where).parents[1] == tmp_path / "temporary"
    assert (words, last) == ("committed", "3 passed")
    assert "not committed" in done.stderr
    assert done.returncode == 0
    assert list((tmp_path / "temporary").iterdir()) == []


def test_a_failure_is_passed_on(checkout: Path, tmp_path: Path) -> None:
    (checkout / "status").write_text("3\n")
    _commit(checkout)
    done = _run(checkout, tmp_path / "temporary")
    assert done.returncode == 2  # make's
    assert done.stdout.splitlines()[-1] == "3 passed"
    assert list((tmp_path / "temporary").iterdir()) == []


def test_a_shallow_checkout_of_a_commit_is_tested(checkout: Path, tmp_path: Path) -> None:
    (checkout / "words").write_text("the second\n")
    _commit(checkout)
    shallow = tmp_path / "shallow"
    url = checkout.as_uri()
    subprocess.run(["git", "clone", "--quiet", "--depth", "1", url, str(shallow)], check=True, capture_output=True)
    _git(shallow, "checkout", "--quiet", "--detach")
    done = _run(shallow, tmp_path / "temporary")
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[1:] == ["the second", "3 passed"]


def test_what_is_no_repository_is_copied(checkout: Path, tmp_path: Path) -> None:
    shutil.rmtree(checkout / ".git")
    (checkout / ".venv").mkdir()
    (checkout / "Makefile").write_text("test:\n\t@pwd; ls -A; cat words\n")
    done = _run(checkout, tmp_path / "temporary")
    assert done.returncode == 0, done.stderr
    assert ".venv" not in done.stdout
    assert done.stdout.splitlines()[-1] == "committed"


def test_one_that_is_told_to_end_leaves_nothing(checkout: Path, tmp_path: Path) -> None:
    started = tmp_path / "started"
    (checkout / "Makefile").write_text(f"test:\n\t@echo $$$$ > '{started}'; exec sleep 600\n")
    _commit(checkout)
    environment = _environment(tmp_path / "temporary")
    process = subprocess.Popen(["bash", ".ci/run"], cwd=checkout, env=environment, stdin=subprocess.DEVNULL)
    try:
        while not (started.exists() and started.read_text().strip()):
            assert process.poll() is None
            time.sleep(0.01)
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 143
    finally:
        process.kill()
        process.wait()
    assert list((tmp_path / "temporary").iterdir()) == []
    assert not Path(f"/proc/{started.read_text().strip()}").exists()
