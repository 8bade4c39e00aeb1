# SPDX-License-Identifier: Apache-2.0
"""The ``host`` engine: a plan through stock Mininet, on the machine's own kernel, in real time."""

from __future__ import annotations

import importlib.util
import json
import os
import platform
import shutil
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path

from howdah.build.cache import file_sha256, locked
from howdah.distribution import installing
from howdah.engine import share
from howdah.engine.engine import (
    MISSING,
    NOTE,
    OK,
    BuildProgress,
    EngineCheck,
    Identity,
    Lack,
    RunProgress,
    lacks_of,
    require,
)
from howdah.errors import EngineUnavailableError, RunFailedError
from howdah.place import OWN_PYTHON
from howdah.plan.plan import Plan
from howdah.record.directory import RunDirectory
from howdah.record.run import EngineOrigin, EngineReport, KernelOrigin

_ENGINE = "host"
_INSTEAD = "The uml engine needs none of this: leave out --engine host."
_POLL_S = 0.5
_TURN = Path("/run/howdah-host.lock")
# Commands that try a kernel module, each in its own network namespace, which ends with the command.
_TRIALS = {
    "veth": ["ip", "link", "add", "howdah0", "type", "veth", "peer", "name", "howdah1"],
    "sch_netem": ["tc", "qdisc", "add", "dev", "lo", "root", "netem", "delay", "1ms"],
    "sch_htb": ["tc", "qdisc", "add", "dev", "lo", "root", "handle", "1:", "htb"],
    "sch_fifo": ["tc", "qdisc", "add", "dev", "lo", "root", "bfifo", "limit", "100000"],
}
_PROGRAMS = {
    "ip": "iproute2",
    "tc": "iproute2",
    "ethtool": "ethtool",
    "mnexec": "mininet",
    "ifconfig": "net-tools",
    "unshare": "util-linux",
    "setpriv": "util-linux",
}
_SYSTEM_PROGRAMS = "/usr/sbin:/sbin"
# Ends with this process, however it ends, together with everything in it: Mininet's shells, traffic, namespaces.
_CONTAINED = ["setpriv", "--pdeathsig", "KILL", "unshare", "--pid", "--fork", "--kill-child=KILL", "--mount-proc"]
_PROBE_EVENT = "events/tcp/tcp_probe"
_TRACING = (Path("/sys/kernel/tracing"), Path("/sys/kernel/debug/tracing"))


class HostEngine:
    """The host engine. It makes one run at a time: runs would share the machine's cores, clock and kernel settings."""

    name = _ENGINE
    parallel = False

    def lacks(self) -> list[Lack]:
        return lacks_of(checks())

    def prepare(self, plans: Sequence[Plan], progress: BuildProgress) -> Identity:
        progress("look at this machine", 0, 0)
        require(self.lacks(), self.name, _INSTEAD)
        own = [plan.run for plan in plans if plan.modules]
        if own:
            raise EngineUnavailableError(
                f"the host engine loads no modules of a profile into this machine's kernel (run {own[0]} brings one)",
                hint="Load the module yourself and name its algorithm, or use the uml engine.",
            )
        return {
            "engine": self.name,
            "kernel": platform.release(),
            "version": platform.version(),
            "agent": share.agent_key("mininet"),
        }

    def run(self, directory: RunDirectory, plan: Plan, progress: RunProgress) -> EngineReport:
        agent = directory.path / ".agent"
        try:
            share.copy_agent(agent, "mininet")
            share.stage(directory, agent, [])
            share.stage_collectors(directory, plan)
        finally:
            shutil.rmtree(agent, ignore_errors=True)
        try:
            with locked(_TURN, lambda: progress("wait for another howdah's run", 0, 0)):
                started = time.monotonic()
                status = _run_agent(directory, plan, progress)
            _check(directory, status)
        except RunFailedError as error:
            error.known = EngineReport(kernel=_kernel())
            raise
        return EngineReport(
            engine=EngineOrigin(name=self.name, wall_s=round(time.monotonic() - started, 3)),
            kernel=_kernel(),
            guest_tree=None,
            modules={},
        )


def _kernel() -> KernelOrigin:
    return KernelOrigin(
        release=platform.release(),
        image_sha256=_image_sha256(),
        config_sha256=_sha256(Path(f"/boot/config-{platform.release()}")),
        source=platform.version(),
    )


