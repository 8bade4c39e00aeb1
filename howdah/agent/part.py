# SPDX-License-Identifier: Apache-2.0
"""One machine's part of a run that spans several machines: each runs the same phases at the same instants.

No single machine can see that all flows have ended and all packets have arrived. Each therefore waits until an instant
of the plan by which that must hold, and reports whether its own interfaces were silent just before.
"""

from __future__ import annotations

import fcntl
import socket
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import TextIO

from collectors.collector import Surroundings
from howdah.agent.calibration.echo import measure_round_trips, open_probe_ports
from howdah.agent.calibration.emulator import PROBE_HOSTS, ProbeHosts, calibrate_emulator
from howdah.agent.error import AgentError
from howdah.agent.loop import Action, Loop, wait_for_silence
from howdah.agent.module import describe_modules, set_parameters
from howdah.agent.run import AgentRun, print_problems
from howdah.agent.session import SESSION_FORMAT, AgentSession, SessionWord
from howdah.agent.timer_lateness import TimerLateness
from howdah.agent.wiring import Wiring
from howdah.linux.clock import MS, SECOND, now_ns
from howdah.linux.namespace import forget
from howdah.linux.netlink.link import links
from howdah.linux.output import Output, Progress
from howdah.plan.plan import Plan
from howdah.record.agent import AgentFailure
from howdah.record.calibration import EchoRecord

_SILENCE_NS = 2500 * MS  # silence before the second calibration, in which the collected data are written
_POLL_NS = 20 * MS
_LINKS_NS = 120 * SECOND
_UNCALIBRATED_NS = 5 * SECOND  # from the flows' end to the common instant, if no calibration follows
_EMULATOR = "emulator"
_LOCK = Path("/run/howdah-agent.lock")


class StaggeredLoop(Loop):
    """A loop that delays repeated actions by ``share`` of their interval.

    The machines' clocks agree, so virtual machines that share a processor would otherwise all need it at the same
    instants.
    """

    def __init__(self, share: float) -> None:
        super().__init__(virtual_time=False)
        self._share = share

    def every(self, interval_ns: int, first_ns: int, action: Action) -> int:
        return super().every(interval_ns, first_ns + round(interval_ns * self._share), action)


class ReportedProgress(Progress):
    """Progress that is sent to the engine instead of being written to a file."""

    def __init__(self, session: AgentSession, output: Output, of_us: int, epoch_ns: Callable[[], int]) -> None:
        super().__init__(output, of_us)
        self._session = session
        self._epoch_ns = epoch_ns
        self._end_us = of_us

    def write(self, phase: str, time_ns: int) -> None:
        self.phase = phase
        time_us = (time_ns - self._epoch_ns()) // 1000
        self._session.say(SessionWord("progress", phase=phase, time_us=time_us, of_us=self._end_us))


