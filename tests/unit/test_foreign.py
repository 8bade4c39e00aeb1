# SPDX-License-Identifier: Apache-2.0
"""Files that somebody else made: what is no file, what is too large, and names that act on a terminal."""

from __future__ import annotations

import json
import lzma
import os
import re
import resource
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest import mock

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import zstandard

from howdah.command.main import main
from howdah.command.names import algorithms_of
from howdah.engine.ending import Ending, check_agent
from howdah.engine.life import Life
from howdah.errors import HowdahError, RecordError, RunFailedError
from howdah.foreign import (
    LEAST_CONTENT_BYTES,
    escape_controls,
    files_below,
    is_plain_name,
    is_too_dense,
    open_foreign,
    read_foreign,
)
from howdah.pack.pack import pack
from howdah.publish import phase
from howdah.publish.phase import Queues
from howdah.record.clock import read_clocks
from howdah.record.digest import MismatchError, file_sha256, seal
from howdah.record.digest import check as digest_check
from howdah.record.directory import RunDirectory, parse_json
from howdah.record.raw import read_raw_bytes
from howdah.record.result import load_experiment
from howdah.record.run import HostMachine, read_record
from howdah.record.table import open_table
from howdah.report.section import kernel_messages
from howdah.scratch import scratch
from howdah.verify.run import PREFIX, verify_run
from howdah.work.analysis import evaluate
from tests.unit.recorded_run import make_recorded_experiment


def _link(file: Path) -> None:
    other = file.with_name("other")
    other.write_text("secret")
    file.symlink_to(other)


def _device(file: Path) -> None:
    file.symlink_to("/dev/zero")


NO_FILES: dict[str, Callable[[Path], object]] = {
    "a link": _link,
    "a link to a device": _device,
    "a pipe": os.mkfifo,
    "a directory": Path.mkdir,
}


@pytest.mark.parametrize("what", NO_FILES)
def test_only_a_file_is_read(what: str, tmp_path: Path) -> None:
    file = tmp_path / "file"
    NO_FILES[what](file)
    with pytest.raises(RecordError, match="not a file"):
        open_foreign(file)


def test_a_device_is_not_read() -> None:
    with pytest.raises(RecordError, match="this is a device, not a file"):
        open_foreign(Path("/dev/zero"))


def test_a_file_is_read_up_to_a_size(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_bytes(b"x" * 11)
    assert read_foreign(file, 11) == b"x" * 11
    with pytest.raises(RecordError, match="this has 11 bytes; at most 10 are read"):
        read_foreign(file, 10)
    with pytest.raises(FileNotFoundError):
        open_foreign(tmp_path / "nothing")


def test_links_are_not_walked_through(tmp_path: Path) -> None:
    (tmp_path / "a" / "b").mkdir(parents=True)
    (tmp_path / "a" / "b" / "c").touch()
    (tmp_path / "a" / "up").symlink_to("..")
    assert sorted(files_below(tmp_path)) == [("a/b/c", None), ("a/up", "a link")]


@pytest.mark.parametrize("name", ["a", "__init__.py", "cubic-r0-53e27c84", "a b", "größe", "a.b.c"])
def test_plain_names(name: str) -> None:
    assert is_plain_name(name)


@pytest.mark.parametrize(
    "name",
    [
        "",
        ".",
        "..",
        ".a",
        "-a",
        "~",
        "a/b",
        "a\\b",
        "a\n",
        "a\x7f",
        "a\x9b",
        " a",
        "a ",
        "a\u202e",
        "e\u0301",
        "\udc80",
    ],
)
def test_names_that_are_not(name: str) -> None:
    assert not is_plain_name(name)


def test_what_acts_on_a_terminal_is_shown() -> None:
    assert escape_controls("a\x1b[2J\r\x9b1A\u202eb\udc9bc\td\n") == "a\\x1b[2J\\x0d\\x9b1A\\u202eb\\x9bc\td\n"
    assert escape_controls("✓ größe 1\u2009%") == "✓ größe 1\u2009%"


def test_a_pack_that_would_write_a_verdict_shows_its_name(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    name = "x\x1b[2K\r\u2713 all: verified"
    for words in (["verify", name], ["rerun", name], ["compare", name], ["report", name], ["unpack", name]):
        assert main([*words, *(["--runs", str(tmp_path)] if words[0] != "unpack" else [])]) != 0
    run = make_recorded_experiment(tmp_path / "recorded")
    (run.raw / name).write_text("x")
    seal(run, read_record(run).replaced(host=HostMachine(cpu=name)))
    (run.raw / name).unlink()
    main(["verify", str(run.path)])
    said = capsys.readouterr()
    assert "\x1b" not in said.out + said.err
    assert "\r" not in said.out + said.err
    assert "\\x1b[2K\\x0d✓ all: verified is missing" in said.out


def test_no_command_writes_by_itself() -> None:
    """All that is printed goes through the one place that shows what would act on a terminal."""
    import howdah.command

    for file in Path(howdah.command.__path__[0]).glob("*.py"):
        text = file.read_text(encoding="utf-8")
        assert file.name == "answer.py" or "sys.stdout.write(" not in text, file
        assert not re.search(r"console\.print\((?!escape_controls|Text|\(\"\\n\")", text), file


@pytest.fixture
def small() -> object:
    """Two gigabytes of address space are what a command may take; a bomb would take more."""
    before = resource.getrlimit(resource.RLIMIT_AS)
    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + (1 << 30), before[1]))
    yield None
    resource.setrlimit(resource.RLIMIT_AS, before)


