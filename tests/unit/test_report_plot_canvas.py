# SPDX-License-Identifier: Apache-2.0
"""What stands beside an axis is whole: its last tick's text and its titles, however long."""

from __future__ import annotations

import re

import pytest

from howdah.report.plot.canvas import NARROW, PANEL, WIDE, Canvas, Size
from howdah.report.plot.model import PlotAxis
from howdah.report.plot.scale import Tick

_LETTER = 6.2  # pixels of an average letter in these sizes, as Chromium draws it
_TEXT = re.compile(r'<text x="([-\d.]+)" y="([-\d.]+)" text-anchor="(\w+)" class="(\w+)">([^<]*)</text>')
_LONG = "time from the first packet to the last one of the whole transfer, median of all runs (ms)"

Text = tuple[float, float, str, str, str]


def texts(size: Size, titles: tuple[str, str], marks: list[Tick] | None = None) -> list[Text]:
    canvas = Canvas(size, PlotAxis(titles[0], (0.0, 185.344), ticks=marks), PlotAxis(titles[1], (0.0, 100.0)))
    canvas.ground()
    found = _TEXT.findall("".join(canvas.parts))
    return [(float(x), float(y), anchor, css, content) for x, y, anchor, css, content in found]


def ends(each: Text) -> tuple[float, float]:
    x, _, anchor, _, content = each
    width = len(content) * _LETTER
    left = x - {"start": 0.0, "middle": width / 2, "end": width}[anchor]
    return left, left + width


@pytest.mark.parametrize("size", [NARROW, PANEL, WIDE], ids=["narrow", "panel", "wide"])
@pytest.mark.parametrize("titles", [("object (kB)", "ratio"), (_LONG, _LONG)], ids=["short", "long"])
def test_nothing_is_cut_off(size: Size, titles: tuple[str, str]) -> None:
    found = texts(size, titles, [Tick(0.0, "0.000001"), Tick(90.0, "90"), Tick(185.344, "185.344")])
    assert {"0.000001", "185.344"} <= {each[4] for each in found}
    for each in found:
        left, right = ends(each)
        assert left >= 0 and right <= size.width, each
        assert 0 < each[1] <= size.height, each


def test_a_long_title_has_lines_of_its_own() -> None:
    found = [each for each in texts(NARROW, (_LONG, _LONG)) if each[3] == "label"]
    assert " ".join(each[4] for each in found) == f"{_LONG} {_LONG}"
    lowest_above = max(each[1] for each in found if each[2] == "start")
    ticks = [each for each in texts(NARROW, (_LONG, _LONG)) if each[3] == "note"]
    assert all(each[1] > lowest_above for each in ticks if each[2] == "end")
    highest_below = min(each[1] for each in found if each[2] == "middle")
    assert all(each[1] < highest_below for each in ticks if each[2] == "middle")


def test_a_title_that_fits_has_one_line_where_it_always_was() -> None:
    assert [each[:2] for each in texts(NARROW, ("time (s)", "cwnd")) if each[3] == "label"][1] == (4.0, 12.0)
    plain, long = (Canvas(NARROW, PlotAxis("time"), PlotAxis(title)) for title in ("cwnd", _LONG))
    assert (plain.top, plain.bottom) == (28.0, NARROW.height - 46.0)
    assert long.top > plain.top
