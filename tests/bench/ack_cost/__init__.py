# SPDX-License-Identifier: Apache-2.0
"""What each slow start costs an ACK against in-tree cubic, all in one guest, and the memory it takes of a connection."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from howdah.engine.uml.build import Built, build
from howdah.engine.uml.guest import boot
from howdah.engine.uml.modules import provide_modules
from howdah.engine.uml.source import DEFAULT_KERNEL
from howdah.errors import RunFailedError
from tests.bench.figure import Figure
from tests.guest.guest_kit import make_guest

_HERE = Path(__file__).parent
_MODULE = "howdah_ack_cost"
_LINE = re.compile(r"ack_cost (\w+) (\d+) (\d+) (\d+) ([01]) (\d+)$", re.MULTILINE)
_IN_TREE = ("cubic", "reno")
_SCRIPT = """
while read -r name; do insmod /howdah/in/modules/$name.ko || exit 1; done </howdah/in/order
echo 0 >/sys/module/tcp_cubic/parameters/hystart
insmod /howdah/in/modules/howdah_ack_cost.ko names=$(cat /howdah/in/names) repetitions=$(cat /howdah/in/repetitions)
dmesg
"""


@dataclass(frozen=True)
class Cost:
    """``cycles`` of the time stamp counter an ACK, the least of all repetitions; ``allocated_bytes`` beside the socket.

    ``left`` says that the algorithm left slow start although the path had no queue: its figure is then of a mixture.
    """

    name: str
    cycles: float
    acks: int
    cwnd_packets: int
    left: bool
    allocated_bytes: int


def measure_costs(directory: Path, repetitions: int = 100) -> list[Cost]:
    """Every plug-in over both bases, and in-tree cubic (with HyStart and without) and reno.

    Raises RunFailedError with the console's end when the guest prints no figures.
    """
    built = build(DEFAULT_KERNEL, (), _ignore)
    hystart = _run(built, directory / "hystart", ["cubic"], [], repetitions, hystart=True)
    plug_ins = sorted(name for name in built.module_set.built if name.startswith("ss_"))
    names = [*_IN_TREE, *(f"{name.removeprefix('ss_')}_{base}" for name in plug_ins for base in ("reno", "cubic"))]
    found = _run(built, directory / "all", names, plug_ins, repetitions, hystart=False)
    return [Cost("cubic with HyStart", *_rest(hystart[0])), *found]


def _rest(cost: Cost) -> tuple[float, int, int, bool, int]:
    return cost.cycles, cost.acks, cost.cwnd_packets, cost.left, cost.allocated_bytes


def _run(
    built: Built, directory: Path, names: list[str], plug_ins: list[str], repetitions: int, *, hystart: bool
) -> list[Cost]:
    found = provide_modules(built.kernel, [str(_HERE / f"{_MODULE}.c")], _ignore)
    modules = found.choose([_MODULE, *plug_ins])
    script = _SCRIPT.replace("echo 0 >", "echo 1 >") if hystart else _SCRIPT
    guest = make_guest(built, directory, script, wall_clock_limit_s=600.0)
    (guest.share / "modules").mkdir()
    for module in modules:
        shutil.copyfile(module.file, guest.share / "modules" / f"{module.name}.ko")
    (guest.share / "order").write_text("".join(f"{module.name}\n" for module in modules if module.name != _MODULE))
    (guest.share / "names").write_text(",".join(names))
    (guest.share / "repetitions").write_text(str(repetitions))
    boot(guest, lambda _phase, _done, _total: None)
    console = guest.console.read_text()
    costs = [
        Cost(name, int(cycles) / int(acks), int(acks), int(cwnd), left == "1", int(allocated))
        for name, cycles, acks, cwnd, left, allocated in _LINE.findall(console.replace("\r", ""))
    ]
    if len(costs) != len(names):
        raise RunFailedError(f"{_MODULE} measured {len(costs)} of {len(names)} algorithms", where=str(guest.console))
    return costs


def _ignore(_what: str, _done: int, _of: int) -> None:
    """No progress display."""


def ack_costs(place: Path) -> Iterator[Figure]:
    """Figures: cycles an ACK of in-tree cubic, and every plug-in's as a multiple of it."""
    costs = measure_costs(place)
    reference = next(cost for cost in costs if cost.name == "cubic with HyStart")
    yield Figure("cubic with HyStart, an ACK", reference.cycles, "cycles", "", "hooks only, in slow start")
    for cost in costs:
        if cost is reference:
            continue
        note = f"{cost.cycles:.0f} cycles, {cost.allocated_bytes} bytes beside the socket"
        if cost.left:
            note += f"; left slow start at {cost.cwnd_packets} packets"
        yield Figure(f"{cost.name}, an ACK", cost.cycles / reference.cycles, "x cubic", "<= 1.1", note)
