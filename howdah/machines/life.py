# SPDX-License-Identifier: Apache-2.0
"""Starts, watches and stops virtual machines, cleaning up first after a howdah that was killed midway."""

from __future__ import annotations

import os
import shlex
import shutil
import socket
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from howdah.build.accelerator import QEMU, cached_why_no_kvm
from howdah.build.cache import Cache
from howdah.build.tools import build_tools
from howdah.distribution import installing
from howdah.errors import EngineUnavailableError, HowdahError
from howdah.machines import tap
from howdah.machines.image import MachineImage, provide_machine_image
from howdah.machines.inventory import MachineSetDirectory, make_host_key
from howdah.machines.kernel import provide_machine_kernel
from howdah.machines.machine_set import CONTROL, MachineHostSection, MachineSet, VirtualSection
from howdah.machines.personal import personal_files, write_initrd, write_seed
from howdah.machines.qemu import (
    KERNEL_ARGUMENTS,
    WHY_EMULATED,
    Hub,
    Plug,
    VirtualMachine,
    check_image,
    chosen_dilation,
    command_line,
    dilating,
    mac_of,
    make_overlay,
)
from howdah.machines.ssh import Booting, SshRoute, await_ssh, ended_error
from howdah.machines.state import MachineSetState, MachineState, StartedProcess, identify, read_state
from howdah.machines.tap import TapNetwork

BOOT_LIMIT_S = 600.0
_START_S = 10.0
_STOP_S = 30.0
_KILL_S = 5.0
_PORT_TRIES = 3
_PORT_TAKEN = "Could not set up host forwarding rule"

Progress = Callable[[str, int, int], None]


@dataclass(frozen=True)
class _Prepared:
    """A machine to be started. ``image`` None: it boots the user's own disk image."""

    machine_set: MachineSet
    name: str
    image: MachineImage | None
    accelerator: str
    why_no_kvm: str | None
    dilation: int

    @property
    def host(self) -> MachineHostSection:
        return self.machine_set.hosts[self.name]

    @property
    def virtual(self) -> VirtualSection:
        assert self.machine_set.virtual is not None
        return self.machine_set.virtual

    @property
    def macs(self) -> dict[str, str]:
        return macs_of(self.machine_set, self.name)


@dataclass(frozen=True)
class StartOptions:
    """Options for starting machines. ``bound``: the launcher ends them with this process."""

    cache: Cache
    progress: Progress
    bound: bool
    boot_limit_s: float = BOOT_LIMIT_S


def bring_up(machine_set: MachineSet, directory: MachineSetDirectory, file: Path, how: StartOptions) -> MachineSetState:
    """Start every machine and wait until all accept SSH. The caller holds the machine set's lock and has made its keys.

    Raises HowdahError after ending what was started; consoles are kept.
    """
    assert machine_set.virtual is not None
    clear(directory)
    network = TapNetwork(machine_set.name, directory.path) if machine_set.virtual.taps else None
    if network is not None:
        tap.require()  # fail before images are made
    started = time.monotonic()
    images = {name: _image(machine_set, host, file, how) for name, host in machine_set.hosts.items()}
    imaged = time.monotonic()
    machines: dict[str, MachineState] = {}
    state = directory.state
    try:
        booting = []
        accelerators, dilation = _accelerators(machine_set, images, how)
        if network is not None:
            network.make([*machine_set.wires, *([CONTROL] if machine_set.monitor is not None else [])])
            MachineSetState({}, namespace=network.namespace).write(state)
        namespace = network.namespace if network is not None else None
        for number, name in enumerate(_listeners_first(machine_set)):
            how.progress(f"start {name}", number, len(machine_set.hosts))
            own = _Prepared(machine_set, name, images[name], *accelerators[name], dilation)
            with _plugged(machine_set, name, network) as plugs:
                machines[name], watched = _start(own, plugs, directory, file, how)
            # From here on, a killed howdah leaves a record of the machine.
            MachineSetState(machines, namespace=namespace).write(state)
            booting.append(watched)
        took = await_ssh(booting, how.boot_limit_s, how.progress)
    except BaseException:
        for machine in machines.values():
            machine.process.end(_KILL_S)
        clear(directory)
        raise
    times = {"images": round(imaged - started, 1), "boot": round(time.monotonic() - imaged, 1)}
    up = MachineSetState(machines, {**times, **{f"boot {name}": took_s for name, took_s in took.items()}}, namespace)
    up.write(state)
    return up


