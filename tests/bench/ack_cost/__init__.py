# SPDX-License-Identifier: Apache-2.0
"""What each slow start costs an ACK against in-tree cubic, all in one guest, and the memory it takes."""

from __future__ import annotations

import dataclasses
import re
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from howdah.build.modules import provide_modules
from howdah.default import DEFAULT_KERNEL
from howdah.engine.uml.build import Built, build
from howdah.engine.uml.guest import boot
from howdah.errors import RunFailedError
from howdah.record import table as store
from tests.bench.figure import Figure
from tests.bench.simulation import Simulation
from tests.guest.guest_kit import make_guest

_HERE = Path(__file__).parent
_MODULE = "howdah_ack_cost"
_LINE = re.compile(r"ack_cost (\w+) (\d+) (\d+) (\d+) ([01]) (\d+)$", re.MULTILINE)
_NONE = "none"
_REFERENCE = "cubic with HyStart"
_IN_TREE = ("cubic", "reno")
_SCRIPT = """
while read -r name; do insmod /howdah/in/modules/$name.ko || exit 1; done </howdah/in/order
echo 0 >/sys/module/tcp_cubic/parameters/hystart
insmod /howdah/in/modules/howdah_ack_cost.ko names=$(cat /howdah/in/names) repetitions=$(cat /howdah/in/repetitions)
dmesg
"""


@dataclass(frozen=True)
class Cost:
    """``cycles`` of the time stamp counter that the hooks take for an ACK, the least of all repetitions, without the
    measuring loop's own; ``allocated_bytes`` beside the socket.

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
    hystart = _run(built, directory / "hystart", [_NONE, "cubic"], [], repetitions, hystart=True)
    plug_ins = sorted(name for name in built.module_set.built if name.startswith("ss_"))
    names = [
        _NONE,
        *_IN_TREE,
        *(f"{name.removeprefix('ss_')}_{base}" for name in plug_ins for base in ("reno", "cubic")),
    ]
    found = _run(built, directory / "all", names, plug_ins, repetitions, hystart=False)
    return [dataclasses.replace(hystart[0], name=_REFERENCE), *found]


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
    loop = next(cost.cycles for cost in costs if cost.name == _NONE)
    return [dataclasses.replace(cost, cycles=cost.cycles - loop) for cost in costs if cost.name != _NONE]


def _ignore(_what: str, _done: int, _of: int) -> None:
    """No progress display."""


def ack_costs(place: Path, run: Simulation) -> Iterator[Figure]:
    """Cycles an ACK of in-tree cubic's hooks, every plug-in's as a multiple of them, and of a whole ACK.

    A whole ACK is everything the guest's kernel did in ``run`` (cubic with HyStart), divided by its ACKs.
    """
    costs = measure_costs(place)
    reference = next(cost for cost in costs if cost.name == _REFERENCE)
    yield Figure(f"{_REFERENCE}, an ACK", reference.cycles, "cycles", "", "hooks only, in slow start")
    for cost in costs:
        if cost is reference:
            continue
        note = f"hooks only: {cost.cycles:.0f} cycles; {cost.allocated_bytes} bytes beside the socket"
        if cost.left:
            note += f"; left slow start at {cost.cwnd_packets} packets"
        yield Figure(f"{cost.name}, an ACK", cost.cycles / reference.cycles, "x cubic", "", note)
    dearest = max(costs, key=lambda cost: cost.cycles)
    whole = run.processor_s * _cycles_per_second() / store.read(run.directory, "tcp_probe").num_rows
    ratio = (whole + dearest.cycles - reference.cycles) / whole
    note = f"{dearest.name}, the dearest; a whole ACK of cubic takes {whole:.0f} cycles in the guest"
    yield Figure("whole ACK", ratio, "x cubic", "<= 1.1", note)


def _cycles_per_second() -> float:
    """Of the time stamp counter, which counts at the processor's nominal frequency (/proc/cpuinfo)."""
    match = re.search(r"^cpu MHz\s*: ([0-9.]+)$", Path("/proc/cpuinfo").read_text(), re.MULTILINE)
    if match is None:
        raise LookupError("/proc/cpuinfo does not say the processor's frequency")
    return float(match[1]) * 1e6
