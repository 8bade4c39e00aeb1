# SPDX-License-Identifier: Apache-2.0
"""``howdah machines``: run experiments across several machines; start, set up and stop virtual ones."""

from __future__ import annotations

import argparse
import dataclasses
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path

from howdah.build.cache import Cache
from howdah.build.tools import build_tools
from howdah.command import run
from howdah.command.answer import answer
from howdah.command.common import add_json_option
from howdah.command.shape import CommandAnswer
from howdah.engine.machines.machine import MACHINE_SETS
from howdah.errors import HowdahError, UsageError, nearest
from howdah.layout import fitted, write_stderr, write_stdout
from howdah.machines.fleet import Fleet
from howdah.machines.inventory import MachineSetDirectory, directory_of, remove_directory, write_inventory
from howdah.machines.life import BOOT_LIMIT_S, StartOptions, bring_up, take_down
from howdah.machines.machine_set import MachineSet, load_machine_set
from howdah.machines.provision import Provisioned, provision
from howdah.machines.state import MachineSetState, locked, read_state
from howdah.machines.tap import lost_frames
from howdah.place import PLAYBOOKS

PROFILE = "machines-5mbit"
Execute = Callable[[argparse.Namespace], int]


class Machines(CommandAnswer, shape="machines"):
    """Result of 'howdah machines'. Its fields depend on the action (docs/json.md)."""


def arguments(parser: argparse.ArgumentParser) -> None:
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    texts: dict[str, tuple[str, Execute]] = {
        "inventory": (
            "check a machines file; write its inventory, and a key pair of its own the first time",
            _inventory,
        ),
        "up": ("make images, start the virtual machines, wait until SSH answers", _up),
        "provision": ("set the machines up with playbooks/site.yml", _provision),
        "run": ("up, provision, run a profile across the machines, down", _run),
        "status": ("which machines run, and how to reach them", _status),
        "ssh": ("log in to one of the machines, or run a command there", _ssh),
        "down": ("switch the virtual machines off; delete their disks, keep consoles and keys", _down),
        "remove": ("remove the machines' inventory, keys and known hosts from here", _remove),
    }
    for name, (text, execute) in texts.items():
        action = actions.add_parser(name, help=text)
        _add_action_arguments(action, name)
        action.set_defaults(execute=execute)
        if name != "run":
            action.set_defaults(interrupted="'howdah machines status FILE' shows what is running")


def _add_action_arguments(action: argparse.ArgumentParser, name: str) -> None:
    action.add_argument("file", type=Path, help="the machines file, e.g. playbooks/machines/virtual.yaml")
    if name == "ssh":
        action.add_argument("host", help="a host of the machines file")
        action.add_argument("command", nargs=argparse.REMAINDER, help="a program and its arguments")
    action.add_argument(
        "--machine-sets",
        type=Path,
        default=Path(os.environ.get(MACHINE_SETS) or "var/machines"),
        metavar="DIR",
        help="directory of machine sets (default: $HOWDAH_MACHINE_SETS, or ./var/machines)",
    )
    if name == "run":
        action.add_argument("profile", nargs="?", default=PROFILE, help=f"a profile (default: {PROFILE})")
        action.add_argument("rest", nargs=argparse.REMAINDER, metavar="...", help="further arguments of 'howdah run'")
    if name in ("up", "run"):
        action.add_argument(
            "--boot-limit",
            type=float,
            default=BOOT_LIMIT_S,
            metavar="SECONDS",
            help=f"how long a machine may take until SSH answers (default: {BOOT_LIMIT_S:g})",
        )
    add_json_option(action)


def _print_result(options: argparse.Namespace, value: dict[str, object], lines: list[str]) -> int:
    if options.json:
        answer(Machines(**value))
    else:
        write_stdout(fitted("\n".join(lines) + "\n", whole="next: "))
    return 0


def _as_given(options: argparse.Namespace, path: Path) -> str:
    """Return a path below the directory of machine sets, written relative to that directory as the user gave it."""
    return str(options.machine_sets / path.relative_to(options.machine_sets.resolve()))


