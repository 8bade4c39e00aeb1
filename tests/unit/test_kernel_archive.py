# SPDX-License-Identifier: Apache-2.0
"""Which kernel source is chosen from what Debian's suites offer. No network: apt's answers are recorded or replaced."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path

import pytest

from howdah.build import archive, kernel_package
from howdah.build import source_package as package
from howdah.build.archive import Archive, Offer, best_offers, read_suites, release_order, source_lines
from howdah.build.cache import Cache
from howdah.build.kernel_package import best_offer, newest, offers, provide_image
from howdah.build.kernel_source import find_source, provide_source
from howdah.build.source_package import UnsupportedKernelError
from howdah.build.stock_kernel import modules_by_name, with_needed
from howdah.build.tools import Tools
from howdah.errors import HowdahError

_MADISON = """\
linux-source-6.1 |  6.1.192-2 | http://d.example/debian-security bookworm-security/main amd64 Packages
linux-source-6.1 | 6.1.180-1~deb11u1 | http://d.example/debian-security bullseye-security/main amd64 Packages
linux-source-6.1 |  6.1.176-1 | http://d.example/debian bookworm/main amd64 Packages
linux-source-6.12 | 6.12.117-1~deb12u1 | http://d.example/debian-security bookworm-security/main amd64 Packages
linux-source-6.12 | 6.12.107-1 | http://d.example/debian trixie/main amd64 Packages
linux-source-7.3 | 7.3.4-1~bpo13+1 | http://d.example/debian trixie-backports/main amd64 Packages
linux-source-6.12-rt | 1 | http://d.example/debian trixie/main amd64 Packages
"""


def _silent(_what: str, _done: int, _total: int) -> None:
    """No progress display."""


@pytest.fixture
def cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Cache:
    """An empty cache on a machine where no package is installed; the launcher need not be compiled."""
    monkeypatch.setattr(package, "PACKAGE_DIRECTORY", tmp_path / "usr-src")
    monkeypatch.setattr(package, "build_tools", lambda _cache: Tools(tmp_path, tmp_path, tmp_path, ""))
    return Cache(tmp_path / "cache")


@pytest.fixture
def suites(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Suites that offer what _MADISON says; the list collects what was asked of them."""
    asked: list[str] = []

    def update(self: Archive, _log: Path, _launcher: Path | None = None) -> list[str]:
        asked.append("update")
        self.root.mkdir(parents=True, exist_ok=True)
        (self.root / "updated").touch()
        return []

    def fetch(_self: Archive, offer: Offer, into: Path, _log: Path, _launcher: Path | None = None) -> tuple[Path, str]:
        asked.append(f"fetch {offer.package} {offer.version}")
        (into / f"{offer.package}.tar.xz").write_bytes(b"an archive")
        return into / "x.deb", "ab" * 32

    monkeypatch.setattr(Archive, "update", update)
    monkeypatch.setattr(Archive, "offers", lambda _self: best_offers(_MADISON))
    monkeypatch.setattr(Archive, "fetch", fetch)
    monkeypatch.setattr(package, "_unpack", lambda *_arguments: None)
    return asked


def test_of_each_release_the_highest_version_of_all_suites() -> None:
    offers = best_offers(_MADISON)
    assert sorted(offers, key=release_order) == ["6.1", "6.12", "7.3"]
    assert offers["6.1"] == Offer("linux-source-6.1", "6.1", "6.1.192-2", "bookworm-security")
    assert offers["6.12"].version == "6.12.117-1~deb12u1"
    assert offers["7.3"].suite == "trixie-backports"


def test_releases_are_ordered_as_numbers() -> None:
    assert sorted(["6.12", "6.1", "5.10", "7.2", "6.2"], key=release_order) == ["5.10", "6.1", "6.2", "6.12", "7.2"]


def test_the_shipped_suites_become_signed_sources() -> None:
    lines = source_lines(read_suites())
    assert all(line.startswith("deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] http") for line in lines)
    for suite in ("bullseye-security", "bookworm", "bookworm-security", "trixie-backports"):
        assert any(f" {suite} main" in line for line in lines)