def take_down(directory: MachineSetDirectory, progress: Progress, stop_s: float = _STOP_S) -> list[str]:
    """Shut the machines down, by force after ``stop_s``; return the names of those that ran."""
    state = read_state(directory.state)
    running = state.alive() if state else []
    if state:
        for name in running:
            progress(f"switch off {name}", 0, len(running))
            _power_off(name, state.machines[name], directory)
        end = time.monotonic() + stop_s
        for number, name in enumerate(running):
            progress("wait for the machines to end", number, len(running))
            process = state.machines[name].process
            if not process.wait(max(0.0, end - time.monotonic())):
                process.end(_KILL_S)
    clear(directory)
    return running


def clear(directory: MachineSetDirectory) -> list[str]:
    """End running machines and remove disks and sockets, not consoles and keys; return the names of those that ran."""
    state = read_state(directory.state)
    killed = []
    for name, machine in state.machines.items() if state else ():
        if machine.process.end(_KILL_S):
            killed.append(name)
    for pattern in ("machines/*/disk.qcow2", "machines/*/initrd", "machines/*/pid", "wires/*", "ssh-*"):
        for leftover in directory.path.glob(pattern):
            leftover.unlink(missing_ok=True)
    for seed in directory.path.glob("machines/*/seed"):
        shutil.rmtree(seed)
    if state is not None and state.namespace is not None:
        tap.remove(state.namespace)
    directory.state.unlink(missing_ok=True)
    return killed


def _power_off(name: str, machine: MachineState, directory: MachineSetDirectory) -> None:
    route = SshRoute(name, "127.0.0.1", machine.port, "root", directory.path, accept_new=False)
    try:
        route.run(["systemctl", "poweroff", "--no-block"], timeout_s=20)
    except HowdahError:
        return  # its process is ended instead
    route.close()


def _image(machine_set: MachineSet, host: MachineHostSection, file: Path, how: StartOptions) -> MachineImage | None:
    if host.image is not None:
        return None
    assert machine_set.virtual is not None
    kernel = provide_machine_kernel(
        host.kernel or machine_set.virtual.kernel, file.resolve().parent, how.cache, how.progress
    )
    return provide_machine_image(kernel, how.cache, how.progress)


def _listeners_first(machine_set: MachineSet) -> list[str]:
    """Return the hosts in starting order: the monitor listens for all; on a wire, the first to start listens."""
    names = list(machine_set.hosts)
    return sorted(names, key=lambda name: (name != machine_set.monitor, names.index(name)))


def _start(
    own: _Prepared, plugs: tuple[Plug, ...], directory: MachineSetDirectory, file: Path, how: StartOptions
) -> tuple[MachineState, Booting]:
    """Make the machine's disk and start QEMU; return its state, and what is needed to watch it boot."""
    place = directory.path / "machines" / own.name
    place.mkdir(parents=True, exist_ok=True)
    (directory.path / "wires").mkdir(exist_ok=True)
    console, said = place / "console.log", place / "qemu.log"
    if console.exists():
        console.replace(place / "console.log.before")
    _make_disk(own, place, directory, file)
    for attempt in range(_PORT_TRIES):
        machine = _virtual_machine(own, plugs)
        route = _route(own.name, machine, own.host, directory)
        process = _launch(machine, own.dilation, directory, said, how)
        if process is not None:
            break
        if _PORT_TAKEN not in said.read_text(errors="replace") or attempt == _PORT_TRIES - 1:
            raise ended_error(Booting(own.name, StartedProcess(0, 0, ""), route, console, said))
    assert process is not None
    return _state(own, process, machine.port), Booting(own.name, process, route, console, said)


