# SPDX-License-Identifier: Apache-2.0
"""Captures of howdah's own runs over drawn paths: what ``howdah explain`` says against what the run knows.

Six runs by default; HOWDAH_RECOVERY_RUNS=300 makes as many. ``python -m tests.explain`` makes their table.
"""

from __future__ import annotations

import gzip
import json
import os
import struct
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import zstandard

from howdah.command.main import main
from howdah.errors import ExitCode
from howdah.explain.read import read_files
from howdah.explain.records import open_recording
from howdah.explain.twin import twin_text
from tests.explain.damage import HARMLESS, Packet, pcap, read
from tests.explain.drawn import kind_of, profile
from tests.explain.recovery import RIGHT, WRONG, Truth, explained, outcomes, recorded
from tests.guest.remembering import new_guests

pytestmark = [pytest.mark.guest, pytest.mark.usefixtures("remembered_guests")]
# One of each: HyStart, a loss, a receive window, BBR, HyStart just before a loss, a policer. Others follow in order.
_FIRST = (10, 11, 12, 7, 1070, 5002)
_RUNS = int(os.environ.get("HOWDAH_RECOVERY_RUNS") or len(_FIRST))
SEEDS = [*_FIRST, *(seed for seed in range(_RUNS + len(_FIRST)) if seed not in _FIRST)][:_RUNS]


@pytest.fixture(scope="module")
def known(tmp_path_factory: pytest.TempPathFactory) -> list[Truth]:
    place = tmp_path_factory.mktemp("drawn")
    for seed in SEEDS:
        file = place / f"drawn-{seed}.yaml"
        file.write_text(profile(seed), encoding="utf-8")
        # A shallow buffer holds more than the plan says where packets have several segments, and the judge says so.
        accepted = {ExitCode.DONE} | ({ExitCode.INVALID} if kind_of(seed) == "super-segments" else set())
        assert main(["run", str(file), "--runs", str(place / "runs"), "--no-report"]) in accepted, seed
    return list(recorded(place / "runs"))


def test_nothing_is_wrong_and_most_is_right_at_every_tap(known: list[Truth], tmp_path: Path) -> None:
    found = [
        (each.seed, tap, question, worth)
        for each in known
        for tap, capture in each.taps.items()
        for question, worth in outcomes(each, explained(capture, "none", tmp_path), "none").items()
    ]
    assert len({tap for _, tap, _, _ in found}) == 3
    assert [each for each in found if each[3] == WRONG and each[2] in ("cause", "exit")] == []
    wrong = [each for each in found if each[3] == WRONG]
    assert len(wrong) <= len(found) * 0.01, wrong
    for question in ("base RTT", "cause", "exit"):
        worth = [each[3] for each in found if each[2] == question]
        assert worth.count(RIGHT) >= 0.95 * len(worth), question


def test_the_sender_s_capture_alone_tells_a_policer_s_bucket(known: list[Truth], tmp_path: Path) -> None:
    each = next(each for each in known if each.seed == _FIRST[5])
    true = each.plan["path"]["policer"]
    found = explained(each.taps["sender"], "none", tmp_path).policer
    assert found is not None
    assert found.rate_bits_per_second == pytest.approx(true["rate_bits_per_second"], rel=0.02)
    assert found.burst_bytes == pytest.approx(true["burst_bytes"], rel=0.1)


def test_a_damage_makes_nothing_wrong(known: list[Truth], tmp_path: Path) -> None:
    for number, damage in enumerate(HARMLESS):
        each = known[number % len(known)]
        found = outcomes(each, explained(each.taps["sender"], damage, tmp_path), damage)
        assert WRONG not in found.values(), (each.seed, damage, found)


def test_a_twin_leaves_its_start_up_where_the_recorded_flow_did(known: list[Truth], tmp_path: Path) -> None:
    """The run that has an exit by its own detector; a twin knows nothing but the capture."""
    each = next(each for each in known if each.seed == _FIRST[0])
    flow = explained(each.taps["sender"], "none", tmp_path)
    file = tmp_path / "drawn-0.yaml"
    file.write_text(twin_text(flow, "drawn-0"), encoding="utf-8")
    assert main(["run", str(file), "--runs", str(tmp_path / "runs"), "--no-report"]) == 0
    (twin,) = recorded(tmp_path / "runs")
    assert twin.metrics["exit_cause"] == each.metrics["exit_cause"]
    assert abs(twin.metrics["exit_round"] - each.metrics["exit_round"]) <= 1
    assert twin.plan["path"]["rtt_us"] == pytest.approx(each.plan["path"]["rtt_us"], rel=0.01)


