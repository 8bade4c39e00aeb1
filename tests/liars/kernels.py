# SPDX-License-Identifier: Apache-2.0
"""Lies of a run on two kernels in one virtual time: of the wires between them."""

from __future__ import annotations

from typing import Any

from tests.liars.doctor import Doctor, doctored, edit, remove
from tests.liars.liar import check


def _arriving(**changes: Any) -> Doctor:
    """The wire to r1 (the plan's fourth host) in the kernel in which it ends."""

    def change(record: dict[str, Any]) -> None:
        (wire,) = [each for each in record["parts"]["receivers"] if each["arrives"]]
        wire.update({name: wire[name] + more for name, more in changes.items()})

    return edit("wire.json", change)


KERNELS = [
    doctored(
        "wires-not-recorded",
        "Nobody counted what passed between the kernels.",
        check("engine", "wires", "the record of the wires between the kernels is missing"),
        remove("wire.json"),
        honest="kernels",
        appears=False,
    ),
    doctored(
        "wire-lost-a-frame",
        "One frame that left a kernel did not arrive in the other.",
        check("engine", "wire to r1", "arrived"),
        _arriving(arrived_frames=-1),
        about="path",
        honest="kernels",
    ),
    doctored(
        "wire-without-room",
        "A frame found no room in the memory that the kernels share.",
        check("engine", "wire to r1", "found no room"),
        _arriving(lost_frames=1),
        about="path",
        honest="kernels",
    ),
    doctored(
        "wire-late",
        "A frame came 5 us later than the delay of its wire.",
        check("engine", "delay of the wire to r1", "after their time"),
        _arriving(late_frames=1, latest_ns=5_000),
        about="path",
        honest="kernels",
    ),
]