def _run_agent(directory: RunDirectory, plan: Plan, progress: RunProgress) -> int:
    command = [*_CONTAINED, *OWN_PYTHON, "-m", "howdah.agent", "--wiring", "mininet"]
    command += ["--in", str(directory.share.absolute()), "--out", str(directory.raw.absolute())]
    # The agent's own code is imported from share/, as in a guest; Mininet from this environment.
    limit = time.monotonic() + plan.real_time_limit_s
    own = {"PYTHONPATH": str(directory.share.absolute()), "PYTHONSAFEPATH": "1", "PYTHONHASHSEED": "0"}
    with directory.console.open("wb") as console:
        process = subprocess.Popen(
            command,
            cwd=directory.share,
            env={**os.environ, **own},
            stdin=subprocess.DEVNULL,
            stdout=console,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        try:
            while True:
                try:
                    return process.wait(_POLL_S)
                except subprocess.TimeoutExpired:
                    progress(*_position(directory))
                if time.monotonic() > limit:
                    phase = _position(directory)[0]
                    raise RunFailedError(
                        f"the run was ended at its wall-clock limit of {plan.real_time_limit_s:g} s, in phase {phase}",
                        where=str(directory.console),
                    )
        finally:
            if process.poll() is None:
                process.kill()
                process.wait()


def _position(directory: RunDirectory) -> tuple[str, int, int]:
    try:
        value = json.loads((directory.raw / "progress.json").read_text())
        return str(value["phase"]), int(value["time_us"]), int(value["of_us"])
    except (OSError, ValueError, KeyError, TypeError):
        return "setup", 0, 0


def _check(directory: RunDirectory, status: int) -> None:
    try:
        record = json.loads((directory.raw / "agent.json").read_text())
    except (OSError, ValueError):
        raise RunFailedError(
            f"the agent ended with status {status} without a record of its run", where=str(directory.console)
        ) from None
    if record.get("status") != "ok" or status:
        error = record.get("error") or {}
        during = f" during {error['operation']}" if error.get("operation") else ""
        raise RunFailedError(
            f"the agent stopped{during}: {error.get('message', f'status {status}')}", where=str(directory.console)
        )


def _sha256(path: Path) -> str | None:
    try:
        return file_sha256(path)
    except OSError:
        return None


def _image_sha256() -> str | None:
    return _sha256(Path(f"/boot/vmlinuz-{platform.release()}"))


def checks() -> list[EngineCheck]:
    """Make every check; whatever can be tried is tried instead of looked up."""
    found = [_root(), *_programs(), _mininet()]
    if os.geteuid() == 0 and all(shutil.which(name) for name in ("unshare", "ip", "tc")):
        found += [_try(what, command) for what, command in _TRIALS.items()]
    found.append(_tcp_probe())
    return found


def _root() -> EngineCheck:
    if os.geteuid() == 0:
        return EngineCheck(_ENGINE, "root", OK, "yes")
    return EngineCheck(_ENGINE, "root", MISSING, "namespaces and queues of the machine need it", "Run as root.")


def _programs() -> list[EngineCheck]:
    absent = [_absent(program, package) for program, package in _PROGRAMS.items() if shutil.which(program) is None]
    return absent or [EngineCheck(_ENGINE, "programs", OK, ", ".join(_PROGRAMS))]


def _absent(program: str, package: str) -> EngineCheck:
    """Check for a missing program, which may be in a directory that PATH lacks under Debian's ``su`` and cron."""
    if found := shutil.which(program, path=_SYSTEM_PROGRAMS):
        directory = Path(found).parent
        return EngineCheck(
            _ENGINE, program, MISSING, f"in {directory}, which PATH does not have", f"export PATH=$PATH:{directory}"
        )
    return EngineCheck(_ENGINE, program, MISSING, f"program of the package {package}", installing(package))


def _mininet() -> EngineCheck:
    if importlib.util.find_spec("mininet"):
        return EngineCheck(_ENGINE, "Mininet's Python package", OK, "there")
    return EngineCheck(_ENGINE, "Mininet's Python package", MISSING, "builds the network", "pip install mininet")


def _try(what: str, command: list[str]) -> EngineCheck:
    try:
        answer = subprocess.run(["unshare", "--net", *command], capture_output=True, text=True, timeout=20, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        return EngineCheck(_ENGINE, what, MISSING, f"tried: {error}", None)
    if answer.returncode == 0:
        return EngineCheck(_ENGINE, what, OK, "tried")
    said = (answer.stderr or answer.stdout).strip().splitlines()
    return EngineCheck(
        _ENGINE,
        what,
        MISSING,
        f"tried: {said[-1] if said else 'refused'}",
        f"modprobe {what}; a kernel without it cannot emulate the path (see linux-modules-extra, or another kernel).",
    )


def _tcp_probe() -> EngineCheck:
    if any((place / _PROBE_EVENT).is_dir() for place in _TRACING):
        return EngineCheck(_ENGINE, "tcp_probe", OK, "the kernel's trace event is there")
    return EngineCheck(
        _ENGINE,
        "tcp_probe",
        NOTE,
        "no trace event in /sys/kernel/tracing: no record per ACK",
        "mount -t tracefs tracefs /sys/kernel/tracing (as root), or use a kernel with CONFIG_FTRACE.",
    )
