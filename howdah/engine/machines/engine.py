# SPDX-License-Identifier: Apache-2.0
"""The ``machines`` engine: a plan on several machines in real time, with an agent on each, all reached through SSH."""

from __future__ import annotations

import contextlib
import io
import shutil
import tarfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from typing import IO

from howdah.agent.session import SessionQuestion, SessionWord
from howdah.codec import encoded
from howdah.engine import share
from howdah.engine.engine import BuildProgress, Identity, Lack, RunProgress, require
from howdah.engine.machines.clock import LocalClock, described
from howdah.engine.machines.conversation import AgentConversation, await_messages
from howdah.engine.machines.machine import RunFleet, RunMachine
from howdah.engine.machines.merge import merge
from howdah.engine.machines.placement import Placement, place_hosts
from howdah.engine.machines.priority import with_priority
from howdah.engine.machines.slice import cut
from howdah.engine.preparing import as_run_failure
from howdah.errors import EngineUnavailableError, HowdahError, RunFailedError
from howdah.plan.plan import Plan
from howdah.record.agent import AgentRecord
from howdah.record.clock import CLOCK_FILE, CLOCK_FORMAT, ClockRecord, Offset
from howdah.record.directory import RunDirectory, write_json
from howdah.record.run import EngineOrigin, EngineReport, KernelOrigin, ModuleOrigin

_INSTEAD = "'howdah machines run FILE PROFILE' does both: it brings machines up and runs a profile across them."
_PLACE = "/var/tmp/howdah-run-XXXXXX"  # of a machine
_CODE = "/var/cache/howdah-agent"
_COMMAND_S = 60.0
_TRANSFER_S = 600.0
_HELLO_S = 120.0  # an interpreter starts slowly on an emulated processor
_READY_S = 300.0
_SETUP_S = 30.0  # waiting time of an agent while it builds its part, by its own clock
_CLOCK_SAMPLES = 60
_LEAD_NS = 1_000_000_000  # from the choice of the epoch to the first instant of the plan


class MachinesEngine:
    """The machines engine. It makes one run at a time, on the whole fleet; None: there are no machines.

    ``wiring`` selects what builds the emulator's network: mininet or netlink.
    """

    name = "machines"
    parallel = False

    def __init__(self, fleet: RunFleet | None = None, wiring: str = "mininet") -> None:
        self._fleet = fleet
        self._wiring = wiring

    def lacks(self) -> list[Lack]:
        if self._fleet is None:
            return [Lack("a machines file", "the machines the plan runs on", "Name its file: --machines FILE.")]
        return []

    def prepare(self, plans: Sequence[Plan], progress: BuildProgress) -> Identity:
        fleet = self._up()
        progress(f"look at the machines of {fleet.machine_set.name}", 0, len(fleet.machines))
        own = [plan.run for plan in plans if plan.modules]
        if own:
            raise EngineUnavailableError(
                f"the machines engine builds no modules of a profile (run {own[0]} brings one)",
                hint="Install it on the machines and name its algorithm with kernel: in algorithms.",
            )
        for plan in plans:
            cut(plan, place_hosts(plan, fleet.machines))
        identity: Identity = {
            "engine": self.name,
            "machine_set": fleet.machine_set.name,
            "dilation": fleet.dilation,
        }
        identity["agent"] = share.agent_key("mininet")
        for number, (name, machine) in enumerate(fleet.machines.items(), 1):
            identity[f"machine {name}"] = (
                f"{machine.role} {machine.check(['uname', '-srvm'], timeout_s=_COMMAND_S).strip()}"
            )
            progress(f"look at the machines of {fleet.machine_set.name}", number, len(fleet.machines))
        return identity

    def _up(self) -> RunFleet:
        require(self.lacks(), self.name, _INSTEAD)
        assert self._fleet is not None
        return self._fleet

    def run(self, directory: RunDirectory, plan: Plan, progress: RunProgress) -> EngineReport:
        machines = self._up().machines
        with as_run_failure():
            placement = place_hosts(plan, machines)
        started = time.monotonic()
        progress("prepare", 0, 0)
        parts = cut(plan, placement, self._wiring)
        _stage(directory)
        with directory.log.open("a", encoding="utf-8") as log:
            local = LocalClock(self._up().dilation)
            session = _Session(directory, plan, parts, {name: machines[name] for name in parts}, local, log, progress)
            clocks = session.run()
        agent = merge(directory.raw, plan, clocks)
        return _report(self._up(), placement, machines, agent, clocks, time.monotonic() - started)


