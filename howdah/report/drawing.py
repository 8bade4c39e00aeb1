# SPDX-License-Identifier: Apache-2.0
"""The dumbbell topology with its actual numbers, as inline SVG."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from xml.sax.saxutils import escape

from howdah.number import delay, rate, significant, size
from howdah.plan.plan import Flow, Plan

_SHOWN_FLOWS = 4


def text(x: float, y: float, content: str, css: str = "", anchor: str = "middle") -> str:
    """A text element; ``css`` names its classes."""
    return f'<text x="{x:g}" y="{y:g}" text-anchor="{anchor}" class="{css}">{escape(content)}</text>'


def _box(x: float, y: float, width: float, height: float, name: str, css: str) -> str:
    rectangle = f'<rect x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}" rx="3" class="{css}"/>'
    return rectangle + text(x + width / 2, y + height / 2 + 4.5, name, "name")


def line(x1: float, y1: float, x2: float, y2: float, css: str) -> str:
    return f'<path d="M{x1:g} {y1:g}L{x2:g} {y2:g}" class="{css}"/>'


def shortened(text: str, most: int = 12) -> str:
    """The text, cut to ``most`` letters."""
    return text if len(text) <= most else text[: most - 1] + "…"


def _flow_note(flow: Flow) -> str:
    """When the flow starts, to a tenth of a second; "from the start" if it starts within the first round trip."""
    if flow.start_us <= flow.rtt_us:
        return "from the start"
    return f"from {significant(round(flow.start_us / 1e6, 1))} s"


def spread(values: Iterable[float], written: Callable[[float], str]) -> str:
    """One value, or the least and greatest if the values differ: ``239 … 241 ms``."""
    least, most = min(values := list(values)), max(values)
    low, high = written(least), written(most)
    if low == high:
        return low
    return f"{low.split()[0] if low.split()[1:] == high.split()[1:] else low} … {high}"


def path_label(plan: Plan) -> str:
    """The path in one sentence, for titles and screen readers."""
    path = plan.path
    return (
        f"{rate(path.rate_bits_per_second)} bottleneck, {delay(path.rtt_us)} round trip, "
        f"buffer {size(path.buffer_bytes)} ({significant(path.buffer_share, 3)} BDP)"
    )


class _Labels:
    """The texts of the drawing, for all runs on the path together."""

    def __init__(self, plans: list[Plan]) -> None:
        paths = [plan.path for plan in plans]
        self.rate = spread((path.rate_bits_per_second for path in paths), rate)
        self.rtt = spread((path.rtt_us for path in paths), delay)
        self.buffer = "buffer " + spread((path.buffer_bytes for path in paths), size)
        self.bdp = "BDP " + spread((path.bdp_bytes for path in paths), size)
        self.packets = spread((path.bdp_packets for path in paths), significant) + " packets"
        self.own_rtt = len({flow.rtt_us for flow in plans[0].flows}) > 1
        interfaces = [path.sender_interface_bits_per_second for path in paths]
        self.senders = spread((each for each in interfaces if each), rate) if all(interfaces) else ""

    def receiver_note(self, flow: Flow) -> str:
        return f"{delay(flow.rtt_us)} RTT" if self.own_rtt else ""


def dumbbell(plans: list[Plan]) -> tuple[str, str]:
    """The path of some runs as inline SVG, for wide and for narrow pages. The flows are those of the first plan."""
    flows = plans[0].flows[:_SHOWN_FLOWS]
    labels = _Labels(plans)
    return _wide(plans[0], flows, labels), _narrow(plans[0], flows, labels)


def _more(plan: Plan) -> str:
    hidden = len(plan.flows) - _SHOWN_FLOWS
    return f"and {hidden} more flows" if hidden > 0 else ""


def _wide(plan: Plan, flows: list[Flow], labels: _Labels) -> str:
    height = max(118, 52 * len(flows) + 26)
    middle = height / 2
    left, right, width = 262, 560, 84
    centre = (left + width + right) / 2
    parts = [
        line(left + width, middle, right, middle, "wire bottleneck"),
        text(centre, middle - 26, labels.rate, "value"),
        text(centre, middle - 11, f"{labels.rtt} round trip", "note"),
        text(centre, middle + 20, labels.buffer, "value"),
        text(centre, middle + 36, labels.bdp, "note"),
        text(centre, middle + 51, f"= {labels.packets}", "note"),
    ]
    for index, flow in enumerate(flows):
        y = middle + (index - (len(flows) - 1) / 2) * 52
        parts += [
            line(112, y, left, middle, "wire"),
            line(right + width, middle, 794, y, "wire"),
            _box(28, y - 15, 84, 30, shortened(flow.sender), "host"),
            _box(794, y - 15, 84, 30, shortened(flow.receiver), "host"),
            text(70, y + 29, _flow_note(flow), "note"),
            text(836, y + 29, labels.receiver_note(flow), "note"),
        ]
    if labels.senders:
        parts.append(text(187, 14, f"senders {labels.senders}", "note"))
    parts += [
        _box(left, middle - 17, width, 34, "left router", "router"),
        _box(right, middle - 17, width, 34, "right router", "router"),
        text(906 / 2, height - 4, _more(plan), "note"),
    ]
    return svg(906, height, path_label(plan), parts, "wide")


def _narrow(plan: Plan, flows: list[Flow], labels: _Labels) -> str:
    flows = flows[:3]
    column = 340 / len(flows)
    parts = [
        line(170, 118, 170, 222, "wire bottleneck"),
        text(182, 139, labels.rate, "value", "start"),
        text(182, 155, f"RTT {labels.rtt}", "note", "start"),
        text(182, 181, labels.buffer, "value", "start"),
        text(182, 197, labels.bdp, "note", "start"),
        text(182, 212, f"= {labels.packets}", "note", "start"),
    ]
    for index, flow in enumerate(flows):
        x = column * (index + 0.5)
        parts += [
            line(x, 50, 170, 86, "wire"),
            line(170, 256, x, 290, "wire"),
            _box(x - 38, 20, 76, 30, shortened(flow.sender, 10), "host"),
            _box(x - 38, 290, 76, 30, shortened(flow.receiver, 10), "host"),
            text(x, 13, _flow_note(flow), "note"),
            text(x, 336, labels.receiver_note(flow), "note"),
        ]
    parts += [_box(124, 86, 92, 32, "left router", "router"), _box(124, 222, 92, 34, "right router", "router")]
    return svg(340, 342, path_label(plan), parts, "narrow")


def svg(width: float, height: float, label: str, parts: list[str], css: str, role: str = "img") -> str:
    """An inline SVG element; ``label`` is the text for screen readers. Use the role ``group`` if it contains links."""
    name = escape(label, {'"': "&quot;"})
    size_ = f"0 0 {width:g} {height:g}"
    return f'<svg class="drawing {css}" viewBox="{size_}" role="{role}" aria-label="{name}">{"".join(parts)}</svg>'
