# SPDX-License-Identifier: Apache-2.0
"""What each engine needs, what is here, and what to do about the rest."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path

from howdah.engine import host
from howdah.engine.check import MISSING, NOTE, OK, Check
from howdah.engine.uml import needs, profiler
from howdah.errors import HowdahError
from howdah.publish import prometheus

__all__ = ["Check", "examine"]

_KVM = Path("/dev/kvm")
_KVM_CREATE_VM = 0xAE01


def examine() -> list[Check]:
    """All checks of all engines, and of what every engine's results go through."""
    return [*needs.checks(), _perf(), *host.checks(), _kvm(), _prometheus()]


def _perf() -> Check:
    """Tried: it may be installed and not allowed to look."""
    problem = profiler.trial()
    if problem is None:
        return Check("uml", "perf", OK, "tried: processor time can be told by function (collect: {cpu: true})")
    remedy = "apt install linux-perf" if problem == "not installed" else "sysctl -w kernel.perf_event_paranoid=2"
    return Check(
        "uml", "perf", NOTE, f"{problem}: measures of processor time (collect: {{cpu: true}}) are null", remedy
    )


def _kvm() -> Check:
    """Tried: the device may be there and the machine's firmware may still refuse."""
    try:
        device = os.open(_KVM, os.O_RDWR | os.O_CLOEXEC)
    except FileNotFoundError:
        return Check("vm", "KVM", NOTE, f"no {_KVM}: virtual machines are emulated, which is slow")
    except OSError as error:
        return Check("vm", "KVM", NOTE, f"{_KVM}: {error.strerror}", "adduser $USER kvm, and log in again.")
    try:
        os.close(fcntl.ioctl(device, _KVM_CREATE_VM, 0))
    except OSError as error:
        return Check("vm", "KVM", NOTE, f"{_KVM} is there but makes no machine: {error.strerror}")
    finally:
        os.close(device)
    return Check("vm", "KVM", OK, "tried: a machine can be made")


def _prometheus() -> Check:
    try:
        found = prometheus.find()
    except HowdahError as error:
        return Check("all", "prometheus, promtool", MISSING, error.what, error.hint)
    if found:
        return Check("all", "prometheus, promtool", OK, str(found.promtool))
    return Check(
        "all",
        "prometheus, promtool",
        NOTE,
        "not here: figures are drawn from the tables alone",
        "The first report fetches the package into the cache; nothing is installed.",
    )
