# SPDX-License-Identifier: Apache-2.0
"""Our bases against the kernel's own: standard slow start over cubic and over reno, ACK for ACK.

What in-tree cubic computes is not exported, so that the base is written anew; every record of every column of tcp_probe
must nevertheless be the same, through slow start, its overshoot, recoveries and congestion avoidance.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from howdah.engine.uml.engine import UmlEngine
from howdah.plan.plan import Plan
from howdah.record import table as store
from howdah.record.directory import RunDirectory
from tests.guest.guest_run import plan_of
from tests.guest.shared_run import counting_run
from tests.guest.signature import SIGNATURE

pytestmark = pytest.mark.guest

PAIRS = [("standard-cubic", "cubic-no-hystart"), ("standard", "reno")]
RANDOM_LOSS = ("duration=60 s", "path.loss=0.02 %")
# The buffer drops: first half a window, then one by one. A slower path fills it more often with fewer packets.
OVERFLOW = ("duration=60 s", "path.rate=20 Mbit/s", "path.buffer=0.5 bdp")


def _trace(engine: UmlEngine, plan: Plan) -> tuple[pa.Table, dict[str, Any]]:
    """Every record of every column, and the metrics' retransmissions, of a run that is valid."""
    directory, _ = counting_run(engine, plan)
    return store.read(directory, "tcp_probe"), _last_info(directory)


def _last_info(directory: RunDirectory) -> dict[str, Any]:
    """The sender's last tcp_info that saw the connection established."""
    info = store.read(directory, "tcp_info")
    rows: list[dict[str, Any]] = [row for row in info.to_pylist() if row["end"] == "sender" and row["segs_out_packets"]]
    return rows[-1]


def _differences(ours: pa.Table, theirs: pa.Table) -> list[str]:
    """What differs, column by column, with the first record that does."""
    found = [] if ours.num_rows == theirs.num_rows else [f"{ours.num_rows} records against {theirs.num_rows}"]
    rows = min(ours.num_rows, theirs.num_rows)
    for name in ours.column_names:
        mine, other = (table.slice(0, rows)[name].combine_chunks() for table in (ours, theirs))
        same = pc.fill_null(pc.equal(mine, other), False)
        same = pc.or_(same, pc.and_(pc.is_null(mine), pc.is_null(other)))
        if not pc.all(same).as_py():
            first = pc.index(same, False).as_py()
            found.append(f"{name}: from record {first}, {mine[first]} against {other[first]}")
    return found


@pytest.mark.parametrize(("ours", "theirs"), PAIRS)
@pytest.mark.parametrize("path", [RANDOM_LOSS, OVERFLOW], ids=["random-loss", "overflow"])
def test_a_base_is_the_kernels_own_ack_for_ack(
    engine: UmlEngine, ours: str, theirs: str, path: tuple[str, ...]
) -> None:
    mine, mine_info = _trace(engine, plan_of(f"algorithm={ours}", *path, profile=SIGNATURE))
    other, other_info = _trace(engine, plan_of(f"algorithm={theirs}", *path, profile=SIGNATURE))
    # A comparison of nothing, or without a loss, would show nothing.
    assert other.num_rows > 30_000
    assert other_info["total_retrans_packets"] > 10
    assert _differences(mine, other) == []
    assert mine_info == other_info


def test_a_planted_difference_is_found(engine: UmlEngine) -> None:
    """Slow start that ends at 2000 packets instead of by loss differs from in-tree cubic's, and is seen to."""
    short = "duration=5 s"
    theirs, _ = _trace(engine, plan_of("algorithm=cubic-no-hystart", short, profile=SIGNATURE))
    plan = plan_of("algorithm=standard-cubic", short, profile=SIGNATURE)
    planted = dataclasses.replace(plan, module_parameters={"ss_standard": {"init_ssthresh": "2000"}})
    ours, _ = _trace(engine, planted)
    found = _differences(ours, theirs)
    assert any(each.startswith("cwnd_packets: ") for each in found), found
    same, _ = _trace(engine, plan)
    assert _differences(same, theirs) == []
