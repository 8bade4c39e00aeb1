# SPDX-License-Identifier: Apache-2.0
"""What was built elsewhere is used where it is what this howdah would build; what is no such bundle is refused."""

from __future__ import annotations

import argparse
import dataclasses
import io
import os
import platform
import shutil
import subprocess
import tarfile
from pathlib import Path

import pytest

from howdah.build import cache as cache_module
from howdah.build import supply, tools
from howdah.build.bundle_file import MANIFEST, SIGNATURE, read_bundle
from howdah.build.cache import Cache
from howdah.build.inventory import sources_of
from howdah.build.supply import entry_from_bundle, is_in_bundle, take
from howdah.command import build as build_command
from howdah.command.build import signer_of, voucher_of
from howdah.errors import HowdahError, UsageError
from tests.unit.bundle_factory import RECIPE, ready_piece, write_bundle


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Cache:
    monkeypatch.delenv(supply.VARIABLE, raising=False)
    monkeypatch.setattr(supply, "installed", lambda: None)
    return Cache(tmp_path / "cache")


@pytest.fixture
def bundle(tmp_path: Path) -> Path:
    target = tmp_path / "howdah.bundle"
    write_bundle(target, [ready_piece(tmp_path)])
    return target


def test_a_bundle_gives_what_has_its_recipe_and_nothing_else(bundle: Path, cache: Cache) -> None:
    assert entry_from_bundle("module", RECIPE, cache) is None
    take(read_bundle(bundle), cache)
    entry = entry_from_bundle("module", RECIPE, cache)
    assert entry is not None
    assert (entry / "file").read_text() == "content"
    assert (entry / "link").readlink() == Path("file")
    assert entry.parent == cache.root / "module"
    assert entry_from_bundle("module", "another recipe", cache) is None
    assert entry_from_bundle("tool", RECIPE, cache) is None


def test_what_was_taken_needs_its_file_no_more_and_is_unpacked_once(bundle: Path, cache: Cache) -> None:
    take(read_bundle(bundle), cache)
    bundle.unlink()
    entry = entry_from_bundle("module", RECIPE, Cache(cache.root))
    assert entry is not None
    before = (entry / "file").stat()
    assert entry_from_bundle("module", RECIPE, Cache(cache.root)) == entry
    assert (entry / "file").stat().st_ino == before.st_ino
    shutil.rmtree(entry)
    assert entry_from_bundle("module", RECIPE, Cache(cache.root)) is None, "howdah builds what is gone"


def test_the_newest_bundle_counts_and_each_keeps_its_own(tmp_path: Path, cache: Cache) -> None:
    for made, content in (("2026-11-02", "new"), ("2026-10-01", "old")):
        target = tmp_path / f"{content}.bundle"
        write_bundle(target, [ready_piece(tmp_path / content, content=content)], made=made)
        take(read_bundle(target), cache)
    entry = entry_from_bundle("module", RECIPE, cache)
    assert entry is not None
    assert (entry / "file").read_text() == "new"
    assert len(cache.entries("module")) == 2, "the recipe is the same, and what was made of it is not"


