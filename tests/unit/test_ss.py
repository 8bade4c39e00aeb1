# SPDX-License-Identifier: Apache-2.0
"""One process of ss prints several dumps, and each dump gets its own lines."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path

import pytest

from collectors.ss import dumps_text
from howdah.linux.netlink.message import build

# Prints a line for each netlink message, as ss does, but leaves out those that say "gone"; counts how often it is run.
_SS = """\
import os, struct
with open({count!r}, "a") as count:
    count.write("x")
data = open(os.environ["TCPDIAG_FILE"], "rb").read()
print("State Recv-Q")
while data:
    length, kind = struct.unpack_from("=IH", data)
    if kind == 3:
        break
    text = data[16:length].rstrip(b"\\0").decode()
    if text != "gone":
        print("ESTAB", text)
    data = data[(length + 3) // 4 * 4:]
"""


@pytest.fixture
def started(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A stand-in for ss is on the path; the file has a letter for each time it was run."""
    count = tmp_path / "started"
    script = tmp_path / "ss.py"
    script.write_text(_SS.format(count=str(count)))
    program = tmp_path / "ss"
    # The first line of a script cannot name an interpreter whose path has a space.
    program.write_text(f"#!/bin/sh\nexec {shlex.quote(sys.executable)} {shlex.quote(str(script))}\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    return count


def _socket(text: str) -> bytes:
    return build(20, 0, 0, text.encode().ljust(8, b"\0"))


def test_each_dump_gets_its_own_sockets(started: Path, tmp_path: Path) -> None:
    texts = dumps_text([[_socket("a"), _socket("b")], [], [_socket("c")]], tmp_path / "ss.diag")
    heading = "State Recv-Q\n"
    assert texts == [f"{heading}ESTAB a\nESTAB b\n", heading, f"{heading}ESTAB c\n"]
    assert started.read_text() == "x"
    assert not (tmp_path / "ss.diag").exists()


def test_a_socket_that_ss_leaves_out_moves_no_other_to_another_dump(started: Path, tmp_path: Path) -> None:
    texts = dumps_text([[_socket("a"), _socket("gone")], [_socket("c")]], tmp_path / "ss.diag")
    heading = "State Recv-Q\n"
    assert texts == [f"{heading}ESTAB a\n", f"{heading}ESTAB c\n"]
    assert started.read_text() == "xxx"


def test_no_dump_at_all(started: Path, tmp_path: Path) -> None:
    assert dumps_text([], tmp_path / "ss.diag") == []
    assert not started.exists()
