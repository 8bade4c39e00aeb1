# SPDX-License-Identifier: Apache-2.0
"""What the agent writes, and what it reads of the kernel's text files."""

from __future__ import annotations

import json
import struct
from pathlib import Path

import pytest

from howdah.linux.kernelfile import parse_meminfo, parse_snmp, parse_sockstat, parse_softnet, read_file
from howdah.linux.output import KIND_QDISC, FramedFile, Output, Progress

RECORDED = json.loads((Path(__file__).parents[1] / "golden" / "netlink" / "left-router.json").read_text())


def test_a_framed_file_holds_time_node_kind_and_the_answers(tmp_path: Path) -> None:
    framed = FramedFile(Output(tmp_path).binary("qdisc.bin"))
    framed.append(-5, 3, KIND_QDISC, [b"abc", b"defgh"])
    framed.append(1 << 40, 65535, KIND_QDISC, [])
    framed.close()
    data = (tmp_path / "qdisc.bin").read_bytes()
    assert struct.unpack_from("<qIHH", data) == (-5, 8, 3, 2)
    assert data[16:24] == b"abcdefgh"
    assert struct.unpack_from("<qIHH", data, 24) == (1 << 40, 0, 65535, 2)
    assert len(data) == 40


def test_a_framed_file_is_written_before_it_is_closed_once_it_is_large(tmp_path: Path) -> None:
    framed = FramedFile(Output(tmp_path).binary("big.bin"))
    framed.append(0, 0, KIND_QDISC, [bytes(1 << 20)])
    assert (tmp_path / "big.bin").stat().st_size == (1 << 20) + 16


def test_a_framed_file_that_may_be_watched_is_written_as_time_goes_on(tmp_path: Path) -> None:
    framed = FramedFile(Output(tmp_path, flush_ns=500).binary("watched.bin"), flush_ns=500)
    kept = FramedFile(Output(tmp_path).binary("kept.bin"))
    sizes = []
    for time_ns in (1000, 1400, 1500, 1600, 2000):
        for each in (framed, kept):
            each.append(time_ns, 0, KIND_QDISC, [b"1234"])
        sizes.append((tmp_path / "watched.bin").stat().st_size)
    assert sizes == [0, 0, 60, 60, 100]
    assert (tmp_path / "kept.bin").stat().st_size == 0
    framed.close()
    kept.close()
    assert (tmp_path / "watched.bin").read_bytes() == (tmp_path / "kept.bin").read_bytes()


def test_json_replaces_the_old_file_and_leaves_nothing_beside_it(tmp_path: Path) -> None:
    output = Output(tmp_path)
    output.json("a.json", {"n": 1})
    output.json("a.json", {"n": 2})
    assert json.loads((tmp_path / "a.json").read_text()) == {"n": 2}
    assert [item.name for item in tmp_path.iterdir()] == ["a.json"]


def test_progress_keeps_its_phase_between_ticks(tmp_path: Path) -> None:
    progress = Progress(Output(tmp_path), of_us=9)
    progress.write("flows", 1000)
    progress.tick(2000)
    assert json.loads((tmp_path / "progress.json").read_text()) == {"phase": "flows", "time_us": 2, "of_us": 9}


def test_progress_is_written_in_place_and_is_whole_after_each_write(tmp_path: Path) -> None:
    progress = Progress(Output(tmp_path), of_us=10**18)
    file = tmp_path / "progress.json"
    seen = set()
    for phase, time_ns in (("calibrate-before", 10**21), ("flows", 1000), ("done", 10**15)):
        progress.write(phase, time_ns)
        assert json.loads(file.read_text())["phase"] == phase
        seen.add((file.stat().st_ino, file.stat().st_size))
    assert len(seen) == 1


def test_the_hosts_clock_is_seen_through_a_file(tmp_path: Path) -> None:
    output = Output(tmp_path)
    first = output.host_clock_us()
    assert first > 1_600_000_000_000_000
    assert output.host_clock_us() >= first
    assert list(tmp_path.iterdir()) == []


def test_a_file_that_the_kernel_gives_in_pieces_is_read_whole() -> None:
    """/proc/self/maps comes a page at a time, whatever the reader asks for."""
    text = read_file("/proc/self/maps")
    assert len(text) > 3 * 4096
    assert text.endswith("\n")
    assert "[stack]" in text
    with pytest.raises(FileNotFoundError):
        read_file("/proc/sys/net/ipv4/no_such_setting")


def test_mib_counters_have_the_names_nstat_prints() -> None:
    values = parse_snmp(RECORDED["netstat"])
    assert values["TcpExtTCPHystartTrainDetect"] == 0
    assert values["IpExtInOctets"] == 216
    assert parse_snmp(RECORDED["snmp"])["TcpActiveOpens"] == 1


def test_softnet_sums_over_processors() -> None:
    row = "{:08x} {:08x} {:08x} 00000000"
    text = "\n".join([row.format(10, 1, 2), row.format(0x20, 3, 0)])
    assert parse_softnet(text) == {"processed": 42, "dropped": 4, "time_squeeze": 2}
    assert parse_softnet(RECORDED["softnet"])["processed"] == 0x1B


def test_sockstat_and_meminfo() -> None:
    assert parse_sockstat(RECORDED["sockstat"])["TCP_inuse"] == 1
    memory = parse_meminfo(RECORDED["meminfo"])
    assert memory["MemTotal_bytes"] == 1021524 * 1024
    assert memory["MemAvailable_bytes"] <= memory["MemTotal_bytes"]