def _make_disk(own: _Prepared, place: Path, directory: MachineSetDirectory, file: Path) -> None:
    overlay = place / "disk.qcow2"
    if own.image is not None:
        make_overlay(overlay, own.image.disk, "raw")
        _write_personal_files(place / "initrd", own.machine_set, own.name, own.macs, own.image, directory)
        return
    assert own.host.image is not None
    disk = (file.resolve().parent / own.host.image).resolve()
    make_overlay(overlay, disk, check_image(disk, f"{file}: hosts.{own.name}.image"))
    key = directory.key.with_suffix(".pub").read_text()
    write_seed(place / "seed", own.machine_set.name, own.name, own.macs, own.host.links, key)


def _virtual_machine(own: _Prepared, plugs: tuple[Plug, ...]) -> VirtualMachine:
    here = f"machines/{own.name}"
    return VirtualMachine(
        machine_set=own.machine_set.name,
        name=own.name,
        accelerator=own.accelerator,
        memory_bytes=own.host.memory or own.virtual.memory,
        processors=own.host.processors or own.virtual.processors,
        disk=f"{here}/disk.qcow2",
        port=_free_port(),
        console=f"{here}/console.log",
        pid_file=f"{here}/pid",
        kernel=own.image.starts if own.image else None,
        initrd=f"{here}/initrd" if own.image else None,
        seed=None if own.image else f"{here}/seed",
        plugs=plugs,
        hub=hub_of(own.machine_set, own.name, own.macs),
        append=KERNEL_ARGUMENTS if own.dilation != 1 else (),
    )


def _state(own: _Prepared, process: StartedProcess, port: int) -> MachineState:
    image = own.image
    return MachineState(
        process=process,
        port=port,
        accelerator=own.accelerator,
        why_no_kvm=own.why_no_kvm,
        dilation=own.dilation,
        kernel=own.host.kernel or own.virtual.kernel if image else "its own",
        release=image.kernel.release if image else None,
        source=image.kernel.source if image else str(own.host.image),
        macs=own.macs,
        image_sources=image.sources_key if image else None,
        modules_built=image.modules_built if image else [],
        modules_left_out=image.modules_left_out if image else {},
    )


def _route(name: str, machine: VirtualMachine, host: MachineHostSection, directory: MachineSetDirectory) -> SshRoute:
    return SshRoute(name, "127.0.0.1", machine.port, host.user, directory.path, accept_new=host.image is not None)


def _launch(
    machine: VirtualMachine, dilation: int, directory: MachineSetDirectory, said: Path, how: StartOptions
) -> StartedProcess | None:
    """Start QEMU; return its process once it has accepted its arguments, None if it has ended instead."""
    pid_file = directory.path / machine.pid_file
    pid_file.unlink(missing_ok=True)
    command = ["/usr/bin/env", *dilating(dilation, how.cache), *command_line(machine)]
    if how.bound:
        launch = build_tools(how.cache).launch
        command = [str(launch), "watch", str(os.getpid()), "-", "--", *command]
    said.with_name("qemu.command").write_text(shlex.join(command) + "\n")
    with said.open("wb") as log:
        started = subprocess.Popen(
            command,
            cwd=directory.path,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            pass_fds=[plug.tap for plug in machine.plugs if plug.tap is not None],
        )
    end = time.monotonic() + _START_S
    while started.poll() is None:
        try:
            found = identify(int(pid_file.read_text()), machine.mark)
        except (OSError, ValueError):
            found = None
        if found is not None:
            return found
        if time.monotonic() > end:
            started.kill()
            started.wait()
            raise HowdahError(f"QEMU has not started {machine.name} after {_START_S:g} s", where=str(said))
        time.sleep(0.02)
    return None


