# SPDX-License-Identifier: Apache-2.0
"""Replaces the queues of senders' interfaces while flows run, if the profile asks for one that may drop.

The measurement of the path would overflow such a queue. It is therefore installed at the epoch, and the usual queue
returns once the network is silent.
"""

from __future__ import annotations

import dataclasses

from howdah.errors import ProfileError
from howdah.linux.netlink.discipline.pfifo import Pfifo
from howdah.linux.netlink.discipline.pfifo_fast import PfifoFast
from howdah.plan.event import Event
from howdah.plan.host_queue import HOST_HANDLE
from howdah.plan.network import Network
from howdah.plan.operation import QueueLength
from howdah.plan.placed import Replace
from howdah.plan.plan import Plan
from howdah.plan.qdisc import CLASS_ID, LEAF_HANDLE
from howdah.plan.step import Operation
from howdah.profile import Cell

_BEFORE_MEASURING_US = 50_000  # from the return of the usual queues to the second measurement of the path


def with_host_queues(cell: Cell, network: Network, plan: Plan) -> Plan:
    """Return the plan with the senders' queues. Raise ProfileError if the senders' interfaces have no rate, so that no
    packet would queue, or if the run has several kernels.
    """
    asked = cell.scenario.sender.queue
    if asked.discipline is Pfifo:
        return plan
    where = cell.place("sender", "queue")
    if plan.path.sender_interface_bits_per_second is None:
        what = f"nothing waits in {asked.kind}: the senders' interfaces are infinitely fast"
        raise ProfileError(what, where=where, hint="give path.sender_interface a rate, or leave sender.queue out")
    if plan.parts or plan.traits.several_machines:
        what = f"{asked.kind} at a sender needs all hosts in one kernel"
        raise ProfileError(what, where=where, hint="use engine: uml without split and without kernels of their own")
    operations: list[Operation] = []
    taken, given_back = [], []
    for sender in network.nodes("sender"):
        interface = network.access_link(sender).at(sender)
        usual = _usual(plan, sender)
        queue = asked.discipline.of_host(asked.parameters(), usual.limit_packets)
        if isinstance(queue, PfifoFast):
            operations.append(QueueLength(interface.node, interface.name, queue.limit_packets))
        place = (interface.node, interface.name, CLASS_ID)
        taken.append(Event(0, Replace(*place, HOST_HANDLE, queue)))
        if plan.calibration.enabled:
            back_us = plan.calibration.after_us - _BEFORE_MEASURING_US
            given_back.append(Event(back_us, Replace(*place, LEAF_HANDLE, usual)))
    timeline = sorted([*taken, *plan.timeline, *given_back], key=lambda item: item.at_us)
    return dataclasses.replace(plan, operations=plan.operations + operations, timeline=timeline)


def _usual(plan: Plan, sender: str) -> Pfifo:
    """Return the queue of the sender's interface while the path is measured."""
    (found,) = (queue.discipline for queue in plan.queues if (queue.node, queue.handle) == (sender, LEAF_HANDLE))
    assert isinstance(found, Pfifo)
    return found
