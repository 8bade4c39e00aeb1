# SPDX-License-Identifier: Apache-2.0
"""How much a host's processor searches: modules/processor/search.c in user space, against a walk over a real list.

The model below holds a list of packets and passes them one by one, as tcp_sacktag_write_queue() of Linux 2.6 does.
"""

from __future__ import annotations

import ctypes
import random
import subprocess
from dataclasses import dataclass, field

import pytest

from tests.decision.build import HERE, MODULES

NOTHING, EACH_BLOCK, ONE_PASS = range(3)
MSS = 1448
WRAP = 1 << 32
Blocks = list[tuple[int, int]]  # in packets from the first one sent, the end not included


class Block(ctypes.Structure):
    _fields_ = (("start", ctypes.c_uint32), ("end", ctypes.c_uint32))


class Memory(ctypes.Structure):
    _fields_ = (("block", Block * 4), ("hint", ctypes.c_uint32), ("has_hint", ctypes.c_bool))


class Sender(ctypes.Structure):
    _fields_ = (("una", ctypes.c_uint32), ("next", ctypes.c_uint32), ("mss_bytes", ctypes.c_uint32))


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    built = tmp_path_factory.mktemp("processor") / "search.so"
    sources = [str(MODULES / "processor" / "search.c"), f"-I{HERE / 'shim'}", f"-I{MODULES / 'processor'}"]
    flags = ["-std=gnu11", "-O1", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC"]
    subprocess.run(["cc", *flags, *sources, "-o", str(built)], check=True)
    found = ctypes.CDLL(str(built))
    found.processor_searched.restype = ctypes.c_uint32
    return found


@dataclass
class Connection:
    """One sender's connection; ``first`` is the sequence number of its first packet."""

    library: ctypes.CDLL
    search: int
    first: int = 0
    una: int = 0
    next: int = 0
    memory: Memory = field(default_factory=Memory)

    def at(self, packet: int) -> int:
        return (self.first + packet * MSS) % WRAP

    def searched(self, blocks: Blocks) -> int:
        sender = Sender(self.at(self.una), self.at(self.next), MSS)
        given = (Block * 4)(*[Block(self.at(start), self.at(end)) for start, end in blocks])
        memory = ctypes.byref(self.memory)
        answer = self.library.processor_searched(self.search, memory, ctypes.byref(sender), given, len(blocks))
        return int(answer)


@dataclass
class Walk:
    """The same with a list: what is passed is counted packet by packet."""

    search: int
    cache: Blocks = field(default_factory=list)
    hint: int | None = None

    def searched(self, una: int, nxt: int, blocks: Blocks) -> int:
        if self.search == EACH_BLOCK:
            return sum(sum(packet < end for packet in range(una, nxt)) for _start, end in blocks)
        padded = [*self.cache, *[(-1, -1)] * 4]
        grew = all(
            block[0] == padded[index][0] and (index == 0 or block[1] == padded[index][1])
            for index, block in enumerate(blocks)
        )
        self.cache = list(blocks)
        if not grew:
            self.hint = None
        passed = 0
        at = una if self.hint is None else max(una, self.hint)
        for _start, end in blocks[:1] if grew else sorted(blocks):
            while at < min(end, nxt):
                at, passed = at + 1, passed + 1
                self.hint = at
        return passed


def test_a_kernel_that_knows_where_packets_are_searches_nothing(library: ctypes.CDLL) -> None:
    assert Connection(library, NOTHING, next=1000).searched([(500, 600)]) == 0


def test_each_block_is_looked_for_from_the_first_packet(library: ctypes.CDLL) -> None:
    flow = Connection(library, EACH_BLOCK, una=100, next=1000)
    assert flow.searched([(500, 501)]) == 401
    assert flow.searched([(500, 501)]) == 401, "nothing is remembered"
    assert flow.searched([(500, 501), (300, 302), (200, 201)]) == 401 + 202 + 101
    assert flow.searched([(50, 60)]) == 0, "what is acknowledged is not in the list"
    assert flow.searched([(900, 2000)]) == 900, "the list ends with what was sent"
    assert flow.searched([]) == 0


def test_one_pass_ends_with_the_highest_block(library: ctypes.CDLL) -> None:
    flow = Connection(library, ONE_PASS, una=100, next=1000)
    assert flow.searched([(300, 302), (500, 501), (200, 201)]) == 401


def test_a_block_that_grows_is_found_at_once_and_a_new_one_is_not(library: ctypes.CDLL) -> None:
    flow = Connection(library, ONE_PASS, next=1000)
    assert flow.searched([(500, 501)]) == 501
    assert flow.searched([(500, 502)]) == 1
    assert flow.searched([(500, 510)]) == 8
    assert flow.searched([(511, 512), (500, 510)]) == 512, "a new hole: the search starts again"
    assert flow.searched([(511, 513), (500, 510)]) == 1
    flow.una = 500
    assert flow.searched([(514, 515), (511, 513)]) == 15


def test_a_burst_of_losses_costs_the_square_of_the_queue(library: ctypes.CDLL) -> None:
    """Every other packet lost, an ACK for each that arrives: with one pass as with a search for each block."""
    for search in (EACH_BLOCK, ONE_PASS):
        flow = Connection(library, search, next=1000)
        total = sum(flow.searched([(packet, packet + 1)]) for packet in range(1, 1000, 2))
        assert total == sum(packet + 1 for packet in range(1, 1000, 2)) == 250_500


@pytest.mark.parametrize("search", [EACH_BLOCK, ONE_PASS])
@pytest.mark.parametrize("first", [0, WRAP - 40 * MSS, (1 << 31) - 40 * MSS])
def test_distances_are_what_a_list_shows(library: ctypes.CDLL, search: int, first: int) -> None:
    """Over random lives, with sequence numbers that wrap."""
    draw = random.Random(f"{search} {first}")
    compared = 0
    for _life in range(40):
        flow, walk = Connection(library, search, first=first), Walk(search)
        blocks: Blocks = []
        for _ack in range(40):
            flow.next += draw.randrange(4)
            flow.una = min(flow.una + draw.choice([0, 0, 0, 1, 5]), flow.next)
            start = draw.randrange(flow.una, flow.next + 1)
            if blocks and draw.random() < 0.5:
                blocks = [(blocks[0][0], blocks[0][1] + draw.randrange(3)), *blocks[1:]]
            else:
                blocks = [(start, start + draw.randrange(1, 4)), *blocks][: draw.randrange(1, 5)]
            assert flow.searched(blocks) == walk.searched(flow.una, flow.next, blocks)
            compared += 1
    assert compared == 1600
