# SPDX-License-Identifier: Apache-2.0
"""What a twin's file keeps of the recording, and how far a run is from it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from howdah.errors import ProfileError
from howdah.explain.course import FlowPoints, section_points
from howdah.explain.overlay import CURVES, Overlay, compared, overlay_lines, write_overlay
from howdah.explain.read import read_files
from howdah.explain.twin import twin_text
from howdah.number import duration
from howdah.profile import load
from howdah.profile.experiment import RecordedSection
from tests.explain.damage import pcap
from tests.explain.made import HEADERS, MSS, transfer
from tests.explain.made import Path as Drawn

LOSSY = Drawn(buffer_bytes=100_000, total_bytes=3_000_000)


def recorded(drawn: Drawn, place: Path) -> RecordedSection:
    (place / "recording").write_bytes(pcap(transfer(drawn)))
    file = place / "twin.yaml"
    file.write_text(twin_text(read_files([place / "recording"], 1).flows[0], "twin"), encoding="utf-8")
    section = load(file).recorded
    assert section is not None
    return section


def as_measured(section: RecordedSection) -> dict[str, object]:
    """metrics.json of a run that does exactly what was recorded."""
    values: dict[str, object] = {
        "retransmitted_packets": section.retransmitted_packets,
        "goodput_bits_per_second": section.goodput,
        "held_back_by": section.held_back_by,
    }
    if section.exit is not None:
        values |= {"exit_cause": section.exit.cause, "exit_round": section.exit.round}
    return values


def test_a_twin_keeps_the_course_of_the_recorded_flow(tmp_path: Path) -> None:
    section = recorded(LOSSY, tmp_path)
    assert section.course is not None and section.exit is not None
    points = section_points(section.course)
    assert points.acknowledged_bytes[-1] == pytest.approx(LOSSY.total_bytes, abs=50)
    assert points.acknowledged_bytes[-1] * 8 / points.time_s[-1] < LOSSY.rate
    assert points.rtt_s.min() == pytest.approx(0.040 + 2 * (MSS + HEADERS) * 8 / LOSSY.rate, abs=1e-4), "two segments"
    full = 0.040 + LOSSY.buffer_bytes * 8 / LOSSY.rate
    assert points.rtt_s.max() == pytest.approx(full, rel=0.05), "a full queue is in it"
    assert points.in_flight_packets.max() == pytest.approx(section.exit.packets, abs=1)
    assert section.exit.cause == "loss"


@pytest.mark.parametrize("tap_ns", [8_000_000, 19_500_000])
def test_the_course_is_the_sender_s_wherever_the_tap_was(tap_ns: int, tmp_path: Path) -> None:
    near = recorded(LOSSY, tmp_path)
    far = recorded(Drawn(buffer_bytes=100_000, total_bytes=3_000_000, before_ns=tap_ns), tmp_path)
    assert near.course is not None and far.course is not None
    mine, other = section_points(near.course), section_points(far.course)
    there = np.interp(mine.time_s, other.time_s, other.acknowledged_bytes)
    assert np.abs(there - mine.acknowledged_bytes).mean() < 0.02 * mine.acknowledged_bytes.mean()


def test_an_exit_behind_a_receive_window_is_not_asked_for(tmp_path: Path) -> None:
    section = recorded(Drawn(window_bytes=100_000), tmp_path)
    assert section.exit is None and section.startup_left is None
    values = as_measured(section) | {"exit_cause": "ack-train", "exit_round": 4}
    assert compared("run", section, values, None).unlike == ["the run keeps no ACKs to compare its course with"]
    short = recorded(Drawn(total_bytes=60_000), tmp_path)
    assert short.startup_left is False
    (said, _) = compared("run", short, as_measured(short) | {"exit_cause": "delay", "exit_round": 1}, None).unlike
    assert said.startswith("exit: the twin left slow start by delay")


def test_the_same_flow_has_no_distance_and_nothing_is_left(tmp_path: Path) -> None:
    section = recorded(LOSSY, tmp_path)
    assert section.course is not None
    found = compared("run", section, as_measured(section), section_points(section.course))
    assert found.distance == 0 and found.unlike == []
    assert "nothing recorded is left unexplained" in "\n".join(overlay_lines(found, 0, ["buffer"]))


@pytest.mark.parametrize(
    ("name", "changed", "says"),
    [
        ("exit_cause", "delay", "why it left: by loss as recorded, by delay"),
        ("exit_cause", None, "the recorded flow left slow start, the twin did not"),
        ("exit_round", 9, "exit: in round"),
        ("retransmitted_packets", 900, "900 in the twin"),
        ("held_back_by", "application", "application in the twin"),
    ],
)
def test_what_a_run_does_otherwise_is_said(name: str, changed: object, says: str, tmp_path: Path) -> None:
    section = recorded(LOSSY, tmp_path)
    assert section.course is not None
    found = compared("run", section, as_measured(section) | {name: changed}, section_points(section.course))
    assert len(found.unlike) == 1 and says in found.unlike[0]
    assert "--unknowns" in "\n".join(overlay_lines(found, 0, ["buffer"]))


def test_without_a_course_the_goodput_is_compared(tmp_path: Path) -> None:
    section = recorded(LOSSY, tmp_path).model_copy(update={"course": None})
    assert compared("run", section, as_measured(section), None).unlike == []
    (said,) = compared("run", section, as_measured(section) | {"goodput_bits_per_second": 5e7}, None).unlike
    assert "50 Mbit/s in the twin" in said


def test_the_distance_is_the_mean_difference_and_the_place_where_they_part_is_named(tmp_path: Path) -> None:
    section = recorded(LOSSY, tmp_path)
    assert section.course is not None
    mine = section_points(section.course)
    late = mine.time_s >= 0.6
    slow = FlowPoints(
        mine.time_s, mine.in_flight_packets, mine.acknowledged_bytes, np.where(late, 2 * mine.rtt_s, mine.rtt_s)
    )
    found = compared("run", section, as_measured(section), slow)
    apart = float((mine.rtt_s * late).sum() / mine.rtt_s.sum())
    assert found.distances == pytest.approx({"in flight": 0, "acknowledged": 0, "round trip": apart})
    (said,) = found.unlike
    since = duration(1e6 * float(mine.time_s[late][0]))
    assert said.startswith("round trip: ") and f"from {since} on the twin has more" in said


def test_a_run_that_ends_sooner_is_compared_as_far_as_it_goes(tmp_path: Path) -> None:
    section = recorded(LOSSY, tmp_path)
    assert section.course is not None
    mine = section_points(section.course)
    half = FlowPoints(*(getattr(mine, each)[:80] for each in ("time_s", *(field for _, field in CURVES[:2]), "rtt_s")))
    assert compared("run", section, as_measured(section), half).distance == 0


def test_the_page_has_both_curves_of_each_picture_at_each_width(tmp_path: Path) -> None:
    section = recorded(LOSSY, tmp_path)
    assert section.course is not None
    found = compared("<b>", section, as_measured(section), section_points(section.course))
    page = write_overlay("<i>", [found, Overlay("other", {}, ["x"], None, None)], tmp_path / "twin.html").read_text()
    assert page.count("--on-light:var(--ink)") == page.count("--on-light:var(--focus)") == 3 * len(CURVES), (
        "a sample, too"
    )
    assert "<b>" not in page and "<i>" not in page and "&lt;b&gt;" in page


def test_a_recorded_section_that_a_person_damaged_is_refused_by_its_line(tmp_path: Path) -> None:
    recorded(LOSSY, tmp_path)
    content = (tmp_path / "twin.yaml").read_text()
    assert content.count("    rtt_ms:\n      [") == 1
    (tmp_path / "other.yaml").write_text(content.replace("    rtt_ms:\n      [", "    rtt_ms:\n      [7, "))
    with pytest.raises(ProfileError, match="values for"):
        load(tmp_path / "other.yaml")
