# SPDX-License-Identifier: Apache-2.0
"""One file that can be mailed: whole, the same each time, without paths of the machine, and safe to open."""

from __future__ import annotations

import errno
import hashlib
import io
import json
import os
import random
import re
import shutil
import subprocess
import tarfile
from collections.abc import Iterator
from pathlib import Path

import pytest
import zstandard
from markupsafe import escape

import howdah
from howdah.command.main import main
from howdah.pack import archive as archive_module
from howdah.pack import pack as pack_module
from howdah.pack.archive import FORMAT, PackError, extract, size_on_disk, write_archive
from howdah.pack.content import PackedFile, Paths, paths_in
from howdah.pack.pack import pack, unpack
from howdah.pack.shape import PackIndex
from howdah.record import raw as raw_module
from howdah.record.digest import seal
from howdah.record.directory import RunDirectory, read_json, write_json
from howdah.record.raw import compress_raw
from howdah.record.run import RunRecord, read_record
from howdah.report.template import script_json
from tests.unit.pack_factory import RUN, archive, index_of, member, whole_pack
from tests.unit.recorded_run import make_recorded_experiment, recorded_compiler


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A person's home, in which the runs are."""
    place = tmp_path / "home" / "alice"
    (place / "runs").mkdir(parents=True)
    monkeypatch.setenv("HOME", str(place))
    with recorded_compiler():
        yield place


@pytest.fixture
def recorded(home: Path, monkeypatch: pytest.MonkeyPatch) -> RunDirectory:
    """An experiment of a recorded run, compressed, in whose records the person's paths are."""
    monkeypatch.setattr(raw_module, "LEAST_BYTES", 100_000)
    run = make_recorded_experiment(home / "runs" / "recorded")
    compress_raw(run.raw)
    run.log.write_text(f"booted {home}/.cache/howdah/kernel/linux for {run.path}\n")
    index = read_json(run.path.parent / "experiment.json")
    index["profile"]["file"] = f"{home}/profiles/recorded.yaml"
    write_json(run.path.parent / "experiment.json", index)
    seal(run, read_record(run).replaced(rerun_of=f"{home}/runs/other"))
    return run


def _members(file: Path) -> list[tuple[tarfile.TarInfo, bytes]]:
    plain = io.BytesIO()
    with file.open("rb") as opened:
        zstandard.ZstdDecompressor().copy_stream(opened, plain)
    plain.seek(0)
    found = []
    with tarfile.open(fileobj=plain) as archive:
        for member in archive:
            content = archive.extractfile(member)
            assert content is not None
            found.append((member, content.read()))
    return found


def _bytes(file: Path) -> dict[str, bytes]:
    return {member.name: content for member, content in _members(file)}