def test_the_environment_names_a_bundle_or_none(bundle: Path, cache: Cache, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(supply.VARIABLE, str(bundle))
    assert is_in_bundle("module", RECIPE, cache)
    assert cache.entries("module") == [], "to look is not to unpack"
    assert entry_from_bundle("module", RECIPE, cache) is not None
    monkeypatch.setenv(supply.VARIABLE, "none")
    assert not is_in_bundle("module", RECIPE, cache)


def test_the_installed_package_is_a_bundle(bundle: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(supply.VARIABLE, raising=False)
    package = tmp_path / "site" / supply.PACKAGE
    package.mkdir(parents=True)
    (package / "__init__.py").touch()
    with tarfile.open(bundle) as archive:
        archive.extractall(package / "bundle", filter="data")
    monkeypatch.syspath_prepend(str(tmp_path / "site"))
    assert entry_from_bundle("module", RECIPE, Cache(tmp_path / "other")) is not None


def _place(bundle: Path) -> int:
    """Where the bytes of the one piece are."""
    with tarfile.open(bundle) as archive:
        return archive.getmember(read_bundle(bundle).pieces[0].file).offset_data


def _truncated(bundle: Path) -> None:
    bundle.write_bytes(bundle.read_bytes()[: _place(bundle) + 20])


def _replaced(bundle: Path) -> None:
    """A piece that is not what the manifest says, byte by byte of the same length."""
    content, place = bundle.read_bytes(), _place(bundle) + 20
    bundle.write_bytes(content[:place] + bytes([content[place] ^ 1]) + content[place + 1 :])


def _foreign(bundle: Path) -> None:
    with tarfile.open(bundle, "w") as archive:
        archive.addfile(tarfile.TarInfo("something-else"))


def _no_tar(bundle: Path) -> None:
    bundle.write_bytes(b"PK\x03\x04 not a bundle" * 100)


def _gone(bundle: Path) -> None:
    bundle.unlink()


def _pipe(bundle: Path) -> None:
    bundle.unlink()
    os.mkfifo(bundle)


@pytest.mark.parametrize(
    ("spoil", "said"),
    [
        (_truncated, "cut off"),
        (_replaced, "has the hash"),
        (_foreign, "not a bundle of howdah"),
        (_no_tar, "not a bundle of howdah"),
        (_gone, "no such bundle"),
        (_pipe, "a pipe, not a file"),
    ],
)
def test_what_is_no_whole_bundle_is_refused_and_leaves_nothing(
    spoil: object, said: str, bundle: Path, cache: Cache
) -> None:
    assert callable(spoil)
    spoil(bundle)
    with pytest.raises(HowdahError, match=said):
        take(read_bundle(bundle), cache)
    assert cache.entries("module") == []
    assert cache.entries("taken") == []


@pytest.mark.parametrize(
    ("changed", "said", "remedy"),
    [
        ({"format": 2}, "has format 2, and this howdah reads 1", "newer bundle"),
        ({"format": None}, "has format None", "newer bundle"),
        ({"machine": "aarch64"}, "for aarch64, and this machine is x86_64", "x86_64"),
        ({"pieces": [{"kind": "module"}]}, "not whole", "Fetch it again"),
        ({"pieces": 3}, "not whole", "Fetch it again"),
        ({"made": "yesterday"}, "not whole", "Fetch it again"),
        ({"made": "2026-99-99"}, "not whole", "Fetch it again"),
        ({"made": 20261128}, "not whole", "Fetch it again"),
        ({"documents": {"../../x": "0" * 64}}, "not whole", "Fetch it again"),
        ({"documents": {"/etc/x": "0" * 64}}, "not whole", "Fetch it again"),
    ],
)
def test_a_manifest_that_cannot_be_used_is_refused(
    changed: dict[str, object], said: str, remedy: str, tmp_path: Path
) -> None:
    target = tmp_path / "b"
    write_bundle(target, [ready_piece(tmp_path)], **changed)
    with pytest.raises(HowdahError, match=said) as caught:
        read_bundle(target)
    assert remedy in str(caught.value)
    assert str(target) in str(caught.value)


@pytest.mark.parametrize("wrong", [{"size": "1 MB"}, {"unpacked": -1}, {"about": None}, {"recipe": 5}, {"sha256": "0"}])
def test_a_piece_with_values_of_another_kind_is_refused(wrong: dict[str, object], tmp_path: Path) -> None:
    ready, file = ready_piece(tmp_path)
    target = tmp_path / "b"
    write_bundle(target, [(ready, file)], pieces=[{**dataclasses.asdict(ready), **wrong}])
    with pytest.raises(HowdahError, match="not whole"):
        read_bundle(target)


def test_a_directory_that_is_no_bundle_is_not_said_to_be_missing(tmp_path: Path) -> None:
    with pytest.raises(HowdahError, match="not a bundle of howdah"):
        read_bundle(tmp_path)


@pytest.mark.parametrize("content", [None, b"{}", b"[]", b"no JSON", b'{"packages": [5]}'])
def test_a_bundle_without_an_inventory_has_no_sources(content: bytes | None, tmp_path: Path) -> None:
    write_bundle(tmp_path / "tar", [ready_piece(tmp_path)])
    place = tmp_path / "place"
    with tarfile.open(tmp_path / "tar") as archive:
        archive.extractall(place, filter="data")
    if content is not None:
        (place / "spdx.json").write_bytes(content)
    with pytest.raises(HowdahError, match="spdx") as caught:
        sources_of(read_bundle(place))
    assert "Fetch it again" in str(caught.value)


@pytest.mark.parametrize("kind", ["../../escape", "log", "bundle", ""])
def test_a_piece_goes_to_no_other_place_of_the_cache(kind: str, tmp_path: Path) -> None:
    ready, file = ready_piece(tmp_path)
    target = tmp_path / "b"
    write_bundle(target, [(dataclasses.replace(ready, kind=kind), file)])
    with pytest.raises(HowdahError, match="not whole"):
        read_bundle(target)


def test_another_machine_is_told_that_it_is_one(bundle: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(platform, "machine", lambda: "aarch64")
    with pytest.raises(HowdahError, match="this machine is aarch64") as caught:
        read_bundle(bundle)
    assert "--cluster" in str(caught.value)


def test_without_room_nothing_is_begun(bundle: Path, cache: Cache, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cache_module, "_free_bytes", lambda _path: 1 << 20)
    with pytest.raises(HowdahError, match="disk is full") as caught:
        take(read_bundle(bundle), cache)
    assert "HOWDAH_CACHE" in str(caught.value)
    assert cache.entries("module") == []


def test_a_document_that_was_changed_is_found(tmp_path: Path, cache: Cache) -> None:
    target = tmp_path / "b"
    write_bundle(target, [ready_piece(tmp_path)], documents={"LICENSE": "0" * 64})
    with pytest.raises(HowdahError, match="LICENSE is not what"):
        take(read_bundle(target), cache)
    assert cache.entries("taken") == []


# Who vouches for a bundle


def test_nobody_is_taken_at_their_word(bundle: Path) -> None:
    found = read_bundle(bundle)
    with pytest.raises(HowdahError, match="nobody vouches") as caught:
        voucher_of(found, None, None, trust=False)
    assert found.digest in str(caught.value)
    assert "not signed" in voucher_of(found, None, None, trust=True)


def test_the_digest_that_was_asked_for_decides(bundle: Path) -> None:
    found = read_bundle(bundle)
    assert found.digest[:12] in voucher_of(found, found.digest.upper(), None, trust=False)
    with pytest.raises(HowdahError, match="this bundle has the digest"):
        voucher_of(found, "0" * 64, None, trust=True)


def _signed(bundle: Path, place: Path, name: str) -> Path:
    """Sign the bundle with a new key; the list of signers that has it."""
    key = place / name
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(key)], check=True)
    with tarfile.open(bundle) as archive:
        opened = archive.extractfile(MANIFEST)
        assert opened is not None
        (place / MANIFEST).write_bytes(opened.read())
    (place / SIGNATURE).unlink(missing_ok=True)
    command = ["ssh-keygen", "-Y", "sign", "-q", "-f", str(key), "-n", "howdah", str(place / MANIFEST)]
    subprocess.run(command, check=True, capture_output=True)
    content = (place / SIGNATURE).read_bytes()
    with tarfile.open(bundle, "a") as archive:
        member = tarfile.TarInfo(SIGNATURE)
        member.size = len(content)
        archive.addfile(member, io.BytesIO(content))
    signers = place / f"{name}.signers"
    signers.write_text(f"{name} {Path(f'{key}.pub').read_text()}")
    return signers


def _copy(bundle: Path, target: Path) -> Path:
    write_bundle(target, [ready_piece(target.parent / "piece", content="of another")])
    assert target.read_bytes() != bundle.read_bytes()
    return target


def test_a_signature_counts_where_its_signer_is_allowed(bundle: Path, tmp_path: Path) -> None:
    with pytest.raises(HowdahError, match="not signed"):
        voucher_of(read_bundle(bundle), None, tmp_path / "any", trust=True)
    signers = _signed(bundle, tmp_path, "alice")
    found = read_bundle(bundle)
    assert "alice" in voucher_of(found, None, signers, trust=False)
    other = tmp_path / "others"
    (tmp_path / "bob").mkdir()
    _signed(_copy(bundle, tmp_path / "bob" / "bundle"), tmp_path / "bob", "bob").rename(other)
    with pytest.raises(HowdahError, match="nobody in this list has signed it: Good") as caught:
        voucher_of(found, None, other, trust=True)
    assert caught.value.where == str(other)
    assert "public key" in str(caught.value.hint)
    with pytest.raises(HowdahError, match="no such list"):
        voucher_of(found, None, tmp_path / "missing", trust=True)


def test_a_signature_of_another_manifest_is_found(bundle: Path, tmp_path: Path) -> None:
    _signed(bundle, tmp_path, "alice")
    signature = (tmp_path / SIGNATURE).read_bytes()
    write_bundle(bundle, [ready_piece(tmp_path / "other", content="other")])
    with tarfile.open(bundle, "a") as archive:
        member = tarfile.TarInfo(SIGNATURE)
        member.size = len(signature)
        archive.addfile(member, io.BytesIO(signature))
    with pytest.raises(HowdahError, match="ssh-keygen refuses"):
        signer_of(read_bundle(bundle))


# Keys say what a thing is


def test_tools_are_named_by_what_they_are_not_by_the_compiler(cache: Cache, monkeypatch: pytest.MonkeyPatch) -> None:
    first = tools.build_tools(cache)
    monkeypatch.setattr(tools, "compiler_version", lambda: "gcc of another machine")
    second = tools.build_tools(cache)
    assert first.directory != second.directory, "another compiler may make another thing"
    assert first.key == second.key, "and here it made the same"


def test_tools_of_a_bundle_need_no_compiler(tmp_path: Path, cache: Cache, monkeypatch: pytest.MonkeyPatch) -> None:
    def missing() -> str:
        raise HowdahError("the C compiler gcc is not installed")

    monkeypatch.setattr(tools, "compiler_version", missing)
    with pytest.raises(HowdahError, match="gcc"):
        tools.build_tools(cache)
    place = tmp_path / "made"
    (place / "entry").mkdir(parents=True)
    for name in ("launch", "shim.so", "init"):
        (place / "entry" / name).write_text(name)
    target = tmp_path / "b"
    write_bundle(target, [ready_piece(place, "tool", tools.tools_recipe(), content="x")])
    (place / "entry" / "content").write_text("what they are")
    write_bundle(target, [ready_piece(place, "tool", tools.tools_recipe(), content="y")])
    take(read_bundle(target), cache)
    found = tools.build_tools(cache)
    assert found.key == "what they are"
    assert found.launch.read_text() == "launch"


@pytest.mark.parametrize("words", [["--trust"], ["--digest", "0" * 64], ["--allowed-signers", "signers"]])
def test_nobody_vouches_for_what_is_built_here(words: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(build_command, "build_all", lambda *_a: pytest.fail("nothing is built"))
    parser = argparse.ArgumentParser()
    build_command.arguments(parser)
    with pytest.raises(UsageError, match="--from"):
        build_command.execute(parser.parse_args(words))


def test_build_takes_a_bundle_before_anything_is_built(
    bundle: Path, cache: Cache, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(build_command, "Cache", lambda: cache)
    monkeypatch.setattr(
        build_command,
        "build_all",
        lambda _kernel, _progress: {"module": str(entry_from_bundle("module", RECIPE, cache))},
    )
    parser = argparse.ArgumentParser()
    build_command.arguments(parser)
    words = ["--from", str(bundle), "--digest", read_bundle(bundle).digest]
    assert build_command.execute(parser.parse_args(words)) == 0
    assert str(cache.root / "module") in capsys.readouterr().out
