# SPDX-License-Identifier: Apache-2.0
"""The path of a plan, and values derived from its numbers. Standard library only."""

from __future__ import annotations

from dataclasses import field

from howdah.codec import OCCASIONAL, described, occasional, planned
from howdah.plan.jitter import Jitter
from howdah.plan.policer import Policer

# A queue with a longer drain time is filled only in part when the path is measured, and a flow whose unsent data takes
# longer to leave after the end of a run is reset.
MOST_FILLED_US = 30_000_000
MOST_HELD_US = 3_600_000_000  # longest drain time of the queues of one direction
LONGEST_QUIET_US = 30_000_000  # spare time for the flows' remaining data if no measurement of the path follows

PROBES = 21  # small packets that measure one delay
PROBE_BYTES = 50  # frame of a UDP datagram with 8 bytes
PROBE_EVERY_US = 20_000  # interval of the probes of one delay, unless a slow rate needs more


@planned
class Hop:
    """A further forward hop, in series with the bottleneck, with a queue of its own."""

    node: str
    interface: str
    rate_bits_per_second: int
    buffer_bytes: int
    queue: str
    place: str  # "before" or "after" the bottleneck


@planned
class Losses:
    """Random loss of one direction. ``ratio`` is the share of lost packets until the first of ``steps``, which are
    pairs of microseconds after the epoch and the share from then on. ``burst_packets`` is the mean burst, if losses
    come in bursts."""

    ratio: float
    burst_packets: float | None
    steps: list[list[float]]


@planned
class LinkFacts:
    """The trace that a link follows while flows run. ``opportunities`` counts those of a whole round of ``round_us``,
    each of ``opportunity_bytes``; ``longest_wait_us`` is the longest gap between two that the run reaches."""

    file: str
    sha256: str
    opportunities: int
    round_us: int
    opportunity_bytes: int
    longest_wait_us: int


@planned
class Middlebox:
    """How a hop below the delay lines modifies packets while flows run. ``strips`` has kinds of TCP options, ``lost``
    numbers of packets towards each receiver; howdah/profile/middlebox.py explains both and the ratios."""

    mtu_bytes: int  # 0: no limit
    overhead_bytes: int = field(default=0, metadata=OCCASIONAL, kw_only=True)  # a tunnel's, on the wire
    answers: bool
    clears_ecn: bool
    strips: list[int]
    duplicate_ratio: float
    corrupt_ratio: float
    lost: list[int]


@planned
class DrawnVariation:
    """``asked`` has the profile's fields, in microseconds; ``drawn`` has, for ``forward`` and ``reverse``,
    ``least_us``, ``mean_us``, ``largest_us`` and ``standard_deviation_us``."""

    asked: dict[str, str | int | float | None]
    drawn: dict[str, dict[str, int]]


