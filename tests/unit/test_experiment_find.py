# SPDX-License-Identifier: Apache-2.0
"""Which directory a name on the command line means."""

from __future__ import annotations

from pathlib import Path

import pytest

from howdah.errors import HowdahError
from howdah.work.experiment import find


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    names = ("one/cubic-r0-aaaaaaaa", "one/cubic-r1-bbbbbbbb", "two/cubic-r0-cccccccc", "one/.partial-reno-r0-dd-7")
    for name in (*names, "reruns/cubic-r1-bbbbbbbb-20250101T000000"):
        (tmp_path / name).mkdir(parents=True)
        (tmp_path / name / "plan.json").touch()
    (tmp_path / "one" / "experiment.json").touch()
    (tmp_path / "latest").symlink_to("one")
    return tmp_path


@pytest.mark.parametrize(
    ("name", "means"),
    [
        ("one", "one"),
        ("latest", "one"),
        ("one/", "one"),
        ("one/cubic-r0-aaaaaaaa", "one/cubic-r0-aaaaaaaa"),
        ("one/cubic-r0", "one/cubic-r0-aaaaaaaa"),
        ("latest/cubic-r1", "one/cubic-r1-bbbbbbbb"),
        ("cubic-r1", "one/cubic-r1-bbbbbbbb"),
        ("cubic-r0-c", "two/cubic-r0-cccccccc"),
        ("reruns/cubic-r1", "reruns/cubic-r1-bbbbbbbb-20250101T000000"),
    ],
)
def test_a_name_means_one_directory(runs: Path, name: str, means: str) -> None:
    assert find(runs, name) == (runs / means).resolve()


@pytest.mark.parametrize(
    ("here", "below", "name", "found"),
    [
        ("", "runs", "one", "runs/one"),
        ("", "runs", "latest", "runs/one"),
        ("", "runs", "latest/cubic-r1", "runs/one/cubic-r1-bbbbbbbb"),
        ("", "runs", "runs/latest/", "runs/one"),
        ("", "linked", "cubic-r1", "linked/one/cubic-r1-bbbbbbbb"),
        ("runs", ".", "latest", "one"),
        ("runs", "../runs", "one/cubic-r0", "../runs/one/cubic-r0-aaaaaaaa"),
        ("runs/one", "..", "cubic-r1-bbbbbbbb", None),  # it lacks the name of the experiment
        ("runs/one", "..", ".", None),
    ],
)
def test_what_is_found_begins_as_it_was_written(
    runs: Path,
    tmp_path_factory: pytest.TempPathFactory,
    monkeypatch: pytest.MonkeyPatch,
    here: str,
    below: str,
    name: str,
    found: str | None,
) -> None:
    """Where the person stands, ``--runs``, the name. What lacks a name of its own is absolute."""
    top = tmp_path_factory.mktemp("top")
    runs = runs.rename(top / "runs")
    (top / "linked").symlink_to("runs")
    monkeypatch.chdir(top / here)
    path = find(Path(below), name)
    assert str(path) == (found or str(runs / "one" / name).rstrip("/."))
    assert (path / "experiment.json").exists() or (path / "plan.json").exists()


@pytest.mark.parametrize("name", ["cubic-r9", "one/reno", "three/cubic-r0", "[a-z]*", "/nowhere/x"])
def test_a_name_that_means_nothing_is_said(runs: Path, name: str) -> None:
    with pytest.raises(HowdahError, match="there is no run or experiment"):
        find(runs, name)


def test_a_name_that_means_several_names_them(runs: Path) -> None:
    with pytest.raises(HowdahError, match=r"more than one run: one/cubic-r0-aaaaaaaa, two/cubic-r0-cccccccc"):
        find(runs, "cubic-r0")
    for number in range(5):
        (runs / "one" / f"reno-r{number}").mkdir()
        (runs / "one" / f"reno-r{number}" / "plan.json").touch()
    with pytest.raises(HowdahError, match=r"one/reno-r3, one/reno-r4\n"):
        find(runs, "one/reno")
    (runs / "one" / "reno-r5").mkdir()
    (runs / "one" / "reno-r5" / "plan.json").touch()
    with pytest.raises(HowdahError, match=r"one/reno-r4 and 1 more"):
        find(runs, "one/reno")


def test_a_run_of_an_experiment_elsewhere_is_named_by_its_path(
    runs: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As of an unpacked one, which does not lie below ``--runs``."""
    monkeypatch.chdir(runs)
    other = tmp_path_factory.mktemp("runs")
    for name in ("one/cubic-r1", f"{runs}/one/cubic-r1", "./one/cubic-r1"):
        assert find(other, name) == Path(name).with_name("cubic-r1-bbbbbbbb")
    with pytest.raises(HowdahError, match=r"more than one run: one/cubic-r0-aaaaaaaa, one/cubic-r1-bbbbbbbb"):
        find(other, "one/cubic")


def test_where_there_are_no_runs_the_first_command_is_named(tmp_path: Path) -> None:
    (tmp_path / "runs").mkdir()
    for runs, said in ((tmp_path / "runs", "no runs in it yet"), (tmp_path / "none", "no such directory yet")):
        with pytest.raises(HowdahError, match=said) as caught:
            find(runs, "latest")
        assert "howdah run quick" in str(caught.value)


def test_a_directory_that_is_no_experiment_is_called_so(runs: Path, tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    with pytest.raises(HowdahError, match="neither a run nor an experiment"):
        find(runs, str(tmp_path / "other"))
