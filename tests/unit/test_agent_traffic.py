# SPDX-License-Identifier: Apache-2.0
"""Traffic drivers: what the module reports, what processes do with a real connection, how iperf3 is called."""

from __future__ import annotations

import dataclasses
import fcntl
import itertools
import json
import socket
import struct
import sys
import termios
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from howdah.agent.error import AgentError
from howdah.agent.loop import Loop
from howdah.agent.traffic.connection import make_endpoint
from howdah.agent.traffic.endpoint import Transferred
from howdah.agent.traffic.generated import GeneratedFlow
from howdah.agent.traffic.iperf3 import Iperf3Flow, block_bytes, client_command, poll_ns, server_command
from howdah.agent.traffic.kernel import KernelEndpoint, status_of
from howdah.agent.traffic.python import PythonEndpoint, read_all, write_all
from howdah.linux.clock import TICK_NS
from howdah.linux.netlink.diag import TCP_ESTABLISHED, TCP_SYN_SENT, Endpoint, SocketState
from howdah.linux.output import Output
from tests.unit.trace_factory import make_flow

ESTABLISHED = 1
FLOW = make_flow(
    id=0,
    name="bulk",
    sender="s1",
    receiver="r1",
    source_address="10.1.1.1",
    source_port=40001,
    destination_address="10.2.1.1",
    destination_port=5001,
    kernel_algorithm="cubic",
    start_us=500_000,
    stop_us=10_500_000,
    size_bytes=None,
    rtt_us=40_000,
)


@pytest.fixture
def connection() -> Iterator[tuple[socket.socket, socket.socket]]:
    listener = socket.create_server(("127.0.0.1", 0))
    sender = socket.create_connection(listener.getsockname())
    receiver, _peer = listener.accept()
    yield sender, receiver
    for opened in (listener, sender, receiver):
        opened.close()


def acknowledged_bytes(sender: socket.socket) -> int:
    """tcpi_bytes_acked of struct tcp_info."""
    (count,) = struct.unpack_from("=Q", sender.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 232), 120)
    return int(count)


def unacknowledged_bytes(sender: socket.socket) -> int:
    """SIOCOUTQ of tcp(7)."""
    return int.from_bytes(fcntl.ioctl(sender.fileno(), termios.TIOCOUTQ, bytes(4)), sys.byteorder)


def test_the_modules_status_is_read() -> None:
    text = "7 source 1000 10 20 done\n7 sink 900 12 22 open\n8 sink 0 0 0 closed\n"
    assert status_of(text, 7, "source") == Transferred(1000, 10, 20, done=True)
    assert status_of(text, 7, "sink") == Transferred(900, 12, 22, done=False)
    assert status_of(text, 8, "sink") == Transferred(0, None, None, done=False, error="the connection was reset")
    assert status_of(text, 8, "source") is None
    assert status_of(text, 1000, "10") is None


def test_a_fixed_size_arrives_whole(connection: tuple[socket.socket, socket.socket]) -> None:
    sender, receiver = connection
    results: list[Transferred] = []
    reader = threading.Thread(target=lambda: results.append(read_all(receiver)))
    reader.start()
    sent = write_all(sender, 300_001)
    reader.join()
    assert (sent.bytes, sent.done, sent.error) == (300_001, True, None)
    assert (results[0].bytes, results[0].done) == (300_001, True)


def test_a_source_stays_established_until_its_last_byte_is_acknowledged() -> None:
    """The ACKs that come later are those that end most slow starts; tcp_probe tells of none after a FIN."""
    with socket.socket() as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        sender = socket.create_connection(listener.getsockname())
        receiver, _peer = listener.accept()
    sender.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 20)
    results: list[Transferred] = []
    with sender, receiver:
        writer = threading.Thread(target=lambda: results.append(write_all(sender, 200_000)))
        writer.start()
        while unacknowledged_bytes(sender) < 190_000:  # all is written, and the receiver's buffer is full
            assert writer.is_alive()
        writer.join(0.2)
        assert writer.is_alive()
        assert sender.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 1)[0] == ESTABLISHED
        assert read_all(receiver, 200_000).bytes == 200_000
        writer.join()
    assert (results[0].bytes, results[0].done, results[0].error) == (200_000, True, None)


