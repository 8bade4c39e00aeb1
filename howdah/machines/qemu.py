# SPDX-License-Identifier: Apache-2.0
"""QEMU's command line for one virtual machine. QEMU runs in the machine set's directory, and paths are relative to it:
addresses of Unix sockets are limited to 107 characters."""

from __future__ import annotations

import hashlib
import json
import subprocess
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from howdah.build.accelerator import QEMU
from howdah.build.cache import Cache
from howdah.build.tools import library, variable
from howdah.distribution import installing
from howdah.errors import EngineUnavailableError, HowdahError

AUTO = "auto"
MOST_DILATION = 1000
# Factor for emulated processors. With 4, some runs beside other work were invalid (docs/engines.md).
_EMULATED = 8
WHY_EMULATED = "its clock is dilated, which takes an emulated processor"
# While booting, a kernel checks that timer interrupts arrive within some cycles of the time stamp counter
# (timer_irq_works()). The counter is not dilated, so above some factor too few arrive, and the kernel panics.
KERNEL_ARGUMENTS = ("no_timer_check",)
_DILATE = Path(__file__).with_name("dilate.c")


def chosen_dilation(wanted: int | str, accelerators: Iterable[str], processors: int, cores: int) -> int:
    """Return how many local seconds one of the machines lasts: ``wanted``, or for ``auto`` 1 if KVM runs all of them.

    Otherwise ``auto`` is 8 for up to three emulated processors on two cores, and proportionally more for more of them.

    An emulated processor is some fifty times slower than the machine's. In real time its timers are late, and so is the
    network that depends on them. If all machines share a clock that is slowed down by a factor, each has that many
    times more processor time per second of its own. dilate.c, loaded into each QEMU, does it.

    >>> chosen_dilation("auto", ["kvm", "tcg"], 3, 2)
    8
    >>> chosen_dilation("auto", ["kvm"], 1, 2), chosen_dilation("auto", ["tcg"], 4, 2)
    (1, 11)
    """
    if isinstance(wanted, int):
        return wanted
    if all(name == "kvm" for name in accelerators):
        return 1
    return max(_EMULATED, -(-_EMULATED * 2 * processors // (3 * cores)))


def dilating(dilation: int, cache: Cache) -> list[str]:
    """Return env(1)'s settings for QEMU; none without dilation. Raises HowdahError if dilate.c does not compile."""
    return [variable(library(_DILATE, cache)), f"HOWDAH_DILATION={dilation}"] if dilation != 1 else []


MANAGE_MAC = "52:54:00:00:00:01"  # the same in every machine: these interfaces share no network
SSH_PORT = 22
_TRANSLATED_MEBIBYTES = 256


@dataclass(frozen=True)
class Plug:
    """One network interface of a machine and its connection: a socket, on which this machine or the other one listens,
    or a tap, whose file descriptor QEMU inherits."""

    mac: str
    socket: str = ""
    listens: bool = False
    tap: int | None = None


@dataclass(frozen=True)
class Hub:
    """The centre of a segment of several machines: this machine's interface, and the sockets of the others."""

    mac: str
    sockets: tuple[str, ...]


@dataclass(frozen=True)
class VirtualMachine:
    """A virtual machine. ``kernel`` None: the disk has a boot loader. ``seed`` is then a directory with cloud-init's
    files."""

    machine_set: str
    name: str
    accelerator: str
    memory_bytes: int
    processors: int
    disk: str
    port: int
    console: str
    pid_file: str
    kernel: Path | None = None
    initrd: str | None = None
    seed: str | None = None
    plugs: tuple[Plug, ...] = ()
    hub: Hub | None = None
    append: tuple[str, ...] = field(default=())

    @property
    def mark(self) -> str:
        """The argument that identifies this machine's process."""
        return f"howdah-{self.machine_set}-{self.name}"


def mac_of(machine_set: str, host: str, wire: str) -> str:
    """Return a locally administered address, always the same for the same arguments."""
    digest = hashlib.sha256(f"{machine_set}/{host}/{wire}".encode()).digest()
    return "52:54:" + ":".join(f"{byte:02x}" for byte in digest[:4])


def command_line(machine: VirtualMachine) -> list[str]:
    found = [
        QEMU,
        *("-name", machine.mark),
        *_processor(machine),
        *("-smp", str(machine.processors), "-m", f"{machine.memory_bytes >> 20}M"),
        *("-nodefaults", "-no-user-config", "-display", "none"),
        # howdah's kernels only restart after a panic; an image may have other reasons.
        *(["-no-reboot"] if machine.kernel is not None else []),
        *("-serial", f"file:{machine.console}", "-pidfile", machine.pid_file),
        *("-device", "virtio-rng-pci"),
        *("-drive", f"if=none,id=disk,file={machine.disk},format=qcow2,cache=unsafe"),
        *("-device", "virtio-blk-pci,drive=disk"),
        # The only access from outside: SSH through a port of loopback. The machine itself can reach nothing this way.
        *("-netdev", f"user,id=manage,restrict=on,hostfwd=tcp:127.0.0.1:{machine.port}-:{SSH_PORT}"),
        *("-device", _card("manage", MANAGE_MAC)),
    ]
    for number, plug in enumerate(machine.plugs):
        name = f"wire{number}"
        wire = _stream(name, plug.socket, plug.listens) if plug.tap is None else f"tap,id={name},fd={plug.tap}"
        found += ["-netdev", wire, "-device", _card(name, plug.mac)]
    if machine.hub is not None:
        found += ["-netdev", "hubport,id=hub,hubid=0", "-device", _card("hub", machine.hub.mac)]
        for number, socket in enumerate(machine.hub.sockets):
            found += ["-netdev", _stream(f"spoke{number}", socket, True)]
            found += ["-netdev", f"hubport,id=port{number},hubid=0,netdev=spoke{number}"]
    if machine.kernel is not None:
        assert machine.initrd is not None
        found += ["-kernel", str(machine.kernel), "-initrd", machine.initrd, "-append", " ".join(_arguments(machine))]
    if machine.seed is not None:
        found += ["-drive", f"if=virtio,file=fat:{machine.seed},format=vvfat,label=CIDATA,read-only=on"]
    return found


def _processor(machine: VirtualMachine) -> list[str]:
    if machine.accelerator == "kvm":
        return ["-accel", "kvm", "-cpu", "host"]
    # The default is a gigabyte of translated code for each machine.
    return ["-accel", f"tcg,thread=multi,tb-size={_TRANSLATED_MEBIBYTES}", "-cpu", "qemu64"]


def _card(netdev: str, mac: str) -> str:
    return f"virtio-net-pci,netdev={netdev},mac={mac},romfile="  # no ROM: nobody boots from it


def _stream(name: str, socket: str, listens: bool) -> str:
    """Return a wire: a stream of frames between two QEMUs, which blocks where a datagram would be dropped."""
    return f"stream,id={name},server={'on' if listens else 'off'},addr.type=unix,addr.path={socket}"


def _arguments(machine: VirtualMachine) -> list[str]:
    return [
        *("console=ttyS0", "panic=-1", "quiet", "mitigations=off"),
        # System calls take long on an emulated processor; urgent work must be able to preempt them.
        "preempt=full",
        # An emulated time stamp counter is the host's, and needs no watchdog.
        *("tsc=reliable", "nowatchdog"),
        # The ciphers were tested where they were built.
        "cryptomgr.notests=1",
        # Emulated processors that share few real ones are slow: keep systemd from timing out. Its status goes to the
        # console, to show why a machine does not come up.
        *("systemd.show_status=yes", "systemd.service_watchdogs=no", "systemd.default_timeout_start_sec=1800"),
        "systemd.default_device_timeout_sec=1800",
        *machine.append,
    ]


_BOOT_MARK = slice(510, 512)
_MARKED = b"\x55\xaa"  # last two bytes of a boot sector, also with a GPT


def check_image(image: Path, where: str) -> str:
    """Return QEMU's name for the format of a user's disk image. Raises HowdahError for any other file."""
    with image.open("rb") as file:
        start = file.read(512)
    if not start:
        raise HowdahError("the image is empty", where=where)
    answer = _qemu_img("info", "--output=json", str(image))
    if answer.returncode:
        raise HowdahError(f"this is not a disk image: {_words(answer)}", where=where)
    found = str(json.loads(answer.stdout)["format"])
    # QEMU accepts any file as a raw disk; a bootable one has this mark.
    if found == "raw" and start[_BOOT_MARK] != _MARKED:
        raise HowdahError(
            f"{image.name} is not a disk image: QEMU does not know its format, and it has no boot sector",
            where=where,
            hint="Expected qcow2, vmdk, vdi, vhdx, or a raw disk with a boot sector. Is it packed? Unpack it first.",
        )
    return found


def make_overlay(overlay: Path, base: Path, base_format: str) -> None:
    """Make a disk that holds only changes. Raises HowdahError with QEMU's message."""
    overlay.unlink(missing_ok=True)
    answer = _qemu_img(
        *("create", "-q", "-f", "qcow2", "-F", base_format, "-b", str(base.resolve()), str(overlay)),
    )
    if answer.returncode:
        raise HowdahError(f"the disk cannot be made: {_words(answer)}", where=str(overlay))


def _words(answer: subprocess.CompletedProcess[str]) -> str:
    return (answer.stderr.strip().splitlines() or ["qemu-img said nothing"])[-1]


def _qemu_img(*arguments: str) -> subprocess.CompletedProcess[str]:
    try:
        return subprocess.run(
            ["qemu-img", *arguments], stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
        )
    except FileNotFoundError:
        raise EngineUnavailableError("the program qemu-img is missing", hint=installing("qemu-utils")) from None
