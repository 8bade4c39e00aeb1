# SPDX-License-Identifier: Apache-2.0
"""The list of kernels, and what of a kernel's log is a complaint."""

from __future__ import annotations

from pathlib import Path

import pytest

from howdah.build.archive import Offer
from howdah.build.cache import Cache
from tests.guest import kernel_matrix
from tests.guest.guest_run import ignore
from tests.guest.kernel_matrix import complaints, examine, listed_kernels


def test_the_shipped_list_spans_the_supported_kernels() -> None:
    kernels = listed_kernels()
    assert {"debian-5.10", "debian-6.1", "debian-6.12", "debian-newest", "headers-6.1"} <= set(kernels)
    assert {"debian-6.1", "debian-6.12"} <= set(listed_kernels(only_ci=True)) < set(kernels)


@pytest.mark.parametrize("line", ["debian-6.1 nightly", "debian-6.1 ci ci"])
def test_a_wrong_line_is_named(tmp_path: Path, line: str) -> None:
    (tmp_path / "kernels.txt").write_text(f"# comment\n{line}\n")
    with pytest.raises(ValueError, match=r"kernels\.txt:2"):
        listed_kernels(file=tmp_path / "kernels.txt")


def test_warnings_and_worse_are_complaints() -> None:
    log = (
        "<6>[    1.000000] lo: something usual\n"
        "<4>[    1.000000] ss_x: loading out-of-tree module taints kernel.\n"
        "<4>[    2.000000] WARNING: CPU: 0 PID: 9 at net/ipv4/tcp.c:1\n"
        "<2>[    3.000000] kernel BUG at mm/slub.c:2\n"
        "<12>[    4.000000] a process wrote this warning\n"
        "<30>[    5.000000] and this is an information of a daemon\n"
    )
    assert complaints(log) == [
        "kernel log: WARNING: CPU: 0 PID: 9 at net/ipv4/tcp.c:1",
        "kernel log: kernel BUG at mm/slub.c:2",
        "kernel log: a process wrote this warning",
    ]


def test_what_builds_against_headers_is_kept_and_what_fails_is_tried_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    answers = [(["ss_search"], ["ss_pair.c:3: error: unknown type name"]), (["ss_pair", "ss_search"], [])]
    offer = Offer("linux-headers-6.1.0-1-amd64", "6.1", "6.1.1-1", "bookworm")
    monkeypatch.setattr(kernel_matrix, "_provide_headers", lambda *_given: (tmp_path / "linux-headers-6.1.0-1", offer))
    monkeypatch.setattr(kernel_matrix, "_build_for", lambda *_given: answers.pop(0))
    rows = [examine("headers-6.1", tmp_path, ignore, Cache(tmp_path / "cache")) for _ in range(3)]
    assert [row.problems for row in rows] == [["ss_pair.c:3: error: unknown type name"], [], []]
    assert [row.built for row in rows] == [["ss_search"], ["ss_pair", "ss_search"], ["ss_pair", "ss_search"]]
    assert answers == []
