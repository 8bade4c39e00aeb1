# SPDX-License-Identifier: Apache-2.0
"""Write explained flows as one HTML page: the sentence, the strip of exits, the time-sequence picture and the numbers,
and the legs between two taps."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from markupsafe import Markup

from howdah.explain.explained import Explained
from howdah.explain.joined import Joined, Leg, leg_rows, leg_sentence
from howdah.explain.picture import (
    LEAST_MS,
    LEG_SIZES,
    SIZES,
    START_UP,
    WHOLE,
    ShownPicture,
    leg_pictures,
    shown,
    time_sequence,
)
from howdah.explain.words import rows, sentence
from howdah.foreign import escape_controls
from howdah.place import REPORTS
from howdah.report.exitstrip import ExitMark, ExitRow, ExitStrip, StripScale, exit_strip, strip_ends
from howdah.report.page import write
from howdah.report.table import cause_text
from howdah.report.template import framed, templates_of

_PLACE = REPORTS / "explain"
_SHARED = ("tokens.css", "page.css", "chart.css", "table.css", "print.css")
_STYLES = (*(REPORTS / "css" / name for name in _SHARED), _PLACE / "css/explain.css")


@dataclass(frozen=True)
class FlowView:
    """One flow of the page; ``strip`` and ``narrow`` are empty if its exit is not known in shares of the BDP."""

    name: str
    sentence: str
    strip: Markup
    narrow: Markup
    pictures: list[ShownPicture]
    rows: list[tuple[str, str]]


@dataclass(frozen=True)
class LegView:
    """One leg between two taps. ``flat`` names the directions whose delay does not vary and is not drawn."""

    name: str
    sentence: str
    pictures: list[ShownPicture]
    flat: list[str]
    rows: list[tuple[str, str]]


@cache
def _template() -> Any:
    return templates_of(_PLACE / "templates").get_template("page.html.j2")


def write_page(flows: list[Explained], joined: list[Joined], problems: list[str], target: Path) -> Path:
    """Write the page at ``target``. Raise HowdahError if that fails."""
    names = sorted({flow.file for flow in flows})
    legs = [_leg(each.name, leg) for each in joined for leg in each.legs]
    found = [sentence(flow) for flow in flows if not _seen_nearer(flow, joined)]
    page = _template().render(
        title=escape_controls(", ".join(names)),
        problems=[escape_controls(problem) for problem in problems],
        found=[*map(escape_controls, found), *(leg.sentence for leg in legs)],
        views=[_view(flow, tell_file=len(names) > 1) for flow in flows],
        legs=legs,
        **framed(_STYLES),
    )
    return write(page, target)


def _seen_nearer(flow: Explained, joined: list[Joined]) -> bool:
    """Whether a tap nearer to the sender saw the same connection: the page has the sentence of that one only."""
    return any(each.name == flow.name and flow.file in each.files[1:] for each in joined)


def _view(flow: Explained, *, tell_file: bool) -> FlowView:
    wide, narrow = (Markup(_strip(flow, narrow=each)) for each in (False, True))
    pictures = []
    for title, part in (("Start-up", START_UP), ("The whole flow", WHOLE)):
        if panel := time_sequence(flow, part):
            pictures.append(shown(title, panel, SIZES))
    return FlowView(
        escape_controls(f"{flow.name}, in {flow.file}" if tell_file else flow.name),
        escape_controls(sentence(flow)),
        wide,
        narrow,
        pictures,
        [(name, escape_controls(value)) for name, value in rows(flow)],
    )


def _leg(name: str, leg: Leg) -> LegView:
    titles = (f"Delay there, from {leg.near} to {leg.far}", f"Delay back, from {leg.far} to {leg.near}")
    pictures, flat = [], list[str]()
    for title, panel in zip(titles, leg_pictures(leg), strict=False):
        if panel is None:
            flat.append(escape_controls(title[0].lower() + title[1:]))
        else:
            pictures.append(shown(escape_controls(title), panel, LEG_SIZES))
    return LegView(
        escape_controls(f"{name}, from {leg.near} to {leg.far}"),
        escape_controls(leg_sentence(leg)),
        pictures,
        [f"The {each}, varies by less than {LEAST_MS} ms." for each in flat],
        [(what, escape_controls(value)) for what, value in leg_rows(leg)],
    )


def _strip(flow: Explained, *, narrow: bool) -> str:
    leaves, bdp = flow.exit, flow.bdp_packets
    if leaves is None or bdp is None or leaves.packets.value is None:
        return ""
    share = leaves.packets.value / bdp
    buffer = flow.buffer_bytes.value if flow.buffer_bytes.value is not None else flow.buffer_bytes.low or 0.0
    assert flow.bdp_bytes is not None
    full = 1 + buffer / flow.bdp_bytes
    cause = cause_text(leaves.cause) if leaves.cause else "why does not show"
    mark = ExitMark(share, "recorded", 0, "flow", True, cause, leaves.packets.value, True, 0)
    strip = ExitStrip("", [ExitRow("recorded", full, [mark], "")])
    return exit_strip(strip, StripScale(*strip_ends([share], full), 90.0), narrow=narrow)
