# SPDX-License-Identifier: Apache-2.0
"""The path of a plan, and what follows from its numbers. Standard library only."""

from __future__ import annotations

from dataclasses import field

from howdah.codec import OCCASIONAL, described, occasional, planned
from howdah.plan.jitter import Jitter
from howdah.plan.policer import Policer

# A queue that takes longer than this to empty is filled only in part when the path is measured, and a flow that the
# end of a run leaves with data of that size is reset.
MOST_FILLED_US = 30_000_000
MOST_HELD_US = 3_600_000_000  # what the queues of one way may take to empty
LONGEST_QUIET_US = 30_000_000  # for what flows left over, where no measurement of the path waits for the end of it

PROBES = 21  # small packets that measure one delay
PROBE_BYTES = 50  # a frame of 8 bytes in a UDP datagram
PROBE_EVERY_US = 20_000  # of one delay, unless a slow rate needs longer


@planned
class Hop:
    """A hop in series with the bottleneck, forward, with a queue of its own."""

    node: str
    interface: str
    rate_bits_per_second: int
    buffer_bytes: int
    queue: str
    place: str  # "before" or "after" the bottleneck


@planned
class Losses:
    """Random loss of one way. ``ratio`` is the share of packets until the first of ``steps``, which are microseconds
    after the epoch and the share from then on. Where losses come in bursts, so many are lost in a row, on average."""

    ratio: float
    burst_packets: float | None
    steps: list[list[float]]


@planned
class LinkFacts:
    """The trace that a link follows while flows run. ``opportunities`` are those of a whole round of ``round_us``, each
    of ``opportunity_bytes``; ``longest_wait_us`` is between two of the run."""

    file: str
    sha256: str
    opportunities: int
    round_us: int
    opportunity_bytes: int
    longest_wait_us: int


@planned
class Middlebox:
    """What a hop behind the delay lines does to packets while flows run. ``strips`` has kinds of TCP options, ``lost``
    numbers of packets towards each receiver; both and the ratios as howdah/profile/middlebox.py says."""

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
    """``asked`` has the profile's fields, in microseconds; ``drawn``, of ``forward`` and ``reverse``, ``least_us``,
    ``mean_us``, ``largest_us`` and ``standard_deviation_us``."""

    asked: dict[str, str | int | float | None]
    drawn: dict[str, dict[str, int]]


