# SPDX-License-Identifier: Apache-2.0
"""Detection of KVM by trying it: an existing device may refuse, and a working one may fail to run a stock kernel."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from howdah.build.cache import Cache, content_key
from howdah.build.cpio import Writer
from howdah.errors import EngineUnavailableError
from howdah.record.directory import write_json
from howdah.scratch import scratch

KVM = Path("/dev/kvm")
_BOOT = Path("/proc/sys/kernel/random/boot_id")
_TRIAL_S = 30.0
AUTO, KVM_NAME, TCG = "auto", "kvm", "tcg"
_MARK = "not syncing"  # printed by a kernel that boots and finds no program to run


@dataclass(frozen=True)
class Accelerator:
    """The accelerator of a machine in real time; ``why`` is the reason if it is not KVM."""

    name: str
    why: str | None


def choose(wanted: str, image: Path, cache: Cache) -> Accelerator:
    """Return the requested accelerator; ``auto`` selects KVM if it runs this kernel.

    Raises EngineUnavailableError if ``kvm`` is requested and does not work.
    """
    if wanted == TCG:
        return Accelerator(TCG, "emulation was asked for")
    problem = cached_why_no_kvm(image, cache)
    if problem is None:
        return Accelerator(KVM_NAME, None)
    if wanted == KVM_NAME:
        raise EngineUnavailableError(
            f"KVM does not run a stock kernel on this machine: {problem}",
            hint="Leave out machine.accelerator (auto emulates where KVM does not work), or machine.time (virtual).",
        )
    return Accelerator(TCG, problem)


def cached_why_no_kvm(image: Path, cache: Cache) -> str | None:
    """Return the result of ``why_no_kvm``, cached until a boot or change of QEMU: a trial takes up to half a minute."""
    try:
        status = KVM.stat()
        device = f"{status.st_ctime_ns} {status.st_mode} {os.geteuid()}"
    except OSError:
        device = "none"
    key = content_key(_BOOT.read_text(), device, str(shutil.which(QEMU)), str(image), str(image.stat().st_mtime_ns))
    place = cache.root / "kvm" / f"{key}.json"
    try:
        return str(found) if (found := json.loads(place.read_text())["problem"]) is not None else None
    except (OSError, ValueError, KeyError, TypeError):
        pass
    problem = why_no_kvm(image)
    place.parent.mkdir(parents=True, exist_ok=True)
    write_json(place, {"problem": problem})
    return problem


def why_no_kvm(image: Path) -> str | None:
    """Return why KVM does not boot this kernel; None if it does. Takes some seconds, at most thirty."""
    if not KVM.exists():
        return f"there is no {KVM}"
    if shutil.which(QEMU) is None:
        return f"{QEMU} is not installed"
    with scratch("howdah-kvm-") as place:
        console, initrd = place / "console", place / "initrd"
        with initrd.open("wb") as file:
            archive = Writer(file)
            archive.directory("dev")
            archive.close()
        command = [
            *(QEMU, "-accel", "kvm", "-cpu", "host", "-smp", "1", "-m", "512M"),
            *("-nodefaults", "-display", "none", "-no-reboot"),
            *("-serial", f"file:{console}", "-kernel", str(image), "-initrd", str(initrd)),
            *("-append", "console=ttyS0 panic=-1"),
        ]
        try:
            answer = subprocess.run(command, capture_output=True, text=True, timeout=_TRIAL_S, check=False)
        except subprocess.TimeoutExpired:
            return f"{KVM} is there, and a stock kernel does not start on it within {_TRIAL_S:.0f} s"
        said = console.read_text(errors="replace") if console.exists() else ""
        if _MARK in said:
            return None
        words = answer.stderr.strip().splitlines()
        return f"{KVM} is there, and QEMU ends with status {answer.returncode}{f': {words[0]}' if words else ''}"


QEMU = "qemu-system-x86_64"