@pytest.mark.parametrize("line", ["ubuntu noble", "debian", "debian trixie main"])
def test_a_wrong_suite_is_named_with_its_line(tmp_path: Path, line: str) -> None:
    (tmp_path / "suites.txt").write_text(f"# comment\ndebian trixie\n{line}\n")
    with pytest.raises(ValueError, match=r"suites\.txt:3"):
        read_suites(tmp_path / "suites.txt")


def test_a_source_is_fetched_once_and_then_found_offline(cache: Cache, suites: list[str]) -> None:
    with pytest.raises(HowdahError, match=r"source of debian-6\.1 is not here") as caught:
        find_source("debian-6.1", cache)
    assert "howdah build --kernel debian-6.1" in str(caught.value)
    fetched = provide_source("debian-6.1", _silent, cache)
    assert suites == ["update", "fetch linux-source-6.1 6.1.192-2"]
    assert (fetched.name, fetched.description) == ("debian-6.1", "linux-source-6.1 6.1.192-2")
    assert fetched.release == (6, 1)
    assert provide_source("6.1", _silent, cache) == find_source("linux-source-6.1", cache) == fetched
    assert len(suites) == 2, "the network was asked again"
    assert json.loads((fetched.archive.parent / "source.json").read_text()) == {  # type: ignore[union-attr]
        "package": "linux-source-6.1",
        "version": "6.1.192-2",
        "suite": "bookworm-security",
        "sha256": "ab" * 32,
    }


@pytest.mark.usefixtures("suites")
def test_the_package_version_is_part_of_the_key(cache: Cache, monkeypatch: pytest.MonkeyPatch) -> None:
    first = provide_source("debian-6.1", _silent, cache)
    monkeypatch.setattr(Archive, "offers", lambda _self: best_offers(_MADISON.replace("6.1.192-2", "6.1.193-1")))
    again = provide_source("debian-6.1", _silent, Cache(cache.root.parent / "other"))
    assert again.description == "linux-source-6.1 6.1.193-1"
    assert again.key != first.key


@pytest.mark.usefixtures("suites")
def test_an_installed_package_comes_before_a_fetched_one(cache: Cache) -> None:
    provide_source("debian-6.1", _silent, cache)
    package.PACKAGE_DIRECTORY.mkdir()
    (package.PACKAGE_DIRECTORY / "linux-source-6.1.tar.xz").write_bytes(b"installed")
    assert find_source("debian-6.1", cache).archive == package.PACKAGE_DIRECTORY / "linux-source-6.1.tar.xz"


@pytest.mark.usefixtures("suites")
def test_the_newest_is_the_highest_offered(cache: Cache) -> None:
    found = provide_source("debian-newest", _silent, cache)
    assert (found.name, found.description) == ("debian-7.3", "linux-source-7.3 7.3.4-1~bpo13+1")
    assert find_source("debian-newest", cache) == found


def test_the_newest_is_asked_of_the_archive_once_a_day(cache: Cache, suites: list[str]) -> None:
    provide_source("debian-newest", _silent, cache)
    provide_source("debian-newest", _silent, cache)
    before = suites.count("update")
    yesterday = time.time() - 25 * 3600
    os.utime(cache.root / "apt/updated", (yesterday, yesterday))
    provide_source("debian-newest", _silent, cache)
    assert suites.count("update") == before + 1


@pytest.mark.usefixtures("suites")
def test_a_version_nobody_offers_is_unsupported_and_the_offers_are_named(cache: Cache) -> None:
    with pytest.raises(UnsupportedKernelError, match=r"debian-4\.19 is unsupported") as caught:
        provide_source("debian-4.19", _silent, cache)
    assert "debian-6.1 (6.1.192-2, bookworm-security)" in str(caught.value)
    assert "debian-7.3" in str(caught.value)


def test_without_the_network_what_apt_said_is_told(cache: Cache, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Archive, "update", lambda *_arguments: ["Could not resolve 'd.example'"])
    monkeypatch.setattr(Archive, "offers", lambda _self: {})
    for kernel in ("debian-6.1", "debian-newest"):
        with pytest.raises(UnsupportedKernelError, match=r"Could not resolve 'd\.example'"):
            provide_source(kernel, _silent, cache)


