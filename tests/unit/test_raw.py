# SPDX-License-Identifier: Apache-2.0
"""Files of raw/: compressed without losing anything, read in either form, never left half."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from howdah.ingest.run import ingest, read_report
from howdah.record import raw as raw_module
from howdah.record.digest import mismatches, seal
from howdah.record.directory import RunDirectory, read_json
from howdah.record.raw import compress_raw, open_raw, raw_exists, read_raw_bytes, read_raw_text, record_bytes, stored
from howdah.record.run import read_record
from howdah.record.table import equal
from howdah.verify.run import verify_run
from howdah.work.stage import refresh
from tests.faults.raw_files import RawFiles
from tests.unit.recorded_run import make_recorded_experiment, make_recorded_run
from tests.unit.test_siftr import GOLDEN as SIFTR


@pytest.fixture
def everything(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every file is large enough, and worth it: each reader meets a compressed file."""
    monkeypatch.setattr(raw_module, "LEAST_BYTES", 0)
    monkeypatch.setattr(raw_module, "LEAST_RECORDS_BYTES", 100_000)
    monkeypatch.setattr(raw_module, "_ALIKE", 0.0)
    monkeypatch.setattr(raw_module, "_WORTH", 1000)


def _contents(folder: Path) -> dict[str, bytes]:
    return {str(file.relative_to(folder)): file.read_bytes() for file in folder.rglob("*") if file.is_file()}


def test_what_is_large_is_compressed_and_what_is_small_stays(tmp_path: Path) -> None:
    text = b"the same again and again\n" * 20_000
    noise = os.urandom(300_000)
    (tmp_path / "pcap").mkdir()
    (tmp_path / "pcap" / "s1-eth0.pcap").write_bytes(text)
    (tmp_path / "agent.json").write_text("{}")
    (tmp_path / "noise.bin").write_bytes(noise)
    saved = compress_raw(tmp_path)
    assert sorted(_contents(tmp_path)) == ["agent.json", "noise.bin", "pcap/s1-eth0.pcap.zst"]
    assert 0.9 * len(text) < saved < len(text)
    capture = tmp_path / "pcap" / "s1-eth0.pcap"
    assert read_raw_bytes(capture) == text
    assert read_raw_text(tmp_path / "agent.json") == "{}"
    assert raw_exists(capture)
    assert not raw_exists(tmp_path / "nothing")
    with open_raw(capture) as opened:
        assert [opened.read(9), opened.read(6)] == [b"the same ", b"again "]
    assert compress_raw(tmp_path) == 0, "once is enough"


@pytest.mark.parametrize("program", ["zstd", "xz"])
def test_the_programs_of_others_read_it(tmp_path: Path, program: str) -> None:
    if shutil.which(program) is None:
        pytest.skip(f"{program} is not installed")
    records = b"".join(number.to_bytes(8, "little") + b"of one length " * 4 for number in range(40_000))
    content = records if program == "xz" else b"0123456789" * 100_000
    (tmp_path / "x.bin").write_bytes(content)
    compress_raw(tmp_path)
    (file,) = tmp_path.iterdir()
    assert file.name == f"x.bin.{'xz' if program == 'xz' else 'zst'}"
    done = subprocess.run([program, "-dc", file], capture_output=True, check=True)
    assert done.stdout == content == read_raw_bytes(tmp_path / "x.bin")


def test_records_are_found_by_their_length(tmp_path: Path) -> None:
    file = tmp_path / "x"
    for stride in (64, 144, 256):
        file.write_bytes(b"".join(number.to_bytes(4, "little") + bytes(range(4, stride)) for number in range(9000)))
        assert record_bytes(file, file.stat().st_size) == stride
    file.write_bytes(os.urandom(200_000))
    assert record_bytes(file, 200_000) is None
    file.write_bytes(b"short")
    assert record_bytes(file, 5) is None


@pytest.mark.usefixtures("everything")
def test_tables_of_compressed_files_are_those_of_the_files(tmp_path: Path) -> None:
    places = [tmp_path / "plain", tmp_path / "compressed"]
    plain, compressed = (make_recorded_run(place) for place in places)
    before = _contents(compressed.raw)
    compress_raw(compressed.raw)
    assert {file.suffix for file in compressed.raw.iterdir()} == {".zst", ".xz"}
    assert (compressed.raw / "tcp_probe.bin.xz").exists(), "it has records of one length"
    assert {name: read_raw_bytes(compressed.raw / name) for name in before} == before
    assert ingest(compressed) == ingest(plain)
    assert equal(plain, compressed) is None


