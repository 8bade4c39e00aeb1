# SPDX-License-Identifier: Apache-2.0
"""Netlink requests against the kernel's structures, answers against what a 6.12 kernel really sent."""

from __future__ import annotations

import errno
import ipaddress
import json
import struct
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from howdah.linux.netlink import diag, qdisc
from howdah.linux.netlink.discipline import make_discipline
from howdah.linux.netlink.discipline.bfifo import Bfifo
from howdah.linux.netlink.discipline.htb import HtbClass
from howdah.linux.netlink.discipline.netem import Netem
from howdah.linux.netlink.link import address_request, mac_bytes, neighbour_request, parse_link, veth_request
from howdah.linux.netlink.message import Message, attribute, build, parse_attributes, parse_error, split
from howdah.linux.netlink.route import (
    RTAX_INITCWND,
    RTAX_INITRWND,
    RTM_NEWROUTE,
    RouteState,
    parse_route,
    route_request,
)

RECORDED = Path(__file__).parents[1] / "golden" / "netlink" / "left-router.json"


@pytest.fixture(scope="module")
def recorded() -> dict[str, Any]:
    """Answers of a kernel to the agent's own requests: a router with htb, bfifo and netem, and a TCP connection."""
    value: dict[str, Any] = json.loads(RECORDED.read_text())
    return value


def one(text: str) -> Message:
    (message,) = split(bytes.fromhex(text))
    return message


@given(st.dictionaries(st.integers(1, 0x3FFF), st.binary(max_size=40), max_size=8))
def test_attributes_survive_building_and_parsing(values: dict[int, bytes]) -> None:
    data = b"".join(attribute(kind, payload) for kind, payload in values.items())
    assert len(data) % 4 == 0
    assert parse_attributes(data) == values


@pytest.mark.parametrize("data", ["0300010000", "ff00010000000000"])
def test_a_damaged_attribute_is_an_error(data: str) -> None:
    with pytest.raises(ValueError, match="netlink attribute"):
        parse_attributes(bytes.fromhex(data))


def test_messages_of_one_datagram_are_split_at_their_padding() -> None:
    messages = list(split(build(16, 1, 7, b"abcde") + build(17, 2, 8, b"")))
    assert [(item.kind, item.flags, item.sequence, item.payload) for item in messages] == [
        (16, 1, 7, b"abcde"),
        (17, 2, 8, b""),
    ]


def test_a_truncated_message_is_an_error() -> None:
    with pytest.raises(ValueError, match="netlink message"):
        list(split(build(16, 1, 7, b"abcdefgh")[:-4]))


def test_refusals_carry_errno_and_the_kernels_own_words(recorded: dict[str, Any]) -> None:
    parent = parse_error(one(recorded["error_parent"]))
    exists = parse_error(one(recorded["error_exists"]))
    gone = parse_error(one(recorded["socket_gone"]))
    assert parent is not None and exists is not None and gone is not None
    assert (parent.errno, parent.detail) == (errno.ENOENT, "Failed to find specified qdisc")
    assert (exists.errno, exists.detail) == (errno.EEXIST, "ipv4: Address already assigned")
    assert (gone.errno, gone.detail) == (errno.ENOENT, None)
    assert "Address already assigned" in str(exists)


def test_an_acknowledgement_is_no_error(recorded: dict[str, Any]) -> None:
    assert parse_error(one(recorded["acknowledgement"])) is None


def test_links_are_read(recorded: dict[str, Any]) -> None:
    links = {link.name: link for link in (parse_link(one(text)) for text in recorded["links"])}
    assert list(links) == ["lo", "left-eth0", "left-eth1"]
    assert links["left-eth0"].mac == "02:00:00:00:00:01"
    assert links["left-eth0"].mtu_bytes == 1500
    assert links["left-eth0"].up
    assert links["left-eth0"].gso_max_segs == 65535
    assert set(links["left-eth0"].statistics) >= {"rx_packets", "tx_dropped"}


def test_a_veth_request_holds_both_ends() -> None:
    request = veth_request("a0", "02:00:00:00:00:01", "b0", "02:00:00:00:00:02", 9)
    own = parse_attributes(request[16:])
    assert own[3] == b"a0\0"
    assert own[1] == mac_bytes("02:00:00:00:00:01")
    information = parse_attributes(own[18])
    assert information[1] == b"veth\0"
    peer = parse_attributes(parse_attributes(information[2])[1][16:])
    assert peer == {3: b"b0\0", 1: mac_bytes("02:00:00:00:00:02"), 28: struct.pack("=I", 9)}


