# SPDX-License-Identifier: Apache-2.0
"""Captures that others bring: stacks, programs and interfaces that howdah's runs never have.

Each has a right answer, or none with its reason, and a twin that plans.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from howdah.command.main import main
from howdah.errors import RecordError
from howdah.explain.explained import Explained
from howdah.explain.read import read_files
from howdah.explain.words import sentence
from howdah.held import HeldBy
from tests.explain.damage import pcap
from tests.explain.made import Path as Drawn
from tests.explain.made import transfer
from tests.explain.strange import beyond, strange

MADE = dict(strange())
REFUSED = {
    "radiotap": "nothing here reads its link type 127, frames of Wi-Fi as a monitor sees them",
    "data alone": "one direction is not here",
    "ACKs alone": "has data: they are ACKs alone",
}
# The same flow as without what is strange about it.
ALIKE = (
    "windows",
    "super-segments without a length",
    "windows super-segments",
    "interfaces of one pcapng",
    "reset",
    "stamps wrap",
    "from a server",
    "on any, SLL2",
)
Shown = Callable[[str], Explained]


@pytest.fixture
def shown(tmp_path: Path) -> Shown:
    def show(name: str) -> Explained:
        (tmp_path / "it").write_bytes(MADE[name]())
        return read_files([tmp_path / "it"], 1).flows[0]

    return show


@pytest.mark.parametrize("name", REFUSED)
def test_what_tells_nothing_is_refused_with_its_reason(name: str, tmp_path: Path) -> None:
    (tmp_path / "it").write_bytes(MADE[name]())
    with pytest.raises(RecordError, match=REFUSED[name]):
        read_files([tmp_path / "it"], 1)


@pytest.mark.parametrize("name", ALIKE)
def test_the_flow_is_the_same_whatever_recorded_it(name: str, shown: Shown) -> None:
    flow = shown(name)
    assert flow.at == "sender"
    assert flow.base_rtt_us.value == pytest.approx(40_000, rel=0.01)
    assert flow.rate_bits_per_second.value == pytest.approx(20e6, rel=0.02)
    assert flow.buffer_bytes.value == pytest.approx(100_000, rel=0.1)
    assert flow.exit is not None and flow.exit.cause == "loss" and flow.exit.round == 4
    assert flow.exit.packets.value == pytest.approx(266, rel=0.05)
    assert flow.round_flights_packets[3] == pytest.approx(80, rel=0.2)
    assert flow.loss_by == "queue" and flow.retransmitted_packets == 231


@pytest.mark.parametrize("name", [name for name in MADE if name not in REFUSED])
def test_the_twin_plans(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "it").write_bytes(MADE[name]())
    file = tmp_path / "twin.yaml"
    assert main(["new", "twin", "--from", str(tmp_path / "it"), "--output", str(file)]) == 0
    assert main(["plan", str(file)]) == 0, capsys.readouterr().err


@pytest.mark.parametrize("name", ["keep-alive", "idle for hours"])
def test_a_sender_without_data_is_the_application_s(name: str, shown: Shown) -> None:
    flow = shown(name)
    assert flow.exit is None and flow.limit == "application"
    assert flow.held_back_by is HeldBy.APPLICATION
    assert flow.holding is not None and flow.holding.share(HeldBy.APPLICATION) > 0.95
    assert flow.retransmitted_packets == 0, "keepalives are no repairs"


@pytest.mark.parametrize("scale", [14, 16])
def test_a_window_beyond_the_numbers_of_tcp_is_no_stalled_application(scale: int, tmp_path: Path) -> None:
    """A sender that does not take a shift of 16 for 14 has a window of 2**31, and stops."""
    (tmp_path / "it").write_bytes(pcap(beyond(scale)))
    flow = read_files([tmp_path / "it"], 1).flows[0]
    assert flow.holding is not None and flow.receive_window_most_bytes == 1 << 29, "as RFC 7323 has it"
    kind = HeldBy.APPLICATION if scale == 14 else HeldBy.UNKNOWN
    assert flow.held_back_by is kind and flow.holding.share(kind) > 0.95
    assert flow.limit == ("application" if scale == 14 else None)
    assert [note for note in flow.notes if "window scale of 16" in note] == flow.notes[: scale == 16]
    assert ("had nothing to send" in sentence(flow)) is (scale == 14)


@pytest.mark.parametrize("name", ["zero windows", "zero windows and probes of a byte"])
def test_a_window_of_zero_is_the_receiver_s_and_a_probe_is_no_repair(name: str, shown: Shown) -> None:
    flow = shown(name)
    assert flow.exit is None and flow.limit == "receive-window"
    assert flow.held_back_by is HeldBy.RECEIVE_BUFFER
    assert flow.holding is not None and flow.holding.share(HeldBy.RECEIVE_BUFFER) > 0.9
    assert flow.retransmitted_packets == 0
    assert flow.receive_window_least_bytes == 0


def test_what_a_smaller_path_dropped_was_no_queue_s(shown: Shown) -> None:
    flow = shown("smaller path")
    assert flow.loss_by is None and "1348 bytes" in flow.loss_words
    assert flow.exit is None or flow.exit.cause is None
    assert flow.buffer_bytes.value is None


def test_a_mark_of_ecn_is_a_cause_of_its_own(shown: Shown) -> None:
    flow = shown("ECN")
    assert flow.exit is not None and flow.exit.cause == "congestion-signal"
    assert flow.retransmitted_packets == 0


@pytest.mark.parametrize("turn_ms", [2, 4, 8, 16])
def test_acks_that_a_link_gathers_give_no_rate_without_the_truth(turn_ms: int, tmp_path: Path) -> None:
    drawn = Drawn(buffer_bytes=100_000, turn_ns=turn_ms * 1_000_000)
    for each in (drawn, replace(drawn, total_bytes=500_000), replace(drawn, buffer_bytes=1e9)):
        (tmp_path / "it").write_bytes(pcap(transfer(each)))
        flow = read_files([tmp_path / "it"], 1).flows[0]
        for found, true in ((flow.rate_bits_per_second, 20e6), (flow.buffer_bytes, each.buffer_bytes)):
            assert (found.low or 0) <= true <= (found.high or 1e12), found
        assert flow.exit is None or flow.exit.cause in (None, "loss")


def test_without_stamps_and_away_from_the_sender_nothing_is_made_up(shown: Shown) -> None:
    flow = shown("windows at a middle")
    assert flow.exit is None and "without time stamps" in flow.why_no_exit
    assert flow.base_rtt_us.value == pytest.approx(40_000, rel=0.01)


@pytest.mark.parametrize("name", ["reneged", "fast open"])
def test_no_cause_is_made_up(name: str, shown: Shown) -> None:
    flow = shown(name)
    assert flow.exit is None or flow.exit.cause is None
