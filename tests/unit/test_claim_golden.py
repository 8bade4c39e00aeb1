# SPDX-License-Identifier: Apache-2.0
"""Everything that claims.json says of every form of a claim, over one experiment made by hand.

After a wanted change run HOWDAH_RECORD=1 pytest tests/unit/test_claim_golden.py, and read the difference.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
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
    place, cubic, off = RTTS[plan.axes.get("path.rtt", "40 ms")], plan.algorithm == "cubic", "control" in plan.axes
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


@dataclass(frozen=True)
class Made:
    """An experiment whose whole claims.json is recorded."""

    path: str
    more: str
    claims: tuple[str, ...]
    options: dict[str, Any]
    out: dict[str, str]  # ``cubic 20 ms r0``: the verdict of runs that begin so


RENO = "value: {metric: retransmitted_packets, flow: 1, at: {algorithm: reno}}"
RENO_THAN = f"{RENO}, than: {{at: {{algorithm: cubic}}}}"
GRID = """\
unknown:
  fields:
    path-rate: {what: slower than the interface, field: path.rate, values: [95 Mbit/s, 90 Mbit/s]}
    buffer: {what: not stated, field: path.buffer, values: [200 packets]}
controls:
  off: {what: something off, set: {path.mtu: 1400}}
"""
OF_GRID = (
    f"{RENO}, expect: {{above: 10}}",
    f"{RENO}, expect: {{above: 1000}}",
    f"{RENO}, expect: {{between: [7, 8]}}, control: 'off', because: it is",
    f"{RENO_THAN}, expect: more",
    f"{RENO_THAN}, expect: less",
    "value: {metric: retransmitted_packets, flow: 1, at: {algorithm: cubic}}, expect: {at_most: 0}",
    "value: {metric: retransmitted_packets, flow: 1, at: {algorithm: reno, control: 'off'}}, expect: {below: 10}",
    "unsupported: it needs a moon",
)
PARTS = (
    "expect: {at_least: 75 %}",
    *(f"hold: {hold}, expect: {{at_least: {limit} %}}" for hold in ("any", "max", "min") for limit in (75, 95)),
    *(f"hold: {hold}, expect: {{at_least: 85 %}}" for hold in ("mean",)),
    "hold: any, expect: more, than: {at: {algorithm: reno}}",
    "hold: mean, expect: more, than: {at: {algorithm: reno}}",
    "hold: mean, expect: {ratio: {between: [1, 2.1]}}, than: {metric: link_utilisation, at: {algorithm: reno}}",
    "hold: min, expect: {ratio: {above: 1.8}}, than: {at: {algorithm: reno}}",
    "expect: {at_least: 70 %, in_at_least: 60 %}, control: 'off', because: it is new",
    "hold: any, expect: {above: 90 %}, control: 'off', because: it is new",
)
TRENDS = (
    "trend: rises",
    "trend: falls",
    "trend: flat, within: 5 %",
    "trend: rises, by: 10 %",
)
CONTROLS = "controls:\n  'off': {what: switched off, set: {host.sysctls.net.ipv4.tcp_recovery: 0}}\n"
EACH_TREND = "value: {metric: utilisation}, each: algorithm"
MADE = {
    "grid": Made("{rate: 100 Mbit/s, rtt: 20 ms, buffer: 100 packets}", GRID, OF_GRID, {"unknowns": True}, {}),
    "grid-in-part": Made(
        "{rate: 100 Mbit/s, rtt: 20 ms, buffer: 100 packets}",
        GRID,
        OF_GRID[:2],
        {"unknowns": True},
        {"cubic path-rate 90": "pending", "reno path-rate 90": "pending", "reno path-rate 95": "invalid"},
    ),
    "grid-together": Made(
        "{rate: 100 Mbit/s, rtt: 20 ms, buffer: 100 packets}", GRID, OF_GRID[::5], {"unknowns": True}, {}
    ),
    "grid-unmade": Made("{rate: 100 Mbit/s, rtt: 20 ms, buffer: 100 packets}", GRID, OF_GRID[:1], {}, {}),
    "grid-of-controls": Made(
        "{rate: 100 Mbit/s, rtt: 20 ms, buffer: 100 packets}", GRID, OF_GRID[6:], {"unknowns": True}, {}
    ),
    **{
        f"points-{name}": Made(
            "{rate: 10 Mbit/s, rtt: [20 ms, 40 ms, 80 ms], buffer: 1 bdp}",
            f"flows: [{{}}, {{}}]\n{CONTROLS}",
            (
                *(
                    f"value: {{metric: utilisation, at: {{algorithm: cubic}}}}, each: path.rtt, {part}"
                    for part in PARTS
                ),
                *(f"{EACH_TREND}, expect: {{{trend}, over: path.rtt}}" for trend in TRENDS),
                f"{EACH_TREND}, hold: any, expect: {{trend: rises, over: path.rtt}}",
                "value: {metric: utilisation}, each: [algorithm, path.rtt], expect: {below: 75 %}",
                "value: {metric: exit_cause}, each: [algorithm, path.rtt], expect: {is: ack-train, in_at_least: 60 %}",
                f"{LOST}, hold: max, expect: {{at_most: 5}}",
            ),
            {"overrides": overrides},
            out,
        )
        for name, overrides, out in (
            ("invalid", (), {"cubic 20 ms": "invalid", "cubic 40 ms r1": "pending", "reno 80 ms r0": "failed"}),
            ("left-out", ("path.rtt=[40 ms, 80 ms]",), {}),
            ("one", ("path.rtt=40 ms",), {}),
        )
    },
}


def _of_grid(plan: Plan) -> list[Row]:
    """Reno loses 20 packets where the path is slower; with the smaller buffer CUBIC does, too."""
    slower, small = plan.path.rate_bits_per_second < 100_000_000, "200" not in str(plan.axes.get("unknown", ""))
    lost = 20.0 + plan.repetition if slower and (plan.algorithm == "reno" or small) else 0.0
    return [row("retransmitted_packets", 7.5 if plan.axes.get("control") else lost, "packets", flow=1)]


@pytest.mark.parametrize("name", MADE)
def test_everything_that_is_said_of_the_claims_of_an_experiment(name: str, tmp_path: Path) -> None:
    made = MADE[name]
    head = f"howdah: 1\nname: made\npath: {made.path}\nalgorithm: [cubic, reno]\nduration: 10 s\nrepetitions: 3\n"
    text = "".join(f"  - {{id: it-{number}, says: so, {claim}}}\n" for number, claim in enumerate(made.claims))
    profile = tmp_path / "made.yaml"
    profile.write_text(f"{head}{made.more}claims:\n{text}", encoding="utf-8")

    def verdict(plan: Plan) -> str:
        where = plan.axes.get("unknown", plan.axes.get("path.rtt", ""))
        words = f"{plan.algorithm} {where} r{plan.repetition}"
        return next((way for of, way in made.out.items() if words.startswith(of)), "pass")

    rows = _of_grid if name.startswith("grid") else _rows
    experiment = make_runs(tmp_path, profile, rows, verdict=verdict, **made.options)
    judged(experiment)
    said = _facts(json.loads((experiment / "claims.json").read_text(encoding="utf-8")))
    compare(f"claims/all/{name}.txt", (line for line in said if not line.endswith(": null")))