@planned
class Path:
    """The profile's path, resolved.

    ``bdp_bytes`` = rate x RTT / 8 counts frames of ``frame_bytes`` (MTU + 14); ``bdp_packets`` = floor(bdp_bytes /
    frame_bytes); ``mss_bytes`` is the TCP payload of a full segment with timestamps (MTU - 52).
    ``capacity_goodput_bits_per_second`` = rate x mss / frame.
    """

    rate_bits_per_second: int
    reverse_rate_bits_per_second: int | None
    forward_delay_us: int
    reverse_delay_us: int
    rtt_us: int
    buffer_bytes: int
    bdp_bytes: int
    bdp_packets: int
    mtu_bytes: int
    mss_bytes: int
    frame_bytes: int
    capacity_goodput_bits_per_second: float
    sender_interface_bits_per_second: int | None
    gso_max_segs: int | None
    loss_ratio: float
    delay_variation: DrawnVariation | None = described("null, or the profile's variation and its draws")
    queue: str = "fifo"
    ecn: bool = False
    hops: list[Hop] = described("hops besides the bottleneck", default_factory=list)
    early_us: int = described("by how much a reordered packet is early", default=0)
    reorder_ratio: float = 0.0
    least_added_us: int = described("lowest change of the round trip by the schedule; not above 0", default=0)
    rate_steps: list[list[int]] = described(
        "changes: `[[at_us, value from then on], ...]`; the last one, at the end of the run, restores the path's own "
        "value",
        default_factory=list,
    )
    forward_loss_steps: list[list[float]] = described("the same for the loss", default_factory=list)
    reverse_loss_steps: list[list[float]] = described("the same for the reverse loss", default_factory=list)
    carried_bits_per_second: int | None = described("highest rate of all flows together; null: the rate", default=None)
    tick_us: int = occasional(
        "least time between two releases of a delay line while flows run",
        shown=("tick", "{} between releases of a delay line, while flows run"),
        default=0,
    )
    reverse_buffer_bytes: int | None = occasional(
        "size of the reverse queue, if the reverse direction has a rate", default=None
    )
    reverse_buffer_packets: int | None = occasional("the same in packets, if it counts them", default=None)
    middlebox: Middlebox | None = occasional(
        'how a hop changes packets while flows run: `{"mtu_bytes": (0: no limit), "answers", "clears_ecn", '
        '"strips": [kinds of TCP options], "duplicate_ratio", "corrupt_ratio", "lost": [numbers]}`',
        default=None,
    )
    policer: Policer | None = occasional(
        "rate and burst of the policer; `packets` full frames, one each `spacing_ns`, measure it, or `unmeasured` says "
        "why not",
        default=None,
    )
    buffer_packets: int | None = occasional(
        "size of the bottleneck's queue if it counts packets; `buffer_bytes` is then this many full frames",
        default=None,
    )
    reverse_queue: str = occasional("kind of the reverse queue", default="fifo")
    loss_burst_packets: float | None = occasional(
        "mean number of packets lost in a row, if random loss comes in bursts", default=None
    )
    reverse_loss_ratio: float = occasional("loss in the reverse direction", default=0.0)
    reverse_loss_burst_packets: float | None = occasional("mean burst of the reverse loss", default=None)
    reverse_rate_steps: list[list[int]] = occasional("changes of the reverse rate", default_factory=list)
    jitter: Jitter | None = occasional("the delay that each packet draws", default=None)
    delay_limit_packets: int | None = occasional(
        "limit of each delay line towards a receiver while flows run, if it is meant to drop packets",
        shown=("delay lines forward", "drop what exceeds {} packets, while flows run"),
        default=None,
    )
    link: LinkFacts | None = occasional(
        "the trace that the link follows: `file`, `sha256`, `opportunities` (in a whole round), `round_us`, "
        "`opportunity_bytes`, `longest_wait_us`; the operation that makes the link has those of the run; the rate is "
        "the trace's mean, constant while the path is measured",
        default=None,
    )
    reverse_link: LinkFacts | None = occasional("the same for the reverse direction", default=None)

    @property
    def rate_changes(self) -> bool:
        """Whether the bottleneck's rate differs from ``rate_bits_per_second`` at times."""
        return bool(self.rate_steps) or self.link is not None

    @property
    def is_black_hole(self) -> bool:
        """Whether a hop drops full packets without an ICMP message to the sender."""
        return self.middlebox is not None and self.middlebox.mtu_bytes > 0 and not self.middlebox.answers

    @property
    def tunnel_bytes(self) -> int:
        """The bytes that a tunnel adds to each packet on the wire."""
        return self.middlebox.overhead_bytes if self.middlebox is not None else 0

    def losses(self, *, ahead: bool) -> Losses:
        """Return the losses of the delay lines towards receivers (``ahead``), or of those towards senders."""
        if ahead:
            return Losses(self.loss_ratio, self.loss_burst_packets, self.forward_loss_steps)
        return Losses(self.reverse_loss_ratio, self.reverse_loss_burst_packets, self.reverse_loss_steps)

    @property
    def reverse_rate_changes(self) -> bool:
        """The same for the reverse direction."""
        return bool(self.reverse_rate_steps) or self.reverse_link is not None

    @property
    def highest_rate_bits_per_second(self) -> int:
        """The highest rate of any hop, in either direction, at any time."""
        rates = [self.rate_bits_per_second, *(rate for _, rate in self.rate_steps)]
        rates += [hop.rate_bits_per_second for hop in self.hops]
        rates += [rate for _, rate in self.reverse_rate_steps]
        return max([*rates, self.reverse_rate_bits_per_second or 0])

    def probe_gap_us(self, targets: int) -> int:
        """Return the gap between the probes that measure ``targets`` delays of one direction in turn. No probe waits
        for another at a rate limit, even if a frame starts only after the end of the one before."""
        slowest = min(self.rate_bits_per_second, self.reverse_rate_bits_per_second or self.rate_bits_per_second)
        passing_us = (PROBE_BYTES + self.tunnel_bytes) * 8_000_000 // slowest + 1
        return max(PROBE_EVERY_US // targets, 2 * passing_us)

    @property
    def full_packets(self) -> int:
        """Full frames that bottleneck and buffer hold: BDP + buffer."""
        return (self.bdp_bytes + self.buffer_bytes) // max(1, self.frame_bytes)

    @property
    def buffer_share(self) -> float:
        """The buffer as a multiple of the BDP."""
        return self.buffer_bytes / max(1, self.bdp_bytes)

    @property
    def full_share(self) -> float:
        """BDP + buffer, as a multiple of the BDP."""
        return 1 + self.buffer_share

    @property
    def full_rtt_ms(self) -> float:
        """Propagation delay plus the drain time of a full buffer."""
        return self.rtt_us / 1e3 + self.buffer_bytes * 8e3 / self.rate_bits_per_second

    def held_bytes(self, rtt_us: int) -> int:
        """Return the bytes that bottleneck and buffer hold of a flow with this RTT."""
        return self.rate_bits_per_second * rtt_us // 8_000_000 + self.buffer_bytes

    def largest_bdp_bytes(self, rtt_us: int) -> int:
        """Return the BDP at the highest rate of any hop."""
        return self.highest_rate_bits_per_second * rtt_us // 8_000_000

    @property
    def forward_queue_us(self) -> int:
        """The drain time of all full forward queues, at the bottleneck's rate."""
        queued_bytes = self.buffer_bytes + sum(hop.buffer_bytes for hop in self.hops)
        return queued_bytes * 8_000_000 // self.rate_bits_per_second

    @property
    def reverse_queue_us(self) -> int:
        """The drain time of the reverse queue, full of full frames; 0 if the reverse direction has no rate."""
        rate = self.reverse_rate_bits_per_second
        return (self.reverse_buffer_bytes or 0) * 8_000_000 // rate if rate else 0

    @property
    def holding_us(self) -> int:
        """How long packets may stay in the queues of both directions after the last one was sent."""
        return self.forward_queue_us + self.reverse_queue_us

    @property
    def both_ways_us(self) -> int:
        """The sum of the one-way delays."""
        return self.forward_delay_us + self.reverse_delay_us

    def leaving_us(self, rtt_us: int) -> int:
        """Return how long the flows' remaining data takes to leave: at most two windows, and the content of the queues.

        A flow whose two windows would take longer than ``MOST_FILLED_US`` is reset, but the queues always drain.
        """
        forward_us, reverse_us = self.forward_queue_us, self.reverse_queue_us
        windows_us = 4 * (rtt_us + min(forward_us, MOST_FILLED_US) + min(reverse_us, MOST_FILLED_US))
        return windows_us + rtt_us + forward_us + reverse_us

    @property
    def quiet_us(self) -> int:
        """The longest wait for silence after the flows if no measurement of the path follows."""
        return LONGEST_QUIET_US + self.leaving_us(self.rtt_us)