def macs_of(machine_set: MachineSet, name: str) -> dict[str, str]:
    wires = [*machine_set.interfaces(name), *([CONTROL] if machine_set.hosts[name].control else [])]
    return {wire: mac_of(machine_set.name, name, wire) for wire in wires}


@contextmanager
def _plugged(machine_set: MachineSet, name: str, network: TapNetwork | None) -> Iterator[tuple[Plug, ...]]:
    """Provide the machine's ends of its wires. Taps stay open here until QEMU has them."""
    macs = macs_of(machine_set, name)
    if network is None:
        yield plugs_of(machine_set, name, macs)
        return
    with ExitStack() as stack:
        plugs = []
        for wire, mac in macs.items():
            descriptor = network.tap(wire, name)
            stack.callback(os.close, descriptor)
            plugs.append(Plug(mac, tap=descriptor))
        yield tuple(plugs)


def plugs_of(machine_set: MachineSet, name: str, macs: dict[str, str]) -> tuple[Plug, ...]:
    order = _listeners_first(machine_set)
    found = []
    for wire in machine_set.interfaces(name):
        first = min((end.host for end in machine_set.ends(wire)), key=order.index)
        found.append(Plug(macs[wire], f"wires/{wire}", listens=first == name))
    if CONTROL in macs and name != machine_set.monitor:
        found.append(Plug(macs[CONTROL], f"wires/.control-{name}", listens=False))
    return tuple(found)


def hub_of(machine_set: MachineSet, name: str, macs: dict[str, str]) -> Hub | None:
    """Return the monitor's hub; None for other machines, and with taps, where the monitoring link is a bridge."""
    assert machine_set.virtual is not None
    if name != machine_set.monitor or machine_set.virtual.taps:
        return None
    others = (other for other in machine_set.hosts if other != name and machine_set.hosts[other].control)
    return Hub(macs[CONTROL], tuple(f"wires/.control-{other}" for other in others))


def _write_personal_files(
    target: Path,
    machine_set: MachineSet,
    name: str,
    macs: dict[str, str],
    image: MachineImage,
    directory: MachineSetDirectory,
) -> None:
    host = machine_set.hosts[name]
    peers = {other: found.listen_address for other, found in machine_set.hosts.items() if found.control}
    files = personal_files(
        machine_set.name,
        name,
        macs,
        host.links,
        peers if host.control else {},
        directory.key.with_suffix(".pub").read_text(),
        make_host_key(directory, name),
    )
    write_initrd(target, image.first, {path: (text, mode) for path, (text, mode) in files.items()})


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _accelerators(
    machine_set: MachineSet, images: Mapping[str, MachineImage | None], how: StartOptions
) -> tuple[dict[str, tuple[str, str | None]], int]:
    """Return each machine's accelerator, with the reason if it is not KVM, and the dilation of all clocks."""
    assert machine_set.virtual is not None
    found = {name: _accelerator(images[name], how) for name in machine_set.hosts}
    processors = sum(host.processors or machine_set.virtual.processors for host in machine_set.hosts.values())
    names = (name for name, _why in found.values())
    dilation = chosen_dilation(machine_set.virtual.dilation, names, processors, len(os.sched_getaffinity(0)))
    if dilation == 1:
        return found, dilation
    return {
        machine: ("tcg", why or WHY_EMULATED if name == "kvm" else why) for machine, (name, why) in found.items()
    }, dilation


def _accelerator(image: MachineImage | None, how: StartOptions) -> tuple[str, str | None]:
    """Return ``kvm`` if it boots exactly this kernel, otherwise ``tcg`` and why."""
    if shutil.which(QEMU) is None:
        raise EngineUnavailableError(f"{QEMU} is not installed", hint=installing("qemu-system-x86", "qemu-utils"))
    if image is None:
        return "tcg", "KVM is only tried with howdah's kernels"
    how.progress("try KVM", 0, 0)
    why = cached_why_no_kvm(image.starts, how.cache)
    return ("tcg", why) if why else ("kvm", None)
