# SPDX-License-Identifier: Apache-2.0
"""What a kernel tells a plug-in of idle times and timeouts: newer ones tell it by another function than older ones."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path

from howdah.build.modules import provide_modules
from howdah.engine.uml.build import Built
from tests.guest.guest_kit import run_script
from tests.guest.guest_run import ignore

_HERE = Path(__file__).parent
_SCRIPT = """
ip link set lo up
tc qdisc add dev lo root netem delay 10ms limit 10000
while read -r name; do insmod /howdah/in/$name.ko; done </howdah/in/order
python3 -S /howdah/in/rearm.py >/howdah/out/restarts
"""


@dataclass(frozen=True)
class Restarts:
    """Calls of ``restart`` by reason, counted since the connection began."""

    tx_start: int
    idle: int
    after_rto: int


def count_restarts(built: Built, directory: Path) -> list[Restarts]:
    """After a first transfer, after a short pause, after one of 5 s, and after a path that lost everything."""
    modules = provide_modules(built.kernel, [str(_HERE / "ss_rearm.c")], ignore).choose(["ss_rearm"])
    share = directory / "share"
    share.mkdir(parents=True)
    for module in modules:
        shutil.copy(module.file, share / f"{module.name}.ko")
    (share / "order").write_text("".join(f"{module.name}\n" for module in modules))
    shutil.copy(_HERE / "rearm.py", share)
    run_script(built, directory, _SCRIPT)
    words = (directory / "raw" / "restarts").read_text().split()
    return [Restarts(*(int(number) for number in word.split(","))) for word in words]


def problems(seen: list[Restarts]) -> list[str]:
    """What is missing, in words; nothing if every pause and the timeout were told."""
    if len(seen) != 4:
        return [f"restarts were counted {len(seen)} times, not 4"]
    first, pause, idle, lost = seen
    found = []
    if not first.tx_start < pause.tx_start < idle.tx_start:
        found.append(f"plug-ins are not told when sending starts again: {first}, {pause}, {idle}")
    if not pause.idle < idle.idle:
        found.append(f"plug-ins do not learn of an idle time: {pause}, {idle}")
    if not idle.after_rto < lost.after_rto:
        found.append(f"plug-ins do not learn of a timeout: {idle}, {lost}")
    return found