def test_a_mac_of_the_wrong_length_is_refused() -> None:
    with pytest.raises(ValueError, match="not an Ethernet address"):
        mac_bytes("02:00:00")


def test_an_address_has_its_networks_broadcast() -> None:
    request = address_request(5, "10.1.2.3/24")
    assert struct.unpack_from("=BBBBI", request) == (2, 24, 0, 0, 5)
    assert parse_attributes(request[8:]) == {
        1: ipaddress.ip_address("10.1.2.3").packed,
        2: ipaddress.ip_address("10.1.2.3").packed,
        4: ipaddress.ip_address("10.1.2.255").packed,
    }


def test_a_route_carries_initial_windows_as_metrics() -> None:
    request = route_request(3, "10.2.0.1/32", "10.1.0.254", {RTAX_INITRWND: 40, RTAX_INITCWND: 20})
    family, prefix_length = request[0], request[1]
    found = parse_attributes(request[12:])
    assert (family, prefix_length) == (2, 32)
    assert found[1] == ipaddress.ip_address("10.2.0.1").packed
    assert found[5] == ipaddress.ip_address("10.1.0.254").packed
    assert found[4] == struct.pack("=I", 3)
    assert parse_attributes(found[8]) == {11: struct.pack("=I", 20), 14: struct.pack("=I", 40)}


def _told(payload: bytes) -> Message:
    return Message(RTM_NEWROUTE, 0, 1, payload, payload)


@pytest.mark.parametrize(
    "route",
    [
        RouteState("10.2.0.1/32", "10.1.0.254", 3, {RTAX_INITCWND: 20, RTAX_INITRWND: 40}),
        RouteState("10.2.0.0/16", None, 3, {}),
        RouteState("default", "10.1.0.254", 2, {}),
        RouteState("fd00::/64", "fd01::1", 2, {RTAX_INITCWND: 30}),
    ],
)
def test_a_route_is_read_as_it_was_set(route: RouteState) -> None:
    request = route_request(route.index, route.destination, route.via, route.metrics)
    assert parse_route(_told(request)) == route
    kernels = request[:5] + bytes([2]) + request[6:]  # of protocol "kernel": of an address
    assert parse_route(_told(kernels)) is None
    local = request[:4] + bytes([255]) + request[5:]
    assert parse_route(_told(local)) is None, "of another table"


def test_a_default_route_has_no_destination() -> None:
    assert set(parse_attributes(route_request(None, "default", "10.1.0.254", {})[12:])) == {5}


def test_a_neighbour_is_permanent() -> None:
    request = neighbour_request(4, "10.1.0.1", "02:00:00:00:00:07")
    assert struct.unpack_from("=BxxxiH", request) == (2, 4, 0x80)
    assert parse_attributes(request[12:])[2] == mac_bytes("02:00:00:00:00:07")


@pytest.mark.parametrize(
    ("text", "number"), [("root", 0xFFFFFFFF), ("1:", 0x10000), ("1:10", 0x10010), ("a0:b", 0xA0000B)]
)
def test_handles_are_hexadecimal(text: str, number: int) -> None:
    assert qdisc.parse_handle(text) == number
    assert qdisc.format_handle(number) == text


def test_qdiscs_are_read(recorded: dict[str, Any]) -> None:
    found = {(item.kind, item.handle, item.parent) for item in map(qdisc.parse_qdisc, map(one, recorded["qdiscs"]))}
    assert {("htb", "1:", "root"), ("bfifo", "10:", "1:1"), ("netem", "1:", "root")} <= found


def options_of(request: bytes) -> bytes:
    return parse_attributes(request[20:])[2]


def test_an_htb_class_has_burst_in_ticks_of_64_ns() -> None:
    options = {"rate_bits_per_second": 400_000_000, "burst_bytes": 1514, "cburst_bytes": 3028, "quantum_bytes": 1514}
    parameters = parse_attributes(options_of(qdisc.class_request(2, "1:", "1:1", "htb", HtbClass(**options))))[1]
    rate, ceiling = struct.unpack_from("=BBHhHI", parameters), struct.unpack_from("=BBHhHI", parameters, 12)
    burst, ceiling_burst, quantum, _level, _priority = struct.unpack_from("=IIIII", parameters, 24)
    assert rate[5] == ceiling[5] == 50_000_000
    # 1514 bytes at 50 MB/s take 30 280 ns, 473.1 ticks.
    assert (burst, ceiling_burst, quantum) == (474, 947, 1514)


