# SPDX-License-Identifier: Apache-2.0
"""Which of Debian's kernel packages is taken. No network: what the suites offer is written here."""

from __future__ import annotations

from pathlib import Path

import pytest

from howdah.build import kernel_package
from howdah.build.archive import Archive, Offer
from howdah.build.cache import Cache
from howdah.build.kernel_package import provide_image

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
    monkeypatch.setattr(kernel_package, "_asked", asked)
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