@pytest.mark.usefixtures("small")
def test_what_unpacks_to_more_than_a_guest_writes_is_not_unpacked(tmp_path: Path) -> None:
    """Thrice what a file of that size may hold: 256 MB of zeros."""
    part, file = bytes(1 << 24), tmp_path / "a.bin"
    with lzma.open(tmp_path / "a.bin.xz", "wb", preset=0) as packed:
        for _ in range(16):
            packed.write(part)
    with pytest.raises(OSError, match="larger than what a guest writes"):
        read_raw_bytes(file)
    (tmp_path / "a.bin.xz").unlink()
    compressor = zstandard.ZstdCompressor(write_content_size=True)
    with (tmp_path / "a.bin.zst").open("wb") as opened_, compressor.stream_writer(opened_, size=1 << 28) as written:
        for _ in range(16):
            written.write(part)
    with pytest.raises(OSError, match="larger than what a guest writes"):
        read_raw_bytes(file)


def _of_holes(file: Path) -> None:
    file.unlink(missing_ok=True)
    with file.open("wb") as opened_:
        opened_.truncate(1 << 40)


@pytest.mark.parametrize("read_it", [open_foreign, read_raw_bytes, file_sha256])
def test_a_terabyte_of_holes_is_not_read(tmp_path: Path, read_it: Callable[[Path], object]) -> None:
    """Its zeros are not on any disk, and reading them takes a quarter of an hour."""
    file = tmp_path / "a.bin"
    _of_holes(file)
    with pytest.raises(RecordError, match="most of them are holes"):
        read_it(file)


def test_a_file_that_a_disk_holds_is_read_whatever_its_blocks_say(tmp_path: Path) -> None:
    """File systems that compress hold a large file of zeros in few blocks, and others tell of none."""
    file = tmp_path / "a.bin"
    file.write_bytes(bytes(LEAST_CONTENT_BYTES + 1))
    few = SimpleNamespace(st_mode=file.stat().st_mode, st_size=file.stat().st_size, st_blocks=0)
    with mock.patch("os.fstat", lambda _handle: few), open_foreign(file) as opened_:
        assert opened_.read(1) == b"\0"


@pytest.mark.parametrize(
    "name", ["raw/tcp_probe.bin", "raw/trace.json", "raw/header_event", "tables/flow.parquet", "share/plan.json"]
)
def test_a_file_of_holes_in_a_run_is_a_changed_one(recorded: RunDirectory, name: str) -> None:
    """Each command ends at once: this test would not end in its time if one of them read the file."""
    _of_holes(recorded.path / name)
    assert name in {each.file for each in verify_run(recorded).findings}
    with pytest.raises(HowdahError):
        digest_check(recorded, read_record(recorded), [recorded.path / name])
    with pytest.raises(HowdahError, match="holes"):
        seal(recorded, read_record(recorded))


@pytest.mark.usefixtures("small")
def test_a_table_of_more_rows_than_its_bytes_can_hold_is_not_read(tmp_path: Path) -> None:
    file = tmp_path / "flow.parquet"
    pq.write_table(pa.table({"x": pa.array([0], pa.int64()).take(pa.array([0] * 8_000_000))}), file)
    assert file.stat().st_size < 100_000
    with pytest.raises(HowdahError, match="8000000 rows in"), open_table(file, "flow"):
        pass


def test_json_of_little_text_and_many_values_is_not_read(tmp_path: Path) -> None:
    assert not is_too_dense(b"[" + b"[]," * 1000 + b"0]")
    assert not is_too_dense(
        json.dumps({f"recorded/file-{n}": {"bytes": n, "sha256": "0" * 64} for n in range(200_000)}).encode()
    )
    with pytest.raises(RecordError, match="more values than its size"):
        parse_json(b"[" + b"[]," * 8_000_000 + b"0]", tmp_path)
    with pytest.raises(RecordError, match="nested too deeply"):
        parse_json(b"[" * 200_000, tmp_path)


