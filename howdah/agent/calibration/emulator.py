# SPDX-License-Identifier: Apache-2.0
"""Measures the path inside an emulator whose hosts are other machines: one kernel, one clock.

Two hosts of the calibration's own are joined to the routers at both ends of the bottleneck. Its rate and depth are
measured between them as usual. Delays are those of probes from them to the hosts on the other machines: from sending
until the probe leaves the emulator for the wire, after the delay line.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from howdah.agent.calibration import calibration_record
from howdah.agent.calibration.buffer import measure_buffer
from howdah.agent.calibration.delay import measure_delays, target_delays
from howdah.agent.calibration.tap import Tap
from howdah.agent.calibration.train import measure_rate
from howdah.agent.calibration.udp import NUMBER, PROBE_PORT, open_sender, wall_ns
from howdah.agent.loop import Loop, wait_for_silence
from howdah.linux.clock import MS, now_ns
from howdah.linux.namespace import Namespace
from howdah.linux.netlink.ethtool import set_offload
from howdah.linux.netlink.link import add_address, create_veth, set_gso_max_segs, set_mtu, set_up
from howdah.linux.netlink.route import add_route
from howdah.plan.path import PROBE_EVERY_US, PROBES
from howdah.plan.plan import CalibrationTarget, Plan
from howdah.plan.shares import BottleneckEnds
from howdah.record.calibration import CalibrationRecord, ProbesLost, TargetDelays

_POLL_NS = 20 * MS
_EVERY_NS = PROBE_EVERY_US * 1000
_MARGIN_NS = 50 * MS
_STAGGER_NS = 1 * MS + 7_411
# From the range for network benchmarks (RFC 2544), which no plan uses.
_NETWORKS = ("198.18.0.0/30", "198.18.0.4/30")
_HOSTS = (("198.18.0.1", "198.18.0.2"), ("198.18.0.5", "198.18.0.6"))  # address of the host, address of its router
PROBE_HOSTS = ("probe-in", "probe-out")
_OFFLOADS_OFF = ("tso", "gso", "gro")


class ProbeHosts:
    """The two probe hosts in ``namespaces``: ``probe-in`` before the bottleneck and ``probe-out`` after it."""

    def __init__(self, bottleneck: BottleneckEnds, routers: dict[str, Namespace], mtu_bytes: int) -> None:
        self.namespaces: dict[str, Namespace] = {}
        self.bottleneck = bottleneck
        near, far = bottleneck.near_node, bottleneck.far_node
        ways = ((near, bottleneck.far_address), (far, bottleneck.near_address))
        for number, (name, (router, via)) in enumerate(zip(PROBE_HOSTS, ways, strict=True)):
            host = Namespace.create(name)
            self.namespaces[name] = host
            own, gateway = _HOSTS[number]
            create_veth(host.netlink, "probe", None, f"to-{name}", None, routers[router].descriptor)
            for namespace, interface, address in (
                (host, "probe", own),
                (routers[router], f"to-{name}", gateway),
            ):
                index = namespace.index(interface)
                set_mtu(namespace.netlink, index, mtu_bytes)
                for feature in _OFFLOADS_OFF:
                    set_offload(namespace.any_socket, interface, feature, False)
                add_address(namespace.netlink, index, f"{address}/30")
                set_up(namespace.netlink, index)
            # A queue in bytes must see real frames, not segments that are split later.
            set_gso_max_segs(host.netlink, host.index("probe"), 1)
            add_route(host.netlink, host.index("probe"), "default", gateway, {})
            add_route(routers[router].netlink, None, _NETWORKS[1 - number], via, {})

    def target(self) -> CalibrationTarget:
        """Return a target like the plan's, with no delay in between."""
        return CalibrationTarget(*PROBE_HOSTS, _HOSTS[0][0], _HOSTS[1][0], 0, 0, 0)

    def remove(self) -> None:
        for namespace in self.namespaces.values():
            namespace.remove()
        self.namespaces.clear()


