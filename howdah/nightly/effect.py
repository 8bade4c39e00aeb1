# SPDX-License-Identifier: Apache-2.0
"""How large a change of a measure must be to matter, and which way is worse. docs/nightly.md has the same table."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Worse = Literal["more", "less", "either"]


@dataclass(frozen=True)
class Effect:
    """The least change that matters: the larger of a share of the baseline's mean and a quantity in ``unit``."""

    kind: str
    unit: str
    relative: float
    absolute: float

    def margin(self, baseline: float) -> float:
        return max(self.relative * abs(baseline), self.absolute)


EFFECTS = (
    Effect("processor time", "ratio", 0.10, 0.0),  # of the machine, which has noise of its own
    Effect("duration", "s", 0.02, 0.001),
    Effect("duration", "us", 0.02, 1000.0),
    Effect("rate", "bit/s", 0.01, 10_000.0),
    Effect("share", "ratio", 0.01, 0.002),
    Effect("packets", "packets", 0.02, 2.0),
    Effect("bytes", "bytes", 0.02, 3000.0),  # two frames
    Effect("count", "", 0.02, 0.5),  # events, rounds, connections: one more in every second repetition
)
TEXT = Effect("text", "", 0.0, 0.0)
_BY_UNIT = {effect.unit: effect for effect in EFFECTS[1:]}
# Its unit is that of the cause of each exit, so repetitions cannot be averaged.
LEFT_OUT = frozenset({"exit_quantity", "exit_threshold"})

_MORE_IS_WORSE = frozenset(
    {
        *("overshoot_packets", "retransmitted_packets", "startup_retransmitted_packets", "dropped_packets"),
        *("first_loss_retransmitted_packets", "bottleneck_drops_packets", "bottleneck_drop_ratio", "recovery_s"),
        *("blackout_s", "longest_blackout_s", "long_blackout", "timeouts", "time_to_90_percent_s", "time_to_cwnd_s"),
        *("rounds_to_cwnd", "time_to_100_kb_s", "time_to_1_mb_s", "time_to_10_mb_s", "queue_peak_bytes", "max_rtt_us"),
        *("completion_time_s", "completion_time_median_s", "retransmission_ratio", "large_retransmission_ratio"),
        *("completion_time_p10_s", "completion_time_p25_s", "completion_time_p75_s", "completion_time_p90_s"),
        *("large_completion_time_s", "large_completion_time_p25_s", "large_completion_time_median_s"),
        *("large_completion_time_p75_s", "large_completion_time_p90_s", "synchronous_losses_measured"),
        *("synchronous_losses_background", "transaction_time_median_s", "transaction_time_p10_s"),
        *("transaction_time_p90_s", "first_transaction_time_s", "last_transaction_time_s", "sock_bytes"),
        *("tcp_sock_bytes", "ack_sample_bytes", "rate_sample_bytes"),
    }
)
_LESS_IS_WORSE = frozenset(
    {
        *("utilisation", "utilisation_measured", "goodput_bits_per_second", "jain_index", "completed_share"),
        *("packet_throughput_bits_per_second", "background_goodput_bits_per_second", "delivered_share"),
        *("retransmission_free_share", "large_retransmission_free_share", "large_within_1_s_share"),
        *("connection_goodput_median_bits_per_second", "received_bytes", "transactions", "answered_share"),
        *("repaired_per_rtt_packets", "first_timeout_s"),
    }
)

# They are there where packets were lost, or a timer ran out: that they are not there any more is for the better.
OF_LOSSES = frozenset(
    {
        *("recovery_s", "repaired_per_rtt_packets", "first_timeout_s", "dropped_packets"),
        *("first_loss_retransmitted_packets", "synchronous_losses_measured", "synchronous_losses_background"),
    }
)


def effect_of(metric: str, unit: str) -> Effect:
    """The row of the table for a measure; one of a unit that is not in it is a count."""
    if metric.startswith("cpu_"):
        return EFFECTS[0]
    return _BY_UNIT.get(unit, EFFECTS[-1])


def worse(metric: str) -> Worse:
    """Which way a change is for the worse. ``either``: a window or a time at which a flow leaves slow start is neither
    good nor bad by itself, but nobody meant to change it."""
    if metric in _MORE_IS_WORSE or metric.startswith("cpu_"):
        return "more"
    return "less" if metric in _LESS_IS_WORSE else "either"
