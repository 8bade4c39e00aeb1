# SPDX-License-Identifier: Apache-2.0
"""Suites: what they expand to, and what is said of wrong ones, with their line."""

from __future__ import annotations

from pathlib import Path

import pytest

from howdah.errors import HowdahError, ProfileError
from howdah.nightly.suite import chosen, read_suite, slugs_of
from howdah.place import PROFILES
from tests.nightly_factory import PROFILE, write_suite


def test_a_suite_is_items_times_kernels(tmp_path: Path) -> None:
    tree = tmp_path / "linux"
    tree.mkdir()
    suite = read_suite(
        write_suite(
            tmp_path,
            """\
suite: test
cells:
  - profile: made.yaml
    algorithms: [cubic, bbr]
    receivers: [linux, delayed-ack]
    kernels: [debian-6.12, linux]
    repetitions: 4
    set: {path.rate: 20 Mbit/s, duration: 5 s}
  - {profile: made.yaml, name: other, metrics: [utilisation]}
""",
        )
    )
    first, second, other = suite.series
    assert first.name == "test-made-debian-6.12"
    assert second.name.startswith("test-made-linux-")
    assert second.kernel == str(tree), "a path starts at the suite"
    assert slugs_of(first) == slugs_of(second) == ["cubic-linux", "cubic-delayed-ack", "bbr-linux", "bbr-delayed-ack"]
    assert {cell.repetition for cell in first.profile.cells()} == {0, 1, 2, 3}
    assert first.profile.points[0].scenario.path.rate == 20_000_000
    assert first.command[:3] == ("howdah", "run", str(tmp_path / "made.yaml"))
    assert 'path.rate="20 Mbit/s"' in first.command
    assert first.measures.compares("exit_round")
    assert first.measures.is_primary("exit_time_s")
    assert not first.measures.is_primary("exit_round")
    assert not other.measures.compares("exit_time_s")
    assert other.measures.is_primary("utilisation")
    assert not other.measures.is_primary("exit_time_s")
    assert other.profile.repetitions == 10


def test_a_shipped_profile_by_its_name(tmp_path: Path) -> None:
    """Who installed a wheel does not know where its profiles are. A file beside the suite comes first."""
    suite = write_suite(tmp_path, "suite: t\ncells:\n- {profile: quick}\n")
    (one,) = read_suite(suite).series
    assert slugs_of(one) == ["cubic", "reno"]
    assert one.command[:3] == ("howdah", "run", "quick")
    write_suite(tmp_path, "suite: t\ncells:\n- {profile: qucik}\n")
    with pytest.raises(HowdahError, match="did you mean quick"):
        read_suite(suite)


def test_controls_and_cross_checks_are_no_cells(tmp_path: Path) -> None:
    extra = (
        "cross_check: {traffic: iperf3, algorithm: cubic}\n"
        "controls:\n  deep: {what: a deeper buffer, set: {path.buffer: 4 bdp}}\n"
    )
    (one,) = read_suite(write_suite(tmp_path, "suite: t\ncells:\n- {profile: made.yaml}\n", PROFILE + extra)).series
    assert slugs_of(one) == ["cubic", "reno"]


@pytest.mark.parametrize(
    ("text", "line", "said"),
    [
        ("suite: t\ncells: []\n", 2, "cells"),
        ("suite: t\ncells:\n- {profile: none.yaml}\n", 3, "there is no profile none.yaml"),
        ("suite: t\ncells:\n- profile: made.yaml\n  repetitions: 2\n", 4, "greater than or equal to 3"),
        ("suite: t\ncells:\n- profile: made.yaml\n  algoritms: [cubic]\n", 4, "there is no field 'algoritms'"),
        ("suite: t\ncells:\n- profile: made.yaml\n  algorithms: []\n", 4, "at least 1"),
        ("suite: t\ncells:\n- profile: made.yaml\n  algorithms: [cubik]\n", 3, "cubik"),
        ("suite: t\ncells:\n- profile: made.yaml\n  receivers: [windos-xp]\n", 3, "windos-xp"),
        ("suite: t\ncells:\n- profile: made.yaml\n  set: {path.rat: 3}\n", 3, "rat"),
        ("suite: t\ncells:\n- profile: made.yaml\n  set: {algorithm: cubic}\n", 4, "algorithm is set with algorithms"),
        ("suite: t\ncells:\n- profile: made.yaml\n  metrics: [utilization]\n", 4, "did you mean utilisation"),
        ("suite: t\ncells:\n- profile: made.yaml\n- profile: made.yaml\n", 4, "here twice"),
        ("suite: T!\ncells:\n- profile: made.yaml\n", 1, "does not have the form"),
        ("cells:\n- profile: made.yaml\n", 1, "'suite' is missing"),
        ("suite: t\ncells: 3\n", 2, "expected a list"),
        ("- a\n", 1, "mapping"),
    ],
)
def test_a_wrong_suite_is_refused_with_its_line(tmp_path: Path, text: str, line: int, said: str) -> None:
    file = write_suite(tmp_path, text)
    with pytest.raises(ProfileError) as caught:
        read_suite(file)
    assert said in str(caught.value)
    assert str(caught.value).startswith(f"{file}:{line}")


def test_a_suite_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(ProfileError, match="no such suite"):
        read_suite(tmp_path / "none.yaml")


def test_parts_are_chosen_by_item_experiment_or_cell(tmp_path: Path) -> None:
    suite = read_suite(write_suite(tmp_path))
    both = {"test-made-debian-6.12", "test-made-debian-6.1"}
    assert chosen(suite, []) == dict.fromkeys(both)
    assert chosen(suite, ["made"]) == dict.fromkeys(both)
    assert chosen(suite, ["test-made-debian-6.1"]) == {"test-made-debian-6.1": None}
    assert chosen(suite, ["test-made-debian-6.1/reno"]) == {"test-made-debian-6.1": {"reno"}}
    assert chosen(suite, ["made/reno", "test-made-debian-6.1"])["test-made-debian-6.1"] is None
    with pytest.raises(HowdahError, match="has no 'made/renno'") as caught:
        chosen(suite, ["made/renno"])
    assert "did you mean reno" in str(caught.value)
    with pytest.raises(HowdahError, match="has no 'mad'"):
        chosen(suite, ["mad"])


@pytest.mark.parametrize("file", sorted((PROFILES / "suites").glob("*.yaml")), ids=lambda file: file.stem)
def test_shipped_suites_can_be_read(file: Path) -> None:
    suite = read_suite(file)
    assert suite.name == file.stem
    assert suite.description
    assert sum(len(slugs_of(one)) for one in suite.series) > 10
