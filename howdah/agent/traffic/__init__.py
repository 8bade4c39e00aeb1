# SPDX-License-Identifier: Apache-2.0
"""The flows of a plan: who opens the connection, who writes to it and who reads from it."""

from __future__ import annotations

from typing import Any

from howdah.agent.loop import Loop
from howdah.agent.traffic.connection import ConnectedFlow
from howdah.agent.traffic.datagram import DatagramFlow
from howdah.agent.traffic.driver import FlowDriver
from howdah.agent.traffic.exchange import ExchangeFlow
from howdah.agent.traffic.flent import FlentFlow
from howdah.agent.traffic.generated import GeneratedFlow
from howdah.agent.traffic.half import make_half
from howdah.agent.traffic.http import HttpFlow
from howdah.agent.traffic.iperf3 import Iperf3Flow
from howdah.agent.traffic.program import ProgramFlow
from howdah.agent.traffic.stack import StackFlow
from howdah.linux.namespace import Namespace
from howdah.linux.output import Output


def make_flow(description: dict[str, Any], namespaces: dict[str, Namespace], loop: Loop, output: Output) -> FlowDriver:
    """The driver of one flow, or of its end that is on this machine; nothing is opened yet."""
    if not {description["sender"], description["receiver"]} <= namespaces.keys():
        return make_half(description, namespaces, loop, output)
    if description.get("receiver_stack") is not None:
        return StackFlow(description, namespaces, loop, output)
    if description["traffic"] == "iperf3":
        return Iperf3Flow(description, namespaces, loop, output)
    if description["traffic"] == "flent":
        return FlentFlow(description, namespaces, loop, output)
    if description["traffic"] == "program":
        return ProgramFlow(description, namespaces, loop, output)
    if description["traffic"] == "http":
        return HttpFlow(description, namespaces, loop, output)
    if description.get("datagram_bytes") is not None:
        return DatagramFlow(description, namespaces, loop, output)
    if description.get("exchange") is not None:
        return ExchangeFlow(description, namespaces, loop, output)
    if description.get("group") is not None:
        return GeneratedFlow(description, namespaces, loop, output)
    return ConnectedFlow(description, namespaces, loop, output)
