# SPDX-License-Identifier: Apache-2.0
"""A run that is being made: the recording of tests/golden/raw/plain as a partial directory whose files grow."""

from __future__ import annotations

import dataclasses
import os
import struct
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from howdah.plan.plan import Plan
from howdah.record.directory import PARTIAL, write_json
from tests.unit.plan_factory import on_engine
from tests.unit.recorded_run import EPOCH_NS, make_recorded_run, recorded_plan

SUBBUFFER_BYTES = 4096
FILES = ("tcp_info", "qdisc", "interface")
_FRAME = struct.Struct("<qIHH")


def underway_plan(engine: str = "host", **changes: Any) -> Plan:
    base = recorded_plan()
    calibration = dataclasses.replace(
        base.calibration, bottleneck_node="r", bottleneck_interface="r1", bottleneck_handle="10:"
    )
    path = dataclasses.replace(base.path, rate_bits_per_second=10_000_000)
    return on_engine(base, engine, calibration=calibration, path=path, **changes)


@dataclass
class Underway:
    """``raw`` is where the collectors write; ``frames`` is what they have to write, in order, by file. ``last`` are the
    files that come when the run has ended."""

    directory: Path
    frames: dict[str, list[bytes]]
    last: dict[str, bytes]

    def write(self, share: float, torn_bytes: int = 0) -> None:
        """Let the files hold this share of their frames, and so many bytes of the next one."""
        for name, frames in self.frames.items():
            count = round(share * len(frames))
            rest = b"".join(frames[count:])
            whole = b"".join(frames[:count]) + rest[:torn_bytes]
            (self.directory / "raw" / f"{name}.bin").write_bytes(whole)

    def repeat(self, count: int) -> None:
        """Read the same once more: append the last frames again. A trace holds each record once."""
        for name in FILES:
            frames = self.frames[name]
            with (self.directory / "raw" / f"{name}.bin").open("ab") as file:
                file.write(b"".join(frames[-count:]))


def make_underway(runs: Path, plan: Plan | None = None, maker: int | None = None) -> Underway:
    """A run of the experiment ``live`` that the process ``maker`` (this one unless told) is making; nothing is read."""
    made = make_recorded_run(runs / "live", plan or underway_plan())
    frames = {name: _split((made.raw / f"{name}.bin").read_bytes()) for name in FILES}
    trace = (made.raw / "tcp_probe.bin").read_bytes()
    frames["tcp_probe"] = [trace[at : at + SUBBUFFER_BYTES] for at in range(0, len(trace), SUBBUFFER_BYTES)]
    directory = runs / "live" / f"{PARTIAL}recorded-{maker or os.getpid()}"
    made.path.rename(directory)
    last = {name: (directory / "raw" / name).read_bytes() for name in ("agent.json", "trace.json")}
    for name in last:
        (directory / "raw" / name).unlink()
    write_json(directory / "run.json", {"status": "running", "started": "2025-06-01T12:00:00+00:00"})
    write_json(directory / "raw" / "progress.json", {"phase": "flows", "time_us": 3, "of_us": 4})
    underway = Underway(directory, frames, last)
    underway.write(0)
    return underway


def make_virtual(runs: Path, maker: int | None = None) -> Underway:
    """The same as if the default engine made it; its clock is the recording's."""
    return make_underway(runs, underway_plan("uml", epoch_us=EPOCH_NS // 1000), maker)


def _split(raw: bytes) -> list[bytes]:
    found, at = [], 0
    while at < len(raw):
        length = _FRAME.size + _FRAME.unpack_from(raw, at)[1]
        found.append(raw[at : at + length])
        at += length
    return found
