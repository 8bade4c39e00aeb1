# SPDX-License-Identifier: Apache-2.0
"""A misspelt name is answered with the nearest one, wherever a name is typed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from howdah.bisect.session import chosen_claims
from howdah.command.main import main
from howdah.errors import HowdahError
from howdah.profile import load


@pytest.fixture(autouse=True)
def work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One experiment with one run, and one profile."""
    run = tmp_path / "runs" / "satellite" / "cubic-r0-1a2b3c4d"
    run.mkdir(parents=True)
    (run / "plan.json").touch()
    (run.parent / "experiment.json").write_text(json.dumps({"cells": []}))
    (tmp_path / "mine.yaml").write_text(
        "howdah: 1\nname: mine\npath: {rate: 20 Mbit/s, rtt: 40 ms}\nduration: 4 s\n"
        "claims:\n  - {id: leaves-early, says: it, value: {metric: exit_time_s}, expect: {below: 1 s}}\n"
    )
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("HOWDAH_RUNS", raising=False)


@pytest.mark.parametrize(
    ("words", "near"),
    [
        (["plan", "qucik"], "quick"),
        (["plan", "quikc"], "quick"),
        (["plan", "paths/goe"], "paths/geo"),
        (["plan", "mien.yaml"], "mine.yaml"),
        (["plan", "qucik.yaml"], "quick"),
        (["plan", "mine.yaml", "--set", "flows.1.algorithm=rneo"], "reno"),
        (["plan", "mine.yaml", "--set", "kernel=debina-6.12"], "debian-6.12"),
        (["plan", "mine.yaml", "--set", "engine=hots"], "host"),
        (["plan", "mine.yaml", "--engine", "hots"], "host"),
        (["plan", "mine.yaml", "--kernel", "debina-newest"], "debian-newest"),
        (["plan", "mine.yaml", "--set", "cross_check={traffic: iperf3, algorithm: cubicc}"], "cubic"),
        (["validate", "qucik"], "quick"),
        (["report", "satelite"], "satellite"),
        (["claims", "satelite"], "satellite"),
        (["compare", "satelite"], "satellite"),
        (["verify", "satelite"], "satellite"),
        (["export", "satelite"], "satellite"),
        (["rerun", "cubik-r0"], "cubic-r0-1a2b3c4d"),
        (["rerun", "satellite/cubik-r0"], "satellite/cubic-r0-1a2b3c4d"),
        (["nightly", "nigthly", "--list"], "nightly"),
        (["nightly", "--only", "shortt", "--list"], "short"),
        (["atlas", "--only", "HyStart_fig01", "--no-run"], "HyStart_fig1"),
        (["validate", "mine.yaml", "--engines", "uml,hots"], "host"),
    ],
)
def test_the_nearest_name_is_offered(words: list[str], near: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(words) in (1, 2, 3)
    said = capsys.readouterr().err
    assert f"did you mean {near}" in said.replace("Did", "did")
    assert "Traceback" not in said


@pytest.mark.parametrize("word", ["quick", "hystart-fig1", "mine.yaml"])
def test_a_profile_in_place_of_a_command(word: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main([word])
    assert ended.value.code == 2
    assert f"did you mean 'howdah run {word}'?" in capsys.readouterr().err


def test_two_hyphens_make_no_two_options_alike(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["clean", "--json"])
    assert "mean" not in capsys.readouterr().err


@pytest.mark.parametrize("words", [["plan", "qucik"], ["run", "mien.yaml"], ["plan", "qucik.yaml"]])
def test_a_profile_that_is_not_there_is_a_wrong_profile(words: list[str]) -> None:
    assert main(words) == 2


def test_the_ending_of_a_file_makes_no_two_names_alike(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["plan", "nothere.yaml"]) != 0
    said = capsys.readouterr().err
    assert "nothere.yaml" in said
    assert "mean" not in said


def test_a_claim_to_bisect_on() -> None:
    with pytest.raises(HowdahError, match="did you mean leaves-early"):
        chosen_claims(load("mine.yaml"), "leave-early")
