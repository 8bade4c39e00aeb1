# SPDX-License-Identifier: Apache-2.0
"""Packages come from the mirrors this machine's apt is configured with, or from those a person names."""

from __future__ import annotations

from pathlib import Path

import pytest

from howdah.build import archive

_NAMED = ("HOWDAH_DEBIAN_MIRROR", "HOWDAH_DEBIAN_SECURITY_MIRROR")


@pytest.fixture(autouse=True)
def machine(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A Debian 12 without any source; returns its /etc/apt."""
    for name in _NAMED:
        monkeypatch.delenv(name, raising=False)
    apt = tmp_path / "apt"
    (apt / "sources.list.d").mkdir(parents=True)
    release = tmp_path / "os-release"
    release.write_text("ID=debian\nVERSION_CODENAME=bookworm\n")
    monkeypatch.setattr(archive, "_APT", apt)
    monkeypatch.setattr(archive, "_OS_RELEASE", release)
    return apt


def _configure(apt: Path) -> None:
    (apt / "sources.list").write_text(
        "# deb http://no.example/debian trixie main\n"
        "deb [signed-by=/k.gpg] http://old.example/debian bookworm main contrib\n"
        "deb http://security.example/debian-security bookworm-security main\n"
        "deb-src http://src.example/debian bookworm main\n"
    )
    (apt / "sources.list.d/debian.sources").write_text(
        "Types: deb\nURIs: http://new.example/debian\nSuites: bookworm bookworm-updates\nComponents: main\n\n"
        "Types: deb\nURIs: http://third.example/x\nSuites: stable\nComponents: extra\n"
    )


def test_both_formats_of_apt_sources(machine: Path) -> None:
    _configure(machine)
    assert list(archive.apt_sources()) == [
        ("http://old.example/debian", ["bookworm"]),
        ("http://security.example/debian-security", ["bookworm-security"]),
        ("http://new.example/debian", ["bookworm", "bookworm-updates"]),
    ]


def test_the_configured_mirrors_are_taken(machine: Path) -> None:
    _configure(machine)
    assert archive.configured_mirror() == archive.debian_mirror() == "http://old.example/debian"
    assert archive.security_mirror() == "http://security.example/debian-security"


def test_without_any_debians_own(machine: Path) -> None:
    assert archive.configured_mirror() is None
    assert archive.debian_mirror() == "http://deb.debian.org/debian"
    assert archive.security_mirror() == "http://deb.debian.org/debian-security"
    # Another distribution's mirror does not carry Debian's suites.
    _configure(machine)
    archive._OS_RELEASE.write_text("ID=ubuntu\nVERSION_CODENAME=bookworm\n")
    assert archive.debian_mirror() == "http://deb.debian.org/debian"
    assert archive.security_mirror() == "http://deb.debian.org/debian-security"


def test_named_mirrors_come_first(machine: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _configure(machine)
    monkeypatch.setenv("HOWDAH_DEBIAN_MIRROR", "http://mirror.example/debian")
    assert archive.configured_mirror() == "http://mirror.example/debian"
    assert archive.security_mirror() == "http://mirror.example/debian-security", "mirrors keep both side by side"
    monkeypatch.setenv("HOWDAH_DEBIAN_SECURITY_MIRROR", "http://safe.example/s")
    assert archive.security_mirror() == "http://safe.example/s"