def test_a_twin_lies_over_the_recording_and_a_wrong_one_does_not(
    known: list[Truth], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The flow that left by a loss; then the same with half of the round trip, which is not its twin."""
    each = next(each for each in known if each.seed == _FIRST[1])
    file = tmp_path / "twin.yaml"
    file.write_text(twin_text(explained(each.taps["sender"], "none", tmp_path), "twin"), encoding="utf-8")
    over = []
    half = ["--set", f"path.rtt={each.plan['path']['rtt_us'] // 2} us"]
    for more, expected in (([], ExitCode.DONE), (half, ExitCode.DIFFERS)):  # the claims do not hold, either
        capsys.readouterr()
        assert main(["run", str(file), "--runs", str(tmp_path / f"runs{len(more)}"), "--json", *more]) == expected
        over.append(json.loads(capsys.readouterr().out)["twin"])
    (right,), (wrong,) = (each["runs"] for each in over)
    assert right["not_explained"] == [] and right["distance"] < 0.1
    assert any(said.startswith("round trip: ") for said in wrong["not_explained"])
    assert wrong["distances"]["round trip"] > 0.1
    page = Path(over[0]["page"]).read_text()
    assert page.count("--on-light:var(--ink)") == page.count("--on-light:var(--focus)") > 0


def test_a_complaint_becomes_a_night_s_cell_and_another_algorithm_turns_it_red(
    known: list[Truth], tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The twin's claims hold on the kernel of the recording; without HyStart the flow leaves elsewhere."""
    each = next(each for each in known if each.seed == _FIRST[0])
    file = tmp_path / "twin.yaml"
    text = twin_text(explained(each.taps["sender"], "none", tmp_path), "twin")
    file.write_text(text, encoding="utf-8")
    suite = tmp_path / "complaints.yaml"
    suite.write_text("suite: complaints\ncells:\n  - profile: twin.yaml\n    claims: all\n", encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    assert main(["nightly", str(suite), "--accept"]) == 0
    capsys.readouterr()
    assert main(["nightly", str(suite), "--json"]) == 0
    assert capsys.readouterr().out.count('"equal"') >= 2
    file.write_text(text.replace("algorithm: cubic ", "algorithm: cubic-no-hystart "), encoding="utf-8")
    assert main(["nightly", str(suite), "--json"]) == 6
    assert "exit-cause" in capsys.readouterr().out


def test_a_pack_of_a_twin_s_runs_has_no_address_and_no_payload_of_the_recording(
    known: list[Truth], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The recording's packets get addresses, ports and a payload that are found nowhere else."""
    new_guests(monkeypatch)  # a pack has their logs and share/, too
    each = next(each for each in known if each.seed == _FIRST[2])
    secret = b"a-payload-that-nobody-may-see"
    packets = [_renamed(packet, secret) for packet in read(each.taps["sender"])]
    file = tmp_path / "someone-s-name.pcap"
    file.write_bytes(pcap(packets))
    flow = read_files([file], 1).flows[0]
    assert "198.18." in flow.name and secret in file.read_bytes()
    twin = tmp_path / "twin.yaml"
    twin.write_text(twin_text(flow, "twin"), encoding="utf-8")
    runs = tmp_path / "runs"
    assert main(["run", str(twin), "--runs", str(runs)]) == 0
    assert main(["pack", "twin", "--runs", str(runs), "--output", str(tmp_path / "twin.howdah")]) == 0
    assert main(["unpack", str(tmp_path / "twin.howdah"), str(tmp_path / "there")]) == 0
    words = (
        secret,
        b"198.18.77.1",
        b"198.19.77.2",
        bytes((198, 18, 77, 1)),
        bytes((198, 19, 77, 2)),
        b"someone-s-name",
        b":48123",
    )
    files = [path for path in (tmp_path / "there").rglob("*") if path.is_file()]
    assert len(files) > 10 and any(path.name == "profile.yaml" for path in files)
    assert {path.name: found for path in files if (found := _found(path, words))} == {}
    # The search sees what it is for, wherever a pack could have it.
    for name, content in _leaks(packets):
        leak = tmp_path / name
        content(leak)
        assert {secret, words[3], words[4]} <= set(_found(leak, words)), name


def _renamed(packet: Packet, payload: bytes) -> Packet:
    """The same packet between 198.18.77.1:48123 and 198.19.77.2:443, with a payload where it is long enough."""
    frame = packet.data
    order = 1 if frame[26:30] == bytes((10, 1, 1, 1)) else -1
    ends = [bytes((198, 18, 77, 1)), bytes((198, 19, 77, 2))][::order]
    ports = [struct.pack(">H", 48123), struct.pack(">H", 443)][::order]
    frame = frame[:26] + b"".join(ends) + b"".join(ports) + frame[38:]
    return replace(packet, data=frame + payload if len(frame) + len(payload) <= packet.wire else frame)


def _leaks(packets: list[Packet]) -> Iterator[tuple[str, Callable[[Path], object]]]:
    """Ways in which the recording could be in a file of a run."""
    recording = pcap(packets)
    yield "plain.pcap", lambda path: path.write_bytes(recording)
    yield "packed.pcap.zst", lambda path: path.write_bytes(zstandard.compress(recording))
    yield "packed.gz", lambda path: path.write_bytes(gzip.compress(recording))
    table = pa.table({"frame": [packet.data for packet in packets]})
    yield "frames.parquet", lambda path: pq.write_table(table, path)


def _found(path: Path, words: Sequence[bytes]) -> list[bytes]:
    content = _content(path)
    return [word for word in words if word in content]


def _content(path: Path) -> bytes:
    """All that a file says, whatever it is compressed with."""
    if path.suffix == ".parquet":
        table = pq.read_table(path)
        cells = (cell for column in table.columns for cell in column.unique().to_pylist())
        said = (cell if isinstance(cell, bytes) else str(cell).encode() for cell in cells)
        return str(table.schema).encode() + b"\n".join(said)
    with open_recording(path) as file:
        return file.read_all(1 << 30)
