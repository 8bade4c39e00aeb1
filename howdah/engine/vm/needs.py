# SPDX-License-Identifier: Apache-2.0
"""Checks of what the ``vm`` engine needs: QEMU and kmod. KVM is tried, and needed only for real time."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

from howdah.build.accelerator import KVM, QEMU, cached_why_no_kvm
from howdah.build.cache import Cache
from howdah.distribution import installing
from howdah.engine.engine import MISSING, NOTE, OK, EngineCheck

_ENGINE = "vm"
_KMOD = "depmod"


def checks() -> list[EngineCheck]:
    """Check required programs; only ``qemu --version`` is started."""
    return [_qemu(), _kmod()]


def every_check(cache: Cache | None = None) -> list[EngineCheck]:
    """Make the same checks, and try KVM with the newest stock kernel in the cache, which takes some seconds."""
    return [*checks(), _kvm(cache or Cache())]


def qemu_version() -> str | None:
    """Return QEMU's version line; None if it is not installed or does not start."""
    if shutil.which(QEMU) is None:
        return None
    answer = subprocess.run([QEMU, "--version"], capture_output=True, text=True, check=False)
    return answer.stdout.splitlines()[0] if answer.stdout and not answer.returncode else None


def _qemu() -> EngineCheck:
    version = qemu_version()
    if version is not None:
        return EngineCheck(_ENGINE, QEMU, OK, version)
    found = "does not start" if shutil.which(QEMU) else "runs the machine"
    return EngineCheck(_ENGINE, QEMU, MISSING, found, installing("qemu-system-x86"))


def _kmod() -> EngineCheck:
    if shutil.which(_KMOD) or Path("/sbin", _KMOD).exists():
        return EngineCheck(_ENGINE, _KMOD, OK, "there")
    return EngineCheck(_ENGINE, _KMOD, MISSING, "indexes the machine's modules", installing("kmod"))


def _kvm(cache: Cache) -> EngineCheck:
    images = [image for entry in cache.entries("image") for image in sorted((entry / "boot").glob("vmlinuz-*"))]
    if not KVM.exists():
        return EngineCheck(
            _ENGINE, "KVM", NOTE, f"there is no {KVM}: machine.time: real is emulated, at 5 Mbit/s or so"
        )
    if not images:
        what = f"{KVM} is there; whether it runs a stock kernel is tried once one is in the cache"
        return EngineCheck(_ENGINE, "KVM", NOTE, what, "howdah run PROFILE --engine vm fetches one.")
    problem = cached_why_no_kvm(images[-1], cache)
    if problem is None:
        return EngineCheck(_ENGINE, "KVM", OK, f"tried: it runs {images[-1].name.removeprefix('vmlinuz-')}")
    return EngineCheck(_ENGINE, "KVM", NOTE, f"tried: {problem}; machine.time: real is emulated, at 5 Mbit/s or so")
