# SPDX-License-Identifier: Apache-2.0
"""Modules that a profile brings: find which congestion controls they register, and check that the flows use them.

An algorithm's name proves nothing: "cubic" may be the kernel's or the profile's. But a socket holds the module of its
algorithm, and the kernel counts the holders (/sys/module/NAME/refcnt). An algorithm in BPF has no module. The kernel
refuses one whose name is taken, so its name is proof enough, and the sockets that use it are counted (inet_diag).
"""

from __future__ import annotations

import socket
from collections.abc import Iterable, Mapping
from dataclasses import replace

from howdah.agent.error import AgentError
from howdah.agent.loop import Action, Loop
from howdah.agent.settings import SYS_MODULE
from howdah.linux.clock import MS
from howdah.linux.kernelfile import read_file
from howdah.linux.namespace import Namespace
from howdah.linux.netlink.diag import congestion_controls, open_diag
from howdah.linux.netlink.message import NetlinkSocket
from howdah.record.agent import ModuleRecord

_AVAILABLE = "/proc/sys/net/ipv4/tcp_available_congestion_control"
_TCP_CONGESTION = 13
_INTERVAL_NS = 100 * MS
_OWNER = "its struct tcp_congestion_ops needs .owner = THIS_MODULE"


def available() -> list[str]:
    """Return the kernel's names of all congestion controls that it has now."""
    return read_file(_AVAILABLE).split()


class OwnModules:
    """The profile's modules and their algorithms.

    ``in_kernel`` maps the file name of each module that this run loads to the kernel's name for it; ``expected`` maps
    the kernel's name of an algorithm to the module that must provide it (plan.json, ``own_algorithms``); ``used`` are
    the algorithms that the run's flows use.
    """

    def __init__(self, in_kernel: Mapping[str, str], expected: Mapping[str, str], used: set[str]) -> None:
        self._in_kernel = dict(in_kernel)
        self._expected = dict(expected)
        self._used = used
        self._in_bpf: dict[str, list[str]] = {}
        self._diagnostics: list[NetlinkSocket] = []
        self._before: set[str] = set()
        self._algorithms: dict[str, list[str]] = {}
        self._uses_before: dict[str, int] = {}
        self._uses_most: dict[str, int] = {}

    def before_loading(self) -> None:
        if self._in_kernel:
            self._before = set(available())

    @property
    def _has_any(self) -> bool:
        return bool(self._in_kernel or self._in_bpf)

    def after_loading(self, in_bpf: Mapping[str, list[str]] | None = None) -> None:
        """Find the algorithms that each module registered; ``in_bpf`` gives those of BPF files, by file name.

        Raises AgentError if they are not the ones that the run expects.
        """
        self._in_bpf = dict(in_bpf or {})
        if not self._has_any:
            return
        names = available()
        owners = {name: self._owner(name) for name in names}
        brought = [*self._in_kernel, *self._in_bpf]
        self._algorithms = {module: [name for name in names if owners[name] == module] for module in brought}
        for name, module in self._expected.items():
            if owners.get(name) != module:
                raise AgentError(f"module {module}", self._mismatch(name, module, owners))
        for module, registered in self._algorithms.items():
            foreign = [name for name in registered if name in self._used and name not in self._expected]
            if foreign:
                what = f"it registers {foreign[0]}, which this run takes from elsewhere; "
                raise AgentError(f"module {module}", what + _declaration_hint(foreign[0], module))
            if registered and not self._used.intersection(registered):
                what = f"it is never used: it registers {', '.join(registered)}, which no flow of this run asks for; "
                raise AgentError(f"module {module}", what + _declaration_hint(registered[0], module))
        self._uses_before = self._uses_most = self._uses()

    def _mismatch(self, name: str, module: str, owners: Mapping[str, str | None]) -> str:
        if name not in owners:
            registered = self._algorithms[module]
            new = registered or sorted(set(owners) - self._before)
            if not new:
                return f"it does not register {name}, which this run's flows ask for, nor any other algorithm"
            return f"it registers {', '.join(new)}, not {name}; {_declaration_hint(new[0], module)}"
        if owners[name] is not None:
            return f"the algorithm {name} is that of the module {owners[name]}, not its"
        if name in self._before:
            return f"the kernel's own {name} is in use, not the module's; if the module registers {name}, {_OWNER}"
        return f"nobody owns the algorithm {name}: {_OWNER}"

    def _owner(self, name: str) -> str | None:
        """The profile's module that a socket with this algorithm holds; None if it holds none of them."""
        for module, registered in self._in_bpf.items():
            if name in registered:
                return module
        before = self._uses()
        with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as trial:
            trial.setsockopt(socket.IPPROTO_TCP, _TCP_CONGESTION, name.encode())
            after = self._uses()
        return next((module for module, uses in after.items() if uses > before[module]), None)

    def _uses(self) -> dict[str, int]:
        of_modules = {module: uses(loaded_as) for module, loaded_as in self._in_kernel.items()}
        chosen = [name for netlink in self._diagnostics for name in congestion_controls(netlink)]
        of_bpf = {module: sum(map(chosen.count, registered)) for module, registered in self._in_bpf.items()}
        return of_modules | of_bpf

    def watch(self, loop: Loop, first_ns: int, namespaces: Iterable[Namespace]) -> None:
        """Count the modules' users at intervals from ``first_ns`` on; ``namespaces`` are those whose sockets may use
        them."""
        for namespace in namespaces if self._in_bpf else ():
            with namespace.entered():
                self._diagnostics.append(open_diag())
        if self._has_any:
            loop.every(_INTERVAL_NS, first_ns, self._count_uses)

    def and_count(self, start: Action) -> Action:
        """Wrap the action that starts a flow so that it also counts: a short connection may end before the next
        interval."""

        def start_and_count(now: int) -> None:
            start(now)
            self._count_uses(now)

        return start_and_count if self._has_any else start

    def _count_uses(self, _now: int) -> None:
        now = self._uses()
        self._uses_most = {module: max(most, now[module]) for module, most in self._uses_most.items()}

    def providers(self) -> dict[str, str]:
        """The kernel's name of the module that provides each algorithm of the profile, by algorithm."""
        return {
            name: self._in_kernel.get(module, module) for module, names in self._algorithms.items() for name in names
        }

    def with_uses(self, modules: Mapping[str, ModuleRecord]) -> dict[str, ModuleRecord]:
        """Return the records of all modules, and add the algorithms and use counts of the profile's own."""
        own = {
            module: replace(
                modules[module],
                loaded_as=self._in_kernel.get(module, module),
                algorithms=self._algorithms.get(module, []),
                uses_before=self._uses_before.get(module),
                uses_most=self._uses_most.get(module),
            )
            for module in (*self._in_kernel, *self._in_bpf)
        }
        return {**modules, **own}


def uses(loaded_as: str) -> int:
    """Return the number of holders of a module, among them sockets with its algorithm. Raises AgentError if the kernel
    does not count."""
    try:
        return int((SYS_MODULE / loaded_as / "refcnt").read_text(encoding="ascii"))
    except FileNotFoundError:
        what = "the kernel does not count who uses a module, so nobody can tell what is measured"
        raise AgentError(f"module {loaded_as}", f"{what}: it needs CONFIG_MODULE_UNLOAD") from None


def _declaration_hint(algorithm: str, module: str) -> str:
    return f"the profile can say so: algorithms: {{NAME: {{kernel: {algorithm}, module: {module}}}}}"
