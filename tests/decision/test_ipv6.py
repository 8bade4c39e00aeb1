# SPDX-License-Identifier: Apache-2.0
"""What an algorithm makes of the other end's address: IPv6, and IPv6 sockets with an IPv4 peer."""

from __future__ import annotations

import pytest

from tests.decision.conftest import Start
from tests.decision.runner import Runner

RTT_US = 100_000
IPV4, IPV6, MAPPED = 0, 1, 2
MSS_BYTES = 1448


def _learn(runner: Runner, ipv6: int, peer: int = 1) -> None:
    connection = runner.open(ipv6=ipv6, peer=peer)
    for _ in range(6):
        connection.round(rtt_us=RTT_US)
    connection.close()


def _knows(runner: Runner, ipv6: int, peer: int = 1) -> bool:
    """Whether a new connection starts with more than slow start would have after one round."""
    connection = runner.open(ipv6=ipv6, peer=peer)
    cwnd = connection.round(rtt_us=RTT_US)[-1].cwnd
    connection.close()
    return cwnd > 20


@pytest.mark.parametrize("algorithm", ["cached", "careful"])
def test_one_address_is_not_taken_for_another(start: Start, algorithm: str) -> None:
    runner = start(algorithm)
    _learn(runner, IPV6)
    assert not _knows(runner, IPV6, peer=2)
    assert not _knows(runner, IPV4)
    assert _knows(runner, IPV6)


@pytest.mark.parametrize("algorithm", ["cached", "careful"])
def test_an_ipv4_peer_is_the_same_for_an_ipv6_socket(start: Start, algorithm: str) -> None:
    runner = start(algorithm)
    _learn(runner, IPV4)
    assert _knows(runner, MAPPED)


def test_neighbours_share_what_a_prefix_covers(start: Start) -> None:
    runner = start("cached", prefix_ipv6=64)
    _learn(runner, IPV6, peer=1)
    assert _knows(runner, IPV6, peer=2)
    assert not _knows(runner, IPV4, peer=2)


@pytest.mark.parametrize(("ipv6", "header_bytes"), [(IPV4, 52), (IPV6, 72), (MAPPED, 52)])
def test_a_granted_rate_counts_the_headers_that_are_sent(start: Start, ipv6: int, header_bytes: int) -> None:
    cwnd = start("quick", rate_kbps=81_920).open(ipv6=ipv6, handshake_rtt_us=RTT_US).state().cwnd
    assert cwnd == 81_920 * 125 // 10 // (MSS_BYTES + header_bytes)