def _machine_set_and_directory(options: argparse.Namespace) -> tuple[MachineSet, MachineSetDirectory]:
    machine_set = load_machine_set(options.file)
    return machine_set, directory_of(machine_set, options.machine_sets)


def _inventory(options: argparse.Namespace) -> int:
    machine_set, directory = _machine_set_and_directory(options)
    is_new = write_inventory(machine_set, directory, options.file)
    inventory, key = (_as_given(options, file) for file in (directory.inventory, directory.key))
    lines = [f"inventory: {inventory}"]
    if is_new:
        lines.append(f"new key: {key}.pub; allow it on each host (ssh-copy-id -i {key}.pub HOST)")
    lines.append(f"next: ansible-playbook -i {inventory} {PLAYBOOKS / 'site.yml'}")
    value = {"inventory": inventory, "public_key": f"{key}.pub", "new_key": is_new}
    return _print_result(options, value, lines)


def _up(options: argparse.Namespace) -> int:
    machine_set, directory = _machine_set_and_directory(options)
    _require_virtual(machine_set, options.file)
    write_inventory(machine_set, directory, options.file)
    with locked(directory.path, "howdah machines up"):
        running = read_state(directory.state)
        if running is not None and set(running.alive()) == set(machine_set.hosts):
            return _print_state(options, machine_set, running, "up already")
        how = StartOptions(Cache(), StepLines(options.json), bound=False, boot_limit_s=options.boot_limit)
        state = bring_up(machine_set, directory, options.file, how)
        write_inventory(machine_set, directory, options.file, state)
    return _print_state(options, machine_set, state, "up")


def _provision(options: argparse.Namespace) -> int:
    machine_set, directory = _machine_set_and_directory(options)
    if machine_set.virtual is not None:
        Fleet.load(options.file, options.machine_sets)  # raises HowdahError unless they are up
    write_inventory(machine_set, directory, options.file, read_state(directory.state))
    with locked(directory.path, "howdah machines provision"):
        found = provision(directory, build_tools(Cache()).launch, StepLines(options.json))
    return _print_result(options, dataclasses.asdict(found), _provisioned_lines(found))


def _provisioned_lines(found: Provisioned) -> list[str]:
    changed = ", ".join(f"{name} {count}" for name, count in found.changed.items())
    return [f"set up in {found.took_s:g} s; tasks that changed something: {changed}"]


def _run(options: argparse.Namespace) -> int:
    """Run a profile. A machine set that is up stays up; one that is down is started first and stopped afterwards."""
    machine_set, directory = _machine_set_and_directory(options)
    _require_virtual(machine_set, options.file)
    write_inventory(machine_set, directory, options.file)
    progress = StepLines(options.json)
    with locked(directory.path, "howdah machines run"):
        state = read_state(directory.state)
        is_up = state is not None and set(state.alive()) == set(machine_set.hosts)
        if not is_up:
            how = StartOptions(Cache(), progress, bound=True, boot_limit_s=options.boot_limit)
            state = bring_up(machine_set, directory, options.file, how)
        try:
            write_inventory(machine_set, directory, options.file, state)
            found = provision(directory, build_tools(Cache()).launch, progress)
            write_stderr("\n".join(_provisioned_lines(found)) + "\n")
            os.environ[MACHINE_SETS] = str(options.machine_sets.resolve())
            arguments = [options.profile, "--engine", "machines", "--machines", str(options.file), *options.rest]
            return _howdah([*arguments, *(["--json"] if options.json else [])])
        finally:
            if not is_up:
                take_down(directory, progress)


def _howdah(arguments: list[str]) -> int:
    """Call ``howdah run`` in this process, so that the machines end with it."""
    parser = argparse.ArgumentParser(prog="howdah run")
    run.arguments(parser)
    return run.execute(parser.parse_args(arguments))


def _status(options: argparse.Namespace) -> int:
    machine_set, directory = _machine_set_and_directory(options)
    _require_virtual(machine_set, options.file)
    state = read_state(directory.state)
    if state is None:
        return _print_result(options, {"up": False, "machines": {}}, [f"the machine set {machine_set.name} is down"])
    return _print_state(options, machine_set, state, "up")


