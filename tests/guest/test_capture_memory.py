# SPDX-License-Identifier: Apache-2.0
"""Captures at four interfaces fit into the guest that the plan asks for: none is killed, and each has every packet."""

from __future__ import annotations

from pathlib import Path

import pytest

from howdah.engine.uml.engine import UmlEngine
from howdah.record.kernel_log import killed_for_memory
from tests.guest.guest_run import failures, plan_of
from tests.guest.shared_run import shared_run

pytestmark = pytest.mark.guest

_PROFILE = """\
howdah: 1
name: captures
path: {rate: 20 Mbit/s, rtt: 40 ms, buffer: 1 bdp}
duration: 2 s
collect: {pcap: ["s1:s1-eth0", "left:left-eth0", "right:right-eth0", "r1:r1-eth0"]}
"""


def test_four_captures_of_a_plain_path(engine: UmlEngine, tmp_path: Path) -> None:
    profile = tmp_path / "captures.yaml"
    profile.write_text(_PROFILE, encoding="utf-8")
    directory, verdict = shared_run(engine, plan_of(profile=profile))
    assert (verdict.verdict, failures(verdict)) == ("pass", {})
    assert killed_for_memory(directory.console) == []
    whole = [check for check in verdict.checks if check.name.startswith("capture ")]
    assert len(whole) == 8
    assert all(int(check.measured or 0) > 1000 for check in whole)
