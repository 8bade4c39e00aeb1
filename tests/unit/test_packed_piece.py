# SPDX-License-Identifier: Apache-2.0
"""What is sent to a worker: the same bytes for the same files, checked, and kept where it belongs."""

from __future__ import annotations

import asyncio
import io
import json
import tarfile
from collections.abc import Coroutine
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import zstandard

from howdah.build.cache import Cache, file_sha256
from howdah.build.packed_piece import PackedPiece, Piece, pack_piece, unpack_piece
from howdah.cluster.message import MadeRun, WantedBundle
from howdah.cluster.store import Store, check_programs
from howdah.engine.engine_bundle import sent_bundle, write_sent
from howdah.errors import HowdahError


@pytest.fixture
def piece(tmp_path: Path) -> Piece:
    """A small file system: a program, a link, an empty directory."""
    entry = tmp_path / "built" / "tree" / "abc"
    (entry / "root" / "bin").mkdir(parents=True)
    (entry / "root" / "empty").mkdir()
    program = entry / "root" / "bin" / "run"
    program.write_bytes(b"\x7fELF" + bytes(5000))
    program.chmod(0o755)
    (entry / "root" / "bin" / "sh").symlink_to("/bin/run")
    return Piece("tree/abc", entry)


def _cache(tmp_path: Path, name: str) -> Cache:
    return Cache(tmp_path / name)


def test_a_piece_comes_out_as_it_went_in(piece: Piece, tmp_path: Path) -> None:
    packed_piece, file = pack_piece(piece, _cache(tmp_path, "a"))
    out = tmp_path / "out"
    with file.open("rb") as opened:
        unpack_piece(opened, packed_piece, out)
    assert (out / "root/bin/run").read_bytes() == (piece.directory / "root/bin/run").read_bytes()
    assert (out / "root/bin/run").stat().st_mode & 0o777 == 0o755
    assert str((out / "root/bin/sh").readlink()) == "/bin/run"
    assert (out / "root/empty").is_dir()


def test_the_same_files_give_the_same_hash_and_others_another(piece: Piece, tmp_path: Path) -> None:
    first, _ = pack_piece(piece, _cache(tmp_path, "a"))
    second, _ = pack_piece(piece, _cache(tmp_path, "b"))
    (piece.directory / "root/bin/run").write_bytes(b"another")
    third, _ = pack_piece(piece, _cache(tmp_path, "c"))
    assert first == second
    assert first.sha256 != third.sha256


def test_chosen_files_alone_are_sent(piece: Piece, tmp_path: Path) -> None:
    packed_piece, file = pack_piece(Piece(piece.name, piece.directory, ("root/bin/run",)), _cache(tmp_path, "a"))
    with file.open("rb") as opened:
        unpack_piece(opened, packed_piece, tmp_path / "out")
    assert [each.name for each in (tmp_path / "out").rglob("*") if not each.is_dir()] == ["run"]