def _stage(directory: RunDirectory) -> None:
    agent = directory.path / ".agent"
    try:
        share.copy_agent(agent, "mininet")
        share.stage(directory, agent, [])
    finally:
        shutil.rmtree(agent, ignore_errors=True)


class _Session:
    """One run: its files on the machines, the sessions with their agents, and its results."""

    def __init__(
        self,
        directory: RunDirectory,
        plan: Plan,
        parts: Mapping[str, Plan],
        machines: Mapping[str, RunMachine],
        local: LocalClock,
        log: IO[str],
        progress: RunProgress,
    ) -> None:
        self._directory = directory
        self._plan = plan
        self._parts = parts
        self._machines = machines
        self._local = local
        self._log = log
        self._progress = progress
        self._places: dict[str, str] = {}
        self._code = f"{_CODE}-{share.agent_key('mininet')}"

    def run(self) -> ClockRecord:
        """Make the run and return the content of clock.json. Raises RunFailedError; earlier records are kept."""
        with ExitStack() as stack:
            stack.callback(self._remove)
            for number, (name, machine) in enumerate(self._machines.items()):
                self._progress(f"deliver to {name}", number, len(self._machines))
                self._deliver(machine)
            try:
                with self._conversations() as conversations:
                    clocks = self._converse(conversations)
            finally:
                self._fetch()
        write_json(self._directory.raw / CLOCK_FILE, encoded(clocks))
        return clocks

    def _deliver(self, machine: RunMachine) -> None:
        """Deliver the machine's part of the plan to a new directory, and the agent unless the machine has it.

        The agent stays there, because compiling its byte code takes an emulated machine many seconds.
        """
        own = self._directory.raw / machine.name
        own.mkdir(parents=True, exist_ok=True)
        part = own / "part.json"
        part.write_text(self._parts[machine.name].to_json() + "\n", encoding="utf-8")
        if machine.run(["test", "-d", self._code], timeout_s=_COMMAND_S).returncode:
            self._install(machine)
        remote = machine.check(["mktemp", "-d", _PLACE], timeout_s=_COMMAND_S).strip()
        self._places[machine.name] = remote
        self._note(f"{machine.name}: {remote}")
        machine.check(["tee", f"{remote}/plan.json"], timeout_s=_TRANSFER_S, data=part.read_bytes())
        machine.check(["mkdir", f"{remote}/out"], timeout_s=_COMMAND_S)
        # Mininet's wiring expects this beside the plan.
        machine.check(["ln", "-s", f"{self._code}/topologies", f"{remote}/topologies"], timeout_s=_COMMAND_S)

    def _install(self, machine: RunMachine) -> None:
        packed = io.BytesIO()
        with tarfile.open(fileobj=packed, mode="w:gz") as archive:
            for item in sorted(self._directory.share.iterdir()):
                if item.is_dir() and item.name != "modules":
                    archive.add(item, item.name)
        partial = f"{self._code}.partial"
        machine.check(["rm", "-rf", partial], timeout_s=_COMMAND_S)
        machine.check(["mkdir", "-p", partial], timeout_s=_COMMAND_S)
        machine.check(["tar", "-xzf", "-", "-C", partial], timeout_s=_TRANSFER_S, data=packed.getvalue())
        machine.check(["mv", "-T", partial, self._code], timeout_s=_COMMAND_S)

    @contextmanager
    def _conversations(self) -> Iterator[list[AgentConversation]]:
        """Start a session with the agent of each machine; at the end of the context all agents have ended."""
        with ExitStack() as stack:
            conversations = []
            for name, machine in self._machines.items():
                place_ = self._places[name]
                console = self._directory.raw / name / "console.log"
                command = ["env", f"PYTHONPATH={self._code}", "PYTHONSAFEPATH=1", "PYTHONHASHSEED=0"]
                command += ["python3", "-m", "howdah.agent", "--in", place_, "--out", f"{place_}/out"]
                self._note(f"{name}$ {' '.join(command)}")
                conversation = AgentConversation(name, machine.spawn(command), console)
                stack.callback(conversation.end)
                conversations.append(conversation)
            try:
                yield conversations
            except BaseException:
                for conversation in conversations:
                    with contextlib.suppress(RunFailedError):
                        conversation.ask(
                            SessionQuestion("stop", why="another machine failed, or the run was interrupted")
                        )
                raise

    def _converse(self, conversations: list[AgentConversation]) -> ClockRecord:
        self._hear(conversations, "hello", _HELLO_S)
        self._hear(conversations, "ready", _READY_S + self._local.real_s(_SETUP_S))
        before = self._offsets(conversations)
        calibration = self._plan.calibration
        first_us = min(calibration.before_us, 0) if calibration.enabled else 0
        epoch_ns = self._local.now_ns() + _LEAD_NS - first_us * 1000
        epochs = {name: epoch_ns + offset.offset_ns for name, offset in before.items()}
        with with_priority(self._machines.values(), self._note):
            for conversation in conversations:
                conversation.ask(SessionQuestion("start", epoch_monotonic_ns=epochs[conversation.machine]))
            self._note(f"epoch {epoch_ns}: {epochs}")
            limit_s = self._plan.real_time_limit_s + _LEAD_NS / 1e9
            self._hear(conversations, "done", self._local.real_s(limit_s))
        after = self._offsets(conversations)
        for conversation in conversations:
            conversation.ask(SessionQuestion("end"))
        return ClockRecord(
            CLOCK_FORMAT,
            "CLOCK_MONOTONIC of the machine that ran the engine, divided by dilation",
            dilation=self._local.dilation,
            epoch_ns=epoch_ns,
            machines={name: described(before[name], after[name], epochs[name]) for name in before},
        )

    def _hear(self, conversations: list[AgentConversation], kind: str, limit_s: float) -> None:
        self._note(f"waiting until all are {kind}")
        await_messages(conversations, kind, limit_s, self._listen)

    def _listen(self, machine: str, message: SessionWord) -> None:
        if message.say == "progress" and machine == next(iter(self._machines)):
            self._progress(message.phase, message.time_us, message.of_us)

    def _offsets(self, conversations: list[AgentConversation]) -> dict[str, Offset]:
        found = {
            conversation.machine: conversation.offset(_CLOCK_SAMPLES, self._local) for conversation in conversations
        }
        for name, offset in found.items():
            self._note(f"{name}: {offset}")
        return found

    def _fetch(self) -> None:
        """Fetch everything the agents wrote; nothing from a machine that is unreachable."""
        for name, remote in self._places.items():
            self._progress(f"fetch from {name}", 0, 0)
            with self._logging_errors(f"{name}: nothing fetched"):
                self._machines[name].get(f"{remote}/out", self._directory.raw / name)

    def _remove(self) -> None:
        for name, remote in self._places.items():
            with self._logging_errors(f"{name}: {remote} is left behind"):
                self._machines[name].check(["rm", "-rf", remote], timeout_s=_COMMAND_S)

    @contextmanager
    def _logging_errors(self, what: str) -> Iterator[None]:
        """Log an error, so that it hides no other; if files are missing, the run fails where they are read."""
        try:
            yield
        except (HowdahError, OSError) as error:
            self._note(f"{what}: {error}")

    def _note(self, text: str) -> None:
        self._log.write(f"{time.strftime('%H:%M:%S')} {text}\n")
        self._log.flush()


def _report(
    fleet: RunFleet,
    placement: Placement,
    machines: Mapping[str, RunMachine],
    agent: AgentRecord,
    clocks: ClockRecord,
    wall_s: float,
) -> EngineReport:
    told = {
        name: {
            "role": machines[name].role,
            "hosts": placement.nodes(name),
            "kernel_release": record.kernel_release,
            "kernel_version": record.kernel_version,
            "accelerator": machines[name].accelerator,
            "clock": encoded(clocks.machines[name]),
            "modules": {module: value.srcversion for module, value in (record.modules or {}).items()},
        }
        for name, record in (agent.machines or {}).items()
    }
    return EngineReport(
        engine=EngineOrigin(
            name=MachinesEngine.name,
            machine_set=fleet.machine_set.name,
            dilation=fleet.dilation,
            wall_s=round(wall_s, 3),
            machines=told,
        ),
        kernel=KernelOrigin(
            release=agent.kernel_release, image_sha256=None, config_sha256=None, source=agent.kernel_version
        ),
        guest_tree=None,
        modules={
            name: ModuleOrigin(srcversion=value.srcversion, source="the machine's own", parameters=value.parameters)
            for name, value in (agent.modules or {}).items()
        },
    )