def test_a_rate_beyond_32_bits_has_its_own_attribute() -> None:
    options = {
        "rate_bits_per_second": 100_000_000_000,
        "burst_bytes": 9014,
        "cburst_bytes": 9014,
        "quantum_bytes": 9014,
    }
    found = parse_attributes(options_of(qdisc.class_request(2, "1:", "1:1", "htb", HtbClass(**options))))
    assert struct.unpack_from("=BBHhHI", found[1])[5] == 0xFFFFFFFF
    assert struct.unpack("=Q", found[6]) == struct.unpack("=Q", found[7]) == (12_500_000_000,)


def test_netem_delays_are_exact_in_nanoseconds() -> None:
    options = {
        "delay_us": 300_001,
        "limit_packets": 60_000,
        "seed": 2**63 + 5,
        "jitter_us": 1_500,
        "distribution": [-32768, 0, 32767],
        "loss_ratio": 0.25,
        "rate_bits_per_second": 144_000_000,
        "reorder_ratio": 0.0,
        "reorder_gap": 0,
    }
    encoded = options_of(qdisc.qdisc_request(2, "root", "1:", make_discipline("netem", options)))
    _latency, limit, loss, gap, duplicate, _jitter = struct.unpack_from("=IIIIII", encoded)
    found = parse_attributes(encoded[24:])
    assert (limit, gap, duplicate) == (60_000, 0, 0)
    assert loss == round(0.25 * 0xFFFFFFFF)
    assert struct.unpack("=q", found[10]) == (300_001_000,)
    assert struct.unpack("=q", found[11]) == (1_500_000,)
    assert struct.unpack("=3h", found[2]) == (-32768, 0, 32767)
    assert struct.unpack_from("=I", found[6]) == (18_000_000,)
    assert struct.unpack("=Q", found[14]) == (2**63 + 5,)


def test_netem_is_told_how_many_packets_keep_their_place_between_two_that_overtake() -> None:
    options = {"delay_us": 20_000, "limit_packets": 100, "reorder_ratio": 0.2, "reorder_gap": 10}
    encoded = options_of(qdisc.qdisc_request(2, "root", "1:", make_discipline("netem", options)))
    assert struct.unpack_from("=IIIIII", encoded)[3] == 10  # struct tc_netem_qopt: latency, limit, loss, gap
    correlation = 0
    assert parse_attributes(encoded[24:])[3] == struct.pack("=II", round(0.2 * 0xFFFFFFFF), correlation)


def test_a_netem_without_randomness_has_no_seed_and_no_distribution() -> None:
    encoded = options_of(qdisc.qdisc_request(2, "root", "1:", Netem(5, 10)))
    assert set(parse_attributes(encoded[24:])) == {10, 11}


def test_a_buffer_is_exact_in_bytes() -> None:
    assert options_of(qdisc.qdisc_request(2, "1:1", "10:", Bfifo(36_000_001))) == struct.pack("=I", 36_000_001)


def test_an_unknown_qdisc_is_refused_with_the_known_ones() -> None:
    with pytest.raises(ValueError, match=r"no kind 'cbq'; known: bfifo, cake, choke, clsact, codel, dualpi2, fq"):
        make_discipline("cbq", {})


def test_a_socket_is_read_with_its_cookie(recorded: dict[str, Any]) -> None:
    state = diag.parse_socket(one(recorded["socket"]))
    assert state.endpoint == diag.Endpoint("10.1.1.1", 40001, "10.2.1.1", 5001)
    assert state.cookie == recorded["cookie"]
    assert state.state == 1


def test_a_connection_is_asked_for_by_addresses_and_ports() -> None:
    endpoint = diag.Endpoint("10.1.1.1", 40001, "10.2.1.1", 5001)
    request = diag.diag_request(endpoint.reversed())
    assert len(request) == 56
    assert struct.unpack_from("!HH", request, 8) == (5001, 40001)
    assert request[12:16] == ipaddress.ip_address("10.2.1.1").packed
    assert request[48:] == b"\xff" * 8
