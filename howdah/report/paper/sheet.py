# SPDX-License-Identifier: Apache-2.0
"""The sheet that a figure is printed on: its exact size, its style, line breaks in names, and reproducible files.

matplotlib is loaded only when a sheet is made, so that other commands do not pay for it.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

from howdah.distribution import install_extra
from howdah.errors import HowdahError, UsageError, explain, remedy
from howdah.record.directory import write_whole
from howdah.report.plot.scale import Scale, ticks

if TYPE_CHECKING:
    from matplotlib.axis import Axis
    from matplotlib.figure import Figure


FORMATS = ("pdf", "svg", "png")
_DOTS_PER_INCH = 600  # resolution of PNG; PDF and SVG are vector graphics
_PER_INCH = {"in": 1.0, "cm": 2.54, "mm": 25.4, "pt": 72.27, "bp": 72.0}  # pt: TeX's, as in \the\columnwidth
_LENGTH = re.compile(r"\s*(\d+(?:\.\d*)?|\.\d+)\s*(in|cm|mm|pt|bp)\s*")
_TICKS = 4  # about this many ticks on a logarithmic axis
_NARROWEST_IN, _WIDEST_IN = 1.5, 20.0

# The whole style, on top of matplotlib's own defaults; a user's matplotlibrc is ignored.
_STYLE: dict[str, Any] = {
    "font.family": "DejaVu Sans",  # ships with matplotlib, so it is the same on every machine
    "font.size": 7.5,
    "axes.labelsize": 7.5,
    "axes.titlesize": 7.5,
    "xtick.labelsize": 7,
    "ytick.labelsize": 7,
    "legend.fontsize": 7,
    "legend.frameon": False,
    "legend.handlelength": 2.8,
    "legend.columnspacing": 1.2,
    "legend.labelspacing": 0.3,
    "axes.linewidth": 0.6,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "xtick.major.width": 0.6,
    "ytick.major.width": 0.6,
    "xtick.major.size": 2.5,
    "ytick.major.size": 2.5,
    "lines.linewidth": 1.0,
    "lines.markersize": 3.6,
    "lines.markeredgewidth": 0.8,
    "path.simplify": False,  # draw exactly the given points
    "figure.constrained_layout.use": True,
    "figure.constrained_layout.h_pad": 0.02,
    "figure.constrained_layout.w_pad": 0.02,
    "pdf.fonttype": 42,  # TrueType, embedded: publishers refuse Type 3
    "svg.fonttype": "path",  # outlines, so that readers need no font
    "svg.hashsalt": "howdah",
    "savefig.dpi": _DOTS_PER_INCH,
}
LIMIT_STYLE: dict[str, Any] = {"color": "#808080", "linewidth": 0.6, "linestyle": (0, (4, 2)), "zorder": 0}
# Dates and program versions would make two files of the same figure differ.
_WITHOUT: dict[str, dict[str, str | None]] = {
    "pdf": {"CreationDate": None, "Producer": None},
    "svg": {"Date": None},
    "png": {"Software": None},
}


def parse_length_inches(text: str) -> float:
    """Convert ``3.4in``, ``86mm``, ``8.6 cm``, ``245pt`` (TeX points) or ``252bp`` to inches.

    Raises UsageError for anything else, and for a width that no page has.
    """
    match = _LENGTH.fullmatch(text)
    if match is None:
        raise UsageError(f"'{text}' is not a length", hint="Write it like 3.4in, 86mm, 8.6cm or 245pt.")
    inches = float(match.group(1)) / _PER_INCH[match.group(2)]
    if not _NARROWEST_IN <= inches <= _WIDEST_IN:
        raise UsageError(
            f"{text} is not between {_NARROWEST_IN:g} and {_WIDEST_IN:g} inches",
            hint="A column of a two-column paper is about 3.4in wide, both together 7in.",
        )
    return inches


def require_matplotlib() -> Any:
    """Import matplotlib, an optional extra. Raises HowdahError if it is not installed."""
    try:
        import matplotlib as mpl
    except ModuleNotFoundError as error:
        raise HowdahError("figures are drawn with matplotlib", hint=install_extra("figures")) from error
    return mpl


@dataclass(frozen=True)
class FigureSheet:
    """Width and height in inches, both kept exactly; without a height the figure chooses one."""

    width_in: float
    height_in: float | None = None

    @contextmanager
    def styled(self) -> Iterator[None]:
        """Set matplotlib's print style for drawing and writing. Raises HowdahError without matplotlib."""
        mpl = require_matplotlib()
        with mpl.rc_context():
            mpl.rcdefaults()
            style: Any = _STYLE
            mpl.rcParams.update(style)
            yield

    def figure(self, height_in: float) -> Figure:
        """An empty figure; ``height_in`` is the height that suits its contents."""
        from matplotlib.figure import Figure

        return Figure(figsize=(self.width_in, self.height_in or height_in))


def plain_logarithm(axis: Axis) -> None:
    """Give a logarithmic axis a page's ticks (0.5, 1, 2, 5): matplotlib's powers of ten overlap in a column's width."""
    least, most = sorted(axis.get_view_interval())
    found = ticks(Scale(float(least), float(most), 0.0, 1.0, True), _TICKS)
    named = [tick for tick in found if tick.text]
    others = [tick.value for tick in found if not tick.text]
    axis.set_ticks([tick.value for tick in named], [tick.text for tick in named])
    axis.set_ticks(others, [""] * len(others), minor=True)


def write(figure: Figure, target: Path, format_: str, title: str) -> Path:
    """Write the figure atomically; equal figures give equal bytes. Raises HowdahError if it cannot be written."""
    held = BytesIO()
    figure.savefig(held, format=format_, metadata={"Title": title, "Creator": "howdah", **_WITHOUT[format_]})
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        write_whole(target, held.getvalue())
    except OSError as error:
        raise HowdahError(
            f"the figure cannot be written: {explain(error)}", where=str(target), hint=remedy(error)
        ) from error
    return target


_LETTER_IN = 0.056  # mean width of a letter in a legend
_KEY_IN = 0.5  # the sample line before a name, and the space after it
_BEFORE_UNIT = re.compile(r"(?<=\d) (?=\S)")


def legend_columns(labels: list[str], width_in: float) -> int:
    """The number of legend entries that fit side by side."""
    each_in = _KEY_IN + _LETTER_IN * max(len(line) for label in labels for line in label.split("\n"))
    return max(1, min(len(labels), int(width_in / each_in)))


def legend_entries(labels: list[str], width_in: float) -> list[str]:
    """The names of a legend, broken into lines where they are wider than the sheet."""
    return [wrapped(label, width_in - _KEY_IN) for label in labels]


def legend_lines(labels: list[str], across: int) -> int:
    """The height of a legend with that many columns, in lines of text."""
    high = [label.count("\n") + 1 for label in labels]
    rows = -(-len(labels) // across)
    return max(sum(high[first : first + rows]) for first in range(0, len(high), rows))


def wrapped(label: str, room_in: float) -> str:
    """Break a name into lines that fit the room; words stay whole, and numbers stay with their units."""
    fitting = max(8, int(room_in / _LETTER_IN))
    return textwrap.fill(_BEFORE_UNIT.sub("\u00a0", label), fitting, break_long_words=False, break_on_hyphens=False)
