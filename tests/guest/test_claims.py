# SPDX-License-Identifier: Apache-2.0
"""Claims over real runs: what holds passes, what does not fails, and a control tells why."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.guest.guest_run import howdah

pytestmark = pytest.mark.guest

PROFILE = """\
# SPDX-License-Identifier: Apache-2.0
howdah: 1
name: claimed
path: {rate: 10 Mbit/s, rtt: 40 ms, buffer: [0.5 bdp, 4 bdp]}
algorithm: [standard, hystart-paper]
duration: 3 s
repetitions: 2
quick: {path.buffer: 4 bdp}
collect: {tcp_info: 100 ms, qdisc: 20 ms, interfaces: off}
controls:
  deep: {what: the buffer is four BDP deep, set: {path.buffer: 4 bdp}, at: {algorithm: standard}}
claims:
  - id: less-overshoot
    says: HyStart leaves slow start with a much smaller window where the buffer is deep.
    value: {metric: exit_cwnd_packets, at: {algorithm: hystart-paper, path.buffer: 4 bdp}}
    than: {at: {algorithm: standard}}
    expect: much less
  - id: by-loss
    says: Standard slow start ends with a loss.
    value: {metric: exit_cause, at: {algorithm: standard}}
    expect: {is: loss}
    each: path.buffer
  - id: fuller
    says: The queue grows with the buffer.
    value: {metric: queue_peak_bytes, at: {algorithm: standard}}
    expect: {trend: rises, over: path.buffer}
  - id: exit-at-seven
    says: Standard slow start ends at 7 packets.
    value: {metric: exit_cwnd_packets, at: {algorithm: standard}}
    expect: {equals: 7, within: 1}
    each: path.buffer
  - id: long-queue
    says: The queue holds more than 100 kB.
    value: {metric: queue_peak_bytes, at: {algorithm: standard, path.buffer: 0.5 bdp}}
    expect: {above: 100 kB}
    control: deep
    because: the queue cannot hold more than the buffer
"""


def _claims(text: str) -> dict[str, Any]:
    return {claim["id"]: claim for claim in json.loads(text)["claims"]}


def test_claims_of_real_runs(tmp_path: Path) -> None:
    profile = tmp_path / "claimed.yaml"
    profile.write_text(PROFILE, encoding="utf-8")
    runs = tmp_path / "runs"
    quick = howdah("run", profile, "--quick", "--runs", runs, "--jobs", 1, "--no-report", "--json", remembered=True)
    assert quick.returncode == 6, quick.stderr
    first = _claims(quick.stdout)
    assert {name: claim["verdict"] for name, claim in first.items()} == {
        "less-overshoot": "pass",
        "by-loss": "pass",
        "fuller": "unsupported",
        "exit-at-seven": "fail",
        "long-queue": "unsupported",
    }
    made = {entry.name for entry in (runs / "claimed").iterdir() if (entry / "run.json").exists()}
    assert len(made) == 4 + 2

    full = howdah("run", profile, "--runs", runs, "--jobs", 1, "--no-report", remembered=True)
    assert full.returncode == 6, full.stderr
    assert "claims: 3 pass, 1 fail, 1 differs" in full.stdout
    there = {entry.name for entry in (runs / "claimed").iterdir() if (entry / "run.json").exists()}
    assert len(there) == 8 + 2, "the runs of the quick form are those of the full one"
    assert made < there

    claims = _claims((runs / "claimed" / "claims.json").read_text(encoding="utf-8"))
    differs = claims["long-queue"]
    assert differs["verdict"] == "differs"
    assert differs["measured"]["mean"] <= 25_000 + 1514, "half a BDP and a frame"
    assert 100_000 < differs["control"]["measured"]["mean"] <= 200_000 + 1514
    assert all("deep" in name for name in differs["control"]["runs"])
    assert claims["exit-at-seven"]["measured"]["mean"] > 20
    assert claims["fuller"]["measured"]["trend"][0]["axis"] == "0.5 bdp"

    profile.write_text(PROFILE.replace("{equals: 7, within: 1}", "{at_least: 20}"), encoding="utf-8")
    again = howdah("claims", "claimed", "--runs", runs, "--profile", profile)
    assert again.returncode == 0, again.stdout + again.stderr
    assert "claims: 4 pass, 1 differs" in again.stdout
