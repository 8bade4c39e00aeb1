# SPDX-License-Identifier: Apache-2.0
"""One run inside the guest, in phases: setup, calibrate-before, flows, quiesce, calibrate-after, collect, done."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from collectors.accounting import snapshot
from collectors.collector import Surroundings, Watched
from howdah.agent import provenance
from howdah.agent.bpf import Control, load_controls
from howdah.agent.collecting import Collecting
from howdah.agent.entropy import give_entropy
from howdah.agent.error import AgentError
from howdah.agent.keptlog import KeptLog
from howdah.agent.loop import Loop, wait_for_silence
from howdah.agent.module import describe_modules, load_modules, module_symbols, names_in_kernel
from howdah.agent.own import OwnModules
from howdah.agent.scheduling import become_invisible
from howdah.agent.settings import JOURNAL, Settings
from howdah.agent.traffic import make_flow
from howdah.agent.traffic.driver import FlowDriver
from howdah.agent.wiring import Wiring, make_wiring
from howdah.linux.clock import MS, SECOND, now_ns
from howdah.linux.namespace import Namespace
from howdah.linux.netlink.diag import open_diag, sockets
from howdah.linux.netlink.link import links
from howdah.linux.output import Output, Progress
from howdah.plan.event import Event, FlowChange, PathChange, StartFlow
from howdah.plan.plan import Plan
from howdah.record.account import Accounting, CounterState
from howdah.record.agent import AGENT_FORMAT, AgentFailure, AgentRecord, ModuleRecord, Phase
from howdah.record.calibration import CalibrationRecord

if TYPE_CHECKING:
    from howdah.agent.profiling import Profiling
    from howdah.agent.timer_lateness import TimerLateness

_PROGRESS_NS = 1 * SECOND
_POLL_NS = 20 * MS
_LONGEST_POLL_NS = 160 * MS  # between two polls of the links, each of which lists every namespace's links
_LEAD_NS = 50 * MS  # in real time, from the end of setup to the first instant of the plan
_LINKS_NS = 2 * SECOND
_END_MARGIN_NS = 100 * MS  # kept free before the second calibration, for the last readings


class AgentRun:
    """Runs a plan; ``report`` becomes agent.json, even when the run fails."""

    def __init__(self, plan: Plan, inputs: Path, output: Output, wiring: str) -> None:
        self.plan = plan
        self._inputs = inputs
        self._output = output
        self._wiring_kind = wiring
        self._traits = plan.traits
        self._loop = Loop(virtual_time=self._traits.exact_uptime)
        self._flows: dict[int, FlowDriver] = {}
        self._epoch_ns = plan.epoch_us * 1000
        self._wiring: Wiring | None = None
        self._in_kernel: dict[str, str] = {}  # the kernel's names of modules, by the names of their files
        self._own = OwnModules({}, {}, set())
        self._controls: dict[str, Control] = {}  # stay registered as long as they are referenced here
        self._settings = Settings(JOURNAL if self._traits.outlives_run else None)
        self._progress = Progress(output, self._end_us())
        self._log: KeptLog | None = None
        self._processor_watch = _processor_watch(plan)
        self._profiling = _profiling(plan, output)
        self.report = AgentRecord(format=AGENT_FORMAT, status="error", run=plan.run, seed=plan.seed)

    def _end_us(self) -> int:
        return self._epoch_ns // 1000 + self.plan.end_us

    def execute(self) -> bool:
        """Run all phases and write agent.json last. Return False if the run ended in an error."""
        self._log = log = KeptLog(self._output, whole=not self._traits.outlives_run)
        try:
            self._phases()
            self._set_record(status="ok")
        except AgentError as error:
            self._set_record(error=AgentFailure(error.operation, error.message))
            sys.stderr.write(f"howdah-agent: {error}\n")
        except Exception as error:  # noqa: BLE001 - whatever it is, agent.json must say so
            import traceback

            traceback.print_exc()
            self._set_record(error=AgentFailure(f"phase {self._progress.phase}", f"{type(error).__name__}: {error}"))
        finally:
            self._clean_up()
            self._set_record(kernel_log=log.end())
        self._output.json("agent.json", self.report)
        return self.report.status == "ok"

    def _set_record(self, **found: Any) -> None:
        """Set fields of agent.json. Fields that are never set stay absent, because a run may end in any phase."""
        self.report = replace(self.report, **found)

    def _clean_up(self) -> None:
        """Restore a machine that outlives the run. A guest needs no cleaning: it ends with everything in it."""
        if self._processor_watch is not None:
            self._processor_watch.kill()
        if self._traits.exact_uptime:
            return
        for flow in self._flows.values():
            flow.close()
        if self._wiring is not None:
            self._wiring.remove()
        print_problems(self._settings.restore())

    def _phases(self) -> None:
        with self._phase("setup"):
            wiring = self._set_up()
        surroundings = self._surroundings(wiring)
        calibration = self.plan.calibration
        self._loop.every(_PROGRESS_NS, now_ns() + _PROGRESS_NS, self._tick)
        if calibration.enabled:
            with self._phase("calibrate-before"):
                self._calibrate(wiring, "before", calibration.before_us)
        with self._phase("flows"):
            before = self._snapshot(wiring)
            collecting = Collecting(surroundings)
            collecting.start(self._loop, now_ns(), self._epoch_ns)
            if self._profiling is not None:
                self._profiling.start(self._loop, self._epoch_ns)
            if self._processor_watch is not None:
                self._processor_watch.begin()
            self._run_timeline(wiring)
        with self._phase("quiesce"):
            silent = self._quiesce(wiring)
            if self._processor_watch is not None:
                self._set_record(processor=self._processor_watch.stop())
            if self._profiling is not None:
                self._profiling.stop(self._loop)
            collecting.stop(self._loop, now_ns())
            account: Accounting = {"before": before, "silent": silent, "after": self._snapshot(wiring)}
        self._set_record(flows=[flow.record(self._epoch_ns) for flow in self._flows.values()])
        if calibration.enabled:
            with self._phase("calibrate-after"):
                self._calibrate(wiring, "after", calibration.after_us)
        with self._phase("collect"):
            self._output.json("accounting.json", account)
            self._collect_extra()
            self._collect(collecting)
        self._progress.write("done", now_ns())

    def _collect(self, collecting: Collecting) -> None:
        """Record everything that is known only after the measurements, and write the processor profile."""
        self._set_record(
            modules=self._own.with_uses(self.report.modules or {}),
            algorithms=provenance.algorithms(self.plan.flows, self._own.providers()),
            memory=collecting.memory(),
        )
        if self._profiling is not None:
            self._profiling.finish()
        elif self.plan.collect.cpu:
            # Function names for the processor profile that the engine makes; read only now that measuring is over.
            symbols = module_symbols(Path("/proc/kallsyms").read_text(encoding="ascii"))
            self._output.json("cpu-modules.json", {"format": 1, "modules": symbols})

    def _tick(self, now: int) -> None:
        self._progress.tick(now)
        self._keep_log()

    def _keep_log(self) -> None:
        """Write new kernel messages to the log in virtual time. On a real processor that would take time from the
        flows, so there the log is read at the end."""
        if self._log is not None and self._traits.exact_uptime:
            self._log.keep()

    @contextmanager
    def _phase(self, name: str) -> Iterator[None]:
        wall_us = self._output.host_clock_us()
        start = now_ns()
        self._progress.write(name, start)
        try:
            yield
        finally:
            times = start - self._epoch_ns, now_ns() - self._epoch_ns
            wall_us = self._output.host_clock_us() - wall_us
            self._keep_log()
            self.report.phases.append(Phase(name, *times, wall_us))

    def _set_up(self) -> Wiring:
        """Load modules, build the network, open the flows' sockets, record provenance, and choose the epoch."""
        wall_us = self._output.host_clock_us()
        print_problems(self._settings.recover())
        loaded = self._load_modules()
        if self._traits.exact_uptime:
            become_invisible()
        if self._traits.agent_seeds_random:
            give_entropy(self.plan.seed)
        self._wiring = wiring = make_wiring(self._wiring_kind, self.plan, self._inputs, self._settings)
        wiring.apply(self.plan.operations)
        self._set_record(operations_wall_us=self._output.host_clock_us() - wall_us)
        if self._processor_watch is not None:
            self._processor_watch.start()
        if not self._traits.exact_uptime and self.plan.collect.tcp_info_us:
            _preload_diagnostics(wiring)
        self._wait_for_links(wiring)
        for description in self.plan.flows:
            flow = make_flow(description, self._local_hosts(wiring), self._loop, self._output)
            self._flows[description.id] = flow
            flow.prepare()
        self._record_provenance(wiring, loaded)
        if self._profiling is not None:
            self._profiling.prepare()
        self._choose_epoch()
        self._set_record(epoch_monotonic_ns=self._epoch_ns)
        return wiring

    def _load_modules(self) -> list[str]:
        """Load kernel modules and BPF files, check the algorithms that they register, and return the modules' names."""
        plan, directory = self.plan, self._inputs / "modules"
        self._in_kernel = names_in_kernel(directory)
        profile_modules = {*map(module_name, plan.modules), *plan.own_algorithms.values()}
        self._own = OwnModules(
            {name: loaded_as for name, loaded_as in self._in_kernel.items() if name in profile_modules},
            plan.own_algorithms,
            {flow.kernel_algorithm for flow in plan.flows},
        )
        self._own.before_loading()
        loaded = load_modules(directory, plan.module_parameters, self._settings)
        self._controls = load_controls(directory)
        self._own.after_loading({name: control.algorithms for name, control in self._controls.items()})
        return loaded

    def _record_provenance(self, wiring: Wiring, loaded: list[str]) -> None:
        """Record the state of kernel, modules and network that the flows will find."""
        plan, namespaces = self.plan, wiring.namespaces
        built_in = [name.partition(".")[0] for name in plan.kernel_parameters]
        self.report = provenance.with_kernel(self.report)
        modules = describe_modules([*loaded, *built_in], self._in_kernel)
        modules |= {name: ModuleRecord(programs=control.programs) for name, control in self._controls.items()}
        self._set_record(modules=modules, sysctls=provenance.sysctls(namespaces, plan.operations))
        if plan.calibration.enabled:  # tc runs as a process for each host: a third of a short run's system calls
            self._set_record(qdiscs=provenance.qdisc_dump(namespaces))
        self._set_record(
            links=provenance.link_dump(namespaces),
            routes=provenance.route_dump(namespaces),
            tools=provenance.tool_versions(plan.flows, tc=plan.calibration.enabled),
        )

    def _local_hosts(self, wiring: Wiring) -> dict[str, Namespace]:
        """The hosts whose flows this agent drives, by name."""
        return wiring.namespaces

    def _collect_extra(self) -> None:
        """Write further files in the collect phase."""

    def _wait_for_links(self, wiring: Wiring) -> None:
        """Wait until every link has a carrier. A new link carries no packets until the kernel's link watch has seen the
        carrier, up to a second later."""
        deadline, pause_ns = now_ns() + _LINKS_NS, _POLL_NS
        while idle := links_without_carrier(wiring):
            now = now_ns()
            if now > deadline:
                raise AgentError("setup", f"no carrier on {', '.join(idle)} after {_LINKS_NS / 1e9:.0f} s")
            self._loop.run_until(now + pause_ns)
            pause_ns = min(2 * pause_ns, _LONGEST_POLL_NS)

    def _choose_epoch(self) -> None:
        """Keep the plan's epoch exactly in virtual time; in real time count it from the end of setup."""
        calibration = self.plan.calibration
        first_us = min(calibration.before_us, 0) if calibration.enabled else 0
        ready = now_ns()
        if not self._traits.exact_uptime:
            self._epoch_ns = ready + _LEAD_NS - first_us * 1000
            self._progress.ends_at(self._end_us())
        elif ready > self._epoch_ns + first_us * 1000:
            late_ms = (ready - self._epoch_ns - first_us * 1000) / 1e6
            raise AgentError("setup", f"ended {late_ms:.1f} ms of virtual time after the plan's start")

    def _surroundings(self, wiring: Wiring) -> Surroundings:
        return Surroundings(
            plan=self.plan,
            namespaces=wiring.namespaces,
            node_numbers={host.name: number for number, host in enumerate(self.plan.hosts)},
            connections=[
                Watched(flow.description, flow.endpoint, flow.is_active, flow.is_over, lambda flow=flow: flow.endpoint)  # type: ignore[misc]
                for flow in self._flows.values()
            ],
            output=self._output,
        )

    def _snapshot(self, wiring: Wiring) -> CounterState:
        now = now_ns()
        state = snapshot(wiring.namespaces, now)
        state["time_ns"] = now - self._epoch_ns
        return state

    def _calibrate(self, wiring: Wiring, name: str, start_us: int) -> None:
        from howdah.agent.calibration import calibrate

        self._loop.run_until(self._epoch_ns + start_us * 1000)
        result: CalibrationRecord = calibrate(self.plan, wiring.namespaces, self._loop, self._epoch_ns)
        self._output.json(f"calibration-{name}.json", result)

    def _run_timeline(self, wiring: Wiring) -> None:
        for number, event in enumerate(self.plan.timeline):
            self._loop.at(self._epoch_ns + event.at_us * 1000, self._event(wiring, number, event))
        self._own.watch(self._loop, self._epoch_ns, wiring.namespaces.values())
        self._loop.run_until(self._epoch_ns + self.plan.duration_us * 1000)

    def _event(self, wiring: Wiring, number: int, event: Event) -> Any:
        change = event.change
        if isinstance(change, PathChange):
            at_ns = self._epoch_ns + event.at_us * 1000
            return lambda _now: wiring.change(f"event {number} at {event.at_us} us", change, at_ns)
        assert isinstance(change, FlowChange)
        flow = self._flows[change.flow]
        return self._own.and_count(flow.start) if isinstance(change, StartFlow) else flow.stop

    def _quiesce(self, wiring: Wiring) -> bool:
        """Let the flows end, reset those that do not, and wait until no packet is sent or queued anywhere.

        Resetting flows leaves at most full queues, and the deadline allows time for those to drain.
        """
        calibration, path = self.plan.calibration, self.plan.path
        now = now_ns()
        deadline = now + path.quiet_us * 1000
        if calibration.enabled:
            deadline = self._epoch_ns + calibration.after_us * 1000 - _END_MARGIN_NS
        quiet_ns = path.both_ways_us * 1000 + _POLL_NS
        flows_deadline = max(deadline - 2 * quiet_ns - path.holding_us * 1000, now)
        while now < flows_deadline and not all(flow.finished() for flow in self._flows.values()):
            now = self._loop.run_until(min(now + _POLL_NS, flows_deadline))
        for flow in self._flows.values():
            flow.close()
        return wait_for_silence(wiring.namespaces, self._loop, quiet_ns, deadline)


