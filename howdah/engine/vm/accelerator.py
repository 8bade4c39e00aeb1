# SPDX-License-Identifier: Apache-2.0
"""KVM, found by trying: a device that is there may refuse, and one that makes machines may not run a stock kernel."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from functools import cache
from pathlib import Path

from howdah.engine.vm.cpio import Writer
from howdah.engine.vm.machine import QEMU

KVM = Path("/dev/kvm")
_TRIAL_S = 30.0
_MARK = "not syncing"  # a kernel that boots and finds no program to run says so


@cache
def why_no_kvm(image: Path) -> str | None:
    """None when KVM boots this very kernel; else why not, in words. Takes a few seconds at most thirty."""
    if not KVM.exists():
        return f"there is no {KVM}"
    if shutil.which(QEMU) is None:
        return f"{QEMU} is not installed"
    with tempfile.TemporaryDirectory(prefix="howdah-kvm-") as name:
        console, initrd = Path(name) / "console", Path(name) / "initrd"
        with initrd.open("wb") as file:
            archive = Writer(file)
            archive.directory("dev")
            archive.close()
        command = [
            QEMU,
            *(
                "-accel",
                "kvm",
                "-cpu",
                "host",
                "-smp",
                "1",
                "-m",
                "512M",
                "-nodefaults",
                "-display",
                "none",
                "-no-reboot",
            ),
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
