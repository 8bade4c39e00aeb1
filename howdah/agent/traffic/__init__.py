# SPDX-License-Identifier: Apache-2.0
"""The drivers of a plan's flows: they open connections, write and read."""

from __future__ import annotations

import importlib

from howdah.agent.loop import Loop
from howdah.agent.traffic.connection import ConnectedFlow
from howdah.agent.traffic.driver import FlowDriver
from howdah.linux.namespace import Namespace
from howdah.linux.output import Output
from howdah.plan.plan import Flow


def make_flow(description: Flow, namespaces: dict[str, Namespace], loop: Loop, output: Output) -> FlowDriver:
    """Return the driver of a flow, or of its end on this machine; nothing is opened yet.

    A driver's module is imported only for a flow that needs it: in a guest, importing takes longer than most of its
    work.
    """
    if not {description.sender, description.receiver} <= namespaces.keys():
        from howdah.agent.traffic.half import make_half

        return make_half(description, namespaces, loop, output)
    if description.sender_stack is not None:
        from howdah.agent.traffic.stack import StackSenderFlow

        return StackSenderFlow(description, namespaces, loop, output)
    if description.receiver_stack is not None:
        from howdah.agent.traffic.stack import StackFlow

        return StackFlow(description, namespaces, loop, output)
    if not description.kind.single:
        own: type[FlowDriver] = importlib.import_module(f"{__name__}.{description.traffic}").DRIVER
        return own(description, namespaces, loop, output)
    if description.datagram_bytes is not None:
        from howdah.agent.traffic.datagram import DatagramFlow

        return DatagramFlow(description, namespaces, loop, output)
    if description.exchange is not None:
        from howdah.agent.traffic.exchange import ExchangeFlow

        return ExchangeFlow(description, namespaces, loop, output)
    if description.group is not None:
        from howdah.agent.traffic.generated import GeneratedFlow

        return GeneratedFlow(description, namespaces, loop, output)
    return ConnectedFlow(description, namespaces, loop, output)