@pytest.fixture
def recorded(tmp_path: Path) -> RunDirectory:
    return make_recorded_experiment(tmp_path / "recorded")


@pytest.mark.parametrize(
    "place", ["raw/tcp_probe.bin", "raw/more.bin", "metrics.json", "plan.json", "raw", "share/plan.json"]
)
@pytest.mark.parametrize("what", ["a link", "a link to a device", "a pipe"])
def test_what_is_no_file_is_named_and_neither_packed_nor_waited_for(
    place: str, what: str, recorded: RunDirectory, tmp_path: Path
) -> None:
    file = recorded.path / place
    if file.exists():
        file.rename(tmp_path / "away")
    NO_FILES[what](file)
    signal.alarm(60)
    try:
        assert any(f"{place} is a link, a pipe" in str(each) for each in verify_run(recorded).findings)
        with pytest.raises((MismatchError, HowdahError), match=r"link|pipe|file"):
            pack([recorded.path.parent], tmp_path / "x.tar.zst")
    finally:
        signal.alarm(0)
    assert not list(tmp_path.glob("*.zst"))


@pytest.mark.parametrize("name", ["profile.yaml", "claims.json", "experiment.json"])
def test_a_link_beside_the_runs_is_not_packed(name: str, recorded: RunDirectory, tmp_path: Path) -> None:
    """It may lead to the packer's private key."""
    file = recorded.path.parent / name
    file.rename(tmp_path / "id_ed25519")
    file.symlink_to(tmp_path / "id_ed25519")
    with pytest.raises(HowdahError, match="this is a link, not a file"):
        pack([recorded.path.parent], tmp_path / "x.tar.zst")


def test_a_run_that_is_a_link_is_not_packed(recorded: RunDirectory, tmp_path: Path) -> None:
    recorded.path.rename(tmp_path / "elsewhere")
    recorded.path.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(HowdahError, match="this run is a symbolic link"):
        pack([recorded.path.parent], tmp_path / "x.tar.zst")


def test_a_verification_without_a_place_is_not_swept_by_another(
    recorded: RunDirectory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))

    def beside_another(*what: Any) -> None:
        with scratch(PREFIX):
            evaluate(*what)

    monkeypatch.setattr("howdah.verify.run.evaluate", beside_another)
    assert verify_run(recorded).findings == []
    assert list(tmp_path.glob(f"{PREFIX}*")) == []


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_an_interrupted_verification_leaves_nothing(
    number: signal.Signals, recorded: RunDirectory, tmp_path: Path
) -> None:
    place = tmp_path / "temporary"
    place.mkdir()
    command = [str(Path(sys.executable).with_name("howdah")), "verify", str(recorded.path.parent), "--jobs", "2"]
    process = subprocess.Popen(command, env={**os.environ, "TMPDIR": str(place)}, stderr=subprocess.DEVNULL)
    while process.poll() is None and not list(place.glob(f"{PREFIX}*/{PREFIX}*")):
        time.sleep(0.01)
    process.send_signal(number)
    process.wait(60)
    assert list(place.iterdir()) == []


def _deep(file: Path) -> None:
    file.unlink(missing_ok=True)
    file.write_text("[" * 200_000)


def _pipe(file: Path) -> None:
    file.unlink(missing_ok=True)
    os.mkfifo(file)


@pytest.mark.parametrize("spoil", [_deep, _pipe])
def test_what_is_no_json_is_as_if_it_were_not_there(recorded: RunDirectory, spoil: Callable[[Path], None]) -> None:
    """A guest, or whoever sent the directory, wrote these; a report and a page that is live read them."""
    experiment = recorded.path.parent
    run = load_experiment(experiment).runs[0]
    spoil(recorded.tables / "ingest.json")
    assert kernel_messages([(run, "cubic")]) == []
    spoil(recorded.raw / "progress.json")
    assert Life(os.getpid(), recorded.raw / "progress.json", 1.0, 1.0).position() == ("boot", 0, 0)
    assert phase.position(recorded).time_us == 0
    spoil(recorded.raw / "agent.json")
    with pytest.raises(RunFailedError, match="record cannot be read"):
        check_agent(recorded, Ending(0, None, 1.0, 4096))
    spoil(recorded.raw / "clock.json")
    with pytest.raises(ValueError, match=r"nested too deeply|not a file"):
        read_clocks(recorded.raw)
    spoil(recorded.provenance)
    queue = Queues().of(experiment)
    assert queue is not None
    assert queue.verdicts == {}
    spoil(experiment / "experiment.json")
    assert Queues().of(experiment) is None
    assert algorithms_of(experiment) == []
