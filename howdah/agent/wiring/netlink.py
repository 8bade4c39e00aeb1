# SPDX-License-Identifier: Apache-2.0
"""Applies a plan's operations over netlink, in order; the first that the kernel refuses ends the run."""

from __future__ import annotations

import errno
import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from howdah.agent.error import AgentError
from howdah.agent.settings import Settings
from howdah.agent.wiring.adoption import Adoption
from howdah.linux.kernelfile import sysctl_path
from howdah.linux.namespace import Namespace
from howdah.linux.netlink.discipline.discipline import HopQueue
from howdah.plan.event import PathChange
from howdah.plan.placed import PlacedQueue
from howdah.plan.step import Operation, PlanStep

_SHOWN_LETTERS = 100


def describe(step: PlanStep) -> str:
    """Describe an operation in one line for error messages."""
    arguments = " ".join(
        f"{name}={value if isinstance(value, str) else json.dumps(_shortened(value))}"
        for name, value in step.arguments().items()
    )
    return f"{step.op} {arguments}"


def _shortened(value: Any) -> Any:
    """Shorten long texts in an option's value: they hold many numbers packed into a string."""
    if not isinstance(value, dict):
        return value
    return {
        name: f"{each[:_SHOWN_LETTERS]}…" if isinstance(each, str) and len(each) > _SHOWN_LETTERS else each
        for name, each in value.items()
    }


def without_ipv6(namespace: Namespace) -> None:
    """Disable IPv6 where the kernel has it: its router solicitations and multicast reports are in no plan."""
    for place in ("all", "default"):
        path = Path(sysctl_path(f"net.ipv6.conf.{place}.disable_ipv6"))
        if path.exists():
            namespace.write_file(str(path), "1")


def _version_hint(step: PlanStep, error: OSError) -> str:
    """Advice to append to the error if the kernel is too old for this kind of queue."""
    queue = step.discipline if isinstance(step, PlacedQueue) else None
    since = queue.since if isinstance(queue, HopQueue) and error.errno == errno.ENOENT else ()
    words = f": Linux has it since {'.'.join(map(str, since))}; a profile has it with kernel: debian-newest"
    return words if since else ""


class NetlinkWiring:
    """A network under construction: ``namespaces`` are the hosts made so far, by name; ``settings`` are kernel-wide."""

    def __init__(self, settings: Settings | None = None) -> None:
        self.namespaces: dict[str, Namespace] = {}
        self.settings = settings or Settings()
        self._adoption: Adoption | None = None

    def apply(self, operations: list[Operation]) -> None:
        """Apply the operations. Raises AgentError with the operation, its number and the kernel's message."""
        for number, operation in enumerate(operations):
            self.apply_one(f"operation {number}", operation)

    def apply_one(self, label: str, operation: Operation) -> None:
        with _naming_step(label, operation):
            operation.apply(self)

    def change(self, label: str, change: PathChange, at_ns: int) -> None:
        """Apply a path change of the timeline."""
        with _naming_step(label, change):
            change.change(self, at_ns)

    def remove(self) -> None:
        """Return adopted interfaces and remove the hosts; the kernel then removes their interfaces."""
        if self._adoption is not None:
            self._adoption.give_back()
        for namespace in self.namespaces.values():
            namespace.remove()
        self.namespaces.clear()

    def adopt(self, node: str, interface: str, mac: str, nic_mac: str, tag: int | None, *, ipv6: bool) -> None:
        if self._adoption is None:
            self._adoption = Adoption()
        if not ipv6:
            without_ipv6(self.namespaces[node])
        self._adoption.prepare(interface, mac, nic_mac, tag)
        self._enter(node, interface)
        self._adoption.note_host(self.namespaces[node], interface)

    def _enter(self, node: str, interface: str) -> None:
        """Move an interface of the machine into a host."""
        assert self._adoption is not None
        self._adoption.move(self.namespaces[node], interface)


@contextmanager
def _naming_step(label: str, step: PlanStep) -> Iterator[None]:
    """Turn errors of a step into AgentError that names it: the kernel's refusals with their message, and bad arguments
    such as a missing node or an invalid address."""
    try:
        yield
    except OSError as error:
        text = f"{label} ({describe(step)})"
        raise AgentError(text, (error.strerror or str(error)) + _version_hint(step, error)) from error
    except (KeyError, TypeError, ValueError) as error:
        raise AgentError(f"{label} ({describe(step)})", f"bad arguments: {error}") from error
