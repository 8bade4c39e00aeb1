# SPDX-License-Identifier: Apache-2.0
"""The simulator itself: what theory says of slow start, a rerun that is equal, and the words that call it a model."""

from __future__ import annotations

import itertools
import shutil
from pathlib import Path
from typing import Any

import pytest

from howdah.command.main import main
from howdah.record import table as store
from howdah.record.directory import RunDirectory, read_json

pytestmark = pytest.mark.skipif(shutil.which("ns") is None, reason="the simulator is not installed: apt install ns2")

MSS = 1448
BDP_PACKETS = 10e6 * 0.1 / 8 / 1514
BUFFER_PACKETS = 100
PROFILES = {
    "theory": """\
howdah: 1
name: theory
path: {rate: 10 Mbit/s, rtt: 100 ms, buffer: 100 packets}
flows: [{initial_window: 2}]
algorithm: [standard, cubic-no-hystart]
engine: ns2
duration: 3 s
""",
    "lossy": """\
howdah: 1
name: lossy
path: {rate: 10 Mbit/s, rtt: 100 ms, buffer: 100 packets, loss: 1 %}
algorithm: standard
engine: ns2
duration: 20 s
""",
}


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Both experiments with their reports, made once."""
    place = tmp_path_factory.mktemp("simulated here")
    for name, text in PROFILES.items():
        (place / f"{name}.yaml").write_text(text)
        arguments = ["run", str(place / f"{name}.yaml"), "--runs", str(place / "runs")]
        assert main([*arguments, *(["--no-report"] if name == "lossy" else [])]) == 0
    return place / "runs"


def the_run(runs: Path, pattern: str) -> RunDirectory:
    (found,) = runs.glob(f"{pattern}/run.json")
    return RunDirectory(found.parent)


def acks_of(run: RunDirectory) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = store.read(run, "tcp_probe").to_pylist()
    return rows


@pytest.mark.parametrize("pattern", ["theory/standard-*", "theory/cubic-no-hystart-*", "lossy/standard-*"])
def test_the_path_is_proven(runs: Path, pattern: str) -> None:
    verdict = read_json(the_run(runs, pattern).verdict)
    assert verdict["verdict"] == "pass", verdict


@pytest.mark.parametrize("algorithm", ["standard", "cubic-no-hystart"])
def test_slow_start_grows_by_a_packet_an_ack(runs: Path, algorithm: str) -> None:
    """RFC 5681, 3.1, with a receiver that acknowledges every packet: the window doubles in each round trip.

    Agent/TCP/Linux has one packet more than it is given when the first ACK of data comes.
    """
    rows = acks_of(the_run(runs, f"theory/{algorithm}-*"))
    windows = [row["cwnd_packets"] for row in rows[:100]]
    assert windows[0] == (2 if algorithm == "standard" else 3)
    assert windows == list(range(windows[0], windows[0] + 100))


@pytest.mark.parametrize("algorithm", ["standard", "cubic-no-hystart"])
def test_the_first_loss_is_what_path_and_buffer_no_longer_hold(runs: Path, algorithm: str) -> None:
    """The ACK of packet m sends 2m + 1 and 2m + 2, so the first lost packet N is sent with N / 2 in flight."""
    rows = acks_of(the_run(runs, f"theory/{algorithm}-*"))
    lost = next(
        row["snd_una_bytes"] // MSS
        for before, row in itertools.pairwise(rows)
        if row["snd_una_bytes"] == before["snd_una_bytes"]
    )
    assert lost / 2 == pytest.approx(BDP_PACKETS + BUFFER_PACKETS, abs=3)


def test_random_loss_is_the_declared_share(runs: Path) -> None:
    """The judge checks the share against the binomial's bounds; this looks at what the sender met."""
    run = the_run(runs, "lossy/standard-*")
    rows = acks_of(run)
    repeated = sum(row["snd_una_bytes"] == before["snd_una_bytes"] for before, row in itertools.pairwise(rows))
    assert repeated > 10, "duplicate ACKs"
    assert max(row["cwnd_packets"] for row in rows) < BDP_PACKETS, "no window grows far at 1 % of losses"


def test_a_rerun_is_equal(runs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for pattern in ("theory/standard-*", "lossy/standard-*"):
        assert main(["rerun", str(the_run(runs, pattern).path), "--runs", str(runs)]) == 0
        assert "equal: every row and column" in capsys.readouterr().out


def test_it_verifies(runs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["verify", "theory", "--runs", str(runs)]) == 0
    assert "3 verified" in capsys.readouterr().out


def test_every_page_calls_it_a_model(runs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert "model (ns-2 2.35)" in (runs / "theory" / "report.html").read_text()
    assert main(["compare", "theory", "lossy", "--runs", str(runs)]) == 0
    assert "model (ns-2 2.35)" in capsys.readouterr().out
