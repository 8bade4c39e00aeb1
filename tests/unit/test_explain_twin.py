# SPDX-License-Identifier: Apache-2.0
"""The twin of a recorded flow: a profile that loads, with what was found and nothing of who it was."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from howdah.command.main import main
from howdah.profile import load
from howdah.profile.control import grid
from howdah.profile.source import Document
from tests.explain.damage import Packet, pcap
from tests.explain.logs import iperf3_of
from tests.explain.made import Path as Drawn
from tests.explain.made import transfer
from tests.json_shape import check_shape

LOSSY = Drawn(buffer_bytes=100_000, total_bytes=3_000_000)


def twin(drawn: Drawn, place: Path) -> Path:
    (place / "secret-name.pcap").write_bytes(pcap(transfer(drawn)))
    file = place / "twin.yaml"
    assert main(["new", "twin", "--from", str(place / "secret-name.pcap"), "--output", str(file)]) == 0
    return file


def test_the_path_is_the_recorded_one(tmp_path: Path) -> None:
    profile = load(twin(LOSSY, tmp_path))
    (cell,) = profile.cells()
    path = cell.scenario.path
    assert path.rtt == pytest.approx(40_000, abs=1)
    assert path.rate == pytest.approx(20e6, rel=0.003)
    assert cell.scenario.algorithm in ("cubic", "cubic-no-hystart", "reno")


@pytest.mark.parametrize("drawn", [LOSSY, Drawn(total_bytes=60_000), Drawn(window_bytes=100_000)])
def test_no_address_no_name_and_no_payload(drawn: Drawn, tmp_path: Path) -> None:
    content = twin(drawn, tmp_path).read_text()
    for secret in ("192.0.2", "198.51.100", ":443", ":40000", "secret-name", "pcap"):
        assert secret not in content


def test_each_number_says_how_it_was_found(tmp_path: Path) -> None:
    lines = twin(LOSSY, tmp_path).read_text().splitlines()
    for name in ("rate", "rtt", "buffer"):
        (line,) = [each for each in lines if each.startswith(f"  {name}:")]
        assert " ... " in line.partition("#")[2], line


def test_what_is_open_is_unknown_with_its_grid(tmp_path: Path) -> None:
    file = twin(Drawn(total_bytes=25_000, first_window=4), tmp_path)
    profile = load(file)
    assert profile.unknown is not None and "algorithm" in profile.unknown.fields
    assert "buffer" in profile.unknown.fields
    assert grid(Document({"path": {}, "algorithm": "cubic"}), profile.unknown)
    cell = profile.cells()[0]
    assert cell.scenario.flows[0].initial_window == 4
    assert cell.scenario.flows[0].size == 25_000


def test_losses_of_which_no_cause_shows_are_a_grid(tmp_path: Path) -> None:
    drawn = Drawn(loses=lambda number: number in (300, 301), total_bytes=2_000_000)
    profile = load(twin(drawn, tmp_path))
    data = [each.data[38:42] for each in transfer(drawn) if each.wire > 1000]  # its sequence numbers
    again = len(data) - len(set(data))
    assert profile.unknown is not None
    (value,) = profile.unknown.fields["loss"].values
    lost = float(str(value).split()[0]) / 100 * len(set(data))
    assert lost == pytest.approx(again, rel=0.02) and again >= 2
    assert load(tmp_path / "twin.yaml", unknowns=True).cells()


def test_a_receive_window_that_held_it_back_is_the_twin_s(tmp_path: Path) -> None:
    content = twin(Drawn(window_bytes=100_000), tmp_path).read_text()
    (line,) = [line for line in content.splitlines() if "tcp_rmem" in line]
    most = int(line.split("#")[0].split()[-1])
    assert 0.6285 * most == pytest.approx(99_968 - 4096, rel=0.01)


def _another(packets: list[Packet], later_ns: int, port: int, host: int) -> list[Packet]:
    """The same transfer later, from another port and host of the sender's network."""
    ours, theirs = bytes([192, 0, 2, 1]), bytes([192, 0, 2, host])
    found = []
    for each in packets:
        ports = each.data[34:38].replace((40000).to_bytes(2, "big"), port.to_bytes(2, "big"))
        data = each.data[:26] + each.data[26:34].replace(ours, theirs) + ports + each.data[38:]
        found.append(Packet(each.time_ns + later_ns, data, each.wire))
    return found


