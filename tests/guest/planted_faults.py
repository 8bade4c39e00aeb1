# SPDX-License-Identifier: Apache-2.0
"""``make planted-faults``: ten faults planted in the kernel's tcp_cubic.c and in this project's plug-ins, each of which
``howdah search`` has to find by comparing the faulty module with the right one on the same paths.

Each profile is a path on which both do the same. The faulty module is made when this runs, by replacing text in
Debian's source and in modules/algorithms/. Minutes of two cores; prints a table for docs/search.md.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from howdah.build.cache import Cache
from howdah.build.kernel_source import provide_source
from howdah.command.main import main
from howdah.number import significant
from howdah.place import MODULES
from tests.sought import core_s

PLUG_INS = MODULES / "algorithms"
CUBIC = "tcp_cubic.c"
# Both leave by a train of ACKs; by delay; by a loss before either looks.
TRAIN = "{rate: 15 Mbit/s, rtt: 60 ms, buffer: 4 bdp}"
DELAY = "{rate: 3 Mbit/s, rtt: 60 ms, buffer: 4 bdp}"
SMALL = "{rate: 1 Mbit/s, rtt: 40 ms, buffer: 6 packets}"
LONG = "{rate: 5 Mbit/s, rtt: 250 ms, buffer: 4 bdp}"
RATE = "path.rate: {from: 1 Mbit/s, to: 20 Mbit/s, scale: log}"
RTT = "path.rtt: {from: 10 ms, to: 250 ms, step: 10 ms}"
BUFFER = "path.buffer: [6 packets, 0.5 bdp, 1 bdp, 2 bdp, 4 bdp]"
# Five rounds of conservative slow start overflow a buffer of 4 BDP; one more or less is a quarter of the window.
DEEP = "path.buffer: [6 packets, 1 bdp, 4 bdp, 16 bdp]"
VARIATION = "path.delay_variation.amplitude: {from: 100 us, to: 20.1 ms, step: 1 ms}"
STILL = "{distribution: uniform, amplitude: 100 us, correlation_time: 50 ms, source: a choice}"
# How growth is divided, and the window from which on it is divided by more.
LIMITED = """\
		divisor = div_u64(2ULL * tcp_snd_cwnd(tp), most);
		/* The window from which on the divisor is larger. */
		next = DIV_ROUND_UP_ULL((divisor + 1ULL) * most, 2);
"""
PROFILE = """\
howdah: 1
name: planted-NAME
description: SUBJECT
path: PATH
flows: [{name: flow}]
modules: [{file: ./FILE, include: [INCLUDE]}]
algorithms: {faulty: {kernel: KERNEL, module: MODULE, like: LIKE}}
algorithm: [RIGHT, faulty]
duration: 2 s
repetitions: 1
claims:
  - id: as-before
    says: the changed module does what the one before does
    value: {metric: METRIC, flow: 1, at: {algorithm: faulty}}
    than: {at: {algorithm: RIGHT}}
    expect: {ratio: {between: BOUNDS}}
search:
  space:
    SPACE
  falsify: as-before
  budget: {candidates: 256, counterexamples: 1}
