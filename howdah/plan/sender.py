# SPDX-License-Identifier: Apache-2.0
"""Senders of another time in a plan: settings of ``sender:`` in force, and parameters of the slow-start core."""

from __future__ import annotations

from typing import Any

from howdah.algorithm import PLUG_IN_PREFIX
from howdah.errors import ProfileError
from howdah.plan.kept import SenderRecord, SenderSetting
from howdah.profile import Cell
from howdah.profile.end import TODAY, in_force
from howdah.profile.model import Scenario

CORE_MODULE = "howdah_slow_start"
_PARAMETERS = ("packets_per_ack", "first_acks_per_packet")


def core_parameters(cell: Cell) -> dict[str, dict[str, str]]:
    """Return the parameters of the slow-start plug-ins' core, by its name; empty if the profile sets none.

    Raise ProfileError if an algorithm of the run is the kernel's own, which the parameters do not affect.
    """
    host = cell.scenario.host
    given = {name: str(getattr(host, name)) for name in _PARAMETERS if getattr(host, name) is not None}
    if not given:
        return {}
    for name, algorithm in cell.algorithms.items():
        if algorithm.builtin:
            bundle = cell.scenario.sender.behaviour
            what = f"sender {bundle}" if bundle != TODAY else " and ".join(f"host.{each}" for each in given)
            raise ProfileError(
                f"{what} cannot change how {name} grows: it is the kernel's own",
                where=cell.place("sender" if bundle != TODAY else "host"),
                hint="take a plug-in, standard or standard-cubic for example; howdah list algorithms shows them",
            )
    plug_ins = any((each.module or "").startswith(PLUG_IN_PREFIX) for each in cell.algorithms.values())
    return {CORE_MODULE: given} if plug_ins else {}


def sender_record(scenario: Scenario) -> SenderRecord | None:
    """Return name and settings of the profile's sender; None for that of the run's kernel."""
    if scenario.sender.behaviour == TODAY:
        return None
    host = scenario.host
    asked = [flow.initial_window for flow in scenario.every_flow]
    asked += [group.initial_window for group in scenario.groups if group.udp is None]
    windows = sorted({window for window in asked if window is not None})
    values: dict[str, Any] = {
        "flows.initial_window": windows[0] if len(windows) == 1 else " and ".join(map(str, windows)),
        "receiver.behaviour": scenario.receiver.behaviour,
        "path.burst": scenario.path.burst,
        **{f"host.{name}": getattr(host, name) for name in (*_PARAMETERS, "tcp_wmem", "tcp_rmem")},
        **{f"host.sysctls.{name}": value for name, value in host.sysctls.items()},
    }
    name = scenario.sender.behaviour
    settings = {field: SenderSetting(**setting) for field, setting in in_force(name, values).items()}
    return SenderRecord(name, settings)
