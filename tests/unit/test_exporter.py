# SPDX-License-Identifier: Apache-2.0
"""The exporter: real connections in aggregates, real HTTP, the real promtool, and where it refuses to listen."""

from __future__ import annotations

import re
import socket
import struct
import subprocess
import threading
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from howdah.command.main import main
from howdah.linux.netlink.message import Message, attribute
from howdah.publish.exporter import (
    MACHINE,
    AddressError,
    Exporter,
    LiveConnection,
    LiveMachine,
    Reading,
    aggregate,
    cpu_seconds,
    families_of,
    parse_connection,
    require_address,
)
from tests.prometheus_fixture import prometheus_or_skip

ROOT = Path(__file__).resolve().parents[2]
_OPENER = urllib.request.build_opener(urllib.request.ProxyHandler({}))


@contextmanager
def _exporter(address: str = "127.0.0.1") -> Iterator[Exporter]:
    exporter = Exporter(address, 0, LiveMachine("bench"))
    thread = threading.Thread(target=exporter.serve_forever, daemon=True)
    thread.start()
    try:
        yield exporter
    finally:
        exporter.shutdown()
        thread.join()
        exporter.server_close()


@contextmanager
def _connections(algorithm: str, count: int) -> Iterator[None]:
    """TCP connections over loopback whose opening ends use a congestion control."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        held = []
        for _ in range(count):
            end = socket.socket()
            end.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, algorithm.encode())
            end.connect(listener.getsockname())
            end.sendall(b"x" * 1000)
            held += [end, listener.accept()[0]]
        try:
            yield
        finally:
            for end in held:
                end.close()


def _get(url: str) -> str:
    with _OPENER.open(url, timeout=20) as answer:
        text: str = answer.read().decode()
        return text


def _value(text: str, name: str, label: str) -> float:
    found = re.search(rf"^{name}{{[^}}]*{re.escape(label)}[^}}]*}} (\S+)$", text, re.MULTILINE)
    return float(found.group(1)) if found else 0.0


def test_a_scrape_counts_the_connections_there_are() -> None:
    with _exporter() as exporter:
        url = f"http://{exporter.address}/metrics"
        before = _value(_get(url), "howdah_tcp_connections", 'algorithm="reno"')
        with _connections("reno", 3):
            during = _get(url)
        assert _value(during, "howdah_tcp_connections", 'algorithm="reno"') >= before + 3
        assert _value(during, "howdah_tcp_cwnd_packets", 'algorithm="reno"') >= 3
        assert _value(during, "howdah_tcp_slow_start_connections", 'algorithm="reno"') >= 1


def test_no_label_names_a_connection() -> None:
    with _exporter() as exporter, _connections("reno", 2):
        text = _get(f"http://{exporter.address}/metrics")
    labels = {label for line in text.splitlines() if "{" in line for label in re.findall(r'(\w+)="', line)}
    assert labels <= {"node", "algorithm", "interface", "handle", "kind", "mode"}
    samples = [line.rsplit(" ", 1)[0] for line in text.splitlines() if not line.startswith("#")]
    assert len(samples) == len(set(samples))


def test_promtool_finds_nothing_wrong() -> None:
    promtool = prometheus_or_skip().promtool
    with _exporter() as exporter, _connections("reno", 1):
        text = _get(f"http://{exporter.address}/metrics")
    done = subprocess.run([promtool, "check", "metrics"], input=text, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_other_paths_are_not_found() -> None:
    with _exporter() as exporter, pytest.raises(urllib.error.HTTPError) as caught:
        _get(f"http://{exporter.address}/etc/passwd")
    assert caught.value.code == 404


@pytest.mark.parametrize("address", ["0.0.0.0", "::", "224.0.0.1", "localhost", ""])
def test_it_listens_on_one_address_only(address: str) -> None:
    with pytest.raises(AddressError):
        require_address(address)


def test_a_wildcard_and_a_taken_port_are_refused_with_what_to_do(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["exporter", "--address", "0.0.0.0"]) == 1
    assert "not the address of one interface" in capsys.readouterr().err
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        assert main(["exporter", "--port", str(port)]) == 1
    assert "--port" in capsys.readouterr().err


def _answer(state: int = 1, info_bytes: int = 232, algorithm: bytes = b"cubic\0") -> Message:
    info = bytearray(info_bytes)
    for offset, layout, value in (
        (24, "=I", 7),  # tcpi_unacked
        (68, "=I", 40_000),  # tcpi_rtt
        (76, "=I", 0x7FFFFFFF),  # tcpi_snd_ssthresh, infinite
        (80, "=I", 20),  # tcpi_snd_cwnd
        (104, "=Q", 0xFFFFFFFFFFFFFFFF),  # tcpi_pacing_rate, none
        (148, "=I", 30_000),  # tcpi_min_rtt
        (160, "=Q", 125_000),  # tcpi_delivery_rate
    ):
        if offset + struct.calcsize(layout) <= info_bytes:
            struct.pack_into(layout, info, offset, value)
    payload = bytes([2, state, 0, 0]) + bytes(68) + attribute(2, bytes(info)) + attribute(4, algorithm)
    return Message(20, 0, 0, payload, payload)


def test_fields_of_tcp_info_are_found_by_their_place() -> None:
    connection = parse_connection(_answer())
    assert connection == LiveConnection("cubic", 20, None, 7, 40_000, 30_000, None, 125_000)
    assert connection.in_slow_start


@pytest.mark.parametrize("answer", [_answer(state=10), _answer(state=6), _answer(info_bytes=104)])
def test_what_is_not_established_or_too_short_is_passed_over(answer: Message) -> None:
    assert parse_connection(answer) is None


def test_aggregates_are_sums_means_and_extremes() -> None:
    first = LiveConnection("cubic", 20, None, 7, 40_000, 30_000, 1000, 500)
    second = LiveConnection("cubic", 60, 50, 3, 20_000, None, None, 250)
    found = {reading.name: reading.value for reading in aggregate("n", [first, second])}
    assert found == {
        "howdah_tcp_connections": 2,
        "howdah_tcp_slow_start_connections": 1,
        "howdah_tcp_cwnd_packets": 80,
        "howdah_tcp_largest_cwnd_packets": 60,
        "howdah_tcp_inflight_packets": 10,
        "howdah_tcp_srtt_seconds": pytest.approx(0.03),
        "howdah_tcp_min_rtt_seconds": pytest.approx(0.03),
        "howdah_tcp_pacing_rate_bytes_per_second": 1000,
        "howdah_tcp_delivery_rate_bytes_per_second": 750,
    }


def test_processor_time_is_in_seconds() -> None:
    found = {
        reading.labels[1]: reading.value for reading in cpu_seconds("n", "cpu  250 1 2 3 4 5 6 7 0 0\ncpu0 1\n", 100)
    }
    assert found["user"] == pytest.approx(2.5)
    assert found["steal"] == pytest.approx(0.07)


def test_readings_of_no_metric_are_refused() -> None:
    with pytest.raises(KeyError):
        families_of([Reading("howdah_nothing", (), 1.0)])
    with pytest.raises(ValueError, match="zip"):
        families_of([Reading("howdah_tcp_sent_packets_total", (), 1.0)])


def test_documentation_lists_every_metric_with_kind_and_help() -> None:
    text = "".join((ROOT / "docs" / page).read_text(encoding="utf-8") for page in ("machines.md", "prometheus.md"))
    for metric in MACHINE:
        assert f"| `{metric.name}` | {metric.kind} | {metric.help} |" in text
