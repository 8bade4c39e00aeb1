# SPDX-License-Identifier: Apache-2.0
"""The path of an experiment in words and numbers: the profile's values as the plans resolved them."""

from __future__ import annotations

from collections.abc import Iterator

from howdah.number import delay, rate, significant, size
from howdah.plan.host_queue import host_queues, queue_words
from howdah.plan.middlebox import middlebox_words
from howdah.plan.path import DrawnVariation, Path
from howdah.plan.plan import Plan
from howdah.plan.policer import Policer
from howdah.receiver import RECEIVERS
from howdah.record.result import Run
from howdah.report.drawing import path_label, spread
from howdah.report.origin import Fact

_POLICER_DROPS = "policer_drops_packets"


def first_point(runs: list[Run]) -> list[Plan]:
    """The plans of the runs at the first sweep point; their paths differ only by perturbation."""
    return [run.plan for run in runs if run.plan and run.point == runs[0].point]


def path_notes(runs: list[Run]) -> list[str]:
    """Notes on the path beyond its numbers."""
    notes = []
    plans = first_point(runs)
    firsts = {run.point: path_label(run.plan) for run in reversed(runs) if run.plan}
    if len(set(firsts.values())) > 1:
        notes.append("The sweep points have different paths; this is the first.")
    if len({path_label(plan) for plan in plans}) > 1:
        notes.append("Repetitions perturb the path on purpose, each in its own declared way: ranges are over them.")
    if plans and plans[0].path.delay_variation:
        why = plans[0].path.delay_variation.asked.get("source")
        notes += [f"Delay variation: {why}"] if why else []
    return notes


def path_facts(runs: list[Run]) -> list[Fact]:
    """The path of the first sweep point, with ranges where its runs differ."""
    plans = first_point(runs)
    if not plans:
        return []
    path = plans[0].path
    return [
        *_dumbbell_facts([plan.path for plan in plans]),
        *_hop_facts(path),
        *_change_facts(path),
        *_box_facts(path, runs),
        *_sender_facts(plans[0], runs),
        *_loss_and_delay_facts(path),
        *_flow_facts(plans[0], runs),
    ]


def _dumbbell_facts(paths: list[Path]) -> Iterator[Fact]:
    path = paths[0]
    there = spread((each.forward_delay_us for each in paths), delay)
    back = spread((each.reverse_delay_us for each in paths), delay)
    packets = spread((each.bdp_packets for each in paths), significant)
    share = spread([each.buffer_share for each in paths], _bdp_text)
    yield Fact("Bottleneck", rate(path.rate_bits_per_second))
    yield Fact("Round trip", spread((each.rtt_us for each in paths), delay))
    yield Fact("One way", f"{there} out, {back} back")
    bdp = spread((each.bdp_bytes for each in paths), size)
    yield Fact("BDP", f"{bdp}, {packets} packets of {path.frame_bytes} B")
    yield Fact("Buffer", f"{spread((each.buffer_bytes for each in paths), size)} ({share})")
    yield Fact("Capacity", f"{rate(path.capacity_goodput_bits_per_second)} of goodput (MSS {path.mss_bytes} B)")


def _hop_facts(path: Path) -> Iterator[Fact]:
    """The bottleneck's queue, the other hops, and links that follow a trace."""
    if path.queue != "fifo":
        yield Fact("Queue", path.queue + (", marks (ECN)" if path.ecn else ""))
    for hop in path.hops:
        yield Fact(f"Hop {hop.place} it", f"{rate(hop.rate_bits_per_second)}, {size(hop.buffer_bytes)}, {hop.queue}")
    for name, link in (("Link", path.link), ("Link back", path.reverse_link)):
        if link is not None:
            what = f"{link.file}: {link.opportunities} x {link.opportunity_bytes} B in {delay(link.round_us)}"
            yield Fact(name, f"{what}, nothing for up to {delay(link.longest_wait_us)}")


def _change_facts(path: Path) -> Iterator[Fact]:
    """Changes of rate and loss during a run."""
    for name, steps in (("Rate changes", path.rate_steps), ("Rate changes back", path.reverse_rate_steps)):
        if steps:
            rates = [value for _, value in steps]
            yield Fact(name, f"{len(rates)}, {rate(min(rates))} to {rate(max(rates))}")
    changes = [*path.forward_loss_steps, *path.reverse_loss_steps]
    if changes:
        largest = max(ratio for _, ratio, *_ in changes)
        yield Fact("Loss changes", f"{len(changes)}, at most {significant(largest * 100)} %")


