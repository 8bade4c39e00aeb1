# SPDX-License-Identifier: Apache-2.0
"""Senders of another time on a kernel: how they grow, and how a kernel of the period repairs losses."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from howdah.engine.uml.engine import UmlEngine
from howdah.record.directory import read_json
from tests.guest import guest_run
from tests.guest.shared_run import shared_run
from tests.guest.signature import slow_start

pytestmark = pytest.mark.guest

OF_2007 = "sender=of-2007"
# Two milliseconds in which packets are lost, and 50 in which their retransmissions meet the delay line, behind a queue.
LOST_TWICE = """\
howdah: 1
name: lost-twice
path:
  rate: 10 Mbit/s
  rtt: 100 ms
  buffer: 2 bdp
  schedule: [{at: 2 s, outage: 2 ms}, {at: 2270 ms, outage: 50 ms}]
algorithm: limited
sender: of-2007
duration: 6 s
"""


def test_an_ack_for_two_packets_counts_as_one_in_every_plug_in(engine: UmlEngine, tmp_path: Path) -> None:
    """Windows grow by half a round from three packets on; limited slow start adds a quarter of its limit a round."""
    for algorithm in ("standard", "hystart-plus-plus", "limited"):
        seen = slow_start(engine, tmp_path / algorithm, algorithm, OF_2007)
        windows = seen.round_windows()
        assert windows[0] == 3, algorithm
        low = windows[(windows >= 20) & (windows < 100)]
        factors = low[1:] / low[:-1]
        np.testing.assert_allclose(factors, 1.5, atol=0.06, err_msg=algorithm)
        if algorithm == "limited":
            # A quarter of its limit; some ACKs, of the receiver's timer, are for one packet, and count as much.
            steps = np.diff(windows[windows > 130])[:10]
            assert steps.min() >= 25
            assert steps.max() <= 28


def test_the_core_has_the_parameters_of_the_bundle(engine: UmlEngine, tmp_path: Path) -> None:
    slow_start(engine, tmp_path / "run", "standard", OF_2007)
    agent = read_json(tmp_path / "run" / "raw" / "agent.json")
    assert agent["modules"]["howdah_slow_start"]["parameters"]["packets_per_ack"] == "1"
    assert agent["modules"]["howdah_slow_start"]["parameters"]["first_acks_per_packet"] == "50"


def _lost_twice(engine: UmlEngine, tmp_path: Path, kernel: str) -> dict[str, Any]:
    """Growth of counters of the sender's host in the run, and the release of its kernel."""
    profile = tmp_path / "lost-twice.yaml"
    profile.write_text(LOST_TWICE)
    plan = guest_run.plan_of(f"kernel={kernel}", profile=profile)
    directory, verdict = shared_run(engine, plan)
    assert verdict.verdict != "invalid", guest_run.failures(verdict)
    release = read_json(directory.raw / "agent.json")["kernel_release"]
    return {**guest_run.measures(directory, 1, None), "release": release}


def test_a_lost_retransmission_costs_a_timeout_today_and_none_in_a_kernel_of_the_period(
    engine: UmlEngine, tmp_path: Path
) -> None:
    today = _lost_twice(engine, tmp_path, "debian-6.12")
    period = _lost_twice(engine, tmp_path, "debian-6.12+of-2007")
    assert period["release"].endswith("-of-2007")
    assert today["timeouts"] >= 1
    assert period["timeouts"] == 0
    assert period["retransmitted_packets"] > 0
    assert period["goodput_bits_per_second"] > today["goodput_bits_per_second"]
