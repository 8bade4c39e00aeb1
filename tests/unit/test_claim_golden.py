# SPDX-License-Identifier: Apache-2.0
"""Everything that claims.json says of every form of a claim, over one experiment made by hand.

After a wanted change run HOWDAH_RECORD=1 pytest tests/unit/test_claim_golden.py, and read the difference.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from howdah.plan.plan import Plan
from tests.claim_factory import Row, judged, make_runs, row, write_profile
from tests.unit.recorded_lines import compare

HEAD = """\
howdah: 1
name: made
path: {{rate: 10 Mbit/s, rtt: [20 ms, 40 ms, 80 ms], buffer: 1 bdp}}
algorithm: [cubic, reno]
duration: 10 s
repetitions: {repetitions}
controls:
  off: {{what: switched off, set: {{host.sysctls.net.ipv4.tcp_recovery: 0}}}}
"""
USED = "metric: utilisation"
CUBIC = f"value: {{{USED}, at: {{algorithm: cubic, path.rtt: 40 ms}}}}"
THAN = f"{CUBIC}, than: {{at: {{algorithm: reno}}}}"
EVERY = f"value: {{{USED}, at: {{algorithm: cubic}}}}, each: path.rtt"
CAUSE = "value: {metric: exit_cause, at: {algorithm: cubic, path.rtt: 40 ms}}"
LOST = "value: {metric: retransmitted_packets, at: {algorithm: cubic}}, each: path.rtt"
CONTROL = "control: off, because: it is newer than the paper"
CLAIMS = {
    **{f"than-{word.replace(' ', '-')}": f"{THAN}, expect: {word}" for word in ("much more", "more", "similar")},
    "than-less": f"{THAN}, expect: less",
    "than-much-less": f"{THAN}, expect: much less",
    "ratio": f"{THAN}, expect: {{ratio: {{equals: 2, within: 5 %}}}}",
    "ratio-above": f"{THAN}, expect: {{ratio: {{above: 2}}}}",
    "ratio-between": f"{THAN}, expect: {{ratio: {{between: [1, 1.5]}}}}",
    "difference": f"{THAN}, expect: {{difference: {{at_least: 45 %}}}}",
    "difference-at-most": f"{THAN}, expect: {{difference: {{at_most: 45 %}}}}",
    "equals": f"{CUBIC}, expect: {{equals: 80 %, within: 1.5 points}}",
    "equals-10-percent": f"{CUBIC}, expect: {{equals: 60 %}}",
    "above": f"{CUBIC}, expect: {{above: 80 %}}",
    "below": f"{CUBIC}, expect: {{below: 84 %}}",
    "at-least": f"{CUBIC}, expect: {{at_least: 82 %}}",
    "at-most": f"{CUBIC}, expect: {{at_most: 82 %}}",
    "between": f"{CUBIC}, expect: {{between: [70 %, 90 %]}}",
    "counted": f"{CUBIC}, expect: {{at_least: 81 %, in_at_least: 60 %}}",
    "counted-and-few": f"{CUBIC}, expect: {{at_least: 82 %, in_at_least: 60 %}}",
    "text": f"{CAUSE}, expect: {{is: ack-train}}",
    "text-counted": f"{CAUSE}, expect: {{is: ack-train, in_at_least: 60 %}}",
    "each": f"{EVERY}, expect: {{at_least: 75 %}}",
    "each-any": f"{EVERY}, hold: any, expect: {{at_least: 85 %}}",
    "each-max": f"{EVERY}, hold: max, expect: {{at_least: 85 %}}",
    "each-min": f"{EVERY}, hold: min, expect: {{at_least: 85 %}}",
    "each-mean": f"{EVERY}, hold: mean, expect: {{at_least: 85 %}}",
    "each-than": f"{EVERY}, than: {{at: {{algorithm: reno}}}}, expect: more",
    "each-than-max": f"{EVERY}, than: {{at: {{algorithm: reno}}}}, hold: max, expect: more",
    **{
        f"trend-{trend}": f"value: {{{USED}, at: {{algorithm: cubic}}}}, expect: {{trend: {trend}, over: path.rtt}}"
        for trend in ("rises", "falls", "flat")
    },
    "trend-by": f"value: {{{USED}, at: {{algorithm: cubic}}}}, expect: {{trend: rises, over: path.rtt, by: 50 %}}",
    "trend-within": f"value: {{{USED}, at: {{algorithm: reno}}}}, expect: {{trend: flat, over: path.rtt, within: 5 %}}",
    "not-measured-at-some": f"{LOST}, expect: {{at_most: 5 packets}}",
    "not-measured": f"{LOST}, hold: any, expect: {{at_least: 50 packets}}",
    "not-measured-trend": "value: {metric: retransmitted_packets, at: {algorithm: cubic}}, "
    "expect: {trend: rises, over: path.rtt}",
    "than-another-metric": f"value: {{{USED}, at: {{algorithm: cubic, path.rtt: 80 ms}}}}, "
    "than: {metric: link_utilisation}, expect: less",
    "all-flows": "value: {metric: goodput_bits_per_second, flow: all, take: sum, "
    "at: {algorithm: cubic, path.rtt: 40 ms}}"
    ", expect: {equals: 5 Mbit/s, within: 1 %}",
    "one-flow": "value: {metric: goodput_bits_per_second, flow: 2, at: {algorithm: cubic, path.rtt: 40 ms}}"
    ", expect: {equals: 5 Mbit/s, within: 1 %}",
    "controlled": f"{CUBIC}, expect: {{at_most: 50 %}}, {CONTROL}",
    "controlled-in-vain": f"{CUBIC}, expect: {{at_least: 95 %}}, {CONTROL}",
    "controlled-than": f"{THAN}, expect: similar, {CONTROL}",
    "unsupported": "unsupported: it needs a moon",
    "doubted": f"{CUBIC}, expect: {{at_most: 50 %}}, note: read this, source: 'a paper, p. 7'",
}
RTTS = {"20 ms": 0, "40 ms": 1, "80 ms": 2}


def _rows(plan: Plan) -> list[Row]:
    place, cubic, off = RTTS[plan.axes["path.rtt"]], plan.algorithm == "cubic", "control" in plan.axes
    used = (0.3 if off else 0.7 + 0.1 * place if cubic else 0.4) + 0.01 * plan.repetition
    lost = None if place == 2 or (place == 1 and plan.repetition) else 10 * place + plan.repetition
    return [
        row("utilisation", used, "ratio"),
        row("link_utilisation", used + 0.02, "ratio"),
        row("exit_cause", "loss" if plan.repetition == 2 else "ack-train", flow=1),
        row("retransmitted_packets", lost if cubic else 7, "packets", flow=1),
        row("goodput_bits_per_second", 2e6 + 1e4 * plan.repetition, "bit/s", flow=1),
        row("goodput_bits_per_second", 3e6, "bit/s", flow=2),
    ]


def _facts(value: Any, name: str = "") -> Iterator[str]:
    """Numbers to nine places: another processor may add in another order."""
    pairs = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    if not pairs:
        yield f"{name}: {value:.9g}" if isinstance(value, float) else f"{name}: {json.dumps(value, ensure_ascii=False)}"
    for key, each in pairs:
        yield from _facts(each, f"{name}.{key}" if name else str(key))


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    place = tmp_path_factory.mktemp("claims")
    text = "".join(f"  - {{id: {name}, says: so, {claim}}}\n" for name, claim in CLAIMS.items())
    profile = write_profile(place, text, repetitions=4, head=HEAD, extra="flows: [{}, {}]\n")

    def verdict(plan: Plan) -> str:
        return "invalid" if plan.repetition == 3 and plan.algorithm == "reno" else "pass"

    return judged(make_runs(place, profile, _rows, verdict=verdict))


@pytest.mark.parametrize("name", CLAIMS)
def test_everything_that_is_said_of_a_claim(name: str, found: dict[str, Any]) -> None:
    compare(f"claims/{name}.txt", _facts(found[name]))