def _box_facts(path: Path, runs: list[Run]) -> Iterator[Fact]:
    """What boxes on the path do to packets, and the rate of the way back."""
    if path.policer is not None:
        yield Fact("Policer", _policer_text(path.policer, runs))
    if path.middlebox is not None:
        yield Fact("Middlebox", ", ".join(middlebox_words(path.middlebox)))
    if path.early_us:
        yield Fact("Overtaking", f"{significant(path.reorder_ratio * 100)} % of packets")
    if path.reverse_rate_bits_per_second:
        yield Fact("Way back", rate(path.reverse_rate_bits_per_second))


def _sender_facts(plan: Plan, runs: list[Run]) -> Iterator[Fact]:
    path = plan.path
    if path.sender_interface_bits_per_second:
        segments = f", gso_max_segs {path.gso_max_segs}" if path.gso_max_segs is not None else ""
        yield Fact("Senders", f"{rate(path.sender_interface_bits_per_second)}{segments}")
    if (own := next(host_queues(plan), None)) is not None:
        yield Fact("Queue of senders", _with_drops(queue_words(own.queue), "host_queue_drops_packets", runs))


def _loss_and_delay_facts(path: Path) -> Iterator[Fact]:
    for name, losses in (("Random loss", path.losses(ahead=True)), ("Random loss back", path.losses(ahead=False))):
        if losses.ratio:
            burst = losses.burst_packets
            bursts = "" if burst is None else f", in bursts of {significant(burst)} packets"
            yield Fact(name, f"{significant(losses.ratio * 100)} %{bursts}")
    if path.delay_limit_packets is not None:
        yield Fact("Delay lines", f"drop what exceeds {path.delay_limit_packets} packets")
    if path.jitter is not None:
        drawn = f"mean {delay(path.jitter.mean_us)}, deviation {delay(path.jitter.deviation_us)}"
        yield Fact("Delay of each packet", f"{drawn}, at most {delay(path.jitter.largest_us)}: some overtake")
    if path.delay_variation:
        yield Fact("Delay variation", _variation_text(path.delay_variation))


def _flow_facts(plan: Plan, runs: list[Run]) -> Iterator[Fact]:
    """Initial windows, and receivers other than Linux."""
    windows = sorted({flow.initial_window_packets for flow in plan.flows})
    yield Fact("Initial window", f"{', '.join(map(str, windows))} packets")
    receivers = dict.fromkeys(flow.receiver_name for run in runs if run.plan for flow in run.plan.flows)
    if [*receivers] != ["linux"]:
        yield Fact("Receivers", ", ".join(map(_receiver_text, receivers)))


def _receiver_text(name: str) -> str:
    if name not in RECEIVERS:
        return f"{name} (a stack of its own)"
    return f"{name} (emulated)" if RECEIVERS[name].emulated else name


def _policer_text(policer: Policer, runs: list[Run]) -> str:
    what = f"{rate(policer.rate_bits_per_second)}, {size(policer.burst_bytes)} at once"
    return _with_drops(what, _POLICER_DROPS, runs)


def _with_drops(what: str, metric: str, runs: list[Run]) -> str:
    """``what``, followed by the number of packets dropped in the counting runs of the first point."""
    same = [run for run in runs if run.counts and run.point == runs[0].point]
    dropped = [row.number for run in same for row in run.metrics if row.metric == metric]
    known = [count for count in dropped if count is not None]
    if not known:
        return what
    return f"{what}; it dropped {spread(known, significant)} packets" + (" a run" if len(known) > 1 else "")


def _bdp_text(share: float) -> str:
    return f"{significant(share, 3)} BDP"


def _variation_text(variation: DrawnVariation) -> str:
    """The drawn delay variation: ``exponential; reverse: mean 10.57 ms, at most 60 ms``."""
    parts = [str(variation.asked.get("distribution", "drawn"))]
    for direction, values in variation.drawn.items():
        known = [
            f"{name} {delay(values[key])}"
            for name, key in (("mean", "mean_us"), ("deviation", "standard_deviation_us"), ("at most", "largest_us"))
            if key in values
        ]
        parts.append(f"{direction}: {', '.join(known)}")
    return "; ".join(parts)
