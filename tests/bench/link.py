# SPDX-License-Identifier: Apache-2.0
"""A link that follows a trace, against a rate limit of the trace's mean that carries as many bytes, in turns."""

from __future__ import annotations

import random
import shutil
import statistics
from collections.abc import Iterator
from pathlib import Path

from tests.bench.figure import Figure
from tests.bench.simulation import simulate, single_plan

ROUNDS = 5
SECONDS = 60
MEAN_MS = 4  # bursts of four opportunities on average: 12 Mbit/s, as a phone's link
PROFILE = """\
howdah: 1
name: link
path: {{{rate}, rtt: 40 ms, buffer: 200 packets}}
algorithm: cubic
duration: {seconds} s
"""


def link(place: Path) -> Iterator[Figure]:
    """Opportunities come in bursts, each of which is a timer; a rate limit has a timer for each packet."""
    place.mkdir(parents=True, exist_ok=True)
    trace = place / "bench.down"
    drawn = random.Random(1)
    times = [now for now in range(SECONDS * 1000) for _ in range(drawn.choice([0, 0, 0, MEAN_MS]))]
    trace.write_text("".join(f"{now}\n" for now in [*times, SECONDS * 1000]), encoding="ascii")
    followed = single_plan(_profile(place, "link", f"link: {trace}"), ())
    constant = single_plan(_profile(place, "rate", f"rate: {followed.path.rate_bits_per_second} bit/s"), ())
    ratios = []
    for _round in range(ROUNDS):
        used = []
        for plan in (constant, followed):
            run = simulate(plan, place / "run")
            sent = sum(flow["bytes_received"] for flow in run.agent["flows"])
            used.append(run.processor_s / sent)
            shutil.rmtree(place / "run")
        ratios.append(used[1] / used[0])
    listed = ", ".join(f"{ratio:.3f}" for ratio in ratios)
    name = "processor time of a link that follows a trace, against a constant rate of as many bytes"
    yield Figure(name, statistics.median(ratios), "", "<= 1.3", f"rounds: {listed}")


def _profile(place: Path, name: str, rate: str) -> Path:
    file = place / f"{name}.yaml"
    file.write_text(PROFILE.format(rate=rate, seconds=SECONDS), encoding="utf-8")
    return file
