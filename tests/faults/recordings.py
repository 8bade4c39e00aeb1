# SPDX-License-Identifier: Apache-2.0
"""Mutated recordings for ``howdah explain``: each gives flows, a page and a twin, or is refused in words, soon and
small."""

from __future__ import annotations

import gzip
import json
import random
import struct
from pathlib import Path
from typing import Any

from tests.explain.damage import DAMAGES, Packet, pcap
from tests.explain.logs import SS, iperf3, line, qlog, states
from tests.explain.made import Path as Drawn
from tests.explain.made import transfer
from tests.faults.mutation import Corpus, Mutator
from tests.faults.trial import Case, LimitedTrials

_EXTREMES = (0, 1, 0x7F, 0x80, 0xFF, 0x7FFF, 0xFFFF, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF)
_LOGS = {
    "tcp_probe": "# tracer: nop\n" + "".join(line("ftrace", each) + "\n" for each in states()),
    "tcp_probe of perf": "".join(line("perf", each) + "\n" for each in states()),
    "tcp_probe of the old module": "".join(line("old", each) + "\n" for each in states()),
    "ss": SS,
    "iperf3": json.dumps(iperf3()),
    "qlog": qlog(),
}


class Recordings(LimitedTrials):
    """Small recordings of every format, of which bytes, fields or packets are changed; ``make(n)`` is the same for
    ever."""

    limit_s = 5.0

    def __init__(self, directory: Path, seed: int) -> None:
        self.directory = directory
        self.seed = seed
        drawn = (
            Drawn(buffer_bytes=40_000, total_bytes=600_000),
            Drawn(window_bytes=60_000, total_bytes=200_000, before_ns=8_000_000),
            Drawn(total_bytes=400_000, loses=lambda number: number % 90 == 50),
        )
        self._captures = [transfer(each) for each in drawn]

    def make(self, number: int) -> Case:
        chance = random.Random(f"recording-{self.seed}-{number}")
        mutator = Mutator(Corpus.of({}, {}, []), chance)
        if chance.random() < 0.3:
            what = chance.choice(list(_LOGS))
            content = _changed_text(_LOGS[what], chance) if chance.random() < 0.7 else _LOGS[what].encode()
            content = mutator.damaged(content) if chance.random() < 0.5 else content
        else:
            what = chance.choice(list(DAMAGES))
            packets = chance.choice(self._captures)
            for _ in range(chance.choice([0, 1, 1, 3])):
                packets = _changed_packets(packets, chance)
            try:
                content = DAMAGES[what](packets)
            except (IndexError, struct.error):  # a damage that reads a header which is not there
                what, content = "none", pcap(packets)
            content = mutator.damaged(content) if chance.random() < 0.5 else content
        if chance.random() < 0.1:
            content = gzip.compress(content, 1)
        file = self.directory / "recording"
        file.write_bytes(content)
        return Case(number, "recording", what, {"kind": "explain", "file": str(file)}, content)

    def warm_up(self) -> dict[str, Any]:
        good = self.directory / "good"
        good.write_bytes(pcap(self._captures[0]))
        return {"kind": "explain", "file": str(good)}


def _changed_packets(packets: list[Packet], chance: random.Random) -> list[Packet]:
    """Packets with a field that has an extreme value, in another order or at another time, lost, or more of them."""
    found = list(packets)
    at = chance.randrange(len(found)) if found else 0
    some = slice(at, at + chance.choice([1, 3, 50, len(found)]))
    match chance.randrange(6):
        case 0:
            size = chance.choice([1, 2, 4])
            place = chance.randrange(12, 86)
            value = (chance.choice(_EXTREMES) & ((1 << 8 * size) - 1)).to_bytes(size, "big")
            found[some] = [
                Packet(each.time_ns, each.data[:place] + value + each.data[place + size :], each.wire)
                for each in found[some]
            ]
        case 1:
            chance.shuffle(found)
        case 2:
            by = chance.choice([-(10**18), -(10**9), 10**9, 2**62])
            found[some] = [
                Packet(min(max(each.time_ns + by, 0), (2**32 - 2) * 10**9), each.data, each.wire)
                for each in found[some]
            ]
        case 3:
            del found[some]
        case 4:
            found[some] = [
                Packet(
                    each.time_ns,
                    each.data[: chance.randrange(1 + len(each.data))],
                    chance.choice([0, 1, 65535, each.wire]),
                )
                for each in found[some]
            ]
        case _:
            found[at:at] = found[some] * chance.choice([1, 2, 20])
    return found[:20_000]


def _changed_text(text: str, chance: random.Random) -> bytes:
    """A text with numbers that are none, or too large, in place of some of its own."""
    words = text.split(" ")
    for _ in range(chance.choice([1, 3, 20])):
        at = chance.randrange(len(words))
        words[at] = chance.choice(
            ["", "-1", "1e999", "nan", "9" * 400, "0x", "\x1b[31m", "\0", struct.pack("<q", -1).hex()]
        )
        if chance.random() < 0.3:
            words[at] = f"{words[at - 1]}:{words[at]},"
    return " ".join(words).encode()