class PartRun(AgentRun):
    """Runs one machine's part of a plan; ``report`` becomes this machine's agent.json."""

    def __init__(self, plan: Plan, inputs: Path, output: Output, session: AgentSession) -> None:
        assert plan.slice is not None
        super().__init__(plan, inputs, output, plan.slice.wiring)
        self._part = plan.slice
        self._loop = StaggeredLoop(self._part.stagger)
        self._session = session
        self._lateness = TimerLateness()
        self._probe_hosts: ProbeHosts | None = None
        self._probe_ports: list[socket.socket] = []
        self._progress = ReportedProgress(session, output, self._end_us() - plan.epoch_us, lambda: self._epoch_ns)
        self._epoch_ns = now_ns() + plan.epoch_us * 1000  # until the engine names it
        self._set_record(machine=self._part.machine, part=self._part.nodes)

    def execute(self) -> bool:
        """Run like a single machine, then report to the engine and serve it until it sends ``end``."""
        try:
            lock = self._lock_machine()
        except AgentError as error:
            self._session.say(SessionWord("done", ok=False, error=AgentFailure(error.operation, error.message)))
            return False
        try:
            with lock:
                return self._execute()
        finally:
            lock.close()

    def _lock_machine(self) -> TextIO:
        """Lock the machine and remove what a killed run left. Raises AgentError while another run holds the lock: the
        two would share NICs and namespaces."""
        lock = _LOCK.open("a")
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            lock.close()
            raise AgentError("begin", "another run is in progress on this machine") from None
        for name in (*self._part.nodes, *PROBE_HOSTS):
            forget(name)
        return lock

    def _execute(self) -> bool:
        try:
            self._session.say(SessionWord("hello", format=SESSION_FORMAT, machine=self._part.machine))
        except AgentError:
            return False
        succeeded = super().execute()
        try:
            self._session.say(SessionWord("done", ok=succeeded, error=self.report.error))
            self._session.wait("end")
        except AgentError:
            return False
        return succeeded

    def _clean_up(self) -> None:
        self._lateness.kill()
        for opened in self._probe_ports:
            opened.close()
        if self._probe_hosts is not None:
            self._probe_hosts.remove()
        super()._clean_up()

    def _set_up(self) -> Wiring:
        self._session.watch(self._loop)
        print_problems(self._settings.recover())
        modules = self._load_installed()
        wiring = super()._set_up()
        self._set_record(modules={**(self.report.modules or {}), **describe_modules(modules)})
        return wiring

    def _load_installed(self) -> list[str]:
        """Load the modules the plan needs that this machine has installed (by DKMS), and return their names. An
        emulator loads none; a machine without a sender loads only howdah's own."""
        if self._part.role == _EMULATOR:
            return []
        senders = {flow.sender for flow in self.plan.flows}
        needed = list(self.plan.required_modules or [])
        if not senders.intersection(self._part.nodes):
            needed = [name for name in needed if name.startswith("howdah_")]
        for name in needed:
            parameters = self.plan.module_parameters.get(name, {})
            done = subprocess.run(
                ["modprobe", name], stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
            )
            if done.returncode:
                raise AgentError(f"load module {name}", done.stderr.strip() or f"status {done.returncode}")
            set_parameters(f"load module {name}", name, parameters, self._settings)
        return needed

    def _choose_epoch(self) -> None:
        """Report that this machine is ready and take the epoch from the engine, which sends it once all are."""
        calibration, path = self.plan.calibration, self.plan.path
        if self._part.role == _EMULATOR and calibration.enabled:
            assert self._wiring is not None and self._part.bottleneck is not None
            self._probe_hosts = ProbeHosts(self._part.bottleneck, self._wiring.namespaces, path.mtu_bytes)
        elif calibration.enabled and self._wiring is not None:
            self._probe_ports = open_probe_ports(calibration.targets, self._wiring.namespaces)
        self._lateness.start()
        self._session.say(SessionWord("ready", ready_ns=now_ns()))
        self._epoch_ns = self._session.wait("start").epoch_monotonic_ns
        first_us = min(calibration.before_us, 0) if calibration.enabled else 0
        late_ns = now_ns() - (self._epoch_ns + first_us * 1000)
        if late_ns > 0:
            raise AgentError("start", f"the start command arrived {late_ns / 1e6:.0f} ms late")

    def _wait_for_links(self, wiring: Wiring) -> None:
        """Wait for carriers much longer than in one kernel: a wire's other end is on a machine that may still be
        setting up."""
        deadline = now_ns() + _LINKS_NS
        while idle := [
            f"{name}:{link.name}"
            for name, namespace in wiring.namespaces.items()
            for link in links(namespace.netlink)
            if link.up and not link.running
        ]:
            now = now_ns()
            if now > deadline:
                raise AgentError("setup", f"no carrier on {', '.join(idle)} after {_LINKS_NS / SECOND:.0f} s")
            self._loop.run_until(now + _POLL_NS)

    def _surroundings(self, wiring: Wiring) -> Surroundings:
        return super()._surroundings(wiring).ends_in(frozenset(wiring.namespaces))

    def _calibrate(self, wiring: Wiring, name: str, start_us: int) -> None:
        calibration = self.plan.calibration
        start_ns = self._epoch_ns + start_us * 1000
        self._loop.run_until(start_ns)
        # The other machines count packets only after the emulator has sent its last one.
        silent_ns = start_ns + (calibration.phase_us + calibration.settle_us // 2) * 1000
        if self._probe_hosts is not None:
            result = calibrate_emulator(self.plan, wiring.namespaces, self._probe_hosts, self._loop, self._epoch_ns)
            self._output.json(f"calibration-{name}.json", result)
            self._loop.run_until(silent_ns)
            return
        trips = measure_round_trips(self.plan.path, calibration.targets, wiring.namespaces, self._loop, start_ns)
        self._loop.run_until(silent_ns)
        self._output.json(f"echo-{name}.json", EchoRecord(1, trips))

    def _run_timeline(self, wiring: Wiring) -> None:
        self._lateness.begin()
        super()._run_timeline(wiring)
        self._lateness.end()

    def _quiesce(self, wiring: Wiring) -> bool:
        """Let the flows end and wait for the common instant. Return whether nothing moved on this machine just before
        it."""
        calibration, path = self.plan.calibration, self.plan.path
        end_us = calibration.after_us if calibration.enabled else self.plan.duration_us
        margin_ns = -_SILENCE_NS if calibration.enabled else _UNCALIBRATED_NS + path.holding_us * 1000
        deadline = self._epoch_ns + end_us * 1000 + margin_ns
        quiet_ns = path.both_ways_us * 1000 + _POLL_NS
        flows_deadline = deadline - 3 * quiet_ns - path.holding_us * 1000
        now = now_ns()
        while now < flows_deadline and not all(flow.finished() for flow in self._flows.values()):
            now = self._loop.run_until(min(now + _POLL_NS, flows_deadline))
        self._set_record(processor=self._lateness.stop())
        for flow in self._flows.values():
            flow.close()
        self._loop.run_until(deadline - quiet_ns)
        # Take two readings, quiet_ns apart, the second at the deadline; so end a little after it.
        return wait_for_silence(wiring.namespaces, self._loop, quiet_ns, now_ns() + quiet_ns + _POLL_NS)
