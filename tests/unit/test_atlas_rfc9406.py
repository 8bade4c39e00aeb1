# SPDX-License-Identifier: Apache-2.0
"""RFC 9406 in the atlas: four stacks over one path, with the buffers that decide."""

from __future__ import annotations

from tests.unit.atlas_paper import Paper, profile

NAME = "rfc9406-four-stacks"
PAPER = Paper("RFC9406_", "rfc9406", (NAME,))


def test_every_entry_is_claimed() -> None:
    PAPER.check()


def test_four_stacks_send_over_every_buffer() -> None:
    buffers: dict[str, set[str]] = {}
    for cell in profile(NAME).cells():
        traffic = cell.scenario.traffic
        stack = (cell.scenario.sender.stack or "linux") if traffic.quic == "off" else traffic.quic
        buffers.setdefault(f"{stack} {cell.scenario.algorithm}", set()).add(str(cell.scenario.path.buffer))
    senders = {"linux cubic", "linux hystart-plus-plus-cubic", "linux standard-cubic", "gvisor cubic"}
    assert set(buffers) == {*senders, "ngtcp2 cubic", "aioquic cubic"}
    assert {len(found) for found in buffers.values()} == {5}


def test_the_quick_atlas_makes_runs_of_the_full_one() -> None:
    whole, part = ({cell.run for cell in profile(NAME, quick=quick).cells()} for quick in (False, True))
    assert part < whole
