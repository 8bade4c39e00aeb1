# SPDX-License-Identifier: Apache-2.0
"""Causes of exits that no module tells of, and a sender with nothing to send, in a real kernel."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from howdah.engine.uml.engine import UmlEngine
from howdah.measure.exit import find_exit
from howdah.measure.limit import RECOVERY
from howdah.measure.measured import load as load_tables
from howdah.plan.plan import Plan
from tests.guest.guest_run import ROOT, failures, measures, plan_of
from tests.guest.shared_run import shared_run
from tests.guest.signature import SIGNATURE

pytestmark = pytest.mark.guest


def owncut(tmp_path: Path, *overrides: str) -> Plan:
    """``tcp_owncut.c`` on the path of the signatures."""
    (tmp_path / "tcp_owncut.c").write_text((ROOT / "tests/guest/tcp_owncut.c").read_text())
    profile = tmp_path / "owncut.yaml"
    text = SIGNATURE.read_text().replace("algorithm: standard", "modules: [./tcp_owncut.c]\nalgorithm: owncut")
    profile.write_text(text)
    return plan_of(*overrides, profile=profile)


@pytest.mark.parametrize("collect", [[], ["collect.tcp_info=5 s"]], ids=["tcp_info", "without a reading at the cut"])
def test_a_module_that_cuts_its_own_window_is_not_left_by_the_loss_that_follows(
    engine: UmlEngine, tmp_path: Path, collect: list[str]
) -> None:
    plan = owncut(tmp_path, *collect)
    directory, _ = shared_run(engine, plan)
    found = measures(directory)
    data = load_tables(directory, plan)
    [trace] = data.traces
    traced = find_exit(trace)
    assert traced is not None
    if not collect:
        again = data.info[1].growth("total_retrans_packets", traced.time_ns, traced.time_ns + 2 * 2 * 102_000_000)
        assert again, "nothing was lost right after the cut, so that this test shows nothing"
    assert found["retransmitted_packets"] > 0
    assert found["exit_cause"] == "own-cut"
    assert found["exit_cwnd_packets"] == found["decision_cwnd_packets"] >= 1750
    assert found["rollback_packets"] == pytest.approx(found["exit_cwnd_packets"] / 2, abs=2)
    assert trace.cwnd.max() <= found["exit_cwnd_packets"] + 1


@pytest.mark.parametrize("algorithm", ["reno", "cubic-no-hystart"])
def test_a_loss_is_a_loss(engine: UmlEngine, algorithm: str) -> None:
    directory, _ = shared_run(engine, plan_of(f"algorithm={algorithm}", profile=SIGNATURE))
    found = measures(directory)
    assert (found["exit_cause"], found["rollback_packets"]) == ("loss", None)


@pytest.mark.parametrize("collect", [[], ["collect.tcp_info=5 s"]], ids=["tcp_info", "without a reading at the cut"])
def test_ecn_is_a_congestion_signal(engine: UmlEngine, collect: list[str]) -> None:
    plan = plan_of("algorithm=reno", "path.queue=fq_codel", "path.ecn=true", *collect, profile=SIGNATURE)
    directory, _ = shared_run(engine, plan)
    assert measures(directory)["exit_cause"] == "congestion-signal"


@pytest.mark.parametrize("buffer", ["1 bdp", "0.1 bdp"])
def test_bbr_version_1_leaves_by_its_rate_whatever_is_lost(engine: UmlEngine, buffer: str) -> None:
    plan = plan_of("algorithm=bbr", f"path.buffer={buffer}", profile=SIGNATURE)
    directory, _ = shared_run(engine, plan)
    assert measures(directory)["exit_cause"] == "bbr-drain"


def test_a_sender_that_stands_still_in_a_recovery_is_seen(engine: UmlEngine) -> None:
    """NewReno repairs one hole a round trip, its send buffer full of what lies beyond; the kernel counts nothing.

    The same run, believed to be one with SACK, is invalid: there nothing explains a sender without data.
    """
    overrides = ("path.rtt=240 ms", "duration=40 s", "host.tcp_rmem=4096 67108864 268435456")
    newreno = plan_of("receiver=no-sack", *overrides, profile=SIGNATURE)
    directory, verdict = shared_run(engine, newreno)
    checks = {check.name: check for check in verdict.checks}
    share = measures(directory)["nothing_to_send_share"]
    check = checks["nothing to send flow 1"]
    assert check.measured == share
    assert share > 0.3
    assert check.ok is True
    assert "without SACK" in check.message
    assert float(checks["send buffer flow 1"].measured or 0) < 0.01, "the kernel's count"
    info = load_tables(directory, newreno).info[1]
    assert np.mean(info["ca_state"] >= RECOVERY) > share - 0.1
    believed = plan_of(*overrides, profile=SIGNATURE)
    directory, verdict = shared_run(engine, believed, newreno)
    assert "in recoveries" in failures(verdict)["during", "nothing to send flow 1"]


@pytest.mark.parametrize(
    ("algorithm", "causes"),
    [("standard", {"loss"}), ("cubic", {"ack-train", "delay"}), ("search", {"loss", "delivery-rate"})],
)
def test_a_sender_with_sack_always_has_data(engine: UmlEngine, algorithm: str, causes: set[str]) -> None:
    plan = plan_of(f"algorithm={algorithm}", profile=SIGNATURE)
    directory, verdict = shared_run(engine, plan)
    checks = {check.name: check for check in verdict.checks}
    assert checks["nothing to send flow 1"].ok is True
    found = measures(directory)
    assert found["nothing_to_send_share"] < 0.02
    assert found["exit_cause"] in causes