@pytest.mark.usefixtures("everything")
def test_a_run_whose_files_are_compressed_is_verified_and_analysed_again(tmp_path: Path) -> None:
    run = make_recorded_experiment(tmp_path / "recorded-experiment")
    metrics, verdict = read_json(run.metrics), read_json(run.verdict)
    compress_raw(run.raw)
    seal(run, read_record(run))
    report = verify_run(run)
    assert report.findings == []
    assert "tables against raw/" in report.checked
    assert refresh(run, force=True)
    assert (read_json(run.metrics), read_json(run.verdict)) == (metrics, verdict)
    assert mismatches(run, read_record(run)) == []
    digests = read_json(run.provenance)["digests"]
    file = run.raw / "tcp_probe.bin.xz"
    assert digests["raw/tcp_probe.bin.xz"] == hashlib.sha256(file.read_bytes()).hexdigest()


@pytest.mark.usefixtures("everything")
def test_logs_of_siftr_are_found_compressed(tmp_path: Path) -> None:
    from howdah.ingest.siftr import _logs, read_log

    log = tmp_path / "r1.log"
    log.write_bytes(next(SIFTR.glob("*.log")).read_bytes())
    before = read_log(log)
    compress_raw(tmp_path)
    assert _logs(tmp_path) == {log}
    assert read_log(log) == before


@pytest.mark.parametrize("records", [True, False])
@pytest.mark.parametrize("damage", ["cut off", "changed", "no frame"])
def test_a_damaged_file_is_a_problem_and_not_a_short_one(
    tmp_path: Path, damage: str, records: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(raw_module, "LEAST_BYTES", 1000)
    monkeypatch.setattr(raw_module, "LEAST_RECORDS_BYTES", 1000 if records else 1 << 30)
    monkeypatch.setattr(raw_module, "_ALIKE", 0.0)
    run = make_recorded_run(tmp_path)
    compress_raw(run.raw)
    file = stored(run.raw / "tcp_probe.bin")
    content = bytearray(file.read_bytes())
    if damage == "cut off":
        content = content[: len(content) // 2]
    elif damage == "changed":
        content[len(content) // 2] ^= 0xFF
    else:
        content = bytearray(b"something else entirely")
    file.write_bytes(content)
    with pytest.raises(OSError, match="the compressed file is damaged"):
        read_raw_bytes(run.raw / "tcp_probe.bin")
    ingest(run)
    assert any("damaged" in problem for problem in read_report(run).all_problems)


class _KilledError(BaseException):
    """Stands for the end of the process."""


@pytest.mark.parametrize("moment", ["fsync", "replace", "unlink"])
def test_who_is_killed_leaves_either_form(tmp_path: Path, moment: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(raw_module, "LEAST_BYTES", 1000)
    run = make_recorded_run(tmp_path)
    before = _contents(run.raw)

    def killed(*_arguments: object, **_named: object) -> None:
        raise _KilledError

    with monkeypatch.context() as patch:
        patch.setattr(*((os, "fsync", killed) if moment == "fsync" else (Path, moment, killed)))
        with pytest.raises(_KilledError):
            compress_raw(run.raw)
    names = {name.removesuffix(".zst").removesuffix(".xz") for name in _contents(run.raw) if not name.startswith(".")}
    assert names == set(before)
    assert {name: read_raw_bytes(run.raw / name) for name in before} == before
    compress_raw(run.raw)
    assert {name: read_raw_bytes(run.raw / name) for name in before} == before
    left = [name for name in _contents(run.raw) if not name.startswith(".")]
    assert len(left) == len(before), "each of them once"


def test_a_run_of_before_is_read_as_it_is(tmp_path: Path) -> None:
    run: RunDirectory = make_recorded_run(tmp_path)
    ingest(run)
    assert (run.raw / "tcp_probe.bin").exists(), "reading changes nothing"


FILES, SEED = 100, 1


def test_mutated_raw_files(tmp_path: Path) -> None:
    tally = RawFiles(tmp_path, SEED).run(range(FILES))
    assert tally.count == FILES
    assert not tally.faults, [(case.number, case.base, case.fault) for case in tally.faults[:3]]
    assert any(outcome == "accepted" for _, outcome in tally.outcomes)


BAD_LINES = {
    "no text": b"\xcd\xff",
    "nested": b"[" * 100_000,
    "a time without end": b'{"time_ns": 1e999, "node": null, "source": "x", "values": {}}',
}


@pytest.mark.parametrize("what", BAD_LINES)
def test_a_bad_line_of_counters_costs_that_line(what: str, tmp_path: Path) -> None:
    good = make_recorded_run(tmp_path / "good")
    rows = ingest(good).sources["counter"].rows
    bad = make_recorded_run(tmp_path / "bad")
    file = bad.raw / "counters.jsonl"
    file.write_bytes(BAD_LINES[what] + b"\n" + file.read_bytes())
    report = ingest(bad).sources["counter"]
    assert report.rows == rows
    assert any("line 1 is not a reading" in problem for problem in report.problems)
