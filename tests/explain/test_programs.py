# SPDX-License-Identifier: Apache-2.0
"""What independent programs say of the same files: tshark's analysis, capinfos and tcptrace.

docs/explain.md has the differences, each with its reason.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from howdah.explain.capture import read_capture
from howdah.explain.explained import Explained
from howdah.explain.read import read_files
from tests.explain.damage import pcap
from tests.explain.made import Path as Drawn
from tests.explain.made import transfer
from tests.explain.strange import strange

# A full queue, a policer, a receive window, a tap away from the sender, offsets that wrap.
TRANSFERS = {
    "queue": Drawn(buffer_bytes=100_000),
    "policer": Drawn(rate=100e6, policed=10e6, bucket_bytes=60_000),
    "window": Drawn(window_bytes=100_000),
    "none lost": Drawn(total_bytes=60_000),
}


def needs(program: str) -> str:
    found = shutil.which(program)
    if found is None:
        pytest.skip(
            f"{program} is not on this machine; apt-get install {'tshark' if program != 'tcptrace' else program}"
        )
    return found


@pytest.fixture(params=TRANSFERS)
def capture(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    file = tmp_path / "x.pcap"
    file.write_bytes(pcap(transfer(TRANSFERS[request.param])))
    return file


def explained(file: Path) -> Explained:
    return read_files([file], 1).flows[0]


def said(*command: str) -> str:
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def test_tshark_s_retransmissions_and_what_it_calls_out_of_order_are_the_segments_sent_again(capture: Path) -> None:
    """At the sender nothing can have overtaken a segment: what fills a hole was sent again. tshark calls it out of
    order where it comes within its guess of the round trip."""
    names = ("retransmission", "out_of_order", "initial_rtt")
    fields = [each for name in names for each in ("-e", f"tcp.analysis.{name}")]
    text = said(needs("tshark"), "-r", str(capture), "-T", "fields", "-E", "separator=,", *fields)
    rows = [line.split(",") for line in text.splitlines()]
    flow = explained(capture)
    assert flow.retransmitted_packets == sum(bool(row[0]) or bool(row[1]) for row in rows)
    handshake_us = next(float(row[2]) * 1e6 for row in rows if row[2])
    assert flow.base_rtt_us.value == pytest.approx(handshake_us, abs=1)


# The same segments for both; a frame of many counts once for tshark.
SEGMENT_BY_SEGMENT = ("windows", "from a server", "gathered ACKs", "smaller path", "zero windows", "keep-alive", "ECN")
PROBED = ("zero windows and probes of a byte", "idle for hours")


@pytest.mark.parametrize("name", [*SEGMENT_BY_SEGMENT, *PROBED])
def test_tshark_takes_keepalives_and_probes_for_no_repairs_either(name: str, tmp_path: Path) -> None:
    (tmp_path / "x.pcap").write_bytes(dict(strange())[name]())
    names = ("retransmission", "out_of_order")
    fields = [each for name in names for each in ("-e", f"tcp.analysis.{name}")]
    text = said(needs("tshark"), "-r", str(tmp_path / "x.pcap"), "-T", "fields", "-E", "separator=,", *fields)
    again = sum(any(line.split(",")) for line in text.splitlines())
    assert explained(tmp_path / "x.pcap").retransmitted_packets == again


def test_capinfos_counts_as_many_packets_and_as_long_a_time(capture: Path) -> None:
    text = said(needs("capinfos"), "-c", "-u", "-M", "-T", "-m", str(capture))
    header, values = (line.replace('"', "").split(",") for line in text.splitlines()[:2])
    found = dict(zip(header, values, strict=True))
    read = read_capture(capture, 1)
    assert read.packets == int(found["Number of packets"])
    time = read.connections[0].column("time_ns")
    assert (time[-1] - time[0]) / 1e9 == pytest.approx(float(found["Capture duration (seconds)"]), abs=1e-6)


def test_tcptrace_counts_the_same_data_and_the_same_retransmissions(capture: Path) -> None:
    text = said(needs("tcptrace"), "-l", "-n", str(capture))
    flow = explained(capture)
    assert flow.data_bytes == of_sender(text, "unique bytes sent")
    assert flow.retransmitted_packets == of_sender(text, "rexmt data pkts")


def of_sender(text: str, name: str) -> int:
    """tcptrace has two columns: what the first end sent, and the other."""
    found = re.search(rf"{name}:\s+(\d+)", text)
    assert found is not None, text
    return int(found[1])
