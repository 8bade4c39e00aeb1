# SPDX-License-Identifier: Apache-2.0
"""Ready-made paths: every shipped one can be taken, and errors name the place where something was written."""

from __future__ import annotations

from pathlib import Path

import pytest

from howdah.errors import ProfileError
from howdah.profile import load
from howdah.profile.like import SHIPPED
from howdah.work.compiled import compile_plans

PATHS = sorted((SHIPPED / "paths").glob("*.yaml"))
BASE = "howdah: 1\nname: mine\nduration: 10 s\npath:\n"


def write(directory: Path, path: str, name: str = "mine") -> Path:
    file = directory / f"{name}.yaml"
    file.write_text(BASE + "".join(f"  {line}\n" for line in path.splitlines()), encoding="utf-8")
    return file


def error(directory: Path, path: str, overrides: list[str] | None = None) -> ProfileError:
    with pytest.raises(ProfileError) as caught:
        load(write(directory, path), overrides or [])
    return caught.value


@pytest.mark.parametrize("file", PATHS, ids=lambda file: file.stem)
def test_every_ready_made_path_can_be_taken(file: Path, tmp_path: Path) -> None:
    (own,) = compile_plans(load(file))
    (taken,) = compile_plans(load(write(tmp_path, f"like: paths/{file.stem}"), [f"duration={own.duration_us} us"]))
    assert taken.path == own.path
    assert [item for item in taken.timeline if item.op == "class"] == [
        item for item in own.timeline if item.op == "class"
    ]
    text = file.read_text(encoding="utf-8")
    assert "sources:" in text
    assert any(word in text.lower() for word in ("choice", "published")), "where numbers come from is said"


def test_the_papers_paths_are_there() -> None:
    assert {"chicago", "germany", "japan", "kyushu-chicago", "kyushu-north-carolina", "geo-search"} <= {
        file.stem for file in PATHS
    }
    expected = {
        "chicago": (10**9, 25),
        "germany": (10**8, 107),
        "japan": (10**9, 250),
        "geo-search": (144 * 10**6, 600),
    }
    for name, (rate, rtt_ms) in expected.items():
        (plan,) = compile_plans(load(SHIPPED / "paths" / f"{name}.yaml"))
        assert (plan.path.rate_bits_per_second, plan.path.rtt_us) == (rate, rtt_ms * 1000)
    (geo,) = compile_plans(load(SHIPPED / "paths" / "geo-search.yaml"))
    assert geo.path.buffer_bytes == 36_000_000
    (carolina,) = compile_plans(load(SHIPPED / "paths" / "kyushu-north-carolina.yaml"))
    assert (carolina.path.rtt_us, carolina.path.rate_bits_per_second) == (220_000, 10**9)


def test_what_is_given_anew_replaces_what_is_taken(tmp_path: Path) -> None:
    (point,) = load(
        write(tmp_path, "like: paths/geo\nbuffer: 4 bdp\none_way_delay: {forward: 1 ms, reverse: 2 ms}")
    ).points
    path = point.scenario.path
    assert (str(path.buffer), path.rtt, path.forward_delay_us) == ("4 bdp", None, 1000)
    assert path.delay_variation is not None
    fixed = load(write(tmp_path, "like: paths/lte\nschedule: [{at: 1 s, rate: 9 Mbit/s}]")).points[0].scenario.path
    assert fixed.rate_variation is None


def test_paths_can_be_swept(tmp_path: Path) -> None:
    profile = load(write(tmp_path, "like: [paths/chicago, paths/japan]\nbuffer: [1 bdp, 2 bdp]"))
    assert [(point.scenario.path.rtt, str(point.scenario.path.buffer)) for point in profile.points] == [
        (25_000, "1 bdp"),
        (25_000, "2 bdp"),
        (250_000, "1 bdp"),
        (250_000, "2 bdp"),
    ]


def test_errors_name_the_place(tmp_path: Path) -> None:
    unknown = error(tmp_path, "like: paths/gio")
    assert (unknown.where, unknown.what) == (
        f"{tmp_path / 'mine.yaml'}:5",
        "path.like: there is no profile 'paths/gio'",
    )
    assert unknown.hint == "did you mean paths/geo?"
    (tmp_path / "other.yaml").write_text("howdah: 1\nname: other\npath:\n  rate: 5 Mbit/s\n  rtt: 1 parsec\n")
    wrong = error(tmp_path, "like: other")
    assert wrong.where == f"{tmp_path / 'other.yaml'}:5"
    (tmp_path / "other.yaml").write_text("howdah: 1\nname: other\npath: {rate: [1 Mbit/s, 2 Mbit/s], rtt: 1 ms}\n")
    assert "path.rate is a sweep" in error(tmp_path, "like: other").what
    (tmp_path / "other.yaml").write_text("howdah: 1\nname: other\n")
    assert "has no path to take" in error(tmp_path, "like: other").what
    (tmp_path / "other.yaml").write_text("howdah: 1\nname: other\npath: {like: other}\n")
    assert "takes its path from itself" in error(tmp_path, "like: other").what


def test_the_trace_of_a_path_lies_beside_it(tmp_path: Path) -> None:
    (tmp_path / "far").mkdir()
    (tmp_path / "far" / "t.csv").write_text("time,rate\n0 s,5 Mbit/s\n1 s,6 Mbit/s\n")
    (tmp_path / "far" / "other.yaml").write_text(
        "howdah: 1\nname: other\npath: {rate: 8 Mbit/s, rtt: 10 ms, trace: {file: t.csv}}\n"
    )
    (plan,) = compile_plans(load(write(tmp_path, "like: far/other")))
    assert plan.path.rate_steps[:2] == [[0, 5_000_000], [1_000_000, 6_000_000]]
