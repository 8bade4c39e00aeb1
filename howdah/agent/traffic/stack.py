# SPDX-License-Identifier: Apache-2.0
"""A flow from the kernel's TCP to a receiver that is a stack of its own."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from howdah.agent.error import AgentError
from howdah.agent.loop import Loop
from howdah.agent.traffic.connection import ConnectedFlow, make_endpoint
from howdah.agent.traffic.endpoint import Transferred
from howdah.agent.traffic.stack_interface import StackInterface
from howdah.agent.traffic.stack_program import StackProgram
from howdah.linux.clock import MS, SECOND, now_ns
from howdah.linux.namespace import Namespace
from howdah.linux.output import Output

_PROGRAMS = Path("/howdah/in/stacks")
_LOOK_NS = 10 * MS
_READY_WITHIN_NS = 1 * SECOND


def environment_of(description: dict[str, Any]) -> dict[str, str]:
    """What the program is told. docs/stacks.md lists it."""
    stack = description["receiver_stack"]
    return {
        "STACK_NAME": stack["name"],
        "STACK_ROLE": "receive",
        "STACK_INTERFACE": stack["interface"],
        "STACK_MAC": stack["mac"],
        "STACK_MTU": str(stack["mtu_bytes"]),
        "STACK_ADDRESS": description["destination_address"],
        "STACK_PREFIX": str(stack["prefix_bits"]),
        "STACK_NETMASK": stack["netmask"],
        "STACK_GATEWAY": stack["gateway"],
        "STACK_PORT": str(description["destination_port"]),
        "STACK_PEER": description["source_address"],
        "STACK_PEER_PORT": str(description["source_port"]),
        "STACK_BYTES": str(description["size_bytes"] or 0),
    }


class StackFlow(ConnectedFlow):
    """The program listens from before the epoch. The sender's socket is the agent's, as of any flow."""

    kind = "stack"

    def __init__(
        self, description: dict[str, Any], namespaces: dict[str, Namespace], loop: Loop, output: Output
    ) -> None:
        super().__init__(description, namespaces, loop, output)
        self._raw = output.directory("stack")
        name = description["receiver_stack"]["name"]
        self._program = StackProgram(self.label, name, loop, self._raw / f"{description['id']}-receiver")

    def prepare(self) -> None:
        """Make the interface, start the program and wait until it listens. Raises AgentError."""
        flow, stack = self.description, self.description["receiver_stack"]
        namespace = self._namespaces[flow["receiver"]]
        interface = StackInterface(
            name=stack["interface"],
            mac=stack["mac"],
            host_interface=stack["host_interface"],
            address=flow["destination_address"],
            port=flow["destination_port"],
            mtu_bytes=stack["mtu_bytes"],
            number=flow["id"],
        )
        interface.make(self.label, namespace)
        self._program.start(namespace, _PROGRAMS / stack["name"] / stack["program"], environment_of(flow))
        self._program.wait_until_ready(_READY_WITHIN_NS, _LOOK_NS)
        super().prepare()

    def _make_ends(self) -> None:
        flow = self.description
        self._source = make_endpoint(flow["traffic"], "source", flow["size_bytes"] or 0)

    def _open_both(self) -> None:
        flow = self.description
        try:
            self._opening = self._open(flow["sender"], flow["source_address"], flow["source_port"])
        except OSError as error:
            raise AgentError(self.label, f"cannot open its socket: {error.strerror}") from error
        self._choose_algorithm(self._opening)

    def _states(self) -> tuple[Transferred, Transferred]:
        """The sink's is what the program said."""
        source, _ = super()._states()
        said = self._program.said
        done = said.ended_ns is not None
        sink = Transferred(said.received_bytes, said.connected_ns, said.ended_ns, done, self._program.trouble())
        return source, sink

    def close(self) -> None:
        """The program's connection is reset like that of any receiver that has not got everything."""
        finished = self._program.said.ended_ns is not None
        self._program.stop()
        if not finished and not self._program.ended:
            self._loop.run_until(now_ns() + _LOOK_NS)  # in which it says how much it got
        super().close()
        self._program.close()