@dataclass
class _Line:
    """Probes into one delay line. The host they reach on the other machine discards them without an answer."""

    tap: Tap
    source: Namespace
    destination: str
    sent_ns: list[int] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._sender = open_sender(self.source, "0.0.0.0")

    def send(self, _now: int) -> None:
        self.sent_ns.append(wall_ns())
        self._sender.sendto(NUMBER.pack(len(self.sent_ns) - 1), (self.destination, PROBE_PORT))

    def delays_ns(self) -> list[int]:
        departed = self.tap.departures(self.destination, PROBE_PORT)
        self.tap.close()
        self._sender.close()
        return [item.time_ns - self.sent_ns[item.number] for item in departed]


def calibrate_emulator(
    plan: Plan, routers: dict[str, Namespace], hosts: ProbeHosts, loop: Loop, epoch_ns: int
) -> CalibrationRecord:
    """Return the content of calibration-*.json like ``calibrate``, once the emulator is silent again."""
    calibration = plan.calibration
    start = now_ns()
    entries, sent, received = _measure_lines(plan, routers, hosts, loop, start)
    target = hosts.target()
    inside = replace(
        calibration, targets=[target], train_rate_bits_per_second=None, burst_frames=hosts.bottleneck.burst_frames
    )
    bare_path = replace(plan.path, sender_interface_bits_per_second=None)
    plan_inside = replace(plan, calibration=inside, path=bare_path)
    direct, _targets = measure_delays(bare_path, [target], hosts.namespaces, loop, now_ns(), early=False)
    train = measure_rate(inside, target, hosts.namespaces, loop)
    bases = [measurement.base_forward_ns for measurement in direct]
    phase_end = start + calibration.phase_us * 1000
    depth = measure_buffer(plan_inside, bases, train.rate_bits_per_second, hosts.namespaces, loop, phase_end)
    longest_us = max(target.forward_delay_us + target.reverse_delay_us for target in calibration.targets)
    deadline = start + (calibration.phase_us + calibration.settle_us) * 1000
    silent = wait_for_silence(routers, loop, longest_us * 1000 + _POLL_NS, deadline)
    # Count no frame of the train: it does not pass the delay lines, where a plan's losses are.
    lost, times = ProbesLost(sent, received), (start - epoch_ns, now_ns() - epoch_ns)
    return calibration_record(*times, train, depth, silent=silent, targets=entries, loss=lost)


def _measure_lines(
    plan: Plan, routers: dict[str, Namespace], hosts: ProbeHosts, loop: Loop, now: int
) -> tuple[list[TargetDelays], int, int]:
    targets = plan.calibration.targets
    assert plan.slice is not None
    start = now + MS
    lines: list[tuple[CalibrationTarget, _Line, _Line]] = []
    for number, (target, place) in enumerate(zip(targets, plan.slice.probes, strict=True)):
        forward = _Line(
            Tap(routers[place.receiver_node], place.receiver_interface),
            hosts.namespaces["probe-in"],
            target.receiver_address,
        )
        reverse = _Line(
            Tap(routers[place.sender_node], place.sender_interface),
            hosts.namespaces["probe-out"],
            target.sender_address,
        )
        first = start + number * _STAGGER_NS % _EVERY_NS
        for probe in range(PROBES):
            loop.at(first + probe * _EVERY_NS, forward.send)
            loop.at(first + probe * _EVERY_NS + _STAGGER_NS // 2, reverse.send)
        lines.append((target, forward, reverse))
    longest_us = max(max(target.forward_delay_us + target.variation_us, target.reverse_delay_us) for target in targets)
    loop.run_until(start + PROBES * _EVERY_NS + longest_us * 1000 + _MARGIN_NS)
    entries, sent, received = [], 0, 0
    for target, forward, reverse in lines:
        delays = forward.delays_ns(), reverse.delays_ns()
        own_sent = len(forward.sent_ns) + len(reverse.sent_ns)
        entries.append(target_delays(target, *delays, sent=own_sent))
        sent, received = sent + own_sent, received + len(delays[0]) + len(delays[1])
    return entries, sent, received
