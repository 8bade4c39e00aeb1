# SPDX-License-Identifier: Apache-2.0
"""Names of limits in time figures stand beside the curves, the other limits and each other."""

from __future__ import annotations

import re

import numpy as np
import pytest

from howdah.profile.figure import FigureSection
from howdah.report.plot.canvas import WIDE
from howdah.report.plot.style import styles
from howdah.report.plot.svg import panel_svg
from howdah.report.plot.timeline import TimelineCurve, TimeLines, draw_time

BDP, FULL = 100.0, 200.0
TIMES_S = np.linspace(0.0, 10.0, 21)  # so few points that a curve may cross a name between two of them
CURVES = {
    "rests above the BDP": np.full(21, 110.0),
    "rests below the BDP": np.full(21, 92.0),
    "rests above both": np.where(TIMES_S < 5, 110.0, 212.0),
    "leaves the BDP late": np.where(TIMES_S < 8, 104.0, 240.0),
    "jumps through both at the right": np.where(TIMES_S < 9, 10.0, 250.0),
    "rises": 26.0 * TIMES_S,
    "has a gap": np.where(abs(TIMES_S - 5) < 2, np.nan, np.where(TIMES_S < 1, 5.0, 205.0)),
}


def curve(value: np.ndarray, limits: dict[str, float]) -> TimelineCurve:
    return TimelineCurve("cwnd", "cubic", "", 0, styles(["cubic"])["cubic"], limits, TIMES_S, value)


def drawing(values: list[np.ndarray], limits: dict[str, float]) -> str:
    figure = FigureSection.model_validate({"id": "a", "title": "A", "kind": "time", "series": ["cwnd"]})
    traces = [curve(value, limits) for value in values]
    (panel,) = draw_time(figure, TimeLines([("", ["cwnd"], traces)], (0.0, 10.0), [0], [])).panels
    return panel_svg(panel, WIDE, "A")


def names_of(html: str) -> dict[str, tuple[float, float, float, float]]:
    """Left, right, top and bottom of the names of limits, as a browser would draw them."""
    found = {}
    for x, y, name in re.findall(r'<text x="([\d.]+)" y="([\d.]+)"[^>]*over-curves[^>]*>([^<]+)<', html):
        found[name] = (float(x) - 6.0 * len(name), float(x), float(y) - 10, float(y) + 2)
    return found


def curves_of(html: str) -> list[list[tuple[float, float]]]:
    """Strokes of curves and limits, as pixels."""
    strokes = [
        [(float(x), float(y)) for x, y in re.findall(r"[ML]([\d.]+) ([\d.]+)", part)]
        for path in re.findall(r'<path d="([^"]+)" class="(?:curve|limit)', html)
        for part in re.split("(?=M)", path)
    ]
    return [stroke for stroke in strokes if len(stroke) > 1]


def crossed(box: tuple[float, float, float, float], stroke: list[tuple[float, float]]) -> bool:
    left, right, top, bottom = box
    x, y = (np.array(each) for each in zip(*stroke, strict=True))
    fine = np.linspace(left, right, 400)
    at = np.interp(fine, x, y, np.nan, np.nan)
    inside = (at > top) & (at < bottom)
    through = ((at[1:] <= top) & (at[:-1] >= bottom)) | ((at[1:] >= bottom) & (at[:-1] <= top))
    return bool(inside.any() or through.any())


@pytest.mark.parametrize("name", CURVES)
@pytest.mark.parametrize("full", [FULL, 108.0, 140.0])
def test_names_of_limits_are_on_nothing(name: str, full: float) -> None:
    html = drawing([CURVES[name]], {"BDP": BDP, "BDP + buffer": full})
    found = names_of(html)
    strokes = curves_of(html)
    assert strokes
    assert found
    for limit, box in found.items():
        assert not [stroke for stroke in strokes if crossed(box, stroke)], f"{limit} is crossed"
    boxes = list(found.values())
    for number, (left, right, top, bottom) in enumerate(boxes):
        for other in boxes[number + 1 :]:
            assert right <= other[0] or other[1] <= left or bottom <= other[2] or other[3] <= top


@pytest.mark.parametrize("name", CURVES)
def test_a_name_without_room_at_its_line_stands_elsewhere_with_its_number(name: str) -> None:
    """Curves lie on both sides of both limits, within less than a name is high."""
    beside = [np.full(21, value) for value in (94.0, 106.0, 146.0, 154.0)]
    html = drawing([np.linspace(0.0, 1500.0, 21), *beside, CURVES[name]], {"BDP": BDP, "BDP + buffer": 150.0})
    found = names_of(html)
    assert set(found) == {"BDP 100", "BDP + buffer 150"}
    for limit, box in found.items():
        assert not [stroke for stroke in curves_of(html) if crossed(box, stroke)], f"{limit} is crossed"


def test_a_crossed_name_is_seen_by_this_test() -> None:
    html = drawing([CURVES["rises"]], {"BDP": BDP, "BDP + buffer": FULL})
    (box, *_others) = names_of(html).values()
    middle = (box[2] + box[3]) / 2
    assert crossed(box, [(0.0, middle), (2000.0, middle)])
    assert crossed(box, [(0.0, 0.0), (box[0] + 9, box[2] - 5), (box[0] + 9.01, box[3] + 5), (2000.0, 900.0)])
    assert not crossed(box, [(0.0, box[2] - 3), (2000.0, box[2] - 3)])
