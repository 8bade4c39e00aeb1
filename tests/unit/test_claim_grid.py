# SPDX-License-Identifier: Apache-2.0
"""Claims over what a source leaves open: where they hold, and whether they hold together."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from howdah.plan.plan import Plan
from tests.claim_factory import Row, judged, make_runs, row

PROFILE = """\
howdah: 1
name: made
path: {rate: 100 Mbit/s, rtt: 20 ms, buffer: 100 packets}
algorithm: [cubic, reno]
duration: 10 s
repetitions: 3
unknown:
  fields:
    path-rate: {what: slower than the interface, field: path.rate, values: [95 Mbit/s, 90 Mbit/s]}
    buffer: {what: not stated, field: path.buffer, values: [200 packets]}
controls:
  off: {what: something off, set: {path.mtu: 1400}}
claims:
  - {id: losses, says: Reno loses., value: {metric: retransmitted_packets, flow: 1, at: {algorithm: reno}},
     expect: {above: 10}}
  - {id: none, says: CUBIC loses none., value: {metric: retransmitted_packets, flow: 1, at: {algorithm: cubic}},
     expect: {at_most: 0}}
  - {id: never, says: Reno loses very much., value: {metric: retransmitted_packets, flow: 1, at: {algorithm: reno}},
     expect: {above: 1000}}
  - {id: explained, says: Reno loses a little., value: {metric: retransmitted_packets, flow: 1, at: {algorithm: reno}},
     expect: {between: [7, 8]}, control: 'off', because: it is}
"""


def lost(plan: Plan) -> Iterable[Row]:
    """Reno loses 20 packets where the path is slower; with the smaller buffer CUBIC does, too."""
    if plan.axes.get("control"):
        return [row("retransmitted_packets", 7.5, "packets", flow=1)]
    slower = plan.path.rate_bits_per_second < 100_000_000
    small = "200" not in str(plan.axes.get("unknown", ""))
    losing = slower and (plan.algorithm == "reno" or small)
    return [row("retransmitted_packets", 20.0 + plan.repetition if losing else 0.0, "packets", flow=1)]


def found(directory: Path, *, unknowns: bool, profile: str = PROFILE) -> tuple[dict[str, Any], dict[str, Any]]:
    file = directory / "made.yaml"
    file.write_text(profile, encoding="utf-8")
    experiment = make_runs(directory, file, lost, unknowns=unknowns)
    claims = judged(experiment)
    return claims, json.loads((experiment / "claims.json").read_text(encoding="utf-8"))["unknown"]


def test_a_claim_that_fails_differs_where_it_holds_on_the_grid(tmp_path: Path) -> None:
    claims, unknown = found(tmp_path, unknowns=True)
    losses = claims["losses"]
    assert losses["verdict"] == "differs"
    assert losses["unknown"]["text"] == (
        "holds where path-rate is 95 Mbit/s or 90 Mbit/s (4 of 6 points of what is left open)"
    )
    assert losses["unknown"]["share"] == 4 / 6
    first = losses["unknown"]["points"][0]
    assert (first["at"], first["verdict"]) == ({"path-rate": "100 Mbit/s", "buffer": "100 packets"}, "fail")
    assert unknown["made"] == unknown["of"] == 5


def test_a_claim_that_holds_nowhere_still_fails_and_says_so(tmp_path: Path) -> None:
    claims, unknown = found(tmp_path, unknowns=True)
    assert claims["never"]["verdict"] == "fail"
    assert claims["never"]["unknown"]["text"] == "holds at none of 6 points of what is left open"
    assert unknown["together"] is None
    assert unknown["text"].startswith("no point of the grid has all claims hold together; most, 2 of 3,")


def test_what_passes_or_a_control_explains_is_not_looked_at(tmp_path: Path) -> None:
    claims, _ = found(tmp_path, unknowns=True)
    assert (claims["none"]["verdict"], claims["none"]["unknown"]) == ("pass", None)
    assert (claims["explained"]["verdict"], claims["explained"]["unknown"]) == ("differs", None)


def test_one_point_at_which_all_claims_hold(tmp_path: Path) -> None:
    start, end = PROFILE.index("  - {id: never"), PROFILE.index("  - {id: explained")
    _, unknown = found(tmp_path, unknowns=True, profile=PROFILE[:start] + PROFILE[end:])
    assert unknown["together"] == {"path-rate": "95 Mbit/s", "buffer": "200 packets"}
    assert unknown["text"] == "all 2 claims hold together at path-rate 95 Mbit/s, buffer 200 packets"


def test_a_claim_that_the_grid_cannot_judge_does_not_hinder_the_others(tmp_path: Path) -> None:
    """The grid has no runs of controls, so what is compared with one is judged as the profile is written alone."""
    start, end = PROFILE.index("  - {id: never"), PROFILE.index("  - {id: explained")
    of_a_control = """\
  - {id: fewer, says: Something off loses fewer than 10.,
     value: {metric: retransmitted_packets, flow: 1, at: {algorithm: reno, control: 'off'}}, expect: {below: 10}}
"""
    claims, unknown = found(tmp_path, unknowns=True, profile=PROFILE[:start] + of_a_control + PROFILE[end:])
    assert claims["fewer"]["verdict"] == "pass"
    assert unknown["together"] == {"path-rate": "95 Mbit/s", "buffer": "200 packets"}
    assert unknown["text"].endswith("; 1 claim is not judged at every point")


def test_without_the_runs_of_the_grid_nothing_is_said_of_it(tmp_path: Path) -> None:
    claims, unknown = found(tmp_path, unknowns=False)
    assert (claims["losses"]["verdict"], claims["losses"]["unknown"]) == ("fail", None)
    assert (unknown["made"], unknown["of"], unknown["text"]) == (0, 5, "")
    assert unknown["fields"] == {"path-rate": "slower than the interface", "buffer": "not stated"}


def test_where_it_holds_names_every_unknown_that_matters(tmp_path: Path) -> None:
    text = PROFILE.replace(
        "{at_most: 0}}",
        "{at_most: 0}}\n  - {id: same, says: Both lose., "
        "value: {metric: retransmitted_packets, flow: 1, at: {algorithm: cubic}}, "
        "expect: {above: 10}}",
    )
    claims, _ = found(tmp_path, unknowns=True, profile=text)
    assert claims["same"]["unknown"]["text"].startswith(
        "holds where path-rate is 95 Mbit/s or 90 Mbit/s and buffer is 100 packets (2 of 6"
    )