def _print_state(options: argparse.Namespace, machine_set: MachineSet, state: MachineSetState, how: str) -> int:
    alive = state.alive()
    lines = [f"the machine set {machine_set.name} is {how}"]
    for name, machine in state.machines.items():
        runs = f"port {machine.port} of 127.0.0.1" if name in alive else "has ended"
        lines.append(f"  {name}: {machine.release or machine.source}, {machine.accelerator}, {runs}")
        lines += [f"    without {module}: {why}" for module, why in machine.modules_left_out.items()]
    frames_lost = lost_frames(state.namespace) if state.namespace is not None else None
    if frames_lost is not None:
        lines.append(f"  what a wire carries: ip netns exec {state.namespace} tcpdump -i WIRE")
        lines += [f"    {place}: {frames} frames lost" for place, frames in frames_lost.items() if frames]
    if state.dilation != 1:
        lines.append(f"  a second of the machines lasts {state.dilation} s here (docs/machines.md)")
    if state.times_s:
        lines.append("  " + ", ".join(f"{what} {took:g} s" for what, took in state.times_s.items()))
    value: dict[str, object] = {
        "up": True,
        "machines": {
            name: {"alive": name in alive, "port": machine.port, "release": machine.release, "pid": machine.process.pid}
            for name, machine in state.machines.items()
        },
        "dilation": state.dilation,
        "namespace": state.namespace,
        "frames_lost": frames_lost,
        "times_s": state.times_s,
    }
    return _print_result(options, value, lines)


def _ssh(options: argparse.Namespace) -> int:
    fleet = Fleet.load(options.file, options.machine_sets)
    machine = fleet.machines.get(options.host)
    if machine is None:
        close = nearest(options.host, fleet.machines)
        hint = f"{f'Did you mean {close}? ' if close else ''}Hosts: {', '.join(fleet.machines)}"
        raise UsageError(f"there is no host {options.host!r} with Linux", hint=hint)
    os.chdir(fleet.directory.path)
    command = machine.route.command(options.command, tty=not options.command)
    os.execv(command[0], command)


def _down(options: argparse.Namespace) -> int:
    machine_set, directory = _machine_set_and_directory(options)
    _require_virtual(machine_set, options.file)
    if not directory.mark.exists():
        return _print_result(options, {"ended": []}, [f"the machine set {machine_set.name} is down"])
    started = time.monotonic()
    with locked(directory.path, "howdah machines down"):
        ended = take_down(directory, StepLines(options.json))
    took_s = round(time.monotonic() - started, 1)
    return _print_result(
        options,
        {"ended": ended, "took_s": took_s},
        [f"the machine set {machine_set.name} is down: {', '.join(ended) or 'nothing'} ran, {took_s:g} s"],
    )


def _remove(options: argparse.Namespace) -> int:
    machine_set, directory = _machine_set_and_directory(options)
    if machine_set.virtual is not None and directory.mark.exists():
        with locked(directory.path, "howdah machines remove"):
            take_down(directory, StepLines(options.json))
    remove_directory(directory)
    return _print_result(options, {"removed": _as_given(options, directory.path)}, [f"removed {directory.path}"])


def _require_virtual(machine_set: MachineSet, file: Path) -> None:
    if machine_set.virtual is None:
        raise HowdahError(
            "these machines are real: howdah does not switch them on and off",
            where=str(file),
            hint="A section 'virtual:' makes them virtual ones; playbooks/machines/virtual.yaml is an example.",
        )


class StepLines:
    """Print each step once, on a line of standard error; print nothing with --json.

    A reader that closes the pipe (``howdah machines down FILE 2>&1 | head -1``) must not stop the command: it would
    leave machines half switched off.
    """

    def __init__(self, quiet: bool) -> None:
        self._quiet = quiet
        self._last = ""

    def __call__(self, what: str, _done: int, _all: int) -> None:
        if self._quiet or what == self._last:
            return
        self._last = what
        try:
            write_stderr(f"{what}\n")
        except BrokenPipeError:
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stderr.fileno())