def test_a_changed_packed_piece_is_not_kept(piece: Piece, tmp_path: Path) -> None:
    packed_piece, file = pack_piece(piece, _cache(tmp_path, "a"))
    store = Store(_cache(tmp_path, "worker"))
    content = bytearray(file.read_bytes())
    content[len(content) // 2] ^= 1
    with store.incoming() as received, pytest.raises(HowdahError, match="has the hash"):
        received.write(content)
        store.take(packed_piece, received)
    assert store.lacks([packed_piece]) == [packed_piece]


@pytest.mark.parametrize("name", ["../out", "/etc/x", "link/inside"])
def test_a_packed_piece_writes_nowhere_else(tmp_path: Path, name: str) -> None:
    content = io.BytesIO()
    with tarfile.open(fileobj=content, mode="w") as archive:
        link = tarfile.TarInfo("link")
        link.type, link.linkname = tarfile.SYMTYPE, str(tmp_path)
        archive.addfile(link)
        member = tarfile.TarInfo(name)
        archive.addfile(member, io.BytesIO())
    file = tmp_path / "packed_piece"
    file.write_bytes(zstandard.ZstdCompressor().compress(content.getvalue()))
    packed_piece = PackedPiece("tree/x", file_sha256(file), file.stat().st_size)
    with file.open("rb") as opened, pytest.raises(HowdahError, match="must not"):
        unpack_piece(opened, packed_piece, tmp_path / "into")
    assert sorted(each.name for each in tmp_path.iterdir()) == ["into", "packed_piece"]


def test_a_kit_needs_its_packed_pieces(piece: Piece, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    packed_piece, file = pack_piece(piece, _cache(tmp_path, "a"))
    store = Store(_cache(tmp_path, "worker"))
    wanted = WantedBundle("0123456789", "uml", {"part": {"tree": packed_piece.name}}, {}, packed_pieces=(packed_piece,))
    with pytest.raises(HowdahError, match="is not here"):
        store.keep_bundle(wanted)
    with store.incoming() as received:
        received.write(file.read_bytes())
        store.take(packed_piece, received)
    store.keep_bundle(wanted)
    bundle = store.bundle("0123456789")
    assert bundle is not None
    monkeypatch.setenv("HOWDAH_ENGINE_BUNDLE", str(bundle))
    sent = sent_bundle("uml")
    assert sent is not None
    assert (sent.place("tree/abc") / "root/bin/run").is_file()
    assert sent_bundle("vm") is None


def test_a_program_for_a_newer_c_library_is_refused(tmp_path: Path) -> None:
    program = tmp_path / "launch"
    program.write_bytes(b"\x7fELF..GLIBC_2.2.5\0GLIBC_2.99\0")
    with pytest.raises(HowdahError, match=r"launch needs glibc 2\.99, and this machine has"):
        check_programs([program])
    program.write_bytes(b"\x7fELF..GLIBC_2.2.5\0")
    check_programs([program])


def test_a_finished_run_waits_until_it_is_fetched(tmp_path: Path) -> None:
    store = Store(_cache(tmp_path, "worker"))
    pack = store.scratch / "pack"
    pack.write_bytes(b"run")
    made = MadeRun("ab" * 32, "cubic-r0", "pass", False, None, True, "cd" * 32, "ef" * 32, 3, 1.0)
    store.put(made, pack)
    assert Store(store.cache).unfetched() == [made]
    assert store.find(made.key) == made
    assert store.pack_of(made.key).read_bytes() == b"run"
    (result,) = store.scratch.glob("*/result.json")
    result.write_text('{"key": "of another version"}')
    assert store.unfetched() == []
    assert store.find(made.key) is None, "it is made again"
    store.drop(made.key)
    assert [line.split()[1] for line in store.made.read_text().splitlines()] == ["ab" * 32]


@pytest.mark.parametrize("name", ["../../etc", "ABC", "", "a/b"])
def test_names_in_a_store_are_hashes(tmp_path: Path, name: str) -> None:
    with pytest.raises(HowdahError, match="is not a hash"):
        Store(_cache(tmp_path, "worker")).pack_of(name)


def test_all_workers_of_a_cache_are_one_store(tmp_path: Path) -> None:
    assert Store(_cache(tmp_path, "a")).name == Store(_cache(tmp_path, "a")).name
    assert Store(_cache(tmp_path, "a")).name != Store(_cache(tmp_path, "b")).name


def _result(coroutine: Coroutine[Any, Any, Any]) -> Any:
    """What a coroutine gives, in a thread of its own: where browser tests ran, Playwright's loop runs in this one."""
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(asyncio.run, coroutine).result()


def test_a_packed_piece_that_comes_in_parts(piece: Piece, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    worker = pytest.importorskip("howdah.cluster.worker", reason="Dask is not installed")
    packed_piece, file = pack_piece(piece, _cache(tmp_path, "a"))
    monkeypatch.setenv("HOWDAH_CACHE", str(tmp_path / "worker"))
    content, half = file.read_bytes(), packed_piece.size // 2
    assert _result(worker.take_chunk(packed_piece, "one", 0, content[:half])) == half
    assert _result(worker.lacks([packed_piece])) == [packed_piece.sha256]
    assert _result(worker.take_chunk(packed_piece, "one", half, content[half:])) == packed_piece.size
    assert _result(worker.lacks([packed_piece])) == []
    wrong = replace(packed_piece, sha256="0" * 64)
    assert "has the hash" in _result(worker.take_chunk(wrong, "two", 0, content))["error"]


def test_a_kit_that_is_gone_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "bundle.json"
    monkeypatch.setenv("HOWDAH_ENGINE_BUNDLE", str(file))
    with pytest.raises(HowdahError, match="no longer in the cache"):
        sent_bundle("uml")
    write_sent(file, "uml", {}, {"tree/a": tmp_path})
    assert json.loads(file.read_text())["places"] == {"tree/a": str(tmp_path)}
