# SPDX-License-Identifier: Apache-2.0
"""A flow between the kernel's TCP and another TCP stack, which is the receiver or the sender."""

from __future__ import annotations

from pathlib import Path

from howdah.agent.error import AgentError
from howdah.agent.loop import Loop
from howdah.agent.traffic.connection import ConnectedFlow, make_endpoint
from howdah.agent.traffic.endpoint import Transferred
from howdah.agent.traffic.stack_interface import StackInterface
from howdah.agent.traffic.stack_program import StackProgram
from howdah.linux.clock import MS, SECOND, now_ns
from howdah.linux.namespace import Namespace
from howdah.linux.output import Output
from howdah.plan.plan import Flow
from howdah.plan.traffic import PlannedStack

_PROGRAMS = Path("/howdah/in/stacks")
_POLL_NS = 10 * MS
_READY_WITHIN_NS = 1 * SECOND


def stack_of(description: Flow, end: str) -> PlannedStack:
    found = description.sender_stack if end == "sender" else description.receiver_stack
    assert found is not None
    return found


def stack_environment(description: Flow, end: str = "receiver") -> dict[str, str]:
    """The program's environment, as docs/stacks.md lists it."""
    stack = stack_of(description, end)
    own, peer = ("destination", "source") if end == "receiver" else ("source", "destination")
    (address, port), (peer_address, peer_port) = description.at(own), description.at(peer)
    variables = {
        "STACK_NAME": stack.name,
        "STACK_ROLE": "receive" if end == "receiver" else "send",
        "STACK_INTERFACE": stack.interface,
        "STACK_MAC": stack.mac,
        "STACK_MTU": str(stack.mtu_bytes),
        "STACK_ADDRESS": address,
        "STACK_PREFIX": str(stack.prefix_bits),
        "STACK_NETMASK": stack.netmask,
        "STACK_GATEWAY": stack.gateway,
        "STACK_PORT": str(port),
        "STACK_PEER": peer_address,
        "STACK_PEER_PORT": str(peer_port),
        "STACK_BYTES": str(description.size_bytes or 0),
    }
    return variables if stack.algorithm is None else {**variables, "STACK_ALGORITHM": stack.algorithm}


class StackEnd(ConnectedFlow):
    """A flow with a stack's program at one end. The other end is a socket of the agent's, as in any flow."""

    kind = "stack"
    end = "receiver"

    def __init__(self, description: Flow, namespaces: dict[str, Namespace], loop: Loop, output: Output) -> None:
        super().__init__(description, namespaces, loop, output)
        name = stack_of(description, self.end).name
        raw = output.directory("stack")
        self._program = StackProgram(self.label, name, loop, raw / f"{description.id}-{self.end}")

    def prepare(self) -> None:
        """Make the interface, start the program and wait until it is ready. Raises AgentError."""
        flow, stack = self.description, stack_of(self.description, self.end)
        own = "destination" if self.end == "receiver" else "source"
        namespace = self._namespaces[flow.host(own)]
        address, port = flow.at(own)
        interface = StackInterface(
            name=stack.interface,
            mac=stack.mac,
            host_interface=stack.host_interface,
            address=address,
            port=port,
            mtu_bytes=stack.mtu_bytes,
            number=flow.id,
        )
        interface.make(self.label, namespace)
        self._program.start(namespace, _PROGRAMS / stack.name / stack.program, stack_environment(flow, self.end))
        self._program.wait_until_ready(_READY_WITHIN_NS, _POLL_NS)
        super().prepare()

    def close(self) -> None:
        """Reset the program's connection, like any end that is not done."""
        finished = self._program.report.ended_ns is not None
        self._program.stop()
        if not finished and not self._program.ended:
            self._loop.run_until(now_ns() + _POLL_NS)  # time for the program to report its bytes
        super().close()
        self._program.close()


class StackFlow(StackEnd):
    """A flow from the kernel's TCP to a program, which listens from before the epoch."""

    def _make_ends(self) -> None:
        flow = self.description
        self._source = make_endpoint(flow.traffic, "source", flow.size_bytes or 0)

    def _open_both(self) -> None:
        flow = self.description
        try:
            self._opening = self._open(flow.sender, flow.source_address, flow.source_port)
        except OSError as error:
            raise AgentError(self.label, f"cannot open its socket: {error.strerror}") from error
        self._choose_algorithm(self._opening)

    def _states(self) -> tuple[Transferred, Transferred]:
        """The source's state and the sink's, which is what the program reported."""
        source, _ = super()._states()
        report = self._program.report
        done = report.ended_ns is not None
        last_ns = report.all_ns or report.ended_ns
        sink = Transferred(report.moved_bytes, report.connected_ns, last_ns, done, self._program.failure())
        return source, sink


class StackSenderFlow(StackEnd):
    """A flow from a program to the kernel's TCP: the program connects at ``start`` and sends until ``stop``."""

    end = "sender"

    def _make_ends(self) -> None:
        self._sink = make_endpoint(self.description.sink, "sink", self.description.size_bytes or 0)

    def _open_both(self) -> None:
        flow = self.description
        try:
            self._listener = self._open(flow.receiver, flow.destination_address, flow.destination_port)
            self._listener.listen(1)
        except OSError as error:
            raise AgentError(self.label, f"cannot open its socket: {error.strerror}") from error
        self._loop.when_readable(self._listener.fileno(), self._accept)

    def start(self, now: int) -> None:
        self._start_ns = now
        self._program.send("start")

    def stop(self, _now: int) -> None:
        self._stopped = True
        self._program.send("stop")

    def _states(self) -> tuple[Transferred, Transferred]:
        """The source's state, which is what the program reported, and the sink's."""
        _, sink = super()._states()
        report = self._program.report
        self._connected_ns = report.connected_ns
        failure = self._program.failure()
        if failure and self._error is None:
            self._error = failure
        done = report.ended_ns is not None
        return Transferred(report.moved_bytes, report.connected_ns, report.ended_ns, done), sink