def test_what_does_not_match_the_signed_index_is_thrown_away(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """apt's own check is not the only one."""

    def download(_command: list[str], _log: Path, *, cwd: Path, launcher: Path | None = None) -> None:
        assert launcher is None
        (cwd / "linux-source-6.1_1_all.deb").write_bytes(b"something else")

    monkeypatch.setattr(archive, "run_logged", download)
    monkeypatch.setattr(Archive, "ask", lambda *_arguments: f"Package: x\nSHA256: {'0' * 64}\n")
    offer = Offer("linux-source-6.1", "6.1", "6.1.192-2", "bookworm-security")
    with pytest.raises(HowdahError, match=r"what was fetched is not linux-source-6\.1 6\.1\.192-2"):
        Archive(Cache(tmp_path / "cache")).fetch(offer, tmp_path, tmp_path / "log")
    assert not list(tmp_path.glob("*.deb"))


def test_nothing_is_trusted_without_the_keys(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archive, "KEYRING", tmp_path / "none.gpg")
    with pytest.raises(HowdahError, match="keys of Debian's archive") as caught:
        Archive(Cache(tmp_path)).update(tmp_path / "log")
    assert "debian-archive-keyring" in str(caught.value)


# Which of Debian's kernel packages is taken. No network: what the suites offer is written here

# A security update has come to the newer suite, and not yet to this machine's.
_RELEASES = (
    ("6.12.117+deb12-amd64", "6.12.117-1~deb12u1", "bookworm-security"),
    ("6.12.115+deb12-amd64", "6.12.115-1~deb12u1", "bookworm-security"),
    ("6.12.118+deb13-amd64", "6.12.118-1", "trixie-security"),
)
_OWN, _NEWER = "linux-image-6.12.117+deb12-amd64", "linux-image-6.12.118+deb13-amd64"


class _AskedError(Exception):
    """Ends the test where a package would be fetched."""


def _taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, usable: set[str], *, for_modules: bool) -> str:
    def asked(_archive: Archive, kind: str, _release: str) -> list[Offer]:
        return [Offer(f"{kind}-{name}", "6.12", version, suite) for name, version, suite in _RELEASES]

    def parts(_archive: Archive, chosen: Offer) -> list[Offer]:
        raise _AskedError(chosen.package)

    monkeypatch.setattr(Archive, "stamp", lambda _self: "today")
    monkeypatch.setattr(kernel_package, "_query", asked)
    monkeypatch.setattr(kernel_package, "_usable_suites", lambda: usable)
    monkeypatch.setattr(kernel_package, "_parts", parts)
    (tmp_path / "apt").mkdir()
    with pytest.raises(_AskedError) as chosen:
        provide_image("6.12", Cache(tmp_path), lambda *_: None, for_modules=for_modules)
    return str(chosen.value)


@pytest.mark.parametrize(
    ("usable", "for_modules", "package"),
    [
        ({"bookworm-security"}, True, _OWN),
        ({"bookworm-security"}, False, _NEWER),
        ({"bookworm-security", "trixie-security"}, True, _NEWER),
        (set(), True, _NEWER),
    ],
)
def test_modules_need_the_newest_kernel_whose_headers_run_here(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, usable: set[str], for_modules: bool, package: str
) -> None:
    assert _taken(tmp_path, monkeypatch, usable, for_modules=for_modules) == package


@pytest.fixture
def listed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Archive, list[tuple[str, ...]]]:
    """An archive on a machine of bookworm, and what apt is asked."""
    asked: list[tuple[str, ...]] = []
    there = {
        "linux-image-6.12.9+deb12-amd64": ("6.12.9-1~deb12u1", "bookworm-security"),
        "linux-image-6.12.10+deb12-amd64": ("6.12.10-1~deb12u1", "bookworm-security"),
        "linux-image-6.12.11+deb13-amd64": ("6.12.11-1", "trixie-security"),
        "linux-image-6.12.11+deb13-cloud-amd64": ("6.12.11-1", "trixie-security"),
        "linux-image-6.1.0-40-amd64": ("6.1.150-1", "bookworm"),
        "linux-headers-6.12.10+deb12-amd64": ("6.12.10-1~deb12u1", "bookworm-security"),
    }

    def ask(_archive: Archive, *words: str) -> str:
        asked.append(words)
        if words[0] == "pkgnames":
            return "\n".join(name for name in there if name.startswith(words[1]))
        lines = (f"{name} | {there[name][0]} | http://d.example/debian {there[name][1]}/main amd64 Packages"
                 for name in words[1:])  # fmt: skip
        return "\n".join(lines)

    monkeypatch.setattr(Archive, "ask", ask)
    monkeypatch.setattr(kernel_package, "codename", lambda: "bookworm")
    made = Archive(Cache(tmp_path / "cache"))
    made.root.mkdir(parents=True)
    return made, asked