def test_a_colleague_gets_what_was_packed(
    recorded: RunDirectory, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "for-you.howdah.tar.zst"
    assert main(["pack", str(recorded.path.parent), "-o", str(file)]) == 0
    capsys.readouterr()
    assert main(["verify", str(file)]) == 0
    said = capsys.readouterr().out
    assert "tables against raw/" in said
    assert f"✓ {file}/recorded: verified" in said, "the pack is named, and not where it was unpacked"
    place = tmp_path / "elsewhere"
    assert main(["unpack", str(file), str(place)]) == 0
    assert sorted(entry.name for entry in place.iterdir()) == ["README.txt", "pack.json", "recorded", "units.json"]
    assert "<html" in (place / "recorded" / "report.html").read_text()
    units = read_json(place / "units.json")
    assert units["tables"]["tcp_probe"]["srtt_us"]["unit"] == "us"
    assert units["metrics"]["exit_time_s"]["unit"] == "s"
    there, here = howdah.load(place / "recorded", every=True), howdah.load(recorded.path.parent, every=True)
    assert there.acks.to_arrow().equals(here.acks.to_arrow())
    assert there.metrics.to_arrow().equals(here.metrics.to_arrow())


def test_nothing_of_the_machine_is_in_it(recorded: RunDirectory, home: Path, tmp_path: Path) -> None:
    packed = pack([recorded.path.parent], tmp_path / "x.howdah.tar.zst")
    for name, content in _bytes(packed.file).items():
        assert os.fsencode(home.name) not in content, name
        assert os.fsencode(tmp_path) not in content, name
        assert not name.startswith("/"), name
    assert set(packed.index.rewritten) == {"recorded/experiment.json", "recorded/recorded/engine.log"}
    record = json.loads(_bytes(packed.file)["x/recorded/recorded/run.json"])
    assert record["rerun_of"] == "RUNS/other"
    assert record["rewritten"] == {"engine.log": read_json(recorded.provenance)["digests"]["engine.log"]}
    for one, _content in _members(packed.file):
        assert (one.uid, one.gid, one.uname, one.gname, one.mtime) == (0, 0, "", "", 0)


def test_the_same_runs_give_the_same_bytes(recorded: RunDirectory, tmp_path: Path) -> None:
    files = [tmp_path / name / "x.tar.zst" for name in ("a", "b")]
    for file in files:
        file.parent.mkdir()
        pack([recorded.path.parent], file)
        os.utime(recorded.log, (1, 1))
    assert files[0].read_bytes() == files[1].read_bytes()


def test_without_raw_tables_stay_and_measures_are_checked(
    recorded: RunDirectory, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    whole = pack([recorded.path.parent], tmp_path / "whole.tar.zst")
    slim = pack([recorded.path.parent], tmp_path / "slim.tar.zst", kind="tables")
    assert [Path(name).name.partition(".")[0] for name in slim.index.left_out] == ["tcp_probe"]
    assert (whole.index.raw, slim.index.raw) == (True, False)
    assert slim.file.stat().st_size < whole.file.stat().st_size
    assert main(["verify", str(slim.file), "--json"]) == 0
    (run,) = [
        report
        for report in json.loads(capsys.readouterr().out)["reports"]
        if report["path"].endswith("recorded/recorded")
    ]
    assert run["state"] == "digests only"
    assert "metrics and verdict against the tables" in run["checked"]
    assert any("left out" in note for note in run["notes"])
    unpack(slim.file, tmp_path / "slim")
    assert len(howdah.load(tmp_path / "slim" / "recorded", every=True).acks)


def test_results_alone_are_small_and_say_what_cannot_be_computed(
    recorded: RunDirectory, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "small.howdah.tar.zst"
    assert main(["pack", str(recorded.path.parent), "--results", "-o", str(file)]) == 0
    assert file.stat().st_size < 300_000
    held = _bytes(file)
    readme, names = held["small/README.txt"].decode(), set(held)
    assert "its records were left out" in readme
    assert "(compares digests; only 'howdah rerun' makes the numbers again)" in readme
    assert "Parquet" not in readme, "there is none"
    run = "small/recorded/recorded"
    assert {f"{run}/{name}" for name in ("plan.json", "run.json", "metrics.json", "verdict.json")} < names
    assert {"small/recorded/report.html", "small/README.txt", "small/units.json"} < names
    assert not [name for name in names if re.search(r"/(raw|tables|share)/", name)]
    capsys.readouterr()
    assert main(["verify", str(file), "--json"]) == 0
    own, of_run = json.loads(capsys.readouterr().out)["reports"]
    assert (own["state"], of_run["state"]) == ("digests only", "digests only")
    assert any("report.html cannot be made again" in note for note in own["notes"])
    assert any("left out of the pack (--results)" in note for note in of_run["notes"])


def test_a_report_that_the_runs_do_not_give_is_found(
    recorded: RunDirectory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    good = pack([recorded.path.parent], tmp_path / "good.howdah.tar.zst")
    assert main(["verify", str(good.file), "--json"]) == 0
    own = json.loads(capsys.readouterr().out)["reports"][0]
    assert "report.html against the runs" in own["checked"]
    with monkeypatch.context() as patch:
        patch.setattr(pack_module, "_page", lambda _merged: "<p>reno is ten times as fast</p>")
        forged = pack([recorded.path.parent], tmp_path / "forged.howdah.tar.zst")
    assert main(["verify", str(forged.file), "--json"]) == 6
    own = json.loads(capsys.readouterr().out)["reports"][0]
    assert [(each["file"], each["what"]) for each in own["findings"]] == [
        ("report.html", "it is not the page that these runs give")
    ]


def test_the_page_names_the_profile_as_it_is_in_the_pack(
    recorded: RunDirectory, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """'howdah new' of an installed howdah writes where the schema is, below somebody's home."""
    root = recorded.path.parent
    text = f"# yaml-language-server: $schema={Path.home()}/site-packages/profile.schema.json\nname: recorded\n"
    (root / "profile.yaml").write_text(text)
    index = read_json(root / "experiment.json")
    digest = hashlib.sha256(text.encode()).hexdigest()
    write_json(root / "experiment.json", {**index, "profile": {"file": "profile.yaml", "sha256": digest}})
    packed = pack([root], tmp_path / "x.tar.zst")
    assert "recorded/profile.yaml" in packed.index.rewritten
    main(["verify", str(packed.file), "--json"])
    own = json.loads(capsys.readouterr().out)["reports"][0]
    assert "report.html against the runs" in own["checked"]
    assert [each["what"] for each in own["findings"] if each["file"] == "report.html"] == []


def test_a_number_that_was_changed_before_it_was_packed_is_found(recorded: RunDirectory, tmp_path: Path) -> None:
    metrics = read_json(recorded.metrics)
    metrics["rows"][0]["value"] = 1
    write_json(recorded.metrics, metrics)
    with pytest.raises(howdah.HowdahError, match=r"metrics\.json was changed"):
        pack([recorded.path.parent], tmp_path / "x.tar.zst")
    assert not list(tmp_path.glob("*.zst"))
    seal(recorded, read_record(recorded))
    pack([recorded.path.parent], tmp_path / "x.tar.zst")
    assert main(["verify", str(tmp_path / "x.tar.zst")]) == 6


def test_more_files_than_can_be_unpacked_are_not_packed(
    recorded: RunDirectory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(archive_module, "_LARGEST_INDEX", 1000)
    with pytest.raises(PackError, match="too many files for one pack"):
        pack([recorded.path.parent], tmp_path / "x.tar.zst")
    assert list(tmp_path.glob("*.zst")) == []


def test_one_run_of_several_is_packed_with_its_row(
    recorded: RunDirectory, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    root = recorded.path.parent
    other = RunDirectory(root / "other")
    shutil.copytree(recorded.path, other.path)
    index = read_json(root / "experiment.json")
    write_json(root / "experiment.json", {**index, "cells": [*index["cells"], {**index["cells"][0], "run": "other"}]})
    packed = pack([recorded.path], tmp_path / "x.tar.zst")
    assert packed.index.runs == ["recorded/recorded"]
    unpack(packed.file, tmp_path / "x")
    assert [cell["run"] for cell in read_json(tmp_path / "x" / "recorded" / "experiment.json")["cells"]] == ["recorded"]
    assert not (tmp_path / "x" / "recorded" / "other").exists()
    main(["verify", str(packed.file), "--json"])
    own = json.loads(capsys.readouterr().out)["reports"][0]
    assert "report.html against the runs" in own["checked"]
    assert [each["what"] for each in own["findings"] if each["file"] == "report.html"] == []


def test_a_signature_stays_where_nothing_was_changed(recorded: RunDirectory, tmp_path: Path) -> None:
    if shutil.which("ssh-keygen") is None:
        pytest.skip("ssh-keygen is not installed")
    key = tmp_path / "key"
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", key], check=True)
    root = recorded.path.parent
    assert main(["sign", str(root), "--key", str(key)]) == 0
    assert "recorded/manifest.sha256.sig" in pack([root], tmp_path / "x.tar.zst").index.left_out
    recorded.log.write_text("booted\n")
    index = read_json(root / "experiment.json")
    write_json(root / "experiment.json", {**index, "profile": {**index["profile"], "file": "recorded.yaml"}})
    record = read_json(recorded.provenance)
    del record["rerun_of"]
    seal(recorded, RunRecord.model_validate(record))
    assert main(["sign", str(root), "--key", str(key)]) == 0
    packed = pack([root], tmp_path / "x.tar.zst")
    assert packed.index.left_out == []
    allowed = tmp_path / "signers"
    allowed.write_text(f'alice namespaces="howdah" {key.with_suffix(".pub").read_text()}')
    assert main(["verify", str(packed.file), "--allowed-signers", str(allowed)]) == 0


BAD = {
    "above": member("x/../../evil", b"x"),
    "absolute": member("/evil", b"x"),
    "link": member(f"x/{RUN}/raw/a", type=tarfile.SYMTYPE, linkname="/etc"),
    "hard link": member(f"x/{RUN}/raw/a", type=tarfile.LNKTYPE, linkname="/etc/passwd"),
    "device": member(f"x/{RUN}/raw/a", type=tarfile.CHRTYPE),
    "fifo": member(f"x/{RUN}/raw/a", type=tarfile.FIFOTYPE),
    "directory": member(f"x/{RUN}/raw/a", type=tarfile.DIRTYPE),
    "backslash": member("x\\..\\evil", b"x"),
    "no top": member("a", b"x"),
    "unlisted": member(f"x/{RUN}/raw/b", b"x"),
    "other content": member(f"x/{RUN}/raw/a", b"y"),
    "longer": member(f"x/{RUN}/raw/a", b"xx"),
}


@pytest.mark.parametrize("what", BAD)
def test_a_pack_writes_nothing_elsewhere(what: str, tmp_path: Path) -> None:
    place = tmp_path / "deep" / "target"
    place.parent.mkdir()
    before = sorted(tmp_path.rglob("*"))
    file = whole_pack(tmp_path / "bad.tar.zst", index_of({f"{RUN}/raw/a": b"x"}), BAD[what])
    with pytest.raises(PackError, match=r"would write outside|not in its index|is not the file|missing from it"):
        unpack(file, place)
    assert sorted(tmp_path.rglob("*")) == sorted([*before, file])


def test_a_link_in_the_way_is_not_followed(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    good = whole_pack(tmp_path / "good.tar.zst", index_of({f"{RUN}/raw/a": b"x"}), member(f"x/{RUN}/raw/a", b"x"))
    place = tmp_path / "target"
    place.symlink_to(outside)
    (outside / "there").touch()
    with pytest.raises(PackError, match="this exists already"):
        unpack(good, place)
    assert sorted(entry.name for entry in outside.iterdir()) == ["there"]
    unpack(good, tmp_path / "new")
    assert (tmp_path / "new" / RUN / "raw" / "a").read_bytes() == b"x"


@pytest.mark.parametrize("damage", ["cut off", "changed", "missing file", "no pack", "newer"])
def test_a_damaged_pack_is_refused_as_a_whole(damage: str, tmp_path: Path, recorded: RunDirectory) -> None:
    file = pack([recorded.path.parent], tmp_path / "x.tar.zst").file
    content = bytearray(file.read_bytes())
    if damage == "cut off":
        file.write_bytes(content[: len(content) * 2 // 3])
    elif damage == "changed":
        content[len(content) // 2] ^= 1
        file.write_bytes(content)
    elif damage == "missing file":
        whole_pack(file, index_of({f"{RUN}/raw/a": b"x", f"{RUN}/raw/b": b"y"}), member(f"x/{RUN}/raw/a", b"x"))
    elif damage == "no pack":
        archive(file, member(f"x/{RUN}/raw/a", b"x"))
    else:
        archive(file, member("x/pack.json", json.dumps({"format": FORMAT + 1, "files": {}}).encode()))
    with pytest.raises(PackError):
        unpack(file, tmp_path / "target")
    assert not (tmp_path / "target").exists()
    assert not list(tmp_path.glob(".partial-*"))


def test_paths_are_replaced_at_their_ends_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/al")
    paths = Paths(Path("/home/al/runs"), ["/data/linux"])
    said = b"/home/al/runs/x /home/al/y '/home/al' /home/alice /srv/home/al /data/linux/Makefile:3 /data/linux-next"
    assert paths.replaced(said) == (
        b"RUNS/x HOME/y 'HOME' /home/alice /srv/home/al ELSEWHERE/linux/Makefile:3 /data/linux-next"
    )
    tree = tmp_path / "linux"
    tree.mkdir()
    value = {"kernel": {"source": str(tree)}, "places": [f"{tree}:12"], "guest": "/howdah/in", "gone": "/no/such/path"}
    assert set(paths_in(value)) == {str(tree)}
    # A run that came from another machine names what is not here.
    assert set(paths_in([{"own": "/home/somebody/linux"}, "/root/mine.yaml:3"])) == {
        "/home/somebody/linux",
        "/root/mine.yaml",
    }


@pytest.mark.parametrize("name", ["jürgen", 'a "b"', "r & d", "it's", "<x>", "back\\slash", "日本"])
def test_paths_are_replaced_however_a_file_writes_them(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Records escape what is beyond ASCII, pages what is HTML's: one name each, or a page is not that of its runs."""
    monkeypatch.setenv("HOME", f"/home/{name}")
    monkeypatch.setenv("HOWDAH_CACHE", "/cache")
    path = f"/home/{name}/linux"
    for text in (
        path,
        json.dumps({"source": path}),
        json.dumps({"source": path}, ensure_ascii=False),
        str(escape(path)),
        str(script_json({"source": path})),
    ):
        assert Paths(Path("/runs")).replaced(text.encode()) == re.sub("/.*(?=/linux)", "HOME", text).encode()


def _entries(*more: PackedFile) -> tuple[PackIndex, list[PackedFile]]:
    """What the index says of two runs, and their files with an agent of a megabyte in each."""
    names = [f"e/{run}/{name}" for run in "12" for name in ("plan.json", "run.json")]
    agents = [PackedFile(f"e/{run}/share/agent", content=_AGENT) for run in "12"]
    empty = [PackedFile(name, content=b"") for name in names]
    return PackIndex(experiments=["e"], runs=["e/1", "e/2"]), [*empty, *agents, *more]


_AGENT = random.Random(1).randbytes(1_000_000)


def test_a_home_that_is_a_word_hides_no_words(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "1")
    monkeypatch.setenv("HOWDAH_CACHE", "/cache")  # else below that home, in a directory whose name may have a space
    assert Paths(Path("runs"), []).replaced(b'{"format": 1, "runs": []}') == b'{"format": 1, "runs": []}'


def test_what_each_run_has_is_in_a_pack_once(tmp_path: Path) -> None:
    """Also where megabytes are between, as the raw data of a run."""
    raw = PackedFile("e/1/raw/x", content=random.Random(2).randbytes(4_000_000))
    index = write_archive(tmp_path / "pack", "p", *_entries(raw))
    assert 5_000_000 < (tmp_path / "pack").stat().st_size < 5_100_000
    extract(tmp_path / "pack", tmp_path / "there")
    one, two = (tmp_path / "there" / "e" / run / "share" / "agent" for run in "12")
    assert two.read_bytes() == _AGENT
    assert two.samefile(one), "unpacked, it is there once, as where it was packed"
    assert [file.name for file in two.parent.iterdir()] == ["agent"]
    assert size_on_disk(index) == 5_000_000


def test_a_disk_without_links_gets_copies(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_archive(tmp_path / "pack", "p", *_entries())

    def refused(*_names: object) -> None:
        raise OSError(errno.EPERM, os.strerror(errno.EPERM))

    monkeypatch.setattr(os, "link", refused)
    extract(tmp_path / "pack", tmp_path / "there")
    assert all((tmp_path / "there" / "e" / run / "share" / "agent").read_bytes() == _AGENT for run in "12")


@pytest.mark.parametrize(
    ("name", "said"),
    [
        (".", "this is a directory, not a file"),
        ("/dev/null", "this is not a regular file"),
        ("no.zst", "there is no such file"),
    ],
)
def test_what_is_no_file_is_not_unpacked(
    name: str, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["unpack", name, "x"]) == 1
    assert capsys.readouterr().err == f"howdah: {name}: {said}\n"


def test_what_could_not_be_unpacked_is_not_packed(recorded: RunDirectory, tmp_path: Path) -> None:
    (recorded.raw / "-rf").write_text("x")
    seal(recorded, read_record(recorded))
    with pytest.raises(PackError, match="cannot be packed: 'recorded/recorded/raw/-rf' is not a file"):
        pack([recorded.path.parent], tmp_path / "x.tar.zst")