@pytest.mark.parametrize(
    ("drawn", "later_ns", "starts_ms"),
    [
        (Drawn(total_bytes=3_000_000), 300_000_000, (0, 300)),
        (Drawn(total_bytes=3_000_000), -200_000_000, (200, 0)),
        (LOSSY, -15_000_000_000, (10_000, 0)),  # it takes half a minute
    ],
)
def test_what_competed_with_it_is_in_the_background(
    drawn: Drawn, later_ns: int, starts_ms: tuple[int, int], tmp_path: Path
) -> None:
    """One between the same hosts, at once; of those that another host sent nobody knows; a third came behind it."""
    large, small = transfer(Drawn(total_bytes=60_000_000)), transfer(drawn)
    others = [*_another(small, later_ns, 40001, 1), *_another(small, 100_000_000, 40002, 7)]
    others += _another(small, 100_000_000_000, 40003, 1)
    file = tmp_path / "several.pcap"
    file.write_bytes(pcap(sorted([*large, *others], key=lambda each: each.time_ns)))
    assert main(["new", "twin", "--from", str(file), "--output", str(tmp_path / "twin.yaml")]) == 0
    profile = load(tmp_path / "twin.yaml")
    scenario = profile.points[0].scenario
    (beside,) = scenario.background
    assert beside.size == pytest.approx(3_000_000, rel=0.001)
    starts = ((scenario.flows[0].start if scenario.flows else 0) // 1000, beside.start // 1000)
    assert starts == starts_ms
    assert "goodput" not in [claim.id for claim in profile.claims]
    content = (tmp_path / "twin.yaml").read_text()
    assert content.count("# open: 1 flow between other hosts") == 1
    assert ("# open: it began 5.0 s before" in content) == (later_ns < -(10**10))


def test_the_streams_of_an_iperf3_compete(tmp_path: Path) -> None:
    """Three this way; the fourth comes from the other end, and has another path."""
    file = tmp_path / "four.json"
    file.write_text(json.dumps(iperf3_of([True, True, True, False])))
    assert main(["new", "twin", "--from", str(file), "--output", str(tmp_path / "twin.yaml")]) == 0
    assert len(load(tmp_path / "twin.yaml").points[0].scenario.background) == 2


def test_options_of_a_draft_do_not_go_with_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "x.pcap").write_bytes(pcap(transfer(LOSSY)))
    assert main(["new", "twin", "--from", str(tmp_path / "x.pcap"), "--rate", "5 Mbit/s"]) == 2
    assert "--rate and --from" in capsys.readouterr().err


def test_the_command_prints_its_shape_and_writes_its_page(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "<b>.pcap"
    file.write_bytes(pcap(transfer(LOSSY)))
    assert main(["explain", str(file), "--json", "--page", str(tmp_path / "page.html")]) == 0
    value = json.loads(capsys.readouterr().out)
    assert check_shape(value) == "explain"
    assert value["flows"][0]["exit"]["cause"] == "loss"
    page = (tmp_path / "page.html").read_text()
    assert "<b>.pcap" not in page and "&lt;b&gt;.pcap" in page
    assert page.count('class="points"') >= 1 and page.count('class="crosses"') >= 1 and "left slow start" in page


def test_a_suite_of_nightly_has_the_twin_s_claims_as_cells(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    twin(LOSSY, tmp_path)
    suite = tmp_path / "complaints.yaml"
    suite.write_text("suite: complaints\ncells:\n  - profile: twin.yaml\n    claims: all\n")
    capsys.readouterr()
    assert main(["nightly", str(suite), "--list"]) == 0
    listed = capsys.readouterr().out
    for claim in ("exit-time", "exit-cause", "exit-window", "goodput"):
        assert f"complaints-twin-debian-6.12/{claim}" in listed
