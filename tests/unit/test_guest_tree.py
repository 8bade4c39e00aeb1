# SPDX-License-Identifier: Apache-2.0
"""The guest tree's ingredients, and the mirror they come from."""

from __future__ import annotations

from pathlib import Path

import pytest

from howdah.build import guest_tree
from howdah.build.guest_tree import package_names, tree_key
from howdah.errors import HowdahError


def test_packages_are_listed_once_and_hold_what_the_agent_runs() -> None:
    names = package_names()
    assert len(names) == len(set(names))
    assert {"python3", "iproute2", "ethtool", "iperf3", "tcpdump", "mininet", "kmod"} <= set(names)


def test_the_key_follows_the_packages_and_not_the_comments(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    listing = tmp_path / "packages.txt"
    monkeypatch.setattr(guest_tree, "PACKAGES", listing)
    listing.write_text("# why\npython3\niproute2\n")
    first = tree_key()
    listing.write_text("iproute2\n\npython3\n# another reason\n")
    assert tree_key() == first
    listing.write_text("iproute2\npython3\nethtool\n")
    assert tree_key() != first


def test_versions_come_from_the_downloaded_files(tmp_path: Path) -> None:
    archives = tmp_path / "var/cache/apt/archives"
    archives.mkdir(parents=True)
    for name in ("python3.13_3.13.5-2_amd64.deb", "ethtool_1%3a6.14.2-1_amd64.deb", "lock"):
        (archives / name).write_text("")
    assert guest_tree._versions(tmp_path) == {"python3.13": "3.13.5-2", "ethtool": "1:6.14.2-1"}
    with pytest.raises(HowdahError, match="kept no packages"):
        guest_tree._versions(tmp_path / "nothing")


def test_a_damaged_tree_is_named(tmp_path: Path) -> None:
    with pytest.raises(HowdahError, match="damaged") as caught:
        guest_tree.load_tree(tmp_path)
    assert str(tmp_path) in str(caught.value)