"""


@dataclass(frozen=True)
class Fault:
    """``old`` in ``file`` becomes ``new``. ``right`` is the algorithm that the file is of, in profiles."""

    name: str
    subject: str
    file: str
    old: str
    new: str
    path: str
    right: str = "cubic"
    metric: str = "largest_cwnd_packets"
    space: tuple[str, ...] = (RATE, RTT, BUFFER)
    bounds: str = "[0.8, 1.25]"

    @property
    def is_plug_in(self) -> bool:
        return self.file != CUBIC


FAULTS = (
    Fault(
        "no-reset-of-rtt",
        "a round keeps the least RTT of the rounds before it",
        CUBIC,
        "\tca->curr_rtt = ~0U;\n\tca->sample_cnt = 0;",
        "\tif (!ca->curr_rtt)\n\t\tca->curr_rtt = ~0U;\n\tca->sample_cnt = 0;",
        TRAIN,
    ),
    Fault(
        "train-in-ms",
        "the gap of a train of ACKs is given in milliseconds where microseconds are meant",
        CUBIC,
        "hystart_ack_delta_us __read_mostly = 2000;",
        "hystart_ack_delta_us __read_mostly = 2;",
        DELAY,
    ),
    Fault(
        "round-of-one-ack",
        "a round ends with its first ACK",
        CUBIC,
        "ca->end_seq = tp->snd_nxt;",
        "ca->end_seq = tp->snd_una;",
        SMALL,
    ),
    Fault(
        "beta-the-other-way",
        "a loss leaves of the window what it should take",
        CUBIC,
        "static int beta __read_mostly = 717;",
        "static int beta __read_mostly = 1024 - 717;",
        TRAIN,
        metric="final_cwnd_packets",
    ),
    Fault(
        "low-window-in-bytes",
        "the least window of HyStart is given in bytes where packets are meant",
        CUBIC,
        "hystart_low_window __read_mostly = 16;",
        "hystart_low_window __read_mostly = 16 * 1448;",
        SMALL,
    ),
    Fault(
        "shift-the-wrong-way",
        "the delay that ends slow start is eight times the RTT instead of an eighth",
        CUBIC,
        "HYSTART_DELAY_THRESH(ca->delay_min >> 3)",
        "HYSTART_DELAY_THRESH(ca->delay_min << 3)",
        TRAIN,
    ),
    Fault(
        "one-round-more",
        "conservative slow start lasts a round longer",
        "ss_hystartpp.c",
        "if (h->rounds < limit)",
        "if (h->rounds <= limit)",
        SMALL,
        "hystart-plus-plus",
        space=(RATE, RTT, DEEP),
        bounds="[0.9, 1.1]",
    ),
    Fault(
        "no-reset-of-rounds",
        "a second conservative slow start counts on from the first",
        "ss_hystartpp.c",
        "\th->rounds = 0;\n",
        "",
        LONG,
        "hystart-plus-plus",
        space=(RATE, RTT, DEEP, VARIATION),
        bounds="[0.9, 1.1]",
    ),
    Fault(
        "threshold-in-ms",
        "the least growth of the RTT that counts is given in milliseconds where microseconds are meant",
        "ss_hystartpp.c",
        "slow_start_parameter(min_rtt_threshold_us, 4000,",
        "slow_start_parameter(min_rtt_threshold_us, 4,",
        LONG,
        "hystart-plus-plus",
        space=(RATE, RTT, DEEP, VARIATION),
        metric="exit_cwnd_packets",
        bounds="[0.9, 1.1]",
    ),
    Fault(
        "whole-instead-of-half",
        "growth above max_ssthresh is limited to all of it a round instead of half",
        "ss_limited.c",
        LIMITED,
        LIMITED.replace("2ULL * ", "").replace("DIV_ROUND_UP_ULL((divisor + 1ULL) * most, 2)", "(divisor + 1) * most"),
        SMALL,
        "limited",
    ),
)


def cubic_source(into: Path) -> str:
    """tcp_cubic.c of Debian's 6.12, out of the package's archive."""
    archive = provide_source("debian-6.12", lambda _what, _done, _total: None, Cache()).archive
    assert archive is not None
    pattern = f"*/net/ipv4/{CUBIC}"
    command = ["tar", "-xJf", str(archive), "-C", str(into), "--wildcards", "--occurrence=1", pattern]
    subprocess.run(command, check=True)
    return next(into.glob(pattern)).read_text(encoding="utf-8")


def plant(fault: Fault, text: str, directory: Path) -> Path:
    """The faulty module and its profile; returns the profile."""
    if text.count(fault.old) != 1:
        raise SystemExit(f"{fault.file} is not as it was: {fault.old!r} is in it {text.count(fault.old)} times")
    text = text.replace(fault.old, fault.new)
    kernel, file = "cubic", "faulty_cubic.c"
    if fault.is_plug_in:
        short = fault.file.removeprefix("ss_").removesuffix(".c")
        kernel, file = "faulty_reno", "ss_faulty.c"
        text = text.replace(f'.name\t\t= "{short}"', '.name = "faulty"').replace(
            f'.name\t= "{short}"', '.name = "faulty"'
        )
    directory.mkdir(parents=True, exist_ok=True)
    (directory / file).write_text(text, encoding="utf-8")
    path = fault.path
    if VARIATION in fault.space:
        path = f"{path[:-1]}, delay_variation: {STILL}}}"
    words = {
        "NAME": fault.name,
        "SUBJECT": fault.subject,
        "PATH": path,
        "FILE": file,
        "INCLUDE": str(MODULES / "include"),
        "KERNEL": kernel,
        "MODULE": file.removesuffix(".c"),
        "LIKE": "cubic" if not fault.is_plug_in else "reno",
        "RIGHT": fault.right,
        "METRIC": fault.metric,
        "BOUNDS": fault.bounds,
        "SPACE": "\n    ".join(fault.space),
    }
    profile = PROFILE
    for name, word in words.items():
        profile = profile.replace(name, word)
    target = directory / f"planted-{fault.name}.yaml"
    target.write_text(profile, encoding="utf-8")
    return target


def seek(profile: Path, runs: Path) -> tuple[dict[str, Any] | None, float, float]:
    """What the search of a profile answers, None where it ended in an error; wall and processor seconds.

    An error is on standard error.
    """
    begun, used, said = time.monotonic(), core_s(), io.StringIO()
    with contextlib.redirect_stdout(said):
        main(["search", str(profile), "--runs", str(runs), "--json"])
    found: dict[str, Any] = json.loads(said.getvalue() or "{}")
    return found if "counterexample" in found else None, time.monotonic() - begun, core_s() - used


def run(names: Sequence[str], place: Path) -> int:
    """0 if nine of ten are found."""
    cubic = cubic_source(place)
    missed = 0
    chosen = [fault for fault in FAULTS if not names or fault.name in names]
    sys.stdout.write("| fault | found on | candidates | wall; processor |\n|---|---|---|---|\n")
    for fault in chosen:
        text = cubic if not fault.is_plug_in else (PLUG_INS / fault.file).read_text(encoding="utf-8")
        profile = plant(fault, text, place / fault.name)
        found, wall_s, core_s = seek(profile, place / "runs")
        shown = found and found["counterexample"]
        missed += not shown
        where = "not found"
        if found is None:
            where = "no search: the error is above"
        elif shown:
            values = ", ".join(f"{name.rpartition('.')[2]} {value}" for name, value in shown["values"].items())
            where = f"{values}: {shown['text']}"
        tried = found["tried"] + found["shrinking_tried"] if found else 0
        times = f"{significant(wall_s, 2)}; {significant(core_s, 2)} s"
        sys.stdout.write(f"| {fault.file}: {fault.subject} | {where} | {tried} | {times} |\n")
        sys.stdout.flush()
    return 0 if missed <= len(chosen) // 10 else 1


def _main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.guest.planted_faults", description=__doc__)
    parser.add_argument("names", nargs="*", help="faults to plant; all, if none is named")
    parser.add_argument("--keep", type=Path, default=None, help="keep profiles, modules and runs in this directory")
    options = parser.parse_args()
    if options.keep is not None:
        shutil.rmtree(options.keep, ignore_errors=True)
        options.keep.mkdir(parents=True)
        return run(options.names, options.keep)
    with tempfile.TemporaryDirectory(prefix="howdah-planted-faults-") as name:
        return run(options.names, Path(name))


if __name__ == "__main__":
    sys.exit(_main())
