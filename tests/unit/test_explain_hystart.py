# SPDX-License-Identifier: Apache-2.0
"""The detectors of HyStart over ACKs that are written by hand: which have a sample, and where rounds begin."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from howdah.explain.course import SenderCourse
from howdah.explain.delay import MIDDLE, RoundTrips
from howdah.explain.estimate import Estimate
from howdah.explain.hystart import Detections, detections

MS = 1_000_000
MSS = 1000
BASE_NS = 40 * MS


def spoke(
    acked: Sequence[float],
    rtt_ms: Sequence[float | None],
    *,
    flight: int = 40,
    sacked: Sequence[int] = (),
    together: Sequence[int] = (),
) -> Detections:
    """ACKs, 3 ms apart, each of so many packets, from a sender that has ``flight`` of them out and doubles; those
    ``sacked`` report a packet more by SACK. Those ``together`` came with the stamp of the one before."""
    una_after = np.cumsum(np.array(acked) * MSS).astype(np.int64)
    una = np.concatenate([[0], una_after[:-1]])
    nxt = flight * MSS + 2 * una
    exact = ~np.isin(np.arange(una.size), together)
    known = np.maximum.accumulate(np.where(exact, np.arange(una.size), 0))
    delivered = una_after + MSS * np.cumsum(np.isin(np.arange(una.size), sacked))
    course = SenderCourse(
        time_ns=np.arange(una.size) * 3 * MS, nxt=nxt[known], sent=nxt[known], una=una, una_after=una_after,
        delivered=delivered, window_bytes=np.full(una.size, 1 << 30), mss_bytes=MSS, rounds=np.array([0]),
        again=np.array([], np.int64), again_begin=np.array([], np.int64), exact=exact, of_sender=True,
    )  # fmt: skip
    ack = np.array([at for at, sample in enumerate(rtt_ms) if sample is not None])
    rtt = np.array([round(sample * MS) for sample in rtt_ms if sample is not None])
    base = Estimate(float(BASE_NS), float(BASE_NS), float(BASE_NS), "given")
    trips = RoundTrips(MIDDLE, base, None, 0, BASE_NS, ack, rtt, 1, False, 0, False)
    return detections(course, trips, una.size - 1)


@pytest.mark.parametrize(("sacked", "at"), [((), None), ((8,), 8)])
def test_a_duplicate_that_reports_a_packet_by_sack_is_a_sample(sacked: tuple[int, ...], at: int | None) -> None:
    """A round of eight stretched ACKs is too short for the delay's detector. The duplicate behind them is its ninth
    sample, and the sender leaves before it sends anything again."""
    found = spoke([8] * 8 + [0, 0], [50.0] * 8 + [None, None], flight=120, sacked=sacked)
    assert list(found.delays) == ([] if at is None else [at])


def test_a_round_begins_where_it_did_though_its_acks_have_one_stamp() -> None:
    """Away from the sender, what each of five ACKs with one stamp let go shows only at the next stamp. A round that is
    taken to begin at another of them holds samples of the round before."""
    acked = [21.0] + [1.0] * 63
    begins = 42  # the first ACK behind what had left when the round before began
    rtt: list[float | None] = [40.0 if at < begins else 50.0 for at in range(len(acked))]
    whole = spoke(acked, rtt, flight=20)
    assert list(whole.delays) == [begins + 8]
    together = [at for at in range(len(acked)) if at % 5]
    assert list(spoke(acked, rtt, flight=20, together=together).delays) == [begins + 8]