# Both import their module only if the plan needs it, because importing takes a guest's time.
def _processor_watch(plan: Plan) -> TimerLateness | None:
    if plan.real_time is None:
        return None
    from howdah.agent.timer_lateness import TimerLateness

    return TimerLateness()


def _profiling(plan: Plan, output: Output) -> Profiling | None:
    shift = plan.processor_shift  # only a virtual clock gives the processor a declared speed
    if shift is None or not plan.collect.cpu:
        return None
    from howdah.agent.profiling import Profiling

    return Profiling(shift, output)


def _preload_diagnostics(wiring: Wiring) -> None:
    """Make a distribution's kernel load its inet_diag modules before the flows begin.

    Loading takes tens of milliseconds at the first request, and the agent could not start flows meanwhile.
    """
    namespace = next(iter(wiring.namespaces.values()))
    with namespace.entered():
        netlink = open_diag()
        try:
            sockets(netlink)
        finally:
            netlink.close()


def links_without_carrier(wiring: Wiring) -> list[str]:
    """Names (``NODE:INTERFACE``) of interfaces that are up but have no carrier yet."""
    return [
        f"{name}:{link.name}"
        for name, namespace in wiring.namespaces.items()
        for link in links(namespace.netlink)
        if link.up and not link.running
    ]


def module_name(file: str) -> str:
    """The plan's name of a module: ``/home/me/tcp-mine.c`` → ``tcp_mine``."""
    return Path(file).stem.removesuffix(".bpf").replace("-", "_")


def print_problems(problems: list[str]) -> None:
    """Print problems to standard error, which the engine keeps."""
    for problem in problems:
        sys.stderr.write(f"howdah-agent: {problem}\n")
