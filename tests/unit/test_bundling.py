# SPDX-License-Identifier: Apache-2.0
"""A bundle is made of what the cache has: the same bytes each time, with all that the law and a reader ask for."""

from __future__ import annotations

import argparse
import errno
import hashlib
import json
import os
import re
import subprocess
import tarfile
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from howdah.build import supply
from howdah.build.bundle_file import MANIFEST, SIGNATURE, read_bundle
from howdah.build.cache import Cache
from howdah.build.guest_tree import COPYRIGHTS, GuestTree, keep_copyrights, tree_key
from howdah.build.inventory import components_of, inventory, sources_of
from howdah.build.supply import entry_from_bundle, take
from howdah.build.tools import Tools, tools_recipe
from howdah.build.uml_kernel import kernel_recipe
from howdah.command import bundle as bundle_command
from howdah.command.build import signer_of
from howdah.engine.share import build_agent
from howdah.engine.uml import bundling
from howdah.engine.uml.bundling import make_bundle
from howdah.errors import HowdahError, UsageError
from howdah.verify.signature import sign_file

KERNEL = "debian-6.12"
_PACKAGES = {"libc6": "2.41-12", "python3.13": "3.13.5-2+b1", "libgcc-s1": "14.2.0-19"}
_SOURCES = {
    "libc6": ("glibc", "2.41-12"),
    "python3.13": ("python3.13", "3.13.5-2"),
    "libgcc-s1": ("gcc-14", "14.2.0-19"),
}


def _silent(_what: str, _done: int, _total: int) -> None:
    pass


def _file(place: Path, content: str) -> Path:
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_text(content)
    return place