def _versions(archive: Archive, release: str, *, all_suites: bool) -> set[str]:
    return {each.version for each in offers(archive, "linux-image", release, all_suites=all_suites)}


def test_images_of_a_release_are_those_of_its_names_and_usable_suites(
    listed: tuple[Archive, list[tuple[str, ...]]],
) -> None:
    made, _asked = listed
    assert _versions(made, "6.12", all_suites=True) == set(), "the index was never read"
    made.set_age(0)
    own = {"6.12.9-1~deb12u1", "6.12.10-1~deb12u1"}
    assert _versions(made, "6.12", all_suites=False) == own
    assert _versions(made, "6.12", all_suites=True) == {*own, "6.12.11-1"}, "no image of a cloud"
    assert _versions(made, "6.1", all_suites=True) == {"6.1.150-1"}, "6.12 is no 6.1"
    assert _versions(made, "newest", all_suites=False) == {*own, "6.1.150-1"}
    assert newest(offers(made, "linux-image", "6.12", all_suites=False)).version == "6.12.10-1~deb12u1"


def test_apt_is_asked_once_for_each_state_of_its_index(listed: tuple[Archive, list[tuple[str, ...]]]) -> None:
    made, asked = listed
    made.set_age(10)
    for _ in range(2):
        assert _versions(made, "6.1", all_suites=True)
    assert [words[0] for words in asked] == ["pkgnames", "madison"]
    made.set_age(0)
    assert _versions(made, "6.1", all_suites=True)
    assert len(asked) == 4, "the index was brought up to date"
    for _ in range(2):
        assert not _versions(made, "5.10", all_suites=True)
    assert [words[0] for words in asked[4:]] == ["pkgnames"] * 2, "what is not there today may be there soon"


def test_an_index_without_the_package_is_brought_up_to_date(
    listed: tuple[Archive, list[tuple[str, ...]]], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    made, _asked = listed

    def update(archive: Archive, _log: Path) -> list[str]:
        archive.set_age(0)
        return ["Could not resolve 'd.example'"]

    monkeypatch.setattr(Archive, "update", update)
    cache = Cache(tmp_path / "cache")
    assert best_offer(made, "linux-image", "6.12", cache, all_suites=False).package == "linux-image-6.12.10+deb12-amd64"
    with pytest.raises(HowdahError, match=r"no suite offers linux-image of 5\.10") as caught:
        best_offer(made, "linux-image", "5.10", cache, all_suites=False)
    assert "Could not resolve" in str(caught.value), "what apt said"


def _modules(directory: Path, **depends: str) -> Path:
    for name, needed in depends.items():
        place = directory / f"{name.replace('_', '-')}.ko"
        place.write_bytes(f"\x7fELF\0depends={needed}\0name={name}\0".encode())
    return directory


def test_modules_come_after_those_that_they_need(tmp_path: Path) -> None:
    there = modules_by_name(
        _modules(tmp_path, sch_netem="", virtio_net="net-failover", net_failover="failover", failover="")
    )
    assert list(with_needed(["virtio_net", "built_in", "sch_netem"], there)) == [
        *("failover", "net_failover", "virtio_net"),
        "sch_netem",
    ]


def test_a_module_without_one_that_it_needs_is_refused(tmp_path: Path) -> None:
    there = modules_by_name(_modules(tmp_path, virtio_net="net-failover"))
    with pytest.raises(HowdahError, match="virtio_net needs net_failover") as caught:
        with_needed(["virtio_net"], there)
    assert caught.value.where == str(tmp_path / "virtio-net.ko")