@planned
class Path:
    """The path as the profile asks for it, resolved.

    ``bdp_bytes`` = rate x RTT / 8 counts frames of ``frame_bytes`` (MTU + 14); ``bdp_packets`` =
    floor(bdp_bytes / frame_bytes); ``mss_bytes`` is the TCP payload of a full segment with timestamps (MTU - 52).
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
    delay_variation: DrawnVariation | None = described("null, or what the profile asks for and what was drawn")
    queue: str = "fifo"
    ecn: bool = False
    hops: list[Hop] = described("further ones, apart from the bottleneck", default_factory=list)
    early_us: int = described("by how much a reordered packet comes early", default=0)
    reorder_ratio: float = 0.0
    least_added_us: int = described("by how much the schedule makes the round trip shorter; not above 0", default=0)
    rate_steps: list[list[int]] = described(
        "changes: `[[at_us, value from then on], ...]`; the last one, at the end of the run, is the path's own value "
        "again",
        default_factory=list,
    )
    forward_loss_steps: list[list[float]] = described("the same of the loss", default_factory=list)
    reverse_loss_steps: list[list[float]] = described("the same of the way back", default_factory=list)
    carried_bits_per_second: int | None = described("most that all flows send together; null: the rate", default=None)
    tick_us: int = occasional(
        "least time between two releases of a delay line while flows run",
        shown=("tick", "{} between releases of a delay line, while flows run"),
        default=0,
    )
    reverse_buffer_bytes: int | None = occasional(
        "the most that the queue of the way back holds, where that has a rate", default=None
    )
    reverse_buffer_packets: int | None = occasional("the same in packets, where it counts them", default=None)
    middlebox: Middlebox | None = occasional(
        'what a hop does to packets while flows run: `{"mtu_bytes": (0: no limit), "answers", "clears_ecn", '
        '"strips": [kinds of TCP options], "duplicate_ratio", "corrupt_ratio", "lost": [numbers]}`',
        default=None,
    )
    policer: Policer | None = occasional(
        "rate and burst of the policer; `packets` full frames, one each `spacing_ns`, measure it, or `unmeasured` says "
        "why not",
        default=None,
    )
    buffer_packets: int | None = occasional(
        "what the bottleneck's queue holds where it counts packets; `buffer_bytes` are those of full frames",
        default=None,
    )
    reverse_queue: str = occasional("kind of the way back's queue", default="fifo")
    loss_burst_packets: float | None = occasional(
        "how many packets random loss takes in a row, on average, where it comes in bursts", default=None
    )
    reverse_loss_ratio: float = occasional("loss of the way back", default=0.0)
    reverse_loss_burst_packets: float | None = occasional("bursts of the way back", default=None)
    reverse_rate_steps: list[list[int]] = occasional("changes of the way back's rate", default_factory=list)
    jitter: Jitter | None = occasional("what each packet draws of its delay", default=None)
    delay_limit_packets: int | None = occasional(
        "what each delay line towards a receiver has room for while flows run, where that is to be too little",
        shown=("delay lines forward", "drop what exceeds {} packets, while flows run"),
        default=None,
    )
    link: LinkFacts | None = occasional(
        "the trace that the link follows: `file`, `sha256`, `opportunities` (in a whole round), `round_us`, "
        "`opportunity_bytes`, `longest_wait_us`; the operation that makes the link has those of the run, and the rate "
        "is the trace's mean, which holds while the path is measured",
        default=None,
    )
    reverse_link: LinkFacts | None = occasional("the same of the way back", default=None)

    @property
    def rate_changes(self) -> bool:
        """Whether the bottleneck has another rate at times than ``rate_bits_per_second``."""
        return bool(self.rate_steps) or self.link is not None

    @property
    def is_black_hole(self) -> bool:
        """Whether full packets are dropped at a hop, and no sender hears of it."""
        return self.middlebox is not None and self.middlebox.mtu_bytes > 0 and not self.middlebox.answers

    @property
    def tunnel_bytes(self) -> int:
        """What a tunnel adds to each packet on the wire."""
        return self.middlebox.overhead_bytes if self.middlebox is not None else 0

    def losses(self, *, ahead: bool) -> Losses:
        """Of the delay lines towards receivers, or of those towards senders."""
        if ahead:
            return Losses(self.loss_ratio, self.loss_burst_packets, self.forward_loss_steps)
        return Losses(self.reverse_loss_ratio, self.reverse_loss_burst_packets, self.reverse_loss_steps)

    @property
    def reverse_rate_changes(self) -> bool:
        """The same of the way back."""
        return bool(self.reverse_rate_steps) or self.reverse_link is not None

    @property
    def highest_rate_bits_per_second(self) -> int:
        """Of any hop, either way, at any time."""
        rates = [self.rate_bits_per_second, *(rate for _, rate in self.rate_steps)]
        rates += [hop.rate_bits_per_second for hop in self.hops]
        rates += [rate for _, rate in self.reverse_rate_steps]
        return max([*rates, self.reverse_rate_bits_per_second or 0])

    def probe_gap_us(self, targets: int) -> int:
        """Between the small packets that measure ``targets`` delays of one way, in turn: no rate limit lets one wait
        for another, also where each frame has to wait for the end of the one before."""
        slowest = min(self.rate_bits_per_second, self.reverse_rate_bits_per_second or self.rate_bits_per_second)
        passing_us = (PROBE_BYTES + self.tunnel_bytes) * 8_000_000 // slowest + 1
        return max(PROBE_EVERY_US // targets, 2 * passing_us)

    @property
    def full_packets(self) -> int:
        """Full frames that bottleneck and buffer hold: BDP + buffer."""
        return (self.bdp_bytes + self.buffer_bytes) // max(1, self.frame_bytes)

    @property
    def buffer_share(self) -> float:
        """The buffer in BDP."""
        return self.buffer_bytes / max(1, self.bdp_bytes)

    @property
    def full_share(self) -> float:
        """BDP + buffer, in BDP."""
        return 1 + self.buffer_share

    @property
    def full_rtt_ms(self) -> float:
        """Propagation delay plus the time in which a full buffer drains."""
        return self.rtt_us / 1e3 + self.buffer_bytes * 8e3 / self.rate_bits_per_second

    def held_bytes(self, rtt_us: int) -> int:
        """What bottleneck and buffer hold of a flow with that round trip."""
        return self.rate_bits_per_second * rtt_us // 8_000_000 + self.buffer_bytes

    def largest_bdp_bytes(self, rtt_us: int) -> int:
        """At the highest rate of any hop."""
        return self.highest_rate_bits_per_second * rtt_us // 8_000_000

    @property
    def forward_queue_us(self) -> int:
        """How long the full queues of the forward way take to empty, all at the bottleneck's rate."""
        queued_bytes = self.buffer_bytes + sum(hop.buffer_bytes for hop in self.hops)
        return queued_bytes * 8_000_000 // self.rate_bits_per_second

    @property
    def reverse_queue_us(self) -> int:
        """The same of the way back, where that has a rate of its own: full of full frames."""
        rate = self.reverse_rate_bits_per_second
        return (self.reverse_buffer_bytes or 0) * 8_000_000 // rate if rate else 0

    @property
    def holding_us(self) -> int:
        """How long packets may stay in the queues of both ways once nobody sends any more."""
        return self.forward_queue_us + self.reverse_queue_us

    @property
    def both_ways_us(self) -> int:
        """Delay of both ways together."""
        return self.forward_delay_us + self.reverse_delay_us

    def leaving_us(self, rtt_us: int) -> int:
        """From the end of the flows until what they left has left: two windows at most, and what the queues hold then.

        A flow whose two windows would take longer than ``MOST_FILLED_US`` is reset; what the queues hold is waited for.
        """
        forward_us, reverse_us = self.forward_queue_us, self.reverse_queue_us
        windows_us = 4 * (rtt_us + min(forward_us, MOST_FILLED_US) + min(reverse_us, MOST_FILLED_US))
        return windows_us + rtt_us + forward_us + reverse_us

    @property
    def quiet_us(self) -> int:
        """How long silence is waited for after the flows where no measurement of the path follows."""
        return LONGEST_QUIET_US + self.leaving_us(self.rtt_us)