@pytest.fixture(autouse=True)
def built(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A cache with small stand-ins for kernel, tree, modules and tools; what would build them gives them."""
    cache = Cache(tmp_path / "cache")
    kinds = ("kernel", "tree", "agent", "module", "tool")
    kernel, tree, agent, module, tool = (tmp_path / "made" / kind / "abc" for kind in kinds)
    for name in ("linux", "kernel.json", "build/.config", "build/modules.builtin", "build/net/ipv4/tcp_vegas.ko"):
        _file(kernel / name, name)
    for name in ("build/Makefile", "build/scripts/.fixdep.cmd", "build/scripts/fixdep", "source/include/linux/tcp.h"):
        _file(kernel / name, name)
    (kernel / "build/source").symlink_to("/somewhere/that/is/gone")
    _file(tree / "root/usr/bin/python3", "python")
    _file(tree / "tree.json", "{}")
    _file(agent / "howdah/agent/start.py", "agent")
    _file(module / "ss_search.ko", "module")
    _file(tool / "launch", "launch")
    found = SimpleNamespace(
        tools=SimpleNamespace(directory=tool, key="the tools"),
        agent=agent,
        kernel=SimpleNamespace(
            directory=kernel,
            build_dir=kernel / "build",
            source_dir=kernel / "source",
            release="6.12.117",
            image_sha256="0" * 64,
            source="linux-source-6.12 6.12.117-1",
            compiler="gcc 14",
        ),
        tree=GuestTree(tree / "root", "abc", "sha", _PACKAGES, _SOURCES),
        modules=[SimpleNamespace(file=module / "ss_search.ko")],
        module_set=SimpleNamespace(failed={}),
    )
    monkeypatch.setattr(bundling, "build", lambda *_a, **_n: found)
    monkeypatch.setattr(bundling, "Cache", lambda: cache)
    monkeypatch.setattr(supply, "installed", lambda: None)
    monkeypatch.delenv(supply.VARIABLE, raising=False)
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1764288000")


def test_two_bundles_have_the_same_bytes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = make_bundle(tmp_path / "a", [KERNEL], [], _silent, level=1)
    monkeypatch.setattr(bundling, "Cache", lambda: Cache(tmp_path / "another"))
    second = make_bundle(tmp_path / "b", [KERNEL], [], _silent, level=1)
    assert first == second
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()
    assert read_bundle(tmp_path / "a").made == "2025-11-28"
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "a while ago")
    with pytest.raises(UsageError, match="SOURCE_DATE_EPOCH"):
        make_bundle(tmp_path / "c", [KERNEL], [], _silent, level=1)
    assert not list(tmp_path.glob("*c*-*")), "nothing half written stays"


def test_another_machine_finds_all_of_it_by_its_recipes(tmp_path: Path) -> None:
    make_bundle(tmp_path / "a", [KERNEL], [], _silent, level=1)
    there = Cache(tmp_path / "there")
    take(read_bundle(tmp_path / "a"), there)
    kernel = entry_from_bundle("kernel", str(kernel_recipe(KERNEL)), there)
    tree = entry_from_bundle("tree", tree_key(), there)
    tools = entry_from_bundle("tool", tools_recipe(), there)
    own = Tools(tmp_path, tmp_path / "launch", tmp_path / "shim.so", "the tools")
    agent = build_agent("netlink", GuestTree(tmp_path, "of another cache", "sha", {}, {}), own, there)
    assert kernel is not None
    assert tree is not None
    assert tools is not None
    assert (kernel / "linux").read_text() == "linux"
    assert (agent / "howdah/agent/start.py").read_text() == "agent"
    assert (kernel / "build/net/ipv4/tcp_vegas.ko").is_file()
    assert not (kernel / "source").exists(), "what modules are built against is a piece of its own"
    assert (tree / "root/usr/bin/python3").read_text() == "python"
    assert entry_from_bundle("tree", tree_key(("flent", "iperf")), there) is None
    (headers,) = there.entries("headers")
    assert (headers / "source/include/linux/tcp.h").is_file()
    assert (headers / "build/scripts/fixdep").is_file()
    for name in ("build/Makefile", "build/source", "build/scripts/.fixdep.cmd"):
        assert not (headers / name).is_symlink()
        assert not (headers / name).exists(), "these name a directory of the machine that built it"


def test_a_directory_is_filled_as_the_wheel_has_it(tmp_path: Path) -> None:
    place = tmp_path / "place"
    place.mkdir()
    digest = make_bundle(place, [KERNEL], [], _silent, level=1)
    bundle = read_bundle(place)
    assert bundle.digest == digest == hashlib.sha256((place / MANIFEST).read_bytes()).hexdigest()
    for name, sha256 in bundle.documents.items():
        assert hashlib.sha256((place / name).read_bytes()).hexdigest() == sha256
    assert {"LICENSES/GPL-2.0-only.txt", "config-6.12.117", "spdx.json"} <= set(bundle.documents)
    assert (place / "config-6.12.117").read_text() == "build/.config"


def test_it_is_signed_as_it_is_written(tmp_path: Path) -> None:
    key = tmp_path / "key"
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(key)], check=True)
    make_bundle(tmp_path / "a", [KERNEL], [], _silent, level=1, sign=lambda file: sign_file(file, key))
    with tarfile.open(tmp_path / "a") as archive:
        assert archive.getnames()[0] == MANIFEST
        assert SIGNATURE in archive.getnames()
    signers = _file(tmp_path / "signers", f"alice {Path(f'{key}.pub').read_text()}")
    assert "alice" in str(signer_of(read_bundle(tmp_path / "a"), signers))


def test_a_tree_is_in_no_bundle(tmp_path: Path) -> None:
    for kernel in ("/home/me/linux", "debian-newest"):
        with pytest.raises(HowdahError, match="has none that other machines know"):
            make_bundle(tmp_path / "a", [kernel], [], _silent)
    with pytest.raises(UsageError, match="no guest tree has packages for 'flennt'") as caught:
        make_bundle(tmp_path / "a", [KERNEL], ["flennt"], _silent)
    assert "flent" in str(caught.value.hint)


def test_a_place_that_takes_no_bundle_is_told_before_anything_is_packed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bundling, "build", lambda *_a, **_n: pytest.fail("nothing is built"))
    _file(tmp_path / "full" / "mine", "kept")
    for target, said in (
        (tmp_path / "full", "not empty"),
        (tmp_path / "missing" / "a", "cannot be written: No such file or directory"),
        (tmp_path / "full" / "mine" / "a", "cannot be written: Not a directory"),
    ):
        with pytest.raises(HowdahError, match=said) as caught:
            make_bundle(target, [KERNEL], [], _silent)
        assert caught.value.where == str(target)
    assert [file.name for file in (tmp_path / "full").iterdir()] == ["mine"]


def test_a_full_disk_is_that_of_the_bundle(tmp_path: Path) -> None:
    error = bundling._not_written(tmp_path / "a", OSError(errno.ENOSPC, os.strerror(errno.ENOSPC)))
    assert str(tmp_path / "a") in str(error)
    assert "another disk" in str(error)
    assert "HOWDAH_CACHE" not in str(error)


@pytest.mark.parametrize(
    ("words", "error", "said"),
    [
        (["--key", "missing"], HowdahError, "no such key"),
        (["--sources", "s", "--key", "missing"], UsageError, "--sources"),
        (["--sources", "s", "--kernel", KERNEL], UsageError, "--sources"),
        (["--sources", "s", "--with", "flent"], UsageError, "--sources"),
        (["--sources", "s"], HowdahError, "no such bundle"),
    ],
)
def test_a_wrong_command_line_packs_nothing(
    words: list[str], error: type[HowdahError], said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(bundle_command, "make_bundle", lambda *_a, **_n: pytest.fail("nothing is packed"))
    parser = argparse.ArgumentParser()
    bundle_command.arguments(parser)
    with pytest.raises(error, match=said):
        bundle_command.execute(parser.parse_args(["--output", "a", *words]))
    assert list(tmp_path.glob("s")) == []


def test_the_inventory_has_every_package_with_its_source(tmp_path: Path) -> None:
    make_bundle(tmp_path / "a", [KERNEL], [], _silent, level=1)
    bundle = read_bundle(tmp_path / "a")
    assert sources_of(bundle) == [
        ("gcc-14", "14.2.0-19"),
        ("glibc", "2.41-12"),
        ("linux", "6.12.117-1"),
        ("python3.13", "3.13.5-2"),
    ]
    bundle.extract("spdx.json", tmp_path / "spdx.json")
    value: dict[str, Any] = json.loads((tmp_path / "spdx.json").read_text())
    assert value["spdxVersion"] == "SPDX-2.3"
    listed = {package["name"]: package for package in value["packages"]}
    assert set(listed) == {*_PACKAGES, "linux", "howdah"}
    url = listed["python3.13"]["externalRefs"][0]["referenceLocator"]
    assert url == "pkg:deb/debian/python3.13@3.13.5-2%2Bb1?arch=amd64&distro=trixie"
    identities = [package["SPDXID"] for package in value["packages"]]
    assert len(set(identities)) == len(identities)
    assert all(re.fullmatch(r"SPDXRef-[A-Za-z0-9.-]+", each) for each in identities)
    assert sorted(each["relatedSpdxElement"] for each in value["relationships"]) == sorted(identities)
    required = {"SPDXID", "name", "downloadLocation", "licenseConcluded", "licenseDeclared", "copyrightText"}
    assert all(required <= set(package) for package in value["packages"])


def test_the_inventory_is_a_function_of_its_packages() -> None:
    components = components_of(GuestTree(Path(), "", "", _PACKAGES, cast("Any", _SOURCES)))
    assert inventory(components, "2026-11-28") == inventory(reversed(components), "2026-11-28")
    assert inventory(components[1:], "2026-11-28") != inventory(components, "2026-11-28")


def test_every_package_keeps_its_terms(tmp_path: Path) -> None:
    documents = tmp_path / "root/usr/share/doc"
    _file(documents / "gcc-14-base/copyright", "terms of gcc")
    _file(documents / "python3.13/copyright", "terms of Python")
    _file(documents / "python3.13/README", "long")
    (documents / "libgcc-s1").symlink_to("gcc-14-base")
    (documents / "empty").mkdir()
    keep_copyrights(tmp_path / "root", tmp_path / COPYRIGHTS)
    kept = {file.name: file.read_text() for file in (tmp_path / COPYRIGHTS).iterdir()}
    assert kept == {"gcc-14-base": "terms of gcc", "libgcc-s1": "terms of gcc", "python3.13": "terms of Python"}