def test_a_source_that_waits_for_acks_hears_of_a_reset(connection: tuple[socket.socket, socket.socket]) -> None:
    sender, receiver = connection
    sender.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 22)
    receiver.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    results: list[Transferred] = []
    writer = threading.Thread(target=lambda: results.append(write_all(sender, 2_000_000)))
    writer.start()
    while unacknowledged_bytes(sender) < 100_000:
        assert writer.is_alive()
    receiver.close()  # with data that nobody has read: a reset
    writer.join(10)
    assert not writer.is_alive()
    assert not results[0].done or results[0].bytes < 2_000_000


def test_a_sink_that_knows_the_size_tells_when_it_had_it(connection: tuple[socket.socket, socket.socket]) -> None:
    sender, receiver = connection
    results: list[Transferred] = []
    reader = threading.Thread(target=lambda: results.append(read_all(receiver, 1000)))
    reader.start()
    sender.sendall(bytes(1000))
    while unacknowledged_bytes(sender):
        pass
    reader.join(0.1)
    before_fin = time.monotonic_ns()
    sender.shutdown(socket.SHUT_WR)
    reader.join()
    assert results[0].last_ns is not None
    assert results[0].last_ns < before_fin


def test_a_receiver_whose_data_wait_for_a_worker_is_not_looked_at_without_a_pause(
    connection: tuple[socket.socket, socket.socket], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The worker runs only while the agent sleeps; until it has read, the socket is readable and its sink is open."""
    sender, receiver = connection
    sender.sendall(b"x")
    looks = []

    def state(_end: KernelEndpoint) -> Transferred:
        looks.append(time.monotonic_ns())
        return Transferred(1, 1, 1, done=len(looks) == 3)

    monkeypatch.setattr(KernelEndpoint, "__init__", lambda *_arguments, **_more: None)
    monkeypatch.setattr(KernelEndpoint, "attach", lambda *_arguments: None)
    monkeypatch.setattr(KernelEndpoint, "state", state)
    loop = Loop(virtual_time=False)
    flow = GeneratedFlow(dataclasses.replace(FLOW, traffic="kernel", size_bytes=1), {}, loop, Output(tmp_path))
    flow._make_ends()
    flow._established(receiver, 0, sends=False)
    while receiver.fileno() != -1:  # on a busy machine one period may miss a look
        loop.run_until(time.monotonic_ns() + 10 * TICK_NS)
    assert len(looks) == 3
    assert all(later - earlier >= TICK_NS // 2 for earlier, later in itertools.pairwise(looks))


def test_shutting_down_ends_a_bulk_writer_and_loses_nothing(connection: tuple[socket.socket, socket.socket]) -> None:
    sender, receiver = connection
    results: list[Transferred] = []
    reader = threading.Thread(target=lambda: results.append(read_all(receiver)))
    writer = threading.Thread(target=lambda: results.append(write_all(sender, 0)))
    reader.start()
    writer.start()
    while acknowledged_bytes(sender) < 1_000_000:
        pass
    sender.shutdown(socket.SHUT_WR)
    writer.join()
    reader.join()
    assert results[0].bytes == results[1].bytes
    assert results[0].bytes >= 1_000_000
    assert all(result.done and result.error is None for result in results)


def test_a_reset_is_an_error_of_the_reader(connection: tuple[socket.socket, socket.socket]) -> None:
    sender, receiver = connection
    sender.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
    sender.close()
    state = read_all(receiver)
    assert not state.done
    assert state.error == "Connection reset by peer"


def test_an_end_in_a_process_of_its_own_reports_when_it_is_done(
    connection: tuple[socket.socket, socket.socket],
) -> None:
    sender, receiver = connection
    sink, source = PythonEndpoint("sink"), PythonEndpoint("source", 100_000)
    sink.attach(receiver)
    assert not sink.state().done
    source.attach(sender)
    while not (sink.state().done and source.state().done):
        pass
    assert sink.state().bytes == source.state().bytes == 100_000
    sink.close()
    source.close()


def test_a_driver_that_does_not_exist_is_named() -> None:
    with pytest.raises(AgentError, match="source netperf: not one of kernel, python"):
        make_endpoint("netperf", "source")


def test_iperf3_is_bound_to_the_flows_addresses_and_ports() -> None:
    client, server = client_command(FLOW), server_command(FLOW)
    assert client[client.index("--cport") + 1] == "40001"
    assert client[client.index("--bind") + 1] == "10.1.1.1"
    assert client[client.index("--time") + 1] == "10"
    assert server[server.index("--bind") + 1] == "10.2.1.1"
    assert "--one-off" in server
    sized = client_command(dataclasses.replace(FLOW, size_bytes=2_000_000))
    assert sized[sized.index("--file") :] == [
        *("--file", "/tmp/howdah-iperf3-0"),
        *("--length", "125000"),
        *("--interval", "0"),
    ]
    assert "--bytes" not in sized  # it polls without waiting


@pytest.mark.parametrize(
    ("size_bytes", "block"),
    [(5_000, 5_000), (2_000_000, 125_000), (4 << 20, 131_072), (131_073, 43_691), (1_000_003, 131_072)],
)
def test_iperf3s_block_divides_the_size_where_one_of_a_segment_does(size_bytes: int, block: int) -> None:
    assert block_bytes(size_bytes) == block  # 131073 = 3 x 43691; 1000003 is a prime number


def test_what_iperf3_says_becomes_the_flows_record(tmp_path: Path) -> None:
    flow = Iperf3Flow(FLOW, {}, Loop(virtual_time=False), Output(tmp_path))
    (tmp_path / "iperf3" / "0-client.json").write_text(
        json.dumps({"end": {"sum_sent": {"bytes": 70}, "sum_received": {"bytes": 60}}})
    )
    record = flow.record(0)
    assert (record.bytes_sent, record.bytes_received, record.error) == (70, 60, None)


def test_iperf3s_connection_is_there_once_its_syn_was_answered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Looked for each tenth of the 40 ms; the socket sends its SYN at 8 ms and has the answer 40 ms later."""
    flow, asked = Iperf3Flow(FLOW, {}, Loop(virtual_time=False), Output(tmp_path)), []
    endpoint = Endpoint("10.1.1.1", 40001, "10.2.1.1", 5001)

    def look(host: str, of: Endpoint) -> SocketState | None:
        assert of == (endpoint if host == "s1" else endpoint.reversed())
        state = TCP_ESTABLISHED if now >= 48 else TCP_SYN_SENT
        return None if now < 8 else SocketState(state, of, 7 if host == "s1" else 9)

    monkeypatch.setattr(flow, "_socket", look)
    monkeypatch.setattr(flow._loop, "at", lambda time_ns, _call: asked.append(time_ns // 1_000_000))
    for now in range(0, 60, 4):
        if now == 0 or now in asked:
            flow._poll_connection(now * 1_000_000)
    assert asked == list(range(4, 49, 4))
    record = flow.record(0)
    assert (record.connected_ns, record.sender_cookie, record.receiver_cookie) == (48_000_000, 7, 9)


@pytest.mark.parametrize(("rtt_us", "poll_us"), [(0, 1000), (10_000, 1000), (50_000, 5000), (600_000, 10_000)])
def test_iperf3s_sockets_are_looked_at_ten_times_a_round_trip(rtt_us: int, poll_us: int) -> None:
    assert poll_ns(rtt_us) == poll_us * 1000


def test_text_instead_of_json_is_the_flows_error(tmp_path: Path) -> None:
    flow = Iperf3Flow(FLOW, {}, Loop(virtual_time=False), Output(tmp_path))
    (tmp_path / "iperf3" / "0-client.json").write_text("iperf3: error - unable to connect\n")
    record = flow.record(0)
    assert "unable to connect" in (record.error or "")
    assert not record.complete
