# SPDX-License-Identifier: Apache-2.0
"""``howdah.load`` of recordings: the tables of runs, with what a recording shows."""

from __future__ import annotations

from pathlib import Path

import matplotlib
import numpy as np
import pyarrow as pa
import pytest

import howdah
from howdah.explain.read import read_files
from howdah.library import Recording
from howdah.record.schema import TABLES
from tests.experiment_factory import Scenario, make_experiment
from tests.explain.damage import Packet, pcap, read
from tests.explain.logs import SS
from tests.explain.made import MSS, transfer
from tests.explain.made import Path as Drawn


@pytest.fixture(scope="module")
def taps(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """One transfer at the sender and at the receiver, with losses at a full queue."""
    place = tmp_path_factory.mktemp("recording")
    far: list[Packet] = []
    files = [place / "sender.pcap", place / "receiver.pcap"]
    for file, packets in zip(files, (transfer(Drawn(buffer_bytes=100_000), far=far), far), strict=True):
        file.write_bytes(pcap(packets))
    return files


def loaded(*files: Path) -> Recording:
    found = howdah.load(*files)
    assert isinstance(found, Recording)
    return found


def test_measures_are_those_that_explain_says_with_their_intervals(taps: list[Path]) -> None:
    e = loaded(taps[0])
    (flow,) = read_files(taps[:1], 5).flows
    rows = {row["metric"]: row for row in e.metrics.to_pylist()}
    rate = rows["rate_bits_per_second"]
    assert (rate["low"], rate["value"], rate["high"]) == (
        flow.rate_bits_per_second.low,
        flow.rate_bits_per_second.value,
        flow.rate_bits_per_second.high,
    )
    assert (rate["run"], rate["flow"], rate["unit"], rate["why"]) == ("sender.pcap", 1, "bit/s", None)
    assert rows["exit_cause"]["text"] == "loss" and rows["exit_cause"]["value"] is None
    varies = rows["delay_variation_us"]
    assert varies["value"] is None and varies["why"] == flow.delay_variation_us.reason
    shares = [row["value"] for name, row in rows.items() if name.startswith("held_") and name.endswith("_share")]
    assert sum(shares) == pytest.approx(1)
    (leaves,) = e.exits.to_pylist()
    assert flow.exit is not None
    assert (leaves["exit_time_s"], leaves["exit_cause"]) == (flow.exit.time_s, "loss")
    assert e.exits.units["exit_cwnd_packets"] == "packets"
    (path,) = e.runs.to_pylist()
    assert path["rtt_us"] == flow.base_rtt_us.value and path["at"] == "sender"


def test_packets_are_the_ones_of_the_file(taps: list[Path]) -> None:
    e = loaded(taps[0])
    packets = read(taps[0])
    segments = e.segment.to_arrow()
    assert segments.num_rows == len(packets)
    since = [each.time_ns - packets[0].time_ns for each in packets]
    assert segments["time_ns"].to_pylist() == since
    ours = segments.filter(pa.compute.equal(segments["sent_by"], "sender"))
    assert max(ours["sequence_bytes"].to_pylist()) + MSS == pytest.approx(4_000_000, abs=MSS), "the number wraps on it"
    acks = e.acks.to_arrow()
    una, nxt = np.asarray(acks["snd_una_bytes"]), np.asarray(acks["snd_nxt_bytes"])
    assert una[0] == 0 and (np.diff(una) >= 0).all() and (nxt >= una).all()
    assert acks["cwnd_packets"].null_count == acks.num_rows, "nobody sees a congestion window from outside"
    assert e.rounds.to_pylist()[0]["inflight_packets"] == 10
    assert min(e.samples.to_arrow()["rtt_us"].to_pylist()) == pytest.approx(40_000, rel=0.03)
    assert len(e.sack_block) > 20
    for name in ("tcp_probe", "segment", "sack_block"):
        assert [each for each in e.table(name).columns if each in TABLES[name].names] == list(TABLES[name].names)


def test_both_ends_are_two_runs_and_a_leg(taps: list[Path]) -> None:
    e = loaded(*taps)
    assert sorted(row["run"] for row in e.runs.to_pylist()) == ["receiver.pcap", "sender.pcap"]
    (leg,) = e.legs.to_pylist()
    (joined,) = read_files(taps, 5).joined
    assert (leg["near"], leg["far"], leg["lost_packets"]) == ("sender.pcap", "receiver.pcap", joined.legs[0].lost)
    assert leg["one_way_us_low"] == 0 and leg["one_way_us"] == pytest.approx(20_000, rel=0.05)
    before = {row["run"]: row["value"] for row in e.metrics.where(metric="lost_before_packets").to_pylist()}
    assert before == {"sender.pcap": 0, "receiver.pcap": joined.legs[0].lost}


def test_recordings_and_runs_are_one_table_and_one_picture(taps: list[Path], tmp_path: Path) -> None:
    root = make_experiment(tmp_path, Scenario(algorithms=("cubic",), repetitions=1, duration_s=2.0, second_flow_s=1.0))
    names = ["experiment", "run", "algorithm", "flow_name", "metric", "value"]
    both = pa.concat_tables(each.metrics.select(*names).to_arrow() for each in (howdah.load(root), howdah.load(*taps)))
    assert set(both["experiment"].to_pylist()) == {"recorded", "synthetic"}
    matplotlib.use("Agg")
    axes = howdah.load(*taps).plot("snd_una_bytes")
    assert len(axes.get_lines()) == 2


def test_a_log_has_measures_and_no_packets(tmp_path: Path) -> None:
    (tmp_path / "log").write_text(SS)
    e = loaded(tmp_path / "log")
    assert e.tables == [] and len(e.acks) == 0 and len(e.legs) == 0
    rows = {row["metric"]: row for row in e.metrics.to_pylist()}
    assert rows["min_rtt_us"]["value"] == pytest.approx(40_050)
    assert rows["rate_bits_per_second"]["why"]


def test_what_a_recording_has_not_is_said(taps: list[Path], tmp_path: Path) -> None:
    e = loaded(taps[0])
    with pytest.raises(howdah.HowdahError, match="no table 'qdisc'"):
        e.qdisc  # noqa: B018
    with pytest.raises(howdah.HowdahError, match="no checks"):
        e.checks  # noqa: B018
    with pytest.raises(howdah.HowdahError, match="recordings and runs"):
        howdah.load(taps[0], tmp_path)
    (tmp_path / "notes").write_text("nothing that anybody recorded\n")
    with pytest.raises(howdah.HowdahError, match="notes: nothing here reads such a file"):
        howdah.load(tmp_path / "notes").metrics.to_arrow()
