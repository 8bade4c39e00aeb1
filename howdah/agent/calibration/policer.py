# SPDX-License-Identifier: Apache-2.0
"""What the policer passes of evenly spaced frames: all until its bucket is empty, then its rate."""

from __future__ import annotations

from howdah.agent.calibration.udp import NUMBER, SAMPLED_PORT, arrivals, open_receiver, open_sender, send
from howdah.agent.loop import Loop
from howdah.frame import UDP_FRAME_BYTES
from howdah.linux.clock import MS, now_ns
from howdah.linux.namespace import Namespace
from howdah.plan.plan import Plan
from howdah.plan.policer import Policer
from howdah.record.calibration import PolicerTrain

_MARGIN_NS = 50 * MS


def wait_until_full(policer: Policer | None, loop: Loop) -> None:
    """Wait until the policer's bucket is full."""
    if policer is not None:
        loop.run_until(now_ns() + policer.full_us * 1000)


def measure_policer(plan: Plan, namespaces: dict[str, Namespace], loop: Loop) -> PolicerTrain | None:
    """Return the entry ``policer`` of calibration-*.json, with times from the first frame; None if the plan does not
    measure it."""
    policer, calibration = plan.path.policer, plan.calibration
    if policer is None or not policer.packets:
        return None
    wait_until_full(policer, loop)
    target = calibration.targets[0]
    sender = open_sender(namespaces[target.sender], target.sender_address)
    receiver = open_receiver(namespaces[target.receiver], target.receiver_address, SAMPLED_PORT)
    payload = bytearray(calibration.frame_bytes - UDP_FRAME_BYTES)
    start = now_ns() + MS
    sent: list[int] = []

    def send_at(now: int) -> None:
        NUMBER.pack_into(payload, 0, len(sent))
        send(sender, payload, target.receiver_address, SAMPLED_PORT)
        sent.append(max(now, start) - start)
        if len(sent) < policer.packets:
            loop.at(start + len(sent) * policer.spacing_ns, send_at)

    loop.at(start, send_at)
    waited_ns = (target.forward_delay_us + target.variation_us) * 1000 + _MARGIN_NS
    loop.run_until(start + policer.packets * policer.spacing_ns + waited_ns)
    passed = {arrival.number for arrival in arrivals(receiver)}
    sender.close()
    receiver.close()
    return policer_train(sent, passed)


def policer_train(sent_ns: list[int], passed: set[int]) -> PolicerTrain:
    """Return the record; ``sent_ns`` are the frames' times of sending, by number."""
    first = next((number for number in range(len(sent_ns)) if number not in passed), None)
    after = [] if first is None else [number for number in sorted(passed) if number > first]
    return PolicerTrain(
        sent=len(sent_ns),
        passed=len(passed),
        first_dropped=first,
        first_dropped_ns=None if first is None else sent_ns[first],
        passed_after=len(after),
        passed_after_ns=[sent_ns[after[0]], sent_ns[after[-1]]] if after else None,
    )
